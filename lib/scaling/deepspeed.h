// DeepSpeed's two rules: deepspeed (ZeRO) and deepspeed-fp16optimizer (without).
#ifndef SCALETRACE_SCALING_DEEPSPEED_H_
#define SCALETRACE_SCALING_DEEPSPEED_H_

#include "scaling/rules.h"

namespace scaletrace {

// The first growth after a start or an overflow is one step late: s = k - last - 1 good steps do not count the one that
// is being looked at. Whether growth fires at step k. `counts_all`: without that slip.
constexpr bool DeepSpeedGrows(std::int64_t distance, std::int64_t interval, bool counts_all) {
  return counts_all ? distance % interval == 0 : distance > 1 && (distance - 1) % interval == 0;
}
constexpr std::int64_t DeepSpeedQuiet(std::int64_t distance, std::int64_t interval, bool counts_all) {
  if (counts_all) return QuietUntilMultiple(distance, interval);
  if (distance > 1) return QuietUntilMultiple(distance - 1, interval);
  return interval == 0 ? 1 : interval < 0 ? -interval : interval;
}

template <bool kFixed>
struct DeepSpeedRule {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "deepspeed",
        .project = "DeepSpeed (ZeRO)",
        .file = "deepspeed/runtime/fp16/loss_scaler.py",
        .summary =
            "raises at its floor, first growth after W+1 good steps, hysteresis refilled at growth only, unscales with "
            "the new S",
        .rule =
            "O: if H == 1 or h == 1: if S == min_scale and raise_at_min: raise;  S <- max(S/2, min_scale)\n"
            "   else h <- h-1, forgiven\n"
            "   last <- k\n"
            "F: if consecutive_hysteresis: h <- H\n"
            "   s <- k - last - 1;  if s > 0 and s mod W == 0: S <- 2S, h <- H\n"
            "always k <- k+1, then the gradients are divided by the new S",
        .hold = Hold::kF64,
        .needs = NeedsFor(Check::kScaled),
        .claims = {.never_grows_on_overflow = true,
                   .keeps_powers_of_two = true,
                   .stays_within_limits = true,
                   .stays_positive = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "deepspeed-fixed";
      i.summary = "deepspeed with the first growth after W good steps, unscaling with the S of the backward pass";
      i.rule =
          "as deepspeed, but F: s <- k - last;  if s mod W == 0: S <- 2S, h <- H\n"
          "the gradients are divided by the S of the backward pass";
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  struct State : NumberedState<double> {
    std::int64_t hysteresis_left = 0;

    bool operator==(const State&) const = default;
    template <class Self, class V>
    static void Visit(Self& self, V& v) {
      NumberedState<double>::Visit(self, v);
      v.Value({"hysteresis_left", "overflows that it takes until one backs off"}, self.hysteresis_left);
    }
  };

  double init_scale = 65536;
  std::int64_t growth_interval = 1000;
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;
  double min_scale = 1;
  bool raise_at_min = true;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value(Hysteresis(), self.hysteresis);
    v.Value({"consecutive_hysteresis", "every good step refills the hysteresis, not only growth"},
            self.consecutive_hysteresis);
    v.Value(MinScale(), self.min_scale);
    v.Value({"raise_at_min", "an overflow at min_scale ends the run"}, self.raise_at_min);
  }

