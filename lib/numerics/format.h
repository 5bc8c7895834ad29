// Number formats as rows of facts, their codes, and the scalar definition of rounding to one. A vector version of the
// rounding: lib/kernels, which equals this bit for bit. What is printed of a format: format_text.h.
#ifndef SCALETRACE_NUMERICS_FORMAT_H_
#define SCALETRACE_NUMERICS_FORMAT_H_

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace scaletrace {

// What the codes at the top of a format mean besides numbers. The names are those of ml_dtypes and LLVM; none is what
// OCP MX does in its formats that those call fn.
//   ieee   all exponent bits set: inf with mantissa 0, NaN otherwise
//   fn     no inf; NaN with all bits of exponent and mantissa set, a number with any other mantissa
//   fnuz   no inf, no -0: its code is the only NaN; the bias is one more than in the others
//   none   every code is a number
enum class Specials : std::uint8_t { kIeee, kFn, kFnuz, kNone };
inline constexpr std::string_view kSpecialsNames[] = {"ieee", "fn", "fnuz", "none"};
constexpr std::span<const std::string_view> EnumNames(Specials) { return kSpecialsNames; }

// A binary format that f32 holds exactly. A code is, from its highest bit down, sign, exponent, mantissa. Exponent 0:
// mantissa * 2^(1 - bias - mantissa_bits); any other: (1 + mantissa * 2^-mantissa_bits) * 2^(exponent - bias).
struct Format {
  std::string_view name;
  int exponent_bits;
  int mantissa_bits;  // stored, without the leading one
  // 127 with eight exponent bits, and then the subnormals are among f32's; smaller otherwise, and then all are f32's
  // normal numbers.
  int bias;
  float max_finite;
  bool has_inf;
  bool has_nan;
  bool negative_zero;  // the fnuz formats have none: -0 becomes +0
  std::string_view doc;
  std::string_view source;  // where the facts are from

  constexpr int bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr Specials specials() const {
    return has_inf ? Specials::kIeee : !has_nan ? Specials::kNone : negative_zero ? Specials::kFn : Specials::kFnuz;
  }
  constexpr float smallest_normal() const { return std::bit_cast<float>(static_cast<std::uint32_t>(128 - bias) << 23); }
  // The distance between neighbours below the smallest normal. Without mantissa bits there are no subnormals, and this
  // is the smallest normal.
  constexpr float smallest_subnormal() const {
    return std::bit_cast<float>(bias == 127 ? 1u << (23 - mantissa_bits)
                                            : static_cast<std::uint32_t>(128 - bias - mantissa_bits) << 23);
  }

  constexpr std::uint32_t sign_bit() const { return 1u << (bits() - 1); }
  // Only where has_inf.
  constexpr std::uint32_t inf_code() const { return sign_bit() - (1u << mantissa_bits); }
  // The one that Encode gives, of several in the ieee formats: the quiet one without a payload. Only where has_nan.
  constexpr std::uint32_t nan_code() const {
    return has_inf ? inf_code() | 1u << (mantissa_bits - 1) : negative_zero ? sign_bit() - 1 : sign_bit();
  }
};

std::span<const Format> Formats();
// The row of f32 itself: rounding to it changes nothing.
const Format& Float32();
std::span<const std::string_view> FormatNames();
// nullptr where there is none of that name.
const Format* FindFormat(std::string_view name);

// A format that is no row, named "custom": its bias is 2^(exponent_bits - 1) - 1 (fnuz: one more), and its largest
// number follows from the specials. exponent_bits 2..8, mantissa_bits 0..23; ieee and fnuz need a mantissa bit (a NaN
// apart from inf; an even code on one side of every tie), and with 8 exponent bits float32 holds the numbers of ieee
// alone. InputError (kConfig) with one of the two or "specials" as its key otherwise.
struct FormatProblem {
  std::string key;
  std::string message;  // what was found, what is allowed
};
// What is wrong with such a format, if anything.
std::optional<FormatProblem> FindFormatProblem(std::int64_t exponent_bits, std::int64_t mantissa_bits, Specials specials);
Format CustomFormat(int exponent_bits, int mantissa_bits, Specials specials);

// How numbers become those of a format.
enum class RoundingMode : std::uint8_t { kNearestEven, kTowardZero, kStochastic };
inline constexpr std::string_view kRoundingModeNames[] = {"nearest-even", "toward-zero", "stochastic"};
constexpr std::span<const std::string_view> EnumNames(RoundingMode) { return kRoundingModeNames; }

struct Rounding {
  Format format;
  RoundingMode mode = RoundingMode::kNearestEven;
  bool saturate = false;          // what is beyond the largest finite number, inf included, becomes that number
  bool flush_subnormals = false;  // results below the smallest normal number become zero of their sign

  // Whether this is Round(format, value).
  constexpr bool is_plain() const { return mode == RoundingMode::kNearestEven && !saturate && !flush_subnormals; }
  // Whether no value changes but for the payload of a NaN.
  constexpr bool is_nothing() const { return is_plain() && format.mantissa_bits == 23 && format.bias == 127; }
};

// Whether two formats have the same numbers, whatever they are called.
constexpr bool SameNumbers(const Format& a, const Format& b) {
  return a.exponent_bits == b.exponent_bits && a.mantissa_bits == b.mantissa_bits && a.bias == b.bias && a.max_finite == b.max_finite &&
         a.specials() == b.specials();
}

// `value` rounded once to the format, ties to even, as an f32. NaN stays NaN. Overflow: rounded as if the exponent had
// no limit; beyond the largest finite number it becomes inf, NaN where the format has no inf, the largest finite number
// where it has neither. Works on bits: flushes nothing and does not depend on the rounding mode of the processor.
float Round(const Format& format, float value);

// The same in any mode. With mode kNearestEven, without saturate and flush_subnormals it is Round(format, value).
// `random` is used in mode kStochastic alone.
//
// Let the last place of |value| be the distance of the format's numbers around it (below the smallest normal: the
// smallest subnormal; beyond the largest number: as if the exponent had no limit), `low` the multiple of it towards
// zero, and f in [0, 1) the part of a last place by which |value| is larger.
//   kNearestEven  f > 1/2, or f = 1/2 and low is odd: one up, else low
//   kTowardZero   low
//   kStochastic   floor(f 2^31) + floor(random / 2) >= 2^31: one up, else low. So with `random` uniform over its 32
//   bits the probability of going up is f, exact where
//                 f is a multiple of 2^-31 (always in the normal range), too small by less than 2^-31 elsewhere: the
//                 expected value is |value| to 2^-31 of a last place. The lowest bit of `random` is not used. As
//                 integers: with the significand of |value| and the number s of its places below the last one, s <= 31
//                 (beyond that both shifted right by s - 31), count = (significand + (random >> 1 >> (31 - s))) >> s;
//                 no sum passes 32 bits.
// Then what is above the largest finite number: kTowardZero keeps that number (IEEE 754-2019, 7.4), inf itself stays
// one; otherwise inf, NaN where there is no inf, the largest number where there is neither. With `saturate` the largest
// number in all these cases, for inf too (OCP OFP8 1.0, conversion with saturation; PTX cvt.satfinite); NaN stays NaN.
// (ONNX's Cast differs for inf in the fnuz formats, which OCP doesn't define: NaN.) Last, flush_subnormals. The sign is
// that of `value` but for the zeros of fnuz formats.
float Round(const Rounding& rounding, float value, std::uint32_t random);

// The f32 of a code, of which the low bits() bits are read. A NaN is quiet, with the code's sign and no payload.
constexpr float Decode(const Format& format, std::uint32_t code) {
  const std::uint32_t sign = (code & format.sign_bit()) != 0 ? 0x80000000u : 0;
  const std::uint32_t magnitude = code & (format.sign_bit() - 1);
  if (format.has_inf
          ? magnitude > format.inf_code()
          : format.has_nan && (format.negative_zero ? magnitude == format.nan_code() : sign != 0 && magnitude == 0)) {
    return std::bit_cast<float>(sign | 0x7FC00000u);
  }
  if (format.has_inf && magnitude == format.inf_code()) return std::bit_cast<float>(sign | 0x7F800000u);
  // With f32's own bias the fields are f32's fields, subnormals included.
  std::uint32_t bits = magnitude << (23 - format.mantissa_bits);
  if (format.bias != 127) {
    bits = magnitude >> format.mantissa_bits == 0
               ? std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * format.smallest_subnormal())
               : bits + (static_cast<std::uint32_t>(127 - format.bias) << 23);
  }
  return std::bit_cast<float>(sign | bits);
}

