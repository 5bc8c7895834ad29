// Axes, conditions and the arithmetic from a run's number to its config.
#include "sweep/plan.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/number.h"
#include "config/config.h"
#include "sweep/axis.h"
#include "sweep/condition.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

std::vector<std::string> Values(const std::string& key, const std::string& spec) {
  const Series series(key, ParseYaml(spec, {"test", 1, ""}), "test", key);
  std::vector<std::string> values;
  YamlNode scratch;
  for (std::uint64_t i = 0; i < series.count(); ++i) values.push_back(series.At(i, scratch).text);
  return values;
}

using Texts = std::vector<std::string>;

SweepPlan PlanOf(const std::string& text) { return SweepPlan(text, "test", "."); }

std::string MessageOf(const std::string& text) {
  try {
    PlanOf(text);
  } catch (const InputError& e) {
    return e.what();
  }
  return "no error";
}

RunConfig Make(const SweepPlan& plan, std::uint64_t run) {
  RunConfig config;
  const SweepPlan::Made made = plan.Make(run, config);
  CHECK(made.error.empty());
  CHECK_FALSE(made.dropped);
  return config;
}

TEST_CASE("Ranges have the decimals that are meant, ends included") {
  CHECK(Values("steps", "{range: [0, 3]}") == Texts{"0", "1", "2", "3"});
  CHECK(Values("steps", "{range: [1, 10], step: 4}") == Texts{"1", "5", "9"});
  CHECK(Values("steps", "{range: [0, 100], count: 5}") == Texts{"0", "25", "50", "75", "100"});
  CHECK(Values("optimizer.lr", "{range: [0, 1], step: 0.1}") == Texts{"0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1"});
  CHECK(Values("optimizer.lr", "{range: [0.1, 0.3], count: 3}") == Texts{"0.1", "0.2", "0.3"});
  CHECK(Values("optimizer.lr", "{range: [2, 2]}") == Texts{"2"});
  CHECK(Values("optimizer.lr", "{logrange: [1.0e-4, 1], count: 5}") == Texts{"1e-04", "0.001", "0.01", "0.1", "1"});
  CHECK(Values("scaler.init_scale", "{log2range: [-2, 4], step: 2}") == Texts{"0.25", "1", "4", "16"});
  CHECK(Values("scaler.init_scale", "{log2range: [62, 63]}") == Texts{"4611686018427387904", "9223372036854775808"});
  CHECK(Values("scaler.init_scale", "{grid: [2^4, 7]}") == Texts{"2^4", "7"});
}

TEST_CASE("Random values depend on seed, key and place alone, and stay within their limits") {
  const Texts five = Values("optimizer.lr", "{random: log-uniform, low: 1.0e-4, high: 1, count: 5}");
  const Texts many = Values("optimizer.lr", "{random: log-uniform, low: 1.0e-4, high: 1, count: 2000}");
  CHECK(std::equal(five.begin(), five.end(), many.begin()));
  CHECK(five != Values("optimizer.lr", "{random: log-uniform, low: 1.0e-4, high: 1, count: 5, seed: 1}"));
  CHECK(five != Values("data.noise", "{random: log-uniform, low: 1.0e-4, high: 1, count: 5}"));
  double logs = 0;
  for (const std::string& text : many) {
    const double value = ReadDouble(text).value();
    CHECK((value >= 1e-4 && value <= 1));
    logs += std::log10(value) / 2000;
  }
  CHECK(std::fabs(logs + 2) < 0.1);  // the middle of -4 and 0; the standard error is 0.026
  double sum = 0;
  for (const std::string& text : Values("optimizer.lr", "{random: normal, mean: 3, std: 2, count: 2000}")) sum += ReadDouble(text).value() / 2000;
  CHECK(std::fabs(sum - 3) < 0.2);
  const Texts drawn = Values("steps", "{random: integer, low: 2, high: 5, count: 200}");
  CHECK(std::set<std::string>(drawn.begin(), drawn.end()) == std::set<std::string>{"2", "3", "4", "5"});
  const Texts powers = Values("scaler.init_scale", "{random: power-of-two, low: -1, high: 1, count: 100}");
  CHECK(std::set<std::string>(powers.begin(), powers.end()) == std::set<std::string>{"0.5", "1", "2"});
  for (const std::string& text : Values("optimizer.lr", "{random: uniform, low: 5, high: 5, count: 3}")) CHECK(text == "5");
}

