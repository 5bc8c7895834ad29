// Results of cases as JUnit XML, the form that CI systems read.
#ifndef SCALETRACE_CHECK_JUNIT_H_
#define SCALETRACE_CHECK_JUNIT_H_

#include <span>
#include <string>

#include "check/case.h"

namespace scaletrace {

struct NamedResult {
  std::string path;
  CaseResult result;
};

// One test suite with a test case for each result, in order: the folder's name, its parent as the class, the report as text of a failure.
// Characters that XML 1.0 does not allow are written as \xNN.
std::string JUnitXml(std::span<const NamedResult> results, double seconds);

}  // namespace scaletrace

#endif  // SCALETRACE_CHECK_JUNIT_H_
