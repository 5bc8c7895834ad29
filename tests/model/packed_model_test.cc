// The packed step against the plain loops that define it: every table of kernels, several threads, shapes with remainders and larger than a cache, stretches of steps.
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/team.h"
#include "kernels/bf16_dot.h"
#include "kernels/flush_scope.h"
#include "kernels/reference.h"
#include "model/model.h"
#include "model/packed_model.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

bool SameBits(float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : engine_(seed) {}
  std::size_t Below(std::size_t bound) { return engine_() % bound; }
  // wild: 0 numbers around 1; 1 over the whole range with specials; 2 small integers, whose sums cancel.
  float One(int wild) {
    const auto bits = static_cast<std::uint32_t>(engine_());
    if (wild == 1) {
      if (bits % 97 == 0) return std::numeric_limits<float>::infinity();
      if (bits % 101 == 0) return std::bit_cast<float>(0x7FFFFFFFu);  // a NaN that a carry would run through
      return std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f, static_cast<int>(engine_() % 240) - 130);
    }
    if (wild == 2) return static_cast<float>(static_cast<int>(bits % 9) - 4);
    return static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-30f;
  }
  std::vector<float> Many(std::size_t n, int wild) {
    std::vector<float> v(n);
    for (float& e : v) e = One(wild);
    return v;
  }

 private:
  std::mt19937_64 engine_;
};

StepRounding Bfloat16Rounding(bool strict) { return UniformRounding(*FindFormat("bfloat16"), strict); }

// One PackedModel with the arrays of its owner, as LinearModel has them.
struct Packed {
  Packed(const PackedTable& table, const ReferenceInput& in, int threads)
      : B(in.rows), D(in.features), K(in.outputs), y(K * Padded(B)), parameters(K * D + K), gradients(K * D + K), errors(y.size()), signals(y.size()),
        model(table, {B, D, K}, !in.rounding[Role::kActivation].is_nothing(), {.most = threads, .least_work = 1}, parameters.data(), gradients.data()) {
    for (std::size_t k = 0; k < K; ++k) {
      for (std::size_t d = 0; d < D; ++d) parameters[k * D + d] = Clean(in.w[d * K + k]);
      parameters[K * D + k] = Clean(in.b[k]);
      for (std::size_t i = 0; i < B; ++i) y[k * Padded(B) + i] = Clean(in.y[i * K + k]);
    }
    model.Begin(B);
    for (std::size_t first = 0; first < B; first += kPanel) {
      const std::size_t count = std::min(kPanel, B - first);
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t d = 0; d < D; ++d) model.load_buffer()[i * model.load_stride() + d] = Round(*FindFormat("bfloat16"), in.x[(first + i) * D + d]);
      }
      model.Load(first, count);
    }
    model.SetTargets(y.data());
  }
  static float Clean(float v) { return std::isnan(v) ? std::numeric_limits<float>::quiet_NaN() : v; }

  std::size_t B, D, K;
  AlignedFloats y, parameters, gradients, errors, signals;
  PackedModel model;
};

ReferenceInput Input(Numbers& numbers, std::size_t B, std::size_t D, std::size_t K, int wild, bool strict) {
  ReferenceInput in;
  in.rounding = Bfloat16Rounding(strict);
  in.rows = B;
  in.features = D;
  in.outputs = K;
  in.w = numbers.Many(D * K, wild);
  in.b = numbers.Many(K, wild);
  in.x = numbers.Many(B * D, wild);
  in.y = numbers.Many(B * K, wild);
  in.lr = 0.03125f;
  return in;
}

void CompareGradients(const PackedTable& table, const ReferenceInput& in, int threads, bool keep) {
  INFO(table.target << ", " << table.instruction << ": " << in.rows << "x" << in.features << "x" << in.outputs << ", S " << in.loss_scale << ", " << threads << " threads");
  const ReferenceOutput expected = ReferenceStep(in);
  Packed packed(table, in, threads);
  if (keep) packed.model.KeepSignals(packed.errors.data(), packed.signals.data());
  bool finite = false;
  const float loss = packed.model.ComputeGradients(in.loss_scale, 1, finite);
  REQUIRE(packed.model.threads() == std::min(threads, static_cast<int>(in.rows * in.features * in.outputs)));
  REQUIRE(SameBits(loss, expected.loss));
  REQUIRE(finite == expected.scaled_finite);
  bool same = true;
  const std::size_t D = in.features, K = in.outputs;
  for (std::size_t k = 0; k < K; ++k) {
    for (std::size_t d = 0; d < D; ++d) same &= SameBits(packed.gradients[k * D + d], expected.gw[d * K + k]);
    same &= SameBits(packed.gradients[K * D + k], expected.gb[k]);
    for (std::size_t i = 0; keep && i < in.rows; ++i) {
      same &= SameBits(packed.errors[k * Padded(in.rows) + i], expected.errors[i * K + k]);
      same &= SameBits(packed.signals[k * Padded(in.rows) + i], expected.signals[i * K + k]);
    }
  }
  REQUIRE(same);
}

