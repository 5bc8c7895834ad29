// Numbers ↔ text: which spellings are numbers, one rounding, and round trips.
#include "base/number.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "base/random.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::string Csv(float value) {
  char buffer[kMaxNumberLength];
  return {buffer, WriteNumber(buffer, value)};
}
std::string Csv(double value) {
  char buffer[kMaxNumberLength];
  return {buffer, WriteNumber(buffer, value)};
}
std::string Csv(std::int64_t value) {
  char buffer[kMaxNumberLength];
  return {buffer, WriteNumber(buffer, value)};
}

TEST_CASE("Decimals are numbers and nothing else is") {
  for (const std::string_view text : {"0", "-0", "1", "-1", "10", "0.5", "-0.5", "1e5", "1E5", "1e+5", "1e-5", "0e0",
                                      "1.25e-3", "0.0", "123456789012345678901234567890", "1e007"}) {
    INFO(text);
    CHECK(ReadFloat(text));
    CHECK(ReadDouble(text));
  }
  for (const std::string_view text :
       {"",      "-",   "+1",    "--1",  "01",    "00",           "-01", "010", "0x10",     "1.",
        ".5",    "-.5", ".",     "1.e5", "1e",    "1e+",          "1e-", "e5",  "1e5.5",    "1_000",
        "1,000", " 1",  "1 ",    "1\n",  "inf",   "-inf",         "nan", "NaN", "Infinity", "1f",
        "1d",    "0b1", "1e5e5", "1..2", "1.2.3", "\xef\xbc\x91", "2^3"}) {
    INFO(text);
    CHECK_FALSE(ReadFloat(text));
    CHECK_FALSE(ReadDouble(text));
    CHECK_FALSE(ReadInteger(text));
    CHECK_FALSE(ReadUnsigned(text));
  }
  const std::string with_nul("1\0", 2);
  CHECK_FALSE(ReadFloat(with_nul));
  CHECK_FALSE(ReadInteger(with_nul));
}

