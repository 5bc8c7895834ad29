// Megatron-LM's rule and ColossalAI's, which has the same trajectory and a cap.
#ifndef SCALETRACE_SCALING_MEGATRON_H_
#define SCALETRACE_SCALING_MEGATRON_H_

#include "base/number.h"
#include "scaling/rules.h"

namespace scaletrace {

template <bool kFixed>
struct MegatronRule : Rule<HysteresisState<float>, Check::kScaled> {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "megatron",
        .project = "Megatron-LM",
        .file = "megatron/core/optimizer/grad_scaler.py",
        .summary = "hysteresis that only growth refills; no cap and no guard: grows to inf and stays there",
        .rule =
            "O: t <- 0;  h <- h-1;  if h <= 0: S <- max(S*b, min_scale), else forgiven\n"
            "F: t <- t+1;  if t == W: t <- 0, h <- H, S <- S*g",
        .hold = Hold::kF32,
        .needs = NeedsFor(kCheck),
        .claims = {.never_grows_on_overflow = true,
                   .keeps_powers_of_two = true,
                   .stays_within_limits = true,
                   .stays_positive = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "megatron-fixed";
      i.summary = "megatron with a guard: a growth to inf keeps S";
      i.rule = "O: as megatron\nF: t <- t+1;  if t == W: t <- 0, h <- H, S <- S*g if that is finite";
      i.claims.stays_finite = true;
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 0x1p32f;
  float min_scale = 1;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  double growth_interval = 1000;
  std::int64_t hysteresis = 2;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(MoreThan(0).OrPower().OrInfinity()), self.init_scale);
    v.Value(MinScale(MoreThan(0).OrPower().OrInfinity()), self.min_scale);
    v.Value(GrowthFactor(MoreThan(1)), self.growth_factor);
    v.Value(BackoffFactor(Inside(0, 1)), self.backoff_factor);
    v.Value(
        {"growth_interval",
         "good steps before growth; as in the project it need not be an integer, and then never matches", MoreThan(0)},
        self.growth_interval);
    v.Value(Hysteresis(kPositiveCount), self.hysteresis);
  }
  std::optional<ParameterProblem> Problem() const {
    if (!(min_scale <= init_scale))
      return ParameterProblem{"min_scale",
                              "found " + ToText(min_scale) + "; allowed: at most init_scale, " + ToText(init_scale)};
    return std::nullopt;
  }

  State Start() const { return {init_scale, 0, hysteresis}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    if (!Finite(o)) {
      const std::int64_t left = s.hysteresis_left - 1;
      if (left > 0) return {.next = {s.loss_scale, 0, left}, .event = Event::kForgiven, .apply = false};
      const float wanted = TimesF32(s.loss_scale, backoff_factor);
      const auto c = Shrunk(s.loss_scale, wanted, std::max(wanted, min_scale));
      return {.next = {c.scale, 0, left}, .event = c.event, .apply = false};
    }
    if (static_cast<double>(s.good_steps + 1) != growth_interval)
      return {.next = {s.loss_scale, s.good_steps + 1, s.hysteresis_left}};
    const float wanted = TimesF32(s.loss_scale, growth_factor);
    const auto c = kFixed ? GrownIfFinite(s.loss_scale, wanted) : Grown(s.loss_scale, wanted);
    return {.next = {c.scale, 0, hysteresis}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const {
    if (growth_interval > static_cast<double>(kForever) || growth_interval != std::floor(growth_interval))
      return kForever;
    return QuietUntilEqual(s.good_steps, static_cast<std::int64_t>(growth_interval));
  }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n, s.hysteresis_left}; }
};
using Megatron = MegatronRule<false>;
using MegatronFixed = MegatronRule<true>;

template <bool kFixed>
struct ColossalAiRule : Rule<TwoCountsState<float>, Check::kScaled> {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "colossalai",
        .project = "ColossalAI",
        .file = "colossalai/amp/naive_amp/grad_scaler/dynamic_grad_scaler.py",
        .summary = "megatron with an optional floor and cap; unscales with the new S",
        .rule =
            "O: h <- h+1;  t <- 0;  if h >= H: S <- S*b, then max(S, min_scale) if given, else forgiven\n"
            "F: t <- t+1;  if t == W: t <- 0, h <- 0, S <- S*g, then min(S, max_scale) if given\n"
            "then the gradients are divided by the new S",
        .hold = Hold::kF32,
        .needs = NeedsFor(kCheck),
        .claims = {.never_grows_on_overflow = true,
                   .keeps_powers_of_two = true,
                   .stays_within_limits = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "colossalai-fixed";
      i.summary = "colossalai that unscales with the S of the backward pass";
      i.rule = "as colossalai, but the gradients are divided by the S of the backward pass";
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 1000;
  std::optional<float> min_scale;
  std::optional<float> max_scale;
  std::int64_t hysteresis = 2;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(GrowthFactor(MoreThan(1)), self.growth_factor);
    v.Value(BackoffFactor(Inside(0, 1)), self.backoff_factor);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value({"min_scale", "no backoff goes below this; 0 counts as none", AtLeast(0).OrPower()}, self.min_scale);
    v.Value({"max_scale", "no growth goes above this; 0 counts as none", AtLeast(0).OrPower().OrInfinity()},
            self.max_scale);
    v.Value(Hysteresis(Between(0, 9007199254740992.0)), self.hysteresis);
  }
  std::optional<ParameterProblem> Problem() const {
    if (min_scale.value_or(0) != 0 && !(*min_scale <= init_scale))
      return ParameterProblem{"min_scale",
                              "found " + ToText(*min_scale) + "; allowed: at most init_scale, " + ToText(init_scale)};
    if (max_scale.value_or(0) != 0 && !(*max_scale >= init_scale))
      return ParameterProblem{"max_scale",
                              "found " + ToText(*max_scale) + "; allowed: at least init_scale, " + ToText(init_scale)};
    return std::nullopt;
  }

  State Start() const { return {init_scale}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    if (!Finite(o)) {
      const std::int64_t bad = s.bad_steps + 1;
      if (bad < hysteresis) return {.next = {s.loss_scale, 0, bad}, .event = Event::kForgiven, .apply = false};
      const float wanted = TimesF32(s.loss_scale, backoff_factor);
      const auto c = Shrunk(s.loss_scale, wanted, min_scale.value_or(0) != 0 ? std::max(wanted, *min_scale) : wanted);
      return {.next = {c.scale, 0, bad}, .event = c.event, .apply = false};
    }
    constexpr Unscale kUnscale = kFixed ? Unscale::kOld : Unscale::kNew;
    if (s.good_steps + 1 != growth_interval)
      return {.next = {s.loss_scale, s.good_steps + 1, s.bad_steps}, .unscale = kUnscale};
    const float wanted = TimesF32(s.loss_scale, growth_factor);
    const auto c = Grown(s.loss_scale, wanted, max_scale.value_or(0) != 0 ? std::min(wanted, *max_scale) : wanted);
    return {.next = {c.scale, 0, 0}, .event = c.event, .unscale = kUnscale};
  }
  std::int64_t QuietSteps(const State& s) const { return QuietUntilEqual(s.good_steps, growth_interval); }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n, s.bad_steps}; }
};
using ColossalAi = ColossalAiRule<false>;
using ColossalAiFixed = ColossalAiRule<true>;

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_MEGATRON_H_
