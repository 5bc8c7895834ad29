// YAML text → a small tree with line numbers. Takes the plain part of YAML (mappings, lists, scalars) and refuses the
// rest: anchors and aliases, tags, merge keys, several documents, keys that are no scalars. So nothing expands, and
// memory stays within a small multiple of the text. What the tree means: config.cc.
#ifndef SCALETRACE_CONFIG_YAML_H_
#define SCALETRACE_CONFIG_YAML_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace scaletrace {

struct YamlEntry;

struct YamlNode {
  enum class Kind : std::uint8_t { kNull, kScalar, kList, kMapping };

  Kind kind = Kind::kNull;
  bool quoted = false;    // a scalar in quotes, or a block scalar
  bool from_set = false;  // comes from --set, not from the file
  std::size_t line = 0;
  std::string text;  // of a scalar; of a null its spelling: "", "~", "null"
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;  // in the order of the text, no two with the same key

  YamlEntry* Find(std::string_view key);
  const YamlEntry* Find(std::string_view key) const;
};

struct YamlEntry {
  std::string key;
  std::size_t line = 0;  // of the key
  YamlNode value;
};

inline constexpr std::size_t kMaxYamlBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxYamlDepth = 64;

// The one document of `text`; kNull where there is none. Errors (kConfig, one line, at the line of the fault): all that
// is refused above, a repeated key, deeper than kMaxYamlDepth, larger than kMaxYamlBytes, broken UTF-8, UTF-16, a byte
// order mark, control characters, tabs as indentation, bad syntax. `origin` names the text: its file, and the key that
// it is the value of, if any. Lines are counted only where origin.line is not 0, and start there.
YamlNode ParseYaml(std::string_view text, const Place& origin);

}  // namespace scaletrace

#endif  // SCALETRACE_CONFIG_YAML_H_