TEST_CASE("there is a packed step for every instruction set, and the bf16 dot stands first where the processor has one that agrees") {
  std::set<std::string> targets;
  for (const PackedTable& table : CompiledPacked()) {
    targets.insert(std::string(table.target));
    CHECK(AgreesWithFma(table.tile));
  }
  for (const KernelTable& kernels : CompiledKernels()) CHECK(targets.count(std::string(kernels.target)) == 1);
  CHECK((Bf16DotTile() != nullptr) == (CompiledPacked().front().instruction == "bf16 dot"));
}

// Tiles with one fault each.
void WrongOrder(std::size_t words, std::size_t outputs, std::size_t columns, const std::uint32_t* a, std::size_t a_stride, const std::uint32_t* panel, float* sums) {
  std::vector<std::uint32_t> swapped_a(outputs * a_stride), swapped_panel(words * columns);
  for (std::size_t i = 0; i < swapped_a.size(); ++i) swapped_a[i] = a[i] << 16 | a[i] >> 16;
  for (std::size_t i = 0; i < swapped_panel.size(); ++i) swapped_panel[i] = panel[i] << 16 | panel[i] >> 16;
  FindPacked("")->tile(words, outputs, columns, swapped_a.data(), a_stride, swapped_panel.data(), sums);
}
void KeepsSubnormals(std::size_t words, std::size_t outputs, std::size_t columns, const std::uint32_t* a, std::size_t a_stride, const std::uint32_t* panel, float* sums) {
  std::fenv_t mode;
  std::fegetenv(&mode);
  std::fesetenv(FE_DFL_ENV);
  CompiledPacked().back().tile(words, outputs, columns, a, a_stride, panel, sums);
  std::fesetenv(&mode);
}
void BothProductsFirst(std::size_t words, std::size_t outputs, std::size_t columns, const std::uint32_t* a, std::size_t a_stride, const std::uint32_t* panel, float* sums) {
  for (std::size_t k = 0; k < outputs; ++k) {
    for (std::size_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (std::size_t t = 0; t < words; ++t) {
        const auto number = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
        const std::uint32_t x = panel[t * columns + j], f = a[k * a_stride + t];
        sum += std::fma(number(f & 0xFFFF0000), number(x & 0xFFFF0000), number(f << 16) * number(x << 16));
      }
      sums[k * kPanel + j] = sum;
    }
  }
}

TEST_CASE("a bf16 dot that adds in another order, rounds otherwise or keeps subnormals fails the check") {
  CHECK_FALSE(AgreesWithFma(&WrongOrder));
  CHECK_FALSE(AgreesWithFma(&BothProductsFirst));
  CHECK_FALSE(AgreesWithFma(&KeepsSubnormals));
}

TEST_CASE("packed gradients equal the plain loops on random shapes at 1, 2 and 5 threads, in both profiles, for numbers of every kind") {
  Numbers numbers(1);
  static constexpr float kScales[] = {1.0f, 1024.0f, 3e38f, std::numeric_limits<float>::infinity(), 1e-30f, 1000.0f, 0x1p-140f};
  for (int i = 0; i < 60; ++i) {
    const std::size_t B = 2 + numbers.Below(i % 3 == 0 ? 200 : 70), D = 2 + numbers.Below(i % 3 == 1 ? 150 : 70), K = 1 + numbers.Below(i % 3 == 2 ? 40 : 9);
    ReferenceInput in = Input(numbers, B, D, K, i % 3, i % 2 == 0);
    in.loss_scale = kScales[numbers.Below(std::size(kScales))];
    for (const PackedTable& table : CompiledPacked()) {
      for (const int threads : {1, 2, 5}) CompareGradients(table, in, threads, threads == 2);
    }
  }
}

TEST_CASE("packed gradients equal the plain loops where panels end, and for several levels of blocks of rows") {
  Numbers numbers(2);
  static constexpr std::size_t kShapes[][3] = {{2, 2, 1},   {2, 64, 1},  {3, 65, 6},  {31, 63, 7},   {32, 64, 12},  {33, 66, 13}, {64, 128, 16}, {65, 129, 17},
                                               {96, 16, 1}, {128, 15, 3}, {255, 3, 2}, {1024, 2, 1}, {1025, 5, 2}, {2049, 3, 3}, {1, 1, 1}};
  for (const auto& [B, D, K] : kShapes) {
    if (B == 1) continue;
    for (int wild = 0; wild < 3; ++wild) {
      ReferenceInput in = Input(numbers, B, D, K, wild, wild != 0);
      in.loss_scale = 256;
      for (const PackedTable& table : CompiledPacked()) {
        for (const int threads : {1, 2, 5}) CompareGradients(table, in, threads, false);
      }
    }
  }
}

TEST_CASE("packed gradients equal the plain loops where the batch is larger than the first and the second cache") {
  Numbers numbers(3);
  ReferenceInput in = Input(numbers, 1100, 1030, 2, 0, true);
  in.loss_scale = 4096;
  for (const PackedTable& table : CompiledPacked()) {
    if (table.target.starts_with("SSE") || table.target.starts_with("SSSE") || table.target == "SCALAR") continue;  // no fused instruction: minutes
    CompareGradients(table, in, 2, false);
  }
}

