#include "numerics/format.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/error.h"

namespace scaletrace {
namespace {

constexpr std::string_view kIeee = "IEEE 754-2019, binary interchange formats";
constexpr std::string_view kOfp8 = "OCP 8-bit Floating Point Specification (OFP8) 1.0, 2023";
constexpr std::string_view kMx = "OCP Microscaling Formats (MX) Specification 1.0, 2023";
constexpr std::string_view kMlDtypes = "ml_dtypes documentation, specifications of implemented floating point formats";
constexpr std::string_view kFnuz =
    "ml_dtypes documentation; Noune et al., 8-bit Numerical Formats for Deep Neural Networks, arXiv:2206.02915";

// Each largest number is the source's, not computed: the tests derive all of a row from its bits and specials and find
// the same.
constexpr Format kFormats[] = {
    {"float32", 8, 23, 127, 3.40282346638528859812e38f, true, true, true, "no rounding at all", kIeee},
    {"tfloat32", 8, 10, 127, 3.40116213421040156672e38f, true, true, true,
     "what NVIDIA's tensor cores read of a float32: its upper 19 bits",
     "NVIDIA A100 Tensor Core GPU Architecture, 2020; PTX ISA, alternate floating-point formats"},
    {"bfloat16", 8, 7, 127, 3.38953138925153547590e38f, true, true, true, "the upper half of a float32", kMlDtypes},
    {"float16", 5, 10, 15, 65504.0f, true, true, true, "IEEE half precision", kIeee},
    {"float8_e5m2", 5, 2, 15, 57344.0f, true, true, true, "OCP fp8 for gradients: the upper half of a float16", kOfp8},
    {"float8_e4m3fn", 4, 3, 7, 448.0f, false, true, true,
     "OCP fp8 for weights and activations: no inf, one NaN code a sign", kOfp8},
    {"float8_e4m3", 4, 3, 7, 240.0f, true, true, true, "fp8 with IEEE's inf and NaN", kMlDtypes},
    {"float8_e3m4", 3, 4, 3, 15.5f, true, true, true, "fp8 with IEEE's inf and NaN, for precision rather than range",
     kMlDtypes},
    {"float8_e5m2fnuz", 5, 2, 16, 57344.0f, false, true, false,
     "fp8 of Graphcore and AMD (gfx94x): no inf, no -0, one NaN", kFnuz},
    {"float8_e4m3fnuz", 4, 3, 8, 240.0f, false, true, false,
     "fp8 of Graphcore and AMD (gfx94x): no inf, no -0, one NaN", kFnuz},
    {"float6_e3m2fn", 3, 2, 3, 28.0f, false, false, true, "element of OCP MXFP6: every code a number", kMx},
    {"float6_e2m3fn", 2, 3, 1, 7.5f, false, false, true, "element of OCP MXFP6: every code a number", kMx},
    {"float4_e2m1fn", 2, 1, 1, 6.0f, false, false, true, "element of OCP MXFP4: every code a number", kMx},
};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kFormats)> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kFormats[i].name;
  return names;
}();

constexpr std::uint32_t kSign = 0x80000000u;
constexpr std::uint32_t kInf = 0x7F800000u;
constexpr std::uint32_t kQuietNan = 0x7FC00000u;

// What is added to a significand of which `places` (0..31) are dropped, so that cutting them off rounds: a carry into
// the kept bits just when rounding up is due.
template <RoundingMode kMode>
std::uint32_t Increment(std::uint32_t significand, int places, std::uint32_t random) {
  if constexpr (kMode == RoundingMode::kTowardZero) {
    return 0;
  } else if constexpr (kMode == RoundingMode::kStochastic) {
    return random >> 1 >> (31 - places);
  } else {
    // Half of the last place less one, or half where the last kept bit is odd.
    return places == 0 ? 0 : (1u << (places - 1)) - 1 + (significand >> places & 1);
  }
}

