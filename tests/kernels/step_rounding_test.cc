// Rounding by role: every mode, format and option in vectors, whole steps with a rounding of its own for each role, the optimizers' rules and the counts of
// what rounding did, all against plain loops on every instruction set.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "base/random.h"
#include "kernels/flush_scope.h"
#include "kernels/kernels.h"
#include "kernels/reference.h"
#include "kernels/statistics.h"
#include "model/model.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

bool SameBits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

void RequireSame(std::span<const float> found, std::span<const float> expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (SameBits(found[i], expected[i])) continue;
    INFO("entry " << i << ": " << found[i] << " against " << expected[i]);
    REQUIRE(SameBits(found[i], expected[i]));
  }
}

using Engine = std::mt19937_64;

float Number(Engine& engine, int kind) {
  const auto bits = static_cast<std::uint32_t>(engine());
  const float unit = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f;
  switch (kind) {
    case 0: return unit * 2;
    case 1: return std::bit_cast<float>(bits);
    case 2: return std::ldexp(unit, static_cast<int>(engine() % 40) - 30);
    default: return static_cast<float>(static_cast<int>(bits % 17) - 8) * 0.25f;
  }
}

std::vector<float> Numbers(Engine& engine, std::size_t n, int kind) {
  std::vector<float> v(n);
  for (float& e : v) e = Number(engine, kind);
  return v;
}

std::vector<Format> AllFormats() {
  std::vector<Format> formats(Formats().begin(), Formats().end());
  formats.push_back(CustomFormat(7, 23, Specials::kIeee));
  formats.push_back(CustomFormat(4, 0, Specials::kNone));
  formats.push_back(CustomFormat(2, 3, Specials::kFnuz));
  formats.push_back(CustomFormat(8, 1, Specials::kIeee));
  return formats;
}

Rounding RandomRounding(Engine& engine) {
  static const std::vector<Format> formats = AllFormats();
  return {.format = formats[engine() % formats.size()],
          .mode = static_cast<RoundingMode>(engine() % 3),
          .saturate = engine() % 3 == 0,
          .flush_subnormals = engine() % 3 == 0};
}

TEST_CASE("vectors are rounded as the scalar definition says, in every format and mode, saturating and flushing or not") {
  Engine engine(11);
  for (const Format& format : AllFormats()) {
    for (int mode = 0; mode < 3; ++mode) {
      for (int flags = 0; flags < 4; ++flags) {
        StepRounding step;
        step.seed = engine();
        step[Role::kDot] = {format, static_cast<RoundingMode>(mode), (flags & 1) != 0, (flags & 2) != 0};
        const std::uint64_t draw = engine();
        const std::size_t first = engine() % 1000, n = 150 + engine() % 17;
        std::vector<float> in = Numbers(engine, n, 1);
        // Half of them near the format's own range, some on its edges.
        for (std::size_t i = 0; i < n / 2; ++i) in[i] = std::ldexp(Number(engine, 0), static_cast<int>(engine() % 40) - format.bias - format.mantissa_bits);
        in[0] = format.max_finite;
        in[1] = std::nextafter(format.max_finite, std::numeric_limits<float>::infinity());
        in[2] = -std::numeric_limits<float>::infinity();
        in[3] = format.smallest_normal();
        in[4] = format.smallest_subnormal() / 2;
        in[5] = -0.0f;
        in[6] = std::nextafter(format.smallest_subnormal() / 2, 1.0f);
        std::vector<float> expected(n);
        for (std::size_t i = 0; i < n; ++i) {
          expected[i] = Round(step[Role::kDot], in[i],
                              RoundingBits(step.seed, draw, RoundingTensor(Role::kDot), static_cast<std::uint32_t>(first + i)));
        }
        for (const KernelTable& kernels : CompiledKernels()) {
          INFO(kernels.target << " " << format.name << " " << kRoundingModeNames[mode] << " flags " << flags);
          std::vector<float> out(n);
          const FlushScope flush;
          kernels.round(step, Role::kDot, draw, first, in.data(), n, out.data());
          RequireSame(out, expected);
        }
      }
    }
  }
}

