// Parts of a step by themselves, with Google's benchmark library: scaletrace_micro --benchmark_filter=...
#include <benchmark/benchmark.h>

#include "kernels/aligned.h"
#include "kernels/flush_scope.h"
#include "kernels/kernels.h"
#include "kernels/many_runs.h"
#include "data/generators.h"
#include "train/run.h"
#include "train/run_block.h"

namespace scaletrace {
namespace {

void RoundTo(benchmark::State& state, const char* format) {
  const KernelTable& kernels = CompiledKernels().front();
  const StepRounding rounding = UniformRounding(*FindFormat(format), true);
  AlignedFloats in(4096), out(4096);
  for (std::size_t i = 0; i < 4096; ++i) in[i] = static_cast<float>(i) * 1.37f - 2000;
  for (auto _ : state) {
    kernels.round(rounding, Role::kWeight, 0, 0, in.data(), 4096, out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * 4096);
}
BENCHMARK_CAPTURE(RoundTo, bfloat16, "bfloat16");
BENCHMARK_CAPTURE(RoundTo, float16, "float16");
BENCHMARK_CAPTURE(RoundTo, float8_e4m3fn, "float8_e4m3fn");

// Steps of a full pack of runs: range is B, D, K.
void ManyRunsStep(benchmark::State& state) {
  const ManyRunsTable& many = *FindManyRuns("");
  const ManyShape shape = {static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)), static_cast<std::size_t>(state.range(2))};
  const std::size_t W = many.lanes(shape), count = shape.outputs * (shape.features + 1);
  AlignedFloats x(shape.rows * shape.features * W), y(shape.rows * shape.outputs * W), p(count * W), scale(W), lr(W), limit(W), scratch(ManyScratch(shape) * W), g(count * W), losses(W);
  alignas(64) std::int32_t last[kMaxRunLanes] = {};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) / 16 - 0.5f;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i % 13) / 8 - 0.75f;
  for (std::size_t i = 0; i < W; ++i) {
    scale[i] = 1024;
    lr[i] = 0.01f;
    limit[i] = 1e30f;
  }
  const ManyArgs args = {.format = FindFormat("bfloat16"), .round_predictions = true, .shape = shape, .x = x.data(), .y = y.data(), .parameters = p.data(),
                         .loss_scale = scale.data(), .lr = lr.data(), .loss_limit = limit.data(), .last_within = last, .scratch = scratch.data(), .gradients = g.data(),
                         .losses = losses.data()};
  for (auto _ : state) {
    const FlushScope flush;
    benchmark::DoNotOptimize(many.steps(args, 999, 0));
  }
  state.SetItemsProcessed(state.iterations() * 1000 * static_cast<std::int64_t>(W));
}
BENCHMARK(ManyRunsStep)->Args({2, 2, 1})->Args({8, 4, 1})->Args({32, 8, 1})->Args({8, 5, 1})->Args({16, 16, 4});

// Steps of one run: range is B, D, K.
void OneRunStep(benchmark::State& state) {
  RunConfig config;
  GaussianData data;
  data.samples = state.range(0);
  data.features = state.range(1);
  data.outputs = state.range(2);
  config.data = data;
  config.steps = std::int64_t{1} << 50;
  // A scale that grew without end would become inf, and skipped steps cost less than others.
  JaxStep policy;
  policy.growth_interval = std::int64_t{1} << 40;
  config.scaler = policy;
  Run run(config, CompiledKernels().front());
  std::vector<StepRecord> records(static_cast<std::size_t>(1 + 1000000 / (data.samples * data.features * data.outputs)));
  for (auto _ : state) run.Steps(records);
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(records.size()));
}
BENCHMARK(OneRunStep)->Args({2, 2, 1})->Args({32, 8, 1})->Args({256, 32, 8})->Args({512, 256, 64});

// A block of runs from their configs to their outcomes: range is the growth interval, how often the policies are asked.
void Block(benchmark::State& state) {
  RunConfig config;
  GaussianData data;
  data.samples = data.features = 2;
  config.data = data;
  config.steps = 1000;
  JaxStep policy;
  policy.growth_interval = state.range(0);
  config.scaler = policy;
  const std::vector<RunConfig> configs(1024, config);
  for (auto _ : state) benchmark::DoNotOptimize(RunBlock(configs, CompiledKernels().front(), [] { return true; }));
  state.SetItemsProcessed(state.iterations() * 1024 * 1000);
}
BENCHMARK(Block)->Arg(1)->Arg(10)->Arg(100)->Arg(2000);

void MakeData(benchmark::State& state) {
  GaussianData data;
  data.samples = 32;
  data.features = 8;
  std::uint64_t seed = 0;
  for (auto _ : state) benchmark::DoNotOptimize(MakeDataset(data, ++seed, "."));
  state.SetItemsProcessed(state.iterations() * (32 * 8 + 8 + 32));
}
BENCHMARK(MakeData);

}  // namespace
}  // namespace scaletrace

BENCHMARK_MAIN();
