// JUnit XML: what must be escaped is, and the counts are those of the results.
#include "check/junit.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

TEST_CASE("results become JUnit XML, whatever is in their names and reports") {
  using Status = CaseResult::Status;
  std::vector<NamedResult> results = {{"cases/a", {}}, {"<b>&\"", {.status = Status::kFailed, .headline = "x < y", .report = "line\n\x1b[0m ]]> \xff\n"}}, {"c", {.status = Status::kError, .headline = "e"}},
                                      {"d", {.status = Status::kUpdated, .report = "new"}}};
  const std::string xml = JUnitXml(results, 1.5);
  CHECK_THAT(xml, ContainsSubstring("<testsuites tests=\"4\" failures=\"1\" errors=\"1\" time=\"1.500\">"));
  CHECK_THAT(xml, ContainsSubstring("<testcase classname=\"cases\" name=\"a\" time=\"0.000\"/>"));
  CHECK_THAT(xml, ContainsSubstring("name=\"&lt;b&gt;&amp;&quot;\""));
  CHECK_THAT(xml, ContainsSubstring("<failure message=\"x &lt; y\">line\n\\x1b[0m ]]&gt; \\xff\n</failure>"));
  CHECK_THAT(xml, ContainsSubstring("<error message=\"e\"></error>"));
  CHECK_THAT(xml, ContainsSubstring("name=\"d\" time=\"0.000\"/>"));
}

}  // namespace
}  // namespace scaletrace
