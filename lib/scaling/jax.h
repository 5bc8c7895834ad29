// The JAX libraries: flax, jmp, mpx; and mindspore-scaler, which has jmp's rule.
#ifndef SCALETRACE_SCALING_JAX_H_
#define SCALETRACE_SCALING_JAX_H_

#include "scaling/rules.h"

namespace scaletrace {

inline constexpr float kFloatMax = std::numeric_limits<float>::max();

template <bool kFixed>
struct FlaxRule {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "flax",
        .project = "Flax",
        .file = "flax/training/dynamic_scale.py",
        .summary = "grows every W+1 good steps, saturates at the largest float and is no power of two from then on",
        .rule =
            "grow <- (n == W), before this step is counted\n"
            "O: S <- max(S*b, min_scale), without the max if min_scale is none;  n <- 0\n"
            "F: S <- grow ? min(S*g, FLT_MAX) : S;  n <- grow ? 0 : n+1\n"
            "S0 is a double until the first update, whose product is formed in double",
        .hold = Hold::kF32,
        .ceiling = static_cast<double>(kFloatMax),
        .needs = NeedsFor(Check::kUnscaled),
        .claims = {.never_grows_on_overflow = true,
                   .stays_within_limits = true,
                   .stays_finite = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "flax-fixed";
      i.summary = "flax that grows every W good steps and keeps S where the growth would overflow";
      i.rule = "as flax, but grow <- (n+1 == W), and S stays where S*g is not finite";
      i.claims.keeps_powers_of_two = true;
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  struct State {
    double loss_scale;
    std::int64_t good_steps = 0;
    bool updated = false;

    bool operator==(const State&) const = default;
    template <class Self, class V>
    static void Visit(Self& self, V& v) {
      v.Value({"loss_scale", "S"}, self.loss_scale);
      v.Value({"good_steps", "good steps since the last overflow or growth"}, self.good_steps);
      v.Value({"updated", "S is a float now, not the double that it was given as"}, self.updated);
    }
  };

  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  std::optional<float> min_scale = 0x1p-126f;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(GrowthFactor(), self.growth_factor);
    v.Value(BackoffFactor(), self.backoff_factor);
    v.Value({"growth_interval", kFixed ? "good steps before growth" : "growth comes with the good step after this many",
             kCount},
            self.growth_interval);
    v.Value(MinScale(), self.min_scale);
  }

  State Start() const { return {init_scale}; }
  double LossScale(const State& s) const { return s.loss_scale; }
  bool Finite(const Observation& o) const { return o.unscaled_finite; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    const float old = static_cast<float>(s.loss_scale);
    const auto times = [&](double factor) {
      return s.updated ? TimesF32(old, factor) : static_cast<float>(s.loss_scale * factor);
    };
    const auto update = [](const Change<double>& c, std::int64_t count, bool apply) -> Outcome<State> {
      return {
          .next = {static_cast<double>(static_cast<float>(c.scale)), count, true}, .event = c.event, .apply = apply};
    };
    if (!Finite(o)) {
      const float wanted = times(backoff_factor);
      return update(Shrunk<double>(s.loss_scale, wanted, min_scale ? std::max(wanted, *min_scale) : wanted), 0, false);
    }
    if (s.good_steps + (kFixed ? 1 : 0) != growth_interval)
      return update({s.loss_scale, Event::kNone}, s.good_steps + 1, true);
    const float wanted = times(growth_factor);
    return update(kFixed ? GrownIfFinite<double>(s.loss_scale, wanted)
                         : Grown<double>(s.loss_scale, wanted, std::min(wanted, kFloatMax)),
                  0, true);
  }
  std::int64_t QuietSteps(const State& s) const {
    if (static_cast<double>(static_cast<float>(s.loss_scale)) != s.loss_scale) return 0;
    return QuietUntilEqual(s.good_steps, kFixed ? growth_interval : growth_interval + 1);
  }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n, s.updated || n > 0}; }
};
using Flax = FlaxRule<false>;
using FlaxFixed = FlaxRule<true>;

// c <- (c+1) mod W on a good step. The projects take any W; below 1 nothing ever matches, and then the count only
// counts.
constexpr std::int64_t NextInPeriod(std::int64_t count, std::int64_t interval) {
  return interval > 0 ? (count + 1) % interval : count + 1;
}

struct Jmp : Rule<CountingState<float>, Check::kUnscaled> {
  static constexpr PolicyInfo kInfo = {
      .key = "jmp",
      .project = "DeepMind jmp",
      .file = "jmp/_src/loss_scale.py",
      .summary =
          "an integer factor, a floor, and a growth to inf keeps S; the project has no default scale (here 2^15, as in "
          "its documentation)",
      .rule =
          "O: S <- max(min_scale, S/f);  c <- 0\n"
          "F: S <- (c == W-1 and S*f is finite) ? S*f : S;  c <- (c+1) mod W",
      .hold = Hold::kF32,
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
  std::int64_t factor = 2;
  float min_scale = 1;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value(Factor(kCount), self.factor);
    v.Value(MinScale(), self.min_scale);
  }

