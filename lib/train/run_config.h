// Everything that a run depends on. A run is a function of this struct (and of the data files it names).
#ifndef SCALETRACE_TRAIN_RUN_CONFIG_H_
#define SCALETRACE_TRAIN_RUN_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/fields.h"
#include "data/batches.h"
#include "data/generators.h"
#include "model/precision.h"
#include "scaling/policy_list.h"
#include "trace/columns.h"
#include "train/optimizer.h"

namespace scaletrace {

struct AutoInit {
  static constexpr std::string_view kName = "auto", kDoc = "the parameters that the data brings, else zeros";
  template <class Self, class V>
  static void Visit(Self&, V&) {}
};
struct ZerosInit {
  static constexpr std::string_view kName = "zeros", kDoc = "all parameters 0";
  template <class Self, class V>
  static void Visit(Self&, V&) {}
};
struct NormalInit {
  static constexpr std::string_view kName = "normal", kDoc = "normal weights, biases 0";
  float std = 0.1f;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"std", "standard deviation of the weights", AtLeast(0)}, self.std);
  }
};

struct ModelOptions {
  std::variant<AutoInit, ZerosInit, NormalInit> init;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Kind({"init", "the parameters that a run starts from"}, self.init);
  }
};

enum class StopWhen : std::uint8_t { kNever, kStuck, kDiverged, kStuckOrDiverged };
inline constexpr std::string_view kStopWhenNames[] = {"never", "stuck", "diverged", "stuck-or-diverged"};
constexpr std::span<const std::string_view> EnumNames(StopWhen) { return kStopWhenNames; }

struct RunConfig {
  std::string name = "run";
  std::uint64_t seed = 0;
  std::int64_t steps = 1000;
  StopWhen stop_when = StopWhen::kNever;
  std::int64_t patience = 100;
  DataOptions data;
  BatchOptions batch;
  ModelOptions model;
  PrecisionOptions precision;
  std::int64_t micro_batches = 1;
  OptimizerOptions optimizer;
  ScheduleOptions lr_schedule;
  ClippingOptions clipping;
  Policy scaler;
  TraceOptions trace;

  // The folder of the config file: relative paths in `data` start there. Not a key.
  std::string folder = ".";

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"name", "what the run is called, also in the name of its folder"}, self.name);
    v.Value({"seed", "of all random numbers of the run"}, self.seed);
    v.Value({"steps", "attempts, skipped ones included", Between(0, 9e15)}, self.steps);
    v.Value({"stop_when", "end early: stuck = skipped `patience` steps in a row with an unchanged scale; diverged = `patience` steps in a row with "
             "a loss that is not finite or above 1000 times the first"}, self.stop_when);
    v.Value({"patience", "steps, see stop_when", Between(1, 9e15)}, self.patience);
    v.KindGroup({"data", "features and targets"}, "kind", self.data);
    v.KindGroup({"batch", "the rows of a step"}, "kind", self.batch);
    v.Group({"model", "the linear model"}, self.model);
    v.Group({"precision", "where and how results are rounded"}, self.precision);
    v.Value({"micro_batches", "pieces that a step's batch is cut into, of equal size; their gradients are added up before the policy sees them", Between(1, 1 << 26)},
            self.micro_batches);
    v.KindGroup({"optimizer", "the update"}, "kind", self.optimizer);
    v.KindGroup({"lr_schedule", "the learning rate over time"}, "kind", self.lr_schedule);
    v.KindGroup({"clipping", "gradients that are too long"}, "kind", self.clipping);
    v.KindGroup({"scaler", "the loss-scaling policy"}, "policy", self.scaler);
    v.Group({"trace", "what trace.csv keeps"}, self.trace);
  }
};

}  // namespace scaletrace

#endif  // SCALETRACE_TRAIN_RUN_CONFIG_H_
