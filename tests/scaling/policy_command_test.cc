// What the commands `policy` and `policies` print. Their text is made apart from the command line, and so can be tested
// here.
#include "apps/scaletrace/policy_command.cc"

#include <fstream>
#include <string>

#include "tests/catch.h"

namespace scaletrace {
namespace {

std::string Printed(const PolicyOptions& options) {
  std::string text;
  PrintPolicySteps(options, [&](std::string_view piece) { text += piece; });
  return text;
}

PolicyOptions Steps(std::vector<std::string> keys, std::vector<std::string> settings, std::string events,
                    PolicyOutput output) {
  PolicyOptions options;
  options.keys = std::move(keys);
  options.settings = std::move(settings);
  options.events = std::move(events);
  options.output = output;
  return options;
}

TEST_CASE("policy prints a row a step and one more as CSV") {
  CHECK(Printed(Steps({"jax-step"}, {"init_scale=1024", "growth_interval=3"}, "FFFO", PolicyOutput::kCsv)) ==
        "step,loss_scale,grads_finite,event,good_steps,applied\n"
        "0,1024,1,,0,1\n"
        "1,1024,1,,1,1\n"
        "2,1024,1,growth,2,1\n"
        "3,2048,0,backoff,0,0\n"
        "4,1024,,,0,\n");
}

TEST_CASE("policy ends with the failed step where the policy raises") {
  CHECK(Printed(Steps({"deepspeed"}, {"init_scale=2", "hysteresis=1"}, "2O F", PolicyOutput::kCsv)) ==
        "step,loss_scale,grads_finite,event,step_number,last_overflow,hysteresis_left,applied\n"
        "0,2,0,backoff,0,-1,1,0\n"
        "1,1,0,raise,1,0,1,0\n");
}

TEST_CASE("policy prints JSON that reads back") {
  const std::string text =
      Printed(Steps({"keras"}, {"init_scale=2^127", "growth_interval=1"}, "FF", PolicyOutput::kJson));
  const Json json = Json::Parse(text, "text", 10000);
  const JsonValue::Array& rows = json.AsArray(json.Member(json.root(), "rows"));
  REQUIRE(rows.size() == 3);
  CHECK(json.AsF64(json.Member(rows[0], "loss_scale")) == 0x1p127);
  CHECK(json.AsString(json.Member(rows[0], "event")) == "growth");
  CHECK(std::isinf(json.AsF64(json.Member(rows[2], "loss_scale"))));
  CHECK(json.IsNull(json.Member(rows[2], "event")));
  CHECK(json.AsF32(json.Member(json.Member(json.root(), "parameters"), "init_scale")) == 0x1p127f);
}

TEST_CASE("policies are compared side by side, and the first difference is marked") {
  const std::vector<std::string> keys = {"pytorch", "flax"};
  const std::vector<std::string> settings = {"init_scale=1024", "growth_interval=2", "flax.init_scale=1024"};
  CHECK(Printed(Steps(keys, settings, "FFFF", PolicyOutput::kCsv)) ==
        "step,input,pytorch,flax,first_difference\n"
        "0,F,1024,1024,0\n"
        "1,F,1024,1024,0\n"
        "2,F,2048,1024,1\n"
        "3,F,2048,2048,0\n"
        "4,,4096,2048,0\n");
  const std::string table = Printed(Steps(keys, settings, "FFFF", PolicyOutput::kTable));
  CHECK_THAT(table, ContainsSubstring("2048          1024   <- first difference\n"));
  CHECK_THAT(table, ContainsSubstring("They part at step 2."));
  CHECK_THAT(Printed(Steps({"pytorch", "apex-amp"}, {"init_scale=1024"}, "FO", PolicyOutput::kTable)),
             ContainsSubstring("No difference."));
  // A setting is for the policies that have it.
  CHECK_THAT(Printed(Steps({"jax-step", "deepspeed"}, {"hysteresis=1", "init_scale=4"}, "OO", PolicyOutput::kTable)),
             ContainsSubstring("No difference."));
  CHECK_THAT(Printed(Steps({"jax-step", "deepspeed"}, {"hysteresis=1", "init_scale=2"}, "OOO", PolicyOutput::kTable)),
             ContainsSubstring("raised"));
}

TEST_CASE("policy says what is wrong with its options") {
  const auto refused = [](const PolicyOptions& options, const std::string& message) {
    CHECK_THROWS_WITH(Printed(options), ContainsSubstring(message));
  };
  refused(Steps({"pytorhc"}, {}, "F", PolicyOutput::kCsv), "found the policy 'pytorhc' (did you mean 'pytorch'?)");
  refused(Steps({"pytorch"}, {"init_sacle=2"}, "F", PolicyOutput::kCsv), "did you mean 'init_scale'?");
  refused(Steps({"pytorch"}, {"policy=flax"}, "F", PolicyOutput::kCsv),
          "--set: found policy; allowed: init_scale, growth_factor, backoff_factor, growth_interval");
  refused(Steps({"pytorch"}, {"init_scale"}, "F", PolicyOutput::kCsv),
          "--set: found init_scale; allowed: parameter=VALUE");
  refused(Steps({"none"}, {"init_scale=2"}, "F", PolicyOutput::kCsv), "allowed: none, since none has no parameters");
  refused(Steps({"pytorch"}, {"init_scale=010"}, "F", PolicyOutput::kCsv), "--set: init_scale: found 010");
  refused(Steps({"colossalai"}, {"max_scale=2"}, "F", PolicyOutput::kCsv),
          "max_scale: found 2; allowed: at least init_scale, 65536");
  refused(Steps({"pytorch", "flax"}, {"hysteresis=2"}, "F", PolicyOutput::kCsv),
          "found hysteresis; allowed: a parameter of one of the policies");
  refused(Steps({"pytorch"}, {}, "FX", PolicyOutput::kCsv), "--events:1: found X");
  refused(Steps({"pytorch"}, {}, "", PolicyOutput::kCsv), "found no steps; allowed: one of --events and --events-file");
  refused(Steps({"te-delayed"}, {}, "F", PolicyOutput::kCsv), "te-delayed scales tensors: it takes --amax-file");
  refused(Steps({"pytorch", "te-delayed"}, {}, "F", PolicyOutput::kCsv),
          "te-delayed scales tensors or layers, not one loss");
  PolicyOptions amax = Steps({"pytorch"}, {}, "F", PolicyOutput::kCsv);
  amax.amax_file = "x";
  refused(amax,
          "--amax-file is for policies that look at the largest |gradient|, or that scale tensors: openseq2seq-logmax, "
          "openseq2seq-logmax-fixed, te-delayed, ms-amp, ms-amp-fixed, adaloss");
}

TEST_CASE("policy drives the tensor policies by a file of amax") {
  const std::string path = "policy_command_test_amax.txt";
  PolicyOptions options;
  options.keys = {"te-delayed"};
  options.settings = {"history_length=4"};
  options.amax_file = path;
  options.output = PolicyOutput::kCsv;
  const auto with = [&](const std::string& text) {
    std::ofstream(path) << text;
    return Printed(options);
  };
  CHECK(with("# amax\n2 448\n4, inf\n") == "step,scale_0,scale_1\n0,1,1\n1,224,1\n2,112,1\n");
  CHECK_THROWS_WITH(with("1 2\n3\n"),
                    ContainsSubstring(path + ":2: found 1 number; allowed: 2, as in the first step"));
  CHECK_THROWS_WITH(with("1 x\n"), ContainsSubstring(path + ":1: found x; allowed: a number, inf or NaN"));
  CHECK_THROWS_WITH(with("\n"), ContainsSubstring("found no step"));
  options.settings = {"history=4"};
  CHECK_THROWS_WITH(with("1\n"), ContainsSubstring("found history"));
  options.settings = {"history_length=0"};
  CHECK_THROWS_WITH(with("1\n"), ContainsSubstring("history_length: found 0; allowed: an integer from 1 to 1048576"));
  options.settings = {"algorithm=most-recent"};
  CHECK(with("4\n1\n") == "step,scale_0\n0,1\n1,112\n2,448\n");
  options.keys = {"adaloss"};
  options.settings = {};
  CHECK_THROWS_WITH(with("1\n"), ContainsSubstring("found 1 number; allowed: 6 for each layer"));
  CHECK(with("0 1e-6 0 0.01 512 1e-6\n") == "step,scale_0\n0,1\n1,16\n");
  std::remove(path.c_str());
}

TEST_CASE("Every policy is listed and explained, with an example that is computed") {
  const std::string table = PoliciesTable();
  for (const std::string_view key : AllKeys()) {
    INFO(key);
    CHECK_THAT("\n" + table, ContainsSubstring("\n" + std::string(key) + "  ("));
    CHECK_THAT(PolicyText(key), ContainsSubstring("\n  scales  "));
  }
  CHECK_THAT(PolicyText("deepspeed"), ContainsSubstring("  scales  1024 1024 1024 1024 1024 512 512 512 512\n"));
  CHECK_THAT(PolicyText("te-delayed"), ContainsSubstring("  scales  1 224 112 112 112 112 448\n"));
  CHECK_THROWS_WITH(PolicyText("x"), ContainsSubstring("found the policy 'x'"));
}

TEST_CASE("docs/policies.md is what the program prints") {
  CHECK(ReadFile(SCALETRACE_SOURCE_DIR "/docs/policies.md", 1 << 20) == PoliciesMarkdown());
}

}  // namespace
}  // namespace scaletrace
