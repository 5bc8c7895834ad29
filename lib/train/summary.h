// What a person wants to know of a run: counts, extremes, since when something is so, and a sentence about what happened.
#ifndef SCALETRACE_TRAIN_SUMMARY_H_
#define SCALETRACE_TRAIN_SUMMARY_H_

#include <cstdint>
#include <span>
#include <string>

#include "trace/record.h"

namespace scaletrace {

// A loss above this many times the first counts as diverged.
inline constexpr double kDivergedFactor = 1000;

// Built from the records of a run in order; the state of a run includes it. A step number of -1 means never, or not now.
struct Summary {
  std::int64_t steps = 0;    // attempts
  std::int64_t updates = 0;  // steps that changed the weights
  std::int64_t skipped = 0;
  float first_loss = 0;
  float last_loss = 0;
  double scale_first = 0, scale_min = 0, scale_max = 0;  // in force during some step
  double scale_last = 0;                                 // after the last step
  std::int64_t growths = 0;
  std::int64_t backoffs = 0;  // decreases: events backoff and floor
  std::int64_t forgiven = 0;
  std::int64_t first_skip = -1;      // the first skipped step
  std::int64_t inf_since = -1;       // the step from which on the scale in force is inf
  std::int64_t zero_since = -1;      // likewise 0
  std::int64_t skipping_since = -1;  // the first of the unbroken row of skipped steps at the end
  std::int64_t unchanged_since = -1; // the first of the unbroken row of skipped steps at the end that left the scale as it was
  std::int64_t diverged_since = -1;  // the first of the unbroken row of steps at the end whose loss is not finite or above kDivergedFactor times the first
  bool loss_nonfinite = false;       // whether the last loss is not finite
  std::int64_t raised_at = -1;       // the policy raised and the run ended there
  std::string stopped;               // why it ended before its last step: "stuck", "diverged", "raise", or empty

  // `scale_after` is in force for the next step.
  void Add(const StepRecord& record, double scale_after);
  // The same for steps from `first` on, each applied without an event at the scale of that record, which stays; losses: theirs.
  void AddQuiet(const StepRecord& first, std::span<const float> losses);

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"steps", "attempts, skipped ones included"}, self.steps);
    v.Value({"updates", "steps that changed the weights"}, self.updates);
    v.Value({"skipped", "steps that did not"}, self.skipped);
    v.Value({"first_loss", "loss of the first step"}, self.first_loss);
    v.Value({"last_loss", "loss of the last step"}, self.last_loss);
    v.Value({"scale_first", "scale in force in the first step"}, self.scale_first);
    v.Value({"scale_min", "smallest scale in force"}, self.scale_min);
    v.Value({"scale_max", "largest scale in force"}, self.scale_max);
    v.Value({"scale_last", "scale after the last step"}, self.scale_last);
    v.Value({"growths", "increases of the scale"}, self.growths);
    v.Value({"backoffs", "decreases of the scale"}, self.backoffs);
    v.Value({"forgiven", "overflows that the policy tolerated"}, self.forgiven);
    v.Value({"first_skip", "first skipped step, or -1"}, self.first_skip);
    v.Value({"inf_since", "step from which on the scale is inf, or -1"}, self.inf_since);
    v.Value({"zero_since", "step from which on the scale is 0, or -1"}, self.zero_since);
    v.Value({"skipping_since", "step from which on every step was skipped, or -1"}, self.skipping_since);
    v.Value({"unchanged_since", "step from which on every step was skipped and the scale stayed, or -1"}, self.unchanged_since);
    v.Value({"diverged_since", "step from which on the loss is not finite or far above the first, or -1"}, self.diverged_since);
    v.Value({"loss_nonfinite", "whether the last loss is inf or NaN"}, self.loss_nonfinite);
    v.Value({"raised_at", "step at which the policy raised, or -1"}, self.raised_at);
    v.Value({"stopped", "why it ended early: stuck, diverged, raise, or empty"}, self.stopped);
  }
};

// One or more sentences on what happened, for a person.
std::string Story(const Summary& summary);

}  // namespace scaletrace

#endif  // SCALETRACE_TRAIN_SUMMARY_H_
