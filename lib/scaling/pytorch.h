// PyTorch's rule and those built on its scaler: pytorch, pytorch-sharded-cpu, apex-hysteresis, fairseq2.
#ifndef SCALETRACE_SCALING_PYTORCH_H_
#define SCALETRACE_SCALING_PYTORCH_H_

#include "scaling/rules.h"

namespace scaletrace {

template <bool kFixed>
struct PytorchRule : Rule<CountingState<float>, Check::kScaled> {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "pytorch",
        .project = "PyTorch",
        .file = "torch/amp/grad_scaler.py and the _amp_update_scale_ kernel",
        .summary = "no floor and no cap: never grows to inf, but shrinks to 0, and then steps with NaN",
        .rule =
            "O: S <- f32(double(S)*b);  t <- 0\n"
            "F: t <- t+1;  if t == W: S' <- f32(double(S)*g), S <- S' if that is finite, t <- 0 in any case",
        .hold = Hold::kF32Wide,
        .needs = NeedsFor(kCheck),
        .claims = {.never_grows_on_overflow = true,
                   .keeps_powers_of_two = true,
                   .stays_within_limits = true,
                   .stays_finite = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "pytorch-fixed";
      i.summary = "pytorch with a floor of 2^-126, where 1/S is still finite: no step with NaN";
      i.rule = "O: S <- max(f32(double(S)*b), 2^-126);  t <- 0\nF: as pytorch";
      i.floor = 0x1p-126;
      i.claims.stays_positive = true;
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(GrowthFactor(MoreThan(1)), self.growth_factor);
    v.Value(BackoffFactor(LessThan(1)), self.backoff_factor);
    v.Value(GrowthInterval(), self.growth_interval);
  }

