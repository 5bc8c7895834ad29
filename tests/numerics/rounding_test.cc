// Rounding in every mode, saturating or not, flushing or not: over all numbers, midpoints and neighbours of the small
// formats against the list of their numbers, over samples of all formats there can be against arithmetic in double
// precision. Nearest even against other programs: format_test.cc.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/random.h"
#include "numerics/format.h"
#include "tests/catch.h"
#include "tests/numerics/support.h"

namespace scaletrace {
namespace {

// The definition in format.h in double precision, where all of it is exact: |v| = low + f * unit, count = low / unit.
float Expected(const Rounding& r, float v, std::uint32_t random) {
  const Format& f = r.format;
  if (std::isnan(v)) return v;
  const double magnitude = std::fabs(static_cast<double>(v));
  double result = magnitude;
  if (std::isfinite(v)) {
    int exponent = 0;
    std::frexp(magnitude, &exponent);  // magnitude = [1/2, 1) 2^exponent
    const double unit = std::ldexp(1.0, std::max(exponent - 1, 1 - f.bias) - f.mantissa_bits);
    const double count = std::floor(magnitude / unit);
    const double fraction = magnitude / unit - count;
    const bool odd = std::fmod(count, 2) == 1;
    // Without mantissa bits every count above 1 is 1 again, times a larger unit: the parity is that of the exponent
    // field.
    const bool odd_code =
        f.mantissa_bits > 0 || count == 0 ? odd : (std::max(exponent - 1, 1 - f.bias) + f.bias) % 2 != 0;
    bool up = false;
    switch (r.mode) {
      case RoundingMode::kNearestEven:
        up = fraction > 0.5 || (fraction == 0.5 && odd_code);
        break;
      case RoundingMode::kTowardZero:
        break;
      case RoundingMode::kStochastic:
        up = std::floor(fraction * 0x1p31) + std::floor(random / 2.0) >= 0x1p31;
        break;
    }
    result = (count + (up ? 1 : 0)) * unit;
  }
  if (result > f.max_finite) {
    const bool keep = r.saturate || (r.mode == RoundingMode::kTowardZero && std::isfinite(v));
    if (!keep && f.has_nan && !f.has_inf) return kNotANumber;
    result = keep || !f.has_inf ? static_cast<double>(f.max_finite) : std::numeric_limits<double>::infinity();
  }
  if (r.flush_subnormals && result < std::ldexp(1.0, 1 - f.bias)) result = 0;
  const auto rounded = static_cast<float>(result);
  return std::signbit(v) && (rounded != 0 || f.negative_zero) ? -rounded : rounded;
}

std::vector<Rounding> AllRoundings(const Format& f) {
  std::vector<Rounding> all;
  for (const RoundingMode mode : {RoundingMode::kNearestEven, RoundingMode::kTowardZero, RoundingMode::kStochastic}) {
    for (const bool saturate : {false, true}) {
      for (const bool flush : {false, true}) all.push_back({f, mode, saturate, flush});
    }
  }
  return all;
}

std::string Name(const Rounding& r) {
  const Format& f = r.format;
  return std::string(f.name) + " " + std::to_string(f.exponent_bits) + "," + std::to_string(f.mantissa_bits) + "," +
         std::string(kSpecialsNames[static_cast<std::size_t>(f.specials())]) + " " +
         std::string(kRoundingModeNames[static_cast<std::size_t>(r.mode)]) + (r.saturate ? " saturating" : "") +
         (r.flush_subnormals ? " flushing" : "");
}

constexpr std::uint32_t kDraws[] = {0, 1, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF};

TEST_CASE(
    "in every format of 16 bits or fewer numbers, midpoints, quarters and their neighbours round to the right "
    "neighbour in every mode") {
  for (const Format& f : Formats()) {
    if (f.bits() > 16) continue;
    INFO(f.name);
    const std::vector<double> numbers = NumbersAndOneMore(f);
    REQUIRE(numbers[numbers.size() - 2] == f.max_finite);
    const std::vector<Rounding> roundings = AllRoundings(f);
    // v >= 0 and numbers[i] <= v <= numbers[i + 1], and what it becomes by the list alone.
    const auto check = [&](std::size_t i, float v) {
      if (static_cast<double>(v) == numbers[i + 1] && i + 2 < numbers.size()) ++i;
      const double fraction = (static_cast<double>(v) - numbers[i]) / (numbers[i + 1] - numbers[i]);
      const auto part = static_cast<std::uint32_t>(fraction * 0x1p31);  // the whole part
      for (const Rounding& r : roundings) {
        std::vector<std::uint32_t> draws(std::begin(kDraws), std::end(kDraws));
        if (r.mode != RoundingMode::kStochastic) draws.resize(1);
        // The first draw that goes up and the last that doesn't.
        else if (part > 0 && part <= 0x7FFFFFFF)
          draws.insert(draws.end(), {(0x80000000u - part) << 1, ((0x80000000u - part) << 1) - 1});
        for (const std::uint32_t random : draws) {
          bool up = false;
          if (r.mode == RoundingMode::kNearestEven) up = fraction > 0.5 || (fraction == 0.5 && i % 2 == 1);
          if (r.mode == RoundingMode::kStochastic) up = std::uint64_t{part} + (random >> 1) >= 0x80000000u;
          const std::size_t to = i + (up ? 1 : 0);
          float result = to + 1 < numbers.size() ? static_cast<float>(numbers[to])
                         : r.saturate            ? f.max_finite
                                                 : Beyond(f);
          if (r.flush_subnormals && result < std::ldexp(1.0, 1 - f.bias)) result = 0;
          const float minus = result == 0 && !f.negative_zero ? result : -result;
          if (!Same(Round(r, v, random), result))
            FAIL(Name(r) << " of " << v << ": " << Round(r, v, random) << ", not " << result);
          if (!Same(Round(r, -v, random), minus))
            FAIL(Name(r) << " of " << -v << ": " << Round(r, -v, random) << ", not " << minus);
        }
      }
    };
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
      const double low = numbers[i], step = numbers[i + 1] - low;
      for (const double part : {0.0, 0.25, 0.5, 0.75}) {
        const double at = low + part * step;
        const auto v = static_cast<float>(at);
        if (static_cast<double>(v) != at) continue;  // below f32's own last place
        check(i, v);
        check(i, std::nextafter(v, kInfinity));
        if (part > 0) check(i, std::nextafter(v, 0.0f));
      }
      if (i + 2 < numbers.size()) check(i, std::nextafter(static_cast<float>(numbers[i + 1]), 0.0f));
    }
  }
}

TEST_CASE(
    "overflow goes to inf, to NaN or to the largest number as the format has them; toward zero and saturating always "
    "to the largest") {
  for (const Format& f : Formats()) {
    INFO(f.name);
    const float largest = f.max_finite, beyond = Beyond(f);
    std::vector<float> large = {kInfinity};
    if (f.bias != 127) large.insert(large.end(), {2.5f * largest, std::numeric_limits<float>::max()});
    for (const float v : large) {
      for (const std::uint32_t random : kDraws) {
        for (const bool flush : {false, true}) {
          for (const RoundingMode mode :
               {RoundingMode::kNearestEven, RoundingMode::kTowardZero, RoundingMode::kStochastic}) {
            const float plain = mode == RoundingMode::kTowardZero && std::isfinite(v) ? largest : beyond;
            CHECK(Same(Round({f, mode, false, flush}, v, random), plain));
            CHECK(Same(Round({f, mode, false, flush}, -v, random), -plain));
            CHECK(Same(Round({f, mode, true, flush}, v, random), largest));
            CHECK(Same(Round({f, mode, true, flush}, -v, random), -largest));
          }
        }
      }
    }
    for (const Rounding& r : AllRoundings(f)) {
      for (const std::uint32_t bits : {0x7FC00000u, 0x7F800001u, 0xFFFFFFFFu})
        CHECK(std::isnan(Round(r, std::bit_cast<float>(bits), ~0u)));
    }
  }
}

TEST_CASE("subnormals are kept, or flushed to zero of their sign after rounding") {
  const Format& fp16 = *FindFormat("float16");
  const auto flush = [&](float v) { return Round({fp16, RoundingMode::kNearestEven, false, true}, v, 0); };
  const float normal = 0x1p-14f;
  CHECK(flush(normal) == normal);
  CHECK(Same(flush(-0.75f * normal), -0.0f));
  CHECK(Round(fp16, -0.75f * normal) == -0.75f * normal);
  // Rounds up to a normal number, and so is none of the subnormals.
  CHECK(flush(std::nextafter(normal, 0.0f)) == normal);
  CHECK(Same(flush(normal - 0x1p-24f), 0.0f));
  CHECK(Same(Round({fp16, RoundingMode::kTowardZero, false, true}, std::nextafter(normal, 0.0f), 0), 0.0f));
  const Format& fnuz = *FindFormat("float8_e4m3fnuz");
  CHECK(Same(Round({fnuz, RoundingMode::kNearestEven, false, true}, -0x1p-8f, 0), 0.0f));
  const Format& f32 = *FindFormat("float32");
  CHECK(Same(Round({f32, RoundingMode::kStochastic, false, true}, -0x1p-127f, ~0u), -0.0f));
  CHECK(Round({f32, RoundingMode::kStochastic, false, false}, -0x1p-127f, ~0u) == -0x1p-127f);
}

// Numbers of every size, and many near those of `f`.
float Sample(const Format& f, std::mt19937& engine) {
  const auto bits = static_cast<std::uint32_t>(engine());
  switch (engine() % 3) {
    case 0:
      return std::bit_cast<float>(bits);
    case 1: {
      // An exponent of the format's, or a few more on either side.
      const int low = std::max(0, 128 - f.bias - f.mantissa_bits - 12), high = std::min(255, 130 + f.bias);
      const auto exponent =
          static_cast<std::uint32_t>(low + static_cast<int>(engine() % static_cast<std::uint32_t>(high - low + 1)));
      return std::bit_cast<float>((bits & 0x807FFFFFu) | exponent << 23);
    }
    default: {
      // A number of the format, the middle of two, or one float32 away.
      const int zeros = std::max(0, 22 - f.mantissa_bits);
      const int low = 128 - f.bias, high = 126 + std::min(f.bias, 127);
      const auto exponent =
          static_cast<std::uint32_t>(low + static_cast<int>(engine() % static_cast<std::uint32_t>(high - low + 1)));
      const auto v = std::bit_cast<float>(((bits & 0x807FFFFFu) >> zeros << zeros) | exponent << 23);
      return engine() % 2 != 0 ? v : std::nextafter(v, engine() % 2 != 0 ? kInfinity : -kInfinity);
    }
  }
}

TEST_CASE(
    "every format there can be rounds in every mode as arithmetic in double precision says, and the result has a "
    "code") {
  std::mt19937 engine(17);
  std::vector<Format> formats(Formats().begin(), Formats().end());
  const std::size_t built_in = formats.size();
  for (int e = 2; e <= 8; ++e) {
    for (int m = 0; m <= 23; ++m) {
      for (const Specials specials : {Specials::kIeee, Specials::kFn, Specials::kFnuz, Specials::kNone}) {
        const bool needs_mantissa = specials == Specials::kIeee || specials == Specials::kFnuz;
        if ((m == 0 && needs_mantissa) || (e == 8 && specials != Specials::kIeee)) continue;
        formats.push_back(CustomFormat(e, m, specials));
      }
    }
  }
  REQUIRE(formats.size() == built_in + 6 * (4 * 23 + 2) + 23);
  for (std::size_t i = 0; i < formats.size(); ++i) {
    const Format& f = formats[i];
    // The largest number is the last code of one, and one more is none.
    const std::optional<std::uint32_t> last = Encode(f, f.max_finite);
    REQUIRE(last);
    REQUIRE(Decode(f, *last) == f.max_finite);
    if (*last + 1 < f.sign_bit()) REQUIRE(!std::isfinite(Decode(f, *last + 1)));
    REQUIRE(static_cast<double>(f.max_finite) == NumberOf(f, *last));
    REQUIRE(static_cast<double>(f.smallest_normal()) == NumberOf(f, 1u << f.mantissa_bits));
    REQUIRE(static_cast<double>(f.smallest_subnormal()) == NumberOf(f, 1));
    const std::vector<Rounding> roundings = AllRoundings(f);
    const int samples = i < built_in ? 50'000 : 500;
    for (int n = 0; n < samples; ++n) {
      const float v = Sample(f, engine);
      const auto random = static_cast<std::uint32_t>(engine());
      for (const Rounding& r : roundings) {
        const float rounded = Round(r, v, random);
        if (!Same(rounded, Expected(r, v, random))) {
          FAIL(Name(r) << " of " << v << " (" << BitsOf(v) << ") with " << random << ": " << rounded << ", not "
                       << Expected(r, v, random));
        }
        const std::optional<std::uint32_t> code = Encode(f, rounded);
        if (code ? !Same(Decode(f, *code), rounded) : !(std::isnan(rounded) && !f.has_nan))
          FAIL(Name(r) << ": no code for " << rounded);
      }
      if (!Same(Round(roundings[0], v, random), Round(f, v)))
        FAIL(Name(roundings[0]) << " differs from Round(Format) at " << v);
    }
  }
}

TEST_CASE("rounding does not depend on the rounding mode of the processor") {
  std::mt19937 engine(19);
  for (const Format& f : Formats()) {
    for (const Rounding& r : AllRoundings(f)) {
      for (int n = 0; n < 200; ++n) {
        const float v = Sample(f, engine);
        const auto random = static_cast<std::uint32_t>(engine());
        const float expected = Round(r, v, random);
        bool same = true;
        for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
          std::fesetround(mode);
          same = same && Same(Round(r, v, random), expected);
          std::fesetround(FE_TONEAREST);
        }
        if (!same) FAIL(Name(r) << " of " << v);
      }
    }
  }
}

