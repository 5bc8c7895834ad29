// Policies whose scale does not depend on what happens: none, static, schedule, scripted, and optax-apply-if-finite, a
// rule on when to apply, over a static scale.
#ifndef SCALETRACE_SCALING_FIXED_SCALES_H_
#define SCALETRACE_SCALING_FIXED_SCALES_H_

#include <vector>

#include "base/math.h"
#include "base/number.h"
#include "scaling/rules.h"

namespace scaletrace {

enum class OnOverflow : std::uint8_t { kSkip, kApply };
inline constexpr std::string_view kOnOverflowNames[] = {"skip", "apply"};
constexpr std::span<const std::string_view> EnumNames(OnOverflow) { return kOnOverflowNames; }

constexpr Field OnOverflowField() { return {"on_overflow", "whether a step that overflowed is skipped or applied"}; }
inline constexpr Limits kStrictScale = MoreThan(0).OrPower();

struct NoState {
  bool operator==(const NoState&) const = default;
  template <class Self, class V>
  static void Visit(Self&, V&) {}
};

// The number of the next step, attempts counted.
struct StepState {
  std::int64_t step = 0;
  bool operator==(const StepState&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"step_number", "number of the next step"}, self.step);
  }
};

struct NoScaling {
  using State = NoState;
  static constexpr PolicyInfo kInfo = {
      .key = "none",
      .project = "scaletrace",
      .file = "",
      .summary = "no loss scaling: S = 1, and every step is applied, whatever its gradients",
      .rule = "S = 1\nevery step is applied",
      .hold = Hold::kF32,
      .floor = 1,
      .ceiling = 1,
      .needs = NeedsFor(Check::kUnscaled),
      .claims = {.never_grows_on_overflow = true,
                 .keeps_powers_of_two = true,
                 .stays_within_limits = true,
                 .stays_positive = true,
                 .stays_finite = true,
                 .quiet_steps_exact = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;
  template <class Self, class V>
  static void Visit(Self&, V&) {}

  State Start() const { return {}; }
  double LossScale(const State&) const { return 1; }
  bool Finite(const Observation& o) const { return o.unscaled_finite; }
  Outcome<State> Next(const State&, const Observation& o) const {
    return {.next = {}, .event = Finite(o) ? Event::kNone : Event::kOverflow};
  }
  std::int64_t QuietSteps(const State&) const { return kForever; }
  State Advance(const State& s, std::int64_t) const { return s; }
};

struct StaticScale {
  using State = NoState;
  static constexpr PolicyInfo kInfo = {
      .key = "static",
      .project = "scaletrace; DeepSpeed, Megatron and MindSpore skip, Apex and TensorFlow apply",
      .file = "",
      .summary = "the scale never changes",
      .rule = "S = init_scale\nO: the step is skipped, or applied with on_overflow: apply",
      .hold = Hold::kF64,
      .needs = NeedsFor(Check::kUnscaled),
      .claims = NoScaling::kInfo.claims,
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  double init_scale = 65536;
  OnOverflow on_overflow = OnOverflow::kSkip;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"init_scale", "the loss scale", kStrictScale}, self.init_scale);
    v.Value(OnOverflowField(), self.on_overflow);
  }

  State Start() const { return {}; }
  double LossScale(const State&) const { return init_scale; }
  bool Finite(const Observation& o) const { return o.unscaled_finite; }
  Outcome<State> Next(const State&, const Observation& o) const {
    if (Finite(o)) return {.next = {}};
    return {.next = {}, .event = Event::kOverflow, .apply = on_overflow == OnOverflow::kApply};
  }
  std::int64_t QuietSteps(const State&) const { return kForever; }
  State Advance(const State& s, std::int64_t) const { return s; }
};