  State Start() const { return {init_scale}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    if (!Finite(o)) {
      const float wanted = TimesWide(s.loss_scale, backoff_factor);
      const auto c = Shrunk(s.loss_scale, wanted, kFixed ? std::max(wanted, 0x1p-126f) : wanted);
      return {.next = {c.scale, 0}, .event = c.event, .apply = false};
    }
    if (s.good_steps + 1 != growth_interval) return {.next = {s.loss_scale, s.good_steps + 1}};
    const auto c = GrownIfFinite(s.loss_scale, TimesWide(s.loss_scale, growth_factor));
    return {.next = {c.scale, 0}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const { return QuietUntilEqual(s.good_steps, growth_interval); }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n}; }
};
using Pytorch = PytorchRule<false>;
using PytorchFixed = PytorchRule<true>;

struct PytorchShardedCpu : Rule<CountingState<float>, Check::kScaled> {
  static constexpr PolicyInfo kInfo = {
      .key = "pytorch-sharded-cpu",
      .project = "PyTorch",
      .file = "torch/distributed/fsdp/sharded_grad_scaler.py",
      .summary =
          "the sharded scaler with its scale on the CPU: pytorch without the guard, so it grows to inf and stays there",
      .rule =
          "O (flag >= 1): S <- S*b;  t <- 0\n"
          "F: t <- t+1;  if t == W: S <- S*g, t <- 0\n"
          "N (the flag itself is NaN, not >= 1): as F. A NaN gradient makes the flag 1, as an inf does, so no run has "
          "this.",
      .hold = Hold::kF32,
      .needs = NeedsFor(Check::kScaled),
      .claims = {.never_grows_on_overflow = true,
                 .keeps_powers_of_two = true,
                 .stays_within_limits = true,
                 .quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(GrowthFactor(MoreThan(1)), self.growth_factor);
    v.Value(BackoffFactor(LessThan(1)), self.backoff_factor);
    v.Value(GrowthInterval(), self.growth_interval);
  }

  State Start() const { return {init_scale}; }
  bool Finite(const Observation& o) const { return o.scaled_finite || o.flag_nan; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    if (!Finite(o)) {
      const auto c = Shrunk(s.loss_scale, TimesF32(s.loss_scale, backoff_factor));
      return {.next = {c.scale, 0}, .event = c.event, .apply = false};
    }
    if (s.good_steps + 1 != growth_interval) return {.next = {s.loss_scale, s.good_steps + 1}};
    const auto c = Grown(s.loss_scale, TimesF32(s.loss_scale, growth_factor));
    return {.next = {c.scale, 0}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const { return QuietUntilEqual(s.good_steps, growth_interval); }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n}; }
};

struct ApexHysteresis : Rule<HysteresisState<float>, Check::kScaled> {
  static constexpr PolicyInfo kInfo = {
      .key = "apex-hysteresis",
      .project = "NVIDIA Apex and NeMo",
      .file = "csrc/update_scale_hysteresis.cu; GradScaler of NeMo",
      .summary =
          "pytorch with hysteresis that every good step refills: the H-th overflow in a row and all after it back off",
      .rule =
          "O: h <- h-1;  t <- 0;  if h <= 0: S <- f32(double(S)*b), else forgiven\n"
          "N (the flag itself is NaN): S <- f32(double(S)*b) at once;  t <- 0;  h stays. A NaN gradient makes the flag "
          "1: "
          "no run has this.\n"
          "F: as pytorch;  h <- H",
      .hold = Hold::kF32Wide,
      .needs = NeedsFor(Check::kScaled),
      .claims = {.never_grows_on_overflow = true,
                 .keeps_powers_of_two = true,
                 .stays_within_limits = true,
                 .stays_finite = true,
                 .quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 65536;
  std::int64_t hysteresis = 1;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(Hysteresis(), self.hysteresis);
    v.Value(GrowthFactor(MoreThan(1)), self.growth_factor);
    v.Value(BackoffFactor(LessThan(1)), self.backoff_factor);
    v.Value(GrowthInterval(), self.growth_interval);
  }

  State Start() const { return {init_scale, 0, hysteresis}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    if (!Finite(o)) {
      const bool nan = o.flag_nan;
      const std::int64_t left = nan ? s.hysteresis_left : s.hysteresis_left - 1;
      if (!nan && left > 0) return {.next = {s.loss_scale, 0, left}, .event = Event::kForgiven, .apply = false};
      const auto c = Shrunk(s.loss_scale, TimesWide(s.loss_scale, backoff_factor));
      return {.next = {c.scale, 0, left}, .event = c.event, .apply = false};
    }
    if (s.good_steps + 1 != growth_interval) return {.next = {s.loss_scale, s.good_steps + 1, hysteresis}};
    const auto c = GrownIfFinite(s.loss_scale, TimesWide(s.loss_scale, growth_factor));
    return {.next = {c.scale, 0, hysteresis}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const { return QuietUntilEqual(s.good_steps, growth_interval); }
  State Advance(const State& s, std::int64_t n) const {
    return {s.loss_scale, s.good_steps + n, n > 0 ? hysteresis : s.hysteresis_left};
  }
};

template <bool kFixed>
struct Fairseq2Rule : Rule<CountingState<float>, Check::kScaled> {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "fairseq2",
        .project = "fairseq2",
        .file = "fairseq2/optim/fp16_loss_scaler.py",
        .summary = "pytorch with a floor, which is not looked at once the decrease is below 1e-5",
        .rule =
            "S' <- rule of pytorch with g = f, b = 1/f\n"
            "O: if S - S' > max(1.3e-6*S, 1e-5) and S' < min_scale: S' <- f32(min_scale)",
        .hold = Hold::kF32Wide,
        .needs = NeedsFor(kCheck),
        .claims = {.never_grows_on_overflow = true,
                   .keeps_powers_of_two = true,
                   .stays_finite = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "fairseq2-fixed";
      i.summary = "fairseq2 with the floor applied after every backoff";
      i.rule = "S' <- rule of pytorch with g = f, b = 1/f\nO: S' <- max(S', f32(min_scale))";
      i.claims.stays_within_limits = i.claims.stays_positive = true;
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 65536;
  double factor = 2;
  std::int64_t growth_interval = 2000;
  double min_scale = 1e-4;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(Factor(MoreThan(1)), self.factor);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value(MinScale(), self.min_scale);
  }

  State Start() const { return {init_scale}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    if (!Finite(o)) {
      const double old = s.loss_scale;
      const float wanted = TimesWide(s.loss_scale, 1 / factor);
      const bool no_change = std::fabs(old - static_cast<double>(wanted)) <=
                             std::max(1.3e-6 * std::max(old, static_cast<double>(wanted)), 1e-5);
      const bool floored =
          (kFixed || !no_change) && !(static_cast<double>(wanted) > old) && min_scale > static_cast<double>(wanted);
      const auto c = Shrunk(s.loss_scale, wanted, floored ? static_cast<float>(min_scale) : wanted);
      return {.next = {c.scale, 0}, .event = c.event, .apply = false};
    }
    if (s.good_steps + 1 != growth_interval) return {.next = {s.loss_scale, s.good_steps + 1}};
    const auto c = GrownIfFinite(s.loss_scale, TimesWide(s.loss_scale, factor));
    return {.next = {c.scale, 0}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const { return QuietUntilEqual(s.good_steps, growth_interval); }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n}; }
};
using Fairseq2 = Fairseq2Rule<false>;
using Fairseq2Fixed = Fairseq2Rule<true>;

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_PYTORCH_H_
