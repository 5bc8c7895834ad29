// Limits and their words, and the helpers for visitors.
#include "base/fields.h"

#include <cmath>
#include <limits>
#include <variant>

#include "tests/catch.h"

namespace scaletrace {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST_CASE("Limits allow what they say and never NaN") {
  CHECK(AnyNumber().Allows(-1e308));
  CHECK_FALSE(AnyNumber().Allows(kInf));
  CHECK_FALSE(AnyNumber().Allows(-kInf));
  CHECK(AtLeast(1).Allows(1));
  CHECK_FALSE(AtLeast(1).Allows(0.999));
  CHECK_FALSE(MoreThan(0).Allows(0));
  CHECK(MoreThan(0).Allows(5e-324));
  CHECK(Between(0, 1).Allows(1));
  CHECK_FALSE(Between(0, 1).Allows(1.0000001));
  CHECK(Between(0, 1).OrInfinity().Allows(kInf));
  CHECK_FALSE(Between(0, 1).OrInfinity().Allows(-kInf));
  Limits open = Between(0, 1);
  open.high_open = true;
  CHECK_FALSE(open.Allows(1));
  for (const Limits& limits : {AnyNumber(), AtLeast(0), MoreThan(0).OrInfinity().OrPower(), open})
    CHECK_FALSE(limits.Allows(std::nan("")));
}

TEST_CASE("Limits are described in words") {
  CHECK(Describe(AnyNumber(), false) == "a number");
  CHECK(Describe(AnyNumber(), true) == "an integer");
  CHECK(Describe(AtLeast(1), true) == "an integer >= 1");
  CHECK(Describe(MoreThan(0), false) == "a number > 0");
  CHECK(Describe(Between(0, 0.5), false) == "a number from 0 to 0.5");
  CHECK(Describe(Between(0, 9e15), true) == "an integer from 0 to 9000000000000000");
  CHECK(Describe(MoreThan(0).OrPower(), false) == "a number > 0 or 2^k");
  CHECK(Describe(MoreThan(0).OrInfinity(), false) == "a number > 0 or inf");
  CHECK(Describe(MoreThan(0).OrPower().OrInfinity(), false) == "a number > 0, 2^k, or inf");
  Limits open = Between(0, 1);
  open.low_open = open.high_open = true;
  CHECK(Describe(open, false) == "a number > 0 and < 1");
  Limits below = AnyNumber();
  below.high = 3;
  CHECK(Describe(below, false) == "a number <= 3");
}

struct Red {
  static constexpr std::string_view kName = "red";
  int depth = 1;
};
struct Blue {
  static constexpr std::string_view kName = "blue";
  int depth = 2;
};

TEST_CASE("A variant is set by the name of its alternative") {
  std::variant<Red, Blue> colour;
  static_assert(KindNames<std::variant<Red, Blue>>()[1] == "blue");
  CHECK(KindName(colour) == "red");
  CHECK(SetKind(colour, "blue"));
  CHECK(KindName(colour) == "blue");
  std::get<Blue>(colour).depth = 9;
  CHECK_FALSE(SetKind(colour, "green"));
  CHECK(std::get<Blue>(colour).depth == 9);
  CHECK(SetKind(colour, "blue"));
  CHECK(std::get<Blue>(colour).depth == 2);  // its defaults again
}

}  // namespace
}  // namespace scaletrace
