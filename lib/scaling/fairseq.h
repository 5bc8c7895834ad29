// fairseq's rule with a tolerance, and metaseq's with a moving window. fairseq2 is built on PyTorch's: pytorch.h.
#ifndef SCALETRACE_SCALING_FAIRSEQ_H_
#define SCALETRACE_SCALING_FAIRSEQ_H_

#include "scaling/rules.h"

namespace scaletrace {

template <bool kFixed>
struct FairseqRule {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "fairseq",
        .project = "fairseq",
        .file = "fairseq/optim/dynamic_loss_scaler.py",
        .summary =
            "forgives overflows up to a fraction of the steps, and raises where a backoff would reach min_scale; "
            "checks the norm",
        .rule =
            "O: prev <- S;  last <- k;  n <- n+1\n"
            "   if n/(k - resc) >= tolerance: S <- S/f, then max(S, threshold) if given;  resc <- k;  n <- 0\n"
            "   if S <= min_scale: S <- prev, raise\n"
            "F: if (k - last) mod W == 0: S <- S*f;  resc <- k;  n stays\n"
            "always k <- k+1",
        .hold = Hold::kF64,
        .needs = NeedsFor(Check::kNorm),
        .claims = {.never_grows_on_overflow = true,
                   .keeps_powers_of_two = true,
                   .stays_within_limits = true,
                   .stays_positive = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "fairseq-fixed";
      i.summary = "fairseq whose growth also restarts the count of overflows, so that the fraction is one";
      i.rule = "as fairseq, but F: if (k - last) mod W == 0: S <- S*f;  resc <- k;  n <- 0";
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  struct State : NumberedState<double> {
    std::int64_t last_rescale = -1;
    std::int64_t overflows = 0;

    bool operator==(const State&) const = default;
    template <class Self, class V>
    static void Visit(Self& self, V& v) {
      NumberedState<double>::Visit(self, v);
      v.Value({"last_rescale", "number of the last step that changed the scale"}, self.last_rescale);
      v.Value({"overflows", "overflows that count against the tolerance"}, self.overflows);
    }
  };

  double init_scale = 0x1p15;
  double factor = 2;
  std::int64_t growth_interval = 2000;
  double tolerance = 0;
  std::optional<double> threshold;
  double min_scale = 1e-4;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(Factor(), self.factor);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value(
        {"tolerance", "an overflow is forgiven while they are less than this share of the steps since the last change"},
        self.tolerance);
    v.Value({"threshold", "clamps a backoff, before min_scale is looked at", kAnyScale}, self.threshold);
    v.Value({"min_scale", "a backoff that reaches this raises", kAnyScale}, self.min_scale);
  }

  State Start() const { return {{init_scale}}; }
  double LossScale(const State& s) const { return s.loss_scale; }
  bool Finite(const Observation& o) const { return o.norm_finite; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    State next = s;
    if (!Finite(o)) {
      const std::int64_t k = s.step_number;
      next.last_overflow = k;
      next.overflows = s.overflows + 1;
      Event event = Event::kForgiven;
      if (static_cast<double>(next.overflows) / static_cast<double>(k - s.last_rescale) >= tolerance) {
        const double wanted = s.loss_scale / factor;
        const auto c = Shrunk(s.loss_scale, wanted, threshold ? std::max(wanted, *threshold) : wanted);
        next.loss_scale = c.scale;
        event = c.event;
        next.last_rescale = k;
        next.overflows = 0;
      }
      if (next.loss_scale <= min_scale) {
        next.loss_scale = s.loss_scale;
        return Raise(next);
      }
      next.step_number = k + 1;
      return {.next = next, .event = event, .apply = false};
    }
    if (growth_interval == 0) return Raise(s);
    next.step_number = s.step_number + 1;
    if ((s.step_number - s.last_overflow) % growth_interval != 0) return {.next = next};
    const auto c = Grown(s.loss_scale, s.loss_scale * factor);
    next.loss_scale = c.scale;
    next.last_rescale = s.step_number;
    if (kFixed) next.overflows = 0;
    return {.next = next, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const {
    return QuietUntilMultiple(s.step_number - s.last_overflow, growth_interval);
  }
  State Advance(const State& s, std::int64_t n) const {
    State next = s;
    next.step_number += n;
    return next;
  }
};
using Fairseq = FairseqRule<false>;
using FairseqFixed = FairseqRule<true>;

template <bool kFixed>
struct MetaseqRule {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "metaseq",
        .project = "metaseq",
        .file = "metaseq/optim/dynamic_loss_scaler.py",
        .summary = "the window doubles and halves with the scale, and keeps shrinking at the floor; checks the norm",
        .rule =
            "O: prev <- S;  last <- k;  S <- S/2;  W <- max(int(W/2), 1);  if S < min_scale: S <- prev (W stays "
            "shrunk)\n"
            "F: if (k - last) mod W == 0: S <- 2S, W <- 2W\n"
            "always k <- k+1",
        .hold = Hold::kF64,
        .needs = NeedsFor(Check::kNorm),
        .claims = {.never_grows_on_overflow = true,
                   .keeps_powers_of_two = true,
                   .stays_within_limits = true,
                   .stays_positive = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "metaseq-fixed";
      i.summary = "metaseq whose window moves only where the scale does";
      i.rule = "as metaseq, but where S < min_scale both S and W stay as they were";
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  struct State : NumberedState<double> {
    std::int64_t window = 0;

    bool operator==(const State&) const = default;
    template <class Self, class V>
    static void Visit(Self& self, V& v) {
      NumberedState<double>::Visit(self, v);
      v.Value({"window", "W now"}, self.window);
    }
  };

  double init_scale = 4;
  std::int64_t growth_interval = 256;
  double min_scale = 0x1p-5;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value({"growth_interval", "the window at the start: good steps before growth", kCount}, self.growth_interval);
    v.Value(MinScale(), self.min_scale);
  }

  State Start() const { return {{init_scale}, growth_interval}; }
  double LossScale(const State& s) const { return s.loss_scale; }
  bool Finite(const Observation& o) const { return o.norm_finite; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    const std::int64_t k = s.step_number;
    if (!Finite(o)) {
      const double half = s.loss_scale / 2;
      const bool floored = half < min_scale;
      const auto c = Shrunk(s.loss_scale, half, floored ? s.loss_scale : half);
      const std::int64_t window = kFixed && floored ? s.window : std::max<std::int64_t>(s.window / 2, 1);
      return {.next = {{c.scale, k + 1, k}, window}, .event = c.event, .apply = false};
    }
    if (s.window == 0) return Raise(s);
    if ((k - s.last_overflow) % s.window != 0) return {.next = {{s.loss_scale, k + 1, s.last_overflow}, s.window}};
    const auto c = Grown(s.loss_scale, s.loss_scale * 2);
    return {.next = {{c.scale, k + 1, s.last_overflow}, s.window * 2}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const {
    return QuietUntilMultiple(s.step_number - s.last_overflow, s.window);
  }
  State Advance(const State& s, std::int64_t n) const {
    return {{s.loss_scale, s.step_number + n, s.last_overflow}, s.window};
  }
};
using Metaseq = MetaseqRule<false>;
using MetaseqFixed = MetaseqRule<true>;

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_FAIRSEQ_H_
