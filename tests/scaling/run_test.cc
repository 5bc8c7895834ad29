// Policies inside a run, whose arithmetic flushes subnormal numbers: the scales must not be touched by that.
#include "train/run.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "kernels/kernels.h"
#include "support.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

std::vector<StepRecord> AllSteps(const RunConfig& config) {
  Run run(config, CompiledKernels().front());
  std::vector<StepRecord> records(static_cast<std::size_t>(config.steps));
  std::size_t taken = 0;
  while (!run.done()) taken += run.Steps(std::span(records).subspan(taken));
  records.resize(taken);
  return records;
}

RunConfig Shipped(const char* name, const std::vector<std::string>& overrides = {}) {
  return ReadConfig(std::string(SCALETRACE_SOURCE_DIR "/configs/") + name, overrides);
}

TEST_CASE("A run takes a scale through the subnormals to 0") {
  const std::vector<StepRecord> records = AllSteps(Shipped("policy-floor-zero.yaml"));
  REQUIRE(records.size() == 60);
  CHECK(records[16].loss_scale == 0x1p-126);
  CHECK(records[17].loss_scale == 0x1p-127);
  CHECK(records[39].loss_scale == 0x1p-149);
  CHECK(records[40].loss_scale == 0);
  CHECK(records[40].grads_finite);  // 0 is finite, and 0/0 goes into the weights
  CHECK(std::isnan(records[41].loss));
}

TEST_CASE("A run takes a scale that is held in double beyond float, and back") {
  const std::vector<StepRecord> records =
      AllSteps(Shipped("policy-growth-to-inf.yaml",
                       {"steps=20", "data={kind: scaled, samples: 64, features: 4, outputs: 1, target_factor: 1e-6}",
                        "scaler={policy: apex-fp16utils, init_scale: 2^124, growth_interval: 1}"}));
  double largest = 0;
  for (const StepRecord& record : records) largest = std::max(largest, record.loss_scale);
  CHECK(largest == 0x1p128);  // as float it is inf, and so every gradient overflows
  CHECK(records[4].loss_scale == 0x1p128);
  CHECK_FALSE(records[4].grads_finite);
  CHECK(records[5].loss_scale == 0x1p127);
}

TEST_CASE("Policies that share their scales may still train differently: the divisor of the gradients is theirs") {
  const std::vector<StepRecord> shipped = AllSteps(Shipped("policy-unscale-new.yaml"));
  const std::vector<StepRecord> fixed =
      AllSteps(Shipped("policy-unscale-new.yaml", {"scaler.policy=colossalai-fixed"}));
  REQUIRE(shipped.size() == fixed.size());
  for (std::size_t i = 0; i < shipped.size(); ++i) CHECK(shipped[i].loss_scale == fixed[i].loss_scale);
  CHECK(shipped[1].loss == fixed[1].loss);
  CHECK(shipped[2].loss > fixed[2].loss);  // step 1 grew, and used half of its gradient
}

TEST_CASE("A policy that raises ends its run with the row of that step") {
  const std::vector<StepRecord> records = AllSteps(Shipped("policy-floor-raise.yaml"));
  CHECK(records.size() == 11);
  CHECK(records.back().event == Event::kRaise);
  CHECK(records.back().loss_scale == 1);
}

TEST_CASE("The configs show the events that their heads promise") {
  const auto events = [](const char* name) {
    std::vector<std::pair<std::int64_t, Event>> found;
    for (const StepRecord& r : AllSteps(Shipped(name))) {
      if (r.event != Event::kNone && r.step >= 20 && r.step < 30) found.emplace_back(r.step, r.event);
    }
    return found;
  };
  using Found = std::vector<std::pair<std::int64_t, Event>>;
  constexpr Event kF = Event::kForgiven, kB = Event::kBackoff;
  CHECK(events("policy-hysteresis-growth.yaml") == Found{{20, kF}, {22, kB}, {24, kB}, {25, kB}, {26, kB}});
  CHECK(events("policy-hysteresis-any-good.yaml") == Found{{20, kF}, {22, kF}, {24, kF}, {25, kB}, {26, kB}});
  CHECK(events("policy-hysteresis-batch.yaml") == Found{{20, kF}, {22, kF}, {24, kF}, {25, kB}, {26, kF}});
  CHECK(events("policy-hysteresis-accumulated.yaml") == Found{{20, kF}, {22, kB}, {24, kF}, {25, kB}, {26, kF}});
  CHECK(events("policy-cadence-n.yaml") == Found{{29, Event::kGrowth}});
  CHECK(events("policy-cadence-n-plus-1.yaml") == Found{{21, Event::kGrowth}});
  const std::vector<StepRecord> late = AllSteps(Shipped("policy-cadence-late.yaml"));
  CHECK(late[9].event == Event::kGrowth);
  CHECK(late[10].loss_scale == 1024);
  CHECK(late[11].loss_scale == 2048);
}

}  // namespace
}  // namespace scaletrace
