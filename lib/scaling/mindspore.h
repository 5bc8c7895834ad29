// MindSpore's host-side manager and its update cell. Its scaler is in jax.h.
#ifndef SCALETRACE_SCALING_MINDSPORE_H_
#define SCALETRACE_SCALING_MINDSPORE_H_

#include "scaling/rules.h"

namespace scaletrace {

struct MindSporeManager {
  static constexpr std::int64_t kMaxBadSteps = 1000;
  static constexpr PolicyInfo kInfo = {
      .key = "mindspore-manager",
      .project = "MindSpore",
      .file = "mindspore/train/loss_scale_manager.py",
      .summary = "floor 1, no cap; the 1001st overflow in a row raises",
      .rule =
          "k starts at 1, last at 0\n"
          "O: S <- max(S*(1/f), 1);  last <- k;  bad <- bad+1\n"
          "F: if (k - last) mod W == 0: S <- S*f;  bad <- 0\n"
          "if bad > 1000: raise, with S already updated\n"
          "always k <- k+1",
      .hold = Hold::kF64,
      .floor = 1,
      .needs = NeedsFor(Check::kUnscaled),
      .claims = {.never_grows_on_overflow = true,
                 .keeps_powers_of_two = true,
                 .stays_within_limits = true,
                 .stays_positive = true,
                 .quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  struct State : NumberedState<double> {
    std::int64_t bad_steps = 0;

    bool operator==(const State&) const = default;
    template <class Self, class V>
    static void Visit(Self& self, V& v) {
      NumberedState<double>::Visit(self, v);
      v.Value({"bad_steps", "overflows in a row"}, self.bad_steps);
    }
  };

  double init_scale = 0x1p24;
  double factor = 2;
  std::int64_t growth_interval = 2000;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(AtLeast(1).OrPower().OrInfinity()), self.init_scale);
    v.Value(Factor(), self.factor);
    v.Value(GrowthInterval(kPositiveCount), self.growth_interval);
  }

  State Start() const { return {{init_scale, 1, 0}}; }
  double LossScale(const State& s) const { return s.loss_scale; }
  bool Finite(const Observation& o) const { return o.unscaled_finite; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    const std::int64_t k = s.step_number;
    if (!Finite(o)) {
      const double wanted = s.loss_scale * (1 / factor);
      const auto c = Shrunk(s.loss_scale, wanted, std::max(wanted, 1.0));
      if (s.bad_steps + 1 > kMaxBadSteps) return Raise(State{{c.scale, k, k}, s.bad_steps + 1});
      return {.next = {{c.scale, k + 1, k}, s.bad_steps + 1}, .event = c.event, .apply = false};
    }
    if ((k - s.last_overflow) % growth_interval != 0) return {.next = {{s.loss_scale, k + 1, s.last_overflow}}};
    const auto c = Grown(s.loss_scale, s.loss_scale * factor);
    return {.next = {{c.scale, k + 1, s.last_overflow}}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const {
    return QuietUntilMultiple(s.step_number - s.last_overflow, growth_interval);
  }
  State Advance(const State& s, std::int64_t n) const {
    return {{s.loss_scale, s.step_number + n, s.last_overflow}, n > 0 ? 0 : s.bad_steps};
  }
};

struct MindSporeCell : Rule<NumberedState<float>, Check::kUnscaled> {
  static constexpr PolicyInfo kInfo = {
      .key = "mindspore-cell",
      .project = "MindSpore",
      .file = "mindspore/nn/wrap/loss_scale.py",
      .summary = "floor 1, no cap and no guard: grows to inf and stays there",
      .rule =
          "k starts at 1, last at 0;  inc <- (W <= k - last)\n"
          "O: S <- max(S*f32(1/f), 1)\n"
          "F and inc: S <- S*f\n"
          "O or inc: last <- k;  always k <- k+1",
      .hold = Hold::kF32,
      .floor = 1,
      .needs = NeedsFor(kCheck),
      .claims = {.never_grows_on_overflow = true,
                 .keeps_powers_of_two = true,
                 .stays_within_limits = true,
                 .stays_positive = true,
                 .quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 0x1p24f;
  double factor = 2;
  std::int64_t growth_interval = 2000;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(Factor(), self.factor);
    v.Value(GrowthInterval(), self.growth_interval);
  }

  State Start() const { return {init_scale, 1, 0}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    const std::int64_t k = s.step_number;
    if (!Finite(o)) {
      const float wanted = s.loss_scale * (1 / static_cast<float>(factor));
      const auto c = Shrunk(s.loss_scale, wanted, std::max(wanted, 1.0f));
      return {.next = {c.scale, k + 1, k}, .event = c.event, .apply = false};
    }
    if (k - s.last_overflow < growth_interval) return {.next = {s.loss_scale, k + 1, s.last_overflow}};
    const auto c = Grown(s.loss_scale, TimesF32(s.loss_scale, factor));
    return {.next = {c.scale, k + 1, k}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const {
    return QuietUntilReached(s.step_number - s.last_overflow - 1, growth_interval);
  }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.step_number + n, s.last_overflow}; }
};

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_MINDSPORE_H_