// The code of a number of the format; nullopt where `value` is none: it has no such number, no inf, no NaN, no -0.
// Every NaN gets nan_code() with its sign (fnuz: the only one).
constexpr std::optional<std::uint32_t> Encode(const Format& format, float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 31 != 0 ? format.sign_bit() : 0;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) {
    if (!format.has_nan) return std::nullopt;
    return sign | format.nan_code();
  }
  if (magnitude == 0x7F800000u) {
    if (!format.has_inf) return std::nullopt;
    return sign | format.inf_code();
  }
  std::uint32_t code = 0;
  const int exponent = static_cast<int>(magnitude >> 23);
  const int smallest_normal = 128 - format.bias;
  if (format.bias == 127) {
    code = magnitude >> (23 - format.mantissa_bits);
  } else if (exponent >= smallest_normal) {
    code = (magnitude - (static_cast<std::uint32_t>(127 - format.bias) << 23)) >> (23 - format.mantissa_bits);
  } else if (const int shift = 23 - format.mantissa_bits + smallest_normal - exponent; exponent > 0 && shift <= 23) {
    code = ((magnitude & 0x7FFFFFu) | 0x800000u) >> shift;
  }
  // What was cut off, or does not fit, shows when the code is read back.
  if (code >= format.sign_bit() || std::bit_cast<std::uint32_t>(Decode(format, sign | code)) != bits)
    return std::nullopt;
  return sign | code;
}

}  // namespace scaletrace

#endif  // SCALETRACE_NUMERICS_FORMAT_H_
