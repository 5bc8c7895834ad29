// Data from a JSON file: the shapes and the keys. Leaves the text to base/json.h.
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "data/file_data.h"

namespace scaletrace {
namespace {

void CheckFinite(const Json& json, const JsonValue& list) {
  for (const JsonValue& entry : json.AsArray(list)) {
    if (!std::isfinite(json.AsF32(entry))) json.FailFound(entry, "a finite number");
  }
}

Json::Matrix ReadMatrix(const Json& json, const JsonValue& value) {
  Json::Matrix matrix = json.AsF32Matrix(value);
  for (const JsonValue& row : json.AsArray(value)) CheckFinite(json, row);
  return matrix;
}

void CheckCount(const Json& json, const JsonValue& value, std::size_t found, std::size_t allowed,
                const std::string& of) {
  if (found != allowed) {
    json.Fail(value, "found " + std::to_string(found) + " " + of.substr(0, of.size() - (found == 1 ? 1 : 0)) + "; allowed: " + std::to_string(allowed) +
                         ", to fit the others");
  }
}

}  // namespace

Dataset ReadGivenData(const GivenData&, const std::string& path) {
  const Json json = Json::Parse(ReadFile(path, kMaxGivenBytes), path, kMaxGivenBytes);
  // Files that describe a whole run have these last keys too; the config speaks for them here.
  json.AllowKeys(json.root(),
                 {"x", "y", "params", "loss_scale", "good_steps", "lr", "growth_interval", "steps", "final"});
  const JsonValue& x_value = json.Member(json.root(), "x");
  const JsonValue& y_value = json.Member(json.root(), "y");
  Json::Matrix x = ReadMatrix(json, x_value);
  Json::Matrix y = ReadMatrix(json, y_value);
  CheckCount(json, y_value, y.rows, x.rows, "rows");

  Dataset data;
  data.samples = x.rows;
  data.features = x.columns;
  data.outputs = y.columns;
  data.x = std::move(x.entries);
  data.y = std::move(y.entries);
  if (const JsonValue* params = json.Find(json.root(), "params")) {
    json.AllowKeys(*params, {"w", "b"});
    const JsonValue& w_value = json.Member(*params, "w");
    const JsonValue& b_value = json.Member(*params, "b");
    Json::Matrix w = ReadMatrix(json, w_value);
    CheckCount(json, w_value, w.rows, data.features, "rows");
    CheckCount(json, w_value, w.columns, data.outputs, "columns");
    std::vector<float> b = json.AsF32List(b_value);
    CheckCount(json, b_value, b.size(), data.outputs, "entries");
    CheckFinite(json, b_value);
    data.initial = Dataset::Parameters{std::move(w.entries), std::move(b)};
  }
  return data;
}

}  // namespace scaletrace
