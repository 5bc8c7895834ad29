// Cases: folders that hold a config and the trajectory that is expected of it. A case is
//   config.yaml      as for `scaletrace run`
//   expected.csv     any columns of a trace, `step` among them; the rows that the config's `trace` keeps
//   tolerance.yaml   if there is one: tolerance.h
//   events.txt       if there is one: no model is trained; the config's scaler is driven by these steps (scaling/events.h): F finite, O inf, N NaN
// Nothing here talks to a terminal.
#ifndef SCALETRACE_CHECK_CASE_H_
#define SCALETRACE_CHECK_CASE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compare/compare.h"
#include "kernels/kernels.h"

namespace scaletrace {

// The cases that `path` is or holds at any depth, sorted; hidden folders and links to folders are left out. A folder is a case where it has an expected.csv, or a config.yaml and
// is no run's folder. InputError (kConfig) where there is none, IoError where a folder can't be read.
std::vector<std::string> FindCases(const std::string& path);

// The trajectory of a case, computed as it is read: CSV with these columns, a header first.
TextSource CaseTrajectory(const std::string& folder, const std::vector<std::string>& columns, const KernelTable& kernels);

struct CaseOptions {
  std::int64_t rows_around = 3;
  bool update = false;  // write expected.csv anew where it differs, can't be read or isn't there
  std::string keep;     // where it differs, write the trajectory that was computed to this file; empty: don't
};

struct CaseResult {
  enum class Status : std::uint8_t { kPassed, kFailed, kError, kUpdated };
  Status status = Status::kPassed;
  std::string headline;  // one line: the first difference, or why there is no answer; empty where it passed
  std::string report;    // several lines, each ended; empty where it passed
  std::int64_t rows = 0;
  double seconds = 0;
};

// Runs the case and compares. What is wrong with the case's files is a result (kError), not an exception; InternalError and std::bad_alloc are exceptions.
// Safe to call from several threads for different cases.
CaseResult CheckCase(const std::string& folder, const KernelTable& kernels, const CaseOptions& options = {});

}  // namespace scaletrace

#endif  // SCALETRACE_CHECK_CASE_H_
