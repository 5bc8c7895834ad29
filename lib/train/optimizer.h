// Optimizers, learning-rate schedules and gradient clipping: their options, and what they say about a step. The arithmetic of an update:
// UpdateArgs in kernels/kernels.h.
#ifndef SCALETRACE_TRAIN_OPTIMIZER_H_
#define SCALETRACE_TRAIN_OPTIMIZER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "base/fields.h"
#include "kernels/kernels.h"

namespace scaletrace {

struct Sgd {
  static constexpr std::string_view kName = "sgd", kDoc = "p <- p - lr g, one fused multiply-add";
  float lr = 0.05f;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"lr", "learning rate", AtLeast(0)}, self.lr);
  }
};

// Polyak 1964; Sutskever et al. 2013 for Nesterov's form, written as in torch.optim.SGD (dampening 0).
struct Momentum {
  static constexpr std::string_view kName = "momentum", kDoc = "m <- momentum m + g, p <- p - lr m; m starts at 0";
  float lr = 0.05f;
  float momentum = 0.9f;
  bool nesterov = false;
  float weight_decay = 0;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"lr", "learning rate", AtLeast(0)}, self.lr);
    v.Value({"momentum", "share of the old m that stays", Between(0, 1)}, self.momentum);
    v.Value({"nesterov", "p <- p - lr (g + momentum m)"}, self.nesterov);
    v.Value({"weight_decay", "g <- g + weight_decay p first (L2)", AtLeast(0)}, self.weight_decay);
  }
};

template <class Self, class V>
void VisitAdam(Self& self, V& v) {
  v.Value({"lr", "learning rate", AtLeast(0)}, self.lr);
  v.Value({"beta1", "share of the old first moment that stays", Between(0, 0.99999994)}, self.beta1);
  v.Value({"beta2", "likewise of the second", Between(0, 0.99999994)}, self.beta2);
  v.Value({"epsilon", "added to the root of the second moment", AtLeast(0)}, self.epsilon);
}

// Kingma and Ba, "Adam", ICLR 2015, algorithm 1. Steps are counted by updates: a skipped step is none.
struct Adam {
  static constexpr std::string_view kName = "adam", kDoc = "p <- p - lr m / (sqrt(v) + epsilon) with corrected moments m, v of the gradient";
  float lr = 0.001f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float weight_decay = 0;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    VisitAdam(self, v);
    v.Value({"weight_decay", "g <- g + weight_decay p first (L2)", AtLeast(0)}, self.weight_decay);
  }
};

// Loshchilov and Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, algorithm 2, with the decay times lr as in torch.optim.AdamW.
struct AdamW {
  static constexpr std::string_view kName = "adamw", kDoc = "adam, and p <- p - lr weight_decay p apart from the moments";
  float lr = 0.001f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float weight_decay = 0.01f;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    VisitAdam(self, v);
    v.Value({"weight_decay", "p <- p - lr weight_decay p before the update", AtLeast(0)}, self.weight_decay);
  }
};

using OptimizerOptions = std::variant<Sgd, Momentum, Adam, AdamW>;

// What the steps of a schedule are.
enum class ScheduleCount : std::uint8_t { kSteps, kUpdates };
inline constexpr std::string_view kScheduleCountNames[] = {"steps", "updates"};
constexpr std::span<const std::string_view> EnumNames(ScheduleCount) { return kScheduleCountNames; }

struct ScheduleCommon {
  std::int64_t warmup = 0;
  ScheduleCount counts = ScheduleCount::kSteps;
};

template <class Self, class V>
void VisitSchedule(Self& self, V& v) {
  v.Value({"warmup", "step t below this has (t + 1) / warmup of the learning rate", Between(0, 9e15)}, self.warmup);
  v.Value({"counts", "steps = attempts, as a scheduler that is stepped every iteration; updates = skipped steps don't count"}, self.counts);
}

struct ConstantSchedule : ScheduleCommon {
  static constexpr std::string_view kName = "constant", kDoc = "the same learning rate after the warm-up (Goyal et al. 2017)";
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    VisitSchedule(self, v);
  }
};

