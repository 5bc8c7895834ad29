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

#include "numerics/format.h"

namespace scaletrace {

inline constexpr std::size_t kPad = 16;  // floats: the widest vector, and the lanes of the loss
constexpr std::size_t Padded(std::size_t n) { return (n + kPad - 1) / kPad * kPad; }

// Steps 1 to 8 of the arithmetic: forward, loss, scaled gradients. Pointers need the alignment of a float only.
struct GradientArgs {
  const Format* format = nullptr;  // of the compute pass
  bool round_predictions = true;   // profile strict
  std::size_t rows = 0, features = 0, outputs = 0;  // B, D, K, all >= 1
  const float* x_by_feature = nullptr;  // x' as D x Padded(B), zeros beyond B
  const float* x_by_row = nullptr;      // x' as B x Padded(D), zeros beyond D
  const float* y = nullptr;             // K x Padded(B), anything beyond B
  const float* parameters = nullptr;    // K x D weights, output by output, then K biases: the masters
  float loss_scale = 1;                 // S

  float* rounded = nullptr;    // scratch, K*D + K: the parameters in the compute format
  float* errors = nullptr;     // out, K x Padded(B): e, zeros beyond B
  float* signals = nullptr;    // out, K x Padded(B): g, zeros beyond B
  float* sums = nullptr;       // scratch, SumScratch(B, K)
  float* gradients = nullptr;  // out, K*D + K in the order of `parameters`: scaled
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

// Several steps in a row with one S, as long as nothing but the parameters changes.
struct StretchArgs {
  GradientArgs gradients;       // its `parameters` are those below
  float* parameters = nullptr;  // updated
  float* quotients = nullptr;   // out, K*D + K: the gradients of the last step divided by S
  float lr = 0;
  std::size_t steps = 0;    // at most so many
  float* losses = nullptr;  // out, `steps`
};

struct Stretch {
  std::size_t applied = 0;  // steps whose gradients were finite before and after the division; each was applied
  Finite finite;            // of the last step: where it isn't all true, that step (number `applied`) was computed and not applied
};

// The functions run in the flushing mode of FlushScope, which the caller sets.
struct KernelTable {
  std::string_view target;  // "AVX3", ...
  // Returns the loss.
  float (*gradients)(const GradientArgs& args);
  // quotients[i] = dividends[i] / divisor.
  Finite (*divide)(const float* dividends, float divisor, std::size_t n, float* quotients);
  // parameters[i] = fma(-lr, gradients[i], parameters[i]).
  void (*update)(const float* gradients, float lr, std::size_t n, float* parameters);
  // gradients, divide and update, again and again.
  Stretch (*stretch)(const StretchArgs& args);
  // out[i] = Round(format, in[i]).
  void (*round)(const Format& format, const float* in, std::size_t n, float* out);
};

// The tables of the instruction sets that were compiled in and that this processor has, best first; never empty.
std::span<const KernelTable> CompiledKernels();
// Names of all instruction sets that were compiled in, whether this processor has them or not.
std::span<const std::string_view> CompiledTargetNames();
// The table of that name, or nullptr. An empty name: the best.
const KernelTable* FindKernels(std::string_view target);

}  // namespace scaletrace

#endif  // SCALETRACE_KERNELS_KERNELS_H_
