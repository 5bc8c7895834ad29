// Public policies that stand alone: mxnet, onnxruntime, bmtrain, chainer, fairscale-layerwise, popart-als.
#ifndef SCALETRACE_SCALING_OTHER_PUBLIC_H_
#define SCALETRACE_SCALING_OTHER_PUBLIC_H_

#include "base/math.h"
#include "scaling/rules.h"

namespace scaletrace {

template <bool kFixed>
struct MxnetRule {
  static constexpr double kCap = 0x1p24;
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "mxnet",
        .project = "MXNet",
        .file = "mxnet/contrib/amp/loss_scaler.py",
        .summary =
            "every decision is in force one step late, so that the step after an overflow repeats the bad scale; cap "
            "2^24, no floor",
        .rule =
            "S <- next\n"
            "O: next <- S/2;  u <- 0\n"
            "F: u <- u+1\n"
            "then, after either: if u == W: u <- 0, next <- min(2^24, 2S)",
        .hold = Hold::kF64,
        .ceiling = kCap,
        .needs = NeedsFor(Check::kScaled),
        .claims = {.keeps_powers_of_two = true,
                   .stays_within_limits = true,
                   .stays_finite = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "mxnet-fixed";
      i.summary = "mxnet without the delay";
      i.claims.never_grows_on_overflow = true;
      i.rule = "O: S <- S/2;  u <- 0\nF: u <- u+1\nthen, after either: if u == W: u <- 0, S <- min(2^24, 2S)";
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  struct State {
    double loss_scale;
    double next_scale;
    std::int64_t good_steps = 0;

    bool operator==(const State&) const = default;
    template <class Self, class V>
    static void Visit(Self& self, V& v) {
      v.Value({"loss_scale", "S"}, self.loss_scale);
      v.Value({"next_scale", "decided, but not yet in force"}, self.next_scale);
      v.Value({"good_steps", "good steps since the last overflow or growth"}, self.good_steps);
    }
  };

  double init_scale = 65536;
  std::int64_t growth_interval = 2000;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(GrowthInterval(), self.growth_interval);
  }

  State Start() const { return {init_scale, init_scale}; }
  double LossScale(const State& s) const { return s.loss_scale; }
  bool Finite(const Observation& o) const { return o.scaled_finite; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    const double published = s.next_scale;
    Change<double> c = {published, Event::kNone};
    std::int64_t good = s.good_steps + 1;
    if (!Finite(o)) {
      c = Shrunk(published, published / 2);
      good = 0;
    }
    if (good == growth_interval) {
      const Event event = c.event;
      c = Grown(published, published * 2, std::min(kCap, published * 2));
      if (event != Event::kNone) c.event = event;
      good = 0;
    }
    return {.next = {kFixed ? c.scale : published, c.scale, good}, .event = c.event, .apply = Finite(o)};
  }
  std::int64_t QuietSteps(const State& s) const {
    return s.next_scale == s.loss_scale ? QuietUntilEqual(s.good_steps, growth_interval) : 0;
  }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.next_scale, s.good_steps + n}; }
};
using Mxnet = MxnetRule<false>;
using MxnetFixed = MxnetRule<true>;

