// What holds for every policy of the list, by random testing: each sees 10,000 strings of events, each with parameters
// of its own. A failure is reported with the policy's parameters and the shortest string found, by leaving out events
// while it still fails.
#include <bit>
#include <cmath>
#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "support.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

constexpr int kStrings = 10000;

std::string RandomEvents(Dice& dice) {
  if (dice.Below(200) == 0) return std::string(180, 'O');
  const int bad = dice.Of<int>({5, 20, 35, 50, 90});
  const std::int64_t length = 1 + dice.Below(dice.Chance(10) ? 30 : 12);
  std::string events;
  for (std::int64_t i = 0; i < length; ++i) events += dice.Chance(bad) ? dice.Chance(15) ? 'N' : 'O' : 'F';
  return events;
}

// Empty, or what is wrong.
using Finding = std::string;
template <class P>
using Property = std::function<Finding(const P&, const std::string& events)>;

template <class P>
struct Failure {
  P policy;
  std::string events;
  Finding finding;
};

template <class P>
std::optional<Failure<P>> FirstFailure(const Property<P>& property, bool plain, bool sane) {
  Dice dice(20240501);
  for (int i = 0; i < kStrings; ++i) {
    P policy = WithRandomParameters<P>(dice, plain);
    std::string events = RandomEvents(dice);
    if (FindProblem(policy)) continue;
    if (sane && !Warnings(policy).empty()) continue;
    Finding finding = property(policy, events);
    if (finding.empty()) continue;
    for (std::size_t at = 0; at < events.size();) {
      std::string shorter = events;
      shorter.erase(at, 1);
      const Finding still = property(policy, shorter);
      if (still.empty()) {
        ++at;
      } else {
        events = shorter;
        finding = still;
        at = 0;
      }
    }
    return Failure<P>{policy, events, finding};
  }
  return std::nullopt;
}

template <class P>
std::string Text(const Failure<P>& failure) {
  return std::string(P::kName) + " " + FieldsToJson(failure.policy) + " " + failure.events + ": " + failure.finding;
}

template <class P>
void CheckHolds(const Property<P>& property) {
  const auto failure = FirstFailure<P>(property, false, false);
  INFO((failure ? Text(*failure) : std::string(P::kName)));
  CHECK_FALSE(failure.has_value());
}

bool Same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool Same(const Scaler::Decision& a, const Scaler::Decision& b) {
  return a.finite == b.finite && a.apply == b.apply && Same(a.unscale_by, b.unscale_by) && a.event == b.event &&
         a.raised == b.raised;
}

TEST_CASE("Every policy is a pure function of parameters, state and observation, and a restored state goes on equal") {
  ForEachKind<Policy>([]<class P>() {
    CheckHolds<P>([](const P& policy, const std::string& events) -> Finding {
      Scaler scaler{Policy(policy)};
      Scaler restored{Policy(policy)};
      for (const char event : events) {
        const std::string state = scaler.StateJson();
        restored.Restore(state, "state");
        if (!(restored == scaler)) return "another state after JSON: " + state + " to " + restored.StateJson();
        if (!Same(restored.loss_scale(), scaler.loss_scale())) return "another scale after JSON: " + state;
        const Observation seen = ObservationOf(event);
        const Scaler::Decision decision = scaler.Next(seen);
        if (!Same(restored.Next(seen), decision)) return "another answer from the same state: " + state;
        if (!(restored == scaler)) return "another next state from the same state: " + state;
        if (decision.raised) break;
      }
      return "";
    });
  });
}

TEST_CASE("Quiet steps change nothing that shows, and all at once are the same as one by one") {
  ForEachKind<Policy>([]<class P>() {
    CheckHolds<P>([](const P& policy, const std::string& events) -> Finding {
      Scaler scaler{Policy(policy)};
      const Observation good = ObservationOf('F');
      for (const char event : events) {
        const std::int64_t quiet = scaler.QuietSteps();
        if (quiet < 0) return "a negative number of quiet steps";
        const std::int64_t n = std::min<std::int64_t>(quiet, 5);
        Scaler at_once = scaler, one_by_one = scaler;
        at_once.Advance(n);
        for (std::int64_t i = 0; i < n; ++i) {
          const Scaler::Decision d = one_by_one.Next(good);
          if (d.event != Event::kNone || !d.apply || d.raised || !d.finite)
            return "a quiet step that isn't: " + scaler.StateJson();
          if (!Same(one_by_one.loss_scale(), scaler.loss_scale()))
            return "a quiet step moves the scale: " + scaler.StateJson();
        }
        if (!(at_once == one_by_one) || !Same(at_once.loss_scale(), one_by_one.loss_scale()))
          return "at once " + at_once.StateJson() + ", one by one " + one_by_one.StateJson();
        if (scaler.Next(ObservationOf(event)).raised) break;
      }
      return "";
    });
  });
}

// What stops a policy, from its parameters or its rule.
struct ScaleLimits {
  double low = 0;
  double high = std::numeric_limits<double>::infinity();
  template <class T>
  void Value(const Field& field, const T& value) {
    if constexpr (kIsOptional<T>) {
      if (value) Value(field, *value);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (field.key == "min_scale") low = static_cast<double>(value);
      if (field.key == "max_scale" && value != 0) high = static_cast<double>(value);
    }
  }
  // Compared as the type that holds S has them.
  bool Allow(double scale, Hold hold) const {
    if (hold == Hold::kF64) return scale >= low && scale <= high;
    const auto x = static_cast<float>(scale);
    return x >= static_cast<float>(low) && x <= static_cast<float>(high);
  }
};