// A random step with its own rounding for each role, on every target.
void CompareStep(Engine& engine, std::size_t B, std::size_t D, std::size_t K, int kind) {
  ReferenceInput in;
  for (Rounding& rounding : in.rounding.roles) rounding = RandomRounding(engine);
  in.rounding.seed = engine();
  in.draw = engine() % 100000;
  in.rows = B;
  in.features = D;
  in.outputs = K;
  in.x = Numbers(engine, B * D, kind);
  in.y = Numbers(engine, B * K, kind);
  in.w = Numbers(engine, D * K, kind);
  in.b = Numbers(engine, K, kind);
  in.loss_scale = std::ldexp(1.0f, static_cast<int>(engine() % 20));
  in.lr = 0.05f;
  in.share = engine() % 2 == 0 ? 1.0f : 0.25f;
  const ReferenceOutput expected = ReferenceStep(in);
  for (const KernelTable& kernels : CompiledKernels()) {
    INFO(kernels.target << " " << B << "x" << D << "x" << K << " kind " << kind);
    const std::size_t stride = Padded(B), padded = Padded(D), weights = D * K;
    std::vector<float> by_row(B * padded), by_feature(D * stride), y(K * stride), p(weights + K), rounded(weights + K), errors(K * stride), signals(K * stride),
        sums(SumScratch(B, K)), gradients(weights + K), sums_with_bias(K * stride), activations(K * stride), exact_signals(K * stride), exact_gradients(weights + K);
    for (std::size_t i = 0; i < B; ++i) kernels.round(in.rounding, Role::kInput, in.draw, i * D, in.x.data() + i * D, D, by_row.data() + i * padded);
    for (std::size_t i = 0; i < B; ++i) {
      for (std::size_t d = 0; d < D; ++d) by_feature[d * stride + i] = by_row[i * padded + d];
      for (std::size_t k = 0; k < K; ++k) y[k * stride + i] = in.y[i * K + k];
    }
    for (std::size_t k = 0; k < K; ++k) {
      for (std::size_t d = 0; d < D; ++d) p[k * D + d] = in.w[d * K + k];
      p[weights + k] = in.b[k];
    }
    const GradientArgs args = {.rounding = &in.rounding, .draw = in.draw, .rows = B, .features = D, .outputs = K, .x_by_feature = by_feature.data(),
                               .x_by_row = by_row.data(), .y = y.data(), .parameters = p.data(), .loss_scale = in.loss_scale, .share = in.share,
                               .rounded = rounded.data(), .errors = errors.data(), .signals = signals.data(), .sums = sums.data(), .gradients = gradients.data(),
                               .sums_with_bias = sums_with_bias.data(), .activations = activations.data(), .exact_signals = exact_signals.data(),
                               .exact_gradients = exact_gradients.data()};
    std::vector<float> unscaled(weights + K);
    float loss = 0;
    {
      const FlushScope flush;
      loss = kernels.gradients(args);
      kernels.divide(gradients.data(), in.loss_scale, weights + K, unscaled.data());
      kernels.update({.n = weights + K, .gradients = unscaled.data(), .parameters = p.data(), .lr = in.lr, .rounding = &in.rounding, .draw = in.draw});
    }
    REQUIRE(SameBits(loss, expected.loss));
    const auto by_output = [&](const std::vector<float>& w, const std::vector<float>& b) {
      std::vector<float> all(weights + K);
      for (std::size_t d = 0; d < D; ++d) {
        for (std::size_t k = 0; k < K; ++k) all[k * D + d] = w[d * K + k];
      }
      std::copy(b.begin(), b.end(), all.begin() + static_cast<std::ptrdiff_t>(weights));
      return all;
    };
    RequireSame(gradients, by_output(expected.gw, expected.gb));
    RequireSame(p, by_output(expected.new_w, expected.new_b));
    const auto same_targets = [&](const std::vector<float>& found, const std::vector<float>& wanted) {
      for (std::size_t i = 0; i < B; ++i) {
        for (std::size_t k = 0; k < K; ++k) REQUIRE(SameBits(found[k * stride + i], wanted[i * K + k]));
      }
    };
    same_targets(signals, expected.signals);
    same_targets(activations, expected.activations);
    same_targets(sums_with_bias, expected.sums_with_bias);
    same_targets(exact_signals, expected.exact_signals);
  }
}

