#include "kernels/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace scaletrace {
namespace {

// Sum of term(value) over the entries: lane i mod 16, then the lanes in order.
template <class T, class Term>
T LaneSum(const float* values, std::size_t n, const Term& term) {
  constexpr std::size_t kLanes = 16;
  T lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(values[i + lane]);
  }
  for (std::size_t lane = 0; i < n; ++i, ++lane) lanes[lane] += term(values[i]);
  T sum = lanes[0];
  for (std::size_t lane = 1; lane < kLanes; ++lane) sum += lanes[lane];
  return sum;
}

std::uint32_t MagnitudeBits(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFu; }

}  // namespace

double Norm(const float* values, std::size_t n) {
  return std::sqrt(LaneSum<double>(values, n, [](float v) { return static_cast<double>(v) * static_cast<double>(v); }));
}

float MaxAbs(const float* values, std::size_t n) {
  // As bits, NaN is above infinity, and infinity above the rest.
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < n; ++i) most = std::max(most, MagnitudeBits(values[i]));
  return std::bit_cast<float>(most);
}

float SumF32(const float* values, std::size_t n) {
  return LaneSum<float>(values, n, [](float v) { return v; });
}

float SumOfSquaresF32(const float* values, std::size_t n) {
  return LaneSum<float>(values, n, [](float v) { return v * v; });
}

std::size_t CountAbove(const float* values, std::size_t n, double threshold) {
  return static_cast<std::size_t>(
      std::count_if(values, values + n, [&](float v) { return std::fabs(static_cast<double>(v)) > threshold; }));
}

std::size_t CountUnderflow(const float* errors, const float* signals, std::size_t rows, std::size_t stride, std::size_t outputs) {
  std::size_t count = 0;
  for (std::size_t k = 0; k < outputs; ++k) {
    for (std::size_t i = k * stride; i < k * stride + rows; ++i) {
      count += MagnitudeBits(signals[i]) == 0 && MagnitudeBits(errors[i]) != 0 ? 1u : 0u;
    }
  }
  return count;
}

void CountExponents(const float* values, std::size_t n, ExponentCounts& counts) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(values[i]) & 0x7FFFFFFFu;
    if (magnitude == 0) {
      ++counts.zero;
    } else if (magnitude >= 0x7F800000u) {
      ++(magnitude == 0x7F800000u ? counts.inf : counts.nan);
    } else {
      // A subnormal is a whole number of 2^-149.
      const int exponent = magnitude >= 0x800000u ? static_cast<int>(magnitude >> 23) - 127 : std::bit_width(magnitude) - 1 + ExponentCounts::kLowest;
      ++counts.by_exponent[static_cast<std::size_t>(exponent - ExponentCounts::kLowest)];
    }
  }
}

}  // namespace scaletrace
