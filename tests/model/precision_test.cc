// What the precision options mean for a step: presets, `auto`, the custom format.
#include "model/precision.h"

#include "base/error.h"
#include "base/file.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

std::string_view NameOf(const StepRounding& step, Role role) { return step[role].format.name; }

TEST_CASE("the default is the specification's step: bfloat16 everywhere, float32 masters, all to nearest") {
  const StepRounding step = RoundingOf({}, 1);
  CHECK(IsUniform(step));
  CHECK(NameOf(step, Role::kInput) == "bfloat16");
  CHECK(NameOf(step, Role::kActivation) == "bfloat16");
  CHECK(step[Role::kMaster].is_nothing());
  CHECK_FALSE(step.is_stochastic());
  CHECK(NameOf(RoundingOf({.profile = Profile::kExcess}, 1), Role::kActivation) == "float32");
}

TEST_CASE("a preset sets roles apart, compute replaces its own format, and a role that is given wins") {
  PrecisionOptions options = {.preset = "fp8-hybrid"};
  StepRounding step = RoundingOf(options, 1);
  CHECK(NameOf(step, Role::kInput) == "float8_e4m3fn");
  CHECK(step[Role::kInput].saturate);
  CHECK(NameOf(step, Role::kOutputGradient) == "float8_e5m2");
  CHECK(NameOf(step, Role::kGradient) == "bfloat16");
  options.compute = "float16";
  options.output_gradient.format = "float8_e5m2";
  step = RoundingOf(options, 1);
  CHECK(NameOf(step, Role::kGradient) == "float16");
  CHECK(NameOf(step, Role::kInput) == "float8_e4m3fn");
  CHECK_FALSE(step[Role::kOutputGradient].saturate);
}

TEST_CASE("what is resolved has no auto left, and resolving it again changes nothing") {
  for (const std::string_view preset : PresetNames()) {
    const PrecisionOptions resolved = Resolved({.preset = std::string(preset), .profile = Profile::kExcess});
    const PrecisionOptions again = Resolved(resolved);
    for (const auto role : {&PrecisionOptions::input, &PrecisionOptions::weight, &PrecisionOptions::bias, &PrecisionOptions::dot, &PrecisionOptions::activation,
                            &PrecisionOptions::output_gradient, &PrecisionOptions::gradient_sum, &PrecisionOptions::gradient, &PrecisionOptions::master}) {
      CHECK((resolved.*role).format != "auto");
      CHECK((again.*role).format == (resolved.*role).format);
      CHECK((again.*role).overflow == (resolved.*role).overflow);
    }
  }
}

TEST_CASE("a custom format that is none is a problem only where a role uses it") {
  PrecisionOptions options;
  options.custom.exponent_bits = 8;
  options.custom.specials = Specials::kFn;
  CHECK_FALSE(FindProblem(options).has_value());
  options.gradient.format = "custom";
  REQUIRE(FindProblem(options).has_value());
  CHECK(FindProblem(options)->key == "custom.exponent_bits");
  CHECK_THROWS_AS(RoundingOf(options, 1), InputError);
}

TEST_CASE("the presets in docs/precision.md are those of the program") {
  CHECK(ReadFile(SCALETRACE_SOURCE_DIR "/docs/precision.md", 1 << 20).find(PresetTable()) != std::string::npos);
}

}  // namespace
}  // namespace scaletrace
