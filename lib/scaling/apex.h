// The scalers of NVIDIA Apex: apex-amp and apex-fp16utils. Its hysteresis kernel is in pytorch.h.
#ifndef SCALETRACE_SCALING_APEX_H_
#define SCALETRACE_SCALING_APEX_H_

#include "scaling/rules.h"

namespace scaletrace {

struct ApexAmp : Rule<CountingState<double>, Check::kScaled> {
  static constexpr PolicyInfo kInfo = {
      .key = "apex-amp",
      .project = "NVIDIA Apex",
      .file = "apex/amp/scaler.py",
      .summary = "factor 2, capped at 2^24, no floor unless one is given",
      .rule =
          "S starts at min(max_scale, S0)\n"
          "O: S <- S/2, then max(min_scale, S) if min_scale is given and not 0;  u <- 0\n"
          "F: u <- u+1\n"
          "then, after either: if u == W: S <- min(max_scale, 2S), u <- 0",
      .hold = Hold::kF64,
      .needs = NeedsFor(kCheck),
      .claims = {.never_grows_on_overflow = true,
                 .keeps_powers_of_two = true,
                 .stays_within_limits = true,
                 .quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  double init_scale = 65536;
  std::optional<double> min_scale;
  double max_scale = 0x1p24;
  std::int64_t growth_interval = 2000;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(MinScale(), self.min_scale);
    v.Value(MaxScale(), self.max_scale);
    v.Value(GrowthInterval(), self.growth_interval);
  }

  State Start() const { return {std::min(max_scale, init_scale)}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    State next = {s.loss_scale, s.good_steps + 1};
    Event event = Event::kNone;
    if (!Finite(o)) {
      const double half = s.loss_scale / 2;
      const auto c = Shrunk(s.loss_scale, half, min_scale.value_or(0) != 0 ? std::max(*min_scale, half) : half);
      next = {c.scale, 0};
      event = c.event;
    }
    if (next.good_steps == growth_interval) {
      const auto c = Grown(next.loss_scale, next.loss_scale * 2, std::min(max_scale, next.loss_scale * 2));
      next = {c.scale, 0};
      if (event == Event::kNone) event = c.event;
    }
    return {.next = next, .event = event, .apply = Finite(o)};
  }
  std::int64_t QuietSteps(const State& s) const { return QuietUntilEqual(s.good_steps, growth_interval); }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n}; }
};

template <bool kFixed>
struct ApexFp16UtilsRule : Rule<NumberedState<double>, kFixed ? Check::kScaled : Check::kSums> {
  using Base = Rule<NumberedState<double>, kFixed ? Check::kScaled : Check::kSums>;
  using typename Base::State;
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "apex-fp16utils",
        .project = "NVIDIA Apex",
        .file = "apex/fp16_utils/loss_scaler.py",
        .summary =
            "floor 1, no cap; checks the float32 sum of each tensor, so a finite tensor with a large sum counts as "
            "overflow",
        .rule =
            "O: S <- max(S/f, 1);  last <- k\n"
            "F: if (k - last) mod W == 0: S <- S*f\n"
            "always k <- k+1",
        .hold = Hold::kF64,
        .floor = 1,
        .needs = NeedsFor(Base::kCheck),
        .claims = {.never_grows_on_overflow = true,
                   .keeps_powers_of_two = true,
                   .stays_within_limits = true,
                   .stays_positive = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "apex-fp16utils-fixed";
      i.summary = "apex-fp16utils that checks every element: no false positives";
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  double init_scale = 0x1p32;
  double factor = 2;
  std::int64_t growth_interval = 1000;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(Factor(), self.factor);
    v.Value(GrowthInterval(), self.growth_interval);
  }

  State Start() const { return {init_scale}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    const std::int64_t k = s.step_number;
    if (!Base::Finite(o)) {
      const auto c = Shrunk(s.loss_scale, s.loss_scale / factor, std::max(s.loss_scale / factor, 1.0));
      return {.next = {c.scale, k + 1, k}, .event = c.event, .apply = false};
    }
    if (growth_interval == 0) return Raise(s);
    if ((k - s.last_overflow) % growth_interval != 0) return {.next = {s.loss_scale, k + 1, s.last_overflow}};
    const auto c = Grown(s.loss_scale, s.loss_scale * factor);
    return {.next = {c.scale, k + 1, s.last_overflow}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const {
    return QuietUntilMultiple(s.step_number - s.last_overflow, growth_interval);
  }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.step_number + n, s.last_overflow}; }
};
using ApexFp16Utils = ApexFp16UtilsRule<false>;
using ApexFp16UtilsFixed = ApexFp16UtilsRule<true>;

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_APEX_H_
