// Formats, their codes, and rounding to nearest even, against independent oracles: what the sources of the formats say,
// the sorted list of all numbers of a format, and Eigen's bfloat16 and half. The other rounding modes:
// rounding_test.cc.
#include "numerics/format.h"

#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/catch.h"
#include "tests/numerics/support.h"

namespace scaletrace {
namespace {

TEST_CASE(
    "in every format of 16 bits or fewer all numbers stay, and midpoints go to even and their neighbours to the near "
    "side") {
  for (const Format& f : Formats()) {
    if (f.bits() > 16) continue;
    INFO(f.name);
    const std::vector<double> numbers = NumbersAndOneMore(f);
    REQUIRE(numbers[numbers.size() - 2] == f.max_finite);
    const auto result = [&](std::size_t i) {
      return i + 1 < numbers.size() ? static_cast<float>(numbers[i]) : Beyond(f);
    };
    const auto check = [&](float in, float out) {
      CAPTURE(in, out);
      REQUIRE(Same(Round(f, in), out));
      if (!std::isnan(out)) REQUIRE(Same(Round(f, -in), out == 0 && !f.negative_zero ? 0.0f : -out));
    };
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
      check(result(i), result(i));
      const double middle = numbers[i] / 2 + numbers[i + 1] / 2;
      const auto tie = static_cast<float>(middle);
      if (static_cast<double>(tie) != middle) continue;  // below f32's own last place
      check(tie, result(i % 2 == 0 ? i : i + 1));
      check(std::nextafter(tie, 0.0f), result(i));
      check(std::nextafter(tie, std::numeric_limits<float>::infinity()), result(i + 1));
    }
    check(std::numeric_limits<float>::max(), Beyond(f));
    check(std::numeric_limits<float>::infinity(), Beyond(f));
    CHECK(std::isnan(Round(f, std::numeric_limits<float>::quiet_NaN())));
    CHECK(std::isnan(Round(f, std::bit_cast<float>(0x7F800001u))));
    CHECK(std::isnan(Round(f, std::bit_cast<float>(0xFFFFFFFFu))));
    check(0.0f, 0.0f);
  }
}

TEST_CASE("bfloat16 and float16 round as Eigen does over a sample of all f32") {
  const Format& bf16 = *FindFormat("bfloat16");
  const Format& fp16 = *FindFormat("float16");
  std::mt19937 engine(7);
  for (int i = 0; i < 2'000'000; ++i) {
    const auto v = std::bit_cast<float>(static_cast<std::uint32_t>(engine()));
    if (!Same(Round(bf16, v), static_cast<float>(Eigen::bfloat16(v)))) FAIL("bfloat16 of " << v);
    if (!Same(Round(fp16, v), static_cast<float>(Eigen::half(v)))) FAIL("float16 of " << v);
  }
}

TEST_CASE("bfloat16 and float16 round as Eigen does over all f32", "[.long]") {
  const Format& bf16 = *FindFormat("bfloat16");
  const Format& fp16 = *FindFormat("float16");
  std::uint32_t bits = 0;
  do {
    const auto v = std::bit_cast<float>(bits);
    if (!Same(Round(bf16, v), static_cast<float>(Eigen::bfloat16(v)))) FAIL("bfloat16 of " << v);
    if (!Same(Round(fp16, v), static_cast<float>(Eigen::half(v)))) FAIL("float16 of " << v);
  } while (++bits != 0);
}

TEST_CASE("the examples of the specification hold") {
  const auto round = [](std::string_view name, float v) { return Round(*FindFormat(name), v); };
  CHECK(round("float8_e4m3fn", 464.0f) == 448.0f);
  CHECK(std::isnan(round("float8_e4m3fn", 465.0f)));
  CHECK(std::isinf(round("float16", 65520.0f)));
  CHECK(round("float16", 65519.0f) == 65504.0f);
  CHECK(std::isinf(round("float8_e5m2", 61440.0f)));
  CHECK(round("bfloat16", 3.3895314e38f) == 3.3895314e38f);
  CHECK(BitsOf(round("bfloat16", 1e-40f)) != 0);  // rounding flushes nothing
  CHECK(round("float32", 1.00000012f) == 1.00000012f);
}

// Codes read and written while compiling.
constexpr Format kE4m3fn = {"", 4, 3, 7, 448, false, true, true, "", ""};
static_assert(Decode(kE4m3fn, 0x7E) == 448.0f && Decode(kE4m3fn, 0x81) == -0x1p-9f &&
              Decode(kE4m3fn, 0x7F) != Decode(kE4m3fn, 0x7F));
static_assert(Encode(kE4m3fn, -448.0f) == 0xFEu && Encode(kE4m3fn, 0x1p-9f) == 1u && !Encode(kE4m3fn, 480.0f));

TEST_CASE("codes mean what the sources of the formats say") {
  const auto decode = [](std::string_view name, std::uint32_t code) { return Decode(*FindFormat(name), code); };
  const float nan = kNotANumber;
  // OCP OFP8 1.0, tables 1 and 2.
  CHECK(decode("float8_e5m2", 0x7B) == 57344.0f);
  CHECK(decode("float8_e5m2", 0x04) == 0x1p-14f);
  CHECK(decode("float8_e5m2", 0x03) == 0.75f * 0x1p-14f);
  CHECK(decode("float8_e5m2", 0x01) == 0x1p-16f);
  CHECK(decode("float8_e5m2", 0x7C) == kInfinity);
  CHECK(decode("float8_e5m2", 0xFC) == -kInfinity);
  for (const std::uint32_t code : {0x7Du, 0x7Eu, 0x7Fu, 0xFDu, 0xFEu, 0xFFu})
    CHECK(std::isnan(decode("float8_e5m2", code)));
  CHECK(decode("float8_e4m3fn", 0x7E) == 448.0f);
  CHECK(decode("float8_e4m3fn", 0x08) == 0x1p-6f);
  CHECK(decode("float8_e4m3fn", 0x07) == 0.875f * 0x1p-6f);
  CHECK(decode("float8_e4m3fn", 0x01) == 0x1p-9f);
  for (const std::uint32_t code : {0x7Fu, 0xFFu}) CHECK(std::isnan(decode("float8_e4m3fn", code)));
  // ml_dtypes and LLVM.
  CHECK(decode("float8_e4m3", 0x77) == 240.0f);
  CHECK(decode("float8_e4m3", 0x78) == kInfinity);
  CHECK(std::isnan(decode("float8_e4m3", 0x79)));
  CHECK(decode("float8_e3m4", 0x6F) == 15.5f);
  CHECK(decode("float8_e3m4", 0x10) == 0.25f);
  CHECK(decode("float8_e3m4", 0x01) == 0x1p-6f);
  CHECK(decode("float8_e3m4", 0xF0) == -kInfinity);
  CHECK(std::isnan(decode("float8_e3m4", 0x71)));
  for (const std::string_view name : {"float8_e4m3fnuz", "float8_e5m2fnuz"}) {
    CHECK(std::isnan(decode(name, 0x80)));
    CHECK(Same(decode(name, 0), 0.0f));
    CHECK(Encode(*FindFormat(name), nan) == 0x80u);
    CHECK(Encode(*FindFormat(name), 0.0f) == 0u);
    CHECK(!Encode(*FindFormat(name), -0.0f));
    CHECK(!Encode(*FindFormat(name), kInfinity));
    CHECK(Same(Round(*FindFormat(name), -0.0f), 0.0f));
    CHECK(Same(Round(*FindFormat(name), -1e-30f), 0.0f));
  }
  CHECK(decode("float8_e4m3fnuz", 0x7F) == 240.0f);
  CHECK(decode("float8_e4m3fnuz", 0x08) == 0x1p-7f);
  CHECK(decode("float8_e4m3fnuz", 0x01) == 0x1p-10f);
  CHECK(decode("float8_e5m2fnuz", 0x7F) == 57344.0f);
  CHECK(decode("float8_e5m2fnuz", 0x04) == 0x1p-15f);
  CHECK(decode("float8_e5m2fnuz", 0x01) == 0x1p-17f);
  // OCP MX 1.0: largest, smallest normal, smallest subnormal.
  CHECK(decode("float6_e3m2fn", 0x1F) == 28.0f);
  CHECK(decode("float6_e3m2fn", 0x04) == 0.25f);
  CHECK(decode("float6_e3m2fn", 0x01) == 0.0625f);
  CHECK(decode("float6_e2m3fn", 0x1F) == 7.5f);
  CHECK(decode("float6_e2m3fn", 0x08) == 1.0f);
  CHECK(decode("float6_e2m3fn", 0x21) == -0.125f);
  const float fp4[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (std::uint32_t code = 0; code < 8; ++code) {
    CHECK(Same(decode("float4_e2m1fn", code), fp4[code]));
    CHECK(Same(decode("float4_e2m1fn", code | 8), -fp4[code]));
  }
  for (const std::string_view name : {"float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn"}) {
    const Format& f = *FindFormat(name);
    CHECK(!Encode(f, nan));
    CHECK(!Encode(f, kInfinity));
    CHECK(std::isnan(Round(f, nan)));
    CHECK(Round(f, -kInfinity) == -f.max_finite);
    CHECK(Round(f, 1e30f) == f.max_finite);
    CHECK(Same(Round(f, -1e-30f), -0.0f));
  }
  // The upper 19 bits of a float32.
  CHECK(decode("tfloat32", 0x3FBFF) == std::bit_cast<float>(0x7F7FE000u));
  CHECK(FindFormat("tfloat32")->max_finite == std::bit_cast<float>(0x7F7FE000u));
  CHECK(FindFormat("tfloat32")->bits() == 19);
  CHECK(Round(*FindFormat("tfloat32"), 1 + 0x1p-11f) == 1.0f);
  CHECK(Round(*FindFormat("tfloat32"), 1 + 0x1.8p-10f) == 1 + 0x1p-9f);
}

TEST_CASE("in every format of 16 bits or fewer every code decodes to the number of its fields and encodes back") {
  for (const Format& f : Formats()) {
    if (f.bits() > 16) continue;
    INFO(f.name);
    const std::uint32_t half = 1u << (f.bits() - 1);
    const std::uint32_t top = half - (1u << f.mantissa_bits);  // all exponent bits set
    for (std::uint32_t code = 0; code < 2 * half; ++code) {
      const std::uint32_t magnitude = code & (half - 1);
      const bool negative = code >= half;
      bool nan = false, inf = false;
      switch (f.specials()) {
        case Specials::kIeee:
          inf = magnitude == top;
          nan = magnitude > top;
          break;
        case Specials::kFn:
          nan = magnitude == half - 1;
          break;
        case Specials::kFnuz:
          nan = code == half;
          break;
        case Specials::kNone:
          break;
      }
      const float decoded = Decode(f, code);
      const std::optional<std::uint32_t> back = Encode(f, decoded);
      CAPTURE(code, decoded);
      if (nan) {
        if (!std::isnan(decoded) || !back || !std::isnan(Decode(f, *back)) ||
            *back >> (f.bits() - 1) != code >> (f.bits() - 1))
          FAIL("NaN");
        continue;
      }
      const double expected = inf ? std::numeric_limits<double>::infinity() : NumberOf(f, magnitude);
      if (static_cast<double>(std::fabs(decoded)) != expected || std::signbit(decoded) != negative)
        FAIL("decodes wrongly");
      if (back != code) FAIL("does not encode back");
      if (!Same(Round(f, decoded), decoded)) FAIL("does not stay when it is rounded");
      if (Decode(f, code | 2 * half) != decoded) FAIL("bits above the code are read");  // only low bits count
    }
    REQUIRE(Encode(f, f.max_finite) == (f.specials() == Specials::kIeee ? top - 1
                                        : f.specials() == Specials::kFn ? half - 2
                                                                        : half - 1));
  }
}

TEST_CASE("what is no number of a format has no code") {
  for (const Format& f : Formats()) {
    if (f.bits() > 16) continue;
    INFO(f.name);
    const std::vector<double> numbers = NumbersAndOneMore(f);
    if (const auto beyond = static_cast<float>(numbers.back()); std::isfinite(beyond)) CHECK(!Encode(f, beyond));
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i) {
      const auto number = static_cast<float>(numbers[i]);
      const double middle = numbers[i] / 2 + numbers[i + 1] / 2;
      for (const float v :
           {static_cast<float>(middle), std::nextafter(number, kInfinity), std::nextafter(number, -kInfinity)}) {
        if (static_cast<double>(v) == numbers[i] || static_cast<double>(v) == numbers[i + 1] || v == 0) continue;
        CAPTURE(v);
        if (std::isfinite(v) && (Encode(f, v) || Encode(f, -v))) FAIL("has a code");
      }
    }
    CHECK(Encode(f, kInfinity).has_value() == f.has_inf);
    CHECK(Encode(f, -kInfinity).has_value() == f.has_inf);
    CHECK(Encode(f, kNotANumber).has_value() == f.has_nan);
    CHECK(Encode(f, -0.0f).has_value() == f.negative_zero);
    if (f.bits() < 16) {
      CHECK(!Encode(f, std::numeric_limits<float>::denorm_min()));
      CHECK(!Encode(f, std::numeric_limits<float>::max()));
    }
  }
}

TEST_CASE(
    "all codes of bfloat16 and float16 are Eigen's, and those of float32 and tfloat32 are the upper bits of a "
    "float32") {
  const Format& bf16 = *FindFormat("bfloat16");
  const Format& fp16 = *FindFormat("float16");
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    if (!Same(Decode(bf16, code), static_cast<float>(Eigen::numext::bit_cast<Eigen::bfloat16>(bits))))
      FAIL("bfloat16 " << code);
    if (!Same(Decode(fp16, code), static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(bits))))
      FAIL("float16 " << code);
  }
  const Format& f32 = *FindFormat("float32");
  const Format& tf32 = *FindFormat("tfloat32");
  std::mt19937 engine(11);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto bits = static_cast<std::uint32_t>(engine());
    const auto v = std::bit_cast<float>(bits);
    if (!Same(Decode(f32, bits), v)) FAIL("float32 " << bits);
    if (!std::isnan(v) && Encode(f32, v) != bits) FAIL("float32 " << v);
    const float rounded = Round(tf32, v);
    if (!std::isnan(v) && Encode(tf32, rounded) != BitsOf(rounded) >> 13) FAIL("tfloat32 " << v);
    if (!Same(Decode(tf32, BitsOf(rounded) >> 13), rounded)) FAIL("tfloat32 " << v);
  }
}

