// One step in the specification's JSON shape: the numbers in, the numbers out. Policy jax-step, optimizer sgd.
#ifndef SCALETRACE_TRAIN_SINGLE_STEP_H_
#define SCALETRACE_TRAIN_SINGLE_STEP_H_

#include <string>
#include <string_view>

#include "base/json.h"
#include "kernels/kernels.h"
#include "model/precision.h"

namespace scaletrace {

// `object` has params {w: D x K, b: K}, x: B x D, y: B x K, loss_scale, good_steps, lr, growth_interval, and no other keys; or it has such an object
// under the key input, and beside it no more than kind and output, which are not read. Returns, on one line,
// {loss, params, loss_scale, good_steps, grads_finite}, numbers that read back to the same f32. Non-finite numbers are "inf", "-inf", "nan" both ways.
// InputError (kData) with line and key where shapes do not fit, a key is missing or unknown, or loss_scale <= 0 or NaN, lr or loss_scale other than 0 but 0 as a float32, growth_interval outside
// 1 .. 2^31-1, good_steps outside 0 .. growth_interval-1.
std::string SingleStep(const Json& json, const JsonValue& object, const KernelTable& kernels, const PrecisionOptions& precision);

}  // namespace scaletrace

#endif  // SCALETRACE_TRAIN_SINGLE_STEP_H_
