// Config text → RunConfig and back: defaults, every kind of value, overrides, the resolved config, the hash, the
// reference.
#include "config/config.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "config/field_text.h"
#include "config/schema.h"
#include "scaling/scaler.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

namespace fs = std::filesystem;

RunConfig Parse(std::string_view text, const std::vector<std::string>& overrides = {}) {
  return ParseConfig(text, "c.yaml", "folder", overrides);
}

std::string Refusal(std::string_view text, const std::vector<std::string>& overrides) {
  try {
    Parse(text, overrides);
  } catch (const InputError& error) {
    CHECK(error.kind() == InputError::Kind::kConfig);
    return error.what();
  }
  return "accepted";
}

const JaxStep& Policy0(const RunConfig& config) { return std::get<JaxStep>(config.scaler); }

TEST_CASE("Keys that are not given have the defaults of RunConfig") {
  const RunConfig config = Parse("{}");
  CHECK(ResolvedYaml(config) == ResolvedYaml(RunConfig()));
  CHECK(config.folder == "folder");
}

TEST_CASE("A config is read into the fields it names") {
  const RunConfig config = Parse(R"(
name: quickstart
seed: 18446744073709551615
steps: 2000
stop_when: stuck-or-diverged
data: {kind: csv, file: "a b.csv", features: [x1, "x 2"], targets: [y], standardize: all}
batch: {kind: permuted, size: 16, drop_last: true}
model: {init: normal, std: 0.25}
precision: {compute: bfloat16, profile: excess}
optimizer: {kind: sgd, lr: 5e-2}
scaler: {policy: jax-step, init_scale: 2^-149, growth_interval: 50, good_steps: 49}
trace: {every: 0, columns: [loss, step]}
)");
  CHECK(config.name == "quickstart");
  CHECK(config.seed == std::numeric_limits<std::uint64_t>::max());
  CHECK(config.steps == 2000);
  CHECK(config.stop_when == StopWhen::kStuckOrDiverged);
  const CsvData& data = std::get<CsvData>(config.data);
  CHECK(data.file == "a b.csv");
  CHECK(data.features == std::vector<std::string>{"x1", "x 2"});
  CHECK(data.standardize == Standardize::kAll);
  CHECK(std::get<PermutedBatches>(config.batch).size == 16);
  CHECK(std::get<PermutedBatches>(config.batch).drop_last);
  CHECK(std::get<NormalInit>(config.model.init).std == 0.25f);
  CHECK(config.precision.profile == Profile::kExcess);
  CHECK(std::get<Sgd>(config.optimizer).lr == 0.05f);
  CHECK(Policy0(config).init_scale == std::numeric_limits<float>::denorm_min());
  CHECK(Policy0(config).good_steps == 49);
  CHECK(config.trace.columns == std::vector<std::string>{"loss", "step"});
}

TEST_CASE("Numbers go straight from decimals to float32") {
  // Just above the midpoint of 1 and its successor: by way of a double it would become 1.
  CHECK(std::get<Sgd>(Parse("optimizer: {lr: 1.00000005960464477540}").optimizer).lr == std::nextafterf(1.0f, 2.0f));
  CHECK(Policy0(Parse("scaler: {init_scale: inf}")).init_scale == std::numeric_limits<float>::infinity());
  CHECK(Policy0(Parse("scaler: {init_scale: 2^127}")).init_scale == 0x1p127f);
  CHECK(Policy0(Parse("scaler: {init_scale: 3.4028235e38}")).init_scale == std::numeric_limits<float>::max());
  CHECK(std::get<Sgd>(Parse("optimizer: {lr: 1e-45}").optimizer).lr == 0x1p-149f);
  CHECK(std::get<Sgd>(Parse("optimizer: {lr: 0.0e-60}").optimizer).lr == 0.0f);
  CHECK(Refusal("optimizer: {lr: 1e-60}", {}) ==
        "c.yaml:1: optimizer.lr: found 1e-60 (too small for float32); allowed: a number >= 0");
}

TEST_CASE("Overrides are applied in order, over the file and over each other") {
  const RunConfig config =
      Parse("seed: 1\nscaler: {init_scale: 8}\n",
            {"seed=2", "scaler.init_scale=2^10", "seed=3", "trace.columns=[step, loss]", "optimizer.lr=0.5", "name=x"});
  CHECK(config.seed == 3);
  CHECK(Policy0(config).init_scale == 1024);
  CHECK(config.trace.columns == std::vector<std::string>{"step", "loss"});
  CHECK(std::get<Sgd>(config.optimizer).lr == 0.5f);
  CHECK(config.name == "x");
}

