// Steps of many runs at once: a vector lane is a run, with its own data, parameters, scale and learning rate. All of a step happens in registers and the first cache, and
// the caller is asked only where something other than the parameters may change. Bit-equal on every instruction set to reference.h, run by run.
//
// Layout: an array of n entries for each run is n x W floats, W = `lanes(shape)`: entry 0 of all runs, entry 1 of all runs, ... Lanes without a run hold zeros and a scale of 1.
#ifndef SCALETRACE_KERNELS_MANY_RUNS_H_
#define SCALETRACE_KERNELS_MANY_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "numerics/format.h"

namespace scaletrace {

struct ManyShape {
  std::size_t rows = 0, features = 0, outputs = 0;  // B, D, K, all >= 1
  bool operator==(const ManyShape&) const = default;
};

inline constexpr std::size_t kMaxRunLanes = 64;

// Pointers are aligned to 64 bytes. A NaN in y or parameters must have the bits 0x7FC00000 or 0xFFC00000; x holds numbers of the format.
struct ManyArgs {
  const Format* format = nullptr;
  bool round_predictions = true;  // profile strict
  ManyShape shape;
  const float* x = nullptr;           // B x D entries, row-major, rounded to the format
  const float* y = nullptr;           // B x K entries, row-major
  float* parameters = nullptr;        // in and out: K x D weights, output by output, then K biases
  const float* loss_scale = nullptr;  // 1 entry: S
  const float* lr = nullptr;          // 1 entry
  const float* loss_limit = nullptr;  // 1 entry, >= 0, not NaN
  std::int32_t* last_within = nullptr;  // in and out, 1 entry: the last time at which the loss was <= the limit
  float* scratch = nullptr;           // ManyScratch(shape) entries
  float* gradients = nullptr;         // out, as `parameters`: scaled, of the step that was computed last
  float* losses = nullptr;            // out, 1 entry: of the step that was computed last
};

// Entries of scratch.
std::size_t ManyScratch(const ManyShape& shape);

// Bit i belongs to lane i.
struct ManySteps {
  std::size_t applied = 0;       // whole steps of every lane
  std::uint64_t scaled_bad = 0;    // lanes with a scaled gradient that isn't finite in the step that was computed last
  std::uint64_t unscaled_bad = 0;  // likewise after the division by S
};

// The functions run in the flushing mode of FlushScope, which the caller sets.
struct ManyRunsTable {
  std::string_view target;
  // W for a shape: at most kMaxRunLanes.
  std::size_t (*lanes)(const ManyShape& shape);
  // Up to `steps` whole steps of all lanes, as long as every gradient of every lane is finite before and after the division; then one more step that is computed but not
  // applied. The steps have the times `time`, `time` + 1, ...
  ManySteps (*steps)(const ManyArgs& args, std::size_t steps, std::int32_t time);
  // The rest of the step that was computed last: p <- fma(-lr, g / divisor, p) in the lanes of `lanes`, 1 entry of divisors.
  void (*apply)(const ManyArgs& args, const float* divisors, std::uint64_t lanes);
};

// The tables of the instruction sets that were compiled in and that this processor has, best first; never empty.
std::span<const ManyRunsTable> CompiledManyRuns();
// The table of that name, or nullptr. An empty name: the best.
const ManyRunsTable* FindManyRuns(std::string_view target);

}  // namespace scaletrace

#endif  // SCALETRACE_KERNELS_MANY_RUNS_H_
