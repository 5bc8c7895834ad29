// Number formats as rows of facts, and the scalar definition of rounding to one.
#ifndef SCALETRACE_NUMERICS_FORMAT_H_
#define SCALETRACE_NUMERICS_FORMAT_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace scaletrace {

// A binary format that f32 holds exactly: sign, exponent, mantissa.
struct Format {
  std::string_view name;
  int exponent_bits;
  int mantissa_bits;  // stored, without the leading one
  int bias;
  float max_finite;
  bool has_inf;
  bool has_nan;
  bool negative_zero;  // the fnuz formats have none: -0 becomes +0
  std::string_view doc;

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
};

std::span<const Format> Formats();
std::span<const std::string_view> FormatNames();
// nullptr where there is none of that name.
const Format* FindFormat(std::string_view name);

// `value` rounded once to `format`, ties to even, as an f32. NaN stays NaN. Overflow: rounded as if the exponent had no limit; beyond the largest finite
// number it becomes inf, NaN where the format has no inf, the largest finite number where it has neither. Works on bits: flushes nothing and does
// not depend on the rounding mode.
float Round(const Format& format, float value);

}  // namespace scaletrace

#endif  // SCALETRACE_NUMERICS_FORMAT_H_
