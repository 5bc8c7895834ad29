// The data of a run: features and targets, and how the targets move. Made once from options and a seed by the rows of generators.h.
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

  // Targets at step t are  (cos(t) y + sin(t) y_turned + noise)  with the angle 2 pi t / period where `period` > 0 (the teacher moves on a circle),
  // each of the steps in `spike_steps` (sorted) times `spike_factor`. All in f32; generators.h has the formula.
  double period = 0;                      // steps; 0: nothing moves
  std::vector<float> y_turned;            // N x K, or empty
  std::vector<float> noise;               // N x K, or empty
  std::vector<std::int64_t> spike_steps;  // sorted, or empty
  float spike_factor = 1;

  // Whether the targets at `step` differ from those at `step` - 1 (true for step 0).
  bool TargetsChange(std::int64_t step) const;
  // The targets of the rows `rows` (all of them in order where it is empty) at `step`, row-major into `out`. `out` has room for exactly those.
  void TargetsAt(std::int64_t step, std::span<const std::uint32_t> rows, std::span<float> out) const;
};

}  // namespace scaletrace

#endif  // SCALETRACE_DATA_DATASET_H_
