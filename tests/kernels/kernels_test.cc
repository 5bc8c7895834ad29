// Every vector kernel against the plain loops that define it, bit for bit, on every instruction set that this processor has.
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

bool SameBits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!SameBits(a[i], b[i])) {
      UNSCOPED_INFO("entry " << i << ": " << a[i] << " against " << b[i]);
      return false;
    }
  }
  return true;
}

// Seeded numbers of several kinds: normal, over the whole range, special, integers.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t Below(std::uint64_t bound) { return engine_() % bound; }
  float One(int kind) {
    const auto bits = static_cast<std::uint32_t>(engine_());
    const float unit = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f;
    switch (kind) {
      case 0: return unit * 2;
      case 1: return std::bit_cast<float>(bits);  // any bits: NaN, inf, subnormal
      case 2: {
        static constexpr float kSpecial[] = {0.0f, -0.0f, 1.0f, -1.0f, 3.3895314e38f, 3.3961776e38f, 3.4e38f, -3.3961776e38f, 1.1754944e-38f,
                                             1.1e-38f, 1e-40f, -9.2e-41f, 1.00390625f, 65504.0f, 65520.0f, 448.0f, 464.0f, 57344.0f};
        return kSpecial[engine_() % std::size(kSpecial)];
      }
      case 3: return static_cast<float>(static_cast<int>(bits % 17) - 8);
      default: return std::ldexp(unit, static_cast<int>(engine_() % 60) - 30);
    }
  }
  std::vector<float> Many(std::size_t n, int kind) {
    std::vector<float> v(n);
    for (float& e : v) e = One(kind);
    return v;
  }

 private:
  std::mt19937_64 engine_;
};

TEST_CASE("at least two instruction sets run here and the best one is among them") {
  const auto kernels = CompiledKernels();
  REQUIRE(kernels.size() >= 2);
  for (const KernelTable& table : kernels) {
    CHECK(FindKernels(table.target)->target == table.target);
    CHECK(FindKernels(table.target)->gradients == table.gradients);
  }
  CHECK(FindKernels("")->target == kernels.front().target);
  CHECK(FindKernels("no such target") == nullptr);
  for (std::size_t i = 1; i < kernels.size(); ++i) CHECK(kernels[i].gradients != kernels[i - 1].gradients);
}

TEST_CASE("rounding a vector equals the scalar definition for every format and length") {
  Numbers numbers(1);
  for (const Format& format : Formats()) {
    for (std::size_t n = 0; n <= 5 * kPad + 1; ++n) {
      const std::vector<float> in = numbers.Many(n, static_cast<int>(n % 5));
      std::vector<float> expected(n);
      for (std::size_t i = 0; i < n; ++i) expected[i] = Round(format, in[i]);
      for (const KernelTable& kernels : CompiledKernels()) {
        std::vector<float> out(n);
        kernels.round(UniformRounding(format, true), Role::kInput, 0, 0, in.data(), n, out.data());
        INFO(format.name << " on " << kernels.target << ", " << n << " entries");
        REQUIRE(SameBits(out, expected));
      }
    }
  }
}

const StepRounding exact = UniformRounding(Float32(), true);

TEST_CASE("division and update equal plain loops for every length, and their flags leave out what lies beyond the end") {
  Numbers numbers(2);
  for (std::size_t n = 0; n <= 5 * kPad + 1; ++n) {
    for (int kind = 0; kind < 5; ++kind) {
      const std::vector<float> g = numbers.Many(n, kind), p = numbers.Many(n, kind);
      for (const float divisor : {1.0f, 3.0f, 0.0f, 1e-40f, std::numeric_limits<float>::infinity(), 1e30f}) {
        std::vector<float> quotient(n), updated(p);
        Finite expected;
        {
          const FlushScope flush;
          [&]() __attribute__((noinline)) {
            for (std::size_t i = 0; i < n; ++i) {
              quotient[i] = g[i] / divisor;
              updated[i] = std::fma(-0.1f, quotient[i], p[i]);
              expected.before &= std::isfinite(g[i]);
              expected.after &= std::isfinite(quotient[i]);
            }
          }();
        }
        for (const KernelTable& kernels : CompiledKernels()) {
          std::vector<float> u(n), q(p);
          Finite finite;
          {
            const FlushScope flush;
            finite = kernels.divide(g.data(), divisor, n, u.data());
            kernels.update({.n = n, .gradients = u.data(), .parameters = q.data(), .lr = 0.1f, .rounding = &exact});
          }
          INFO(kernels.target << ", " << n << " entries of kind " << kind << " by " << divisor);
          REQUIRE(SameBits(u, quotient));
          REQUIRE(SameBits(q, updated));
          REQUIRE(finite.before == expected.before);
          REQUIRE(finite.after == expected.after);
        }
      }
    }
  }
}

