// Steps of many runs at once against the plain loops, run by run and bit for bit, on every instruction set that this processor has.
#include "kernels/many_runs.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/aligned.h"
#include "kernels/flush_scope.h"
#include "kernels/kernels.h"
#include "kernels/reference.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool SameBits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// Numbers of one kind: ordinary, integers, over many exponents, special.
std::vector<float> Many(std::mt19937_64& engine, std::size_t n, int kind) {
  static constexpr float kSpecial[] = {0.0f, -0.0f, 1.0f, -1.0f, 3.3895314e38f, 3.3961776e38f, -3.4e38f, 1.1754944e-38f, 1.1e-38f, 1e-40f, 1.00390625f, 65504.0f, 65520.0f,
                                       448.0f, 464.0f, std::numeric_limits<float>::quiet_NaN(), kInfinity};
  std::vector<float> v(n);
  for (float& e : v) {
    const auto bits = static_cast<std::uint32_t>(engine());
    const float unit = static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-31f;
    e = kind == 0 ? unit * 2 : kind == 1 ? static_cast<float>(static_cast<int>(bits % 17) - 8) : kind == 2 ? std::ldexp(unit, static_cast<int>(engine() % 60) - 30)
                                                                                                      : kSpecial[bits % std::size(kSpecial)];
  }
  return v;
}

struct Cell {
  const Format* format;
  bool strict;
  ManyShape shape;
};

// One pack of runs, of different kinds and scales, some steps far.
void CompareCell(std::mt19937_64& engine, const ManyRunsTable& kernels, const Cell& cell, int mood) {
  const auto [B, D, K] = cell.shape;
  const std::size_t W = kernels.lanes(cell.shape), count = K * D + K;
  REQUIRE(W <= kMaxRunLanes);
  // Whole packs whose scales are powers of two from 1, and mixed ones.
  static constexpr float kPowers[] = {1.0f, 1024.0f, 65536.0f, 0x1p100f, 0x1p126f};
  static constexpr float kScales[] = {1.0f, 1000.0f, 0x1p127f, 3e38f, kInfinity, 1e-30f, 0.25f, 0x1p-140f, 0.0f};
  AlignedFloats x(B * D * W), y(B * K * W), p(count * W), scale(W), lr(W), limit(W), scratch(ManyScratch(cell.shape) * W), g(count * W), losses(W), divisors(W);
  std::vector<std::int32_t> last_storage(W + 16, -1);
  std::int32_t* last = last_storage.data() + (64 - reinterpret_cast<std::uintptr_t>(last_storage.data()) % 64) / 4 % 16;
  std::vector<ReferenceInput> runs(W);
  for (std::size_t lane = 0; lane < W; ++lane) {
    ReferenceInput& in = runs[lane];
    in.rounding = UniformRounding(*cell.format, cell.strict);
    in.rows = B;
    in.features = D;
    in.outputs = K;
    const int kind = mood == 0 ? 0 : mood == 1 ? static_cast<int>(engine() % 3) : static_cast<int>(engine() % 4);
    in.x = Many(engine, B * D, kind);
    in.y = Many(engine, B * K, kind);
    in.w = Many(engine, D * K, kind);
    in.b = Many(engine, K, kind);
    in.loss_scale = mood < 2 ? kPowers[engine() % std::size(kPowers)] : kScales[engine() % std::size(kScales)];
    if (mood == 0) in.loss_scale = std::min(in.loss_scale, 1024.0f);
    in.lr = std::ldexp(1.0f, -static_cast<int>(engine() % 12));
    for (std::size_t i = 0; i < B * D; ++i) x[i * W + lane] = Round(*cell.format, in.x[i]);
    for (std::size_t i = 0; i < B * K; ++i) y[i * W + lane] = in.y[i];
    for (std::size_t k = 0; k < K; ++k) {
      for (std::size_t d = 0; d < D; ++d) p[(k * D + d) * W + lane] = in.w[d * K + k];
      p[(K * D + k) * W + lane] = in.b[k];
    }
    scale[lane] = in.loss_scale;
    lr[lane] = in.lr;
    limit[lane] = 1.0f;
  }
  const ManyArgs args = {.format = cell.format, .round_predictions = cell.strict, .shape = cell.shape, .x = x.data(), .y = y.data(), .parameters = p.data(),
                         .loss_scale = scale.data(), .lr = lr.data(), .loss_limit = limit.data(), .last_within = last, .scratch = scratch.data(),
                         .gradients = g.data(), .losses = losses.data()};
  std::vector<std::int32_t> expected_last(W, -1);
  std::int32_t time = 0;
  for (const std::size_t steps : {0, 1, 5}) {
    ManySteps got;
    {
      const FlushScope flush;
      got = kernels.steps(args, steps, time);
    }
    // The plain loops as far as every run is finite, and one step more.
    std::vector<ReferenceOutput> out(W);
    std::size_t applied = 0;
    std::uint64_t scaled_bad = 0, unscaled_bad = 0;
    for (;; ++applied) {
      scaled_bad = unscaled_bad = 0;
      for (std::size_t lane = 0; lane < W; ++lane) {
        out[lane] = ReferenceStep(runs[lane]);
        if (out[lane].loss <= limit[lane]) expected_last[lane] = time + static_cast<std::int32_t>(applied);
        scaled_bad |= std::uint64_t{!out[lane].scaled_finite} << lane;
        unscaled_bad |= std::uint64_t{!out[lane].unscaled_finite} << lane;
      }
      if (applied == steps || scaled_bad != 0 || unscaled_bad != 0) break;
      for (std::size_t lane = 0; lane < W; ++lane) {
        runs[lane].w = out[lane].new_w;
        runs[lane].b = out[lane].new_b;
      }
    }
    REQUIRE(got.applied == applied);
    REQUIRE(got.scaled_bad == scaled_bad);
    REQUIRE(got.unscaled_bad == unscaled_bad);
    for (std::size_t lane = 0; lane < W; ++lane) {
      INFO("run " << lane << " S " << runs[lane].loss_scale);
      REQUIRE(last[lane] == expected_last[lane]);
      REQUIRE(SameBits(losses[lane], out[lane].loss));
      for (std::size_t k = 0; k < K; ++k) {
        for (std::size_t d = 0; d < D; ++d) REQUIRE(SameBits(g[(k * D + d) * W + lane], out[lane].gw[d * K + k]));
        REQUIRE(SameBits(g[(K * D + k) * W + lane], out[lane].gb[k]));
      }
    }
    time += static_cast<std::int32_t>(applied) + 1;
    // Every other run takes the step.
    const std::uint64_t chosen = 0xAAAAAAAAAAAAAAAA & ~(scaled_bad | unscaled_bad);
    for (std::size_t lane = 0; lane < W; ++lane) {
      divisors[lane] = scale[lane];
      if ((chosen >> lane & 1) == 0) continue;
      runs[lane].w = out[lane].new_w;
      runs[lane].b = out[lane].new_b;
    }
    {
      const FlushScope flush;
      kernels.apply(args, divisors.data(), chosen);
    }
    for (std::size_t lane = 0; lane < W; ++lane) {
      for (std::size_t k = 0; k < K; ++k) {
        for (std::size_t d = 0; d < D; ++d) REQUIRE(SameBits(p[(k * D + d) * W + lane], runs[lane].w[d * K + k]));
        REQUIRE(SameBits(p[(K * D + k) * W + lane], runs[lane].b[k]));
      }
    }
  }
}