TEST_CASE("stretches of packed steps equal the plain loops step by step, and end at the step that isn't finite") {
  Numbers numbers(4);
  for (int i = 0; i < 24; ++i) {
    const std::size_t B = 2 + numbers.Below(80), D = 2 + numbers.Below(40), K = 1 + numbers.Below(9);
    ReferenceInput in = Input(numbers, B, D, K, i % 3 == 2 ? 2 : 0, i % 2 == 0);
    // Learning rates that make the loss grow, so that some stretches overflow.
    in.lr = i % 2 == 0 ? 0.01f : 64.0f;
    in.loss_scale = i % 3 == 0 ? 1024.0f : i % 3 == 1 ? 1000.0f : 0x1p100f;
    for (const PackedTable& table : CompiledPacked()) {
      for (const int threads : {1, 2, 5}) {
        INFO(table.target << ", " << table.instruction << ": " << B << "x" << D << "x" << K << ", " << threads << " threads, case " << i);
        Packed packed(table, in, threads);
        ReferenceInput at = in;
        std::vector<float> losses(i % 2 == 0 ? 5 : 40);
        const std::size_t applied = packed.model.TakeSteps(in.loss_scale, in.lr, losses);
        for (std::size_t step = 0; step < std::min(applied + 1, losses.size()); ++step) {
          const ReferenceOutput out = ReferenceStep(at);
          REQUIRE(SameBits(losses[step], out.loss));
          REQUIRE(out.scaled_finite == (step < applied));
          if (step == applied) break;
          at.w = out.new_w;
          at.b = out.new_b;
        }
        bool same = true;
        for (std::size_t k = 0; k < K; ++k) {
          for (std::size_t d = 0; d < D; ++d) same &= SameBits(packed.parameters[k * D + d], at.w[d * K + k]);
          same &= SameBits(packed.parameters[K * D + k], at.b[k]);
        }
        REQUIRE(same);
      }
    }
  }
}

TEST_CASE("a model packs what it can, and says so") {
  const KernelTable& kernels = CompiledKernels().front();
  const std::vector<float> x(64 * 32, 0.5f);
  const auto path = [&](const PrecisionOptions& precision, std::size_t rows, std::size_t features, bool keep = false) {
    LinearModel model(kernels, precision, {rows, features, 8});
    if (keep) model.KeepUnrounded();
    model.LoadFeatures(std::span(x).first(rows * features), {});
    return model.path();
  };
  PrecisionOptions precision;
  CHECK(path(precision, 64, 32) == "packed, " + std::string(FindPacked(kernels.target)->instruction));
  precision.profile = Profile::kExcess;
  CHECK(path(precision, 64, 32).starts_with("packed"));
  CHECK(path(precision, 64, 32, true) == "rows and features");
  CHECK(path(precision, 1, 32) == "rows and features");
  CHECK(path(precision, 4, 4) == "rows and features");
  precision.compute = "float16";
  CHECK(path(precision, 64, 32) == "rows and features");
}

TEST_CASE("a batch that a packed model can't hold in words goes the other way, and back, with the same parameters") {
  Numbers numbers(5);
  const KernelTable& kernels = CompiledKernels().front();
  const std::size_t D = 600, K = 3;
  LinearModel model(kernels, {}, {40, D, K});
  ReferenceInput at = Input(numbers, 40, D, K, 0, true);
  model.SetParameters(at.w, at.b);
  at.loss_scale = 512;
  for (const std::size_t rows : {std::size_t{40}, std::size_t{1}, std::size_t{7}, std::size_t{40}}) {
    at.rows = rows;
    at.x = numbers.Many(rows * D, 0);
    at.y = numbers.Many(rows * K, 0);
    model.LoadFeatures(at.x, {});
    model.LoadTargets(at.y);
    CHECK(model.path().starts_with("packed") == (rows > 1));
    model.ComputeGradients(at.loss_scale);
    model.Update(at.lr);
    const ReferenceOutput out = ReferenceStep(at);
    at.w = out.new_w;
    at.b = out.new_b;
    const std::vector<float> w = model.w();
    bool same = true;
    for (std::size_t i = 0; i < w.size(); ++i) same &= SameBits(w[i], at.w[i]);
    CHECK(same);
  }
}

TEST_CASE("a team meets at every barrier, and what one thread wrote the others read") {
  for (const int size : {1, 2, 3, 5}) {
    Team team(size);
    REQUIRE(team.size() == size);
    std::vector<int> written(static_cast<std::size_t>(size));
    std::atomic<int> wrong{0};
    for (int task = 0; task < 50; ++task) {
      team.Run([&](int thread) {
        for (int round = 0; round < 20; ++round) {
          written[static_cast<std::size_t>(thread)] = task * 100 + round;
          team.Barrier();
          for (const int value : written) wrong += value != task * 100 + round;
          team.Barrier();
        }
      });
    }
    CHECK(wrong == 0);
  }
}

}  // namespace
}  // namespace scaletrace
