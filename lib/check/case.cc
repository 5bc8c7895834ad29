#include "check/case.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/number.h"
#include "check/tolerance.h"
#include "compare/report.h"
#include "config/config.h"
#include "scaling/events.h"
#include "trace/csv_writer.h"
#include "train/run.h"

namespace scaletrace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRecords = 1024;  // computed at once
constexpr std::size_t kMaxEventsBytes = std::size_t{64} << 20;
constexpr std::string_view kPolicyColumns[] = {"step", "loss_scale", "good_steps", "grads_finite", "event", "skipped_total", "skipped_in_a_row"};
const ReportNames kNames = {"expected", "got"};

bool Has(const std::string& folder, const char* file) {
  std::error_code error;
  return fs::exists(fs::path(folder) / file, error);
}
std::string In(const std::string& folder, const char* file) { return (fs::path(folder) / file).string(); }

bool IsCase(const std::string& folder) {
  return Has(folder, "expected.csv") || (Has(folder, "config.yaml") && !Has(folder, "trace.csv") && !Has(folder, "final.json"));
}

// The records of a run of the config.
class RunRecords {
 public:
  RunRecords(const RunConfig& config, const KernelTable& kernels) : run_(config, kernels), records_(kRecords) {}
  std::span<const StepRecord> Next() {
    if (run_.done()) return {};
    return std::span<const StepRecord>(records_).first(run_.Steps(records_));
  }

 private:
  Run run_;
  std::vector<StepRecord> records_;
};

// The records of a scaler that is driven by letters.
class PolicyRecords {
 public:
  PolicyRecords(const Policy& policy, std::vector<EventRun> events) : scaler_(policy), events_(std::move(events)), good_steps_(scaler_.initial_good_steps()) {}
  std::span<const StepRecord> Next() {
    records_.clear();
    while (records_.size() < kRecords && at_ < events_.size() && !raised_) {
      Take(events_[at_].event);
      if (++taken_ < events_[at_].count) continue;
      taken_ = 0;
      ++at_;
    }
    return records_;
  }

 private:
  void Take(char event) {
    StepRecord r;
    r.step = step_++;
    r.loss_scale = scaler_.loss_scale();
    r.good_steps = good_steps_;
    Observation seen = ObservationOf(event);
    seen.step = r.step;
    const Scaler::Decision decision = scaler_.Next(seen);
    r.grads_finite = decision.finite;
    r.event = decision.event;
    skipped_in_a_row_ = decision.apply ? 0 : skipped_in_a_row_ + 1;
    skipped_ += decision.apply ? 0 : 1;
    r.skipped_in_a_row = skipped_in_a_row_;
    r.skipped_total = skipped_;
    const double after = scaler_.loss_scale();
    const bool stays = after == r.loss_scale || (std::isnan(after) && std::isnan(r.loss_scale));
    good_steps_ = decision.finite && stays ? good_steps_ + 1 : 0;
    raised_ = decision.raised;
    records_.push_back(r);
  }

  Scaler scaler_;
  std::vector<EventRun> events_;
  std::vector<StepRecord> records_;
  std::size_t at_ = 0;
  std::int64_t taken_ = 0, step_ = 0, skipped_ = 0, skipped_in_a_row_ = 0, good_steps_;
  bool raised_ = false;
};

// Records as CSV, piece by piece.
template <class Records>
TextSource AsText(std::shared_ptr<Records> records, const std::vector<std::string>& names, std::int64_t every) {
  std::vector<const Column*> columns;
  for (const std::string& name : names) columns.push_back(FindColumn(name));
  struct State {
    RowFilter filter;
    bool begun = false, ended = false;
  };
  auto state = std::make_shared<State>(State{RowFilter(every)});
  return [=](std::string& out) {
    if (state->ended) return false;
    const auto row = [&](const StepRecord& record) {
      for (const Column* column : columns) {
        const std::size_t size = out.size();
        out.resize(size + kMaxNumberLength);
        out.resize(static_cast<std::size_t>(column->write(out.data() + size, record) - out.data()));
        out += ',';
      }
      out.back() = '\n';
    };
    if (!state->begun) {
      state->begun = true;
      for (const Column* column : columns) out.append(column->name).append(column == columns.back() ? "\n" : ",");
      return true;
    }
    const std::span<const StepRecord> batch = records->Next();
    for (const StepRecord& record : batch) state->filter.Add(record, row);
    if (batch.empty()) {
      state->filter.Finish(row);
      state->ended = true;
    }
    return true;
  };
}

// The columns that a new expected.csv gets.
std::vector<std::string> DefaultColumnsOf(const std::string& folder) {
  const RunConfig config = ReadConfig(In(folder, "config.yaml"));
  if (!Has(folder, "events.txt")) {
    std::vector<std::string> columns = config.trace.columns;
    if (std::find(columns.begin(), columns.end(), "step") == columns.end()) columns.insert(columns.begin(), "step");
    return columns;
  }
  return {std::begin(kPolicyColumns), std::begin(kPolicyColumns) + 5};
}

// Goes through the text once; `path` has it afterwards, or is as it was.
void WriteText(const TextSource& text, const std::string& path) {
  const std::string temporary = path + ".tmp." + std::to_string(::getpid());
  try {
    LineFile file(temporary, 0);
    for (std::string piece; text(piece); piece.clear()) file.Append(piece);
    file.Flush();
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    throw IoError(path, "cannot replace", error);
  }
}

