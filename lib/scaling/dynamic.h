// The generic policy: every axis on which the public rules differ is a parameter. Written apart from the named policies
// on purpose: the tests set both against each other. One counter is enough: `distance`, the good steps since the last
// start or overflow, of which growth takes every period-th.
#ifndef SCALETRACE_SCALING_DYNAMIC_H_
#define SCALETRACE_SCALING_DYNAMIC_H_

#include "base/math.h"
#include "base/number.h"
#include "scaling/fixed_scales.h"
#include "scaling/rules.h"

namespace scaletrace {

enum class ToleranceMode : std::uint8_t { kNone, kCountdown, kBatch, kFraction };
inline constexpr std::string_view kToleranceModeNames[] = {"none", "countdown", "batch", "fraction"};
constexpr std::span<const std::string_view> EnumNames(ToleranceMode) { return kToleranceModeNames; }

enum class Refill : std::uint8_t { kGrowth, kAnyGood, kNever };
inline constexpr std::string_view kRefillNames[] = {"growth", "any-good", "never"};
constexpr std::span<const std::string_view> EnumNames(Refill) { return kRefillNames; }

enum class FloorMode : std::uint8_t { kClamp, kRaiseOnNext, kRaiseWhenCrossed, kRestore, kGate };
inline constexpr std::string_view kFloorModeNames[] = {"clamp", "raise-on-next", "raise-when-crossed", "restore",
                                                       "gate"};
constexpr std::span<const std::string_view> EnumNames(FloorMode) { return kFloorModeNames; }

enum class CapMode : std::uint8_t { kClamp, kGate };
inline constexpr std::string_view kCapModeNames[] = {"clamp", "gate"};
constexpr std::span<const std::string_view> EnumNames(CapMode) { return kCapModeNames; }

enum class OnInf : std::uint8_t { kKeep, kSaturate, kAllow };
inline constexpr std::string_view kOnInfNames[] = {"keep", "saturate", "allow"};
constexpr std::span<const std::string_view> EnumNames(OnInf) { return kOnInfNames; }

enum class GrowthMode : std::uint8_t { kAfterInterval, kEveryStep };
inline constexpr std::string_view kGrowthModeNames[] = {"after-interval", "every-step"};
constexpr std::span<const std::string_view> EnumNames(GrowthMode) { return kGrowthModeNames; }

enum class CheckOn : std::uint8_t { kUnscaled, kScaled, kSums, kNorm, kScaledNorm };
inline constexpr std::string_view kCheckOnNames[] = {"unscaled", "scaled", "scaled-sums", "norm", "scaled-norm"};
constexpr std::span<const std::string_view> EnumNames(CheckOn) { return kCheckOnNames; }

enum class DivideBy : std::uint8_t { kOld, kNew };
inline constexpr std::string_view kDivideByNames[] = {"old", "new"};
constexpr std::span<const std::string_view> EnumNames(DivideBy) { return kDivideByNames; }

struct Dynamic {
  static constexpr PolicyInfo kInfo = {
      .key = "dynamic",
      .project = "scaletrace",
      .file = "",
      .summary = "every axis of the public rules as a parameter; the defaults avoid the troubles that they have",
      .rule =
          "O: the tolerance decides whether it is forgiven; if not, S <- S*b, then the floor; the window restarts\n"
          "F: every (W + period_extra)-th good step after the first_extra first ones: S <- S*g, then on_inf, then the "
          "cap\n"
          "publish_delay: what was decided is in force one step later",
      .hold = Hold::kF32Wide,
      .needs = {.unscaled_finite = true,
                .scaled_finite = true,
                .sums_finite = true,
                .norm_finite = true,
                .scaled_norm_finite = true},
      .claims = {.quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  struct State {
    double loss_scale;
    double next_scale;
    std::int64_t distance = 0;
    std::int64_t window = 0;
    std::int64_t hysteresis_left = 0;
    std::int64_t bad_steps = 0;
    std::int64_t since_change = 0;
    std::int64_t bad_in_a_row = 0;
    bool ever_overflowed = false;

    bool operator==(const State&) const = default;
    template <class Self, class V>
    static void Visit(Self& self, V& v) {
      v.Value({"loss_scale", "S"}, self.loss_scale);
      v.Value({"next_scale", "decided; in force now unless publish_delay"}, self.next_scale);
      v.Value({"good_steps", "good steps since the last overflow"}, self.distance);
      v.Value({"window", "W now"}, self.window);
      v.Value({"hysteresis_left", "overflows that it takes until one backs off"}, self.hysteresis_left);
      v.Value({"bad_steps", "overflows that the tolerance has counted"}, self.bad_steps);
      v.Value({"since_change", "steps since the scale last changed"}, self.since_change);
      v.Value({"bad_in_a_row", "overflows in a row"}, self.bad_in_a_row);
      v.Value({"ever_overflowed", "there was an overflow"}, self.ever_overflowed);
    }
  };

  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  std::int64_t first_extra = 0;
  std::int64_t period_extra = 0;
  GrowthMode growth_mode = GrowthMode::kAfterInterval;
  double window_scaling = 1;
  ToleranceMode tolerance_mode = ToleranceMode::kNone;
  std::int64_t hysteresis = 1;
  Refill refill = Refill::kGrowth;
  bool cleared_by_good = true;
  double fraction = 0;
  std::optional<double> min_scale = 1;
  FloorMode floor_mode = FloorMode::kClamp;
  std::optional<double> threshold;
  std::optional<double> max_scale = 0x1p24;
  CapMode cap_mode = CapMode::kClamp;
  OnInf on_inf = OnInf::kKeep;
  std::optional<std::int64_t> max_consecutive;
  std::int64_t publish_delay = 0;
  Hold hold = Hold::kF32Wide;
  CheckOn check = CheckOn::kScaled;
  DivideBy unscale = DivideBy::kOld;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"init_scale", "loss scale of the first step", kStrictScale}, self.init_scale);
    v.Value({"growth_factor", "multiplies the scale on growth", MoreThan(1)}, self.growth_factor);
    v.Value({"backoff_factor", "multiplies the scale on backoff", Inside(0, 1)}, self.backoff_factor);
    v.Value({"growth_interval", "W, good steps before growth", Between(1, 2147483647)}, self.growth_interval);
    v.Value({"first_extra", "extra good steps before the first growth after the start or an overflow", Between(0, 1)},
            self.first_extra);
    v.Value({"period_extra", "extra good steps in every period", Between(0, 1)}, self.period_extra);
    v.Value({"growth_mode", "every-step: by 2 until the first overflow, then by 2^(1/W), on every good step"},
            self.growth_mode);
    v.Value({"window_scaling", "W is multiplied by this at each growth and divided by it at each backoff",
             Between(1, 1024)},
            self.window_scaling);
    v.Value({"tolerance_mode",
             "countdown: H overflows, then each one backs off until a refill; batch: each H-th backs off; fraction: "
             "while they are less "
             "than a share of the steps since the last change they are forgiven"},
            self.tolerance_mode);
    v.Value({"hysteresis", "H, of countdown and batch", Between(1, 2147483647)}, self.hysteresis);
    v.Value({"refill", "what sets a countdown back to H"}, self.refill);
    v.Value({"cleared_by_good", "a good step sets the count of a batch back to 0"}, self.cleared_by_good);
    v.Value({"fraction", "of fraction", Between(0, 1)}, self.fraction);
    v.Value({"min_scale", "the floor", kStrictScale}, self.min_scale);
    v.Value({"floor_mode",
             "clamp; raise-on-next: the overflow at the floor raises; raise-when-crossed: a backoff that reaches the "
             "floor raises; restore: a "
             "backoff that passes the floor is undone; gate: no backoff at or below the floor, and its window runs on"},
            self.floor_mode);
    v.Value({"threshold", "clamps a backoff before the floor is looked at", kStrictScale}, self.threshold);
    v.Value({"max_scale", "the cap", kStrictScale}, self.max_scale);
    v.Value({"cap_mode", "clamp; gate: no growth at or above the cap"}, self.cap_mode);
    v.Value({"on_inf", "a growth to inf keeps the scale, gives the largest number of its type, or is allowed"},
            self.on_inf);
    v.Value({"max_consecutive", "more overflows in a row than this raise", Between(0, 2147483647)},
            self.max_consecutive);
    v.Value({"publish_delay", "steps until a decision is in force", Between(0, 1)}, self.publish_delay);
    v.Value(
        {"hold",
         "f32: factors and scale are float; f32-wide: the scale is float, products are rounded once; f64: all double"},
        self.hold);
    v.Value({"check", "which gradients have to be finite"}, self.check);
    v.Value({"unscale", "the scale that divides the gradients: that of the backward pass, or the updated one"},
            self.unscale);
  }
  std::optional<ParameterProblem> Problem() const {
    if (min_scale && !(*min_scale <= init_scale))
      return ParameterProblem{
          "min_scale", "found " + ToText(*min_scale) + "; allowed: none, or at most init_scale, " + ToText(init_scale)};
    if (max_scale && !(*max_scale >= init_scale))
      return ParameterProblem{"max_scale", "found " + ToText(*max_scale) + "; allowed: none, or at least init_scale, " +
                                               ToText(init_scale)};
    if (threshold && !(*threshold <= init_scale))
      return ParameterProblem{
          "threshold", "found " + ToText(*threshold) + "; allowed: none, or at most init_scale, " + ToText(init_scale)};
    if (floor_mode != FloorMode::kClamp && !min_scale)
      return ParameterProblem{"floor_mode",
                              "found " + std::string(EnumNames(floor_mode)[static_cast<std::size_t>(floor_mode)]) +
                                  "; allowed: clamp, where min_scale is none"};
    if (cap_mode == CapMode::kGate && !max_scale)
      return ParameterProblem{"cap_mode", "found gate; allowed: clamp, where max_scale is none"};
    if (hold != Hold::kF64 && !std::isfinite(static_cast<float>(init_scale)))
      return ParameterProblem{"init_scale",
                              "found " + ToText(init_scale) + "; allowed: what a float holds, where hold is not f64"};
    return std::nullopt;
  }

