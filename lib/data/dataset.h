// The data of a run: features and targets, and how the targets move. Made once from options and a seed by the rows of
// generators.h.
#ifndef SCALETRACE_DATA_DATASET_H_
#define SCALETRACE_DATA_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace scaletrace {

struct Dataset {
  std::size_t samples = 0;   // N
  std::size_t features = 0;  // D
  std::size_t outputs = 0;   // K
  std::vector<float> x;      // N x D, row-major
  std::vector<float> y;      // N x K, row-major: the targets where nothing moves

  // Parameters to start from, where the data brings them (`given`).
  struct Parameters {
    std::vector<float> w;  // D x K, row-major
    std::vector<float> b;  // K
  };
  std::optional<Parameters> initial;

  // The targets at step t, all in f32, every operation rounded by itself:
  //   nothing moves (period = 0):  y
  //   the teacher moves:           (c y + s y_turned) + noise,  c = cos(2 pi t / period) and s = sin(2 pi t / period),
  //   each rounded to f32 once
  // and, where t is a spike, that times spike_factor. An overflow is inf: a result, not an error.
  double period = 0;                      // steps of a full turn; 0: nothing moves
  std::vector<float> y_turned;            // N x K where period > 0, else empty
  std::vector<float> noise;               // N x K where period > 0, else empty (then it is a part of y)
  std::vector<std::int64_t> spike_steps;  // sorted, or empty
  std::int64_t spike_every = 0;           // spikes at its multiples (not at step 0) besides; 0: none
  float spike_factor = 1;

  bool IsSpike(std::int64_t step) const;
  // Whether the targets are y at this step; at every step.
  bool TargetsAreY(std::int64_t step) const { return period <= 0 && !IsSpike(step); }
  bool TargetsAreAlwaysY() const { return period <= 0 && spike_steps.empty() && spike_every == 0; }
  // False only where the targets at `step` equal those at `step` - 1. True for step 0.
  bool TargetsChange(std::int64_t step) const;
  // How many steps from `step` on, `step` included and at most `most` (>= 1), are certain to have the same targets.
  std::int64_t StepsWithSameTargets(std::int64_t step, std::int64_t most) const;
  // The targets of the rows `rows` (all of them in order where it is empty) at `step`, row-major into `out`, which has
  // room for exactly those.
  void TargetsAt(std::int64_t step, std::span<const std::uint32_t> rows, std::span<float> out) const;
};

}  // namespace scaletrace

#endif  // SCALETRACE_DATA_DATASET_H_
