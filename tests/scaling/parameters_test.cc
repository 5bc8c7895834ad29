// Parameters: what a public implementation accepts is accepted, with a warning where it makes little sense; what it
// refuses is refused; our own policies are strict.
#include <string>

#include "base/error.h"
#include "support.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

std::vector<std::string> WarningsOf(std::string_view key, const std::vector<std::string>& settings) {
  const Policy policy = PolicyWith(key, settings);
  CHECK_FALSE(FindProblem(policy).has_value());
  return Warnings(policy);
}

TEST_CASE("Defaults need no warning") {
  ForEachKind<Policy>([]<class P>() {
    const Policy policy = P();
    INFO(P::kName);
    CHECK(Warnings(policy).empty());
    CHECK_FALSE(FindProblem(policy).has_value());
    CHECK_FALSE(P::kInfo.summary.empty());
    CHECK_FALSE(P::kInfo.rule.empty());
    CHECK_FALSE(P::kInfo.project.empty());
  });
}

TEST_CASE("What the projects accept is accepted, with a warning") {
  const auto warned = [](std::string_view key, const char* setting, const char* about) {
    const std::vector<std::string> warnings = WarningsOf(key, {setting});
    INFO(key << " " << setting);
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], ContainsSubstring(about));
  };
  warned("tf1-contrib", "growth_factor=0.5", "growth_factor: 0.5: ");
  warned("flax", "growth_factor=0.5", "growth_factor: 0.5: ");
  warned("tf-dynamic", "factor=0.5", "factor: 0.5: ");
  warned("pytorch", "backoff_factor=-1", "backoff_factor: -1: ");
  warned("pytorch", "growth_interval=0", "growth_interval: 0: ");
  warned("pytorch", "init_scale=-2", "init_scale: -2: ");
  warned("pytorch", "init_scale=inf", "init_scale: inf: ");
  warned("deepspeed", "hysteresis=0", "hysteresis: 0: ");
  warned("colossalai", "hysteresis=0", "hysteresis: 0: ");
  warned("apex-hysteresis", "hysteresis=-3", "hysteresis: -3: ");
  warned("paddle", "decr_every_n=0", "decr_every_n: 0: ");
  warned("deepspeed", "init_scale=0.25", "below the floor of 1");
  warned("onnxruntime", "init_scale=2^30", "above the cap of 16777216");
  warned("mpx", "init_scale=2^17", "above the cap of 65504");
  warned("megatron", "growth_interval=1000.5", "growth_interval: 1000.5: ");
}

TEST_CASE("What the projects refuse is refused, with the key and the allowed range") {
  const auto refused = [](std::string_view key, const char* setting, const char* message) {
    INFO(key << " " << setting);
    CHECK_THROWS_WITH(Scaler(PolicyWith(key, {setting})), ContainsSubstring(message));
  };
  for (const char* key : {"pytorch", "pytorch-sharded-cpu", "paddle", "colossalai", "megatron", "apex-hysteresis"}) {
    refused(key, "growth_factor=1", "growth_factor: found 1; allowed: a number > 1");
    refused(key, "backoff_factor=1", "backoff_factor: found 1; allowed: a number");
  }
  refused("fairseq2", "factor=1", "factor: found 1; allowed: a number > 1");
  refused("megatron", "backoff_factor=0", "backoff_factor: found 0; allowed: a number > 0 and < 1");
  refused("megatron", "hysteresis=0", "hysteresis: found 0; allowed: an integer from 1");
  refused("megatron", "init_scale=0.5", "min_scale: found 1 (the default); allowed: at most init_scale, 0.5");
  refused("colossalai", "max_scale=1000", "max_scale: found 1000; allowed: at least init_scale, 65536");
  refused("mindspore-manager", "init_scale=0.5", "init_scale: found 0.5; allowed: a number >= 1");
  refused("mindspore-scaler", "factor=1.5", "factor: found 1.5");
  refused("jmp", "factor=1.5", "factor: found 1.5");
  refused("jax-step", "growth_interval=0", "growth_interval: found 0; allowed: an integer from 1 to 2147483647");
  refused("pytorch", "growth=2", "growth");
}

TEST_CASE("Our own policies are strict") {
  const auto refused = [](std::string_view key, const std::vector<std::string>& settings, const char* message) {
    INFO(key);
    CHECK_THROWS_WITH(Scaler(PolicyWith(key, settings)), ContainsSubstring(message));
  };
  refused("dynamic", {"init_scale=0"}, "init_scale: found 0; allowed: a number > 0 or 2^k");
  refused("dynamic", {"init_scale=inf"}, "init_scale: found inf");
  refused("dynamic", {"growth_factor=0.5"}, "growth_factor: found 0.5; allowed: a number > 1");
  refused("dynamic", {"hysteresis=0"}, "hysteresis: found 0; allowed: an integer from 1 to 2147483647");
  refused("dynamic", {"init_scale=0.5"}, "min_scale: found 1 (the default); allowed: none, or at most init_scale, 0.5");
  refused("dynamic", {"init_scale=2^30"}, "max_scale: found 16777216 (the default); allowed: none, or at least init_scale");
  refused("dynamic", {"min_scale=none", "floor_mode=gate"},
          "floor_mode: found gate; allowed: clamp, where min_scale is none");
  refused("dynamic", {"max_scale=none", "cap_mode=gate"},
          "cap_mode: found gate; allowed: clamp, where max_scale is none");
  refused("dynamic", {"init_scale=1e300", "max_scale=none"},
          "init_scale: found 1e+300; allowed: what a float holds, where hold is not f64");
  refused("dynamic", {"refill=sometimes"}, "refill: found sometimes; allowed: growth, any-good, never");
  refused("static", {"init_scale=0"}, "init_scale: found 0; allowed: a number > 0 or 2^k");
  refused("scripted", {"scales=[]"}, "scales: found an empty list; allowed: at least one scale");
  refused("scripted", {"scales=[1, -1]"}, "scales");
  refused("schedule", {"steps=[0, 5]"}, "steps: found 2 steps; allowed: one, where shape is constant");
  refused("schedule", {"shape=linear", "steps=[5, 5]", "scales=[1, 2]"},
          "steps: found 5 after 5; allowed: rising steps");
  refused("schedule", {"shape=linear", "steps=[1, 5]", "scales=[1]"},
          "scales: found 1 scales; allowed: one for each of the 2 steps");
  refused("schedule", {"steps=[]", "scales=[]"}, "steps: found an empty list; allowed: at least one step");
  refused("jax-step", {"good_steps=5", "growth_interval=3"}, "good_steps");
}

TEST_CASE("A modulo by zero is the exception that it is in the projects") {
  for (const char* key : {"apex-fp16utils", "fairseq", "metaseq", "openseq2seq-backoff", "deepspeed-fixed"}) {
    INFO(key);
    Scaler scaler(PolicyWith(key, {"growth_interval=0"}));
    CHECK(scaler.QuietSteps() == 0);
    CHECK(scaler.Next(ObservationOf('F')).raised);
  }
  Scaler deepspeed(PolicyWith("deepspeed", {"growth_interval=0"}));
  CHECK_FALSE(deepspeed.Next(ObservationOf('F')).raised);
  CHECK(deepspeed.Next(ObservationOf('F')).raised);
}

}  // namespace
}  // namespace scaletrace