struct OptaxApplyIfFinite {
  static constexpr PolicyInfo kInfo = {
      .key = "optax-apply-if-finite",
      .project = "optax",
      .file = "apply_if_finite",
      .summary =
          "a static scale; after M overflows in a row further ones are applied, until a finite step (M has no default "
          "there, here 5)",
      .rule =
          "S = init_scale (the project scales nothing: 1)\n"
          "O: c <- c+1;  applied if c > M, else skipped\n"
          "F: c <- 0",
      .hold = Hold::kF64,
      .needs = NeedsFor(Check::kUnscaled),
      .claims = NoScaling::kInfo.claims,
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  struct State {
    std::int64_t bad_steps = 0;
    std::int64_t bad_total = 0;

    bool operator==(const State&) const = default;
    template <class Self, class V>
    static void Visit(Self& self, V& v) {
      v.Value({"bad_steps", "overflows in a row"}, self.bad_steps);
      v.Value({"bad_total", "all overflows"}, self.bad_total);
    }
  };

  double init_scale = 1;
  std::int64_t max_consecutive_errors = 5;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"init_scale", "the loss scale", kStrictScale}, self.init_scale);
    v.Value({"max_consecutive_errors", "overflows in a row that are skipped", Between(0, 2147483647)},
            self.max_consecutive_errors);
  }

  State Start() const { return {}; }
  double LossScale(const State&) const { return init_scale; }
  bool Finite(const Observation& o) const { return o.unscaled_finite; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    if (Finite(o)) return {.next = {0, s.bad_total}};
    const State next = {s.bad_steps + 1, s.bad_total + 1};
    return {.next = next, .event = Event::kOverflow, .apply = next.bad_steps > max_consecutive_errors};
  }
  std::int64_t QuietSteps(const State&) const { return kForever; }
  State Advance(const State& s, std::int64_t n) const { return {n > 0 ? 0 : s.bad_steps, s.bad_total}; }
};

// What the policies do whose scale is a function of the step alone.
template <class P>
Outcome<StepState> NextByStep(const P& policy, const StepState& s, bool finite, OnOverflow on_overflow) {
  const StepState next = {s.step + 1};
  if (!finite) return {.next = next, .event = Event::kOverflow, .apply = on_overflow == OnOverflow::kApply};
  const bool grew = policy.LossScale(next) > policy.LossScale(s);
  return {.next = next, .event = grew ? Event::kGrowth : Event::kNone};
}

enum class ScheduleShape : std::uint8_t { kConstant, kPiecewise, kLinear, kCosine };
inline constexpr std::string_view kScheduleShapeNames[] = {"constant", "piecewise", "linear", "cosine"};
constexpr std::span<const std::string_view> EnumNames(ScheduleShape) { return kScheduleShapeNames; }

