#include "train/single_step.h"

#include <cstdint>
#include <limits>

#include "model/model.h"
#include "scaling/scaler.h"
#include "train/parameters_json.h"

namespace scaletrace {

std::string SingleStep(const Json& json, const JsonValue& object, const KernelTable& kernels, const PrecisionOptions& precision) {
  json.AllowKeys(object, {"params", "x", "y", "loss_scale", "good_steps", "lr", "growth_interval"});
  const JsonValue& params = json.Member(object, "params");
  json.AllowKeys(params, {"w", "b"});
  const Json::Matrix w = json.AsF32Matrix(json.Member(params, "w"));
  const std::vector<float> b = json.AsF32List(json.Member(params, "b"));
  const Json::Matrix x = json.AsF32Matrix(json.Member(object, "x"));
  const Json::Matrix y = json.AsF32Matrix(json.Member(object, "y"));
  const auto must_fit = [&](std::size_t found, std::size_t allowed, const JsonValue& at, const std::string& what) {
    if (found != allowed) json.Fail(at, "found " + std::to_string(found) + " " + what + "; allowed: " + std::to_string(allowed));
  };
  must_fit(b.size(), w.columns, json.Member(params, "b"), "entries, w has another number of columns");
  must_fit(x.columns, w.rows, json.Member(object, "x"), "columns, w has another number of rows");
  must_fit(y.rows, x.rows, json.Member(object, "y"), "rows, x has another number");
  must_fit(y.columns, w.columns, json.Member(object, "y"), "columns, w has another number");

  JaxStep policy;
  const JsonValue& scale = json.Member(object, "loss_scale");
  policy.init_scale = json.AsF32(scale);
  if (!(policy.init_scale > 0)) json.FailFound(scale, "a number > 0, or \"inf\"");
  const JsonValue& interval = json.Member(object, "growth_interval");
  policy.growth_interval = json.AsInteger(interval);
  constexpr std::int64_t kMaxInterval = std::numeric_limits<std::int32_t>::max();
  if (policy.growth_interval < 1 || policy.growth_interval > kMaxInterval) json.FailFound(interval, "an integer from 1 to 2147483647");
  const JsonValue& good = json.Member(object, "good_steps");
  policy.good_steps = json.AsInteger(good);
  if (policy.good_steps < 0 || policy.good_steps >= policy.growth_interval) {
    json.FailFound(good, "an integer from 0 to " + std::to_string(policy.growth_interval - 1) + " (below growth_interval)");
  }
  const float lr = json.AsF32(json.Member(object, "lr"));

  LinearModel model(kernels, precision, {x.rows, x.columns, w.columns});
  model.SetParameters(w.entries, b);
  model.LoadFeatures(x.entries, {});
  model.LoadTargets(y.entries);
  const LinearModel::Backward backward = model.ComputeGradients(policy.init_scale);
  Observation seen;
  seen.unscaled_finite = backward.finite.after;
  const Outcome<JaxStep::State> outcome = policy.Next(policy.Start(), seen);
  if (outcome.apply) model.Update(lr);
  return "{\"loss\": " + ToJsonText(backward.loss) + ", \"params\": " + ParametersJson(model.w(), model.b()) +
         ", \"loss_scale\": " + ToJsonText(outcome.next.loss_scale) + ", \"good_steps\": " + std::to_string(outcome.next.good_steps) +
         ", \"grads_finite\": " + (backward.finite.after ? "true" : "false") + "}";
}

}  // namespace scaletrace
