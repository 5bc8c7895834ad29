#include "config/config.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/sha256.h"
#include "config/field_text.h"
#include "config/keys.h"
#include "config/yaml.h"
#include "scaling/scaler.h"
#include "scaling/tensor_policies.h"

namespace scaletrace {
namespace {

std::string Join(const std::string& path, std::string_view key) {
  return (path.empty() ? "" : path + ".") + std::string(key);
}

// Lists the key paths of a struct, those of every alternative included.
class PathLister {
 public:
  explicit PathLister(std::vector<std::string>& paths, std::string path = "") : paths_(paths), path_(std::move(path)) {}

  template <class T>
  void Value(const Field& field, T&) {
    paths_.push_back(Join(path_, field.key));
  }
  template <class T>
  void Group(const Field& field, T& group) {
    PathLister inner(paths_, Join(path_, field.key));
    T::Visit(group, inner);
  }
  template <class T>
  void Kind(const Field& field, T& variant) {
    Value(field, variant);
    ForEachKind<std::remove_const_t<T>>([this]<class A>() {
      const A alternative;
      A::Visit(alternative, *this);
    });
  }
  template <class T>
  void KindGroup(const Field& field, std::string_view tag, T& variant) {
    PathLister inner(paths_, Join(path_, field.key));
    inner.Kind({tag, {}}, variant);
  }

 private:
  std::vector<std::string>& paths_;
  std::string path_;
};

// What the readers of one config share.
struct Source {
  std::string file;
  std::map<std::string, const YamlNode*> given;  // by key path: the values that were read

  Place PlaceOf(const YamlNode& node, const std::string& path) const {
    return node.from_set ? Place{"--set", 0, path} : Place{file, node.line, path};
  }
  [[noreturn]] void Fail(const YamlNode& node, const std::string& path, const std::string& message) const {
    throw InputError(InputError::Kind::kConfig, PlaceOf(node, path), message);
  }
  [[noreturn]] void FailFound(const YamlNode& node, const std::string& path, const std::string& note,
                              const std::string& allowed) const;
  // For what the limits of one key can't say: about the key `path`, at the first of `givers` that the text has.
  [[noreturn]] void FailAt(const std::vector<std::string>& givers, const std::string& path,
                           const std::string& message) const {
    for (const std::string& giver : givers) {
      if (const auto it = given.find(giver); it != given.end()) Fail(*it->second, path, message);
    }
    throw InputError(InputError::Kind::kConfig, {file, 0, path}, message);
  }
};

std::string Found(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return node.text.empty() ? "nothing" : node.text;
    case YamlNode::Kind::kScalar:
      return node.quoted ? "\"" + Printable(node.text) + "\"" : Printable(node.text);
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMapping:
      return "a mapping";
  }
  SCALETRACE_CHECK(false);
}

void Source::FailFound(const YamlNode& node, const std::string& path, const std::string& note,
                       const std::string& allowed) const {
  Fail(node, path, "found " + Found(node) + (note.empty() ? "" : " (" + note + ")") + "; allowed: " + allowed);
}

// Why `text`, which is no decimal number, isn't one, where that is a known slip; else empty.
std::string NumberNote(const YamlNode& node, bool integer) {
  const std::string& text = node.text;
  if (node.kind != YamlNode::Kind::kScalar) return "";
  if (node.quoted) return "in quotes, so it is text";
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  std::string_view rest = lower;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "nan" || rest == ".nan") return "NaN is not allowed";
  if (rest == ".inf" || rest == "infinity") return "infinity is spelled inf";
  if (rest.starts_with("0x") || rest.starts_with("0o") || rest.starts_with("0b")) return "numbers are decimal";
  if (rest.empty() || !(rest[0] == '.' || (rest[0] >= '0' && rest[0] <= '9'))) return "";
  if (lower[0] == '+') return "no plus sign";
  if (rest.find('_') != std::string_view::npos) return "no underscores";
  if (rest.find(':') != std::string_view::npos || rest.find(',') != std::string_view::npos) return "no separators";
  if (rest.size() > 1 && rest[0] == '0' && rest[1] >= '0' && rest[1] <= '9') return "no leading zeros";
  if (integer && ReadInteger(text)) return "";
  if (integer && ReadDouble(text)) {
    return rest.find_first_of(".e") == std::string_view::npos ? "too large for 64 bits"
                                                              : "an integer has no point and no exponent";
  }
  if (rest[0] == '.' || rest.back() == '.' || rest.find(".e") != std::string_view::npos)
    return "digits on both sides of the point";
  if (const std::size_t e = rest.find('e'); e != std::string_view::npos && ReadDouble(rest.substr(0, e)))
    return "too large";
  return "";
}

