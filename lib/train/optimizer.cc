#include "train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"

namespace scaletrace {
namespace {

// How far a schedule is on its way down, 0 to 1.
double Progress(std::int64_t t, const std::optional<std::int64_t>& period, std::int64_t left) {
  const std::int64_t length = std::max<std::int64_t>(period.value_or(left), 1);
  return static_cast<double>(std::min(t, length)) / static_cast<double>(length);
}

double Factor(const ConstantSchedule&, std::int64_t, std::int64_t) { return 1; }
double Factor(const LinearSchedule& s, std::int64_t t, std::int64_t left) {
  const double end = static_cast<double>(s.final_factor);
  return 1 + (end - 1) * Progress(t, s.period, left);
}
double Factor(const CosineSchedule& s, std::int64_t t, std::int64_t left) {
  const double end = static_cast<double>(s.final_factor);
  return end + (1 - end) * (1 + CosTurns(Progress(t, s.period, left) / 2)) / 2;
}
double Factor(const StepSchedule& s, std::int64_t t, std::int64_t) {
  // By squaring, so that a late step costs no more than an early one.
  double factor = 1, power = static_cast<double>(s.factor);
  for (std::int64_t n = t / s.every; n > 0; n /= 2, power *= power) {
    if (n % 2 == 1) factor *= power;
  }
  return factor;
}

UpdateArgs Begin(const Sgd&, OptimizerState&) { return {}; }
UpdateArgs Begin(const Momentum& o, OptimizerState&) {
  return {.rule = o.nesterov ? UpdateRule::kNesterov : UpdateRule::kMomentum, .weight_decay = o.weight_decay, .momentum = o.momentum};
}
template <class A>
UpdateArgs BeginAdam(const A& o, float lr, OptimizerState& state) {
  const double beta1 = static_cast<double>(o.beta1), beta2 = static_cast<double>(o.beta2);
  state.beta1_power *= beta1;
  state.beta2_power *= beta2;
  return {.rule = UpdateRule::kAdam,
          .lr = static_cast<float>(static_cast<double>(lr) / (1 - state.beta1_power)),
          .beta1 = o.beta1,
          .one_minus_beta1 = static_cast<float>(1 - beta1),
          .beta2 = o.beta2,
          .one_minus_beta2 = static_cast<float>(1 - beta2),
          .correction2 = static_cast<float>(1 - state.beta2_power),
          .epsilon = o.epsilon};
}

}  // namespace

float LearningRate(const OptimizerOptions& optimizer, const ScheduleOptions& schedule, std::int64_t steps, std::int64_t step, std::int64_t updates) {
  const float lr = std::visit([](const auto& o) { return o.lr; }, optimizer);
  if (IsConstant(schedule)) return lr;
  const double factor = std::visit(
      [&](const auto& s) {
        const std::int64_t t = s.counts == ScheduleCount::kSteps ? step : updates;
        if (t < s.warmup) return static_cast<double>(t + 1) / static_cast<double>(s.warmup);
        return Factor(s, t - s.warmup, steps - s.warmup);
      },
      schedule);
  return static_cast<float>(static_cast<double>(lr) * factor);
}

bool IsConstant(const ScheduleOptions& schedule) {
  const auto* constant = std::get_if<ConstantSchedule>(&schedule);
  return constant != nullptr && constant->warmup == 0;
}

float ClipFactor(const NormClipping& clipping, double norm) {
  const double factor = static_cast<double>(clipping.max_norm) / (norm + 1e-6);
  return factor < 1 || std::isnan(factor) ? static_cast<float>(factor) : 1.0f;
}

UpdateArgs NextUpdate(const OptimizerOptions& optimizer, float lr, OptimizerState& state) {
  UpdateArgs args = std::visit(
      [&]<class O>(const O& o) {
        if constexpr (std::is_same_v<O, Adam> || std::is_same_v<O, AdamW>) {
          UpdateArgs adam = BeginAdam(o, lr, state);
          if constexpr (std::is_same_v<O, Adam>) adam.weight_decay = o.weight_decay;
          else adam.shrink = lr * o.weight_decay;
          return adam;
        } else {
          UpdateArgs plain = Begin(o, state);
          plain.lr = lr;
          return plain;
        }
      },
      optimizer);
  return args;
}

}  // namespace scaletrace
