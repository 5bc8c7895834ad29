// What the tests of formats share: the numbers of a format from its facts alone, in double precision, without the code
// under test.
#ifndef SCALETRACE_TESTS_NUMERICS_SUPPORT_H_
#define SCALETRACE_TESTS_NUMERICS_SUPPORT_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numerics/format.h"

namespace scaletrace {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

inline std::uint32_t BitsOf(float v) { return std::bit_cast<std::uint32_t>(v); }

inline bool Same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || BitsOf(a) == BitsOf(b); }

// The number that a code without sign stands for if it is one; codes may go on beyond the format's last.
inline double NumberOf(const Format& f, std::uint32_t code) {
  const int exponent = static_cast<int>(code >> f.mantissa_bits);
  const double fraction = std::ldexp(code & ((1u << f.mantissa_bits) - 1), -f.mantissa_bits);
  return exponent == 0 ? std::ldexp(fraction, 1 - f.bias) : std::ldexp(1 + fraction, exponent - f.bias);
}

// All finite numbers >= 0 of the format, ascending, and one more step up, where an unlimited exponent would have gone
// on.
inline std::vector<double> NumbersAndOneMore(const Format& f) {
  std::vector<double> numbers;
  do numbers.push_back(NumberOf(f, static_cast<std::uint32_t>(numbers.size())));
  while (!(numbers.back() > f.max_finite));
  return numbers;
}

inline float Beyond(const Format& f) { return f.has_inf ? kInfinity : f.has_nan ? kNotANumber : f.max_finite; }

}  // namespace scaletrace

#endif  // SCALETRACE_TESTS_NUMERICS_SUPPORT_H_