// 2^k, exactly; nullopt where `text` is not of that form or T does not hold it.
template <class T>
std::optional<T> ReadPower(std::string_view text) {
  if (!text.starts_with("2^")) return std::nullopt;
  const auto exponent = ReadInteger(text.substr(2));
  // The least power of two of a type is subnormal.
  constexpr int kLow = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
  constexpr int kHigh = std::numeric_limits<T>::max_exponent - 1;
  if (!exponent || *exponent < kLow || *exponent > kHigh) return std::nullopt;
  return std::ldexp(T{1}, static_cast<int>(*exponent));
}

// Reads one mapping into one struct. A key that is not there leaves the field as it is.
class Reader {
 public:
  // `mapping` may be null: nothing is given.
  Reader(Source& source, const YamlNode* mapping, std::string path)
      : source_(source), mapping_(mapping), path_(std::move(path)) {
    if (mapping_ != nullptr && mapping_->kind != YamlNode::Kind::kMapping) {
      source_.FailFound(*mapping_, path_, "", "a mapping of keys to values");
    }
  }

  template <class T>
  void Value(const Field& field, T& value) {
    if (const YamlNode* node = Take(field.key)) Read(field, *node, Join(path_, field.key), value);
  }

  template <class T>
  void Group(const Field& field, T& group) {
    const YamlNode* node = Take(field.key);
    if constexpr (requires { T::kShorthand; }) {
      if (node != nullptr && node->kind == YamlNode::Kind::kScalar) {
        ShorthandReader<T> shorthand = {*this, *node, Join(path_, field.key)};
        return T::Visit(group, shorthand);
      }
    }
    Reader inner(source_, node, Join(path_, field.key));
    T::Visit(group, inner);
    inner.Finish();
  }

  template <class T>
  void Kind(const Field& field, T& variant) {
    const auto names = KindNames<T>();
    if (const YamlNode* node = Take(field.key)) {
      const std::string path = Join(path_, field.key);
      const std::string* name = node->kind == YamlNode::Kind::kScalar ? &node->text : nullptr;
      if (name == nullptr || !SetKind(variant, *name)) {
        if constexpr (std::is_same_v<T, Policy>) {
          if (name != nullptr && !WhyNotInRun(*name).empty()) source_.Fail(*node, path, WhyNotInRun(*name));
        }
        FailChoice(*node, path, names);
      }
    }
    kind_.tag = field.key;
    kind_.name = KindName(variant);
    ForEachKind<T>([this]<class A>() {
      const A alternative;
      PathLister lister(kind_.keys.emplace_back(A::kName, std::vector<std::string>()).second);
      A::Visit(alternative, lister);
    });
    std::visit([this]<class A>(A& alternative) { A::Visit(alternative, *this); }, variant);
  }

  template <class T>
  void KindGroup(const Field& field, std::string_view tag, T& variant) {
    Reader inner(source_, Take(field.key), Join(path_, field.key));
    inner.Kind({tag, field.doc}, variant);
    inner.Finish();
  }

  // One value from its node, wherever that stands.
  template <class T>
  void ReadNode(const Field& field, const YamlNode& node, const std::string& path, T& value) const {
    Read(field, node, path, value);
  }

  // To be called after Visit: refuses the keys that nobody asked for.
  void Finish() const {
    if (mapping_ == nullptr) return;
    for (const YamlEntry& entry : mapping_->entries) {
      if (std::find(known_.begin(), known_.end(), entry.key) == known_.end()) FailUnknown(entry);
    }
  }

