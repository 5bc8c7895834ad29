// What the readers of a sweep's YAML share: errors at a node, and numbers.
#ifndef SCALETRACE_SWEEP_SPEC_H_
#define SCALETRACE_SWEEP_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/yaml.h"

namespace scaletrace {

// Where a node stands, for messages.
struct Spec {
  const YamlNode& node;
  const std::string& file;
  std::string path;

  // Throw InputError (kConfig): "FILE:LINE: PATH: MESSAGE", and "found FOUND; allowed: ALLOWED".
  [[noreturn]] void Fail(const std::string& message) const;
  [[noreturn]] void FailFound(const std::string& allowed) const;

  // The entry of that key of a mapping; an error where it is missing.
  Spec At(std::string_view key) const;
  Spec At(std::size_t item) const;
  bool Has(std::string_view key) const { return node.Find(key) != nullptr; }
  // An error where the node is no mapping or has another key.
  void AllowKeys(const std::vector<std::string_view>& keys) const;
  void NeedList(const std::string& allowed) const;

  double Number() const;  // finite; 2^k besides
  bool IsInteger() const;
  std::int64_t Integer(std::int64_t low, std::int64_t high) const;
  std::uint64_t Unsigned() const;
  const std::string& Word(const std::string& allowed) const;
};

// A decimal number or 2^k; nullopt otherwise.
std::optional<double> ReadNumber(std::string_view text);

}  // namespace scaletrace

#endif  // SCALETRACE_SWEEP_SPEC_H_