struct Schedule {
  using State = StepState;
  static constexpr PolicyInfo kInfo = {
      .key = "schedule",
      .project = "scaletrace",
      .file = "",
      .summary =
          "the scale is a function of the step: constant, piecewise, or between points linear or half a cosine in log2",
      .rule =
          "before the first point and after the last one the scale is theirs\n"
          "piecewise: it is that of the last point reached\n"
          "linear, cosine: log2 S goes from point to point, with x = t or x = (1 - cos(pi t))/2 of the way at the "
          "share t of the steps",
      .hold = Hold::kF64,
      .needs = NeedsFor(Check::kUnscaled),
      .claims = {.stays_within_limits = true, .stays_positive = true, .stays_finite = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  ScheduleShape shape = ScheduleShape::kConstant;
  std::vector<std::int64_t> steps = {0};
  std::vector<double> scales = {65536};
  OnOverflow on_overflow = OnOverflow::kSkip;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"shape", "what happens between the points"}, self.shape);
    v.Value({"steps", "the steps of the points, rising", Between(0, 9e15)}, self.steps);
    v.Value({"scales", "their scales", kStrictScale}, self.scales);
    v.Value(OnOverflowField(), self.on_overflow);
  }
  std::optional<ParameterProblem> Problem() const {
    if (steps.empty()) return ParameterProblem{"steps", "found an empty list; allowed: at least one step"};
    if (shape == ScheduleShape::kConstant && steps.size() != 1)
      return ParameterProblem{
          "steps", "found " + std::to_string(steps.size()) + " steps; allowed: one, where shape is constant"};
    for (std::size_t i = 1; i < steps.size(); ++i) {
      if (steps[i] <= steps[i - 1])
        return ParameterProblem{"steps", "found " + std::to_string(steps[i]) + " after " +
                                             std::to_string(steps[i - 1]) + "; allowed: rising steps"};
    }
    if (scales.size() != steps.size())
      return ParameterProblem{"scales", "found " + std::to_string(scales.size()) +
                                            " scales; allowed: one for each of the " + std::to_string(steps.size()) +
                                            " steps"};
    return std::nullopt;
  }

  // Of the last point at or before `step`; 0 where there is none.
  std::size_t PointBefore(std::int64_t step) const {
    const auto after = std::upper_bound(steps.begin(), steps.end(), step);
    return after == steps.begin() ? 0 : static_cast<std::size_t>(after - steps.begin()) - 1;
  }
  State Start() const { return {}; }
  double LossScale(const State& s) const {
    const std::size_t i = PointBefore(s.step);
    const bool between = s.step > steps[i] && i + 1 < steps.size();
    if (!between || shape == ScheduleShape::kPiecewise || scales[i] == scales[i + 1]) return scales[i];
    const double t = static_cast<double>(s.step - steps[i]) / static_cast<double>(steps[i + 1] - steps[i]);
    const double x = shape == ScheduleShape::kLinear ? t : (1 - CosTurns(t / 2)) / 2;
    return Exp2((1 - x) * Log2(scales[i]) + x * Log2(scales[i + 1]));
  }
  bool Finite(const Observation& o) const { return o.unscaled_finite; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    return NextByStep(*this, s, Finite(o), on_overflow);
  }
  std::int64_t QuietSteps(const State& s) const {
    const std::size_t i = PointBefore(s.step);
    if (i + 1 == steps.size() && s.step >= steps[i]) return kForever;
    if (s.step < steps[i]) return steps[i] - s.step;
    return shape == ScheduleShape::kPiecewise ? steps[i + 1] - s.step - 1 : 0;
  }
  State Advance(const State& s, std::int64_t n) const { return {s.step + n}; }
};

struct Scripted {
  using State = StepState;
  static constexpr PolicyInfo kInfo = {
      .key = "scripted",
      .project = "scaletrace",
      .file = "",
      .summary = "the scales of a list, one a step; after its end the last one stays",
      .rule = "S of step i = scales[min(i, length - 1)]",
      .hold = Hold::kF64,
      .needs = NeedsFor(Check::kUnscaled),
      .claims = {.stays_within_limits = true, .stays_positive = true, .stays_finite = true},
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  std::vector<double> scales = {65536};
  OnOverflow on_overflow = OnOverflow::kSkip;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"scales", "the scale of each step", kStrictScale}, self.scales);
    v.Value(OnOverflowField(), self.on_overflow);
  }
  std::optional<ParameterProblem> Problem() const {
    if (scales.empty()) return ParameterProblem{"scales", "found an empty list; allowed: at least one scale"};
    return std::nullopt;
  }

  State Start() const { return {}; }
  double LossScale(const State& s) const {
    const auto last = static_cast<std::int64_t>(scales.size()) - 1;
    return scales[static_cast<std::size_t>(std::clamp<std::int64_t>(s.step, 0, last))];
  }
  bool Finite(const Observation& o) const { return o.unscaled_finite; }
  Outcome<State> Next(const State& s, const Observation& o) const {
    return NextByStep(*this, s, Finite(o), on_overflow);
  }
  std::int64_t QuietSteps(const State& s) const {
    return s.step >= static_cast<std::int64_t>(scales.size()) - 1 ? kForever : 0;
  }
  State Advance(const State& s, std::int64_t n) const { return {s.step + n}; }
};

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_FIXED_SCALES_H_