 private:
  // Reads a plain value that stands for one key of a group.
  template <class G>
  struct ShorthandReader {
    const Reader& reader;
    const YamlNode& node;
    std::string path;
    template <class T>
    void Value(const Field& field, T& value) {
      if (field.key == G::kShorthand) reader.Read(field, node, path, value);
    }
  };

  // The alternatives of a Kind in this mapping, and which one is in use.
  struct Kinds {
    std::string_view tag;
    std::string_view name;
    std::vector<std::pair<std::string_view, std::vector<std::string>>> keys;
  };

  const YamlNode* Take(std::string_view key) {
    known_.push_back(key);
    const YamlEntry* entry = mapping_ == nullptr ? nullptr : mapping_->Find(key);
    if (entry == nullptr) return nullptr;
    source_.given[Join(path_, key)] = &entry->value;
    return &entry->value;
  }

  [[noreturn]] void FailUnknown(const YamlEntry& entry) const {
    YamlNode place = {};
    place.line = entry.line;
    place.from_set = entry.value.from_set;
    const std::string path = Join(path_, entry.key);
    if (path == "sweep") source_.Fail(place, path, "this config is of many runs: `scaletrace sweep` takes it");
    std::vector<std::string_view> owners;
    for (const auto& [name, keys] : kind_.keys) {
      if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) owners.push_back(name);
    }
    if (!owners.empty()) {
      const std::string tag(kind_.tag);
      std::string message = "not a key of " + tag + " " + std::string(kind_.name);
      const YamlEntry* chosen = mapping_->Find(kind_.tag);
      if (chosen == nullptr) message += " (the default)";
      message += ", but of " + tag + " " + Choices(owners) + "; allowed: " + Choices(known_);
      if (chosen != nullptr && chosen->value.from_set && !entry.value.from_set && !path_.empty()) {
        message += " (--set '" + path_ + "={" + tag + ": " + std::string(kind_.name) + "}' replaces the whole mapping)";
      }
      source_.Fail(place, path, message);
    }
    std::string hint = DidYouMean(entry.key, known_);
    if (hint.empty()) {
      std::vector<std::string> paths;
      PathLister lister(paths);
      const RunConfig config;
      RunConfig::Visit(config, lister);
      for (const std::string& elsewhere : paths) {
        if (elsewhere == entry.key || elsewhere.ends_with("." + entry.key)) {
          hint = " (did you mean '" + elsewhere + "'?)";
          break;
        }
      }
    }
    source_.Fail(place, path, "unknown key" + hint + "; allowed: " + Choices(known_));
  }

  template <class Names>
  [[noreturn]] void FailChoice(const YamlNode& node, const std::string& path, const Names& names) const {
    std::string hint;
    if (node.kind == YamlNode::Kind::kScalar) hint = DidYouMean(node.text, {names.begin(), names.end()});
    source_.Fail(node, path, "found " + Found(node) + hint + "; allowed: " + Choices(names));
  }

  void Read(const Field& field, const YamlNode& node, const std::string& path, bool& value) const {
    const bool plain = node.kind == YamlNode::Kind::kScalar && !node.quoted;
    if (!plain || (node.text != "true" && node.text != "false"))
      source_.FailFound(node, path, "", AllowedText<bool>(field));
    value = node.text == "true";
  }

  template <class T>
  requires std::is_arithmetic_v<T>
  void Read(const Field& field, const YamlNode& node, const std::string& path, T& value) const {
    const auto fail = [&](const std::string& note) { source_.FailFound(node, path, note, AllowedText<T>(field)); };
    if (node.kind != YamlNode::Kind::kScalar || node.quoted) fail(NumberNote(node, std::integral<T>));
    std::optional<T> read;
    if constexpr (std::is_same_v<T, std::int64_t>) {
      read = ReadInteger(node.text);
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      read = ReadUnsigned(node.text);
    } else {
      if constexpr (std::is_same_v<T, float>) {
        read = ReadFloat(node.text);
      } else {
        static_assert(std::is_same_v<T, double>, "fields.h lists the types that a field may have");
        read = ReadDouble(node.text);
      }
      if (!read && field.limits.power && node.text.starts_with("2^")) {
        read = ReadPower<T>(node.text);
        if (!read)
          fail(std::is_same_v<T, float> ? "not a power that float32 holds: 2^-149 to 2^127"
                                        : "not a power that a double holds: 2^-1074 to 2^1023");
      }
      if (!read && field.limits.infinity && node.text == "inf") read = std::numeric_limits<T>::infinity();
      if (!read && std::is_same_v<T, float> && ReadDouble(node.text)) fail("too large for float32");
    }
    if constexpr (std::is_floating_point_v<T>) {
      const std::string_view digits = std::string_view(node.text).substr(0, node.text.find_first_of("eE"));
      if (read && *read == 0 && digits.find_first_of("123456789") != std::string_view::npos)
        fail(std::is_same_v<T, float> ? "too small for float32" : "too small for a double");
    }
    if (!read) fail(NumberNote(node, std::integral<T>));
    if (!field.limits.Allows(static_cast<double>(*read))) fail("");
    value = *read;
  }

  void Read(const Field& field, const YamlNode& node, const std::string& path, std::string& value) const {
    if (!field.names.empty()) {
      if (node.kind != YamlNode::Kind::kScalar ||
          std::find(field.names.begin(), field.names.end(), node.text) == field.names.end()) {
        FailChoice(node, path, field.names);
      }
    } else if (node.kind != YamlNode::Kind::kScalar) {
      source_.FailFound(node, path, "", AllowedText<std::string>(field));
    } else if (std::any_of(node.text.begin(), node.text.end(),
                           [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; })) {
      source_.FailFound(node, path, "with a control character", "text on one line");
    }
    value = node.text;
  }

  template <class T>
  requires std::is_enum_v<T>
  void Read(const Field&, const YamlNode& node, const std::string& path, T& value) const {
    const auto names = EnumNames(T{});
    const auto it = std::find(names.begin(), names.end(), node.text);
    if (node.kind != YamlNode::Kind::kScalar || it == names.end()) FailChoice(node, path, names);
    value = static_cast<T>(it - names.begin());
  }

  template <class T>
  void Read(const Field& field, const YamlNode& node, const std::string& path, std::optional<T>& value) const {
    value.reset();
    if (node.kind == YamlNode::Kind::kScalar && !node.quoted && node.text == "none") return;
    if (node.kind != YamlNode::Kind::kScalar || node.quoted) {
      source_.FailFound(node, path, NumberNote(node, std::integral<T>), AllowedText<std::optional<T>>(field));
    }
    Read(field, node, path, value.emplace());
  }

  template <class T>
  void Read(const Field& field, const YamlNode& node, const std::string& path, std::vector<T>& value) const {
    if (node.kind != YamlNode::Kind::kList) source_.FailFound(node, path, "", AllowedText<std::vector<T>>(field));
    value.clear();
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      T entry{};
      Read(field, node.items[i], path + "[" + std::to_string(i) + "]", entry);
      value.push_back(std::move(entry));
    }
  }

  Source& source_;
  const YamlNode* mapping_;
  std::string path_;
  std::vector<std::string_view> known_;
  Kinds kind_;
};

