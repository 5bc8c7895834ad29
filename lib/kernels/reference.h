// One step and one update in plain loops, in the natural layouts: the definition that every vector kernel equals bit for bit. Slow, and used by tests only.
#ifndef SCALETRACE_KERNELS_REFERENCE_H_
#define SCALETRACE_KERNELS_REFERENCE_H_

#include <cstddef>
#include <vector>

#include "kernels/kernels.h"

namespace scaletrace {

struct ReferenceInput {
  StepRounding rounding;
  std::uint64_t draw = 0;  // the step's number in stochastic rounding
  std::size_t rows = 0, features = 0, outputs = 0;  // B, D, K, all >= 1
  std::vector<float> w, b;                          // D x K and K: masters
  std::vector<float> x, y;                          // B x D and B x K, not rounded
  float loss_scale = 1, lr = 0;
  float share = 1;  // of a micro-batch in the step's loss
};

struct ReferenceOutput {
  float loss = 0;
  std::vector<float> errors, signals;  // e and g, B x K
  std::vector<float> sums_with_bias, activations, exact_signals;  // before and after the rounding to the activation, and before that to g; B x K
  std::vector<float> gw, gb;           // scaled gradients
  std::vector<float> uw, ub;           // after the division by S
  bool scaled_finite = true, unscaled_finite = true;
  std::vector<float> new_w, new_b;  // as if the step is applied
};

ReferenceOutput ReferenceStep(const ReferenceInput& input);

// What KernelTable::update does.
void ReferenceUpdate(const UpdateArgs& args);

}  // namespace scaletrace

#endif  // SCALETRACE_KERNELS_REFERENCE_H_
