#include "sweep/summarize.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "base/error.h"
#include "base/number.h"
#include "config/field_text.h"

namespace scaletrace {
namespace {

std::size_t ColumnOf(const std::vector<std::string>& columns, const std::string& name, const char* option) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == name) return i;
    if (columns[i].ends_with("." + name)) found.push_back(columns[i]);
  }
  if (found.size() == 1) return static_cast<std::size_t>(std::find(columns.begin(), columns.end(), found[0]) - columns.begin());
  const auto fail = [&](const std::string& message) { throw InputError(InputError::Kind::kConfig, {.file = option}, message); };
  if (found.size() > 1) fail("found '" + Printable(name) + "', which may be " + Choices(found) + "; allowed: a whole name");
  fail("found '" + Printable(name) + "'" + DidYouMean(name, {columns.begin(), columns.end()}) + "; allowed: " + Choices(columns));
  return 0;
}

// Numbers before words, by size; words by their letters.
bool Before(const std::string& a, const std::string& b) {
  const auto x = ReadCsvDouble(a), y = ReadCsvDouble(b);
  if (x && y && *x != *y) return *x < *y;
  if (x.has_value() != y.has_value()) return x.has_value();
  return a < b;
}

MetricSummary Describe(std::vector<double>& numbers, std::uint64_t nan, const std::vector<double>& quantiles) {
  MetricSummary summary;
  summary.count = numbers.size();
  summary.nan = nan;
  std::sort(numbers.begin(), numbers.end());
  const auto at = [&](double q) {
    if (numbers.empty()) return std::numeric_limits<double>::quiet_NaN();
    return numbers[static_cast<std::size_t>(std::floor(q * static_cast<double>(numbers.size() - 1)))];
  };
  summary.smallest = at(0);
  summary.median = at(0.5);
  summary.largest = at(1);
  for (const double q : quantiles) summary.quantiles.push_back(at(q));
  return summary;
}

}  // namespace

void SplitCsv(std::string_view line, std::vector<std::string>& cells) {
  cells.clear();
  cells.emplace_back();
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"') cells.back() += line[i++];
      else quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
}

SweepSummary Summarize(std::string_view header, const std::string& file, const std::function<void(const std::function<void(std::string_view)>&)>& rows,
                       const SummarizeOptions& options) {
  std::vector<std::string> columns;
  SplitCsv(header, columns);
  SweepSummary summary;
  std::vector<std::size_t> by, metrics;
  for (const std::string& name : options.by) by.push_back(ColumnOf(columns, name, "--by"));
  for (const std::string& name : options.metrics) metrics.push_back(ColumnOf(columns, name, "--metric"));
  for (const std::size_t i : by) summary.by.push_back(columns[i]);
  for (const std::size_t i : metrics) summary.metrics.push_back(columns[i]);
  const auto verdict = static_cast<std::size_t>(std::find(columns.begin(), columns.end(), "verdict") - columns.begin());

  struct Group {
    GroupSummary summary;
    std::vector<std::vector<double>> numbers;
    std::vector<std::uint64_t> nan;
  };
  std::unordered_map<std::string, std::size_t> places;
  std::vector<Group> groups;
  std::vector<std::string> cells;
  std::string key;
  std::size_t line_number = 1;
  rows([&](std::string_view line) {
    ++line_number;
    const auto fail = [&](const std::string& column, const std::string& message) {
      throw InputError(InputError::Kind::kData, {file, line_number, column}, message);
    };
    SplitCsv(line, cells);
    if (cells.size() != columns.size()) fail("", "found " + std::to_string(cells.size()) + " cells; allowed: " + std::to_string(columns.size()) + ", as in the header");
    key.clear();
    for (const std::size_t i : by) key.append(cells[i]).push_back('\0');
    const auto [place, added] = places.emplace(key, groups.size());
    if (added) {
      Group& group = groups.emplace_back();
      for (const std::size_t i : by) group.summary.values.push_back(cells[i]);
      group.numbers.resize(metrics.size());
      group.nan.resize(metrics.size());
    }
    Group& group = groups[place->second];
    ++group.summary.runs;
    if (verdict < cells.size() && cells[verdict] == "ok") ++group.summary.ok;
    for (std::size_t m = 0; m < metrics.size(); ++m) {
      const std::string& cell = cells[metrics[m]];
      const auto number = ReadCsvDouble(cell);
      if (!number && !cell.empty()) fail(columns[metrics[m]], "found " + Printable(cell) + "; allowed: a column of numbers");
      if (number && !std::isnan(*number)) {
        group.numbers[m].push_back(*number);
      } else {
        ++group.nan[m];
      }
    }
  });
  for (Group& group : groups) {
    for (std::size_t m = 0; m < metrics.size(); ++m) group.summary.metrics.push_back(Describe(group.numbers[m], group.nan[m], options.quantiles));
    summary.groups.push_back(std::move(group.summary));
  }
  std::sort(summary.groups.begin(), summary.groups.end(), [](const GroupSummary& a, const GroupSummary& b) {
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      if (Before(a.values[i], b.values[i])) return true;
      if (Before(b.values[i], a.values[i])) return false;
    }
    return false;
  });
  return summary;
}

}  // namespace scaletrace