template <RoundingMode kMode>
float RoundIn(const Format& format, bool saturate, bool flush, float value, std::uint32_t random) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & kSign;
  const std::uint32_t magnitude = bits & ~kSign;
  if (magnitude > kInf) return std::bit_cast<float>(sign | kQuietNan);

  std::uint32_t rounded = magnitude;
  if (magnitude != kInf) {
    const int exponent = static_cast<int>(magnitude >> 23);  // biased as in f32
    const int smallest_normal = 128 - format.bias;           // the same bias
    const int dropped = 23 - format.mantissa_bits;
    if (exponent >= smallest_normal || format.bias == 127) {
      // The last place is a constant count of f32's own, in subnormals of f32's bias too. A carry out of the mantissa
      // raises the exponent, which is right.
      rounded = (magnitude + Increment<kMode>(magnitude, dropped, random)) >> dropped << dropped;
    } else {
      // Below the smallest normal: the significand in units of the format's last place, rounded as an integer. More
      // than 31 places are below every half, and below what stochastic rounding resolves.
      std::uint32_t significand = exponent == 0 ? magnitude : (magnitude & 0x7FFFFFu) | 0x800000u;
      int places = dropped + smallest_normal - std::max(exponent, 1);
      if (places > 31) {
        significand = places - 31 < 24 ? significand >> (places - 31) : 0;
        places = 31;
      }
      const std::uint32_t count = (significand + Increment<kMode>(significand, places, random)) >> places;
      // Exact in f32, since a format with a smaller bias has its subnormals among f32's normals.
      rounded = std::bit_cast<std::uint32_t>(static_cast<float>(count) * format.smallest_subnormal());
    }
  }
  const std::uint32_t largest = std::bit_cast<std::uint32_t>(format.max_finite);
  if (rounded > largest) {
    const bool keep = saturate || (kMode == RoundingMode::kTowardZero && magnitude != kInf);
    rounded = keep ? largest : format.has_inf ? kInf : format.has_nan ? kQuietNan : largest;
  }
  if (flush && rounded < std::bit_cast<std::uint32_t>(format.smallest_normal())) rounded = 0;
  if (rounded == 0 && !format.negative_zero) return 0.0f;
  return std::bit_cast<float>(sign | rounded);
}

}  // namespace

std::span<const Format> Formats() { return kFormats; }
std::span<const std::string_view> FormatNames() { return kNames; }

const Format& Float32() { return kFormats[0]; }

const Format* FindFormat(std::string_view name) {
  for (const Format& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

std::optional<FormatProblem> FindFormatProblem(std::int64_t exponent_bits, std::int64_t mantissa_bits, Specials specials) {
  const std::string with = " with specials " + std::string(kSpecialsNames[static_cast<std::size_t>(specials)]);
  if (exponent_bits < 2 || exponent_bits > 8) {
    return FormatProblem{"exponent_bits", "found " + std::to_string(exponent_bits) + "; allowed: an integer from 2 to 8"};
  }
  const bool ieee = specials == Specials::kIeee, fnuz = specials == Specials::kFnuz;
  const int least = ieee || fnuz ? 1 : 0;
  if (mantissa_bits < least || mantissa_bits > 23) {
    return FormatProblem{"mantissa_bits", "found " + std::to_string(mantissa_bits) + "; allowed: an integer from " + std::to_string(least) +
                                              " to 23" + (least > 0 ? with : "")};
  }
  if (exponent_bits == 8 && !ieee) {
    return FormatProblem{"exponent_bits", "found 8; allowed: at most 7" + with + ", since float32 doesn't hold all numbers of eight"};
  }
  return std::nullopt;
}

Format CustomFormat(int exponent_bits, int mantissa_bits, Specials specials) {
  if (const auto problem = FindFormatProblem(exponent_bits, mantissa_bits, specials)) {
    throw InputError(InputError::Kind::kConfig, {.key = problem->key}, problem->message);
  }
  const bool ieee = specials == Specials::kIeee, fnuz = specials == Specials::kFnuz;
  const int bias = (1 << (exponent_bits - 1)) - (fnuz ? 0 : 1);
  // The largest code of a number, without its sign: below inf, below the NaN, or the last of all.
  const std::uint32_t end = 1u << (exponent_bits + mantissa_bits);
  const std::uint32_t largest = ieee ? end - (1u << mantissa_bits) - 1 : specials == Specials::kFn ? end - 2 : end - 1;
  const std::uint32_t bits = (largest << (23 - mantissa_bits)) + (static_cast<std::uint32_t>(127 - bias) << 23);
  return {"custom",
          exponent_bits,
          mantissa_bits,
          bias,
          std::bit_cast<float>(bits),
          ieee,
          specials != Specials::kNone,
          !fnuz,
          "given by its bits",
          ""};
}

float Round(const Format& format, float value) {
  return RoundIn<RoundingMode::kNearestEven>(format, false, false, value, 0);
}

float Round(const Rounding& rounding, float value, std::uint32_t random) {
  const auto round = [&]<RoundingMode kMode>() {
    return RoundIn<kMode>(rounding.format, rounding.saturate, rounding.flush_subnormals, value, random);
  };
  switch (rounding.mode) {
    case RoundingMode::kTowardZero:
      return round.template operator()<RoundingMode::kTowardZero>();
    case RoundingMode::kStochastic:
      return round.template operator()<RoundingMode::kStochastic>();
    case RoundingMode::kNearestEven:
      break;
  }
  SCALETRACE_CHECK(rounding.mode == RoundingMode::kNearestEven);
  return round.template operator()<RoundingMode::kNearestEven>();
}

}  // namespace scaletrace