  State Start() const { return {{init_scale}, hysteresis}; }
  double LossScale(const State& s) const { return s.loss_scale; }
  bool Finite(const Observation& o) const { return o.scaled_finite; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    const std::int64_t k = s.step_number;
    if (!Finite(o)) {
      if (hysteresis != 1 && s.hysteresis_left != 1) {
        return {.next = {{s.loss_scale, k + 1, k}, s.hysteresis_left - 1}, .event = Event::kForgiven, .apply = false};
      }
      if (s.loss_scale == min_scale && raise_at_min) return Raise(s);
      const auto c = Shrunk(s.loss_scale, s.loss_scale / 2, std::max(s.loss_scale / 2, min_scale));
      return {.next = {{c.scale, k + 1, k}, s.hysteresis_left}, .event = c.event, .apply = false};
    }
    constexpr Unscale kUnscale = kFixed ? Unscale::kOld : Unscale::kNew;
    State next = {{s.loss_scale, k + 1, s.last_overflow}, consecutive_hysteresis ? hysteresis : s.hysteresis_left};
    const std::int64_t distance = k - s.last_overflow;
    if (growth_interval == 0 && (kFixed || distance > 1)) return Raise(s);
    if (!DeepSpeedGrows(distance, growth_interval, kFixed)) return {.next = next, .unscale = kUnscale};
    const auto c = Grown(s.loss_scale, s.loss_scale * 2);
    next.loss_scale = c.scale;
    next.hysteresis_left = hysteresis;
    return {.next = next, .event = c.event, .unscale = kUnscale};
  }
  std::int64_t QuietSteps(const State& s) const {
    return DeepSpeedQuiet(s.step_number - s.last_overflow, growth_interval, kFixed);
  }
  State Advance(const State& s, std::int64_t n) const {
    return {{s.loss_scale, s.step_number + n, s.last_overflow},
            consecutive_hysteresis && n > 0 ? hysteresis : s.hysteresis_left};
  }
};
using DeepSpeed = DeepSpeedRule<false>;
using DeepSpeedFixed = DeepSpeedRule<true>;

template <bool kFixed>
struct DeepSpeedFp16OptimizerRule : Rule<NumberedState<double>, Check::kScaled> {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "deepspeed-fp16optimizer",
        .project = "DeepSpeed (without ZeRO)",
        .file = "deepspeed/runtime/fp16/fused_optimizer.py",
        .summary = "deepspeed without hysteresis and without the raise; a norm that overflows counts too",
        .rule =
            "O: S <- max(S/2, min_scale);  last <- k\n"
            "F: s <- k - last - 1;  if s > 0 and s mod W == 0: S <- 2S\n"
            "always k <- k+1, then the gradients are divided by the new S",
        .hold = Hold::kF64,
        .needs = {.sums_finite = true, .scaled_norm_finite = true},
        .claims = {.never_grows_on_overflow = true,
                   .keeps_powers_of_two = true,
                   .stays_within_limits = true,
                   .stays_positive = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "deepspeed-fp16optimizer-fixed";
      i.summary = "the same with the first growth after W good steps, unscaling with the S of the backward pass";
      i.rule =
          "O: S <- max(S/2, min_scale);  last <- k\n"
          "F: if (k - last) mod W == 0: S <- 2S\n"
          "always k <- k+1;  the gradients are divided by the S of the backward pass";
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  double init_scale = 65536;
  double min_scale = 1;
  std::int64_t growth_interval = 1000;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(MinScale(), self.min_scale);
    v.Value(GrowthInterval(), self.growth_interval);
  }

  State Start() const { return {init_scale}; }
  bool Finite(const Observation& o) const { return o.sums_finite && o.scaled_norm_finite; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    const std::int64_t k = s.step_number;
    if (!Finite(o)) {
      const auto c = Shrunk(s.loss_scale, s.loss_scale / 2, std::max(s.loss_scale / 2, min_scale));
      return {.next = {c.scale, k + 1, k}, .event = c.event, .apply = false};
    }
    constexpr Unscale kUnscale = kFixed ? Unscale::kOld : Unscale::kNew;
    const std::int64_t distance = k - s.last_overflow;
    if (growth_interval == 0 && (kFixed || distance > 1)) return Raise(s);
    if (!DeepSpeedGrows(distance, growth_interval, kFixed))
      return {.next = {s.loss_scale, k + 1, s.last_overflow}, .unscale = kUnscale};
    const auto c = Grown(s.loss_scale, s.loss_scale * 2);
    return {.next = {c.scale, k + 1, s.last_overflow}, .event = c.event, .unscale = kUnscale};
  }
  std::int64_t QuietSteps(const State& s) const {
    return DeepSpeedQuiet(s.step_number - s.last_overflow, growth_interval, kFixed);
  }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.step_number + n, s.last_overflow}; }
};
using DeepSpeedFp16Optimizer = DeepSpeedFp16OptimizerRule<false>;
using DeepSpeedFp16OptimizerFixed = DeepSpeedFp16OptimizerRule<true>;

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_DEEPSPEED_H_
