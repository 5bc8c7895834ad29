// Rounding to a format against two independent oracles: the sorted list of all its numbers, and Eigen's bfloat16 and half.
#include <Eigen/Core>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "numerics/format.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

std::uint32_t BitsOf(float v) { return std::bit_cast<std::uint32_t>(v); }

bool Same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || BitsOf(a) == BitsOf(b); }

// All finite numbers >= 0 of the format, ascending, from its facts alone; and one more step up, where an unlimited exponent would have gone on.
std::vector<double> NumbersAndOneMore(const Format& f) {
  std::vector<double> numbers;
  const int codes = 1 << (f.exponent_bits + f.mantissa_bits);
  for (int code = 0;; ++code) {
    const int exponent = code >> f.mantissa_bits;
    const double fraction = std::ldexp(code & ((1 << f.mantissa_bits) - 1), -f.mantissa_bits);
    const double value = exponent == 0 ? std::ldexp(fraction, 1 - f.bias) : std::ldexp(1 + fraction, exponent - f.bias);
    numbers.push_back(value);
    if (value > f.max_finite) return numbers;
    REQUIRE(code < codes);
  }
}

float Beyond(const Format& f) {
  return f.has_inf ? std::numeric_limits<float>::infinity() : f.has_nan ? std::numeric_limits<float>::quiet_NaN() : f.max_finite;
}

TEST_CASE("in every format of 16 bits or fewer all numbers stay, and midpoints go to even and their neighbours to the near side") {
  for (const Format& f : Formats()) {
    if (f.bits() > 16) continue;
    INFO(f.name);
    const std::vector<double> numbers = NumbersAndOneMore(f);
    REQUIRE(numbers[numbers.size() - 2] == f.max_finite);
    const auto result = [&](std::size_t i) { return i + 1 < numbers.size() ? static_cast<float>(numbers[i]) : Beyond(f); };
    const auto check = [&](float in, float out) {
      CAPTURE(in, out);
      REQUIRE(Same(Round(f, in), out));
      if (!std::isnan(out)) REQUIRE(Same(Round(f, -in), in == 0 && !f.negative_zero ? 0.0f : -out));
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

}  // namespace
}  // namespace scaletrace