void MarkAsOverride(YamlNode& node) {
  node.from_set = true;
  for (YamlNode& item : node.items) MarkAsOverride(item);
  for (YamlEntry& entry : node.entries) MarkAsOverride(entry.value);
}

// The node of that path in the tree, made where it is not there. Whether there is such a key is the reader's question. fail(path, message) throws.
template <class Fail>
YamlNode& NodeAt(YamlNode& root, const std::string& path, bool from_set, std::size_t line, const Fail& fail) {
  YamlNode* node = &root;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('.', start), path.size());
    const std::string key = path.substr(start, end - start);
    if (key.empty()) fail("", "found " + Printable(path) + "; allowed: key.path");
    if (node->kind != YamlNode::Kind::kMapping) {
      fail(path, "found a path into " + Printable(path.substr(0, start - 1)) + ", which is " + Found(*node) +
                     "; allowed: a path through mappings");
    }
    YamlEntry* entry = node->Find(key);
    if (entry == nullptr) {
      YamlNode mapping;
      mapping.kind = YamlNode::Kind::kMapping;
      mapping.from_set = from_set;
      mapping.line = line;
      node->entries.push_back({key, line, std::move(mapping)});
      entry = &node->entries.back();
    }
    node = &entry->value;
    start = end + 1;
  }
  return *node;
}

