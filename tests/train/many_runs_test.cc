// Many runs at once against one run at a time: every summary, every step that is told of, and the final parameters, on every instruction set.
#include "train/many_runs.h"

#include <map>
#include <numeric>

#include "base/error.h"
#include "kernels/many_runs.h"
#include "tests/catch.h"
#include "tests/golden.h"
#include "train/run.h"

namespace scaletrace {
namespace {

const std::function<bool()> kAlways = [] { return true; };

struct Seen {
  std::vector<StepRecord> records;  // stretches written out
  std::size_t asked = 0;            // steps that were told of one by one
  bool ended = false;
  std::string summary;
  std::vector<float> w, b;
};

class Collector : public ManyRunsObserver {
 public:
  void OnSteps(std::size_t run, const StepRecord& record, std::int64_t count) override {
    Seen& seen = runs[run];
    REQUIRE_FALSE(seen.ended);
    for (std::int64_t i = 0; i < count; ++i) {
      seen.records.push_back(record);
      seen.records.back().step += i;
      seen.records.back().good_steps += i;
    }
    seen.asked += count == 1 ? 1 : 0;
  }
  void OnEnd(std::size_t run, const Summary& summary, std::span<const float> w, std::span<const float> b) override {
    Seen& seen = runs[run];
    REQUIRE_FALSE(seen.ended);
    seen.ended = true;
    seen.summary = FieldsToJson(summary);
    seen.w.assign(w.begin(), w.end());
    seen.b.assign(b.begin(), b.end());
  }
  std::map<std::size_t, Seen> runs;
};

// `left`: how many may be left alone.
void Compare(const std::vector<RunConfig>& configs, std::size_t left) {
  std::vector<std::size_t> all(configs.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  for (const KernelTable& kernels : CompiledKernels()) {
    Collector collector;
    const std::vector<std::size_t> alone = RunTogether(configs, all, kernels, kAlways, collector);
    REQUIRE(alone.size() == left);
    REQUIRE(collector.runs.size() + left == configs.size());
    for (const auto& [i, seen] : collector.runs) {
      INFO(configs[i].name << ", run " << i << " on " << kernels.target);
      Run run(configs[i], kernels);
      std::vector<StepRecord> records(static_cast<std::size_t>(configs[i].steps));
      records.resize(run.Steps(records));
      REQUIRE(run.done());
      REQUIRE(seen.ended);
      REQUIRE(seen.summary == FieldsToJson(run.summary()));
      REQUIRE(SameBits(seen.w, run.model().w()));
      REQUIRE(SameBits(seen.b, run.model().b()));
      REQUIRE(seen.records.size() == records.size());
      for (std::size_t s = 0; s < records.size(); ++s) {
        INFO("step " << s);
        REQUIRE(seen.records[s].step == records[s].step);
        REQUIRE(SameBits(static_cast<float>(seen.records[s].loss_scale), static_cast<float>(records[s].loss_scale)));
        REQUIRE(seen.records[s].good_steps == records[s].good_steps);
        REQUIRE(seen.records[s].grads_finite == records[s].grads_finite);
        REQUIRE(seen.records[s].event == records[s].event);
        REQUIRE(seen.records[s].lr == records[s].lr);
        REQUIRE(seen.records[s].skipped_total == records[s].skipped_total);
        REQUIRE(seen.records[s].skipped_in_a_row == records[s].skipped_in_a_row);
      }
    }
  }
}

template <class Data>
Data Sized(std::int64_t samples, std::int64_t features, std::int64_t outputs) {
  Data data;
  data.samples = samples;
  data.features = features;
  data.outputs = outputs;
  return data;
}

RunConfig Config(std::string name, DataOptions data, Policy policy, std::int64_t steps, std::size_t i) {
  RunConfig config;
  config.name = std::move(name);
  config.data = std::move(data);
  config.scaler = std::move(policy);
  config.steps = steps;
  config.seed = i / 2;
  Sgd sgd;
  sgd.lr = std::ldexp(0.75f, -static_cast<int>(i % 7));
  config.optimizer = sgd;
  return config;
}

JaxStep Doubling(std::size_t i) {
  JaxStep policy;
  policy.init_scale = std::ldexp(1.0f, static_cast<int>(i * 23 % 128));
  policy.growth_interval = static_cast<std::int64_t>(1 + i * 5 % 17);
  return policy;
}

TEST_CASE("many runs at once equal single runs: own seeds, rates, scales, intervals and lengths, from saw-tooths to stuck ones") {
  static constexpr int kShapes[][3] = {{2, 2, 1}, {32, 8, 1}, {5, 3, 2}};
  for (const auto& [B, D, K] : kShapes) {
    for (const char* format : {"bfloat16", "float16", "float6_e3m2fn"}) {
      std::vector<RunConfig> configs;
      for (std::size_t i = 0; i < 80; ++i) {
        configs.push_back(Config(format, Sized<GaussianData>(B, D, K), Doubling(i), i % 11 == 0 ? static_cast<std::int64_t>(i % 3) : 150 + static_cast<std::int64_t>(i % 60), i));
        configs.back().precision.compute = format;
        if (i % 3 == 0) {
          NormalInit normal;
          normal.std = 2;
          configs.back().model.init = normal;
        }
      }
      Compare(configs, 0);
    }
  }
}

TEST_CASE("many runs at once stop early at the same step as single runs") {
  std::vector<RunConfig> configs;
  for (std::size_t i = 0; i < 64; ++i) {
    // Rates that diverge, scales that get stuck.
    configs.push_back(Config("stops", Sized<GaussianData>(2, 2, 1), Doubling(i), 300, i));
    RunConfig& config = configs.back();
    Sgd sgd;
    sgd.lr = std::ldexp(1.0f, static_cast<int>(i % 5) - 2);
    config.optimizer = sgd;
    if (i % 4 == 3) std::get<JaxStep>(config.scaler).init_scale = std::numeric_limits<float>::infinity();
    config.stop_when = static_cast<StopWhen>(i % 4);
    config.patience = static_cast<std::int64_t>(1 + i % 30);
  }
  Compare(configs, 0);
  std::size_t stopped = 0;
  for (const RunConfig& config : configs) {
    Run run(config, CompiledKernels().front());
    std::vector<StepRecord> records(300);
    run.Steps(records);
    stopped += run.summary().stopped.empty() ? 0 : 1;
  }
  CHECK(stopped >= 16);
  CHECK(stopped <= 60);
}

TEST_CASE("many runs at once equal single runs with spikes in the targets, and with both profiles side by side") {
  std::vector<RunConfig> configs;
  for (std::size_t i = 0; i < 96; ++i) {
    SpikesData spikes = Sized<SpikesData>(4, 4, 1);
    spikes.every = static_cast<std::int64_t>(3 + i % 40);
    spikes.at = {0, 7, 8, 9};
    spikes.factor = i % 2 == 0 ? 1e36f : 3e38f;
    configs.push_back(Config("spikes", spikes, Doubling(i), 120, i));
    if (i % 3 == 0) configs.back().precision.profile = Profile::kExcess;
  }
  Compare(configs, 0);
}

template <std::size_t... kPolicies>
std::vector<Policy> EveryPolicy(std::index_sequence<kPolicies...>) {
  return {Policy(std::variant_alternative_t<kPolicies, Policy>())...};
}

TEST_CASE("every policy that looks at flags alone runs in a lane as in a single run; the others are left alone") {
  std::vector<RunConfig> configs;
  std::size_t left = 0;
  for (const Policy& policy : EveryPolicy(std::make_index_sequence<std::variant_size_v<Policy>>())) {
    if (FindProblem(policy)) continue;
    const Needs needs = Scaler(policy).needs();
    const bool flags = needs == Needs{.unscaled_finite = needs.unscaled_finite, .scaled_finite = needs.scaled_finite};
    for (std::size_t i = 0; i < 3; ++i) {
      SpikesData spikes = Sized<SpikesData>(2, 2, 1);
      spikes.every = static_cast<std::int64_t>(5 + 9 * i);
      spikes.factor = 3e38f;
      configs.push_back(Config(std::string(Scaler(policy).info().key), spikes, policy, 120, i));
      left += flags ? 0 : 1;
    }
  }
  CHECK(left > 0);
  CHECK(left < configs.size() / 2);
  Compare(configs, left);
}

TEST_CASE("quiet steps are told of in stretches, and what can't share lanes is left alone") {
  std::vector<RunConfig> configs;
  for (std::size_t i = 0; i < 32; ++i) {
    JaxStep policy;
    policy.growth_interval = 100;
    configs.push_back(Config("quiet", Sized<GaussianData>(2, 2, 1), policy, 1000, 0));
  }
  const auto add = [&](auto change) {
    configs.push_back(configs.front());
    change(configs.back());
  };
  add([](RunConfig& c) { c.batch = PermutedBatches(); });
  add([](RunConfig& c) { c.data = Sized<DriftData>(2, 2, 1); });
  add([](RunConfig& c) { c.data = Sized<GaussianData>(4096, 64, 1); });
  add([](RunConfig& c) { c.data = Sized<GaussianData>(3, 2, 1); });  // alone of its shape
  std::vector<std::size_t> all(configs.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  Collector collector;
  const std::vector<std::size_t> left = RunTogether(configs, all, CompiledKernels().front(), kAlways, collector);
  CHECK(left == std::vector<std::size_t>{32, 33, 34, 35});
  CHECK(collector.runs.size() == 32);
  for (const auto& [i, seen] : collector.runs) CHECK(seen.asked <= 12);
  CHECK_FALSE(CanRunTogether(configs[32]));
  CHECK_FALSE(CanRunTogether(configs[33]));
  CHECK(CanRunTogether(configs[35]));
}

TEST_CASE("a file that is missing is an error, and a config that can't run is left alone") {
  RunConfig config = Config("bad", Sized<GaussianData>(2, 2, 1), JaxStep(), 10, 0);
  std::vector<RunConfig> configs(20, config);
  std::vector<std::size_t> all(configs.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  configs[3].data = GivenData();                         // no file is named
  configs[4].data = Sized<SpikesData>(2, 2, 1);          // no spike
  std::get<JaxStep>(configs[5].scaler).good_steps = 1 << 20;  // beyond the interval
  Collector collector;
  CHECK(RunTogether(configs, all, CompiledKernels().front(), kAlways, collector) == std::vector<std::size_t>{3, 4, 5});
  CHECK(collector.runs.size() == 17);
  GivenData given;
  given.file = "/no/such/file.json";
  configs[6].data = given;
  CHECK_THROWS(RunTogether(configs, all, CompiledKernels().front(), kAlways, collector));
}

TEST_CASE("many runs that are told to stop end no run that is not complete, also where one repeats the same step for ever") {
  std::vector<RunConfig> configs;
  for (std::size_t i = 0; i < 64; ++i) {
    JaxStep policy;
    if (i % 2 == 1) policy.init_scale = std::numeric_limits<float>::infinity();
    configs.push_back(Config("long", Sized<GaussianData>(2, 2, 1), policy, i == 0 ? 1 : 9'000'000'000'000'000, i));
  }
  std::vector<std::size_t> all(configs.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  Collector collector;
  class Ends : public ManyRunsObserver {
   public:
    void OnSteps(std::size_t, const StepRecord&, std::int64_t) override {}
    void OnEnd(std::size_t run, const Summary&, std::span<const float>, std::span<const float>) override { ended.push_back(run); }
    std::vector<std::size_t> ended;
  } ends;
  int asked = 0;
  RunTogether(configs, all, CompiledKernels().front(), [&] { return asked++ < 5; }, ends);
  CHECK(ends.ended == std::vector<std::size_t>{0});
  CHECK(asked == 6);
}

}  // namespace
}  // namespace scaletrace
