// Many short runs at once, on one thread: the runs of one shape and precision go into the lanes of kernels/many_runs.h, and a lane that is free takes the next run. Every run comes
// out as from run.h, to the bit; what a trace would hold besides is not computed.
#ifndef SCALETRACE_TRAIN_MANY_RUNS_H_
#define SCALETRACE_TRAIN_MANY_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/kernels.h"
#include "trace/record.h"
#include "train/run_config.h"
#include "train/summary.h"

namespace scaletrace {

// Whether the options allow it: full batches of targets that seldom move, plain gradient descent, a policy that looks at nothing but whether gradients are finite. The shape has to be
// small besides, which only the data can tell where they come from a file.
bool CanRunTogether(const RunConfig& config);

// What is told of the runs. Calls for different runs are interleaved; those for one are in its order.
class ManyRunsObserver {
 public:
  virtual ~ManyRunsObserver() = default;
  // `count` steps from record.step on: applied, with the record's scale and no event, where it is more than 1. Of the record are set: step, loss_scale, good_steps, grads_finite,
  // event, lr, skipped_total, skipped_in_a_row; the loss where count is 1.
  virtual void OnSteps(std::size_t run, const StepRecord& record, std::int64_t count) = 0;
  // The end of the run. w: D x K, row-major; b: K; both gone after the call.
  virtual void OnEnd(std::size_t run, const Summary& summary, std::span<const float> w, std::span<const float> b) = 0;
};

// Takes the runs of configs[i] for the i in `which`, and answers with those that it left alone: not CanRunTogether, too large, too few of their shape to be worth it, or with data or options that Run
// refuses as a config (InputError, kConfig). `kernels` names the instruction set. keep_going is asked every few hundredths of a second; once it says false, the call returns without the ends of the
// runs that are not complete. Errors of a run's data files are thrown; what was told of other runs by then stands.
std::vector<std::size_t> RunTogether(std::span<const RunConfig> configs, std::span<const std::size_t> which, const KernelTable& kernels, const std::function<bool()>& keep_going,
                                     ManyRunsObserver& observer);

}  // namespace scaletrace

#endif  // SCALETRACE_TRAIN_MANY_RUNS_H_
