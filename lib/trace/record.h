// One step as a trace shows it, whoever made it: a run, a replay, a CSV file.
#ifndef SCALETRACE_TRACE_RECORD_H_
#define SCALETRACE_TRACE_RECORD_H_

#include <cstdint>

#include "base/event.h"

namespace scaletrace {

struct StepRecord {
  std::int64_t step = 0;
  std::int64_t epoch = 0;         // whole epochs before this step
  float loss = 0;                 // unscaled
  double loss_scale = 0;          // in force during this step
  std::int64_t good_steps = 0;    // finite steps since the last overflow or change of the scale, before this step
  bool grads_finite = true;       // the verdict that the policy used
  Event event = Event::kNone;
  float lr = 0;
  double grad_norm = 0;           // Euclidean, over w and b after the division; NaN if an entry is NaN, else inf if one is
  float grad_max_abs = 0;         // likewise
  double underflow = 0;           // share of the entries of g that are 0 where the error e is not
  double weight_norm = 0;         // over w and b, before the update
  std::int64_t skipped_total = 0;   // skipped steps so far, this one included
  std::int64_t skipped_in_a_row = 0;
  char nonfinite_tensor = 0;      // 'w' or 'b': where the first non-finite gradient entry sits, in the order w, b; 0: nowhere
  std::int64_t nonfinite_index = 0;  // row-major in that tensor
};

}  // namespace scaletrace

#endif  // SCALETRACE_TRACE_RECORD_H_
