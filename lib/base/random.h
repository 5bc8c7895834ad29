// Counter-based random numbers: every value is a pure function of (seed, stream, index), the same on every platform and compiler, in any order
// and on any number of threads. Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) from Random123.
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
};

// 128 random bits. Counter words: index low, index high, stream, 0; key: seed low, seed high.
std::array<std::uint32_t, 4> RandomBits(std::uint64_t seed, Stream stream, std::uint64_t index);

// Uniform in [0, 1), a multiple of 2^-53. Words 0 and 1 of RandomBits.
double Uniform(std::uint64_t seed, Stream stream, std::uint64_t index);

// Uniform over 0 .. bound-1 by rejection-free multiply-shift of 64 bits (bias below bound / 2^64). bound >= 1.
std::uint64_t UniformBelow(std::uint64_t seed, Stream stream, std::uint64_t index, std::uint64_t bound);

// Standard normal, by Box and Muller on the two 64-bit halves of RandomBits (one of the pair is used), with base/math.h's functions.
double Normal(std::uint64_t seed, Stream stream, std::uint64_t index);

}  // namespace scaletrace

#endif  // SCALETRACE_BASE_RANDOM_H_
