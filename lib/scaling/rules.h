// What the policies share: states that count, checks, changes of a scale with the event that they are, and fields under
// their common names.
#ifndef SCALETRACE_SCALING_RULES_H_
#define SCALETRACE_SCALING_RULES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/fields.h"
#include "scaling/policy.h"

namespace scaletrace {

// Quiet for good, as far as any driver goes.
inline constexpr std::int64_t kForever = std::int64_t{1} << 53;

// What a policy looks at for its verdict.
enum class Check : std::uint8_t { kUnscaled, kScaled, kSums, kNorm };

constexpr bool Passes(Check check, const Observation& o) {
  switch (check) {
    case Check::kUnscaled:
      return o.unscaled_finite;
    case Check::kScaled:
      return o.scaled_finite;
    case Check::kSums:
      return o.sums_finite;
    case Check::kNorm:
      return o.norm_finite;
  }
  return false;
}

constexpr Needs NeedsFor(Check check) {
  Needs needs;
  needs.unscaled_finite = check == Check::kUnscaled;
  needs.scaled_finite = check == Check::kScaled;
  needs.sums_finite = check == Check::kSums;
  needs.norm_finite = check == Check::kNorm;
  return needs;
}

// What most policies have in common.
template <class StateType, Check kCheckType>
struct Rule {
  using State = StateType;
  static constexpr Check kCheck = kCheckType;
  bool Finite(const Observation& o) const { return Passes(kCheck, o); }
  double LossScale(const State& s) const { return s.loss_scale; }
};

// A count of good steps that growth and overflows set back to 0.
template <class T>
struct CountingState {
  T loss_scale;
  std::int64_t good_steps = 0;

  bool operator==(const CountingState&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"loss_scale", "S"}, self.loss_scale);
    v.Value({"good_steps", "good steps since the last overflow or growth"}, self.good_steps);
  }
};

// The same with the overflows that it still takes until the scale goes down; may become negative.
template <class T>
struct HysteresisState {
  T loss_scale;
  std::int64_t good_steps = 0;
  std::int64_t hysteresis_left = 0;

  bool operator==(const HysteresisState&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"loss_scale", "S"}, self.loss_scale);
    v.Value({"good_steps", "good steps since the last overflow or growth"}, self.good_steps);
    v.Value({"hysteresis_left", "overflows that it takes until one backs off"}, self.hysteresis_left);
  }
};

// The same with a count of overflows upwards.
template <class T>
struct TwoCountsState {
  T loss_scale;
  std::int64_t good_steps = 0;
  std::int64_t bad_steps = 0;

  bool operator==(const TwoCountsState&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"loss_scale", "S"}, self.loss_scale);
    v.Value({"good_steps", "good steps since the last overflow or growth"}, self.good_steps);
    v.Value({"bad_steps", "overflows counted so far"}, self.bad_steps);
  }
};

// Steps are numbered, and growth goes by the distance from the last overflow.
template <class T>
struct NumberedState {
  T loss_scale;
  std::int64_t step_number = 0;
  std::int64_t last_overflow = -1;

  bool operator==(const NumberedState&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"loss_scale", "S"}, self.loss_scale);
    v.Value({"step_number", "number of the next step, as the policy counts"}, self.step_number);
    v.Value({"last_overflow", "number of the last step that overflowed"}, self.last_overflow);
  }
};

template <class T>
struct Change {
  T scale;
  Event event;
};

// Growth was due, from `old` to `wanted`; it came to `got`. Growth that did not grow (inf, 0, a factor below 1) counts
// as stopped.
template <class T>
constexpr Change<T> Grown(T old, T wanted, T got) {
  return {got, got == wanted && got > old ? Event::kGrowth : Event::kCeiling};
}
template <class T>
constexpr Change<T> Grown(T old, T wanted) {
  return Grown(old, wanted, wanted);
}
// With the guard that many have: a scale that would not be finite stays.
template <class T>
Change<T> GrownIfFinite(T old, T wanted) {
  return Grown(old, wanted, std::isfinite(wanted) ? wanted : old);
}

// A decrease was due, from `old` to `wanted`; it came to `got`.
template <class T>
constexpr Change<T> Shrunk(T old, T wanted, T got) {
  return {got, got != wanted ? Event::kFloor : got != old ? Event::kBackoff : Event::kOverflow};
}
template <class T>
constexpr Change<T> Shrunk(T old, T wanted) {
  return Shrunk(old, wanted, wanted);
}

// See Hold.
inline float TimesF32(float scale, double factor) { return scale * static_cast<float>(factor); }
inline float TimesWide(float scale, double factor) { return static_cast<float>(static_cast<double>(scale) * factor); }
inline float Over(float scale, double factor) { return scale / static_cast<float>(factor); }

// The public implementation raises an exception, leaving `state` behind.
template <class State>
constexpr Outcome<State> Raise(const State& state) {
  return {.next = state, .event = Event::kRaise, .apply = false, .raised = true};
}

// Quiet steps where growth fires when ++count == interval: never, if the count is there already.
constexpr std::int64_t QuietUntilEqual(std::int64_t count, std::int64_t interval) {
  return count < interval ? interval - 1 - count : kForever;
}
// Where it fires when ++count >= interval.
constexpr std::int64_t QuietUntilReached(std::int64_t count, std::int64_t interval) {
  return std::max<std::int64_t>(interval - 1 - count, 0);
}
// Where it fires when distance mod interval == 0, `distance` (>= 0) being that of the next step.
constexpr std::int64_t QuietUntilMultiple(std::int64_t distance, std::int64_t interval) {
  if (interval == 0) return 0;  // the modulo raises
  const std::int64_t period = interval < 0 ? -interval : interval;
  return (period - distance % period) % period;
}

// Fields under their common names. A public policy takes what its project takes.
inline constexpr Limits kAnyScale = AnyNumber().OrPower().OrInfinity();
inline constexpr Limits kCount = Between(-9007199254740992.0, 9007199254740992.0);
inline constexpr Limits kPositiveCount = Between(1, 9007199254740992.0);
constexpr Limits LessThan(double high) {
  Limits l;
  l.high = high;
  l.high_open = true;
  return l;
}
constexpr Limits Inside(double low, double high) {
  Limits l = LessThan(high);
  l.low = low;
  l.low_open = true;
  return l;
}

constexpr Field InitScale(const Limits& limits = kAnyScale) {
  return {"init_scale", "loss scale of the first step", limits};
}
constexpr Field GrowthFactor(const Limits& limits = AnyNumber()) {
  return {"growth_factor", "multiplies the scale on growth", limits};
}
constexpr Field BackoffFactor(const Limits& limits = AnyNumber()) {
  return {"backoff_factor", "multiplies the scale on backoff", limits};
}
constexpr Field Factor(const Limits& limits = MoreThan(0)) {
  return {"factor", "multiplies the scale on growth and divides it on backoff", limits};
}
constexpr Field GrowthInterval(const Limits& limits = kCount) {
  return {"growth_interval", "good steps before growth", limits};
}
constexpr Field MinScale(const Limits& limits = kAnyScale) {
  return {"min_scale", "no backoff goes below this", limits};
}
constexpr Field MaxScale(const Limits& limits = kAnyScale) {
  return {"max_scale", "no growth goes above this", limits};
}
constexpr Field Hysteresis(const Limits& limits = kCount) {
  return {"hysteresis", "this many overflows until one backs off; 1 forgives none", limits};
}

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_RULES_H_
