#include "train/single_step.h"

#include <cstdint>
#include <limits>

#include "model/model.h"
#include "scaling/scaler.h"
#include "train/parameters_json.h"

namespace scaletrace {

namespace {

// A parameter of the step: one that only the rounding to float32 makes 0 was not meant to be 0.
float Parameter(const Json& json, const JsonValue& value, const std::string& allowed) {
  const float number = json.AsF32(value);
  if (number == 0 && json.AsF64(value) != 0) json.Fail(value, "found a number that is too small for float32, which holds 0 or at least 1.4e-45; allowed: " + allowed);
  return number;
}

}  // namespace

std::string SingleStep(const Json& json, const JsonValue& given, const KernelTable& kernels, const PrecisionOptions& precision) {
  const JsonValue* input = json.Find(given, "input");
  if (input != nullptr) json.AllowKeys(given, {"kind", "input", "output"});
  const JsonValue& object = input != nullptr ? *input : given;
  json.AllowKeys(object, {"params", "x", "y", "loss_scale", "good_steps", "lr", "growth_interval"});
  const JsonValue& params = json.Member(object, "params");
  json.AllowKeys(params, {"w", "b"});
  const Json::Matrix w = json.AsF32Matrix(json.Member(params, "w"));
  const std::vector<float> b = json.AsF32List(json.Member(params, "b"));
  const Json::Matrix x = json.AsF32Matrix(json.Member(object, "x"));
  const Json::Matrix y = json.AsF32Matrix(json.Member(object, "y"));
  const auto must_fit = [&](std::size_t found, const char* one, const char* more, std::size_t allowed, const JsonValue& at, const std::string& why) {
    if (found == allowed) return;
    json.Fail(at, "found " + std::to_string(found) + " " + (found == 1 ? one : more) + ", " + why + "; allowed: " + std::to_string(allowed));
  };
  must_fit(b.size(), "entry", "entries", w.columns, json.Member(params, "b"), "w has another number of columns");
  must_fit(x.columns, "column", "columns", w.rows, json.Member(object, "x"), "w has another number of rows");
  must_fit(y.rows, "row", "rows", x.rows, json.Member(object, "y"), "x has another number");
  must_fit(y.columns, "column", "columns", w.columns, json.Member(object, "y"), "w has another number");

  JaxStep policy;
  const JsonValue& scale = json.Member(object, "loss_scale");
  policy.init_scale = Parameter(json, scale, "a number > 0, or \"inf\"");
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
  const float lr = Parameter(json, json.Member(object, "lr"), "any number");

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
