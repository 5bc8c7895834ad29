// Targets that move and spike.
#include "data/dataset.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/math.h"
#include "data/generators.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

std::vector<float> Targets(const Dataset& data, std::int64_t step, const std::vector<std::uint32_t>& rows = {}) {
  std::vector<float> out((rows.empty() ? data.samples : rows.size()) * data.outputs);
  data.TargetsAt(step, rows, out);
  return out;
}

Dataset Drifting(double period, float noise) {
  DriftData options;
  options.samples = 20;
  options.features = 4;
  options.outputs = 3;
  options.noise = noise;
  options.period = period;
  return MakeDataset(options, 2, ".");
}

TEST_CASE("targets that do not move are y in every step and change only at step 0") {
  GaussianData options;
  options.samples = 5;
  options.outputs = 2;
  const Dataset data = MakeDataset(options, 1, ".");
  for (const std::int64_t step : {0, 1, 77}) CHECK(Targets(data, step) == data.y);
  CHECK(data.TargetsChange(0));
  CHECK_FALSE(data.TargetsChange(1));
  CHECK_FALSE(data.TargetsChange(1000000));
  const std::vector<float> some = {data.y[6], data.y[7], data.y[0], data.y[1], data.y[6], data.y[7]};
  CHECK(Targets(data, 3, {3, 0, 3}) == some);
}

TEST_CASE("drifting targets follow the circle in f32, and the noise stays") {
  const Dataset data = Drifting(12, 0.5f);
  for (std::int64_t step = 0; step < 40; ++step) {
    const float c = static_cast<float>(CosTurns(static_cast<double>(step) / 12));
    const float s = static_cast<float>(SinTurns(static_cast<double>(step) / 12));
    const std::vector<float> out = Targets(data, step);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const volatile float turned = s * data.y_turned[i];
      const volatile float still = c * data.y[i];
      const volatile float sum = still + turned;
      REQUIRE(out[i] == sum + data.noise[i]);
    }
    CHECK(data.TargetsChange(step));
  }
  CHECK(Targets(data, 12) == Targets(data, 0));
  CHECK(Targets(data, 5) != Targets(data, 0));
  const auto all = Targets(data, 5);
  CHECK(Targets(data, 5, {19}) == std::vector<float>(all.end() - 3, all.end()));
}

TEST_CASE("without noise the drifting teacher is y at the start, y_turned a quarter later, and -y at half a turn") {
  const Dataset data = Drifting(8, 0);
  CHECK(Targets(data, 0) == data.y);
  CHECK(Targets(data, 2) == data.y_turned);
  const auto half = Targets(data, 4);
  for (std::size_t i = 0; i < half.size(); ++i) REQUIRE(half[i] == -data.y[i]);
}

TEST_CASE("spikes multiply the targets at the steps of the list and at multiples, and nowhere else") {
  SpikesData options;
  options.samples = 6;
  options.features = 2;
  options.at = {13, 3, 3, 0};
  options.every = 10;
  options.factor = 1e3f;
  const Dataset data = MakeDataset(options, 1, ".");
  for (std::int64_t step = 0; step < 45; ++step) {
    const bool spike = step == 0 || step == 3 || step == 13 || (step > 0 && step % 10 == 0);
    CHECK(data.IsSpike(step) == spike);
    const auto out = Targets(data, step);
    for (std::size_t i = 0; i < out.size(); ++i) REQUIRE(out[i] == (spike ? data.y[i] * 1e3f : data.y[i]));
    CHECK(data.TargetsChange(step) == (step == 0 || Targets(data, step) != Targets(data, step - 1)));
  }
}

TEST_CASE("a spike that overflows gives infinities") {
  SpikesData options;
  options.every = 1;
  options.factor = 3e38f;
  const Dataset data = MakeDataset(options, 1, ".");
  bool infinite = false;
  for (const float y : Targets(data, 1)) infinite = infinite || std::isinf(y);
  CHECK(infinite);
  CHECK(Targets(data, 0) == data.y);
}

TEST_CASE("room of the wrong size or a row beyond the last is a bug that is caught") {
  const Dataset data = MakeDataset(GaussianData{}, 1, ".");
  std::vector<float> out(2);
  const std::vector<std::uint32_t> one = {0};
  CHECK_THROWS_AS(data.TargetsAt(0, one, out), InternalError);
  const std::vector<std::uint32_t> beyond = {0, 256};
  CHECK_THROWS_AS(data.TargetsAt(0, beyond, out), InternalError);
}

}  // namespace
}  // namespace scaletrace

namespace scaletrace {
namespace {

TEST_CASE("Steps that are said to have the same targets have them, and the next change is not far beyond") {
  Dataset data;
  data.samples = data.features = data.outputs = 1;
  data.x = {1};
  data.y = {2};
  data.spike_steps = {3, 4, 9, 30};
  data.spike_factor = 5;
  for (const std::int64_t every : {0, 7}) {
    data.spike_every = every;
    for (std::int64_t step = 0; step < 50; ++step) {
      for (const std::int64_t most : {1, 2, 5, 100}) {
        const std::int64_t n = data.StepsWithSameTargets(step, most);
        REQUIRE(n >= 1);
        REQUIRE(n <= most);
        for (std::int64_t i = 1; i < n; ++i) REQUIRE_FALSE(data.TargetsChange(step + i));
        // Between spikes nothing is given away.
        if (!data.IsSpike(step) && n < most) REQUIRE(data.TargetsChange(step + n));
      }
    }
  }
  data.period = 10;
  CHECK(data.StepsWithSameTargets(0, 100) == 1);
}

}  // namespace
}  // namespace scaletrace
