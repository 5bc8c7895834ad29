// The own functions against libm in long double (80 bits on x86, 128 on Arm), and their bytes against a checksum that
// must be the same everywhere.
#include "base/math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/sha256.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kPoints = 300000;

// The distance of `got` from `want` in units in the last place of a double near `want`.
long double Ulps(double got, long double want) {
  const double near = std::fabs(static_cast<double>(want));
  const long double unit = std::ldexp(1.0L, std::ilogb(near) - 52);
  return std::fabs((static_cast<long double>(got) - want) / unit);
}

// A positive double whose bits are random: every exponent is as likely as another, subnormals among them.
double RandomPositive(std::uint64_t index) {
  const auto bits = RandomBits(5, Stream::kNoise, index);
  const std::uint64_t raw = (static_cast<std::uint64_t>(bits[0]) << 32 | bits[1]) & 0x7fffffffffffffffULL;
  const double x = std::bit_cast<double>(raw);
  return x > 0 && x < kInfinity ? x : 1.5;
}

// Random points in [low, high), both ends' neighbours, and every double within 200 steps of each of `hard`.
std::vector<double> Points(double low, double high, const std::vector<double>& hard) {
  std::vector<double> points = {low, std::nextafter(low, high), std::nextafter(high, low)};
  for (int i = 0; i < kPoints; ++i)
    points.push_back(low + (high - low) * Uniform(3, Stream::kNoise, static_cast<std::uint64_t>(i)));
  for (const double center : hard) {
    double up = center;
    double down = center;
    for (int i = 0; i < 200; ++i) {
      points.push_back(up);
      points.push_back(down);
      up = std::nextafter(up, kInfinity);
      down = std::nextafter(down, -kInfinity);
    }
  }
  return points;
}

long double WorstUlps(const std::vector<double>& points, double (*f)(double),
                      const std::function<long double(long double)>& oracle) {
  long double worst = 0;
  for (const double x : points) {
    const long double want = oracle(x);
    if (want == 0) {
      if (f(x) != 0) return std::numeric_limits<long double>::infinity();
      continue;
    }
    const long double ulps = Ulps(f(x), want);
    if (!(ulps <= worst)) worst = ulps;
  }
  return worst;
}

// cos or sin of 2 pi x, with the argument reduced exactly before pi comes in.
long double TurnsOracle(long double x, bool cosine) {
  const long double angle = 2 * std::numbers::pi_v<long double> * (x - std::round(x));
  return cosine ? std::cos(angle) : std::sin(angle);
}

TEST_CASE("Exp2 is within 4 ulp of the true value over its whole range") {
  std::vector<double> hard = {0.0, -1022.0, -1021.5, 1023.5, 1023.0, 1.0, -1.0};
  for (int i = -40; i < 40; ++i) hard.push_back(i / 2.0);
  const auto oracle = [](long double x) { return std::exp2(x); };
  CHECK(WorstUlps(Points(-1020, 1024, hard), Exp2, oracle) < 4);
  CHECK(WorstUlps(Points(-0.01, 0.01, {}), Exp2, oracle) < 4);
}

TEST_CASE("Exp2 rounds a subnormal result once") {
  int wrong_by_one = 0;
  for (int i = 0; i < 20000; ++i) {
    const double x = -1074.9 + 52 * Uniform(4, Stream::kNoise, static_cast<std::uint64_t>(i));
    const double want = static_cast<double>(std::exp2(static_cast<long double>(x)));
    const double units = std::fabs(Exp2(x) - want) / 0x1p-1074;
    REQUIRE(units <= 4);
    wrong_by_one += units > 0;
  }
  CHECK(wrong_by_one < 6000);  // near 2^-1022 the result still carries the errors of the series
}

TEST_CASE("Exp2 is exact for integers and ends at 0 and inf") {
  for (int n = -1074; n <= 1023; ++n) REQUIRE(Exp2(n) == std::ldexp(1.0, n));
  CHECK(Exp2(1024) == kInfinity);
  CHECK(Exp2(1e300) == kInfinity);
  CHECK(Exp2(kInfinity) == kInfinity);
  CHECK(Exp2(std::nextafter(1024.0, 0.0)) < kInfinity);
  CHECK(Exp2(-1075) == 0);
  CHECK(Exp2(-1074.99) == 0x1p-1074);
  CHECK(Exp2(std::nextafter(-1075.0, -2000.0)) == 0);
  CHECK(Exp2(-1e300) == 0);
  CHECK(Exp2(-kInfinity) == 0);
  CHECK(std::isnan(Exp2(kNan)));
}