TEST_CASE("a step with a rounding of its own for each role equals the plain loops") {
  Engine engine(12);
  for (int i = 0; i < 400; ++i) CompareStep(engine, 1 + engine() % 6, 1 + engine() % 6, 1 + engine() % 6, i % 4);
  static constexpr std::size_t kShapes[][3] = {{32, 8, 1}, {33, 9, 2}, {65, 17, 5}, {100, 33, 17}, {1100, 3, 2}};
  for (const auto& [B, D, K] : kShapes) {
    for (int i = 0; i < 8; ++i) CompareStep(engine, B, D, K, i % 4);
  }
}

TEST_CASE("every optimizer's rule equals the plain loop, for every length") {
  Engine engine(13);
  for (const UpdateRule rule : {UpdateRule::kSgd, UpdateRule::kMomentum, UpdateRule::kNesterov, UpdateRule::kAdam}) {
    for (std::size_t n = 0; n <= 3 * kPad + 1; ++n) {
      StepRounding rounding = UniformRounding(Float32(), true);
      if (n % 3 == 1) rounding[Role::kMaster] = RandomRounding(engine);
      const std::vector<float> g = Numbers(engine, n, static_cast<int>(n % 4)), p = Numbers(engine, n, 0), m = Numbers(engine, n, 0);
      std::vector<float> v = Numbers(engine, n, 0);
      for (float& e : v) e = std::fabs(e);
      const UpdateArgs args = {.rule = rule, .n = n, .gradients = g.data(), .lr = 0.03f, .weight_decay = n % 2 == 0 ? 0.0f : 0.01f, .shrink = n % 5 == 0 ? 1e-3f : 0.0f,
                               .momentum = 0.9f, .beta1 = 0.9f, .one_minus_beta1 = 0.1f, .beta2 = 0.999f, .one_minus_beta2 = 0.001f, .correction2 = 0.002f,
                               .epsilon = 1e-8f, .rounding = &rounding, .draw = n};
      const auto with = [&](std::vector<float>& parameters, std::vector<float>& first, std::vector<float>& second) {
        UpdateArgs all = args;
        all.parameters = parameters.data();
        all.first = first.data();
        all.second = second.data();
        return all;
      };
      std::vector<float> expected_p = p, expected_m = m, expected_v = v;
      ReferenceUpdate(with(expected_p, expected_m, expected_v));
      if (rule != UpdateRule::kSgd && n > 0) CHECK(expected_m != m);
      for (const KernelTable& kernels : CompiledKernels()) {
        INFO(kernels.target << " rule " << static_cast<int>(rule) << " of " << n);
        std::vector<float> found_p = p, found_m = m, found_v = v;
        {
          const FlushScope flush;
          kernels.update(with(found_p, found_m, found_v));
        }
        RequireSame(found_p, expected_p);
        RequireSame(found_m, expected_m);
        RequireSame(found_v, expected_v);
      }
    }
  }
}

