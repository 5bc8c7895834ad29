#include "check/junit.h"

#include <cstdio>

#include "base/error.h"

namespace scaletrace {
namespace {

std::string Escaped(std::string_view text) {
  std::string out;
  // Line by line, since Printable makes control characters and broken UTF-8 visible, line ends too.
  while (true) {
    const std::size_t end = text.find('\n');
    for (const char c : Printable(text.substr(0, end), text.size() + 1)) {
      switch (c) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        default: out += c;
      }
    }
    if (end == std::string_view::npos) return out;
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::string Seconds(double seconds) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.3f", seconds);
  return text;
}

}  // namespace

std::string JUnitXml(std::span<const NamedResult> results, double seconds) {
  using Status = CaseResult::Status;
  std::size_t failures = 0, errors = 0;
  std::string cases;
  for (const auto& [path, result] : results) {
    const std::size_t slash = path.find_last_of('/');
    const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
    const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
    cases += "    <testcase classname=\"" + Escaped(parent.empty() ? "scaletrace" : parent) + "\" name=\"" + Escaped(name) + "\" time=\"" + Seconds(result.seconds) + "\"";
    if (result.status == Status::kFailed || result.status == Status::kError) {
      const char* tag = result.status == Status::kFailed ? "failure" : "error";
      (result.status == Status::kFailed ? failures : errors) += 1;
      cases += ">\n      <" + std::string(tag) + " message=\"" + Escaped(result.headline) + "\">" + Escaped(result.report) + "</" + tag + ">\n    </testcase>\n";
    } else {
      cases += "/>\n";
    }
  }
  const std::string counts = "tests=\"" + std::to_string(results.size()) + "\" failures=\"" + std::to_string(failures) + "\" errors=\"" + std::to_string(errors) + "\"";
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites " + counts + " time=\"" + Seconds(seconds) + "\">\n  <testsuite name=\"scaletrace check\" " + counts + " skipped=\"0\" time=\"" +
         Seconds(seconds) + "\">\n" + cases + "  </testsuite>\n</testsuites>\n";
}

}  // namespace scaletrace
