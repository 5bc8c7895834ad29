// The JSON Schema, judged by a validator of the part of draft-07 that it uses: it takes what the reader takes and
// refuses what is plainly wrong.
#include "config/schema.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "config/config.h"
#include "config/yaml.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

// A YAML tree as an editor sees it: JSON, plain scalars typed as in YAML 1.2.
std::string ToJson(const YamlNode& node) {
  std::string text;
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return "null";
    case YamlNode::Kind::kScalar:
      if (!node.quoted && (node.text == "true" || node.text == "false" || ReadDouble(node.text))) return node.text;
      return ToJsonString(node.text);
    case YamlNode::Kind::kList:
      for (const YamlNode& item : node.items) text += (text.empty() ? "" : ", ") + ToJson(item);
      return "[" + text + "]";
    case YamlNode::Kind::kMapping:
      for (const YamlEntry& entry : node.entries)
        text += (text.empty() ? "" : ", ") + ToJsonString(entry.key) + ": " + ToJson(entry.value);
      return "{" + text + "}";
  }
  return text;
}

class Validator {
 public:
  explicit Validator(const std::string& schema) : schema_(Json::Parse(schema, "schema", 10 << 20)) {}

  bool Accepts(const std::string& yaml) const {
    const Json json = Json::Parse(ToJson(ParseYaml(yaml, {"c.yaml", 1, ""})), "config", 10 << 20);
    return Valid(schema_.root(), json, json.root());
  }

 private:
  template <class F>
  static bool Is(F&& read) {
    try {
      read();
      return true;
    } catch (const InputError&) {
      return false;
    }
  }
  static bool IsString(const Json& json, const JsonValue& v) {
    return Is([&] { json.AsString(v); });
  }
  static bool IsNumber(const Json& json, const JsonValue& v) {
    return !IsString(json, v) && Is([&] { json.AsF64(v); });
  }
  static bool HasType(const std::string& type, const Json& json, const JsonValue& v) {
    if (type == "string") return IsString(json, v);
    if (type == "number") return IsNumber(json, v);
    if (type == "integer") return Is([&] { json.AsInteger(v); }) || Is([&] { json.AsUnsigned(v); });
    if (type == "boolean") return Is([&] { json.AsBool(v); });
    if (type == "array") return Is([&] { json.AsArray(v); });
    REQUIRE(type == "object");
    return Is([&] { json.AsObject(v); });
  }
  static bool IsPower(std::string_view text) {  // the one pattern that is used
    if (!text.starts_with("2^")) return false;
    text.remove_prefix(text.starts_with("2^-") ? 3 : 2);
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  }

  bool Valid(const JsonValue& schema, const Json& json, const JsonValue& v) const {
    const auto& keywords = schema_.AsObject(schema);
    const JsonValue* properties = schema_.Find(schema, "properties");
    return std::all_of(keywords.begin(), keywords.end(), [&](const JsonMember& keyword) {
      const JsonValue& value = keyword.value;
      const std::string& key = keyword.key;
      if (key == "$schema" || key == "title" || key == "description" || key == "default" || key == "properties")
        return true;
      if (key == "type") {
        if (IsString(schema_, value)) return HasType(schema_.AsString(value), json, v);
        const auto& types = schema_.AsArray(value);
        return std::any_of(types.begin(), types.end(),
                           [&](const JsonValue& t) { return HasType(schema_.AsString(t), json, v); });
      }
      if (key == "const") return IsString(json, v) && json.AsString(v) == schema_.AsString(value);
      if (key == "enum") {
        const auto& names = schema_.AsArray(value);
        return IsString(json, v) && std::any_of(names.begin(), names.end(), [&](const JsonValue& n) {
                 return schema_.AsString(n) == json.AsString(v);
               });
      }
      if (key == "pattern") {
        REQUIRE(schema_.AsString(value) == "^2\\^-?[0-9]+$");
        return !IsString(json, v) || IsPower(json.AsString(v));
      }
      if (key == "anyOf" || key == "oneOf") {
        const auto& schemas = schema_.AsArray(value);
        const auto matches =
            std::count_if(schemas.begin(), schemas.end(), [&](const JsonValue& s) { return Valid(s, json, v); });
        return key == "anyOf" ? matches > 0 : matches == 1;
      }
      if (key == "items") {
        const auto& items = json.AsArray(v);
        return std::all_of(items.begin(), items.end(), [&](const JsonValue& item) { return Valid(value, json, item); });
      }
      if (key == "required") {
        const auto& names = schema_.AsArray(value);
        return !HasType("object", json, v) || std::all_of(names.begin(), names.end(), [&](const JsonValue& n) {
          return json.Find(v, schema_.AsString(n)) != nullptr;
        });
      }
      if (key == "additionalProperties") {
        REQUIRE_FALSE(schema_.AsBool(value));
        if (!HasType("object", json, v)) return true;
        const auto& members = json.AsObject(v);
        return std::all_of(members.begin(), members.end(), [&](const JsonMember& member) {
          const JsonValue* property = schema_.Find(*properties, member.key);
          return property != nullptr && Valid(*property, json, member.value);
        });
      }
      if (!IsNumber(json, v)) return true;
      const double number = json.AsF64(v);
      const double bound = schema_.AsF64(value);
      if (key == "minimum") return number >= bound;
      if (key == "maximum") return number <= bound;
      if (key == "exclusiveMinimum") return number > bound;
      if (key == "exclusiveMaximum") return number < bound;
      FAIL("a keyword that the validator does not know: " << key);
      return false;
    });
  }