// One random step through the model on every target, against the reference.
void CompareStep(Numbers& numbers, const Format& format, bool strict, std::size_t B, std::size_t D, std::size_t K, int kind) {
  ReferenceInput in;
  in.rounding = UniformRounding(format, strict);
  in.rows = B;
  in.features = D;
  in.outputs = K;
  in.x = numbers.Many(B * D, kind);
  in.y = numbers.Many(B * K, kind);
  in.w = numbers.Many(D * K, kind);
  in.b = numbers.Many(K, kind);
  static constexpr float kScales[] = {1.0f, 1024.0f, 1e30f, 3e38f, std::numeric_limits<float>::infinity(), 1e-30f, 1000.0f, 0x1p-140f};
  in.loss_scale = kScales[numbers.Below(std::size(kScales))];
  in.lr = 0.05f;
  const ReferenceOutput expected = ReferenceStep(in);
  const auto by_output = [&](const std::vector<float>& w, const std::vector<float>& b) {
    std::vector<float> all(D * K + K);
    for (std::size_t d = 0; d < D; ++d) {
      for (std::size_t k = 0; k < K; ++k) all[k * D + d] = w[d * K + k];
    }
    std::copy(b.begin(), b.end(), all.begin() + static_cast<std::ptrdiff_t>(D * K));
    return all;
  };
  for (const KernelTable& kernels : CompiledKernels()) {
    PrecisionOptions precision;
    precision.compute = format.name;
    precision.profile = strict ? Profile::kStrict : Profile::kExcess;
    // Room for more rows than this batch has, filled before: what a longer batch left behind must not be seen.
    LinearModel model(kernels, precision, {B + 3, D, K});
    model.KeepSignals();
    const std::vector<float> before = numbers.Many((B + 3) * D, 1), targets_before = numbers.Many((B + 3) * K, 1);
    model.LoadFeatures(before, {});
    model.LoadTargets(targets_before);
    model.ComputeGradients(1.0f);
    model.SetParameters(in.w, in.b);
    model.LoadFeatures(in.x, {});
    model.LoadTargets(in.y);
    const LinearModel::Backward result = model.ComputeGradients(in.loss_scale);
    INFO(kernels.target << " " << format.name << (strict ? " strict " : " excess ") << B << "x" << D << "x" << K << " kind " << kind
                        << " S " << in.loss_scale);
    REQUIRE(SameBits(result.loss, expected.loss));
    REQUIRE(SameBits(model.scaled_gradients(), by_output(expected.gw, expected.gb)));
    REQUIRE(SameBits(model.unscaled_gradients(), by_output(expected.uw, expected.ub)));
    REQUIRE(result.finite.before == expected.scaled_finite);
    REQUIRE(result.finite.after == expected.unscaled_finite);
    std::size_t underflowed = 0;
    for (std::size_t i = 0; i < B * K; ++i) underflowed += expected.signals[i] == 0 && expected.errors[i] != 0 ? 1u : 0u;
    REQUIRE(model.UnderflowShare() == static_cast<double>(underflowed) / static_cast<double>(B * K));
    model.Update(in.lr);
    REQUIRE(SameBits(model.w(), expected.new_w));
    REQUIRE(SameBits(model.b(), expected.new_b));
  }
}

TEST_CASE("a step equals the plain loops for small shapes of every kind of number") {
  Numbers numbers(3);
  for (const Format& format : Formats()) {
    for (const bool strict : {true, false}) {
      for (int i = 0; i < 150; ++i) {
        CompareStep(numbers, format, strict, 1 + numbers.Below(5), 1 + numbers.Below(5), 1 + numbers.Below(5), i % 5);
      }
    }
  }
}

TEST_CASE("a step equals the plain loops for shapes with remainders, several blocks of rows and several levels of blocks") {
  Numbers numbers(4);
  const Format& bf16 = *FindFormat("bfloat16");
  static constexpr std::size_t kShapes[][3] = {{31, 3, 1}, {32, 8, 1},  {33, 9, 2},  {64, 16, 4},  {65, 17, 5},   {100, 33, 17},
                                               {256, 32, 8}, {1025, 3, 1}, {1500, 2, 3}, {7, 129, 19}, {2, 300, 40}, {1, 65, 33}};
  for (const auto& [B, D, K] : kShapes) {
    for (int kind = 0; kind < 5; ++kind) {
      CompareStep(numbers, bf16, true, B, D, K, kind);
      CompareStep(numbers, bf16, false, B, D, K, kind);
    }
    CompareStep(numbers, *FindFormat("float16"), true, B, D, K, 0);
    CompareStep(numbers, *FindFormat("float8_e4m3fn"), true, B, D, K, 3);
  }
}

