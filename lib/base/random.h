// Counter-based random numbers: every value is a pure function of (seed, stream, index), the same on every platform and
// compiler, in any order and on any number of threads. Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", SC 2011) from Random123.
#ifndef SCALETRACE_BASE_RANDOM_H_
#define SCALETRACE_BASE_RANDOM_H_

#include <array>
#include <cstdint>

namespace scaletrace {

// What a stream of numbers is for. A number here is part of every result: never change or reuse one.
enum class Stream : std::uint32_t {
  kFeatures = 1,
  kTeacher = 2,
  kNoise = 3,
  kOutliers = 4,
  kRotation = 5,
  kDrift = 6,
  kBatchOrder = 7,
  kInitialWeights = 8,
  kRounding = 9,
  kSweep = 16,
};

// 128 random bits. Counter words: index low, index high, stream, 0; key: seed low, seed high.
std::array<std::uint32_t, 4> RandomBits(std::uint64_t seed, Stream stream, std::uint64_t index);

// The 32 bits that stochastic rounding uses for one entry of one tensor in one step: word 0 of Philox with the counter words index, step low,
// kRounding + 256 tensor, step high; key: seed low, seed high. No other stream has such a counter. tensor: 1 .. 2^24 - 1; what the numbers
// mean: kernels/step_rounding.h.
std::uint32_t RoundingBits(std::uint64_t seed, std::uint64_t step, std::uint32_t tensor, std::uint32_t index);

// Uniform in [0, 1), a multiple of 2^-53. Words 0 and 1 of RandomBits.
double Uniform(std::uint64_t seed, Stream stream, std::uint64_t index);

// Uniform over 0 .. bound-1 by rejection-free multiply-shift of 64 bits (bias below bound / 2^64). bound >= 1.
std::uint64_t UniformBelow(std::uint64_t seed, Stream stream, std::uint64_t index, std::uint64_t bound);

// What a point of the plane with a radial law is made of: u uniform in (0, 1], a multiple of 2^-53, from words 0 and 1
// of RandomBits; turns uniform in [0, 1), a multiple of 2^-53, from words 2 and 3.
struct Polar {
  double u;
  double turns;
};
Polar RandomPolar(std::uint64_t seed, Stream stream, std::uint64_t index);

// Standard normal, by Box and Muller from RandomPolar: sqrt(-2 ln u) cos(2 pi turns), with base/math.h's functions.
// |result| < 8.6.
double Normal(std::uint64_t seed, Stream stream, std::uint64_t index);

// Student's t with `dof` > 0 degrees of freedom, not only whole ones: sqrt(dof (u^(-2/dof) - 1)) cos(2 pi turns), which
// is exact (Bailey, "Polar generation of random variates with the t-distribution", Math. Comp. 62, 1994). |result| <=
// sqrt(dof) 2^(53/dof).
double StudentT(std::uint64_t seed, Stream stream, std::uint64_t index, double dof);

}  // namespace scaletrace

#endif  // SCALETRACE_BASE_RANDOM_H_
