// Many runs in one call, for sweeps: summaries only, no files. Each outcome is what a Run of that config alone would give, to the bit, however the runs
// are grouped. Where the configs come from and where the outcomes go: lib/sweep.
#ifndef SCALETRACE_TRAIN_RUN_BLOCK_H_
#define SCALETRACE_TRAIN_RUN_BLOCK_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "train/run.h"
#include "train/run_config.h"
#include "train/scale_tally.h"
#include "train/summary.h"

namespace scaletrace {

struct RunOutcome {
  Summary summary;
  double scale_median = 0;            // lower median of the scale in force over the steps; 0 for a run of no steps
  std::int64_t steps_at_ceiling = 0;  // steps with the scale in force equal to ScaleCeiling (or to that rounded to float); 0 where there is none
  std::string error;                  // why this config cannot run (an InputError of kind kConfig; the rest is then empty), or empty
};

// The largest scale that the policy allows: its max_scale, else a fixed ceiling; 0 where there is none or it is infinite.
double ScaleCeiling(const Policy& policy);

// Takes the steps of `run` that are left. each(records) is called with every stretch of steps, in order, and may do nothing. keep_going is asked every few
// hundredths of a second; false ends the call early, which returns false.
bool TakeAllSteps(Run& run, const std::function<bool()>& keep_going, const std::function<void(std::span<const StepRecord>)>& each, ScaleTally& tally);

// The outcome of a run that has taken all its steps.
RunOutcome OutcomeOf(const Summary& summary, const RunConfig& config, const ScaleTally& tally);

// The outcomes of the configs, in their order. Rows and columns of traces are not looked at. keep_going is asked from the calling thread every few hundredths
// of a second; once it says false, the call returns the outcomes of the first runs only, as many as are complete. Errors: a config that cannot run is an
// outcome with `error`; wrong data (InputError, kData) and a failing machine (IoError) are thrown. Runs that allow it share the lanes of many_runs.h; `together` is told how many did.
std::vector<RunOutcome> RunBlock(std::span<const RunConfig> configs, const KernelTable& kernels, const std::function<bool()>& keep_going,
                                 std::size_t* together = nullptr);

}  // namespace scaletrace

#endif  // SCALETRACE_TRAIN_RUN_BLOCK_H_
