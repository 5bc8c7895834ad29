// Single keys of a config: found, set and shown one by one, as the reader of whole configs has them.
#include "config/keys.h"

#include <algorithm>

#include "base/error.h"
#include "config/config.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

YamlNode Node(const std::string& text) { return ParseYaml(text, {"test", 3, ""}); }

std::string MessageOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const InputError& e) {
    return e.what();
  }
  return "no error";
}

TEST_CASE("A key set alone is the key set in the text") {
  const std::vector<std::pair<std::string, std::string>> values = {
      {"scaler.init_scale", "2^20"}, {"optimizer.lr", "0.1"},          {"seed", "18446744073709551615"}, {"steps", "7"},
      {"stop_when", "diverged"},     {"precision.compute", "float16"}, {"data.at", "[3, 4]"},            {"scaler.max_scale", "none"},
      {"trace.columns", "[loss]"},   {"name", "other"}};
  const std::string text = "{data: {kind: spikes}, scaler: {policy: dynamic}}";
  for (const auto& [path, value] : values) {
    INFO(path);
    RunConfig config = ParseConfig(text, "test", ".");
    const std::string before = ResolvedYaml(config);
    SetKey(config, path, Node(value), "test");
    CHECK(ResolvedYaml(config) != before);
    CHECK(ResolvedYaml(config) == ResolvedYaml(ParseConfig(text, "test", ".", {path + "=" + value})));
  }
}

TEST_CASE("A key set alone gets the messages of the reader, with the line of its value") {
  RunConfig config;
  const auto set = [&](const std::string& path, const std::string& value) {
    return MessageOf([&] { SetKey(config, path, Node(value), "test"); });
  };
  CHECK(set("optimizer.lr", "-1") == "test:3: optimizer.lr: found -1; allowed: a number >= 0");
  CHECK(set("optimizer.lrr", "1").find("unknown key (did you mean 'lr'?)") != std::string::npos);
  CHECK(set("data.dof", "1").find("not a key of kind gaussian") != std::string::npos);
  CHECK(set("steps.more", "1").find("steps") != std::string::npos);
  CHECK(set("nonsense", "1").find("unknown key") != std::string::npos);
}

TEST_CASE("Every key of a config has a text, tags included, and a key that it lacks has none") {
  const RunConfig config = ParseConfig("{data: {kind: spikes, at: [1, 2]}, scaler: {init_scale: 2^20}}", "test", ".");
  CHECK(KeyText(config, "data.kind") == "spikes");
  CHECK(KeyText(config, "data.at") == "[1, 2]");
  CHECK(KeyText(config, "scaler.init_scale") == "1048576");
  CHECK(KeyText(config, "model.init") == "auto");
  CHECK(KeyText(config, "name") == "run");
  for (const char* path : {"data.dof", "data", "scaler", "", "scaler.", "scaler.init_scale.x", "nonsense"}) CHECK(!KeyText(config, path));
}

TEST_CASE("Groups and tags are structural, values are not") {
  for (const char* path : {"data", "data.kind", "scaler", "scaler.policy", "model", "model.init", "trace"}) CHECK(IsStructuralKey(path));
  for (const char* path : {"steps", "data.samples", "scaler.init_scale", "nonsense", ""}) CHECK_FALSE(IsStructuralKey(path));
  const std::vector<std::string> paths = AllKeyPaths();
  for (const char* path : {"data", "data.kind", "data.dof", "steps", "scaler.init_scale"}) CHECK(std::count(paths.begin(), paths.end(), path) == 1);
}

TEST_CASE("A tree with keys put into it reads as the text with the same overrides") {
  YamlNode root = Node("{steps: 5, scaler: {policy: pytorch, growth_interval: 3}}");
  PutKey(root, {"optimizer.lr", Node("0.5")}, "test");
  PutKey(root, {"scaler", Node("{policy: deepspeed}")}, "test");
  PutOverride(root, "steps=6");
  CHECK(ResolvedYaml(ConfigFromTree(root, "test", ".")) == ResolvedYaml(ParseConfig("{steps: 6, optimizer: {lr: 0.5}, scaler: {policy: deepspeed}}", "test", ".")));
  CHECK(MessageOf([&] { PutKey(root, {"steps.x", Node("1")}, "test"); }).find("test:3: steps.x: found a path into steps") == 0);
}

}  // namespace
}  // namespace scaletrace