  // `x` as the type that holds S has it.
  double Held(double x) const { return hold == Hold::kF64 ? x : static_cast<double>(static_cast<float>(x)); }
  double Times(double scale, double factor) const { return Held(scale * (hold == Hold::kF32 ? Held(factor) : factor)); }

  State Start() const {
    return {.loss_scale = Held(init_scale),
            .next_scale = Held(init_scale),
            .window = growth_interval,
            .hysteresis_left = hysteresis};
  }
  double LossScale(const State& s) const { return s.loss_scale; }
  bool Finite(const Observation& o) const {
    const bool finite[] = {o.unscaled_finite, o.scaled_finite, o.sums_finite, o.norm_finite, o.scaled_norm_finite};
    return finite[static_cast<std::size_t>(check)];
  }
  Needs NeedsNow() const {
    return {.unscaled_finite = check == CheckOn::kUnscaled,
            .scaled_finite = check == CheckOn::kScaled,
            .sums_finite = check == CheckOn::kSums,
            .norm_finite = check == CheckOn::kNorm,
            .scaled_norm_finite = check == CheckOn::kScaledNorm};
  }

  Outcome<State> Next(const State& s, const Observation& o) const {
    State next = s;
    const double old = s.next_scale;  // what the rule works on; the same as loss_scale but for publish_delay
    Change<double> change = {old, Event::kNone};
    const bool finite = Finite(o);
    ++next.since_change;
    if (finite) {
      change = Good(old, next);
    } else {
      bool raise = false;
      change = Bad(old, next, raise);
      if (raise) return Raise(s);
    }
    next.next_scale = change.scale;
    next.loss_scale = publish_delay == 0 ? change.scale : old;
    if (!finite && max_consecutive && next.bad_in_a_row > *max_consecutive) return Raise(next);
    return {.next = next,
            .event = change.event,
            .apply = finite,
            .unscale = finite && unscale == DivideBy::kNew ? Unscale::kNew : Unscale::kOld};
  }