  Json schema_;
};

TEST_CASE("The schema takes the resolved config of every kind") {
  const Validator validator(JsonSchema());
  const auto check = [&](const RunConfig& config) {
    INFO(ResolvedYaml(config));
    CHECK(validator.Accepts(ResolvedYaml(config)));
  };
  check(RunConfig());
  RunConfig config;
  ForEachKind<DataOptions>([&]<class A>() { check((config.data = A(), config)); });
  ForEachKind<BatchOptions>([&]<class A>() { check((config.batch = A(), config)); });
  ForEachKind<decltype(ModelOptions::init)>([&]<class A>() { check((config.model.init = A(), config)); });
  ForEachKind<Policy>([&]<class A>() { check((config.scaler = A(), config)); });
}

TEST_CASE("The schema takes every spelling that the reader takes") {
  const Validator validator(JsonSchema());
  for (const std::string text :
       {"{}", "seed: 18446744073709551615\n", "model: {init: normal}\n", "data: {features: 3}\n",
        "scaler: {init_scale: 2^-149}\n", "scaler: {init_scale: inf}\n", "scaler: {init_scale: 6.5e4, good_steps: 7}\n",
        "name: 2024\n", "trace: {columns: [step, loss], every: 0}\n"}) {
    INFO(text);
    CHECK_NOTHROW(ParseConfig(text, "c.yaml", "."));
    CHECK(validator.Accepts(text));
  }
}

TEST_CASE("The schema takes the shipped configs") {
  const Validator validator(JsonSchema());
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(SCALETRACE_SOURCE_DIR) + "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path());
    CHECK(validator.Accepts(ReadFile(entry.path().string(), 1 << 20)));
    ++seen;
  }
  CHECK(seen > 0);
}

TEST_CASE("The schema takes the shipped sweeps, and refuses a sweep with another key") {
  const Validator validator(JsonSchema());
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(SCALETRACE_SOURCE_DIR) + "/configs/sweeps")) {
    INFO(entry.path());
    CHECK(validator.Accepts(ReadFile(entry.path().string(), 1 << 20)));
    ++seen;
  }
  CHECK(seen > 0);
  CHECK_FALSE(validator.Accepts("sweep: {axis: {seed: [1, 2]}}\n"));
  CHECK_FALSE(validator.Accepts("sweep: {repeat: 0}\n"));
}

TEST_CASE("The schema refuses what is plainly wrong") {
  const Validator validator(JsonSchema());
  for (const std::string text :
       {"sede: 1\n", "seed: -1\n", "seed: 1.5\n", "steps: \"10\"\n", "stop_when: stukc\n", "data: {kind: gausian}\n",
        "data: {kind: gaussian, dof: 3}\n", "data: {dof: 3}\n", "model: {std: 1}\n", "model: {init: normal, std: -1}\n",
        "scaler: {init_scale: 0}\n", "scaler: {init_scale: 2^x}\n", "scaler: {init_scale: big}\n",
        "optimizer: {lr: inf}\n", "precision: bfloat16\n", "trace: {columns: [stpe]}\n", "trace: {columns: step}\n",
        "[]", "scaler:\n"}) {
    INFO(text);
    CHECK_THROWS_AS(ParseConfig(text, "c.yaml", "."), InputError);
    CHECK_FALSE(validator.Accepts(text));
  }
}

}  // namespace
}  // namespace scaletrace
