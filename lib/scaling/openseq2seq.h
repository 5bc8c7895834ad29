// OpenSeq2Seq's two scalers: a backoff rule, and one that follows the statistics of log2 of the largest gradient.
#ifndef SCALETRACE_SCALING_OPENSEQ2SEQ_H_
#define SCALETRACE_SCALING_OPENSEQ2SEQ_H_

#include "base/math.h"
#include "scaling/rules.h"

namespace scaletrace {

struct OpenSeq2SeqBackoff : Rule<NumberedState<float>, Check::kUnscaled> {
  static constexpr PolicyInfo kInfo = {
      .key = "openseq2seq-backoff",
      .project = "OpenSeq2Seq",
      .file = "open_seq2seq/optimizers/automatic_loss_scaler.py",
      .summary =
          "starts at its cap of 2^14, floor 1; increment_first shows the race that makes the first growth one step "
          "early",
      .rule =
          "q <- k + (increment_first ? 1 : 0)\n"
          "O: S <- clip(S/f, min_scale, max_scale);  last <- q\n"
          "F: if (q - last) mod W == 0: S <- clip(S*f, min_scale, max_scale)\n"
          "always k <- k+1",
      .hold = Hold::kF32,
      .needs = NeedsFor(kCheck),
      .claims = {.never_grows_on_overflow = true,
                 .keeps_powers_of_two = true,
                 .stays_within_limits = true,
                 .stays_positive = true,
                 .quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 0x1p14f;
  double factor = 2;
  std::int64_t growth_interval = 2000;
  float min_scale = 1;
  float max_scale = 0x1p14f;
  bool increment_first = false;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(Factor(), self.factor);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value(MinScale(), self.min_scale);
    v.Value(MaxScale(), self.max_scale);
    v.Value({"increment_first", "the step number is incremented before it is looked at"}, self.increment_first);
  }

  State Start() const { return {init_scale}; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    const std::int64_t k = s.step_number;
    const std::int64_t q = increment_first ? k + 1 : k;
    const auto clip = [&](float scale) { return std::min(std::max(scale, min_scale), max_scale); };
    if (!Finite(o)) {
      const float wanted = Over(s.loss_scale, factor);
      const auto c = Shrunk(s.loss_scale, wanted, clip(wanted));
      return {.next = {c.scale, k + 1, q}, .event = c.event, .apply = false};
    }
    if (growth_interval == 0) return Raise(s);
    if ((q - s.last_overflow) % growth_interval != 0) return {.next = {s.loss_scale, k + 1, s.last_overflow}};
    const float wanted = TimesF32(s.loss_scale, factor);
    const auto c = Grown(s.loss_scale, wanted, clip(wanted));
    return {.next = {c.scale, k + 1, s.last_overflow}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const {
    return QuietUntilMultiple(s.step_number + (increment_first ? 1 : 0) - s.last_overflow, growth_interval);
  }
  State Advance(const State& s, std::int64_t n) const { return {s.loss_scale, s.step_number + n, s.last_overflow}; }
};

template <bool kFixed>
struct OpenSeq2SeqLogMaxRule {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "openseq2seq-logmax",
        .project = "OpenSeq2Seq",
        .file = "open_seq2seq/optimizers/automatic_loss_scaler.py",
        .summary =
            "models log2 of the largest gradient as normal; an overflow enters it as 65536 where 16 = log2(65536) was "
            "meant",
        .rule =
            "x  <- O ? overflow_x : log2(largest |gradient|)\n"
            "m1 <- 0.99*m1 + 0.01*x;  c1 <- 0.99*c1;  mu <- m1/(1-c1)\n"
            "m2 <- 0.999*m2 + 0.001*x;  q <- 0.999*q + 0.001*x^2;  c2 <- 0.999*c2\n"
            "sigma <- sqrt(max(q/(1-c2) - (m2/(1-c2))^2, 0))\n"
            "S <- clip(2^(16 - (mu + 3.09*sigma)), min_scale, max_scale)",
        .hold = Hold::kF64,
        .needs = {.unscaled_finite = true, .max_abs = true},
        .claims = {},
    };
    if (kFixed) {
      i.key = "openseq2seq-logmax-fixed";
      i.summary = "openseq2seq-logmax without the mistake of unit: an overflow enters as 16";
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  struct State {
    double loss_scale;
    double slow = 0;
    double mean = 0;
    double square = 0;
    double slow_rest = 1;
    double mean_rest = 1;

    // NaN, which a gradient of 0 leads to, equals itself.
    bool operator==(const State& other) const {
      const auto same = [](double a, double b) { return a == b || (a != a && b != b); };
      return same(loss_scale, other.loss_scale) && same(slow, other.slow) && same(mean, other.mean) &&
             same(square, other.square) && slow_rest == other.slow_rest && mean_rest == other.mean_rest;
    }
    template <class Self, class V>
    static void Visit(Self& self, V& v) {
      v.Value({"loss_scale", "S"}, self.loss_scale);
      v.Value({"m1", "running sum of x with decay 0.99"}, self.slow);
      v.Value({"m2", "running sum of x with decay 0.999"}, self.mean);
      v.Value({"q", "running sum of x^2 with decay 0.999"}, self.square);
      v.Value({"c1", "0.99 to the number of steps"}, self.slow_rest);
      v.Value({"c2", "0.999 to the number of steps"}, self.mean_rest);
    }
  };

  double init_scale = 1;
  double min_scale = 1;
  double max_scale = 0x1p14;
  std::optional<double> amax;
  double overflow_x = kFixed ? 16 : 65536;
  std::int64_t growth_interval = 2000;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(MinScale(), self.min_scale);
    v.Value(MaxScale(), self.max_scale);
    v.Value(
        {"amax", "taken for the largest |gradient| of every good step; none: what was observed", AtLeast(0).OrPower()},
        self.amax);
    v.Value({"overflow_x", "what an overflow enters as"}, self.overflow_x);
    v.Value({"growth_interval", "not used: the rule has no window", kCount}, self.growth_interval);
  }

  State Start() const { return {init_scale}; }
  double LossScale(const State& s) const { return s.loss_scale; }
  bool Finite(const Observation& o) const { return o.unscaled_finite; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    constexpr double kBeta1 = 0.99, kBeta2 = 0.999;
    constexpr double kQuantile = 3.09;  // of the standard normal distribution, at 0.999
    const bool finite = Finite(o);
    const double x = finite ? Log2(amax.value_or(o.max_abs)) : overflow_x;
    State next;
    next.slow = kBeta1 * s.slow + (1 - kBeta1) * x;
    next.slow_rest = kBeta1 * s.slow_rest;
    next.mean = kBeta2 * s.mean + (1 - kBeta2) * x;
    next.square = kBeta2 * s.square + (1 - kBeta2) * (x * x);
    next.mean_rest = kBeta2 * s.mean_rest;
    const double mu = next.slow / (1 - next.slow_rest);
    const double mean = next.mean / (1 - next.mean_rest);
    const double variance = next.square / (1 - next.mean_rest) - mean * mean;
    const double sigma = std::sqrt(variance < 0 ? 0 : variance);
    const double wanted = Exp2(16 - (mu + kQuantile * sigma));
    // A NaN passes both tests and stays.
    next.loss_scale = wanted < min_scale ? min_scale : wanted > max_scale ? max_scale : wanted;
    const double old = s.loss_scale, got = next.loss_scale;
    if (!finite) {
      const Event event = wanted < min_scale ? Event::kFloor : got < old ? Event::kBackoff : Event::kOverflow;
      return {.next = next, .event = event, .apply = false};
    }
    const Event event = !(got > old) ? Event::kNone : wanted > max_scale ? Event::kCeiling : Event::kGrowth;
    return {.next = next, .event = event};
  }
  std::int64_t QuietSteps(const State&) const { return 0; }
  State Advance(const State& s, std::int64_t) const { return s; }
};
using OpenSeq2SeqLogMax = OpenSeq2SeqLogMaxRule<false>;
using OpenSeq2SeqLogMaxFixed = OpenSeq2SeqLogMaxRule<true>;

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_OPENSEQ2SEQ_H_
