#include "config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>
#include <utility>

namespace scaletrace {
namespace {

// The place of a line (from 0) of the text.
Place PlaceOf(const Place& origin, std::size_t line) {
  Place place = origin;
  if (place.line > 0) place.line += line;
  return place;
}

// Length of the well-formed UTF-8 sequence at the start of `text` (Unicode 15, table 3-7), or 0.
std::size_t SequenceLength(std::string_view text) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto within = [&](std::size_t i, unsigned low, unsigned high) { return byte(i) >= low && byte(i) <= high; };
  const auto tail = [&](std::size_t i) { return within(i, 0x80, 0xBF); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    return within(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    return within(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

// Refuses what yaml-cpp would take for something else (it guesses encodings and turns broken UTF-8 into U+FFFD) or
// report obscurely.
void CheckCharacters(std::string_view text, const Place& origin) {
  std::size_t line = 0;
  const auto fail = [&](const std::string& message) {
    throw InputError(InputError::Kind::kConfig, PlaceOf(origin, line), message);
  };
  if (text.size() > kMaxYamlBytes) {
    fail("found " + std::to_string(text.size()) + " bytes; allowed: at most " + std::to_string(kMaxYamlBytes));
  }
  if (text.starts_with("\xEF\xBB\xBF")) fail("found a byte order mark; allowed: UTF-8 without one");
  if (text.starts_with("\xFE\xFF") || text.starts_with("\xFF\xFE")) fail("found UTF-16 or UTF-32; allowed: UTF-8");
  bool indentation = true;
  bool tab = false;  // in the indentation of this line
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t length = SequenceLength(text.substr(i));
    if (length == 0) fail("found the byte " + Printable(text.substr(i, 1)) + ", which is not UTF-8; allowed: UTF-8");
    if (c == '\0') fail("found a NUL byte; allowed: text in UTF-8");
    const bool line_end = c == '\n' || (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n');
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && !line_end) {
      fail("found the control character " + Printable(text.substr(i, 1)) + "; allowed: text");
    }
    if (c == '\n') {
      ++line;
      indentation = true;
      tab = false;
    } else if (indentation && c == '\t') {
      tab = true;
    } else if (indentation && c != ' ' && !line_end) {
      indentation = false;
      if (tab && c != '#') fail("found a tab in the indentation; allowed: spaces");
    }
    i += length;
  }
}

// Builds the tree from the parser's events. Throwing from an event is what stops the parser, which is recursive, at the
// depth limit.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const Place& origin) : origin_(origin), text_(text) {
    for (std::size_t start = 0; start <= text.size();) {
      const std::size_t end = std::min(text.find('\n', start), text.size());
      lines_.push_back(text.substr(start, end - start));
      start = end + 1;
    }
  }

  YamlNode Take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0)
      Fail(mark, "found a second document; allowed: one (is a key indented differently from the first?)");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseAnchor(mark, anchor);
    std::string_view source = Source(mark);
    if (source.starts_with("!")) Fail(mark, "found a tag; allowed: plain values");
    YamlNode node = NodeAt(mark, YamlNode::Kind::kNull);
    for (const std::string_view spelling : {"~", "null", "Null", "NULL"}) {
      if (source.starts_with(spelling)) node.text = spelling;
    }
    Add(mark, std::move(node));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(mark, "found an alias (*name); allowed: values written out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseAnchor(mark, anchor);
    // Scalars in quotes and block scalars come with the tag "!", as if it were written.
    const bool quoted = tag == "!" && !Source(mark).starts_with("!");
    if (!quoted) RefuseTag(mark, tag);
    if (quoted) CheckQuotes(mark);
    YamlNode node = NodeAt(mark, YamlNode::Kind::kScalar);
    node.quoted = quoted;
    node.text = value;
    Add(mark, std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, tag, anchor, YamlNode::Kind::kMapping);
  }
  void OnMapEnd() override { Close(); }

  [[noreturn]] void Fail(const YAML::Mark& mark, const std::string& message) const {
    Place place = PlaceOf(origin_, Line(mark));
    place.key = Path();
    throw InputError(InputError::Kind::kConfig, place, message);
  }

 private:
  struct Level {
    YAML::Mark mark;
    YamlNode node;
    bool has_key = false;  // `key` waits for its value
    std::string key;
    std::size_t key_line = 0;
    std::map<std::string, std::size_t> key_lines;
  };

  // From 0; a missing mark counts as the first line.
  static std::size_t Line(const YAML::Mark& mark) { return mark.line < 0 ? 0 : static_cast<std::size_t>(mark.line); }

  // The rest of the line from `mark` on.
  std::string_view Source(const YAML::Mark& mark) const {
    const std::size_t line = Line(mark);
    const std::size_t column = mark.column < 0 ? 0 : static_cast<std::size_t>(mark.column);
    return line < lines_.size() && column < lines_[line].size() ? lines_[line].substr(column) : std::string_view();
  }

  YamlNode NodeAt(const YAML::Mark& mark, YamlNode::Kind kind) const {
    YamlNode node;
    node.kind = kind;
    node.line = PlaceOf(origin_, Line(mark)).line;
    return node;
  }

