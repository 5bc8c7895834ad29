// Series whose coefficients are plain fractions, after an exact reduction of the argument. See math.h for what is
// promised.
#include "base/math.h"

#include <bit>
#include <cstdint>
#include <limits>

namespace scaletrace {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// ln 2 in two parts: the first has 33 bits, so that its product with an exponent (11 bits) is exact; the second is the
// rest, rounded.
constexpr double kLn2High = 0x1.62e42fefp-1;
constexpr double kLn2Low = 0x1.473de6af278edp-34;
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kTwoPi = 0x1.921fb54442d18p+2;
constexpr double kSqrt2 = 0x1.6a09e667f3bcdp+0;

// 2^n for -1022 <= n <= 1023.
double PowerOfTwo(int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52); }

// x = m 2^e with sqrt(1/2) <= m < sqrt(2) (up to a rounding), for finite x > 0.
struct Split {
  double m;
  int e;
};
Split SplitPositive(double x) {
  int e = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    e = -54;
  }
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  e += static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m >= kSqrt2) {
    m *= 0.5;
    ++e;
  }
  return {m, e};
}

// ln m for m of SplitPositive. With f = m - 1 (exact) and s = f / (2 + f):  ln m = 2 artanh s = 2s + 2s (s^2/3 + s^4/5
// + ...), and since 2s = f - s f, that is f - s (f - 2 s^2 (1/3 + s^2/5 + ...)): the leading term carries no rounding.
// |s| < 0.1716, so the first omitted term, s^22/23, is below 2^-60 of the sum.
double LogNearOne(double m) {
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 1.0 / 21.0;
  p = p * z + 1.0 / 19.0;
  p = p * z + 1.0 / 17.0;
  p = p * z + 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  return f - s * (f - 2.0 * z * p);
}

// What both logarithms answer outside the finite positive numbers; nothing to do with x > 0 finite.
bool LogIsSpecial(double x, double* result) {
  if (!(x >= 0.0)) {  // negative or NaN
    *result = kNan;
  } else if (x == 0.0) {
    *result = -kInfinity;
  } else if (x == kInfinity) {
    *result = kInfinity;
  } else {
    return false;
  }
  return true;
}

// Taylor series for |t| <= pi/4 and a little more; the first omitted terms, t^19/19! and t^18/18!, are below 2^-58.
double SinNearZero(double t) {
  const double z = t * t;
  double p = 1.0 / 355687428096000.0;
  p = p * z - 1.0 / 1307674368000.0;
  p = p * z + 1.0 / 6227020800.0;
  p = p * z - 1.0 / 39916800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z - 1.0 / 5040.0;
  p = p * z + 1.0 / 120.0;
  p = p * z - 1.0 / 6.0;
  return t + t * (z * p);
}
double CosNearZero(double t) {
  const double z = t * t;
  double p = 1.0 / 20922789888000.0;
  p = p * z - 1.0 / 87178291200.0;
  p = p * z + 1.0 / 479001600.0;
  p = p * z - 1.0 / 3628800.0;
  p = p * z + 1.0 / 40320.0;
  p = p * z - 1.0 / 720.0;
  p = p * z + 1.0 / 24.0;
  p = p * z - 0.5;
  return 1.0 + z * p;
}

// |x| = whole turns + quarter/4 + rest, with |rest| <= 1/8 (up to a rounding), exactly. `magnitude` is finite and not
// negative.
struct Turns {
  int quarter;  // 0 .. 4
  double rest;
};
Turns SplitTurns(double magnitude) {
  // From 2^52 on every double is whole.
  const double f = magnitude < 0x1p52 ? magnitude - static_cast<double>(static_cast<std::int64_t>(magnitude)) : 0.0;
  const int quarter = static_cast<int>(4.0 * f + 0.5);
  return {quarter, f - 0.25 * quarter};
}

}  // namespace

double Exp2(double x) {
  if (!(x < 1024.0)) return x != x ? x : kInfinity;
  if (x < -1075.0) return 0.0;
  // x = n + r exactly, |r| <= 1/2 (up to a rounding); 2^r = e^(r ln 2) by Taylor's series, whose first omitted term,
  // t^14/14!, is below 2^-57.
  const int n = static_cast<int>(x + (x < 0.0 ? -0.5 : 0.5));
  const double t = (x - n) * kLn2;
  double p = 1.0 / 6227020800.0;
  p = p * t + 1.0 / 479001600.0;
  p = p * t + 1.0 / 39916800.0;
  p = p * t + 1.0 / 3628800.0;
  p = p * t + 1.0 / 362880.0;
  p = p * t + 1.0 / 40320.0;
  p = p * t + 1.0 / 5040.0;
  p = p * t + 1.0 / 720.0;
  p = p * t + 1.0 / 120.0;
  p = p * t + 1.0 / 24.0;
  p = p * t + 1.0 / 6.0;
  p = p * t + 0.5;
  const double power = 1.0 + (t + t * t * p);
  // The two outer ranges scale twice; the first product is exact, so that the result is rounded once.
  if (n > 1023) return power * 0x1p1023 * 2.0;
  if (n < -1021) return power * PowerOfTwo(n + 200) * 0x1p-200;
  return power * PowerOfTwo(n);
}

double Log2(double x) {
  double special;
  if (LogIsSpecial(x, &special)) return special;
  const Split split = SplitPositive(x);
  return split.e + LogNearOne(split.m) * kLog2E;
}

double Log(double x) {
  double special;
  if (LogIsSpecial(x, &special)) return special;
  const Split split = SplitPositive(x);
  return split.e * kLn2High + (split.e * kLn2Low + LogNearOne(split.m));
}

double CosTurns(double x) {
  const double magnitude = x < 0.0 ? -x : x;
  if (!(magnitude < kInfinity)) return kNan;
  const Turns turns = SplitTurns(magnitude);
  const double t = turns.rest * kTwoPi;
  switch (turns.quarter) {
    case 1:
      return 0.0 - SinNearZero(t);
    case 2:
      return -CosNearZero(t);
    case 3:
      return SinNearZero(t);
    default:
      return CosNearZero(t);
  }
}

double SinTurns(double x) {
  const double magnitude = x < 0.0 ? -x : x;
  if (!(magnitude < kInfinity)) return kNan;
  const Turns turns = SplitTurns(magnitude);
  const double t = turns.rest * kTwoPi;
  double sin;
  switch (turns.quarter) {
    case 1:
      sin = CosNearZero(t);
      break;
    case 2:
      sin = 0.0 - SinNearZero(t);
      break;
    case 3:
      sin = -CosNearZero(t);
      break;
    default:
      sin = SinNearZero(t);
  }
  return x < 0.0 ? 0.0 - sin : sin;
}

}  // namespace scaletrace