TEST_CASE("Log2 and Log are within 4 ulp of the true value, near 1 and among subnormals too") {
  const std::vector<double> hard = {
      1.0, 2.0, 0.5, std::sqrt(2.0), std::sqrt(0.5), 0x1p-1022, 0x1.fffffffffffffp+1023, 1 + 0x1p-20, 1 - 0x1p-20};
  std::vector<double> wide;
  for (std::uint64_t i = 0; i < kPoints; ++i) wide.push_back(RandomPositive(i));
  wide.push_back(0x1p-1074);
  wide.push_back(0x3p-1074);
  const auto log2 = [](long double x) { return std::log2(x); };
  const auto log = [](long double x) { return std::log(x); };
  for (const auto& points : {Points(0.5, 2.5, hard), Points(0.999, 1.001, {}), wide}) {
    CHECK(WorstUlps(points, Log2, log2) < 4);
    CHECK(WorstUlps(points, Log, log) < 4);
  }
}

TEST_CASE("Log2 is exact for powers of two and both logarithms have the usual special values") {
  for (int n = -1074; n <= 1023; ++n) REQUIRE(Log2(std::ldexp(1.0, n)) == n);
  CHECK(Log(1.0) == 0);
  for (const auto f : {Log2, Log}) {
    CHECK(f(0.0) == -kInfinity);
    CHECK(f(-0.0) == -kInfinity);
    CHECK(f(kInfinity) == kInfinity);
    CHECK(std::isnan(f(-1.0)));
    CHECK(std::isnan(f(-kInfinity)));
    CHECK(std::isnan(f(-0x1p-1074)));
    CHECK(std::isnan(f(kNan)));
  }
}

TEST_CASE("CosTurns and SinTurns are within 2^-50 of the true value for any number of turns") {
  std::vector<double> points;
  for (const double range : {1.0, 100.0, 1e6, 1e15}) {
    const auto more = Points(-range, range, {0.125, 0.25, 0.375, 0.5, 0.75, 0.875, 1.0, 1e5 + 0.125});
    points.insert(points.end(), more.begin(), more.end());
  }
  long double worst_cos = 0;
  long double worst_sin = 0;
  for (const double x : points) {
    const long double cos_error = std::fabs(CosTurns(x) - TurnsOracle(x, true));
    const long double sin_error = std::fabs(SinTurns(x) - TurnsOracle(x, false));
    if (!(cos_error <= worst_cos)) worst_cos = cos_error;
    if (!(sin_error <= worst_sin)) worst_sin = sin_error;
  }
  CHECK(worst_cos < 0x1p-50L);
  CHECK(worst_sin < 0x1p-50L);
}

TEST_CASE("CosTurns and SinTurns are exact at quarter turns, even and odd") {
  const double cosines[] = {1, 0, -1, 0};
  const double sines[] = {0, 1, 0, -1};
  for (int i = -4000; i <= 4000; ++i) {
    REQUIRE(CosTurns(i * 0.25) == cosines[i & 3]);
    REQUIRE(SinTurns(i * 0.25) == sines[i & 3]);
  }
  for (const double x : {0.1, 0.3, 0.6, 0.9, 12.34, 1e-300}) {
    CHECK(CosTurns(-x) == CosTurns(x));
    CHECK(SinTurns(-x) == -SinTurns(x));
  }
  for (const double whole : {0x1p52, 0x1p53, 0x1p60, 1e300}) {
    CHECK(CosTurns(whole) == 1);
    CHECK(SinTurns(-whole) == 0);
  }
  CHECK(CosTurns(0x1p51 + 0.5) == -1);
}

TEST_CASE("CosTurns and SinTurns of an infinity or NaN are NaN") {
  for (const double x : {kInfinity, -kInfinity, kNan}) {
    CHECK(std::isnan(CosTurns(x)));
    CHECK(std::isnan(SinTurns(x)));
  }
}

TEST_CASE("the five functions give the same bytes on every platform and compiler") {
  const auto hash = [](double (*f)(double), double low, double high) {
    std::string bytes;
    for (std::uint64_t i = 0; i < 10000; ++i) {
      const auto bits = std::bit_cast<std::uint64_t>(f(low + (high - low) * Uniform(6, Stream::kNoise, i)));
      for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(bits >> shift & 0xff);
    }
    return Sha256(bytes).substr(0, 16);
  };
  CHECK(hash(Exp2, -1080, 1030) == "e136b17173f9cfa9");
  CHECK(hash(Log2, 0, 4) == "43f3ae2ff8edbbc5");
  CHECK(hash(Log, 0, 4) == "8586dd81aa82c7d3");
  CHECK(hash(CosTurns, -3, 3) == "40b76c9413dfef95");
  CHECK(hash(SinTurns, -3, 3) == "baa21b0d582b87c7");
}

}  // namespace
}  // namespace scaletrace
