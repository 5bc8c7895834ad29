#include "config/schema.h"

#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "config/field_text.h"
#include "train/run_config.h"

namespace scaletrace {
namespace {

// One level of JSON text on one line: members, joined by commas.
class Members {
 public:
  // `json` is the text of a JSON value.
  Members& Add(std::string_view key, const std::string& json) {
    text_ += (text_.empty() ? "" : ", ") + ToJsonString(key) + ": " + json;
    return *this;
  }
  std::string Object() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

std::string NamesArray(std::span<const std::string_view> names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + ToJsonString(name);
  return "[" + text + "]";
}

std::string Constant(std::string_view text) { return Members().Add("const", ToJsonString(text)).Object(); }

// A bound: integers are written out.
std::string Bound(double bound, bool integer) {
  return integer && std::fabs(bound) < 0x1p63 ? std::to_string(static_cast<std::int64_t>(bound)) : ToText(bound);
}

// What a field of type T may be, as members of a schema.
template <class T>
Members TypeMembers(const Field& field) {
  Members members;
  if constexpr (kIsOptional<T>) {
    members.Add("anyOf", "[" + TypeMembers<typename T::value_type>(field).Object() + ", " + Constant("none") + "]");
  } else if constexpr (kIsList<T>) {
    members.Add("type", "\"array\"").Add("items", TypeMembers<typename T::value_type>(field).Object());
  } else if constexpr (std::is_same_v<T, bool>) {
    members.Add("type", "\"boolean\"");
  } else if constexpr (std::is_enum_v<T>) {
    members.Add("enum", NamesArray(EnumNames(T{})));
  } else if constexpr (std::is_same_v<T, std::string>) {
    // Text may stand there without quotes, and an editor takes 2024 for a number.
    if (field.names.empty()) {
      members.Add("type", "[\"string\", \"number\", \"boolean\"]");
    } else {
      members.Add("enum", NamesArray(field.names));
    }
  } else {
    constexpr bool kInteger = std::is_integral_v<T>;
    Limits limits = field.limits;
    if (std::is_same_v<T, std::uint64_t> && !(limits.low > 0)) limits.low = 0;
    Members number;
    number.Add("type", kInteger ? "\"integer\"" : "\"number\"");
    if (std::isfinite(limits.low))
      number.Add(limits.low_open ? "exclusiveMinimum" : "minimum", Bound(limits.low, kInteger));
    if (std::isfinite(limits.high))
      number.Add(limits.high_open ? "exclusiveMaximum" : "maximum", Bound(limits.high, kInteger));
    if (!limits.power && !limits.infinity) return number;
    std::string choices = number.Object();
    if (limits.power)
      choices += ", " + Members().Add("type", "\"string\"").Add("pattern", ToJsonString("^2\\^-?[0-9]+$")).Object();
    if (limits.infinity) choices += ", " + Constant("inf");
    members.Add("anyOf", "[" + choices + "]");
  }
  return members;
}

// A default as the YAML reader would see it: a number, a list, or a word such as inf and none in quotes.
template <class T>
std::string DefaultJson(const T& value) {
  if constexpr (kIsOptional<T>) {
    return value ? DefaultJson(*value) : "\"none\"";
  } else if constexpr (kIsList<T>) {
    std::string text;
    for (std::size_t i = 0; i < value.size(); ++i)
      text += (i > 0 ? ", " : "") + DefaultJson<typename T::value_type>(value[i]);
    return "[" + text + "]";
  } else if constexpr (std::is_enum_v<T>) {
    return ToJsonString(EnumNames(value)[static_cast<std::size_t>(value)]);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return ToJsonString(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {
    return ToJsonText(value);
  }
}

// Collects the schema of one mapping.
class SchemaVisitor {
 public:
  explicit SchemaVisitor(std::size_t indent) : indent_(indent) {}

  template <class T>
  void Value(const Field& field, const T& value) {
    Members members = TypeMembers<T>(field);
    members.Add("description", ToJsonString(field.doc)).Add("default", DefaultJson(value));
    properties_.push_back({std::string(field.key), members.Object()});
  }
  template <class T>
  void Group(const Field& field, const T& group) {
    SchemaVisitor inner(indent_ + 1);
    T::Visit(group, inner);
    std::string schema = inner.Schema(field.doc);
    if constexpr (requires { T::kShorthand; }) {
      for (const Property& property : inner.properties_) {
        if (property.key == T::kShorthand) schema = "{\"anyOf\": [" + property.schema + ", " + schema + "]}";
      }
    }
    properties_.push_back({std::string(field.key), schema});
  }
  template <class T>
  void Kind(const Field& field, const T& variant) {
    SCALETRACE_CHECK(alternatives_.empty());  // two in one mapping would need their product
    ForEachKind<T>([&]<class A>() {
      SchemaVisitor inner(indent_ + 1);
      const A alternative;
      A::Visit(alternative, inner);
      SCALETRACE_CHECK(inner.alternatives_.empty());
      Members tag;
      tag.Add("const", ToJsonString(A::kName)).Add("description", ToJsonString(field.doc));
      if (A::kName == KindName(variant)) tag.Add("default", ToJsonString(A::kName));
      inner.properties_.insert(inner.properties_.begin(), {std::string(field.key), tag.Object()});
      alternatives_.push_back({A::kName, A::kDoc, A::kName == KindName(variant), std::move(inner.properties_)});
    });
    tag_ = field.key;
  }
  template <class T>
  void KindGroup(const Field& field, std::string_view tag, const T& variant) {
    SchemaVisitor inner(indent_ + 1);
    inner.Kind({tag, field.doc}, variant);
    properties_.push_back({std::string(field.key), inner.Schema(field.doc)});
  }

  void Add(std::string_view key, std::string_view schema) { properties_.push_back({std::string(key), std::string(schema)}); }
  std::string Schema(std::string_view doc, std::string_view head = "") const {
    std::string text = "{" + std::string(head) + Break(1) + "\"description\": " + ToJsonString(doc) + "," + Break(1) +
                       "\"type\": \"object\",";
    if (alternatives_.empty()) return text + PropertiesText(properties_, 1) + Break(0) + "}";
    text += Break(1) + "\"oneOf\": [";
    for (std::size_t i = 0; i < alternatives_.size(); ++i) {
      const Alternative& alternative = alternatives_[i];
      std::vector<Property> properties = properties_;
      properties.insert(properties.end(), alternative.properties.begin(), alternative.properties.end());
      text += (i > 0 ? "," : "") + Break(2) + "{\"title\": " + ToJsonString(alternative.name) +
              ", \"description\": " + ToJsonString(alternative.doc) + ",";
      if (!alternative.is_default) text += " \"required\": [" + ToJsonString(tag_) + "],";
      text += PropertiesText(properties, 3) + Break(2) + "}";
    }
    return text + Break(1) + "]" + Break(0) + "}";
  }

 private:
  struct Property {
    std::string key;
    std::string schema;
  };
  struct Alternative {
    std::string_view name;
    std::string_view doc;
    bool is_default;
    std::vector<Property> properties;
  };

  std::string Break(std::size_t depth) const { return "\n" + std::string(4 * indent_ + 2 * depth, ' '); }

  std::string PropertiesText(const std::vector<Property>& properties, std::size_t depth) const {
    std::string text = Break(depth) + "\"additionalProperties\": false," + Break(depth) + "\"properties\": {";
    for (std::size_t i = 0; i < properties.size(); ++i) {
      text += (i > 0 ? "," : "") + Break(depth + 1) + ToJsonString(properties[i].key) + ": " + properties[i].schema;
    }
    return text + Break(depth) + "}";
  }

  std::size_t indent_;
  std::vector<Property> properties_;
  std::string_view tag_;
  std::vector<Alternative> alternatives_;
};

// Text inside a table's cell.
std::string Cell(std::string_view text) {
  std::string cell;
  bool code = false;
  for (const char c : text) {
    if (c == '`') code = !code;
    if (c == '|' || (!code && (c == '<' || c == '*'))) cell += '\\';
    cell += c;
  }
  return cell;
}

// Writes the reference of one mapping: a table, then a section for each mapping in it.
class ReferenceVisitor {
 public:
  explicit ReferenceVisitor(std::string path) : path_(std::move(path)) {}

  template <class T>
  void Value(const Field& field, const T& value) {
    Row(field.key, Cell(AllowedText<T>(field)), "`" + YamlText(value) + "`", field.doc);
  }
  template <class T>
  void Group(const Field& field, const T& group) {
    if constexpr (requires { T::kShorthand; }) {
      // Groups of this type look alike: a row each, and the keys once.
      ReferenceVisitor inner(path_ + "ROLE.");
      T::Visit(group, inner);
      Row(field.key, "a " + std::string(T::kShorthand) + ", or a mapping (ROLE below)", "`auto`", field.doc);
      const std::string section = "\n### " + path_ + "ROLE\n" + inner.Text();
      if (sections_.find(section) == std::string::npos) sections_ += section;
      return;
    }
    ReferenceVisitor inner(path_ + std::string(field.key) + ".");
    T::Visit(group, inner);
    sections_ += "\n## " + std::string(field.key) + "\n\n" + Sentence(field.doc) + "\n" + inner.Text();
  }
  template <class T>
  void Kind(const Field& field, const T& variant) {
    std::string names;
    for (const std::string_view name : KindNames<T>())
      names += (names.empty() ? "" : ", ") + ("`" + std::string(name) + "`");
    Row(field.key, names, "`" + std::string(KindName(variant)) + "`", field.doc);
    ForEachKind<T>([&]<class A>() {
      ReferenceVisitor inner(path_);
      const A alternative;
      A::Visit(alternative, inner);
      sections_ +=
          "\n### " + path_ + std::string(field.key) + ": " + std::string(A::kName) + "\n\n" + Sentence(A::kDoc) + "\n";
      sections_ += inner.rows_.empty() ? "" : inner.Text();
    });
  }
  template <class T>
  void KindGroup(const Field& field, std::string_view tag, const T& variant) {
    ReferenceVisitor inner(path_ + std::string(field.key) + ".");
    inner.Kind({tag, "which of the kinds below"}, variant);
    sections_ += "\n## " + std::string(field.key) + "\n\n" + Sentence(field.doc) + "\n" + inner.Text();
  }

  std::string Text() const {
    return "\n| key | allowed | default | meaning |\n|---|---|---|---|\n" + rows_ + sections_;
  }

 private:
  // A doc as a paragraph: a capital first, unless it starts with a formula.
  static std::string Sentence(std::string_view doc) {
    const auto is_small = [&](std::size_t i) { return i < doc.size() && doc[i] >= 'a' && doc[i] <= 'z'; };
    std::string text = Cell(doc) + ".";
    if (is_small(0) && (is_small(1) || is_small(2))) text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
  }
  void Row(std::string_view key, const std::string& allowed, const std::string& value, std::string_view doc) {
    rows_ += "| `" + path_ + std::string(key) + "` | " + allowed + " | " + value + " | " + Cell(doc) + " |\n";
  }

  std::string path_;
  std::string rows_;
  std::string sections_;
};

// No key of a run: lib/sweep reads it, and says more than a schema can.
constexpr std::string_view kSweepSchema =
    R"({"description": "many runs of this config, for `scaletrace sweep`", "type": "object", "additionalProperties": false, "properties": {)"
    R"("axes": {"description": "key paths, each with its values: a list, or grid, range, logrange, log2range, random; zip or list of several", "type": "object"}, )"
    R"("repeat": {"description": "so many seeds of each combination", "type": "integer", "minimum": 1}, )"
    R"("where": {"description": "a condition; combinations for which it is false are left out", "type": "string"}, )"
    R"("cap": {"description": "at most so many runs, taken evenly", "type": "integer", "minimum": 1}, )"
    R"("keep_traces": {"description": "of which runs the trace is kept: none, all, diverged, trouble, sample N", "type": "string"}}})";

}  // namespace

std::string JsonSchema() {
  SchemaVisitor visitor(0);
  const RunConfig config;
  RunConfig::Visit(config, visitor);
  visitor.Add("sweep", kSweepSchema);
  return visitor.Schema(
             "a scaletrace run, or with the key sweep many of them",
             "\n  \"$schema\": \"http://json-schema.org/draft-07/schema#\",\n  \"title\": \"scaletrace config\",") +
         "\n";
}

std::string ConfigReference() {
  ReferenceVisitor visitor("");
  const RunConfig config;
  RunConfig::Visit(config, visitor);
  return "# Keys of a config\n\n"
         "A config is YAML. Every key has a default; `scaletrace config FILE` prints a config with all of them written "
         "out, and `--set key.path=VALUE`\n"
         "changes one from the command line. Numbers are decimal, with an optional exponent (`0.05`, `6.5e4`); where "
         "`2^k` is allowed, `2^16` is\n"
         "65536. A key that is unknown, repeated, or belongs to another kind than the one chosen is an error. Paths "
         "start at the config's own folder.\n"
         "Not taken: anchors, aliases, tags, merge keys, several documents, files above 1 MiB.\n" +
         visitor.Text();
}

}  // namespace scaletrace