struct LinearSchedule : ScheduleCommon {
  static constexpr std::string_view kName = "linear", kDoc = "from 1 down to final_factor over the period in equal steps";
  std::optional<std::int64_t> period;
  float final_factor = 0;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    VisitSchedule(self, v);
    v.Value({"period", "steps of the way down; none = what the run has after the warm-up", Between(1, 9e15)}, self.period);
    v.Value({"final_factor", "of the learning rate at the end and after it", AtLeast(0)}, self.final_factor);
  }
};

struct CosineSchedule : ScheduleCommon {
  static constexpr std::string_view kName = "cosine", kDoc = "from 1 down to final_factor along half a cosine (Loshchilov and Hutter 2017, without restarts)";
  std::optional<std::int64_t> period;
  float final_factor = 0;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    VisitSchedule(self, v);
    v.Value({"period", "steps of the way down; none = what the run has after the warm-up", Between(1, 9e15)}, self.period);
    v.Value({"final_factor", "of the learning rate at the end and after it", AtLeast(0)}, self.final_factor);
  }
};

struct StepSchedule : ScheduleCommon {
  static constexpr std::string_view kName = "step", kDoc = "times `factor` after every `every` steps";
  std::int64_t every = 1000;
  float factor = 0.1f;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    VisitSchedule(self, v);
    v.Value({"every", "steps between two changes", Between(1, 9e15)}, self.every);
    v.Value({"factor", "of every change", AtLeast(0)}, self.factor);
  }
};

using ScheduleOptions = std::variant<ConstantSchedule, LinearSchedule, CosineSchedule, StepSchedule>;

// The learning rate of step `step` (with `updates` before it) of a run of `steps`: the optimizer's, times the schedule's factor in double, rounded once.
float LearningRate(const OptimizerOptions& optimizer, const ScheduleOptions& schedule, std::int64_t steps, std::int64_t step, std::int64_t updates);
// Whether that is the same for all steps.
bool IsConstant(const ScheduleOptions& schedule);

// Which gradients are clipped.
enum class ClipWhen : std::uint8_t { kUnscaled, kScaled };
inline constexpr std::string_view kClipWhenNames[] = {"unscaled", "scaled"};
constexpr std::span<const std::string_view> EnumNames(ClipWhen) { return kClipWhenNames; }

struct NoClipping {
  static constexpr std::string_view kName = "none", kDoc = "gradients stay as they are";
  template <class Self, class V>
  static void Visit(Self&, V&) {}
};

// Pascanu et al. 2013, with the factor of torch.nn.utils.clip_grad_norm_: min(1, max_norm / (norm + 1e-6)).
struct NormClipping {
  static constexpr std::string_view kName = "norm", kDoc = "all gradients times min(1, max_norm / (norm + 1e-6)), norm being that of w and b together";
  float max_norm = 1;
  ClipWhen when = ClipWhen::kUnscaled;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"max_norm", "the largest norm that stays", AtLeast(0)}, self.max_norm);
    v.Value({"when", "unscaled = after the division by the scale; scaled = before it, as a loop that forgets scaler.unscale_: max_norm is then one for "
             "gradients times the scale"}, self.when);
  }
};

using ClippingOptions = std::variant<NoClipping, NormClipping>;

// The factor for gradients of that norm: 1 without clipping; NaN and inf as the arithmetic gives them (inf: 0).
float ClipFactor(const NormClipping& clipping, double norm);

// What an optimizer carries from update to update, apart from the moments.
struct OptimizerState {
  double beta1_power = 1, beta2_power = 1;  // beta^updates

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"beta1_power", "beta1 to the power of the updates"}, self.beta1_power);
    v.Value({"beta2_power", "beta2 likewise"}, self.beta2_power);
  }
};

// The rule and numbers of the next update at learning rate `lr`; `state` goes on by it.
UpdateArgs NextUpdate(const OptimizerOptions& optimizer, float lr, OptimizerState& state);

}  // namespace scaletrace

#endif  // SCALETRACE_TRAIN_OPTIMIZER_H_