  std::int64_t QuietSteps(const State& s) const {
    if (s.loss_scale != s.next_scale) return 0;
    if (growth_mode == GrowthMode::kEveryStep) return AtRest(s.next_scale) && EveryStepFactor(s) >= 1 ? kForever : 0;
    const std::int64_t period = s.window + period_extra;
    const std::int64_t at =
        s.distance - first_extra;  // growth fires when at + 1, + 2, ... is a positive multiple of the period
    return at < 0 ? period - at - 1 : period - 1 - at % period;
  }
  State Advance(const State& s, std::int64_t n) const {
    State next = s;
    if (n == 0) return next;
    next.distance += n;
    next.since_change += n;
    next.bad_in_a_row = 0;
    if (refill == Refill::kAnyGood) next.hysteresis_left = hysteresis;
    if (tolerance_mode == ToleranceMode::kBatch && cleared_by_good) next.bad_steps = 0;
    return next;
  }

 private:
  bool GatedByCap(double scale) const { return cap_mode == CapMode::kGate && max_scale && scale >= *max_scale; }
  bool AtRest(double scale) const { return max_scale && scale == *max_scale; }
  double EveryStepFactor(const State& s) const {
    return s.ever_overflowed ? Exp2(1 / static_cast<double>(growth_interval)) : 2;
  }