TEST_CASE("every built-in format comes out of its bits and its kind of special codes") {
  for (const Format& f : Formats()) {
    INFO(f.name);
    const Format custom = CustomFormat(f.exponent_bits, f.mantissa_bits, f.specials());
    CHECK(custom.name == "custom");
    CHECK(custom.exponent_bits == f.exponent_bits);
    CHECK(custom.mantissa_bits == f.mantissa_bits);
    CHECK(custom.bias == f.bias);
    CHECK(BitsOf(custom.max_finite) == BitsOf(f.max_finite));
    CHECK(custom.has_inf == f.has_inf);
    CHECK(custom.has_nan == f.has_nan);
    CHECK(custom.negative_zero == f.negative_zero);
    std::mt19937 engine(13);
    for (int i = 0; i < 100'000; ++i) {
      const auto v = std::bit_cast<float>(static_cast<std::uint32_t>(engine()));
      if (!Same(Round(custom, v), Round(f, v))) FAIL(v);
    }
  }
}

TEST_CASE("custom formats that cannot be are refused") {
  const auto refused = [](int exponent_bits, int mantissa_bits, Specials specials, const std::string& message) {
    CHECK_THROWS_MATCHES(CustomFormat(exponent_bits, mantissa_bits, specials), InputError,
                         Catch::Matchers::Message(message));
  };
  refused(1, 3, Specials::kIeee, "exponent_bits: found 1; allowed: an integer from 2 to 8");
  refused(9, 3, Specials::kIeee, "exponent_bits: found 9; allowed: an integer from 2 to 8");
  refused(5, 24, Specials::kNone, "mantissa_bits: found 24; allowed: an integer from 0 to 23");
  refused(5, -1, Specials::kNone, "mantissa_bits: found -1; allowed: an integer from 0 to 23");
  refused(5, 0, Specials::kIeee, "mantissa_bits: found 0; allowed: an integer from 1 to 23 with specials ieee");
  refused(5, 0, Specials::kFnuz, "mantissa_bits: found 0; allowed: an integer from 1 to 23 with specials fnuz");
  refused(
      8, 7, Specials::kFn,
      "exponent_bits: found 8; allowed: at most 7 with specials fn, since float32 doesn't hold all numbers of eight");
  refused(
      8, 7, Specials::kFnuz,
      "exponent_bits: found 8; allowed: at most 7 with specials fnuz, since float32 doesn't hold all numbers of eight");
  refused(
      8, 7, Specials::kNone,
      "exponent_bits: found 8; allowed: at most 7 with specials none, since float32 doesn't hold all numbers of eight");
}

}  // namespace
}  // namespace scaletrace
