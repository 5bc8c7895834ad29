// A comparison as text for a person, and as JSON for a program.
#ifndef SCALETRACE_COMPARE_REPORT_H_
#define SCALETRACE_COMPARE_REPORT_H_

#include <string>

#include "compare/compare.h"

namespace scaletrace {

// What the two trajectories are called in the text: "A" and "B", "expected" and "got".
struct ReportNames {
  std::string expected = "expected";
  std::string got = "got";
};

// One sentence: "step 105: loss_scale is 65536 and should be 131072". "no differences" where the two are equal.
std::string ComparisonHeadline(const Comparison& comparison, const ReportNames& names);

// The whole report, several lines, each ended: the headline, both values in decimal and bits, the event that moved, how far the difference goes and whether the two meet again, the rows around it, and
// what was not compared. `indent` begins each line.
std::string ComparisonReport(const Comparison& comparison, const ReportNames& names, const std::string& indent = "");

// One JSON object: {"equal": false, "first": {...}, ...}.
std::string ComparisonJson(const Comparison& comparison);

}  // namespace scaletrace

#endif  // SCALETRACE_COMPARE_REPORT_H_
