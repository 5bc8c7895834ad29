// Runs a sweep, or one shard of it, in its folder: hands blocks to threads, appends what is finished to this process's part, and puts the results together when
// nothing is missing. What is in the folder: parts.h; what run i is: plan.h. Nothing here talks to a terminal.
#ifndef SCALETRACE_SWEEP_SWEEP_H_
#define SCALETRACE_SWEEP_SWEEP_H_

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/kernels.h"
#include "sweep/parts.h"
#include "sweep/plan.h"

namespace scaletrace {

struct SweepOptions {
  std::string folder;  // made where it does not exist
  Shard shard;
  int threads = 1;     // changes no byte of what is written
  bool force = false;  // start anew, whatever is there
};

struct SweepProgress {
  std::uint64_t total = 0;  // runs of this shard
  std::uint64_t done = 0;   // of those, by this process and earlier ones
  // By this process:
  std::uint64_t done_here = 0, dropped = 0, diverged = 0, stuck = 0, invalid = 0;  // stuck: skipping at the end, or with a scale of inf or 0, or raised
  double seconds = 0;
};

struct SweepReport {
  enum class End { kDone, kWasDone, kInterrupted };
  End end = End::kDone;      // kDone: of this shard nothing is missing
  bool complete = false;     // results.csv is there
  SweepProgress progress;
  std::uint64_t failed = 0;  // combinations that make no config, in all parts of the folder; 0 for kWasDone
  std::string first_error;   // of one that this process met: "run 7: ..."
};

// keep_going is called from the calling thread some twenty times a second; once it says false, the threads end after what they can save, and the report says
// kInterrupted. Where they don't within a second and a half (a single step may take longer), what is finished is on the disk, and too_slow() is called, which may
// end the process; if it returns, the threads are waited for. A process that ends at any moment loses the runs in progress and nothing else.
// Errors: InputError (kConfig) where the folder holds another sweep or other files and force is not set; InputError (kData) for wrong data; IoError.
SweepReport RunSweep(const SweepPlan& plan, const KernelTable& kernels, const SweepOptions& options,
                     const std::function<bool(const SweepProgress&)>& keep_going, const std::function<void()>& too_slow);

// The number of runs in a shard.
std::uint64_t RunsOfShard(const PlanFacts& facts, const Shard& shard);
// Those of them that no part has.
std::uint64_t MissingOfShard(const PlanFacts& facts, const Shard& shard, const DoneRuns& done);

}  // namespace scaletrace

#endif  // SCALETRACE_SWEEP_SWEEP_H_
