// Random123's Philox, bits to doubles, and two distributions. Leaves the functions to base/math.cc and what a stream is
// used for to data and train.
#include "base/random.h"

#include <Random123/philox.h>

#include <cmath>

#include "base/math.h"

namespace scaletrace {
namespace {

std::uint64_t Join(std::uint32_t low, std::uint32_t high) { return (static_cast<std::uint64_t>(high) << 32) | low; }

// The upper 64 bits of a 128-bit product, by halves.
std::uint64_t MultiplyHigh(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kLow = 0xffffffff;
  const std::uint64_t low = (a & kLow) * (b & kLow);
  const std::uint64_t middle = (a >> 32) * (b & kLow) + (low >> 32);
  const std::uint64_t other = (a & kLow) * (b >> 32) + (middle & kLow);
  return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}

// [0, 1) in steps of 2^-53.
double Fraction(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

std::array<std::uint32_t, 4> RandomBits(std::uint64_t seed, Stream stream, std::uint64_t index) {
  const r123::Philox4x32::ctr_type counter = {{static_cast<std::uint32_t>(index),
                                               static_cast<std::uint32_t>(index >> 32),
                                               static_cast<std::uint32_t>(stream), 0}};
  const r123::Philox4x32::key_type key = {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  const r123::Philox4x32::ctr_type bits = r123::Philox4x32()(counter, key);
  return {bits[0], bits[1], bits[2], bits[3]};
}

std::uint32_t RoundingBits(std::uint64_t seed, std::uint64_t step, std::uint32_t tensor, std::uint32_t index) {
  const r123::Philox4x32::ctr_type counter = {
      {index, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(Stream::kRounding) + 256 * tensor, static_cast<std::uint32_t>(step >> 32)}};
  const r123::Philox4x32::key_type key = {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  return r123::Philox4x32()(counter, key)[0];
}

double Uniform(std::uint64_t seed, Stream stream, std::uint64_t index) {
  const auto bits = RandomBits(seed, stream, index);
  return Fraction(Join(bits[0], bits[1]));
}

std::uint64_t UniformBelow(std::uint64_t seed, Stream stream, std::uint64_t index, std::uint64_t bound) {
  const auto bits = RandomBits(seed, stream, index);
  return MultiplyHigh(Join(bits[0], bits[1]), bound);
}

Polar RandomPolar(std::uint64_t seed, Stream stream, std::uint64_t index) {
  const auto bits = RandomBits(seed, stream, index);
  return {Fraction(Join(bits[0], bits[1])) + 0x1p-53, Fraction(Join(bits[2], bits[3]))};
}

double Normal(std::uint64_t seed, Stream stream, std::uint64_t index) {
  const Polar polar = RandomPolar(seed, stream, index);
  return std::sqrt(-2.0 * Log(polar.u)) * CosTurns(polar.turns);
}

double StudentT(std::uint64_t seed, Stream stream, std::uint64_t index, double dof) {
  const Polar polar = RandomPolar(seed, stream, index);
  return std::sqrt(dof * (Exp2(-2.0 * Log2(polar.u) / dof) - 1.0)) * CosTurns(polar.turns);
}

}  // namespace scaletrace