  Change<double> Good(double old, State& next) const {
    next.bad_in_a_row = 0;
    if (refill == Refill::kAnyGood) next.hysteresis_left = hysteresis;
    if (tolerance_mode == ToleranceMode::kBatch && cleared_by_good) next.bad_steps = 0;
    ++next.distance;
    double factor = growth_factor;
    if (growth_mode == GrowthMode::kEveryStep) {
      factor = EveryStepFactor(next);
      if (AtRest(old)) return {old, Event::kNone};
    } else {
      const std::int64_t counted = next.distance - first_extra;
      const std::int64_t period = next.window + period_extra;
      if (counted <= 0 || counted % period != 0) return {old, Event::kNone};
      if (GatedByCap(old)) return {old, Event::kCeiling};
    }
    if (refill == Refill::kGrowth) next.hysteresis_left = hysteresis;
    if (tolerance_mode == ToleranceMode::kBatch) next.bad_steps = 0;
    const double wanted = Times(old, factor);
    double got = wanted;
    if (std::isinf(got) && on_inf == OnInf::kKeep) got = old;
    if (std::isinf(got) && on_inf == OnInf::kSaturate)
      got = hold == Hold::kF64 ? std::numeric_limits<double>::max()
                               : static_cast<double>(std::numeric_limits<float>::max());
    if (cap_mode == CapMode::kClamp && max_scale) got = std::min(got, Held(*max_scale));
    next.since_change = 0;
    next.window = static_cast<std::int64_t>(std::min(static_cast<double>(next.window) * window_scaling, 0x1p53));
    return {got, got == wanted && got > old ? Event::kGrowth : Event::kCeiling};
  }

  bool Forgives(State& next) const {
    switch (tolerance_mode) {
      case ToleranceMode::kNone:
        return false;
      case ToleranceMode::kCountdown:
        return --next.hysteresis_left > 0;
      case ToleranceMode::kBatch:
        if (++next.bad_steps < hysteresis) return true;
        next.bad_steps = 0;
        return false;
      case ToleranceMode::kFraction:
        ++next.bad_steps;
        if (static_cast<double>(next.bad_steps) / static_cast<double>(next.since_change) < fraction) return true;
        next.bad_steps = 0;
        return false;
    }
    return false;
  }

  Change<double> Bad(double old, State& next, bool& raise) const {
    next.ever_overflowed = true;
    ++next.bad_in_a_row;
    const std::int64_t distance = next.distance;
    next.distance = 0;
    if (Forgives(next)) return {old, Event::kForgiven};
    const double floor = min_scale ? Held(*min_scale) : 0;
    if (min_scale && floor_mode == FloorMode::kGate && old <= floor) {
      next.distance = distance;
      return {old, Event::kFloor};
    }
    if (floor_mode == FloorMode::kRaiseOnNext && old == floor) raise = true;
    const double wanted = Times(old, backoff_factor);
    double got = threshold ? std::max(wanted, Held(*threshold)) : wanted;
    if (floor_mode == FloorMode::kRaiseWhenCrossed && got <= floor) raise = true;
    if (floor_mode == FloorMode::kRestore && got < floor) got = old;
    if (floor_mode == FloorMode::kClamp || floor_mode == FloorMode::kRaiseOnNext) got = std::max(got, floor);
    next.since_change = 0;
    next.window =
        std::max<std::int64_t>(static_cast<std::int64_t>(static_cast<double>(next.window) / window_scaling), 1);
    return {got, got != wanted ? Event::kFloor : got != old ? Event::kBackoff : Event::kOverflow};
  }
};

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_DYNAMIC_H_