// Lists tags and groups.
class StructureLister {
 public:
  explicit StructureLister(std::vector<std::string>& paths, std::string path = "")
      : paths_(paths), path_(std::move(path)) {}

  template <class T>
  void Value(const Field&, T&) {}
  template <class T>
  void Group(const Field& field, T& group) {
    const std::string path = Join(path_, field.key);
    paths_.push_back(path);
    StructureLister inner(paths_, path);
    T::Visit(group, inner);
  }
  template <class T>
  void Kind(const Field& field, T&) {
    paths_.push_back(Join(path_, field.key));
  }
  template <class T>
  void KindGroup(const Field& field, std::string_view tag, T&) {
    const std::string path = Join(path_, field.key);
    paths_.push_back(path);
    paths_.push_back(Join(path, tag));
  }

 private:
  std::vector<std::string>& paths_;
  std::string path_;
};

// Goes down to the one value at a key path. The last part of the path must be the whole of what is left of it.
template <class Found>
class KeyFinder {
 public:
  KeyFinder(std::string_view rest, Found& found) : rest_(rest), found_(found) {}

  template <class T>
  void Value(const Field& field, T& value) {
    if (rest_ == field.key) found_.Value(field, value);
  }
  template <class T>
  void Group(const Field& field, T& group) {
    if (!Below(field.key)) return;
    KeyFinder inner(rest_.substr(field.key.size() + 1), found_);
    std::remove_const_t<T>::Visit(group, inner);
  }
  template <class T>
  void Kind(const Field& field, T& variant) {
    if (rest_ == field.key) return found_.Tag(variant);
    std::visit([this]<class A>(A& alternative) { std::remove_const_t<A>::Visit(alternative, *this); }, variant);
  }
  template <class T>
  void KindGroup(const Field& field, std::string_view tag, T& variant) {
    if (!Below(field.key)) return;
    KeyFinder inner(rest_.substr(field.key.size() + 1), found_);
    inner.Kind({tag, field.doc}, variant);
  }

 private:
  bool Below(std::string_view key) const {
    return rest_.size() > key.size() && rest_[key.size()] == '.' && rest_.starts_with(key);
  }

  std::string_view rest_;
  Found& found_;
};

struct TextOfKey {
  std::optional<std::string> text;
  template <class T>
  void Value(const Field&, const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      text = value;
    } else {
      text = YamlText(value);
    }
  }
  template <class T>
  void Tag(const T& variant) {
    text = std::string(KindName(variant));
  }
};

struct SetterOfKey {
  const Reader& reader;
  const YamlNode& node;
  const std::string& path;
  bool found = false;
  template <class T>
  void Value(const Field& field, T& value) {
    reader.ReadNode(field, node, path, value);
    found = true;
  }
  template <class T>
  void Tag(T&) {}
};

// Puts one "key.path=VALUE" into the tree.
void Override(YamlNode& root, const std::string& assignment) {
  const auto fail = [](const std::string& path, const std::string& message) {
    throw InputError(InputError::Kind::kConfig, {"--set", 0, path}, message);
  };
  const std::size_t equals = assignment.find('=');
  const std::string path = assignment.substr(0, equals);
  if (equals == std::string::npos || ("." + path + ".").find("..") != std::string::npos) {
    fail("", "found " + Printable(assignment) + "; allowed: key.path=VALUE");
  }
  YamlNode& node = NodeAt(root, path, true, 0, fail);
  node = ParseYaml(std::string_view(assignment).substr(equals + 1), {"--set", 0, path});
  MarkAsOverride(node);
}

// Names become names of folders.
bool IsName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= 100 && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), allowed);
}