TEST_CASE("An override with a mapping replaces the whole mapping") {
  const std::string text = "data: {kind: heavy-tailed, dof: 5, samples: 9}\n";
  const RunConfig config = Parse(text, {"data={kind: gaussian, features: 3}", "data.outputs=2"});
  const GaussianData& data = std::get<GaussianData>(config.data);
  CHECK(data.features == 3);
  CHECK(data.outputs == 2);
  CHECK(data.samples == GaussianData().samples);
  CHECK(Refusal(text, {"data.kind=gaussian"}) ==
        "c.yaml:1: data.dof: not a key of kind gaussian, but of kind heavy-tailed; allowed: kind, samples, features, "
        "outputs, noise "
        "(--set 'data={kind: gaussian}' replaces the whole mapping)");
}

TEST_CASE("Bad overrides name --set and the key") {
  const std::string text = "seed: 1\ndata: {kind: gaussian}\n";
  CHECK(Refusal(text, {"seed"}) == "--set: found seed; allowed: key.path=VALUE");
  CHECK(Refusal(text, {"=3"}) == "--set: found =3; allowed: key.path=VALUE");
  CHECK(Refusal(text, {"data.=3"}) == "--set: found data.=3; allowed: key.path=VALUE");
  CHECK(Refusal(text, {"data..kind=3"}) == "--set: found data..kind=3; allowed: key.path=VALUE");
  CHECK(Refusal(text, {"seed.x=3"}) ==
        "--set: seed.x: found a path into seed, which is 1; allowed: a path through mappings");
  CHECK(Refusal(text, {"seed="}) == "--set: seed: found nothing; allowed: an integer from 0 to 18446744073709551615");
  CHECK(Refusal(text, {"seed=[1"}) ==
        "--set: seed: found a list or mapping as a key, or one that is never closed; allowed: a word as a key");
  CHECK(Refusal(text, {"seed=&a 1"}) == "--set: seed: found an anchor (&name); allowed: values written out");
  CHECK(Refusal(text, {"scaler.growth_interval=0x10"}) ==
        "--set: scaler.growth_interval: found 0x10 (numbers are decimal); allowed: an integer from 1 to 2147483647");
  CHECK(
      Refusal(text, {"sede=1"}).starts_with("--set: sede: unknown key (did you mean 'seed'?); allowed: name, seed, "));
  CHECK(Refusal(text, {"scaler.good_steps=5", "scaler.growth_interval=5"}) ==
        "--set: scaler.good_steps: found 5; allowed: below growth_interval, 5");
  CHECK(Refusal("data: [1]\n", {"data.kind=csv"}) ==
        "--set: data.kind: found a path into data, which is a list; allowed: a path through mappings");
}

TEST_CASE("The resolved config holds every key and reads back to itself") {
  for (const std::string_view text :
       {"{}", "data: {kind: spikes, at: [3, 5], factor: -1e-45}\nname: \"true\"\n",
        "data: {kind: csv, file: \"\\\"q\\\\\\u00e9 #: x\", features: [\"null\", \"1\", \"- a\", \"\"]}\n",
        "scaler: {init_scale: inf, good_steps: 3}\nmodel: {init: normal, std: 0.1}\nseed: 18446744073709551615\n",
        "optimizer: {lr: 3.4028235e38}\ndata: {kind: drift, period: 12345.678901234567}\n"}) {
    const RunConfig config = Parse(text);
    const std::string resolved = ResolvedYaml(config);
    INFO(resolved);
    const RunConfig again = Parse(resolved);
    CHECK(ResolvedYaml(again) == resolved);
    CHECK(again.data.index() == config.data.index());
  }
  CHECK(std::get<CsvData>(Parse(ResolvedYaml(Parse("data: {kind: csv, features: [\"null\", ~x, \"a\\\\b\"]}\n"))).data)
            .features == std::vector<std::string>{"null", "~x", "a\\b"});
  CHECK(ResolvedYaml(Parse("scaler: {init_scale: 2^100}\n")).find("\n  init_scale: 1.2676506e+30\n") !=
        std::string::npos);
}

// With `group` set to each of its alternatives in turn, and all else default.
template <class T>
int CheckKinds(T RunConfig::*group, const std::string& start) {
  int checked = 0;
  ForEachKind<T>([&]<class A>() {
    RunConfig config;
    config.*group = A();
    const std::string resolved = ResolvedYaml(config);
    INFO(resolved);
    CHECK(resolved.find("\n" + start + YamlString(A::kName) + "\n") != std::string::npos);
    // Some policies have no meaning without a list that the user gives.
    if (FindProblem(config.scaler)) {
      CHECK_THROWS_WITH(Parse(resolved),
                        ContainsSubstring("c.yaml:") && ContainsSubstring(FindProblem(config.scaler)->message));
    } else {
      CHECK(ResolvedYaml(Parse(resolved)) == resolved);
      ++checked;
    }
  });
  return checked;
}