struct OnnxRuntime : Rule<CountingState<double>, Check::kScaled> {
  static constexpr PolicyInfo kInfo = {
      .key = "onnxruntime",
      .project = "ONNX Runtime training",
      .file = "onnxruntime/training/amp/loss_scaler.py",
      .summary = "factor 2 between a floor of 1 and a cap of 2^24",
      .rule =
          "O: S <- max(min_scale, S/2);  t <- 0\n"
          "F: t <- t+1;  if t >= W: S <- min(max_scale, 2S), t <- 0",
      .hold = Hold::kF64,
      .needs = NeedsFor(kCheck),
      .claims = {.never_grows_on_overflow = true,
                 .keeps_powers_of_two = true,
                 .stays_within_limits = true,
                 .stays_positive = true,
                 .quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  double init_scale = 65536;
  std::int64_t growth_interval = 2000;
  double min_scale = 1;
  double max_scale = 0x1p24;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value(MinScale(), self.min_scale);
    v.Value(MaxScale(), self.max_scale);
  }

  State Start() const { return {init_scale}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    if (!Finite(o)) {
      const auto c = Shrunk(s.loss_scale, s.loss_scale / 2, std::max(min_scale, s.loss_scale / 2));
      return {.next = {c.scale, 0}, .event = c.event, .apply = false};
    }
    if (s.good_steps + 1 < growth_interval) return {.next = {s.loss_scale, s.good_steps + 1}};
    const auto c = Grown(s.loss_scale, s.loss_scale * 2, std::min(max_scale, s.loss_scale * 2));
    return {.next = {c.scale, 0}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const { return QuietUntilReached(s.good_steps, growth_interval); }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n}; }
};

template <bool kFixed>
struct BmTrainRule : Rule<CountingState<double>, Check::kScaled> {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "bmtrain",
        .project = "BMTrain",
        .file = "bmtrain/optim/optim_manager.py",
        .summary =
            "the limits forbid a change but do not clamp its result; the project is off without a scale (here 2^16)",
        .rule =
            "f < 1 is inverted\n"
            "O: if S > min_scale: S <- S/f, t <- 0;  else nothing changes\n"
            "F: t <- t+1;  if t >= W and S < max_scale: S <- S*f, t <- 0",
        .hold = Hold::kF64,
        .needs = NeedsFor(kCheck),
        .claims = {.never_grows_on_overflow = true,
                   .keeps_powers_of_two = true,
                   .stays_positive = true,
                   .quiet_steps_exact = true},
    };
    if (kFixed) {
      i.key = "bmtrain-fixed";
      i.summary = "bmtrain whose limits clamp the result, and whose every overflow restarts the window";
      i.rule =
          "f < 1 is inverted\n"
          "O: S <- max(S/f, min_scale);  t <- 0\n"
          "F: t <- t+1;  if t >= W: S <- min(S*f, max_scale), t <- 0";
      i.claims.stays_within_limits = true;
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  double init_scale = 65536;
  double factor = 2;
  std::int64_t growth_interval = 1024;
  double min_scale = 1;
  double max_scale = std::numeric_limits<double>::infinity();

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(Factor(), self.factor);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value({"min_scale", kFixed ? "no backoff goes below this" : "no backoff from here or below", kAnyScale},
            self.min_scale);
    v.Value({"max_scale", kFixed ? "no growth goes above this" : "no growth from here or above", kAnyScale},
            self.max_scale);
  }

  static constexpr bool kInvertsFactor = true;  // below 1
  double Step() const { return factor < 1 ? 1 / factor : factor; }
  State Start() const { return {init_scale}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    const double old = s.loss_scale;
    if (!Finite(o)) {
      if (!kFixed && !(old > min_scale)) return {.next = s, .event = Event::kFloor, .apply = false};
      const auto c = Shrunk(old, old / Step(), kFixed ? std::max(old / Step(), min_scale) : old / Step());
      return {.next = {c.scale, 0}, .event = c.event, .apply = false};
    }
    const State counted = {old, s.good_steps + 1};
    if (counted.good_steps < growth_interval) return {.next = counted};
    if (!kFixed && !(old < max_scale)) {
      const bool due = growth_interval < 1 || counted.good_steps % growth_interval == 0;
      return {.next = counted, .event = due ? Event::kCeiling : Event::kNone};
    }
    const auto c = Grown(old, old * Step(), kFixed ? std::min(old * Step(), max_scale) : old * Step());
    return {.next = {c.scale, 0}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const {
    const bool gated = !kFixed && !(s.loss_scale < max_scale);
    if (gated && growth_interval >= 1) return growth_interval - 1 - s.good_steps % growth_interval;
    return QuietUntilReached(s.good_steps, growth_interval);
  }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n}; }
};
using BmTrain = BmTrainRule<false>;
using BmTrainFixed = BmTrainRule<true>;