// What no single key can be blamed for.
void CheckTogether(const RunConfig& config, const Source& source) {
  if (!IsName(config.name)) {
    source.FailAt({"name"}, "name",
                  "found " + YamlString(Printable(config.name)) +
                      "; allowed: 1 to 100 of the characters a-z A-Z 0-9 . _ -, the first none of . and -");
  }
  if (config.trace.columns.empty())
    source.FailAt({"trace.columns"}, "trace.columns", "found an empty list; allowed: at least one column");
  for (std::size_t i = 0; i < config.trace.columns.size(); ++i) {
    const auto begin = config.trace.columns.begin();
    if (std::find(begin, begin + static_cast<std::ptrdiff_t>(i), config.trace.columns[i]) !=
        begin + static_cast<std::ptrdiff_t>(i)) {
      source.FailAt({"trace.columns"}, "trace.columns",
                    "found " + config.trace.columns[i] + " twice; allowed: each column once");
    }
  }
  if (const auto problem = FindProblem(config.precision)) {
    const std::string path = "precision." + problem->key;
    source.FailAt({path, "precision.custom", "precision"}, path, problem->message);
  }
  if (const auto problem = FindProblem(config.scaler)) {
    const std::string path = "scaler." + std::string(problem->key);
    // A default that another key does not go with was not found in the text.
    std::string message = problem->message;
    const std::size_t end = message.find(';');
    if (!source.given.contains(path) && end != std::string::npos) message.insert(end, " (the default)");
    source.FailAt({path, "scaler.policy", "scaler.init_scale", "scaler"}, path, message);
  }
}

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (path == "-" || slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Writes every field, nested mappings indented.
class YamlWriter {
 public:
  explicit YamlWriter(std::string& out, std::size_t indent = 0) : out_(out), indent_(indent) {}

  template <class T>
  void Value(const Field& field, const T& value) {
    Line(field.key, " " + YamlText(value));
  }
  template <class T>
  void Group(const Field& field, const T& group) {
    if constexpr (requires { T::kShorthand; }) {
      FlowWriter flow;
      T::Visit(group, flow);
      return Line(field.key, " {" + flow.text + "}");
    }
    Line(field.key, "");
    YamlWriter inner(out_, indent_ + 2);
    T::Visit(group, inner);
  }
  template <class T>
  void Kind(const Field& field, const T& variant) {
    Line(field.key, " " + YamlString(KindName(variant)));
    std::visit([this]<class A>(const A& alternative) { A::Visit(alternative, *this); }, variant);
  }
  template <class T>
  void KindGroup(const Field& field, std::string_view tag, const T& variant) {
    Line(field.key, "");
    YamlWriter inner(out_, indent_ + 2);
    inner.Kind({tag, field.doc}, variant);
  }

 private:
  struct FlowWriter {
    std::string text;
    template <class T>
    void Value(const Field& field, const T& value) {
      text += (text.empty() ? "" : ", ") + std::string(field.key) + ": " + YamlText(value);
    }
  };

  void Line(std::string_view key, const std::string& value) {
    out_ += std::string(indent_, ' ') + std::string(key) + ":" + value + "\n";
  }

  std::string& out_;
  std::size_t indent_;
};

void CheckRoot(const YamlNode& root, const std::string& file) {
  if (root.kind == YamlNode::Kind::kNull) {
    throw InputError(InputError::Kind::kConfig, {file, 0, ""},
                     "found no key at all; allowed: a mapping of keys to values ({} for all defaults)");
  }
  if (root.kind != YamlNode::Kind::kMapping) {
    const bool colon = root.text.find(':') != std::string::npos;
    Source{file, {}}.FailFound(root, "", colon ? "a space belongs after the colon of a key" : "",
                               "a mapping of keys to values");
  }
}

RunConfig ReadTree(const YamlNode& root, Source& source, const std::string& folder) {
  RunConfig config;
  config.folder = folder;
  Reader reader(source, &root, "");
  RunConfig::Visit(config, reader);
  reader.Finish();
  return config;
}

}  // namespace

std::string YamlString(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto plain = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' || c == '/';
  };
  bool is_plain = !text.empty() && letter(text[0]) && std::all_of(text.begin(), text.end(), plain);
  // Words that mean something else, to this reader or to another.
  for (const std::string_view word :
       {"null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", "yes", "Yes", "YES", "no",
        "No",   "NO",   "on",   "On",   "ON",   "off",  "Off",   "OFF",   "y",     "Y",   "n",   "N"}) {
    if (text == word) is_plain = false;
  }
  return is_plain ? std::string(text) : ToJsonString(text);
}