  std::string Path() const {
    std::string path = origin_.key;
    for (const Level& level : open_) {
      if (level.node.kind == YamlNode::Kind::kList) {
        path += "[" + std::to_string(level.node.items.size()) + "]";
      } else if (level.has_key) {
        path += (path.empty() ? "" : ".") + level.key;
      }
    }
    return path;
  }

  // yaml-cpp 0.7 takes a quote that is closed nowhere if the text ends with a newline.
  void CheckQuotes(const YAML::Mark& mark) const {
    const std::string_view source = Source(mark);
    if (!source.starts_with('"') && !source.starts_with('\'')) return;  // a block scalar
    const char quote = source[0];
    for (const char* c = source.data() + 1; c != text_.data() + text_.size(); ++c) {
      if (*c == '\\' && quote == '"' && c + 1 != text_.data() + text_.size()) {
        ++c;
      } else if (*c == quote) {
        if (quote == '"' || c + 1 == text_.data() + text_.size() || c[1] != quote) return;
        ++c;
      }
    }
    Fail(mark, "found a quote that is never closed; allowed: quotes in pairs");
  }

  void RefuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor) Fail(mark, "found an anchor (&name); allowed: values written out");
  }
  void RefuseTag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?") Fail(mark, "found a tag (" + Printable(tag) + "); allowed: plain values");
  }

  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    RefuseAnchor(mark, anchor);
    RefuseTag(mark, tag);
    if (open_.size() >= kMaxYamlDepth) {
      throw InputError(InputError::Kind::kConfig, PlaceOf(origin_, Line(mark)),
                       "nested deeper than " + std::to_string(kMaxYamlDepth) + " levels");
    }
    if (!open_.empty() && open_.back().node.kind == YamlNode::Kind::kMapping && !open_.back().has_key) {
      Fail(mark, "found a list or mapping as a key, or one that is never closed; allowed: a word as a key");
    }
    Level level;
    level.mark = mark;
    level.node = NodeAt(mark, kind);
    open_.push_back(std::move(level));
  }

  void Close() {
    Level level = std::move(open_.back());
    open_.pop_back();
    Add(level.mark, std::move(level.node));
  }

  void Add(const YAML::Mark& mark, YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = open_.back();
    if (level.node.kind == YamlNode::Kind::kList) {
      level.node.items.push_back(std::move(node));
    } else if (level.has_key) {
      level.node.entries.push_back({std::move(level.key), level.key_line, std::move(node)});
      level.has_key = false;
    } else {
      AddKey(mark, std::move(node));
    }
  }

  void AddKey(const YAML::Mark& mark, YamlNode node) {
    Level& level = open_.back();
    if (node.kind == YamlNode::Kind::kNull)
      Fail(mark, "found " + (node.text.empty() ? "nothing" : node.text) + " as a key; allowed: a word");
    if (node.text == "<<" && !node.quoted) Fail(mark, "found a merge key (<<); allowed: values written out");
    level.has_key = true;
    level.key = std::move(node.text);
    level.key_line = node.line;
    const auto [first, added] = level.key_lines.emplace(level.key, node.line);
    if (!added) {
      Fail(mark, "the key is repeated" +
                     (first->second == 0 ? "" : "; it stands first in line " + std::to_string(first->second)));
    }
  }

  Place origin_;
  std::string_view text_;
  std::vector<std::string_view> lines_;
  std::vector<Level> open_;
  YamlNode root_;
  int documents_ = 0;
};

// yaml-cpp's reason, in plainer words where it speaks of its own insides.
std::string Reason(const YAML::Exception& error) {
  const std::pair<std::string_view, std::string_view> kPlainer[] = {
      {YAML::ErrorMsg::MAP_VALUE, "a colon where no key stands before it; text with ': ' in it needs quotes"},
      {YAML::ErrorMsg::EOF_IN_SCALAR, "a quote that is never closed"},
      {YAML::ErrorMsg::END_OF_MAP_FLOW, "a '{' that is never closed"},
      {YAML::ErrorMsg::END_OF_SEQ_FLOW, "a '[' that is never closed"},
      {YAML::ErrorMsg::FLOW_END, "a '}' or ']' too many"},
      {YAML::ErrorMsg::BLOCK_ENTRY, "a '- ' where no list can start"},
      {YAML::ErrorMsg::UNKNOWN_TOKEN, "a character that no value starts with; such text needs quotes"},
      {YAML::ErrorMsg::UNKNOWN_ANCHOR, "an alias (*name), and no anchor of that name"},
  };
  for (const auto& [theirs, ours] : kPlainer) {
    if (error.msg.starts_with(theirs)) return std::string(ours);
  }
  return Printable(error.msg);
}

}  // namespace

YamlEntry* YamlNode::Find(std::string_view key) {
  for (YamlEntry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

const YamlEntry* YamlNode::Find(std::string_view key) const { return const_cast<YamlNode*>(this)->Find(key); }

YamlNode ParseYaml(std::string_view text, const Place& origin) {
  CheckCharacters(text, origin);
  TreeBuilder builder(text, origin);
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    builder.Fail(error.mark,
                 "not valid YAML: " + Reason(error) + " (column " + std::to_string(error.mark.column + 1) + ")");
  }
  return builder.Take();
}

}  // namespace scaletrace
