#include "check/testing.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <type_traits>

#include "base/error.h"
#include "base/file.h"
#include "base/number.h"
#include "check/case.h"
#include "check/tolerance.h"
#include "compare/compare.h"
#include "compare/report.h"
#include "kernels/kernels.h"

namespace scaletrace::testing {
namespace {

const ReportNames kNames = {"expected", "got"};

CompareOptions OptionsFor(const Options& options) {
  CompareOptions compare;
  if (!options.tolerance_file.empty()) compare.tolerances = ReadTolerances(options.tolerance_file);
  compare.rows_around = options.rows_around;
  return compare;
}

Result ResultOf(const Comparison& comparison) {
  if (comparison.equal) return {};
  return {false, ComparisonReport(comparison, kNames)};
}

std::string Quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n\r") == std::string::npos) return cell;
  std::string out = "\"";
  for (const char c : cell) out += c == '"' ? "\"\"" : std::string(1, c == '\n' || c == '\r' ? ' ' : c);
  return out + "\"";
}

}  // namespace

std::string Value::Text() const {
  return std::visit(
      []<class T>(const T& value) -> std::string {
        if constexpr (std::is_same_v<T, bool>) {
          return value ? "1" : "0";
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          return std::to_string(value);
        } else if constexpr (std::is_same_v<T, std::string>) {
          return Quoted(value);
        } else {
          return ToText(value);
        }
      },
      value_);
}

Trajectory::Trajectory(const std::vector<std::string>& columns) : columns_(columns.size()) {
  if (std::find(columns.begin(), columns.end(), "step") == columns.end()) throw std::invalid_argument("a trajectory needs a column 'step'");
  for (const std::string& name : columns) csv_ += (csv_.empty() ? "" : ",") + Quoted(name);
  csv_ += "\n";
}

void Trajectory::Add(std::initializer_list<Value> row) {
  if (row.size() != columns_) throw std::invalid_argument("found " + std::to_string(row.size()) + " values; allowed: one for each of " + std::to_string(columns_) + " columns");
  const char* comma = "";
  for (const Value& value : row) {
    csv_ += comma + value.Text();
    comma = ",";
  }
  csv_ += "\n";
}

Result Compare(const Trajectory& expected, const Trajectory& got, const Options& options) {
  try {
    RowReader a("expected", GivenText(expected.csv())), b("got", GivenText(got.csv()));
    return ResultOf(scaletrace::Compare(a, b, OptionsFor(options)));
  } catch (const std::runtime_error& e) {
    return {false, e.what()};
  }
}

Result Expect(const Trajectory& got, const std::string& expected_csv, const Options& options) {
  const auto update = [&](const std::string& why) -> Result {
    WriteFileAtomically(expected_csv, got.csv(), /*durable=*/false);
    return {true, expected_csv + " was written anew: " + why};
  };
  try {
    const CompareOptions compare = OptionsFor(options);
    if (options.update && !std::filesystem::exists(expected_csv)) return update("it was not there");
    RowReader a(expected_csv, FileText(expected_csv)), b("got", GivenText(got.csv()));
    const Result result = ResultOf(scaletrace::Compare(a, b, compare));
    return result.ok || !options.update ? result : update(result.message);
  } catch (const std::runtime_error& e) {
    return {false, e.what()};
  }
}

Result ExpectCase(const Trajectory& got, const std::string& folder, Options options) {
  const std::string tolerance = folder + "/tolerance.yaml";
  if (options.tolerance_file.empty() && std::filesystem::exists(tolerance)) options.tolerance_file = tolerance;
  return Expect(got, folder + "/expected.csv", options);
}

Result CheckCase(const std::string& folder, const Options& options) {
  CaseOptions how;
  how.rows_around = options.rows_around;
  how.update = options.update;
  const CaseResult result = scaletrace::CheckCase(folder, CompiledKernels().front(), how);
  return {result.status == CaseResult::Status::kPassed || result.status == CaseResult::Status::kUpdated, result.report};
}

Trajectory Simulate(const std::string& folder, const std::vector<std::string>& columns) {
  Trajectory trajectory(columns);
  for (const std::string& name : columns) {
    if (FindColumn(name) == nullptr) throw std::runtime_error("found '" + Printable(name) + "'; allowed: a column of a trace");
  }
  trajectory.csv_.clear();
  const TextSource text = CaseTrajectory(folder, columns, CompiledKernels().front());
  while (text(trajectory.csv_)) {
  }
  return trajectory;
}

}  // namespace scaletrace::testing