RunConfig ParseConfig(std::string_view text, const std::string& file, const std::string& folder,
                      const std::vector<std::string>& overrides) {
  YamlNode root = ParseYaml(text, {file, 1, ""});
  CheckRoot(root, file);
  for (const std::string& assignment : overrides) Override(root, assignment);
  Source source = {file, {}};
  const RunConfig config = ReadTree(root, source, folder);
  CheckTogether(config, source);
  return config;
}

void PutKey(YamlNode& root, const KeyValue& key_value, const std::string& file) {
  YamlNode& node = NodeAt(root, key_value.path, false, key_value.value.line, [&](const std::string& path, const std::string& message) {
    throw InputError(InputError::Kind::kConfig, {file, key_value.value.line, path}, message);
  });
  node = key_value.value;
}

void PutOverride(YamlNode& root, const std::string& assignment) { Override(root, assignment); }

RunConfig ConfigFromTree(const YamlNode& root, const std::string& file, const std::string& folder) {
  CheckRoot(root, file);
  Source source = {file, {}};
  return ReadTree(root, source, folder);
}

std::vector<std::string> AllKeyPaths() {
  std::vector<std::string> paths;
  const RunConfig config;
  PathLister lister(paths);
  RunConfig::Visit(config, lister);
  StructureLister structure(paths);
  RunConfig::Visit(config, structure);
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

bool IsStructuralKey(std::string_view path) {
  std::vector<std::string> paths;
  const RunConfig config;
  StructureLister lister(paths);
  RunConfig::Visit(config, lister);
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

void SetKey(RunConfig& config, const std::string& path, const YamlNode& value, const std::string& file) {
  Source source = {file, {}};
  const Reader reader(source, nullptr, "");
  SetterOfKey setter = {reader, value, path};
  KeyFinder finder(path, setter);
  RunConfig::Visit(config, finder);
  if (setter.found) return;
  // The reader of whole configs knows best what is wrong with the key.
  YamlNode root;
  root.kind = YamlNode::Kind::kMapping;
  PutKey(root, {path, value}, file);
  YamlNode tags;
  for (const std::string_view tag : {"data.kind", "batch.kind", "model.init", "optimizer.kind", "lr_schedule.kind", "clipping.kind", "scaler.policy"}) {
    const auto name = KeyText(config, tag);
    if (!name || !path.starts_with(tag.substr(0, tag.find('.') + 1))) continue;
    tags.kind = YamlNode::Kind::kScalar;
    tags.text = *name;
    PutKey(root, {std::string(tag), tags}, file);
  }
  ReadTree(root, source, config.folder);
  source.Fail(value, path, "not a key of this config");
}

std::optional<std::string> KeyText(const RunConfig& config, std::string_view path) {
  TextOfKey text;
  KeyFinder finder(path, text);
  RunConfig::Visit(config, finder);
  return std::move(text.text);
}

void CheckKeysTogether(const RunConfig& config, const std::string& file) { CheckTogether(config, {file, {}}); }

RunConfig ReadConfig(const std::string& path, const std::vector<std::string>& overrides) {
  return ParseConfig(ReadFile(path, kMaxYamlBytes), path, FolderOf(path), overrides);
}

std::vector<std::string> ConfigWarnings(const RunConfig& config) {
  std::vector<std::string> warnings = Warnings(config.scaler);
  for (std::string& warning : warnings) warning.insert(0, "scaler.");
  return warnings;
}

std::string ResolvedYaml(const RunConfig& config) {
  RunConfig resolved = config;
  resolved.precision = Resolved(config.precision);
  std::string text;
  YamlWriter writer(text);
  RunConfig::Visit(resolved, writer);
  return text;
}

std::string ConfigHash(const RunConfig& config) {
  RunConfig nameless = config;
  nameless.name = RunConfig().name;
  return Sha256("scaletrace run 1\ngenerators " + std::to_string(kGeneratorsVersion) + "\ndata files " +
                DataFileHash(config.data, config.folder) + "\n" + ResolvedYaml(nameless));
}

}  // namespace scaletrace
