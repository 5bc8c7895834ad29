// One step in plain loops, in the natural layouts: the definition that every vector kernel equals bit for bit. Slow, and used by tests only.
#ifndef SCALETRACE_KERNELS_REFERENCE_H_
#define SCALETRACE_KERNELS_REFERENCE_H_

#include <cstddef>
#include <vector>

#include "numerics/format.h"

namespace scaletrace {

struct ReferenceInput {
  const Format* format = nullptr;
  bool round_predictions = true;                    // profile strict
  std::size_t rows = 0, features = 0, outputs = 0;  // B, D, K, all >= 1
  std::vector<float> w, b;                          // D x K and K: masters
  std::vector<float> x, y;                          // B x D and B x K, not rounded
  float loss_scale = 1, lr = 0;
};

struct ReferenceOutput {
  float loss = 0;
  std::vector<float> errors, signals;  // e and g, B x K
  std::vector<float> gw, gb;           // scaled gradients
  std::vector<float> uw, ub;           // after the division by S
  bool scaled_finite = true, unscaled_finite = true;
  std::vector<float> new_w, new_b;  // as if the step is applied
};

ReferenceOutput ReferenceStep(const ReferenceInput& input);

}  // namespace scaletrace

#endif  // SCALETRACE_KERNELS_REFERENCE_H_
