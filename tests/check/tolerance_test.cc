// tolerance.yaml: what it takes, and the line and column of what it does not.
#include "base/error.h"
#include "check/tolerance.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

TEST_CASE("a tolerance file says for each column how far it may be off") {
  const Tolerances t = ParseTolerances(
      "loss: {ulps: 16}\n"
      "grad_norm: {relative: 1e-6, absolute: 1e-9}\n"
      "lr: exact\n"
      "seconds: ignore\n"
      "mine: {ulps: 4, of: f32}\n"
      "default: {ulps: 2}\n",
      "t.yaml");
  CHECK(ToleranceOf(t, "loss").ulps == 16);
  CHECK(ToleranceOf(t, "grad_norm").relative == 1e-6);
  CHECK(ToleranceOf(t, "grad_norm").absolute == 1e-9);
  CHECK(ToleranceOf(t, "lr").exact());
  CHECK(ToleranceOf(t, "seconds").ignore);
  CHECK(ToleranceOf(t, "mine").of == CellType::kFloat32);
  CHECK(ToleranceOf(t, "weight_norm").ulps == 2);
  CHECK(ToleranceOf(t, "not ours").ulps == 2);
  CHECK(ToleranceOf(t, "loss_scale").exact());
  CHECK(ToleranceOf(t, "event").exact());
  CHECK(ToleranceOf(ParseTolerances("", "t.yaml"), "loss").ulps == kUlps);
  CHECK(ToleranceOf(ParseTolerances("loss_scale: {relative: 0.1}\n", "t.yaml"), "loss_scale").relative == 0.1);
}

TEST_CASE("anything else in a tolerance file is refused with its line, its column and what is allowed") {
  const std::pair<const char*, const char*> cases[] = {
      {"loss: 3\n", "t.yaml:1: loss: found '3'; allowed: exact, ignore, or a mapping of ulps, absolute, relative to numbers >= 0"},
      {"a: exact\nloss: {ulp: 3}\n", "t.yaml:2: loss.ulp: unknown key (did you mean 'ulps'?); allowed: ulps, absolute, relative, of"},
      {"loss: {ulps: -1}\n", "t.yaml:1: loss.ulps: found '-1'; allowed: a number >= 0"},
      {"loss: {ulps: nan}\n", "t.yaml:1: loss.ulps: found 'nan'; allowed: a number >= 0"},
      {"loss: {ulps: 1, of: f16}\n", "t.yaml:1: loss.of: found 'f16'; allowed: f32, f64"},
      {"loss: {}\n", "t.yaml:1: loss: found no tolerance; allowed: exact, ignore, or a mapping of ulps, absolute, relative to numbers >= 0"},
      {"- loss\n", "t.yaml:1: found no mapping; allowed: names of columns, each with exact, ignore, or a mapping of ulps, absolute, relative to numbers >= 0"},
  };
  for (const auto& [text, message] : cases) CHECK_THROWS_WITH(ParseTolerances(text, "t.yaml"), message);
}

}  // namespace
}  // namespace scaletrace
