// Many runs in one call against the same runs one by one, and what an outcome has besides a summary.
#include "train/run_block.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "config/config.h"
#include "tests/catch.h"
#include "train/run.h"

namespace scaletrace {
namespace {

const std::vector<std::string> kConfigs = {
    "{steps: 300, data: {samples: 8, features: 3}, scaler: {policy: jax-step, init_scale: 2^120, growth_interval: 5}}",
    "{steps: 300, data: {samples: 2, features: 2}, scaler: {policy: pytorch, init_scale: 2^20, growth_interval: 7}, seed: 3}",
    "{steps: 200, data: {samples: 2, features: 2}, precision: {compute: float16}, scaler: {policy: dynamic, init_scale: 2^10, growth_interval: 2, max_scale: 2^12}}",
    "{steps: 0}",
    "{steps: 400, data: {kind: spikes, samples: 16, features: 4, every: 50, factor: 1.0e+30}, precision: {compute: float16}, scaler: {policy: deepspeed}}",
    "{steps: 50, optimizer: {lr: 1.0e+10}, stop_when: diverged, patience: 5}",
};

std::vector<RunConfig> Configs() {
  std::vector<RunConfig> configs;
  for (const std::string& text : kConfigs) configs.push_back(ParseConfig(text, "test", "."));
  return configs;
}

const std::function<bool()> kAlways = [] { return true; };

TEST_CASE("A block of runs has the outcomes of the runs alone, on every instruction set") {
  const std::vector<RunConfig> configs = Configs();
  for (const KernelTable& kernels : CompiledKernels()) {
    const std::vector<RunOutcome> outcomes = RunBlock(configs, kernels, kAlways);
    REQUIRE(outcomes.size() == configs.size());
    for (std::size_t i = 0; i < configs.size(); ++i) {
      INFO(kernels.target << ", run " << i);
      Run run(configs[i], kernels);
      std::vector<double> scales;
      StepRecord record;
      while (run.Steps({&record, 1}) > 0) scales.push_back(record.loss_scale);
      CHECK(FieldsToJson(outcomes[i].summary) == FieldsToJson(run.summary()));
      CHECK(outcomes[i].error.empty());
      const auto at_ceiling = std::count(scales.begin(), scales.end(), ScaleCeiling(configs[i].scaler));
      CHECK(outcomes[i].steps_at_ceiling == at_ceiling);
      std::sort(scales.begin(), scales.end());
      CHECK(outcomes[i].scale_median == (scales.empty() ? 0 : scales[(scales.size() - 1) / 2]));
    }
    CHECK(outcomes[2].steps_at_ceiling > 100);
  }
}

TEST_CASE("A block of many small runs goes through shared lanes and has the outcomes of the runs alone") {
  std::vector<RunConfig> configs;
  for (int i = 0; i < 100; ++i) {
    configs.push_back(ParseConfig("{steps: " + std::to_string(100 + i) + ", seed: " + std::to_string(i % 7) + ", data: {samples: 2, features: 2}, precision: {compute: float16}," +
                                      "scaler: {policy: dynamic, init_scale: 2^" + std::to_string(i % 16) + ", growth_interval: " + std::to_string(1 + i % 5) + ", max_scale: 2^16}}",
                                  "test", "."));
  }
  configs[50].batch = PermutedBatches();
  for (const KernelTable& kernels : CompiledKernels()) {
    std::size_t together = 0;
    const std::vector<RunOutcome> outcomes = RunBlock(configs, kernels, kAlways, &together);
    CHECK(together == configs.size() - 1);
    REQUIRE(outcomes.size() == configs.size());
    for (std::size_t i = 0; i < configs.size(); ++i) {
      INFO(kernels.target << ", run " << i);
      std::size_t alone = 1;
      const std::vector<RunOutcome> one = RunBlock(std::span(configs).subspan(i, 1), kernels, kAlways, &alone);
      REQUIRE(one.size() == 1);
      CHECK(alone == 0);
      CHECK(FieldsToJson(outcomes[i].summary) == FieldsToJson(one[0].summary));
      CHECK(outcomes[i].scale_median == one[0].scale_median);
      CHECK(outcomes[i].steps_at_ceiling == one[0].steps_at_ceiling);
    }
  }
}

TEST_CASE("A config that cannot run is an outcome with a reason, and the others run") {
  std::vector<RunConfig> configs = Configs();
  configs[1].scaler = Dynamic{.init_scale = 8, .min_scale = 16};
  const std::vector<RunOutcome> outcomes = RunBlock(configs, CompiledKernels().front(), kAlways);
  REQUIRE(outcomes.size() == configs.size());
  CHECK(outcomes[1].error.find("min_scale") != std::string::npos);
  CHECK(outcomes[1].summary.steps == 0);
  CHECK(outcomes[2].error.empty());
  CHECK(outcomes[2].summary.steps == 200);
}

TEST_CASE("A block that is told to stop returns the runs that are complete, and no others") {
  const std::vector<RunConfig> configs = Configs();
  const std::vector<RunOutcome> all = RunBlock(configs, CompiledKernels().front(), kAlways);
  for (int allowed : {0, 1, 2, 5, 9, 14}) {
    int asked = 0;
    const std::vector<RunOutcome> some = RunBlock(configs, CompiledKernels().front(), [&] { return asked++ < allowed; });
    CHECK(some.size() <= all.size());
    for (std::size_t i = 0; i < some.size(); ++i) CHECK(FieldsToJson(some[i].summary) == FieldsToJson(all[i].summary));
    if (allowed == 0) CHECK(some.empty());
  }
}

TEST_CASE("The ceiling of a policy is its max_scale, else its fixed ceiling, else none") {
  CHECK(ScaleCeiling(Dynamic{.max_scale = 4096}) == 4096);
  CHECK(ScaleCeiling(Dynamic{.max_scale = std::nullopt}) == 0);
  CHECK(ScaleCeiling(NoScaling{}) == 0);
  CHECK(ScaleCeiling(Pytorch{}) == 0);
}

TEST_CASE("A tally of scales counts inf and NaN as values, and its median is the lower one") {
  ScaleTally tally;
  CHECK(tally.LowerMedian() == 0);
  tally.Add(4);
  tally.Add(2);
  CHECK(tally.LowerMedian() == 2);
  tally.Add(std::numeric_limits<double>::infinity(), 2);
  CHECK(tally.LowerMedian() == 4);
  tally.Add(std::numeric_limits<double>::quiet_NaN());
  tally.Add(std::numeric_limits<double>::quiet_NaN());
  CHECK(std::isinf(tally.LowerMedian()));
  tally.Add(std::numeric_limits<double>::quiet_NaN(), 10);
  CHECK(std::isnan(tally.LowerMedian()));
  CHECK(tally.Count(4) == 1);
  CHECK(tally.Count(std::numeric_limits<double>::infinity()) == 2);
  CHECK(tally.Count(3) == 0);
}

}  // namespace
}  // namespace scaletrace