TEST_CASE("what rounding did to a tensor is counted entry by entry") {
  Engine engine(14);
  for (int i = 0; i < 300; ++i) {
    const Rounding rounding = RandomRounding(engine);
    const std::size_t n = engine() % 70;
    const std::vector<float> before = Numbers(engine, n, i % 4);
    std::vector<float> after(n);
    TensorCounts expected;
    expected.entries = n;
    for (std::size_t e = 0; e < n; ++e) {
      after[e] = Round(rounding, before[e], static_cast<std::uint32_t>(engine()));
      const float b = std::fabs(before[e]), a = std::fabs(after[e]);
      expected.underflow += before[e] != 0 && after[e] == 0 ? 1u : 0u;
      expected.subnormal += a > 0 && a < rounding.format.smallest_normal() ? 1u : 0u;
      expected.saturated += b > rounding.format.max_finite && a == rounding.format.max_finite ? 1u : 0u;
      expected.overflow += std::isfinite(b) && !std::isfinite(a) ? 1u : 0u;
      const auto bits = std::bit_cast<std::uint32_t>(b);
      expected.max_bits = std::max(expected.max_bits, bits);
      if (bits != 0) expected.min_bits = std::min(expected.min_bits, bits);
    }
    for (const KernelTable& kernels : CompiledKernels()) {
      INFO(kernels.target << " " << rounding.format.name << ", " << n << " entries");
      TensorCounts found;
      kernels.observe(rounding, before.data(), after.data(), n, found);
      CHECK(found.entries == expected.entries);
      CHECK(found.underflow == expected.underflow);
      CHECK(found.subnormal == expected.subnormal);
      CHECK(found.saturated == expected.saturated);
      CHECK(found.overflow == expected.overflow);
      CHECK(found.max_bits == expected.max_bits);
      CHECK(found.min_bits == expected.min_bits);
    }
  }
}

TEST_CASE("exponents are counted as floor(log2), zeros, infinities and NaNs apart") {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {1.0f, -1.9f, 2.0f, 0x1p-149f, 0x1.8p-127f, 0x1p-126f, 0.0f, -0.0f, inf, -inf, std::numeric_limits<float>::quiet_NaN(), 3e38f};
  ExponentCounts counts;
  CountExponents(values.data(), values.size(), counts);
  const auto at = [&](int exponent) { return counts.by_exponent[static_cast<std::size_t>(exponent - ExponentCounts::kLowest)]; };
  CHECK(at(0) == 2);
  CHECK(at(1) == 1);
  CHECK(at(-149) == 1);
  CHECK(at(-127) == 1);
  CHECK(at(-126) == 1);
  CHECK(at(127) == 1);
  CHECK(counts.zero == 2);
  CHECK(counts.inf == 2);
  CHECK(counts.nan == 1);
}

TEST_CASE("stochastic rounding with the bits of a step is unbiased within four standard deviations over a million draws") {
  const Rounding rounding = {.format = *FindFormat("bfloat16"), .mode = RoundingMode::kStochastic};
  const Rounding fp16 = {.format = *FindFormat("float16"), .mode = RoundingMode::kStochastic};
  struct Point {
    const Rounding* rounding;
    float value, low, unit;
  };
  const Point points[] = {{&rounding, 1.001f, 1.0f, 0x1p-7f}, {&rounding, -3.14159f, -3.140625f, 0x1p-6f}, {&rounding, 1e-20f, 0, 0},
                          {&fp16, 3e-8f, 0.0f, 0x1p-24f},     {&fp16, 1.00048828125f, 1.0f, 0x1p-10f}};
  constexpr int kDraws = 1000000;
  for (const Point& point : points) {
    float low = point.low, unit = point.unit;
    if (unit == 0) {
      low = Round(Rounding{rounding.format, RoundingMode::kTowardZero}, point.value, 0);
      unit = std::bit_cast<float>(std::bit_cast<std::uint32_t>(low) + 0x10000u) - low;
    }
    const double up = std::fabs(static_cast<double>(point.value) - static_cast<double>(low)) / static_cast<double>(unit);
    REQUIRE(up > 0);
    REQUIRE(up < 1);
    int ups = 0;
    for (int i = 0; i < kDraws; ++i) {
      // Half of the draws run over entries, half over steps.
      const std::uint32_t bits = i % 2 == 0 ? RoundingBits(7, 3, 5, static_cast<std::uint32_t>(i)) : RoundingBits(7, static_cast<std::uint64_t>(i), 5, 3);
      const float rounded = Round(*point.rounding, point.value, bits);
      ups += rounded != low ? 1 : 0;
      if (rounded != low) REQUIRE(std::fabs(rounded) == std::fabs(low) + unit);
    }
    const double sigma = std::sqrt(kDraws * up * (1 - up));
    INFO(point.value << ": " << ups << " of " << kDraws << " up, " << up * kDraws << " expected");
    CHECK(std::fabs(ups - up * kDraws) <= 4 * sigma);
  }
}

}  // namespace
}  // namespace scaletrace