TEST_CASE("the kernels for many runs exist for every instruction set that the kernels for one exist for") {
  REQUIRE(CompiledManyRuns().size() == CompiledKernels().size());
  for (std::size_t i = 0; i < CompiledKernels().size(); ++i) {
    CHECK(CompiledManyRuns()[i].target == CompiledKernels()[i].target);
    CHECK(FindManyRuns(CompiledKernels()[i].target) == &CompiledManyRuns()[i]);
    if (i > 0) CHECK(CompiledManyRuns()[i].steps != CompiledManyRuns()[i - 1].steps);
  }
  CHECK(FindManyRuns("") == &CompiledManyRuns().front());
  CHECK(FindManyRuns("no such target") == nullptr);
}

TEST_CASE("steps of many runs at once equal the plain loops run by run, in every format and profile, on every instruction set") {
  std::mt19937_64 engine(7);
  static constexpr ManyShape kShapes[] = {{2, 2, 1}, {1, 1, 1}, {1, 2, 1}, {2, 1, 1}, {3, 2, 1}, {17, 4, 1}, {32, 8, 1}, {5, 3, 2}};
  for (const ManyRunsTable& kernels : CompiledManyRuns()) {
    for (const Format& format : Formats()) {
      for (const bool strict : {true, false}) {
        for (const ManyShape& shape : kShapes) {
          for (int mood = 0; mood < 3; ++mood) {
            INFO(kernels.target << " " << format.name << (strict ? " strict " : " excess ") << shape.rows << "x" << shape.features << "x" << shape.outputs << " mood " << mood);
            CompareCell(engine, kernels, {&format, strict, shape}, mood);
          }
        }
      }
    }
  }
}

TEST_CASE("steps of many runs equal the plain loops for shapes with remainders, blocks of rows and levels of blocks") {
  std::mt19937_64 engine(8);
  static constexpr ManyShape kShapes[] = {{4, 4, 4}, {33, 2, 1}, {33, 9, 2}, {64, 16, 4}, {65, 8, 1}, {100, 7, 3}, {1100, 2, 1}, {1, 13, 3}, {16, 2, 1}, {31, 8, 1}, {2, 4, 1}, {2, 8, 1}};
  for (const ManyRunsTable& kernels : CompiledManyRuns()) {
    for (const char* format : {"bfloat16", "float16", "float8_e4m3fn"}) {
      for (const ManyShape& shape : kShapes) {
        for (int mood = 0; mood < 3; ++mood) {
          INFO(kernels.target << " " << format << " " << shape.rows << "x" << shape.features << "x" << shape.outputs << " mood " << mood);
          CompareCell(engine, kernels, {FindFormat(format), true, shape}, mood);
        }
      }
    }
  }
}

}  // namespace
}  // namespace scaletrace
