// The policy of the reference step: the classic rule with a floor of 1 and no ceiling, so that S may grow to inf.
#ifndef SCALETRACE_SCALING_JAX_STEP_H_
#define SCALETRACE_SCALING_JAX_STEP_H_

#include <cstdint>

#include "scaling/rules.h"

namespace scaletrace {

struct JaxStep {
  static constexpr PolicyInfo kInfo = {
      .key = "jax-step",
      .project = "scaletrace's reference step",
      .file = "",
      .summary =
          "doubles after growth_interval good steps, halves on overflow, floor 1; grows to inf and then never recovers",
      .rule = "F: t <- t+1;  if t >= W: S <- 2S, t <- 0\nO: S <- max(S/2, 1);  t <- 0",
      .hold = Hold::kF32,
      .floor = 1,
      .needs = {.unscaled_finite = true},
      .claims = {.never_grows_on_overflow = true,
                 .keeps_powers_of_two = true,
                 .stays_within_limits = true,
                 .stays_positive = true,
                 .quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 65536;
  std::int64_t growth_interval = 2000;
  std::int64_t good_steps = 0;  // must be below growth_interval

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"init_scale", "loss scale of the first step", MoreThan(0).OrPower().OrInfinity()}, self.init_scale);
    v.Value({"growth_interval", "good steps before the scale doubles", Between(1, 2147483647)}, self.growth_interval);
    v.Value({"good_steps", "good steps already counted at the start, below growth_interval", Between(0, 2147483646)},
            self.good_steps);
  }

  std::optional<ParameterProblem> Problem() const {
    if (good_steps < growth_interval) return std::nullopt;
    return ParameterProblem{"good_steps", "found " + std::to_string(good_steps) + "; allowed: below growth_interval, " +
                                              std::to_string(growth_interval)};
  }

  using State = CountingState<float>;

  State Start() const { return {init_scale, good_steps}; }
  double LossScale(const State& s) const { return s.loss_scale; }
  bool Finite(const Observation& o) const { return o.unscaled_finite; }

  Outcome<State> Next(const State& s, const Observation& o) const {
    if (!o.unscaled_finite) {
      const float half = s.loss_scale * 0.5f;
      const auto c = Shrunk(s.loss_scale, half, std::max(half, 1.0f));
      return {.next = {c.scale, 0}, .event = c.event, .apply = false};
    }
    if (s.good_steps + 1 < growth_interval) return {.next = {s.loss_scale, s.good_steps + 1}};
    const auto c = Grown(s.loss_scale, s.loss_scale * 2.0f);
    return {.next = {c.scale, 0}, .event = c.event};
  }

  std::int64_t QuietSteps(const State& s) const {
    return std::max<std::int64_t>(growth_interval - 1 - s.good_steps, 0);
  }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n}; }
};

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_JAX_STEP_H_
