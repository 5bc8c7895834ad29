// The kernels whose lanes are runs, compiled once for each instruction set. What they must equal: reference.cc. Who fills the lanes: train/many_runs.cc.
#include "kernels/many_runs.h"

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/many_runs.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/vectors-inl.h"
// clang-format on

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace scaletrace {
namespace HWY_NAMESPACE {
namespace {

HWY_INLINE VF Load(const float* from) { return hn::Load(Floats(), from); }
HWY_INLINE void Store(VF v, float* to) { hn::Store(v, Floats(), to); }

template <class F>
HWY_INLINE auto WithRounding(const Format& format, const F& f) {
  if (format.mantissa_bits == 23) return f(RoundNothing(format));
  if (format.bias == 127 && format.mantissa_bits == 7) return f(RoundCleanBfloat16(format));
  return f(RoundAny(format));
}

// ---------------------------------------------------------------------------------------------------- what all shapes share

// Lanes whose number is NaN.
HWY_INLINE std::uint64_t NanLanes(VF v) {
  HWY_ALIGN std::int32_t magnitudes[kLanes];
  hn::Store(hn::And(Bits(v), Int(kMagnitude)), Ints(), magnitudes);
  std::uint64_t lanes = 0;
  for (std::size_t i = 0; i < kLanes; ++i) lanes |= std::uint64_t{magnitudes[i] > kInf} << i;
  return lanes;
}

// What happens to the gradients of a step. kPlain: every S is a power of two from 1 to 2^126. Then its reciprocal is a normal number, the product with it is the quotient, and a
// gradient is finite after the division where it is before.
template <int NV, bool kPlain>
struct Unscaler {
  explicit Unscaler(const ManyArgs& args) {
    for (int v = 0; v < NV; ++v) {
      const VF scale = Load(args.loss_scale + static_cast<std::size_t>(v) * kLanes);
      divide[v] = kPlain ? hn::Div(hn::Set(Floats(), 1.0f), scale) : scale;
      minus_lr[v] = hn::Neg(Load(args.lr + static_cast<std::size_t>(v) * kLanes));
    }
  }
  HWY_INLINE VF operator()(int v, VF g) const { return kPlain ? hn::Mul(g, divide[v]) : hn::Div(g, divide[v]); }
  VF divide[NV], minus_lr[NV];
};

// 0 as long as everything was finite, NaN in a lane where something was not.
template <int NV, bool kPlain>
struct Flags {
  HWY_INLINE void Clear() {
    for (int v = 0; v < NV; ++v) scaled[v] = unscaled[v] = hn::Zero(Floats());
  }
  HWY_INLINE void See(int v, VF g, VF u) {
    scaled[v] = Fma(g, hn::Zero(Floats()), scaled[v]);
    if (!kPlain) unscaled[v] = Fma(u, hn::Zero(Floats()), unscaled[v]);
  }
  HWY_INLINE bool AllFinite() const {
    VF all = kPlain ? scaled[0] : hn::Add(scaled[0], unscaled[0]);
    for (int v = 1; v < NV; ++v) all = hn::Add(all, kPlain ? scaled[v] : hn::Add(scaled[v], unscaled[v]));
    return hn::AllTrue(Floats(), hn::Eq(all, all));
  }
  void Tell(ManySteps& out) const {
    for (int v = 0; v < NV; ++v) {
      const int shift = v * static_cast<int>(kLanes);
      out.scaled_bad |= NanLanes(scaled[v]) << shift;
      out.unscaled_bad |= NanLanes(kPlain ? scaled[v] : unscaled[v]) << shift;
    }
  }
  VF scaled[NV], unscaled[NV];
};

// The last time that a loss was within its limit.
template <int NV>
struct Watch {
  Watch(const ManyArgs& a, std::int32_t time) : args(a), now(Int(time)) {
    for (int v = 0; v < NV; ++v) {
      limit[v] = Load(args.loss_limit + static_cast<std::size_t>(v) * kLanes);
      last[v] = hn::Load(Ints(), args.last_within + static_cast<std::size_t>(v) * kLanes);
    }
  }
  HWY_INLINE void See(int v, VF loss) { last[v] = hn::IfThenElse(hn::RebindMask(Ints(), hn::Le(loss, limit[v])), now, last[v]); }
  HWY_INLINE void Tick() { now = hn::Add(now, Int(1)); }
  void Tell() const {
    for (int v = 0; v < NV; ++v) hn::Store(last[v], Ints(), args.last_within + static_cast<std::size_t>(v) * kLanes);
  }
  const ManyArgs& args;
  VI now;
  VF limit[NV];
  VI last[NV];
};

// S c with c = 2/n; S for a single target, whose error is doubled instead.
HWY_INLINE VF Factor(const ManyArgs& args, std::size_t n, std::size_t v) {
  const VF scale = Load(args.loss_scale + v * kLanes);
  return n == 1 ? scale : hn::Mul(scale, hn::Set(Floats(), 2.0f * (1.0f / static_cast<float>(n))));
}

// ---------------------------------------------------------------------------------------------------- one output, few features: all but the rows in registers

// Two to 32 rows (kB of them, 0: as many as the shape says), kD >= 2 features, one output.
template <int kB, int kD, int NV, bool kPlain, class Round>
HWY_NOINLINE ManySteps FewFeatures(const Round& round, const ManyArgs& args, std::size_t steps, std::int32_t time) {
  const Floats d;
  constexpr std::size_t W = NV * kLanes;
  const std::size_t B = kB > 0 ? kB : args.shape.rows;
  const bool strict = args.round_predictions;
  const VF inverse_n = hn::Set(d, 1.0f / static_cast<float>(B));
  const Unscaler<NV, kPlain> unscale(args);
  Watch<NV> watch(args, time);
  const float* HWY_RESTRICT x_of = args.x;
  const float* HWY_RESTRICT y_of = args.y;

  VF factor[NV], p[kD + 1][NV];
  for (std::size_t v = 0; v < NV; ++v) {
    factor[v] = Factor(args, B, v);
    for (std::size_t i = 0; i <= kD; ++i) p[i][v] = Load(args.parameters + i * W + v * kLanes);
  }
  HWY_ALIGN float squares[kB > 0 ? 1 : 16 * W];

  for (std::size_t step = 0;; ++step) {
    VF rounded[kD + 1][NV], g[kD + 1][NV], loss[NV];
    for (int i = 0; i <= kD; ++i) {
      for (int v = 0; v < NV; ++v) {
        rounded[i][v] = round(p[i][v]);
        g[i][v] = hn::Zero(d);
      }
    }
    // Some rows side by side, since each is one long chain of dependent operations.
    const auto take = [&](std::size_t i, auto tile) HWY_ATTR {
      constexpr std::size_t kRows = decltype(tile)::value;
      const float* HWY_RESTRICT x = x_of + i * kD * W;
      VF h[kRows][NV];
      const auto each = [&](const auto& body) HWY_ATTR {
        for (std::size_t r = 0; r < kRows; ++r) {
          for (std::size_t v = 0; v < NV; ++v) body(r, v);
        }
      };
      each([&](std::size_t r, std::size_t v) HWY_ATTR { h[r][v] = hn::Zero(d); });
      for (std::size_t k = 0; k < kD; ++k) {
        each([&](std::size_t r, std::size_t v) HWY_ATTR { h[r][v] = Fma(Load(x + (r * kD + k) * W + v * kLanes), rounded[k][v], h[r][v]); });
      }
      each([&](std::size_t r, std::size_t v) HWY_ATTR { h[r][v] = hn::Add(round(h[r][v]), rounded[kD][v]); });
      if (strict) each([&](std::size_t r, std::size_t v) HWY_ATTR { h[r][v] = round(h[r][v]); });
      each([&](std::size_t r, std::size_t v) HWY_ATTR {
        const VF e = hn::Sub(h[r][v], Load(y_of + (i + r) * W + v * kLanes));
        h[r][v] = round(hn::Mul(factor[v], e));
        const VF square = hn::Mul(e, e);
        if (kB > 0) {
          loss[v] = i + r == 0 ? square : hn::Add(loss[v], square);
        } else {
          float* to = squares + (i + r) % 16 * W + v * kLanes;
          Store(i + r < 16 ? square : hn::Add(Load(to), square), to);
        }
      });
      each([&](std::size_t r, std::size_t v) HWY_ATTR {
        // The sum of nothing and a number of the format is one.
        const VF sum = hn::Add(g[kD][v], h[r][v]);
        g[kD][v] = kB > 0 && i + r == 0 ? sum : round(sum);
      });
      // Features side by side: the rows of one are a chain.
      each([&](std::size_t r, std::size_t v) HWY_ATTR {
        for (std::size_t k = 0; k < kD; ++k) g[k][v] = Fma(h[r][v], Load(x + (r * kD + k) * W + v * kLanes), g[k][v]);
      });
    };
    if constexpr (kB > 0) {
      static_assert(kB <= 16, "more squares than lanes of the loss");
      take(0, std::integral_constant<std::size_t, kB>());
    } else {
      std::size_t i = 0;
      for (; i + 4 <= B; i += 4) take(i, std::integral_constant<std::size_t, 4>());
      for (; i < B; ++i) take(i, std::integral_constant<std::size_t, 1>());
      for (std::size_t v = 0; v < NV; ++v) {
        loss[v] = Load(squares + v * kLanes);
        for (i = 1; i < std::min<std::size_t>(B, 16); ++i) loss[v] = hn::Add(loss[v], Load(squares + i * W + v * kLanes));
      }
    }
    Flags<NV, kPlain> flags;
    flags.Clear();
    VF u[kD + 1][NV];
    for (int v = 0; v < NV; ++v) {
      loss[v] = hn::Mul(loss[v], inverse_n);
      watch.See(v, loss[v]);
      for (int i = 0; i <= kD; ++i) {
        if (i < kD) g[i][v] = round(g[i][v]);
        u[i][v] = unscale(v, g[i][v]);
        flags.See(v, g[i][v], u[i][v]);
      }
    }
    watch.Tick();
    if (HWY_UNLIKELY(step == steps || !flags.AllFinite())) {
      ManySteps out;
      out.applied = step;
      flags.Tell(out);
      watch.Tell();
      for (std::size_t v = 0; v < NV; ++v) {
        Store(loss[v], args.losses + v * kLanes);
        for (std::size_t i = 0; i <= kD; ++i) {
          Store(p[i][v], args.parameters + i * W + v * kLanes);
          Store(g[i][v], args.gradients + i * W + v * kLanes);
        }
      }
      return out;
    }
    for (int v = 0; v < NV; ++v) {
      for (int i = 0; i <= kD; ++i) p[i][v] = Fma(unscale.minus_lr[v], u[i][v], p[i][v]);
    }
  }
}

// ---------------------------------------------------------------------------------------------------- any shape

constexpr std::size_t kBlock = 32;

// The sum over the rows of one output of one vector of runs, in the compute format. terms: rows entries; scratch: 2 * ceil(rows / 32) entries where there are more than 32.
template <class Round>
HWY_INLINE VF SumOfRows(const Round& round, const float* terms, std::size_t rows, std::size_t W, float* scratch) {
  if (rows == 1) return Load(terms);
  while (rows > kBlock) {
    const std::size_t blocks = (rows + kBlock - 1) / kBlock;
    const std::size_t front = (blocks * kBlock - rows) / 2;
    for (std::size_t block = 0; block < blocks; ++block) {
      VF sum = hn::Zero(Floats());
      // Rows before the first and behind the last are +0: they change no sum but one of -0, which none is.
      const std::size_t begin = block == 0 ? 0 : block * kBlock - front, end = std::min(rows, (block + 1) * kBlock - front);
      for (std::size_t i = begin; i < end; ++i) sum = round(hn::Add(sum, Load(terms + i * W)));
      Store(sum, scratch + block * W);
    }
    terms = scratch;
    scratch += blocks * W;
    rows = blocks;
  }
  VF sum = hn::Zero(Floats());
  for (std::size_t i = 0; i < rows; ++i) sum = round(hn::Add(sum, Load(terms + i * W)));
  return sum;
}

// N sums over `terms` entries: sum j of a[t] * b[j * b_next + t * b_stride] for t ascending; of a single term the bare product.
template <int N>
HWY_INLINE void Dots(std::size_t terms, const float* HWY_RESTRICT a, std::size_t a_stride, const float* HWY_RESTRICT b, std::size_t b_stride,
                     std::size_t b_next, VF* sums) {
  for (std::size_t j = 0; j < N; ++j) sums[j] = terms == 1 ? hn::Mul(Load(a), Load(b + j * b_next)) : Fma(Load(a), Load(b + j * b_next), hn::Zero(Floats()));
  for (std::size_t t = 1; t < terms; ++t) {
    a += a_stride;
    b += b_stride;
    const VF factor = Load(a);
    for (std::size_t j = 0; j < N; ++j) sums[j] = Fma(factor, Load(b + j * b_next), sums[j]);
  }
}

template <class Use>
HWY_INLINE void ForTiles(std::size_t n, const Use& use) {
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) use(i, std::integral_constant<int, 8>());
  for (; i + 2 <= n; i += 2) use(i, std::integral_constant<int, 2>());
  for (; i < n; ++i) use(i, std::integral_constant<int, 1>());
}

template <bool kPlain, class Round>
HWY_NOINLINE ManySteps AnyShape(const Round& round, const ManyArgs& args, std::size_t steps, std::int32_t time) {
  const Floats d;
  constexpr std::size_t W = kLanes;
  const std::size_t B = args.shape.rows, D = args.shape.features, K = args.shape.outputs, n = B * K, count = K * D + K;
  const bool strict = args.round_predictions;
  const VF inverse_n = hn::Set(d, 1.0f / static_cast<float>(n));
  const VF factor = Factor(args, n, 0);
  const Unscaler<1, kPlain> unscale(args);
  Watch<1> watch(args, time);
  float* HWY_RESTRICT rounded = args.scratch;
  float* HWY_RESTRICT quotients = rounded + count * W;
  float* HWY_RESTRICT squares = quotients + count * W;  // row-major
  float* HWY_RESTRICT signals = squares + n * W;        // output by output
  float* HWY_RESTRICT blocks = signals + n * W;

  for (std::size_t step = 0;; ++step) {
    for (std::size_t i = 0; i < count; ++i) Store(round(Load(args.parameters + i * W)), rounded + i * W);
    for (std::size_t k = 0; k < K; ++k) {
      const VF bias = Load(rounded + (K * D + k) * W);
      ForTiles(B, [&](std::size_t i, auto tile) HWY_ATTR {
        constexpr int kN = decltype(tile)::value;
        VF h[kN];
        Dots<kN>(D, rounded + k * D * W, W, args.x + i * D * W, W, D * W, h);
        for (std::size_t j = 0; j < kN; ++j) {
          VF prediction = hn::Add(round(h[j]), bias);
          if (strict) prediction = round(prediction);
          const std::size_t at = ((i + j) * K + k) * W;
          VF e = hn::Sub(prediction, Load(args.y + at));
          Store(hn::Mul(e, e), squares + at);
          if (n == 1) e = hn::Add(e, e);
          Store(round(hn::Mul(factor, e)), signals + (k * B + i + j) * W);
        }
      });
    }
    // Squares are added to lane i mod 16 of the loss, and then the lanes in order.
    VF loss = hn::Zero(d);
    for (std::size_t lane = 0; lane < std::min<std::size_t>(n, 16); ++lane) {
      VF sum = Load(squares + lane * W);
      for (std::size_t i = lane + 16; i < n; i += 16) sum = hn::Add(sum, Load(squares + i * W));
      loss = lane == 0 ? sum : hn::Add(loss, sum);
    }
    loss = hn::Mul(loss, inverse_n);
    watch.See(0, loss);
    watch.Tick();

    Flags<1, kPlain> flags;
    flags.Clear();
    const auto finish = [&](std::size_t i, VF g) HWY_ATTR {
      const VF u = unscale(0, g);
      flags.See(0, g, u);
      Store(g, args.gradients + i * W);
      Store(u, quotients + i * W);
    };
    for (std::size_t k = 0; k < K; ++k) {
      const float* signal = signals + k * B * W;
      finish(K * D + k, SumOfRows(round, signal, B, W, blocks));
      ForTiles(D, [&](std::size_t f, auto tile) HWY_ATTR {
        constexpr int kN = decltype(tile)::value;
        VF sums[kN];
        Dots<kN>(B, signal, W, args.x + f * W, D * W, W, sums);
        for (std::size_t j = 0; j < kN; ++j) finish(k * D + f + j, round(sums[j]));
      });
    }
    if (HWY_UNLIKELY(step == steps || !flags.AllFinite())) {
      ManySteps out;
      out.applied = step;
      flags.Tell(out);
      watch.Tell();
      Store(loss, args.losses);
      return out;
    }
    for (std::size_t i = 0; i < count; ++i) {
      float* p = args.parameters + i * W;
      Store(Fma(unscale.minus_lr[0], Load(quotients + i * W), Load(p)), p);
    }
  }
}

// ---------------------------------------------------------------------------------------------------- choice

// How many vectors of runs go side by side: a step of a small shape is one long chain of dependent operations, and a second one fills its gaps.
constexpr int kSmall = 2;

HWY_INLINE int FewFeaturesOf(const ManyShape& shape) {
  if (shape.outputs != 1 || shape.rows < 2 || shape.rows > kBlock) return 0;
  if (shape.features == 2 || shape.features == 4 || shape.features == 8) return static_cast<int>(shape.features);
  return 0;
}

std::size_t Lanes(const ManyShape& shape) {
  const int few = FewFeaturesOf(shape);
  return kLanes * (few == 2 || few == 4 ? kSmall : 1);
}

template <bool kPlain, class Round>
HWY_INLINE ManySteps StepsOf(const Round& round, const ManyArgs& args, std::size_t steps, std::int32_t time) {
  const int few = FewFeaturesOf(args.shape);
  if (few == 2 && args.shape.rows == 2) return FewFeatures<2, 2, kSmall, kPlain>(round, args, steps, time);
  if (few == 2) return FewFeatures<0, 2, kSmall, kPlain>(round, args, steps, time);
  if (few == 4) return FewFeatures<0, 4, kSmall, kPlain>(round, args, steps, time);
  if (few == 8) return FewFeatures<0, 8, 1, kPlain>(round, args, steps, time);
  return AnyShape<kPlain>(round, args, steps, time);
}

ManySteps Steps(const ManyArgs& args, std::size_t steps, std::int32_t time) {
  bool plain = true;
  for (std::size_t i = 0; i < Lanes(args.shape); ++i) {
    const std::int32_t bits = BitsOf(args.loss_scale[i]);
    plain &= (bits & 0x7FFFFF) == 0 && bits >= 0x3F800000 && bits <= 0x7E800000;
  }
  return WithRounding(*args.format, [&](const auto& round) {
    // Where rounding takes longer, quotients instead of products hardly show, and compilers have less to do.
    if constexpr (std::is_same_v<std::decay_t<decltype(round)>, RoundCleanBfloat16>) {
      if (plain) return StepsOf<true>(round, args, steps, time);
    }
    return StepsOf<false>(round, args, steps, time);
  });
}

void Apply(const ManyArgs& args, const float* divisors, std::uint64_t lanes) {
  const std::size_t W = Lanes(args.shape), count = args.shape.outputs * (args.shape.features + 1);
  for (std::size_t first = 0; first < W; first += kLanes) {
    HWY_ALIGN std::int32_t chosen[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) chosen[i] = (lanes >> (first + i) & 1) != 0 ? -1 : 0;
    const auto mask = hn::RebindMask(Floats(), hn::MaskFromVec(hn::Load(Ints(), chosen)));
    const VF divisor = Load(divisors + first), minus_lr = hn::Neg(Load(args.lr + first));
    for (std::size_t i = 0; i < count; ++i) {
      float* p = args.parameters + i * W + first;
      const VF before = Load(p), u = hn::Div(Load(args.gradients + i * W + first), divisor);
      Store(hn::IfThenElse(mask, Fma(minus_lr, u, before), before), p);
    }
  }
}

ManyRunsTable Table() { return {hwy::TargetName(HWY_TARGET), &Lanes, &Steps, &Apply}; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace scaletrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace scaletrace {
namespace {

HWY_EXPORT(Table);

// As in kernels.cc, whose tables are made first: both set Highway's process-wide choice for a moment.
const std::vector<ManyRunsTable>& All() {
  static const std::vector<ManyRunsTable> all = [] {
    CompiledKernels();
    std::vector<ManyRunsTable> tables;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(target);
      const ManyRunsTable table = HWY_DYNAMIC_DISPATCH(Table)();
      if (table.target == hwy::TargetName(target)) tables.push_back(table);
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
    return tables;
  }();
  return all;
}

}  // namespace

std::size_t ManyScratch(const ManyShape& shape) {
  const std::size_t targets = shape.rows * shape.outputs, parameters = shape.outputs * (shape.features + 1);
  return 2 * parameters + 2 * targets + (shape.rows <= 32 ? 0 : 2 * ((shape.rows + 31) / 32));
}

std::span<const ManyRunsTable> CompiledManyRuns() { return All(); }

const ManyRunsTable* FindManyRuns(std::string_view target) {
  for (const ManyRunsTable& table : All()) {
    if (target.empty() || table.target == target) return &table;
  }
  return nullptr;
}

}  // namespace scaletrace
#endif  // HWY_ONCE