TEST_CASE("Every run's config is the base config with its settings, read as text") {
  const std::string base = "steps: 7\noptimizer: {lr: 0.5}\n";
  const SweepPlan plan = PlanOf(base +
                                "sweep:\n  axes:\n    scaler: [{policy: pytorch}, {policy: deepspeed, hysteresis: 3}]\n"
                                "    pair: {zip: {data.samples: [4, 5, 6], seed: {range: [10, 12]}}}\n    scaler.init_scale: {log2range: [3, 4]}\n");
  REQUIRE(plan.runs() == 12);
  const char* policies[] = {"{policy: pytorch}", "{policy: deepspeed, hysteresis: 3}"};
  for (std::uint64_t run = 0; run < 12; ++run) {
    const std::uint64_t scale = run % 2, pair = run / 2 % 3, policy = run / 6;
    const RunConfig expected = ParseConfig(base, "test", ".",
                                           {"scaler=" + std::string(policies[policy]), "data.samples=" + std::to_string(4 + pair),
                                            "seed=" + std::to_string(10 + pair), "scaler.init_scale=" + std::to_string(8 << scale)});
    CHECK(ResolvedYaml(Make(plan, run)) == ResolvedYaml(expected));
  }
  CHECK(plan.facts().header.starts_with("run,scaler.policy,scaler.hysteresis,data.samples,seed,scaler.init_scale,steps,"));
}

TEST_CASE("A config that held another run before gives the same run") {
  const SweepPlan plan = PlanOf("sweep: {axes: {scaler: [{policy: pytorch}, {policy: flax}], data: [{kind: drift}, {kind: spikes, at: [1, 2]}], optimizer.lr: [1, 2]}, repeat: 2}");
  RunConfig reused;
  for (std::uint64_t i = 0; i < 64; ++i) {
    const std::uint64_t run = i * 7 % plan.runs();
    plan.Make(run, reused);
    CHECK(ResolvedYaml(reused) == ResolvedYaml(Make(plan, run)));
  }
}

TEST_CASE("Seeds are innermost, and a cap takes whole sets of them, evenly") {
  const std::string text = "seed: 5\nsweep:\n  axes: {optimizer.lr: {range: [1, 1000]}, data.samples: {range: [1, 1000]}}\n  repeat: 4\n";
  const SweepPlan all = PlanOf(text);
  CHECK(all.runs() == 4'000'000);
  CHECK(Make(all, 4'000'000 - 1).seed == 8);
  const SweepPlan some = PlanOf(text + "  cap: 403\n");
  REQUIRE(some.runs() == 400);
  for (std::uint64_t run = 0; run < 400; ++run) {
    const RunConfig config = Make(some, run);
    CHECK(config.seed == 5 + run % 4);
    // One of each hundredth of the combinations, in order.
    CHECK(static_cast<std::uint64_t>(std::get<Sgd>(config.optimizer).lr - 1) / 10 == run / 4);
  }
  CHECK(PlanOf(text + "  cap: 5000000\n").runs() == 4'000'000);
}

