// TensorFlow and Keras: tf1-contrib, tf-dynamic, keras.
#ifndef SCALETRACE_SCALING_TENSORFLOW_H_
#define SCALETRACE_SCALING_TENSORFLOW_H_

#include "scaling/rules.h"

namespace scaletrace {

struct Tf1Contrib : Rule<TwoCountsState<float>, Check::kUnscaled> {
  static constexpr PolicyInfo kInfo = {
      .key = "tf1-contrib",
      .project = "TensorFlow 1",
      .file = "tensorflow/contrib/mixed_precision/python/loss_scale_manager.py",
      .summary =
          "backs off at every D-th overflow, counted across good steps, and by 0.8; the project has no default scale "
          "and interval (here 2^15, 2000)",
      .rule =
          "O: if bad+1 >= D: S <- max(1, S*b), good <- 0, bad <- 0;  else bad <- bad+1, good <- 0, forgiven\n"
          "F: if good+1 >= W: S' <- S*g, S <- S' if that is finite, good <- 0, bad <- 0;  else good <- good+1",
      .hold = Hold::kF32,
      .floor = 1,
      .needs = NeedsFor(kCheck),
      .claims = {.never_grows_on_overflow = true,
                 .keeps_powers_of_two = true,
                 .stays_within_limits = true,
                 .stays_positive = true,
                 .stays_finite = true,
                 .quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 0x1p15f;
  std::int64_t growth_interval = 2000;
  std::int64_t decr_every_n = 2;
  double growth_factor = 2;
  double backoff_factor = 0.8;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value({"decr_every_n", "overflows for one backoff, good steps between them or not", kCount}, self.decr_every_n);
    v.Value(GrowthFactor(), self.growth_factor);
    v.Value(BackoffFactor(), self.backoff_factor);
  }

  State Start() const { return {init_scale}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    if (!Finite(o)) {
      if (s.bad_steps + 1 < decr_every_n)
        return {.next = {s.loss_scale, 0, s.bad_steps + 1}, .event = Event::kForgiven, .apply = false};
      const float wanted = TimesF32(s.loss_scale, backoff_factor);
      const auto c = Shrunk(s.loss_scale, wanted, std::max(1.0f, wanted));
      return {.next = {c.scale, 0, 0}, .event = c.event, .apply = false};
    }
    if (s.good_steps + 1 < growth_interval) return {.next = {s.loss_scale, s.good_steps + 1, s.bad_steps}};
    const auto c = GrownIfFinite(s.loss_scale, TimesF32(s.loss_scale, growth_factor));
    return {.next = {c.scale, 0, 0}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const { return QuietUntilReached(s.good_steps, growth_interval); }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n, s.bad_steps}; }
};

struct TfDynamic : Rule<CountingState<float>, Check::kUnscaled> {
  static constexpr PolicyInfo kInfo = {
      .key = "tf-dynamic",
      .project = "TensorFlow, tf-keras 2",
      .file = "tensorflow/python/training/experimental/loss_scale.py",
      .summary = "floor 1, and a growth to inf keeps S",
      .rule =
          "O: t <- 0;  S <- max(S/f, 1)\n"
          "F: if t+1 >= W: S' <- S*f, S <- S' if that is finite, t <- 0;  else t <- t+1",
      .hold = Hold::kF32,
      .floor = 1,
      .needs = NeedsFor(kCheck),
      .claims = {.never_grows_on_overflow = true,
                 .keeps_powers_of_two = true,
                 .stays_within_limits = true,
                 .stays_positive = true,
                 .stays_finite = true,
                 .quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 0x1p15f;
  std::int64_t growth_interval = 2000;
  double factor = 2;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value(Factor(AnyNumber()), self.factor);
  }

  State Start() const { return {init_scale}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    if (!Finite(o)) {
      const float wanted = Over(s.loss_scale, factor);
      const auto c = Shrunk(s.loss_scale, wanted, std::max(wanted, 1.0f));
      return {.next = {c.scale, 0}, .event = c.event, .apply = false};
    }
    if (s.good_steps + 1 < growth_interval) return {.next = {s.loss_scale, s.good_steps + 1}};
    const auto c = GrownIfFinite(s.loss_scale, TimesF32(s.loss_scale, factor));
    return {.next = {c.scale, 0}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const { return QuietUntilReached(s.good_steps, growth_interval); }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n}; }
};

template <bool kFixed>
struct KerasRule : Rule<CountingState<float>, Check::kScaled> {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "keras",
        .project = "Keras 3",
        .file = "keras/src/optimizers/loss_scale_optimizer.py",
        .summary = "no floor, no cap, no guard: grows to inf and stays there, or shrinks to 0 and applies NaN",
        .rule =
            "O: t <- 0;  S <- S/2\n"
            "F: if t == W-1: t <- 0, S <- 2S;  else t <- t+1",
        .hold = Hold::kF32,
        .needs = NeedsFor(kCheck),
        .claims = {.never_grows_on_overflow = true,
                   .keeps_powers_of_two = true,
                   .stays_within_limits = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "keras-fixed";
      i.summary = "keras with the floor of 1 and the guard against inf that its predecessor had";
      i.rule =
          "O: t <- 0;  S <- max(S/2, 1)\n"
          "F: if t == W-1: t <- 0, S <- 2S if that is finite;  else t <- t+1";
      i.floor = 1;
      i.claims.stays_positive = i.claims.stays_finite = true;
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 0x1p15f;
  std::int64_t growth_interval = 2000;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(GrowthInterval(), self.growth_interval);
  }

  State Start() const { return {init_scale}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    if (!Finite(o)) {
      const float half = s.loss_scale / 2;
      const auto c = Shrunk(s.loss_scale, half, kFixed ? std::max(half, 1.0f) : half);
      return {.next = {c.scale, 0}, .event = c.event, .apply = false};
    }
    if (s.good_steps != growth_interval - 1) return {.next = {s.loss_scale, s.good_steps + 1}};
    const float twice = s.loss_scale * 2;
    const auto c = kFixed ? GrownIfFinite(s.loss_scale, twice) : Grown(s.loss_scale, twice);
    return {.next = {c.scale, 0}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const { return QuietUntilEqual(s.good_steps, growth_interval); }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n}; }
};
using Keras = KerasRule<false>;
using KerasFixed = KerasRule<true>;

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_TENSORFLOW_H_