struct Chainer {
  static constexpr double kCap = 65504;
  static constexpr PolicyInfo kInfo = {
      .key = "chainer",
      .project = "Chainer",
      .file = "chainer/optimizer.py",
      .summary =
          "doubles on every good step until the first overflow, then creeps up by 2^(1/W) a step; floor 1, cap 65504",
      .rule =
          "O: ever <- true;  S <- S/2\n"
          "F: S <- S * (ever ? 2^(1/W) : 2)\n"
          "then S <- max(1, min(65504, S))",
      .hold = Hold::kF64,
      .floor = 1,
      .ceiling = kCap,
      .needs = NeedsFor(Check::kScaled),
      .claims = {.never_grows_on_overflow = true,
                 .stays_within_limits = true,
                 .stays_positive = true,
                 .stays_finite = true,
                 .quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  struct State {
    double loss_scale;
    double growth = 2;
    double creep = 2;

    bool operator==(const State&) const = default;
    template <class Self, class V>
    static void Visit(Self& self, V& v) {
      v.Value({"loss_scale", "S"}, self.loss_scale);
      v.Value({"growth", "the factor of a good step now"}, self.growth);
      v.Value({"creep", "the factor after the first overflow, 2^(1/W)"}, self.creep);
    }
  };

  double init_scale = 1;
  std::int64_t growth_interval = 1000;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"init_scale", "loss scale of the first step; fixed at 1 in the project", kAnyScale}, self.init_scale);
    v.Value({"growth_interval", "good steps that make a doubling, after the first overflow", kPositiveCount},
            self.growth_interval);
  }

  State Start() const { return {init_scale, 2, Exp2(1 / static_cast<double>(growth_interval))}; }
  double LossScale(const State& s) const { return s.loss_scale; }
  bool Finite(const Observation& o) const { return o.scaled_finite; }
  // Resting at the cap is no event: growth is due on every step.
  Outcome<State> Next(const State& s, const Observation& o) const {
    const auto clip = [](double scale) { return std::max(1.0, std::min(kCap, scale)); };
    if (!Finite(o)) {
      const auto c = Shrunk(s.loss_scale, s.loss_scale / 2, clip(s.loss_scale / 2));
      return {.next = {c.scale, s.creep, s.creep}, .event = c.event, .apply = false};
    }
    const auto c = Grown(s.loss_scale, s.loss_scale * s.growth, clip(s.loss_scale * s.growth));
    return {.next = {c.scale, s.growth, s.creep}, .event = c.scale == s.loss_scale ? Event::kNone : c.event};
  }
  std::int64_t QuietSteps(const State& s) const { return s.loss_scale == kCap && s.growth >= 1 ? kForever : 0; }
  State Advance(const State& s, std::int64_t) const { return s; }
};

// One layer of it: the loss scale of a run is one number.
template <bool kFixed>
struct FairscaleLayerwiseRule {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "fairscale-layerwise",
        .project = "fairscale",
        .file = "fairscale/optim/layerwise_gradient_scaler.py",
        .summary =
            "one scale per layer (here: one layer); a layer that overflowed in the last step is not unscaled in this "
            "one",
        .rule =
            "bad:  S <- max(min_scale, min(b*S, max_scale));  t <- 0\n"
            "else: t <- t+1;  if t == W: S <- max(min_scale, min(g*S, max_scale)), t <- 0\n"
            "the gradients are divided by the S of the backward pass, but not at all if the step before was bad",
        .hold = Hold::kF64,
        .needs = NeedsFor(Check::kUnscaled),
        .claims = {.never_grows_on_overflow = true,
                   .keeps_powers_of_two = true,
                   .stays_within_limits = true,
                   .stays_positive = true},
    };
    if (kFixed) {
      i.key = "fairscale-layerwise-fixed";
      i.summary = "fairscale-layerwise that unscales every good step";
      i.rule = "as fairscale-layerwise, but every good step is divided by the S of its backward pass";
      i.claims.quiet_steps_exact = true;
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  struct State {
    double loss_scale;
    std::int64_t good_steps = 0;
    bool bad = false;

    bool operator==(const State&) const = default;
    template <class Self, class V>
    static void Visit(Self& self, V& v) {
      v.Value({"loss_scale", "S"}, self.loss_scale);
      v.Value({"good_steps", "good steps since the last overflow or growth"}, self.good_steps);
      v.Value({"bad", "the last step overflowed"}, self.bad);
    }
  };

  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 10000;
  double min_scale = 0x1p-126;
  double max_scale = static_cast<double>(std::numeric_limits<float>::max());

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"init_scale", "loss scale of the first step; the project has no default", kAnyScale}, self.init_scale);
    v.Value(GrowthFactor(), self.growth_factor);
    v.Value(BackoffFactor(), self.backoff_factor);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value(MinScale(), self.min_scale);
    v.Value(MaxScale(), self.max_scale);
  }

  State Start() const { return {init_scale}; }
  double LossScale(const State& s) const { return s.loss_scale; }
  bool Finite(const Observation& o) const { return o.unscaled_finite; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    const auto clip = [&](double scale) { return std::max(min_scale, std::min(scale, max_scale)); };
    if (!Finite(o)) {
      const double wanted = backoff_factor * s.loss_scale;
      const auto c = Shrunk(s.loss_scale, wanted, clip(wanted));
      return {.next = {c.scale, 0, true}, .event = c.event, .apply = false};
    }
    const Unscale unscale = s.bad && !kFixed ? Unscale::kNot : Unscale::kOld;
    if (s.good_steps + 1 != growth_interval) return {.next = {s.loss_scale, s.good_steps + 1}, .unscale = unscale};
    const double wanted = growth_factor * s.loss_scale;
    const auto c = Grown(s.loss_scale, wanted, clip(wanted));
    return {.next = {c.scale, 0}, .event = c.event, .unscale = unscale};
  }
  std::int64_t QuietSteps(const State& s) const {
    return s.bad && !kFixed ? 0 : QuietUntilEqual(s.good_steps, growth_interval);
  }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.good_steps + n, s.bad && n == 0}; }
};
using FairscaleLayerwise = FairscaleLayerwiseRule<false>;
using FairscaleLayerwiseFixed = FairscaleLayerwiseRule<true>;