TEST_CASE("Each alternative of each kind is read back from its resolved config") {
  CHECK(CheckKinds(&RunConfig::data, "data:\n  kind: ") == static_cast<int>(KindNames<DataOptions>().size()));
  CHECK(CheckKinds(&RunConfig::batch, "batch:\n  kind: ") == static_cast<int>(KindNames<BatchOptions>().size()));
  CHECK(CheckKinds(&RunConfig::optimizer, "optimizer:\n  kind: ") ==
        static_cast<int>(KindNames<OptimizerOptions>().size()));
  CHECK(CheckKinds(&RunConfig::scaler, "scaler:\n  policy: ") > 30);
  for (const std::string_view init : KindNames<decltype(ModelOptions::init)>()) {
    RunConfig config;
    REQUIRE(SetKind(config.model.init, init));
    CHECK(ResolvedYaml(Parse(ResolvedYaml(config))) == ResolvedYaml(config));
  }
}

TEST_CASE("Parameters that do not go together are blamed where the text has them") {
  CHECK(Refusal("scaler:\n  growth_interval: 5\n  good_steps: 5\n", {}) ==
        "c.yaml:3: scaler.good_steps: found 5; allowed: below growth_interval, 5");
  CHECK(Refusal("scaler:\n  good_steps: 5\n", {"scaler.growth_interval=5"}) ==
        "c.yaml:2: scaler.good_steps: found 5; allowed: below growth_interval, 5");
  // The one to blame has its default here: the policy's line.
  CHECK(Refusal("scaler:\n  init_scale: 0.5\n  policy: megatron\n", {}) ==
        "c.yaml:3: scaler.min_scale: found 1 (the default); allowed: at most init_scale, 0.5");
  CHECK(Refusal("scaler:\n  init_scale: 0.5\n", {"scaler.policy=megatron"}) ==
        "--set: scaler.min_scale: found 1 (the default); allowed: at most init_scale, 0.5");
}

TEST_CASE("Odd parameters that a public policy takes are warned about") {
  CHECK(ConfigWarnings(RunConfig()).empty());
  const auto warnings = ConfigWarnings(Parse("scaler: {policy: jax-step, init_scale: 2^-3}\n"));
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == "scaler.init_scale: 0.125: below the floor of 1");
}

TEST_CASE("The hash depends on every key but the name, and not on how the config is written") {
  const std::string hash = ConfigHash(Parse("{}"));
  CHECK(hash.size() == 64);
  CHECK(ConfigHash(Parse("name: other\n")) == hash);
  CHECK(ConfigHash(Parse("optimizer:\n  lr: 5.0e-2  # the default\n")) == hash);
  for (const std::string text :
       {"seed: 1\n", "steps: 1\n", "stop_when: stuck\n", "patience: 1\n", "data: {noise: 0}\n",
        "batch: {kind: permuted}\n", "model: {init: zeros}\n", "precision: {profile: excess}\n",
        "optimizer: {lr: 0.1}\n", "scaler: {good_steps: 1}\n", "trace: {every: 2}\n"}) {
    INFO(text);
    CHECK(ConfigHash(Parse(text)) != hash);
  }
}

TEST_CASE("The hash depends on what a data file holds") {
  const fs::path folder = fs::temp_directory_path() / ("scaletrace-hash-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const RunConfig config = ParseConfig("data: {kind: given, file: d.json}\n", "c.yaml", folder.string());
  const auto hash_with = [&](const std::string& content) {
    std::ofstream(folder / "d.json") << content;
    return ConfigHash(config);
  };
  const std::string first = hash_with("{\"x\": [[1]], \"y\": [[1]]}");
  CHECK(hash_with("{\"x\": [[1]], \"y\": [[2]]}") != first);
  CHECK(hash_with("{\"x\": [[1]], \"y\": [[1]]}") == first);
  fs::remove(folder / "d.json");
  CHECK_THROWS_AS(ConfigHash(config), IoError);
  fs::remove_all(folder);
}

TEST_CASE("A config file brings its folder along") {
  const fs::path folder = fs::temp_directory_path() / ("scaletrace-folder-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string path = (folder / "c.yaml").string();
  std::ofstream(path) << "seed: 4\n";
  const RunConfig config = ReadConfig(path, {"steps=5"});
  CHECK(config.folder == folder.string());
  CHECK(config.seed == 4);
  CHECK(config.steps == 5);
  fs::remove_all(folder);
}

TEST_CASE("docs/config.md is what the program prints") {
  CHECK(ReadFile(std::string(SCALETRACE_SOURCE_DIR) + "/docs/config.md", 10 << 20) == ConfigReference());
}

}  // namespace
}  // namespace scaletrace