TEST_CASE("stochastic rounding is unbiased within 4 sigma over a million draws") {
  struct Point {
    const char* format;
    float value;
  };
  static constexpr Point kPoints[] = {
      {"bfloat16", 1.001f},      {"bfloat16", -3.3e38f},  {"bfloat16", 1e-40f},          {"tfloat32", 0.1f},
      {"float16", 0.1f},         {"float16", 1e-7f},      {"float16", -3e-9f},           {"float16", 65510.0f},
      {"float8_e5m2", 1.9f},     {"float8_e5m2", 1e-6f},  {"float8_e4m3fn", 0.3f},       {"float8_e4m3fn", -0.0123f},
      {"float8_e4m3fn", 470.0f}, {"float8_e3m4", 0.2f},   {"float8_e4m3fnuz", -0.0005f}, {"float6_e3m2fn", 0.01f},
      {"float6_e2m3fn", 6.6f},   {"float4_e2m1fn", 2.1f}, {"float4_e2m1fn", 0.001f},
  };
  constexpr int kN = 1'000'000;
  std::uint64_t seed = 0;
  for (const auto& [name, value] : kPoints) {
    const Format& f = *FindFormat(name);
    const Rounding r{f, RoundingMode::kStochastic};
    int exponent = 0;
    const double magnitude = std::fabs(static_cast<double>(value));
    std::frexp(magnitude, &exponent);
    const double unit = std::ldexp(1.0, std::max(exponent - 1, 1 - f.bias) - f.mantissa_bits);
    const double low = std::floor(magnitude / unit) * unit;
    const double p = (magnitude - low) / unit;
    const double high = low + unit;
    const float sign = value < 0 ? -1.0f : 1.0f;
    const float up_value = high > f.max_finite ? sign * Beyond(f) : sign * static_cast<float>(high);
    const float down_value = low == 0 && !f.negative_zero ? 0.0f : sign * static_cast<float>(low);
    int up = 0, down = 0;
    ++seed;
    for (int i = 0; i < kN; i += 4) {
      for (const std::uint32_t random : RandomBits(seed, Stream::kRounding, static_cast<std::uint64_t>(i / 4))) {
        const float rounded = Round(r, value, random);
        up += Same(rounded, up_value) ? 1 : 0;
        down += Same(rounded, down_value) ? 1 : 0;
      }
    }
    CAPTURE(name, value, p, up);
    CHECK(up + down == kN);
    CHECK(p > 0);
    CHECK(p < 1);
    CHECK(std::fabs(up - kN * p) <= 4 * std::sqrt(kN * p * (1 - p)));
  }
}

}  // namespace
}  // namespace scaletrace