TEST_CASE("Plans too large to mean are refused, and those that fit are made at once") {
  CHECK(MessageOf("sweep: {axes: {seed: {range: [1, 10000001]}}}").find("cap: N keeps N of them") != std::string::npos);
  CHECK(PlanOf("sweep: {axes: {seed: {range: [1, 1000000000]}}, cap: 1000000000}").runs() == 1'000'000'000);
  CHECK(MessageOf("sweep: {axes: {seed: {range: [1, 1000000000000]}, steps: {range: [1, 1000000000000]}}, cap: 5}").find("more than 2^62 combinations") != std::string::npos);
}

TEST_CASE("The hash follows everything that a result depends on, and not the name") {
  const std::string text = "name: a\nsteps: 7\nsweep: {axes: {optimizer.lr: [1, 2]}}\n";
  const std::string hash = PlanOf(text).facts().hash;
  CHECK(hash == PlanOf("name: b\nsteps: 7   # a comment\nsweep: {axes: {optimizer.lr: [1, 2]}}\n").facts().hash);
  for (const char* other : {"name: a\nsteps: 8\nsweep: {axes: {optimizer.lr: [1, 2]}}\n", "name: a\nsteps: 7\nsweep: {axes: {optimizer.lr: [1, 3]}}\n",
                            "name: a\nsteps: 7\nsweep: {axes: {optimizer.lr: [1, 2]}, repeat: 2}\n", "name: a\nsteps: 7\nsweep: {axes: {optimizer.lr: [1, 2]}, where: lr > 1}\n"}) {
    CHECK(hash != PlanOf(other).facts().hash);
  }
}

TEST_CASE("A sample of traces has one run of each equal part") {
  const SweepPlan plan = PlanOf("sweep: {axes: {seed: {range: [1, 1003]}}, keep_traces: sample 10}");
  std::vector<std::uint64_t> kept;
  for (std::uint64_t run = 0; run < plan.runs(); ++run) {
    if (plan.InSample(run)) kept.push_back(run);
  }
  REQUIRE(kept.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(kept[i] / 101 <= i);
  const SweepPlan few = PlanOf("sweep: {repeat: 3, keep_traces: sample 10}");
  CHECK((few.InSample(0) && few.InSample(1) && few.InSample(2)));
}

bool Holds(const std::string& text) {
  const auto resolve = [](std::string_view name) { return std::string(name); };
  const auto fail = [](const std::string& message) { throw InputError(InputError::Kind::kConfig, {.file = "where"}, message); };
  const Condition condition(text, resolve, fail);
  std::vector<std::optional<std::string>> texts;
  for (const std::string& key : condition.keys()) {
    if (key == "two") texts.push_back("2");
    else if (key == "word") texts.push_back("jax-step");
    else if (key == "huge") texts.push_back("inf");
    else if (key == "not_a") texts.push_back("NaN");
    else texts.push_back(std::nullopt);
  }
  return condition.Holds(texts);
}

TEST_CASE("Conditions bind as arithmetic does, and are false about what is not there") {
  for (const char* text : {"1 < 2", "two == 2", "2 + 3 * 4 == 14", "(2 + 3) * 4 == 20", "-two < -1", "10 - 2 - 3 == 5", "2^10 == 1024", "log2(2^-3) == -3", "abs(1 - 4) == 3",
                           "1 < 2 and 2 < 3", "1 > 2 or 2 < 3", "not 1 > 2", "not (1 < 2 and 2 > 3)", "word == 'jax-step'", "word != \"x\"", "huge == inf", "huge > 1e300",
                           "missing == 1 or two == 2", "not missing == 1", "1 / 0 == inf", "8 / 2 / 2 == 2", "two!=3", "1e-3<2e-3", "1 > 2 and 1 > 2 or 1 < 2"}) {
    INFO(text);
    CHECK(Holds(text));
  }
  for (const char* text : {"missing == 1", "missing != 1", "missing + 1 > 0", "not_a == not_a", "not_a != 1", "word < 3", "word == 2", "two == 'x'", "word + 1 == 1", "0 / 0 == 0"}) {
    INFO(text);
    CHECK_FALSE(Holds(text));
  }
  for (const char* text : {"", "1", "1 <", "1 < 2 <= 3", "(1 < 2", "1 < 2)", "and", "1 = 1", "'a", "1 < 2 and 3", "not 3", "1 + (1 < 2) > 0", "log2 2 > 1", "1 < 2 3", "@ < 1", "1x < 2"}) {
    INFO(text);
    CHECK_THROWS_AS(Holds(text), InputError);
  }
  CHECK_THROWS_AS(Holds(std::string(100000, '(')), InputError);
  CHECK_THROWS_AS(Holds(std::string(100000, '-') + "1 < 2"), InputError);
  std::string chain = "1 < 2";
  for (int i = 0; i < 20000; ++i) chain += " and 1 < 2";
  CHECK_THROWS_AS(Holds(chain), InputError);
}

}  // namespace
}  // namespace scaletrace
