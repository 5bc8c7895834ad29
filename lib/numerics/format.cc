#include "numerics/format.h"

#include <array>
#include <bit>

namespace scaletrace {
namespace {

// Facts: bfloat16 and float16 from IEEE 754-2019's binary interchange rules, fp8 from the OCP OFP8 specification 1.0.
constexpr Format kFormats[] = {
    {"float32", 8, 23, 127, 3.40282346638528859812e38f, true, true, true, "no rounding at all"},
    {"bfloat16", 8, 7, 127, 3.38953138925153547590e38f, true, true, true, "the upper half of a float32"},
    {"float16", 5, 10, 15, 65504.0f, true, true, true, "IEEE half precision"},
    {"float8_e5m2", 5, 2, 15, 57344.0f, true, true, true, "OCP fp8 for gradients: the upper half of a float16"},
    {"float8_e4m3fn", 4, 3, 7, 448.0f, false, true, true, "OCP fp8 for weights and activations: no inf, one NaN code a sign"},
};

constexpr auto kNames = [] {
  std::array<std::string_view, std::size(kFormats)> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kFormats[i].name;
  return names;
}();

constexpr std::uint32_t kSign = 0x80000000u;
constexpr std::uint32_t kInf = 0x7F800000u;
constexpr std::uint32_t kQuietNan = 0x7FC00000u;

}  // namespace

std::span<const Format> Formats() { return kFormats; }
std::span<const std::string_view> FormatNames() { return kNames; }

const Format* FindFormat(std::string_view name) {
  for (const Format& format : kFormats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

float Round(const Format& format, float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & kSign;
  const std::uint32_t magnitude = bits & ~kSign;
  if (magnitude > kInf) return std::bit_cast<float>(sign | kQuietNan);

  std::uint32_t rounded = magnitude;
  if (magnitude != kInf) {
    // The weight of the format's last place, as a count of f32's last places: constant in the normal range, where f32 and format share the exponent, and
    // larger below it. Adding half of it less one (or half, where the kept last bit is odd) carries into the kept bits just when rounding up is due;
    // a carry out of the mantissa raises the exponent, which is right too.
    const int exponent = static_cast<int>(magnitude >> 23);  // biased as in f32
    const int smallest_normal = 128 - format.bias;           // the same bias
    const int dropped = 23 - format.mantissa_bits;
    if (exponent >= smallest_normal || format.bias == 127) {
      // With f32's own bias a subnormal of one is a subnormal of the other, and the last place stays the same.
      if (dropped > 0) {
        const std::uint32_t odd = (magnitude >> dropped) & 1;
        rounded = (magnitude + ((1u << (dropped - 1)) - 1) + odd) >> dropped << dropped;
      }
    } else {
      // Below the smallest normal: the significand in units of the format's last place, rounded as an integer.
      const std::uint32_t significand = exponent == 0 ? magnitude : (magnitude & 0x7FFFFFu) | 0x800000u;
      const int shift = dropped + smallest_normal - (exponent == 0 ? 1 : exponent);
      std::uint32_t count = 0;
      if (shift <= 24) {
        const std::uint32_t odd = (significand >> shift) & 1;
        count = (significand + ((1u << (shift - 1)) - 1) + odd) >> shift;
      }
      // count * 2^(smallest_normal - 127 - mantissa_bits): exact in f32, since a format with a smaller bias has its subnormals among f32's normals.
      const float unit = std::bit_cast<float>(static_cast<std::uint32_t>(smallest_normal - format.mantissa_bits) << 23);
      rounded = std::bit_cast<std::uint32_t>(static_cast<float>(count) * unit);
    }
  }
  if (rounded > std::bit_cast<std::uint32_t>(format.max_finite)) {
    rounded = format.has_inf ? kInf : format.has_nan ? kQuietNan : std::bit_cast<std::uint32_t>(format.max_finite);
  }
  if (rounded == 0 && !format.negative_zero) return 0.0f;
  return std::bit_cast<float>(sign | rounded);
}

}  // namespace scaletrace
