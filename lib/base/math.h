// The few transcendental functions on the way to a byte of a trace, in plain double arithmetic: the same bits on every
// platform and compiler, which libm does not promise. Needs a build without contraction (-ffp-contract=off) and a
// target with IEEE doubles.
#ifndef SCALETRACE_BASE_MATH_H_
#define SCALETRACE_BASE_MATH_H_

namespace scaletrace {

// 2^x, log2(x), natural log, cos(2 pi x), sin(2 pi x). Relative error below 4 ulp where the result is normal; for the
// two last ones absolute error below 2^-50, exact at multiples of 1/4. Exp2: 0 below -1075, inf from 1024 on, exact for
// integers. Log2 is exact for powers of two; Log2(0) = -inf, of a negative number or NaN: NaN. NaN in, NaN out;
// CosTurns and SinTurns of an infinity: NaN.
double Exp2(double x);
double Log2(double x);
double Log(double x);
double CosTurns(double x);
double SinTurns(double x);

}  // namespace scaletrace

#endif  // SCALETRACE_BASE_MATH_H_
