// A run's folder: what it holds, how a run goes on where it stopped, and that two processes never write in it at once.
//   config.yaml           as given                              config.resolved.yaml  with every default
//   trace.csv             rows, in whole lines                  final.json            the state, replaced every few seconds and at the end
//   histograms.csv        exponents of tensors, where trace.histograms asks for them
//   run.json              time, host, version, seconds          summary.json          written last: it marks the run as done
// Only run.json differs between two equal runs. Nothing here talks to a terminal; what a run computes: run.h.
#ifndef SCALETRACE_TRAIN_RUN_FOLDER_H_
#define SCALETRACE_TRAIN_RUN_FOLDER_H_

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/kernels.h"
#include "train/run_config.h"
#include "train/summary.h"

namespace scaletrace {

struct FolderOptions {
  std::string path;           // made where it does not exist
  std::string config_text;    // as given
  std::string resolved_text;  // with every default
  std::string hash;           // of everything that the run depends on
  std::string software;       // for run.json: name and version
  bool force = false;         // start anew, whatever is there
  int threads = 1;            // at most so many compute steps and write rows; nothing but run.json and the time depends on it
  double seconds_alone = 0.02;  // of a run, before one of the threads that compute no step, where there is one, writes rows: in a shorter run it would not pay
  double seconds_between_states = 2;
};

// What the parts of a run took. In a run with a thread for rows, `trace` and `state` pass while further steps are computed, so that the sum is more than the time
// that passed.
struct Seconds {
  double data = 0;   // making the data and the starting state
  double steps = 0;  // the steps themselves
  double trace = 0;  // choosing, formatting and writing rows
  double state = 0;  // writing final.json, and forcing the rows before it to the disk
};

struct RunProgress {
  std::int64_t steps_done = 0;  // computed; the rows of the last of them may be on their way to the disk
  std::int64_t steps_total = 0;
  std::int64_t steps_here = 0;  // by this process
  double seconds = 0;           // since this process began to step
  const Summary* summary = nullptr;  // of steps_done
};

struct RunReport {
  enum class End { kDone, kWasDone, kInterrupted };
  End end = End::kDone;
  Summary summary;
  Seconds seconds;
  std::int64_t resumed_at = 0;  // the step where this process took over; 0 for a new run
  std::int64_t steps_here = 0;
};

// Runs `config` in the folder, or goes on where an earlier process with the same hash stopped, or finds that it is done. keep_going is called every few
// hundredths of a second, in the caller's thread; false: the state is saved and the report says kInterrupted. A folder that has what a run leaves that was killed before its first state counts as new.
// Errors: InputError (kConfig) where the folder holds another run (another hash), other files or a run whose final.json is missing, and force is not set; IoError where another
// process runs there, where the run is done but its trace is not all there, or as the file system has it (what was written stays valid); those of Run.
RunReport RunInFolder(const RunConfig& config, const KernelTable& kernels, const FolderOptions& options,
                      const std::function<bool(const RunProgress&)>& keep_going);

}  // namespace scaletrace

#endif  // SCALETRACE_TRAIN_RUN_FOLDER_H_