TEST_CASE("Integers have neither point nor exponent, and keep to their range") {
  CHECK(ReadInteger("0") == 0);
  CHECK(ReadInteger("-0") == 0);
  CHECK(ReadInteger("-12") == -12);
  CHECK(ReadInteger("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  CHECK(ReadInteger("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  CHECK_FALSE(ReadInteger("9223372036854775808"));
  CHECK_FALSE(ReadInteger("-9223372036854775809"));
  CHECK_FALSE(ReadInteger("1.0"));
  CHECK_FALSE(ReadInteger("1e3"));
  CHECK(ReadUnsigned("18446744073709551615") == std::numeric_limits<std::uint64_t>::max());
  CHECK_FALSE(ReadUnsigned("18446744073709551616"));
  CHECK_FALSE(ReadUnsigned("-1"));
  CHECK_FALSE(ReadUnsigned("-0"));
}

TEST_CASE("A number is rounded once, ties to even") {
  CHECK(ReadFloat("0.1") == 0.1f);
  CHECK(ReadDouble("0.1") == 0.1);
  // The midpoint of 1 and its successor; as little above it as a double can't hold; as little below it.
  CHECK(ReadFloat("1.000000059604644775390625") == 1.0f);
  CHECK(ReadFloat("1.00000005960464477539062500000001") == std::nextafterf(1.0f, 2.0f));
  CHECK(ReadFloat("1.00000005960464477539062499999999") == 1.0f);
  CHECK(ReadFloat("1.000000178813934326171875") == 1.0f + 0x1p-22f);  // a tie above an odd significand
  CHECK(std::signbit(*ReadFloat("-0")));
  CHECK(std::signbit(*ReadDouble("-0.0e5")));
}

TEST_CASE("Too large is no number, too small is zero or subnormal") {
  CHECK(ReadFloat("3.4028235e38") == std::numeric_limits<float>::max());
  CHECK(ReadFloat("3.40282356e38") == std::numeric_limits<float>::max());  // below the midpoint to 2^128
  CHECK_FALSE(ReadFloat("3.4028236e38"));
  CHECK_FALSE(ReadFloat("-3.4028236e38"));
  CHECK_FALSE(ReadFloat("1e39"));
  CHECK_FALSE(ReadFloat("1e99999999999999999999"));
  CHECK_FALSE(ReadFloat(std::string(400, '9')));
  CHECK_FALSE(ReadFloat("123" + std::string(40, '0') + ".5e-3"));
  CHECK(ReadDouble("1.7976931348623157e308") == std::numeric_limits<double>::max());
  CHECK_FALSE(ReadDouble("1.8e308"));
  CHECK_FALSE(ReadDouble("-1e309"));

  CHECK(ReadFloat("1e-45") == std::numeric_limits<float>::denorm_min());
  CHECK(ReadFloat("7.1e-46") == std::numeric_limits<float>::denorm_min());  // just above half of it
  CHECK(ReadFloat("7e-46") == 0.0f);
  CHECK(ReadFloat("1e-60") == 0.0f);
  CHECK(std::signbit(*ReadFloat("-1e-60")));
  CHECK(ReadFloat("1e-99999999999999999999") == 0.0f);
  CHECK(ReadFloat("0e99999999999999999999") == 0.0f);
  CHECK(ReadFloat("0.0e-99999999999999999999") == 0.0f);
  CHECK(ReadFloat("0." + std::string(60, '0') + "1") == 0.0f);
  CHECK(ReadFloat("0." + std::string(60, '0') + "1e61") == 1.0f);
  CHECK(ReadFloat("1" + std::string(60, '0') + "e-60") == 1.0f);
  CHECK(ReadFloat("123e-100") == 0.0f);
  CHECK(ReadDouble("5e-324") == std::numeric_limits<double>::denorm_min());
  CHECK(ReadDouble("2e-324") == 0.0);
  CHECK(ReadDouble("1e-400") == 0.0);
}

TEST_CASE("Every sampled float and double is written and read back to the same bits") {
  for (std::uint64_t i = 0; i < 200000; ++i) {
    const auto bits = RandomBits(1, Stream::kNoise, i);
    // Every other one subnormal.
    const std::uint32_t bits32 = i % 2 == 0 ? bits[0] : bits[0] & 0x807FFFFF;
    const std::uint64_t all = (std::uint64_t{bits[1]} << 32) | bits[2];
    const std::uint64_t bits64 = i % 2 == 0 ? all : all & 0x800FFFFFFFFFFFFF;
    const float f = std::bit_cast<float>(bits32);
    const double d = std::bit_cast<double>(bits64);
    if (std::isfinite(f)) {
      const auto read = ReadFloat(ToText(f));
      if (!read || std::bit_cast<std::uint32_t>(*read) != bits32) FAIL("float " << ToText(f));
      // The shortest decimal of the widened value reads back to the same float too.
      const auto wide = ReadFloat(ToText(static_cast<double>(f)));
      if (!wide || std::bit_cast<std::uint32_t>(*wide) != bits32)
        FAIL("widened float " << ToText(static_cast<double>(f)));
    }
    if (std::isfinite(d)) {
      const auto read = ReadDouble(ToText(d));
      if (!read || std::bit_cast<std::uint64_t>(*read) != bits64) FAIL("double " << ToText(d));
    }
    if (ToText(f).size() > kMaxNumberLength || ToText(d).size() > kMaxNumberLength) FAIL("too long: " << ToText(d));
  }
  for (std::int64_t i : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
                         std::numeric_limits<std::int64_t>::max()}) {
    CHECK(ReadInteger(Csv(i)) == i);
  }
}

TEST_CASE("Text is the shortest decimal") {
  CHECK(ToText(0.1f) == "0.1");
  CHECK(ToText(1.0f) == "1");
  CHECK(ToText(65536.0f) == "65536");
  CHECK(ToText(-0.0f) == "-0");
  CHECK(ToText(1e-45f) == "1e-45");
  CHECK(ToText(3.4028235e38f) == "3.4028235e+38");
  CHECK(ToText(0.1) == "0.1");
}

TEST_CASE("What is not finite has one spelling in CSV and one in JSON") {
  const float negative_nan = std::bit_cast<float>(0xFFC00000u);
  CHECK(Csv(kInf) == "inf");
  CHECK(Csv(-kInf) == "-inf");
  CHECK(Csv(negative_nan) == "NaN");
  CHECK(Csv(std::nan("1")) == "NaN");
  CHECK(ToJsonText(kInf) == "\"inf\"");
  CHECK(ToJsonText(-static_cast<double>(kInf)) == "\"-inf\"");
  CHECK(ToJsonText(negative_nan) == "\"nan\"");
  CHECK(ToJsonText(1.5) == "1.5");
  CHECK(ReadCsvFloat("inf") == kInf);
  CHECK(ReadCsvFloat("-inf") == -kInf);
  CHECK(std::isnan(*ReadCsvFloat("NaN")));
  CHECK(ReadCsvDouble("-0.5") == -0.5);
  for (const std::string_view text : {"nan", "-NaN", "Inf", "INF", "+inf", "infinity", " inf", ""}) {
    CHECK_FALSE(ReadCsvFloat(text));
    CHECK_FALSE(ReadCsvDouble(text));
  }
}

TEST_CASE("Scales are shown as powers of two where that is short") {
  CHECK(ToScaleText(65536) == "2^16");
  CHECK(ToScaleText(1024) == "2^10");
  CHECK(ToScaleText(512) == "512");
  CHECK(ToScaleText(0x1p-10) == "2^-10");
  CHECK(ToScaleText(0.125) == "0.125");
  CHECK(ToScaleText(0x1p-149) == "2^-149");
  CHECK(ToScaleText(65537) == "65537");
  CHECK(ToScaleText(static_cast<double>(kInf)) == "inf");
  CHECK(ToScaleText(0) == "0");
}

}  // namespace
}  // namespace scaletrace