struct PopartAls {
  static constexpr PolicyInfo kInfo = {
      .key = "popart-als",
      .project = "Graphcore PopART",
      .file = "automatic loss scale",
      .summary =
          "follows a histogram of the gradients and moves at every update; checks for no overflow and never skips a "
          "step",
      .rule =
          "u, l <- elements of |g| above and below bin_edge * 65504\n"
          "every W-th step: factor <- (u > l * threshold/(1 - threshold)) ? factor/2 : factor*2;  S <- S0 * factor",
      .hold = Hold::kF32,
      .needs = {.share_above = true, .share_threshold = 0.125 * 65504},
      .claims = {.never_grows_on_overflow = true,
                 .keeps_powers_of_two = true,
                 .stays_within_limits = true,
                 .quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  struct State {
    float factor = 1;
    std::int64_t steps = 0;

    bool operator==(const State&) const = default;
    template <class Self, class V>
    static void Visit(Self& self, V& v) {
      v.Value({"factor", "multiplies init_scale"}, self.factor);
      v.Value({"steps", "steps since the last update"}, self.steps);
    }
  };

  float init_scale = 65536;
  std::int64_t growth_interval = 1;
  double bin_edge = 0.125;
  double threshold = 1e-7;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"init_scale", "the user's loss scale; the project has no default", kAnyScale}, self.init_scale);
    v.Value({"growth_interval", "steps between updates", kPositiveCount}, self.growth_interval);
    v.Value({"bin_edge", "an element is large above this share of 65504", Between(0, 1)}, self.bin_edge);
    v.Value({"threshold", "the share of large elements that may be", Between(0, 1)}, self.threshold);
  }

  State Start() const { return {}; }
  double LossScale(const State& s) const { return init_scale * s.factor; }
  bool Finite(const Observation&) const { return true; }
  Needs NeedsNow() const { return {.share_above = true, .share_threshold = bin_edge * 65504}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    if (s.steps + 1 < growth_interval) return {.next = {s.factor, s.steps + 1}};
    const bool large = o.share_above > (1 - o.share_above) * (threshold / (1 - threshold));
    const State next = {large ? s.factor / 2 : s.factor * 2};
    const double old = LossScale(s), now = LossScale(next);
    const Event event = now < old ? Event::kBackoff : now > old ? Event::kGrowth : Event::kCeiling;
    return {.next = next, .event = event};
  }
  std::int64_t QuietSteps(const State& s) const { return QuietUntilReached(s.steps, growth_interval); }
  State Advance(const State& s, std::int64_t n) const { return {s.factor, s.steps + n}; }
};

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_OTHER_PUBLIC_H_
