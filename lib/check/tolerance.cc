#include "check/tolerance.h"

#include "base/error.h"
#include "base/file.h"
#include "base/number.h"
#include "config/yaml.h"

namespace scaletrace {
namespace {

constexpr const char* kAllowed = "exact, ignore, or a mapping of ulps, absolute, relative to numbers >= 0";

Tolerance ReadTolerance(const YamlNode& node, const std::string& file, const std::string& column) {
  const auto fail = [&](std::size_t line, const std::string& key, const std::string& message) {
    throw InputError(InputError::Kind::kConfig, {.file = file, .line = line, .key = key}, message);
  };
  Tolerance tolerance;
  if (node.kind == YamlNode::Kind::kScalar && node.text == "exact") return tolerance;
  if (node.kind == YamlNode::Kind::kScalar && node.text == "ignore") {
    tolerance.ignore = true;
    return tolerance;
  }
  if (node.kind != YamlNode::Kind::kMapping || node.entries.empty()) {
    fail(node.line, column, "found " + (node.kind == YamlNode::Kind::kScalar ? "'" + Printable(node.text) + "'" : std::string("no tolerance")) + "; allowed: " + kAllowed);
  }
  for (const YamlEntry& entry : node.entries) {
    const std::string key = column + "." + entry.key;
    if (entry.key == "of") {
      if (entry.value.text != "f32" && entry.value.text != "f64") fail(entry.line, key, "found '" + Printable(entry.value.text) + "'; allowed: f32, f64");
      tolerance.of = entry.value.text == "f32" ? CellType::kFloat32 : CellType::kFloat64;
      continue;
    }
    double* to = entry.key == "ulps" ? &tolerance.ulps : entry.key == "absolute" ? &tolerance.absolute : entry.key == "relative" ? &tolerance.relative : nullptr;
    if (to == nullptr) fail(entry.line, key, "unknown key" + DidYouMean(entry.key, {"ulps", "absolute", "relative", "of"}) + "; allowed: ulps, absolute, relative, of");
    const auto number = entry.value.kind == YamlNode::Kind::kScalar && !entry.value.quoted ? ReadDouble(entry.value.text) : std::nullopt;
    if (!number || !(*number >= 0)) fail(entry.line, key, "found '" + Printable(entry.value.text) + "'; allowed: a number >= 0");
    *to = *number;
  }
  return tolerance;
}

}  // namespace

Tolerances ParseTolerances(std::string_view text, const std::string& file) {
  const YamlNode root = ParseYaml(text, {.file = file, .line = 1});
  Tolerances tolerances;
  if (root.kind == YamlNode::Kind::kNull) return tolerances;
  if (root.kind != YamlNode::Kind::kMapping) {
    throw InputError(InputError::Kind::kConfig, {.file = file, .line = root.line}, std::string("found no mapping; allowed: names of columns, each with ") + kAllowed);
  }
  for (const YamlEntry& entry : root.entries) {
    const Tolerance tolerance = ReadTolerance(entry.value, file, entry.key);
    if (entry.key == "default") {
      tolerances.others = tolerance;
    } else {
      tolerances.columns[entry.key] = tolerance;
    }
  }
  return tolerances;
}

Tolerances ReadTolerances(const std::string& path) { return ParseTolerances(ReadFile(path, kMaxYamlBytes), path); }

}  // namespace scaletrace