  State Start() const { return {init_scale}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    const double f = static_cast<double>(factor);
    if (!Finite(o)) {
      const float wanted = Over(s.loss_scale, f);
      const auto c = Shrunk(s.loss_scale, wanted, std::max(min_scale, wanted));
      return {.next = {c.scale, 0}, .event = c.event, .apply = false};
    }
    const std::int64_t count = NextInPeriod(s.good_steps, growth_interval);
    if (s.good_steps != growth_interval - 1) return {.next = {s.loss_scale, count}};
    const auto c = GrownIfFinite(s.loss_scale, TimesF32(s.loss_scale, f));
    return {.next = {c.scale, count}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const { return QuietUntilEqual(s.good_steps, growth_interval); }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n}; }
};

struct MindSporeScaler : Rule<CountingState<float>, Check::kUnscaled> {
  static constexpr PolicyInfo kInfo = {
      .key = "mindspore-scaler",
      .project = "MindSpore",
      .file = "mindspore/amp.py, DynamicLossScaler",
      .summary =
          "the rule of jmp with its floor fixed at 1; the project has no defaults (here those of its manager: 2^24, 2, "
          "2000)",
      .rule =
          "O: S <- max(1, S/f);  c <- 0\n"
          "F: S <- (c == W-1 and S*f is finite) ? S*f : S;  c <- (c+1) mod W",
      .hold = Hold::kF32,
      .floor = 1,
      .needs = NeedsFor(kCheck),
      .claims = Jmp::kInfo.claims,
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 0x1p24f;
  std::int64_t growth_interval = 2000;
  std::int64_t factor = 2;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(AtLeast(1).OrPower().OrInfinity()), self.init_scale);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value(Factor(kCount), self.factor);
  }

  Jmp AsJmp() const { return {{}, init_scale, growth_interval, factor, 1}; }
  State Start() const { return AsJmp().Start(); }
  Outcome<State> Next(const State& s, const Observation& o) const { return AsJmp().Next(s, o); }
  std::int64_t QuietSteps(const State& s) const { return AsJmp().QuietSteps(s); }
  State Advance(const State& s, std::int64_t n) const { return AsJmp().Advance(s, n); }
};

template <bool kFixed>
struct MpxRule : Rule<CountingState<float>, Check::kScaled> {
  static constexpr float kCap = 65504;
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "mpx",
        .project = "mixed_precision_for_JAX",
        .file = "mpx, loss scaling",
        .summary =
            "jmp with a cap of 65504, after which S is no power of two; unscales with the new S; no default scale and "
            "floor (here 2^15, 1)",
        .rule =
            "S <- rule of jmp, then min(max(S, min_scale), 65504), also on steps that change nothing\n"
            "then the gradients are divided by the new S",
        .hold = Hold::kF32,
        .ceiling = kCap,
        .needs = NeedsFor(kCheck),
        .claims = {.never_grows_on_overflow = true,
                   .stays_within_limits = true,
                   .stays_positive = true,
                   .stays_finite = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "mpx-fixed";
      i.summary = "mpx that unscales with the S of the backward pass and keeps S where the growth would pass 65504";
      i.rule = "as mpx, but S stays where S*f > 65504, and the gradients are divided by the S of the backward pass";
      i.claims.keeps_powers_of_two = true;
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 0x1p15f;
  std::int64_t growth_interval = 2000;
  double factor = 2;
  float min_scale = 1;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value(Factor(), self.factor);
    v.Value(MinScale(), self.min_scale);
  }

  State Start() const { return {init_scale}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    const auto clip = [&](float scale) { return std::min(std::max(scale, min_scale), kCap); };
    if (!Finite(o)) {
      const float wanted = Over(s.loss_scale, factor);
      const auto c = Shrunk(s.loss_scale, wanted, clip(wanted));
      return {.next = {c.scale, 0}, .event = c.event, .apply = false};
    }
    constexpr Unscale kUnscale = kFixed ? Unscale::kOld : Unscale::kNew;
    const std::int64_t count = NextInPeriod(s.good_steps, growth_interval);
    if (s.good_steps != growth_interval - 1) return {.next = {clip(s.loss_scale), count}, .unscale = kUnscale};
    const float wanted = TimesF32(s.loss_scale, factor);
    const bool kept = kFixed ? wanted > kCap : !std::isfinite(wanted);
    const auto c = Grown(s.loss_scale, wanted, clip(kept ? s.loss_scale : wanted));
    return {.next = {c.scale, count}, .event = c.event, .unscale = kUnscale};
  }
  std::int64_t QuietSteps(const State& s) const {
    const bool inside = s.loss_scale >= min_scale && s.loss_scale <= kCap;
    return inside ? QuietUntilEqual(s.good_steps, growth_interval) : 0;
  }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n}; }
};
using Mpx = MpxRule<false>;
using MpxFixed = MpxRule<true>;

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_JAX_H_
