// One step as a trace shows it, whoever made it: a run, a replay, a CSV file.
#ifndef SCALETRACE_TRACE_RECORD_H_
#define SCALETRACE_TRACE_RECORD_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "base/event.h"

namespace scaletrace {

// What rounding did to one tensor in one step. Shares of its entries, from 0 to 1.
struct TensorStatistics {
  float underflow = 0;  // not 0 before the rounding, 0 after
  float subnormal = 0;  // after: not 0, below the format's smallest normal number
  float saturated = 0;  // beyond the largest finite number before, that number after
  float overflow = 0;   // finite before, inf or NaN after
  float max_abs = 0;    // before; NaN if an entry is NaN, else inf if one is
  float min_abs = 0;    // of the entries that are not 0, before; 0 where all are
};

// The tensors that are observed, in the order of the step. `weight` and `gradient` include the bias.
inline constexpr std::string_view kObservedTensors[] = {"input", "weight", "activation", "output_gradient", "gradient"};
inline constexpr std::size_t kObservedCount = 5;

// What every step has comes first and fills one cache line: one thread may write records and another read them.
struct alignas(64) StepRecord {
  std::int64_t step = 0;
  std::int64_t epoch = 0;         // whole epochs before this step
  double loss_scale = 0;          // in force during this step
  std::int64_t good_steps = 0;    // finite steps since the last overflow or change of the scale, before this step
  std::int64_t skipped_total = 0;   // skipped steps so far, this one included
  std::int64_t skipped_in_a_row = 0;
  float loss = 0;                 // unscaled
  float lr = 0;
  bool grads_finite = true;       // the verdict that the policy used
  Event event = Event::kNone;
  char nonfinite_tensor = 0;      // 'w' or 'b': where the first non-finite gradient entry sits, in the order w, b; 0: nowhere
  float grad_max_abs = 0;         // of the gradients after the division; NaN if an entry is NaN, else inf if one is

  std::int64_t nonfinite_index = 0;  // row-major in that tensor
  double grad_norm = 0;           // Euclidean, over w and b after the division; NaN and inf as above
  double underflow = 0;           // share of the entries of g that are 0 where the error e is not
  double weight_norm = 0;         // over w and b, before the update
  std::array<TensorStatistics, kObservedCount> tensors;
};

}  // namespace scaletrace

#endif  // SCALETRACE_TRACE_RECORD_H_
