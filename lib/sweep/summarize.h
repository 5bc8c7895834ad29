// Groups of a sweep's rows, with what their numbers are like: from results.csv or from any CSV of that kind.
#ifndef SCALETRACE_SWEEP_SUMMARIZE_H_
#define SCALETRACE_SWEEP_SUMMARIZE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrace {

struct SummarizeOptions {
  std::vector<std::string> by;       // columns, by name or by the last word of a key path where that is one column's; none: all rows are one group
  std::vector<std::string> metrics;  // columns of numbers, likewise
  std::vector<double> quantiles = {0.1, 0.9};
};

// Numbers are ordered with inf above all; NaN and empty cells are left out and counted. A quantile q of n numbers is the one at place q (n - 1), rounded down, in
// ascending order: always a number that occurred.
struct MetricSummary {
  std::uint64_t count = 0, nan = 0;
  double median = 0;               // NaN where count is 0, as all that follow
  double smallest = 0, largest = 0;
  std::vector<double> quantiles;
};

struct GroupSummary {
  std::vector<std::string> values;  // of `by`
  std::uint64_t runs = 0;
  std::uint64_t ok = 0;             // verdict ok
  std::vector<MetricSummary> metrics;
};

struct SweepSummary {
  std::vector<std::string> by, metrics;  // whole column names
  std::vector<GroupSummary> groups;      // in ascending order of the values, numbers by size, the first of `by` first
};

// rows(add) calls add(line) for every row. Throws InputError (kConfig) for a column that `header` has not; InputError (kData) naming `file` for a row with another
// number of cells, or a metric that is no number. Memory: the numbers of the metrics.
SweepSummary Summarize(std::string_view header, const std::string& file, const std::function<void(const std::function<void(std::string_view)>&)>& rows,
                       const SummarizeOptions& options);

// Cells of a CSV line, quotes taken off.
void SplitCsv(std::string_view line, std::vector<std::string>& cells);

}  // namespace scaletrace

#endif  // SCALETRACE_SWEEP_SUMMARIZE_H_