void CheckOrThrow(const std::string& folder, const KernelTable& kernels, const CaseOptions& options, CaseResult& result) {
  if (!Has(folder, "config.yaml")) throw InputError(InputError::Kind::kConfig, {.file = folder}, "has no config.yaml; a case is a config.yaml and an expected.csv");
  CompareOptions compare;
  compare.rows_around = options.rows_around;
  if (Has(folder, "tolerance.yaml")) compare.tolerances = ReadTolerances(In(folder, "tolerance.yaml"));
  const std::string path = In(folder, "expected.csv");
  std::vector<std::string> columns;
  std::string unreadable;
  if (!Has(folder, "expected.csv")) {
    if (!options.update) throw InputError(InputError::Kind::kConfig, {.file = folder}, "has no expected.csv; --update writes it");
    unreadable = "expected.csv is new";
    result.report = "expected.csv is new\n";
  } else {
    try {
      RowReader expected(path, FileText(path));
      for (const std::string& name : expected.columns()) {
        if (name != "step" && ToleranceOf(compare.tolerances, name).ignore) continue;
        if (FindColumn(name) == nullptr) {
          std::vector<std::string_view> names(ColumnNames().begin(), ColumnNames().end());
          throw InputError(InputError::Kind::kData, {.file = path, .line = 1},
                           "found '" + Printable(name) + "', which is no column of a trace" + DidYouMean(name, names) + "; rename it, or say `" + Printable(name) +
                               ": ignore` in tolerance.yaml");
        }
        columns.push_back(name);
      }
      RowReader got("the run", CaseTrajectory(folder, columns, kernels));
      const Comparison c = Compare(expected, got, compare);
      result.rows = c.expected_rows;
      if (c.equal) return;
      result.status = CaseResult::Status::kFailed;
      result.headline = ComparisonHeadline(c, kNames);
      result.report = ComparisonReport(c, kNames);
    } catch (const InputError& e) {
      // Of the expected file only: a config that is wrong can't be updated from.
      if (!options.update || e.kind() != InputError::Kind::kData || !std::string(e.what()).starts_with(path)) throw;
      unreadable = e.what();
      result.report = unreadable + "\n";
      columns.clear();
    }
  }
  if (options.update) {
    WriteText(CaseTrajectory(folder, columns.empty() ? DefaultColumnsOf(folder) : columns, kernels), path);
    result.status = CaseResult::Status::kUpdated;
    if (!unreadable.empty()) result.headline = unreadable;
  } else if (!options.keep.empty()) {
    std::error_code error;
    fs::create_directories(fs::path(options.keep).parent_path(), error);
    WriteText(CaseTrajectory(folder, columns, kernels), options.keep);
  }
}

}  // namespace

std::vector<std::string> FindCases(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    throw InputError(InputError::Kind::kConfig, {.file = path}, fs::exists(path, error) ? "is a file; allowed: a case's folder, or a folder that holds cases" : "there is no such folder");
  }
  if (IsCase(path)) return {path};
  std::vector<std::string> cases;
  std::vector<std::string> open = {path};
  while (!open.empty()) {
    const std::string folder = std::move(open.back());
    open.pop_back();
    fs::directory_iterator entries(folder, error);
    if (error) throw IoError(folder, "cannot read", error.value());
    for (const fs::directory_entry& entry : entries) {
      if (entry.path().filename().string().starts_with('.') || entry.is_symlink(error) || !entry.is_directory(error)) continue;
      (IsCase(entry.path().string()) ? cases : open).push_back(entry.path().string());
    }
  }
  if (cases.empty()) throw InputError(InputError::Kind::kConfig, {.file = path}, "found no case in it; a case is a folder with config.yaml and expected.csv");
  std::sort(cases.begin(), cases.end());
  return cases;
}

TextSource CaseTrajectory(const std::string& folder, const std::vector<std::string>& columns, const KernelTable& kernels) {
  RunConfig config = ReadConfig(In(folder, "config.yaml"));
  config.trace.columns = columns;
  if (!Has(folder, "events.txt")) return AsText(std::make_shared<RunRecords>(config, kernels), columns, config.trace.every);
  for (const std::string& name : columns) {
    if (std::find(std::begin(kPolicyColumns), std::end(kPolicyColumns), name) != std::end(kPolicyColumns)) continue;
    std::string all;
    for (const std::string_view n : kPolicyColumns) all += (all.empty() ? "" : ", ") + std::string(n);
    throw InputError(InputError::Kind::kData, {.file = In(folder, "expected.csv"), .line = 1},
                     "found '" + Printable(name) + "', which a case with events.txt has not, since it trains no model; allowed: " + all);
  }
  const std::string events = In(folder, "events.txt");
  return AsText(std::make_shared<PolicyRecords>(config.scaler, ParseEvents(ReadFile(events, kMaxEventsBytes), events)), columns, config.trace.every);
}

CaseResult CheckCase(const std::string& folder, const KernelTable& kernels, const CaseOptions& options) {
  CaseResult result;
  const auto start = std::chrono::steady_clock::now();
  const auto error = [&](const char* what) {
    result.status = CaseResult::Status::kError;
    result.headline = what;
    result.report = result.headline + "\n";
  };
  try {
    CheckOrThrow(folder, kernels, options, result);
  } catch (const InputError& e) {
    error(e.what());
  } catch (const IoError& e) {
    error(e.what());
  }
  while (result.report.ends_with("\n\n")) result.report.pop_back();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace scaletrace
