#include "sweep/spec.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/number.h"
#include "config/field_text.h"

namespace scaletrace {
namespace {

std::string Found(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull: return "nothing";
    case YamlNode::Kind::kScalar: return Printable(node.text);
    case YamlNode::Kind::kList: return "a list of " + std::to_string(node.items.size());
    case YamlNode::Kind::kMapping: return "a mapping";
  }
  SCALETRACE_CHECK(false);
}

}  // namespace

std::optional<double> ReadNumber(std::string_view text) {
  if (text.starts_with("2^")) {
    const auto exponent = ReadInteger(text.substr(2));
    if (!exponent || *exponent < -1074 || *exponent > 1023) return std::nullopt;
    return std::ldexp(1.0, static_cast<int>(*exponent));
  }
  return ReadDouble(text);
}

void Spec::Fail(const std::string& message) const {
  const Place place = node.from_set ? Place{"--set", 0, path} : Place{file, node.line, path};
  throw InputError(InputError::Kind::kConfig, place, message);
}

void Spec::FailFound(const std::string& allowed) const { Fail("found " + Found(node) + "; allowed: " + allowed); }

Spec Spec::At(std::string_view key) const {
  const YamlEntry* entry = node.Find(key);
  if (entry == nullptr) Fail("needs the key " + std::string(key));
  return {entry->value, file, path + "." + std::string(key)};
}

Spec Spec::At(std::size_t item) const { return {node.items[item], file, path + "[" + std::to_string(item) + "]"}; }

void Spec::AllowKeys(const std::vector<std::string_view>& keys) const {
  if (node.kind != YamlNode::Kind::kMapping) FailFound("a mapping with the keys " + Choices(keys));
  for (const YamlEntry& entry : node.entries) {
    if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) continue;
    const Place place = entry.value.from_set ? Place{"--set", 0, path + "." + entry.key} : Place{file, entry.line, path + "." + entry.key};
    throw InputError(InputError::Kind::kConfig, place, "unknown key" + DidYouMean(entry.key, keys) + "; allowed: " + Choices(keys));
  }
}

void Spec::NeedList(const std::string& allowed) const {
  if (node.kind != YamlNode::Kind::kList || node.items.empty()) FailFound(allowed);
}

double Spec::Number() const {
  const auto number = node.kind == YamlNode::Kind::kScalar && !node.quoted ? ReadNumber(node.text) : std::nullopt;
  if (!number) FailFound("a number or 2^k");
  return *number;
}

bool Spec::IsInteger() const { return node.kind == YamlNode::Kind::kScalar && !node.quoted && ReadInteger(node.text).has_value(); }

std::int64_t Spec::Integer(std::int64_t low, std::int64_t high) const {
  const auto number = IsInteger() ? ReadInteger(node.text) : std::nullopt;
  if (!number || *number < low || *number > high) FailFound("an integer from " + std::to_string(low) + " to " + std::to_string(high));
  return *number;
}

std::uint64_t Spec::Unsigned() const {
  const auto number = node.kind == YamlNode::Kind::kScalar && !node.quoted ? ReadUnsigned(node.text) : std::nullopt;
  if (!number) FailFound("an integer from 0 to 18446744073709551615");
  return *number;
}

const std::string& Spec::Word(const std::string& allowed) const {
  if (node.kind != YamlNode::Kind::kScalar) FailFound(allowed);
  return node.text;
}

}  // namespace scaletrace