TEST_CASE("stretches of steps of small shapes equal the plain loops step by step, and go through registers where they may") {
  Numbers numbers(6);
  const Format& bf16 = *FindFormat("bfloat16");
  std::size_t in_registers = 0, ended_early = 0;
  for (int i = 0; i < 300; ++i) {
    ReferenceInput in;
    const std::size_t B = 2 + numbers.Below(33), D = 1 + numbers.Below(18), K = i % 10 == 9 ? 2 : 1;
    const bool strict = i % 2 == 0;
    in.rounding = UniformRounding(bf16, strict);
    in.rows = B;
    in.features = D;
    in.outputs = K;
    const int kind = i % 4 == 3 ? 2 : i % 5 == 4 ? 4 : 0;
    in.x = numbers.Many(B * D, kind);
    in.y = numbers.Many(B * K, i % 7 == 6 ? 1 : kind);
    in.w = numbers.Many(D * K, kind);
    in.b = numbers.Many(K, kind);
    static constexpr float kScales[] = {1.0f, 65536.0f, 0x1p120f, 1000.0f, 0.5f, std::numeric_limits<float>::infinity()};
    in.loss_scale = kScales[numbers.Below(i % 3 == 0 ? std::size(kScales) : 3)];
    in.lr = i % 4 == 1 ? 8.0f : 0.02f;  // the large one makes the weights grow until the gradients overflow
    for (const KernelTable& kernels : CompiledKernels()) {
      INFO(kernels.target << " " << B << "x" << D << "x" << K << " S " << in.loss_scale << " lr " << in.lr << " case " << i);
      PrecisionOptions precision;
      precision.profile = strict ? Profile::kStrict : Profile::kExcess;
      LinearModel model(kernels, precision, {B, D, K});
      model.SetParameters(in.w, in.b);
      model.LoadFeatures(in.x, {});
      model.LoadTargets(in.y);
      std::vector<float> losses(60);
      const Stretch stretch = model.TakeSteps(in.loss_scale, in.lr, losses);
      in_registers += stretch.in_registers;
      ended_early += stretch.in_registers && stretch.applied < losses.size();
      ReferenceInput at = in;
      for (std::size_t step = 0;; ++step) {
        const ReferenceOutput out = ReferenceStep(at);
        REQUIRE(SameBits(losses[step], out.loss));
        if (step < stretch.applied) {
          REQUIRE((out.scaled_finite && out.unscaled_finite));
          at.w = out.new_w;
          at.b = out.new_b;
        }
        if (step == std::min(stretch.applied, losses.size() - 1)) {
          // Of the last step that was computed: applied, or the one that isn't finite.
          REQUIRE(stretch.finite.before == out.scaled_finite);
          REQUIRE(stretch.finite.after == out.unscaled_finite);
          REQUIRE(SameBits(model.scaled_gradients().last(K), out.gb));
          REQUIRE(SameBits(model.unscaled_gradients().last(K), out.ub));
          if (K == 1) REQUIRE(SameBits(model.unscaled_gradients().first(D), out.uw));
          break;
        }
      }
      REQUIRE(SameBits(model.w(), at.w));
      REQUIRE(SameBits(model.b(), at.b));
    }
  }
  CHECK(in_registers > 100);
  CHECK(ended_early > 20);
}

TEST_CASE("the sum over 40000 rows goes through three levels of blocks") {
  Numbers numbers(5);
  CompareStep(numbers, *FindFormat("bfloat16"), true, 40000, 1, 1, 0);
}

TEST_CASE("the flushing mode is set inside its scope and what was found comes back") {
  volatile float tiny = 1e-40f, one = 1.0f;
  CHECK(tiny * one != 0.0f);
  {
    const FlushScope flush;
    const float product = tiny * one;
    CHECK(std::bit_cast<std::uint32_t>(product) == 0);
  }
  CHECK(tiny * one != 0.0f);
}

TEST_CASE("norm and largest magnitude show NaN before inf before numbers") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> plain = {3, -4}, with_inf = {1, -inf, 2}, with_nan = {inf, nan, 1};
  CHECK(Norm(plain.data(), 2) == 5.0);
  CHECK(MaxAbs(plain.data(), 2) == 4.0f);
  CHECK(Norm(with_inf.data(), 3) == std::numeric_limits<double>::infinity());
  CHECK(MaxAbs(with_inf.data(), 3) == inf);
  CHECK(std::isnan(Norm(with_nan.data(), 3)));
  CHECK(std::isnan(MaxAbs(with_nan.data(), 3)));
  CHECK(Norm(nullptr, 0) == 0.0);
  CHECK(MaxAbs(nullptr, 0) == 0.0f);
}

}  // namespace
}  // namespace scaletrace
