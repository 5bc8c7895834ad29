// The arithmetic of a step, vectorised: one table of functions for each instruction set that was compiled in. Bit-equal on all of them to reference.h,
// which defines what they compute. Order of the sums, rounding and flushing: docs/numerics.md.
//
// Layouts. Every matrix is stored so that vector lanes are different outputs of a dot, never parts of one: a matrix that is summed over its
// outer index has its inner index padded with zeros to a multiple of kPad.
#ifndef SCALETRACE_KERNELS_KERNELS_H_
#define SCALETRACE_KERNELS_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/step_rounding.h"

namespace scaletrace {

inline constexpr std::size_t kPad = 16;  // floats: the widest vector, and the lanes of the loss
constexpr std::size_t Padded(std::size_t n) { return (n + kPad - 1) / kPad * kPad; }

// Steps 1 to 8 of the arithmetic: forward, loss, scaled gradients. Pointers need the alignment of a float only.
struct GradientArgs {
  const StepRounding* rounding = nullptr;
  std::uint64_t draw = 0;  // the step's number in the random bits of stochastic rounding
  std::size_t rows = 0, features = 0, outputs = 0;  // B, D, K, all >= 1
  const float* x_by_feature = nullptr;  // x' as D x Padded(B), zeros beyond B
  const float* x_by_row = nullptr;      // x' as B x Padded(D), zeros beyond D
  const float* y = nullptr;             // K x Padded(B), anything beyond B
  const float* parameters = nullptr;    // K x D weights, output by output, then K biases: the masters
  float loss_scale = 1;                 // S
  float share = 1;                      // of a micro-batch in the loss of the step: 1 or 1/m

  float* rounded = nullptr;    // scratch, K*D + K: the parameters in the compute format
  float* errors = nullptr;     // out, K x Padded(B): e, zeros beyond B
  float* signals = nullptr;    // out, K x Padded(B): g, zeros beyond B
  float* sums = nullptr;       // scratch, SumScratch(B, K)
  float* gradients = nullptr;  // out, K*D + K in the order of `parameters`: scaled

  // Out, where not null: what was rounded to get the activations, the signals and the gradients, and the activations themselves; laid out as
  // `errors` and `gradients` are, with rubbish beyond B.
  float* sums_with_bias = nullptr;
  float* activations = nullptr;
  float* exact_signals = nullptr;
  float* exact_gradients = nullptr;
};

// Floats of scratch for the sum of g over the rows.
constexpr std::size_t SumScratch(std::size_t rows, std::size_t outputs) {
  return rows <= 32 ? 0 : 2 * outputs * ((rows + 31) / 32);
}

// What Divide saw.
struct Finite {
  bool before = true;  // every dividend is finite
  bool after = true;   // every quotient is finite
};

enum class UpdateRule : std::uint8_t { kSgd, kMomentum, kNesterov, kAdam };

// One update of n parameters p by gradients g; every operation in f32, fused where it says fma:
//   g' = g, or fma(weight_decay, p, g) where that is not 0
//   kSgd        d = g'
//   kMomentum   m <- fma(momentum, m, g'), d = m
//   kNesterov   m <- fma(momentum, m, g'), d = fma(momentum, m, g')
//   kAdam       m <- fma(beta1, m, one_minus_beta1 g'), v <- fma(beta2, v, (one_minus_beta2 g') g'), d = m / (sqrt(v / correction2) + epsilon)
//   p' = p, or fma(-shrink, p, p) where that is not 0
//   p <- R_master(fma(-lr, d, p'))
struct UpdateArgs {
  UpdateRule rule = UpdateRule::kSgd;
  std::size_t n = 0;
  const float* gradients = nullptr;  // unscaled
  float* parameters = nullptr;
  float* first = nullptr;   // m; n of them, but for kSgd
  float* second = nullptr;  // v; n of them, for kAdam
  float lr = 0;             // for kAdam that of the step over its first correction
  float weight_decay = 0, shrink = 0;
  float momentum = 0;
  float beta1 = 0, one_minus_beta1 = 1, beta2 = 0, one_minus_beta2 = 1, correction2 = 1, epsilon = 0;
  const StepRounding* rounding = nullptr;
  std::uint64_t draw = 0;
};

// What a rounding did to a tensor. Sums over calls of Observe.
struct TensorCounts {
  std::uint64_t entries = 0;
  std::uint64_t underflow = 0;  // not 0 before, 0 after
  std::uint64_t subnormal = 0;  // after: below the smallest normal number, and not 0
  std::uint64_t saturated = 0;  // above the largest finite number before, that number after
  std::uint64_t overflow = 0;   // finite before, not so after
  std::uint32_t max_bits = 0;                 // of the largest magnitude before; a NaN is larger than inf
  std::uint32_t min_bits = 0xFFFFFFFF;        // of the smallest one that is not 0; the value here where there is none
};

// Several steps in a row with one S, as long as nothing but the parameters changes. Every NaN in y and parameters has the bits 0x7FC00000 or 0xFFC00000. Errors and signals are
// left or not: only gradients, quotients and losses are promised.
struct StretchArgs {
  GradientArgs gradients;       // its `parameters` are those below
  float* parameters = nullptr;  // updated
  float* quotients = nullptr;   // out, K*D + K: the gradients of the last step divided by S
  float lr = 0;             // of UpdateRule::kSgd
  std::size_t steps = 0;    // at most so many; the draw of each is one more than that of the one before
  float* losses = nullptr;  // out, `steps`
};

struct Stretch {
  std::size_t applied = 0;  // steps whose gradients were finite before and after the division; each was applied
  Finite finite;            // of the last step: where it isn't all true, that step (number `applied`) was computed and not applied
  bool in_registers = false;  // the way that small shapes take
};

// The functions run in the flushing mode of FlushScope, which the caller sets.
struct KernelTable {
  std::string_view target;  // "AVX3", ...
  // Returns the loss.
  float (*gradients)(const GradientArgs& args);
  // quotients[i] = dividends[i] / divisor.
  Finite (*divide)(const float* dividends, float divisor, std::size_t n, float* quotients);
  void (*update)(const UpdateArgs& args);
  // values[i] *= factor.
  void (*multiply)(float factor, std::size_t n, float* values);
  // gradients, divide and update, again and again.
  Stretch (*stretch)(const StretchArgs& args);
  // out[i] = Round(rounding[role], in[i], bits of the entry first + i).
  void (*round)(const StepRounding& rounding, Role role, std::uint64_t draw, std::size_t first, const float* in, std::size_t n, float* out);
  // Adds what rounding `before` to `after` did to the counts.
  void (*observe)(const Rounding& rounding, const float* before, const float* after, std::size_t n, TensorCounts& counts);
};

// The tables of the instruction sets that were compiled in and that this processor has, best first; never empty.
std::span<const KernelTable> CompiledKernels();
// Names of all instruction sets that were compiled in, whether this processor has them or not.
std::span<const std::string_view> CompiledTargetNames();
// The table of that name, or nullptr. An empty name: the best.
const KernelTable* FindKernels(std::string_view target);

}  // namespace scaletrace

#endif  // SCALETRACE_KERNELS_KERNELS_H_