bool IsPowerOfTwo(double x) {
  int exponent = 0;
  return std::isfinite(x) && x > 0 && std::frexp(x, &exponent) == 0.5;
}

// Goes through the steps of `events` and asks `judge` about each.
struct Step {
  double before;
  char event;
  Scaler::Decision decision;
  double after;
};
template <class P>
Finding Walk(const P& policy, const std::string& events, const std::function<Finding(const Step&)>& judge) {
  Scaler scaler{Policy(policy)};
  for (const char event : events) {
    Step step = {scaler.loss_scale(), event, {}, 0};
    step.decision = scaler.Next(ObservationOf(event));
    step.after = scaler.loss_scale();
    const Finding finding = judge(step);
    if (!finding.empty()) return finding + ": " + ToText(step.before) + " to " + ToText(step.after);
    if (step.decision.raised) break;
  }
  return "";
}

template <class P>
void CheckClaim(const std::string& claim, bool made, bool plain, const Property<P>& property) {
  const auto failure = FirstFailure<P>(property, plain, true);
  INFO(claim);
  INFO((failure ? Text(*failure) : std::string(P::kName)));
  if (made) {
    CHECK_FALSE(failure.has_value());
  } else {
    CHECK(failure.has_value());  // else the claim could be made
  }
}

TEST_CASE("A claim of a policy holds where it is made, and has a counterexample where it is not") {
  ForEachKind<Policy>([]<class P>() {
    constexpr Claims kClaims = P::kInfo.claims;
    CheckClaim<P>("never grows on an overflow", kClaims.never_grows_on_overflow, false,
                  [](const P& policy, const std::string& events) {
                    return Walk(policy, events, [](const Step& s) -> Finding {
                      return !s.decision.finite && s.after > s.before ? "grew on an overflow" : "";
                    });
                  });
    CheckClaim<P>("keeps powers of two", kClaims.keeps_powers_of_two, true,
                  [](const P& policy, const std::string& events) -> Finding {
                    if (!IsPowerOfTwo(policy.LossScale(policy.Start()))) return "";
                    return Walk(policy, events, [](const Step& s) -> Finding {
                      const bool apart = s.after == 0 || std::isinf(s.after);
                      return apart || IsPowerOfTwo(s.after) ? "" : "no power of two";
                    });
                  });
    CheckClaim<P>("stays within its limits", kClaims.stays_within_limits, false,
                  [](const P& policy, const std::string& events) {
                    ScaleLimits limits = {P::kInfo.floor, P::kInfo.ceiling};
                    P::Visit(policy, limits);
                    return Walk(policy, events, [&](const Step& s) -> Finding {
                      return limits.Allow(s.after, P::kInfo.hold) ? "" : "outside its limits";
                    });
                  });
    CheckClaim<P>("stays positive", kClaims.stays_positive, false, [](const P& policy, const std::string& events) {
      return Walk(policy, events, [](const Step& s) -> Finding { return s.after > 0 ? "" : "not positive"; });
    });
    CheckClaim<P>("stays finite", kClaims.stays_finite, false, [](const P& policy, const std::string& events) {
      return Walk(policy, events, [](const Step& s) -> Finding { return std::isfinite(s.after) ? "" : "not finite"; });
    });
    CheckClaim<P>("knows its quiet steps exactly", kClaims.quiet_steps_exact, false,
                  [](const P& policy, const std::string& events) -> Finding {
                    Scaler scaler{Policy(policy)};
                    for (const char event : events) {
                      const std::int64_t quiet = scaler.QuietSteps();
                      if (quiet < kForever / 2) {
                        Scaler then = scaler;
                        then.Advance(quiet);
                        const Scaler::Decision d = then.Next(ObservationOf('F'));
                        if (d.event == Event::kNone && Same(then.loss_scale(), scaler.loss_scale()))
                          return "more steps are quiet than it says: " + scaler.StateJson();
                      }
                      if (scaler.Next(ObservationOf(event)).raised) break;
                    }
                    return "";
                  });
  });
}

TEST_CASE("An event says what happened to the scale") {
  ForEachKind<Policy>([]<class P>() {
    CheckHolds<P>([](const P& policy, const std::string& events) -> Finding {
      if (!Warnings(policy).empty() || P::kInfo.key.starts_with("mxnet")) return "";  // mxnet: one step later
      if constexpr (std::is_same_v<P, Dynamic>) {
        if (policy.publish_delay != 0) return "";
      }
      return Walk(policy, events, [](const Step& s) -> Finding {
        const Event e = s.decision.event;
        if (s.decision.raised != (e == Event::kRaise)) return "raise and its event differ";
        if (e == Event::kGrowth && !(s.after > s.before)) return "growth that grew nothing";
        if (e == Event::kBackoff && !(s.after < s.before)) return "a backoff that took nothing";
        if ((e == Event::kForgiven || e == Event::kOverflow) && !P::kInfo.key.starts_with("schedule") &&
            !P::kInfo.key.starts_with("scripted") && !P::kInfo.key.starts_with("openseq2seq-logmax") &&
            !Same(s.after, s.before))
          return "the scale moved";
        const bool of_overflow = e == Event::kForgiven || e == Event::kOverflow || e == Event::kFloor;
        if (of_overflow && s.decision.finite) return "an overflow's event on a finite step";
        if (!s.decision.finite && (e == Event::kNone || e == Event::kGrowth || e == Event::kCeiling))
          return "an overflow without its event";
        return "";
      });
    });
  });
}

}  // namespace
}  // namespace scaletrace
