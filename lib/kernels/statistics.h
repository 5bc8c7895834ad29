// Numbers about gradients and weights that traces and some policies ask for; plain loops in a fixed order, so that they are the same everywhere.
// They describe the step and feed nothing but policies that ask, and run in the normal floating-point mode unless said otherwise.
#ifndef SCALETRACE_KERNELS_STATISTICS_H_
#define SCALETRACE_KERNELS_STATISTICS_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace scaletrace {

// Square root of the sum of squares in double: entry i is added to lane i mod 16, and the lanes in order. NaN if an entry is NaN, else inf if one is. 0 if empty.
double Norm(const float* values, std::size_t n);

// Largest magnitude; NaN if an entry is NaN, else inf if one is. 0 if empty.
float MaxAbs(const float* values, std::size_t n);

// The f32 sum, in 16 lanes as above: what a check of a tensor by its sum looks at.
float SumF32(const float* values, std::size_t n);
// The f32 sum of squares, likewise.
float SumOfSquaresF32(const float* values, std::size_t n);

// Entries of magnitude above `threshold`; NaN is not above.
std::size_t CountAbove(const float* values, std::size_t n, double threshold);

// Entries that are 0 in `signals` and not in `errors`; both outputs x stride with `rows` used.
std::size_t CountUnderflow(const float* errors, const float* signals, std::size_t rows, std::size_t stride, std::size_t outputs);

// How many entries have which exponent floor(log2 |v|).
struct ExponentCounts {
  static constexpr int kLowest = -149, kHighest = 127;
  std::array<std::uint64_t, kHighest - kLowest + 1> by_exponent = {};
  std::uint64_t zero = 0, inf = 0, nan = 0;
};
// Adds n entries.
void CountExponents(const float* values, std::size_t n, ExponentCounts& counts);

}  // namespace scaletrace

#endif  // SCALETRACE_KERNELS_STATISTICS_H_
