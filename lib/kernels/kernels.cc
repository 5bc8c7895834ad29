// The vector kernels, compiled once for each instruction set. What they must equal: reference.cc. Who packs the layouts and sets the flushing mode: model/.
#include "kernels/kernels.h"

// Targets with vectors of unknown length can't hold them in arrays; NEON serves those processors.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/kernels.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/sum_rows-inl.h"
#include "kernels/vectors-inl.h"
// clang-format on

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace scaletrace {
namespace HWY_NAMESPACE {
namespace {

// The random bits of stochastic rounding, and rounding in general.
using Words = hn::RebindToUnsigned<Floats>;
using VU = hn::Vec<Words>;
HWY_INLINE VU Word(std::uint32_t v) { return hn::Set(Words(), v); }

// Word 0 of Philox4x32-10, lane by lane: RoundingBits of base/random.h, which the tests compare it with.
HWY_NOINLINE void RoundingBitsOfLanes(std::uint64_t seed, std::uint64_t draw, std::uint32_t stream, std::uint32_t* HWY_RESTRICT lanes) {
  std::uint32_t c1[kLanes], c2[kLanes], c3[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) {
    c1[i] = static_cast<std::uint32_t>(draw);
    c2[i] = stream;
    c3[i] = static_cast<std::uint32_t>(draw >> 32);
  }
  auto k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * lanes[i], b = std::uint64_t{0xCD9E8D57} * c2[i];
      const auto next0 = static_cast<std::uint32_t>(b >> 32) ^ c1[i] ^ k0, next2 = static_cast<std::uint32_t>(a >> 32) ^ c3[i] ^ k1;
      c1[i] = static_cast<std::uint32_t>(b);
      c3[i] = static_cast<std::uint32_t>(a);
      lanes[i] = next0;
      c2[i] = next2;
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
}

// Everything that numerics/format.h defines, as there: any mode, saturation, flushing. Slower than the others.
struct RoundGenerally {
  RoundGenerally(const StepRounding& step, Role role, std::uint64_t step_draw, std::uint32_t level = 0)
      : mode(step[role].mode),
        saturate(step[role].saturate),
        flush(step[role].flush_subnormals),
        format(&step[role].format),
        nothing(step[role].is_nothing()),
        seed(step.seed),
        draw(step_draw),
        stream(9 + 256 * RoundingTensor(role, level)) {}

  HWY_INLINE VF operator()(VF v, VI index) const {
    if (nothing) return v;
    const Words du;
    const VU magnitude = hn::And(hn::BitCast(du, v), Word(0x7FFFFFFF));
    const VI sign = hn::AndNot(Int(kMagnitude), Bits(v));
    VU random = Word(0);
    if (mode == RoundingMode::kStochastic) {
      HWY_ALIGN std::uint32_t lanes[kLanes];
      hn::Store(hn::BitCast(du, index), du, lanes);
      RoundingBitsOfLanes(seed, draw, stream, lanes);
      random = hn::ShiftRight<1>(hn::Load(du, lanes));
    }
    // The significand as an integer, and how many of its places are dropped.
    VU significand = magnitude;
    VU places = Word(static_cast<std::uint32_t>(23 - format->mantissa_bits));
    const VI exponent = hn::BitCast(Ints(), hn::ShiftRight<23>(magnitude));
    const bool own_subnormals = format->bias != 127;
    const auto is_small = hn::Lt(exponent, Int(own_subnormals ? 128 - format->bias : 0));
    if (own_subnormals) {
      const VI implicit = hn::Or(hn::And(hn::BitCast(Ints(), magnitude), Int(0x7FFFFF)), Int(0x800000));
      const VI exact = hn::IfThenElse(hn::Gt(exponent, Int(0)), implicit, hn::BitCast(Ints(), magnitude));
      const VI wanted = hn::Sub(Int(23 - format->mantissa_bits + 128 - format->bias), hn::Max(exponent, Int(1)));
      // More than 31 places are below every half; a significand has 24.
      const VI beyond = hn::Min(hn::Max(hn::Sub(wanted, Int(31)), Int(0)), Int(31));
      const VU shifted = hn::Shr(hn::BitCast(du, exact), hn::BitCast(du, beyond));
      significand = hn::BitCast(du, hn::IfThenElse(is_small, hn::BitCast(Ints(), shifted), hn::BitCast(Ints(), magnitude)));
      places = hn::BitCast(du, hn::IfThenElse(is_small, hn::Min(wanted, Int(31)), hn::BitCast(Ints(), places)));
    }
    VU increment = Word(0);
    if (mode == RoundingMode::kStochastic) {
      increment = hn::Shr(random, hn::Sub(Word(31), places));
    } else if (mode == RoundingMode::kNearestEven) {
      const VU odd = hn::And(hn::Shr(significand, places), Word(1));
      // With no place dropped: 1/2 - 1 + odd would be there, and 0 is due.
      const VU half = hn::ShiftRight<1>(hn::Shl(Word(1), places));
      increment = hn::BitCast(du, hn::IfThenElseZero(hn::Gt(hn::BitCast(Ints(), places), Int(0)),
                                                     hn::BitCast(Ints(), hn::Add(hn::Sub(half, Word(1)), odd))));
    }
    const VU count = hn::Shr(hn::Add(significand, increment), places);
    VI rounded = hn::BitCast(Ints(), hn::Shl(count, places));
    if (own_subnormals) {
      const VF small = hn::Mul(hn::ConvertTo(Floats(), hn::BitCast(Ints(), count)), hn::Set(Floats(), format->smallest_subnormal()));
      rounded = hn::IfThenElse(is_small, Bits(small), rounded);
    }

    const std::int32_t largest = BitsOf(format->max_finite);
    const std::int32_t special = format->has_inf ? kInf : format->has_nan ? kQuietNan : largest;
    const VI infinite = Int(saturate ? largest : special);
    const VI finite = Int(saturate || mode == RoundingMode::kTowardZero ? largest : special);
    const VI beyond_largest = hn::IfThenElse(hn::Gt(hn::BitCast(Ints(), magnitude), Int(kInf - 1)), infinite, finite);
    rounded = hn::IfThenElse(hn::Gt(rounded, Int(largest)), beyond_largest, rounded);
    if (flush) rounded = hn::IfThenElse(hn::Lt(rounded, Int(BitsOf(format->smallest_normal()))), Int(0), rounded);
    rounded = hn::IfThenElse(hn::Gt(hn::BitCast(Ints(), magnitude), Int(kInf)), Int(kQuietNan), rounded);
    VI kept_sign = sign;
    if (!format->negative_zero) kept_sign = hn::IfThenElse(hn::Eq(rounded, Int(0)), Int(0), sign);
    return FromBits(hn::Or(rounded, kept_sign));
  }

  RoundingMode mode;
  bool saturate, flush;
  const Format* format;
  bool nothing;
  std::uint64_t seed, draw;
  std::uint32_t stream;
};

// The rounders of a step. One for all roles of the compute pass, but that the activations may stay exact:
template <class Round>
struct OneRounding {
  static constexpr bool kOne = true;
  Round round;
  bool activations;

  HWY_INLINE VF Weight(VF v, VI) const { return round(v); }
  HWY_INLINE VF Bias(VF v, VI) const { return round(v); }
  HWY_INLINE VF Dot(VF v, VI) const { return round(v); }
  HWY_INLINE VF Activation(VF v, VI) const { return activations ? round(v) : v; }
  HWY_INLINE VF OutputGradient(VF v, VI) const { return round(v); }
  HWY_INLINE VF Gradient(VF v, VI) const { return round(v); }
  HWY_INLINE auto Sum(std::uint32_t) const {
    return [r = round](VF v, VI) HWY_ATTR { return r(v); };
  }
};

// Or one each.
struct RoundingsByRole {
  static constexpr bool kOne = false;
  const StepRounding& step;
  std::uint64_t draw;
  RoundGenerally weight{step, Role::kWeight, draw}, bias{step, Role::kBias, draw}, dot{step, Role::kDot, draw},
      activation{step, Role::kActivation, draw}, output_gradient{step, Role::kOutputGradient, draw}, gradient{step, Role::kGradient, draw};

  HWY_INLINE VF Weight(VF v, VI index) const { return weight(v, index); }
  HWY_INLINE VF Bias(VF v, VI index) const { return bias(v, index); }
  HWY_INLINE VF Dot(VF v, VI index) const { return dot(v, index); }
  HWY_INLINE VF Activation(VF v, VI index) const { return activation(v, index); }
  HWY_INLINE VF OutputGradient(VF v, VI index) const { return output_gradient(v, index); }
  HWY_INLINE VF Gradient(VF v, VI index) const { return gradient(v, index); }
  HWY_INLINE RoundGenerally Sum(std::uint32_t level) const { return {step, Role::kGradientSum, draw, level}; }
};

// ---------------------------------------------------------------------------------------------------- the two products

// Outputs k0 .. k0+NK-1 at the columns j0 .. : sum over t of a[k, t] * x[t, j], t ascending, one fused multiply-add a term; of a single term the bare product.
template <int NK, int NV, class Use>
HWY_INLINE void Tile(std::size_t terms, const float* HWY_RESTRICT a, std::size_t a_stride, const float* HWY_RESTRICT x,
                     std::size_t x_stride, std::size_t k0, std::size_t j0, const Use& use) {
  const Floats d;
  VF sum[NK][NV];
  a += k0 * a_stride;
  x += j0;
  for (int k = 0; k < NK; ++k) {
    const VF first = hn::Set(d, a[static_cast<std::size_t>(k) * a_stride]);
    for (int v = 0; v < NV; ++v) {
      const VF column = hn::LoadU(d, x + static_cast<std::size_t>(v) * kLanes);
      sum[k][v] = terms == 1 ? hn::Mul(first, column) : Fma(first, column, hn::Zero(d));
    }
  }
  for (std::size_t t = 1; t < terms; ++t) {
    x += x_stride;
    VF columns[NV];
    for (int v = 0; v < NV; ++v) columns[v] = hn::LoadU(d, x + static_cast<std::size_t>(v) * kLanes);
    for (int k = 0; k < NK; ++k) {
      const VF factor = hn::Set(d, a[static_cast<std::size_t>(k) * a_stride + t]);
      for (int v = 0; v < NV; ++v) sum[k][v] = Fma(factor, columns[v], sum[k][v]);
    }
  }
  for (int k = 0; k < NK; ++k) {
    for (int v = 0; v < NV; ++v) {
      use(k0 + static_cast<std::size_t>(k), j0 + static_cast<std::size_t>(v) * kLanes, sum[k][v]);
    }
  }
}

template <int NV, class Use>
HWY_INLINE void Columns(std::size_t terms, std::size_t outputs, const float* a, std::size_t a_stride, const float* x,
                        std::size_t x_stride, std::size_t j0, const Use& use) {
  std::size_t k = 0;
  for (; k + 4 <= outputs; k += 4) Tile<4, NV>(terms, a, a_stride, x, x_stride, k, j0, use);
  for (; k < outputs; ++k) Tile<1, NV>(terms, a, a_stride, x, x_stride, k, j0, use);
}

// use(k, j, v): v holds the outputs k at columns j .. j + kLanes - 1, of which those beyond `columns` are rubbish. Lanes are columns, so the sums are those of the
// plain loop at any vector width. Register use: 4 x 4 sums and 4 columns of 32 registers, or 4 x 2 and 2 of 16.
template <class Use>
HWY_INLINE void Product(std::size_t terms, std::size_t columns, std::size_t outputs, const float* a, std::size_t a_stride,
                        const float* x, std::size_t x_stride, const Use& use) {
  constexpr int kWide = kLanes == 16 ? 4 : 2;
  std::size_t j = 0;
  for (; j + (kWide - 1) * kLanes < columns; j += kWide * kLanes) Columns<kWide>(terms, outputs, a, a_stride, x, x_stride, j, use);
  for (; j < columns; j += kLanes) Columns<1>(terms, outputs, a, a_stride, x, x_stride, j, use);
}

// ---------------------------------------------------------------------------------------------------- the loss

// Squares of the errors (K x stride), element i = row * K + k added to lane i mod 16, the lanes added in order.
HWY_INLINE float SumOfSquares(const float* errors, std::size_t stride, std::size_t rows, std::size_t outputs) {
  const Floats d;
  const Ints di;
  const std::size_t n = rows * outputs;
  VF sums[kGroups];
  for (std::size_t g = 0; g < kGroups; ++g) sums[g] = hn::Zero(d);
  const auto add = [&](std::size_t g, std::size_t at, VF e) {
    const VF square = hn::Mul(e, e);
    sums[g] = hn::Add(sums[g], at + kLanes <= n ? square : hn::IfThenElseZero(hn::FirstN(d, n - at), square));
  };
  if (outputs == 1) {
    for (std::size_t i = 0; i < n; i += kPad) {
      for (std::size_t g = 0; g < kGroups; ++g) {
        const std::size_t at = i + g * kLanes;
        if (at < n) add(g, at, hn::LoadU(d, errors + at));  // the padding of the row makes room
      }
    }
  } else {
    // Row and output of each lane's element, carried on by 16 elements a turn.
    const auto K = static_cast<std::int32_t>(outputs);
    VI row[kGroups], k[kGroups];
    std::int32_t next_row = 0, next_k = 0;
    for (std::size_t g = 0; g < kGroups; ++g) {
      HWY_ALIGN std::int32_t first_row[kLanes], first_k[kLanes];
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        first_row[lane] = next_row;
        first_k[lane] = next_k;
        if (++next_k == K) {
          next_k = 0;
          ++next_row;
        }
      }
      row[g] = hn::Load(di, first_row);
      k[g] = hn::Load(di, first_k);
    }
    const VI row_step = Int(16 / K), k_step = Int(16 % K), last_k = Int(K - 1), k_end = Int(K);
    const VI stride_vector = Int(static_cast<std::int32_t>(stride));
    for (std::size_t i = 0; i < n; i += kPad) {
      for (std::size_t g = 0; g < kGroups; ++g) {
        const std::size_t at = i + g * kLanes;
        if (at >= n) break;
        const VI index = hn::Add(hn::Mul(k[g], stride_vector), row[g]);
        add(g, at, hn::GatherIndex(d, errors, at + kLanes <= n ? index : hn::IfThenElseZero(hn::FirstN(di, n - at), index)));
        k[g] = hn::Add(k[g], k_step);
        const auto wrapped = hn::Gt(k[g], last_k);
        k[g] = hn::Sub(k[g], hn::IfThenElseZero(wrapped, k_end));
        row[g] = hn::Add(hn::Add(row[g], row_step), hn::IfThenElseZero(wrapped, Int(1)));
      }
    }
  }
  HWY_ALIGN float lanes[kPad];
  for (std::size_t g = 0; g < kGroups; ++g) hn::Store(sums[g], d, lanes + g * kLanes);
  // Lanes that got nothing are +0 and would change nothing.
  float sum = lanes[0];
  for (std::size_t lane = 1; lane < std::min(n, kPad); ++lane) sum += lanes[lane];
  return sum;
}

// ---------------------------------------------------------------------------------------------------- the step

// round(v, index) over n floats, the first of which is entry `first`.
template <class Round>
HWY_INLINE void RoundAll(const Round& round, std::size_t first, const float* in, std::size_t n, float* out) {
  ForEachVector(in, n, [&](std::size_t i, VF v, std::size_t count) { StoreCount(round(v, Entries(first + i)), count, out + i); });
}

template <class Roles>
HWY_NOINLINE float GradientsIn(const Roles& roles, const GradientArgs& args) {
  const Floats d;
  const std::size_t B = args.rows, D = args.features, K = args.outputs, n = B * K, weights = K * D;
  const std::size_t row_stride = Padded(B);
  const auto weight = [&](VF v, VI index) HWY_ATTR { return roles.Weight(v, index); };
  if constexpr (Roles::kOne) {
    RoundAll(weight, 0, args.parameters, weights + K, args.rounded);
  } else {
    RoundAll(weight, 0, args.parameters, weights, args.rounded);
    RoundAll([&](VF v, VI index) HWY_ATTR { return roles.Bias(v, index); }, weights, args.parameters + weights, K, args.rounded + weights);
  }

  const float* HWY_RESTRICT bias = args.rounded + weights;
  const float inverse_n = 1.0f / static_cast<float>(n);
  // g = R((S c) e) with c = 2/n; a single target is R(S (2 e)). A micro-batch has c = 2/n times its share.
  const bool single = n == 1 && args.share == 1.0f;
  const VF before = hn::Set(d, single ? 2.0f : 1.0f);
  const VF factor = hn::Set(d, single ? args.loss_scale : args.loss_scale * (2.0f * inverse_n * args.share));
  const bool keep = args.activations != nullptr;
  Product(D, B, K, args.rounded, D, args.x_by_feature, row_stride, [&](std::size_t k, std::size_t j, VF h) HWY_ATTR {
    const VI entry = Entries(k * B + j);
    const VF sum = hn::Add(roles.Dot(h, entry), hn::Set(d, bias[k]));
    const VF activation = roles.Activation(sum, entry);
    const std::size_t at = k * row_stride + j;
    const VF e = hn::Sub(activation, hn::LoadU(d, args.y + at));
    hn::StoreU(e, d, args.errors + at);
    const VF exact = hn::Mul(factor, hn::Mul(before, e));
    hn::StoreU(roles.OutputGradient(exact, entry), d, args.signals + at);
    if (keep) {
      hn::StoreU(sum, d, args.sums_with_bias + at);
      hn::StoreU(activation, d, args.activations + at);
      hn::StoreU(exact, d, args.exact_signals + at);
    }
  });
  const float loss = SumOfSquares(args.errors, row_stride, B, K) * inverse_n;

  float* const gb = args.gradients + weights;
  SumRows(roles, args.signals, row_stride, B, K, args.sums, gb);
  if (keep) std::copy(gb, gb + K, args.exact_gradients + weights);
  // In one format the sum is rounded to it already.
  if constexpr (!Roles::kOne) RoundAll([&](VF v, VI index) HWY_ATTR { return roles.Gradient(v, index); }, weights, gb, K, gb);
  Product(B, D, K, args.signals, row_stride, args.x_by_row, Padded(D), [&](std::size_t k, std::size_t j, VF sum) HWY_ATTR {
    const std::size_t at = k * D + j, count = std::min(kLanes, D - j);
    StoreCount(roles.Gradient(sum, Entries(at)), count, args.gradients + at);
    if (keep) StoreCount(sum, count, args.exact_gradients + at);
  });
  return loss;
}

// f(rounder) with the cheapest rounder to nearest for the format.
template <class F>
HWY_INLINE auto WithNearest(const Format& format, const F& f) {
  if (format.mantissa_bits == 23 && format.bias == 127) return f(RoundNothing(format));
  if (format.bias == 127 && format.mantissa_bits == 7) return f(RoundBfloat16(format));
  return f(RoundAny(format));
}

// f(make) where make(draw) gives the cheapest rounders of a step.
template <class F>
HWY_INLINE auto WithRoles(const StepRounding& step, const F& f) {
  // Without dropped places RoundAny has no half.
  const Format& format = step[Role::kDot].format;
  if (!IsUniform(step) || (format.mantissa_bits == 23 && format.bias != 127)) {
    return f([&](std::uint64_t draw) HWY_ATTR { return RoundingsByRole{step, draw}; });
  }
  const bool activations = !step[Role::kActivation].is_nothing();
  return WithNearest(format, [&](const auto& round) HWY_ATTR {
    const OneRounding<std::remove_cvref_t<decltype(round)>> roles = {round, activations};
    return f([&](std::uint64_t) HWY_ATTR { return roles; });
  });
}

float Gradients(const GradientArgs& args) {
  return WithRoles(*args.rounding, [&](const auto& make) HWY_ATTR { return GradientsIn(make(args.draw), args); });
}

void RoundTo(const StepRounding& rounding, Role role, std::uint64_t draw, std::size_t first, const float* in, std::size_t n, float* out) {
  const Rounding& r = rounding[role];
  if (r.is_plain() && (r.format.mantissa_bits < 23 || r.format.bias == 127)) {
    WithNearest(r.format, [&](const auto& round) HWY_ATTR { RoundAll([&](VF v, VI) HWY_ATTR { return round(v); }, first, in, n, out); });
  } else {
    RoundAll(RoundGenerally(rounding, role, draw), first, in, n, out);
  }
}

// Whether the magnitudes, as bits, are all of finite numbers.
HWY_INLINE bool AllFinite(VI magnitudes) { return hn::AllFalse(Ints(), hn::Gt(magnitudes, Int(kInf - 1))); }

Finite Divide(const float* dividends, float divisor, std::size_t n, float* quotients) {
  const VF divisors = hn::Set(Floats(), divisor);
  VI before = Int(0), after = Int(0);
  ForEachVector(dividends, n, [&](std::size_t i, VF v, std::size_t count) {
    const VF quotient = hn::Div(v, divisors);
    StoreCount(quotient, count, quotients + i);
    const VI magnitude = hn::And(Bits(quotient), Int(kMagnitude));
    before = hn::Max(before, hn::And(Bits(v), Int(kMagnitude)));
    // 0/0 in the lanes behind the end must not count.
    after = hn::Max(after, count == kLanes ? magnitude : hn::IfThenElseZero(hn::FirstN(Ints(), count), magnitude));
  });
  return {AllFinite(before), AllFinite(after)};
}

void Update(const UpdateArgs& args) {
  const auto set = [](float v) HWY_ATTR { return hn::Set(Floats(), v); };
  const VF minus_lr = set(-args.lr);
  const RoundGenerally master(*args.rounding, Role::kMaster, args.draw);
  ForEachVector(args.gradients, args.n, [&](std::size_t i, VF g, std::size_t count) HWY_ATTR {
    VF p = LoadCount(args.parameters + i, count);
    if (args.weight_decay != 0) g = Fma(set(args.weight_decay), p, g);
    VF change = g;
    if (args.rule != UpdateRule::kSgd) {
      const bool adam = args.rule == UpdateRule::kAdam;
      const VF m = Fma(set(adam ? args.beta1 : args.momentum), LoadCount(args.first + i, count), adam ? hn::Mul(set(args.one_minus_beta1), g) : g);
      StoreCount(m, count, args.first + i);
      change = args.rule == UpdateRule::kNesterov ? Fma(set(args.momentum), m, g) : m;
      if (adam) {
        const VF v = Fma(set(args.beta2), LoadCount(args.second + i, count), hn::Mul(hn::Mul(set(args.one_minus_beta2), g), g));
        StoreCount(v, count, args.second + i);
        change = hn::Div(m, hn::Add(hn::Sqrt(hn::Div(v, set(args.correction2))), set(args.epsilon)));
      }
    }
    if (args.shrink != 0) p = Fma(set(-args.shrink), p, p);
    StoreCount(master(Fma(minus_lr, change, p), Entries(i)), count, args.parameters + i);
  });
}

void Multiply(float factor, std::size_t n, float* values) {
  const VF factors = hn::Set(Floats(), factor);
  ForEachVector(values, n, [&](std::size_t i, VF v, std::size_t count) HWY_ATTR { StoreCount(hn::Mul(v, factors), count, values + i); });
}

void Observe(const Rounding& rounding, const float* before, const float* after, std::size_t n, TensorCounts& counts) {
  const Ints di;
  const VI largest = Int(BitsOf(rounding.format.max_finite)), normal = Int(BitsOf(rounding.format.smallest_normal()));
  const VI zero = Int(0), inf = Int(kInf);
  // A true lane is -1, and so a count that goes down. A lane overflows its 31 bits after more entries than a tensor has.
  VI underflow = zero, subnormal = zero, saturated = zero, overflow = zero, max = zero, min = Int(kMagnitude);
  ForEachVector(before, n, [&](std::size_t i, VF b, std::size_t count) HWY_ATTR {
    // Lanes behind the end are zeros, which count as nothing.
    const VI was = hn::And(Bits(b), Int(kMagnitude));
    const VI is = hn::And(Bits(LoadCount(after + i, count)), Int(kMagnitude));
    const auto nonzero = hn::Gt(was, zero), gone = hn::Eq(is, zero);
    underflow = hn::Add(underflow, hn::VecFromMask(di, hn::And(nonzero, gone)));
    subnormal = hn::Add(subnormal, hn::VecFromMask(di, hn::AndNot(gone, hn::Lt(is, normal))));
    saturated = hn::Add(saturated, hn::VecFromMask(di, hn::And(hn::And(hn::Gt(was, largest), hn::Eq(is, largest)), hn::Not(hn::Gt(was, inf)))));
    overflow = hn::Add(overflow, hn::VecFromMask(di, hn::And(hn::Lt(was, inf), hn::Gt(is, Int(kInf - 1)))));
    max = hn::Max(max, was);
    min = hn::Min(min, hn::IfThenElse(nonzero, was, Int(kMagnitude)));
  });
  counts.entries += n;
  const auto total = [&](VI lanes) HWY_ATTR {
    HWY_ALIGN std::int32_t all[kLanes];
    hn::Store(lanes, di, all);
    std::uint64_t sum = 0;
    for (const std::int32_t lane : all) sum += static_cast<std::uint64_t>(-static_cast<std::int64_t>(lane));
    return sum;
  };
  counts.underflow += total(underflow);
  counts.subnormal += total(subnormal);
  counts.saturated += total(saturated);
  counts.overflow += total(overflow);
  HWY_ALIGN std::int32_t highest[kLanes], lowest[kLanes];
  hn::Store(max, di, highest);
  hn::Store(min, di, lowest);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    counts.max_bits = std::max(counts.max_bits, static_cast<std::uint32_t>(highest[lane]));
    if (lowest[lane] != kMagnitude) counts.min_bits = std::min(counts.min_bits, static_cast<std::uint32_t>(lowest[lane]));
  }
}

// ---------------------------------------------------------------------------------------------------- small steps

// One output, rows that fit NV vectors and at most 32, features that fit one vector, bfloat16 to nearest, S a power of two from 1 to 2^126: then 1/S is exact, and quotients are finite where
// gradients are. Parameters stay in registers from step to step. What a step takes is the chain of additions of the sum over the rows; a step's dots run beside the chain of the step before,
// for they don't need its bias.
template <int NV>
HWY_NOINLINE Stretch SmallStretch(const StretchArgs& args) {
  const Floats d;
  const GradientArgs& in = args.gradients;
  const std::size_t B = in.rows, D = in.features, x_stride = Padded(B), row_stride = Padded(D);
  const bool strict = !(*in.rounding)[Role::kActivation].is_nothing();
  const float inverse_n = 1.0f / static_cast<float>(B);
  const VF factor = hn::Set(d, in.loss_scale * (2.0f * inverse_n));
  const VF reciprocal = hn::Set(d, 1.0f / in.loss_scale), minus_lr = hn::Set(d, -args.lr);
  const VI features = hn::IfThenElseZero(hn::FirstN(Ints(), D), Int(kMagnitude));
  const RoundCleanBfloat16 round;
  VI rows[NV];
  VF y[NV];
  for (std::size_t v = 0; v < NV; ++v) {
    rows[v] = B <= v * kLanes ? Int(0) : hn::IfThenElseZero(hn::FirstN(Ints(), std::min(kLanes, B - v * kLanes)), Int(-1));
    y[v] = hn::LoadU(d, in.y + v * kLanes);
  }
  VF w = LoadCount(args.parameters, D), b = hn::Set(d, args.parameters[D]);
  HWY_ALIGN float weights[kLanes], signals[NV * kLanes], squares[NV * kLanes > kPad ? NV * kLanes : kPad];
  Stretch stretch;
  stretch.in_registers = true;
  VF gw = hn::Zero(d), gb = gw;
  while (stretch.applied < args.steps) {
    hn::Store(round(w), d, weights);
    const VF bias = round(b);
    VF h[NV];
    for (VF& sum : h) sum = hn::Zero(d);
    for (std::size_t f = 0; f < D; ++f) {
      const VF weight = hn::Set(d, weights[f]);
      for (std::size_t v = 0; v < NV; ++v) h[v] = Fma(weight, hn::LoadU(d, in.x_by_feature + f * x_stride + v * kLanes), h[v]);
    }
    for (std::size_t v = 0; v < NV; ++v) {
      VF activation = hn::Add(round(h[v]), bias);
      if (strict) activation = round(activation);
      const VF e = FromBits(hn::And(Bits(hn::Sub(activation, y[v])), rows[v]));
      hn::Store(round(hn::Mul(factor, e)), d, signals + v * kLanes);
      hn::Store(hn::Mul(e, e), d, squares + v * kLanes);
    }
    gw = gb = hn::Zero(d);
    for (std::size_t i = 0; i < B; ++i) {
      const VF g = hn::Set(d, signals[i]);
      gw = Fma(g, hn::LoadU(d, in.x_by_row + i * row_stride), gw);
      gb = round(hn::Add(gb, g));
    }
    gw = round(gw);
    // Lane i mod 16 of the loss has one square or two.
    float loss = squares[0] + (B > 16 ? squares[16 % (NV * kLanes)] : 0.0f);
    for (std::size_t lane = 1; lane < std::min(B, kPad); ++lane) loss += lane + kPad < B ? squares[lane] + squares[(lane + kPad) % (NV * kLanes)] : squares[lane];
    args.losses[stretch.applied] = loss * inverse_n;
    const VI most = hn::Max(hn::And(Bits(gw), features), hn::And(Bits(gb), Int(kMagnitude)));
    if (HWY_UNLIKELY(!AllFinite(most))) break;
    w = Fma(minus_lr, hn::Mul(gw, reciprocal), w);
    b = Fma(minus_lr, hn::Mul(gb, reciprocal), b);
    ++stretch.applied;
  }
  StoreCount(w, D, args.parameters);
  args.parameters[D] = hn::GetLane(b);
  StoreCount(gw, D, in.gradients);
  in.gradients[D] = hn::GetLane(gb);
  stretch.finite = Divide(in.gradients, in.loss_scale, D + 1, args.quotients);
  return stretch;
}

bool IsSmallStretch(const StretchArgs& args) {
  const GradientArgs& in = args.gradients;
  const StepRounding& rounding = *in.rounding;
  const Format& format = rounding[Role::kDot].format;
  const std::int32_t scale = BitsOf(in.loss_scale);
  return in.outputs == 1 && in.rows >= 2 && in.rows <= 32 && in.features >= 2 && in.features <= kLanes && in.share == 1.0f && in.activations == nullptr &&
         IsUniform(rounding) && format.bias == 127 && format.mantissa_bits == 7 && rounding[Role::kMaster].is_nothing() && (scale & 0x7FFFFF) == 0 &&
         scale >= 0x3F800000 && scale <= 0x7E800000;
}

Stretch TakeStretch(const StretchArgs& args) {
  if (IsSmallStretch(args)) {
    if (args.gradients.rows <= kLanes) return SmallStretch<1>(args);
    if (args.gradients.rows <= 2 * kLanes) return SmallStretch<2>(args);
    if (kLanes == 8) return SmallStretch<4>(args);
  }
  const std::size_t n = args.gradients.outputs * (args.gradients.features + 1);
  UpdateArgs update = {.n = n, .gradients = args.quotients, .parameters = args.parameters, .lr = args.lr, .rounding = args.gradients.rounding};
  return WithRoles(*args.gradients.rounding, [&](const auto& make) HWY_ATTR {
    Stretch stretch;
    update.draw = args.gradients.draw;
    while (stretch.applied < args.steps) {
      args.losses[stretch.applied] = GradientsIn(make(update.draw), args.gradients);
      stretch.finite = Divide(args.gradients.gradients, args.gradients.loss_scale, n, args.quotients);
      if (!stretch.finite.before || !stretch.finite.after) break;
      Update(update);
      ++stretch.applied;
      ++update.draw;
    }
    return stretch;
  });
}

KernelTable Table() {
  return {hwy::TargetName(HWY_TARGET), &Gradients, &Divide, &Update, &Multiply, &TakeStretch, &RoundTo, &Observe};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace scaletrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace scaletrace {
namespace {

HWY_EXPORT(Table);

struct Compiled {
  std::vector<KernelTable> tables;
  std::vector<std::string_view> names;

  // Highway chooses by a process-wide mask. It is set here for each target in turn and put back before anyone else sees it; a target
  // that was not compiled in would silently give another one's table, so that the table's own name decides.
  Compiled() {
    for (int bit = 0; bit < 63; ++bit) {
      const std::int64_t target = std::int64_t{1} << bit;
      if ((HWY_TARGETS & target) == 0) continue;
      names.push_back(hwy::TargetName(target));
    }
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(target);
      const KernelTable table = HWY_DYNAMIC_DISPATCH(Table)();
      if (table.target == hwy::TargetName(target)) tables.push_back(table);
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
};

const Compiled& All() {
  static const Compiled compiled;
  return compiled;
}

}  // namespace

std::span<const KernelTable> CompiledKernels() { return All().tables; }
std::span<const std::string_view> CompiledTargetNames() { return All().names; }

const KernelTable* FindKernels(std::string_view target) {
  for (const KernelTable& table : All().tables) {
    if (target.empty() || table.target == target) return &table;
  }
  return nullptr;
}

}  // namespace scaletrace
#endif  // HWY_ONCE
