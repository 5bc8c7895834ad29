#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace scaletrace {
namespace {

// The parser reads through this, so that its events can be told their place in the text: all copies share one position.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor() = default;
  Cursor(const char** position, const char* end) : position_(position), end_(end) {}
  reference operator*() const { return **position_; }
  Cursor& operator++() {
    ++*position_;
    return *this;
  }
  Cursor operator++(int) { return ++*this; }
  bool operator==(const Cursor&) const { return *position_ == end_; }  // only ever compared with the end
  bool operator!=(const Cursor& other) const { return !(*this == other); }

 private:
  const char** position_ = nullptr;
  const char* end_ = nullptr;
};

bool IsNumberCharacter(char c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
}

}  // namespace

// Receives the parser's events and builds the values.
class JsonBuilder {
 public:
  JsonBuilder(std::string_view text, const std::string& file, std::size_t first_line)
      : text_(text), file_(file), line_(first_line), counted_(text.data()), position_(text.data()) {}

  std::unique_ptr<JsonValue> Build() {
    const char* end = text_.data() + text_.size();
    nlohmann::json::sax_parse(Cursor(&position_, end), Cursor(&position_, end), this);
    SCALETRACE_CHECK(open_.empty());
    return std::move(root_);
  }

  // The events.
  bool null() { return Add(std::monostate()); }
  bool boolean(bool value) { return Add(value); }
  bool number_integer(std::int64_t) { return Number(); }
  bool number_unsigned(std::uint64_t) { return Number(); }
  bool number_float(double, const std::string&) { return Number(); }
  bool string(std::string& value) { return Add(std::make_unique<std::string>(std::move(value))); }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool start_object(std::size_t) { return Open(std::make_unique<JsonValue::Object>()); }
  bool start_array(std::size_t) { return Open(std::make_unique<JsonValue::Array>()); }
  bool key(std::string& value) {
    std::get<std::unique_ptr<JsonValue::Object>>(open_.back()->value_)->push_back({std::move(value), {}});
    return true;
  }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool end_object() {
    const JsonValue::Object& members = *std::get<std::unique_ptr<JsonValue::Object>>(open_.back()->value_);
    std::vector<std::pair<std::string_view, std::size_t>> keys;
    for (std::size_t i = 0; i < members.size(); ++i) keys.emplace_back(members[i].key, i);
    std::sort(keys.begin(), keys.end());
    const auto twin =
        std::adjacent_find(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
    if (twin != keys.end()) {
      Fail(members[std::next(twin)->second].value.line(), "the key \"" + Printable(twin->first) +
                                                              "\" is repeated; it stands first in line " +
                                                              std::to_string(members[twin->second].value.line()));
    }
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) {
    std::string_view what = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing value - ..."
    for (const std::string_view start : {"] ", ": "}) {
      const std::size_t at = what.find(start);
      if (at != std::string_view::npos && (start == "] " || what.starts_with("parse error at")))
        what.remove_prefix(at + 2);
    }
    Fail(Line(), "not valid JSON: " + Printable(what, 160));
  }

 private:
  [[noreturn]] void Fail(std::size_t line, const std::string& message) const {
    throw InputError(InputError::Kind::kData, {file_, line, ""}, message);
  }

  // The line that the parser is in. It may have looked at one character behind the last token, which does not count.
  std::size_t Line() {
    const char* end = position_ > counted_ && position_[-1] == '\n' ? position_ - 1 : position_;
    line_ += static_cast<std::size_t>(std::count(counted_, end, '\n'));
    counted_ = end;
    return line_;
  }

  JsonValue& Place() {
    if (open_.empty()) {
      root_ = std::make_unique<JsonValue>();
      return *root_;
    }
    if (auto* array = std::get_if<std::unique_ptr<JsonValue::Array>>(&open_.back()->value_))
      return (*array)->emplace_back();
    return std::get<std::unique_ptr<JsonValue::Object>>(open_.back()->value_)->back().value;
  }

  template <class T>
  bool Add(T value, float f32 = 0) {
    JsonValue& place = Place();
    place.line_ = static_cast<std::uint32_t>(Line());
    place.value_ = std::move(value);
    place.f32_ = f32;
    return true;
  }

  template <class T>
  bool Open(T container) {
    if (open_.size() >= Json::kMaxDepth)
      Fail(Line(), "nested deeper than " + std::to_string(Json::kMaxDepth) + " levels");
    JsonValue& place = Place();
    place.line_ = static_cast<std::uint32_t>(Line());
    place.value_ = std::move(container);
    open_.push_back(&place);  // stays where it is: its own container grows only after it is closed
    return true;
  }

  // Numbers are read from the text, since the parser hands over neither -0 nor the decimals of an integer.
  bool Number() {
    const char* end = position_;
    if (!IsNumberCharacter(end[-1])) --end;
    const char* begin = end;
    while (begin > text_.data() && IsNumberCharacter(begin[-1])) --begin;
    const std::string_view token(begin, static_cast<std::size_t>(end - begin));
    if (const auto integer = ReadInteger(token); integer && (*integer != 0 || token[0] != '-')) {
      return Add(*integer, static_cast<float>(*integer));
    }
    if (const auto integer = ReadUnsigned(token)) return Add(*integer, static_cast<float>(*integer));
    const std::optional<double> f64 = ReadDouble(token);
    if (!f64) Fail(Line(), "not valid JSON: found the number " + Printable(token));
    return Add(*f64, ReadFloat(token).value_or(std::copysign(std::numeric_limits<float>::infinity(), *f64)));
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t line_;
  const char* counted_;   // line_ is the line of this character
  const char* position_;  // where the parser is
  std::unique_ptr<JsonValue> root_;
  std::vector<JsonValue*> open_;
};

namespace {

// "inf", "-inf" and "nan".
std::optional<double> NonFinite(std::string_view text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

template <class T>
std::string Quoted(const T& text) {
  return "\"" + Printable(text) + "\"";
}

}  // namespace

Json Json::Parse(std::string_view text, const std::string& file, std::size_t max_bytes, std::size_t first_line) {
  const auto fail = [&](std::size_t line, const std::string& message) {
    throw InputError(InputError::Kind::kData, {file, line, ""}, message);
  };
  if (text.size() > max_bytes) {
    fail(first_line,
         "found " + std::to_string(text.size()) + " bytes of JSON; allowed: at most " + std::to_string(max_bytes));
  }
  // The parser would take a NUL for the end of the input and drop a byte order mark without a word.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    fail(first_line +
             static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n')),
         "not valid JSON: found a NUL byte");
  }
  if (text.starts_with("\xEF\xBB\xBF")) fail(first_line, "not valid JSON: found a byte order mark");
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) fail(first_line, "not valid JSON: found nothing");
  Json json;
  json.file_ = file;
  json.root_ = JsonBuilder(text, json.file_, first_line).Build();
  return json;
}

double Json::AsF64(const JsonValue& value) const {
  if (const auto* number = std::get_if<double>(&value.value_)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value.value_)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&value.value_)) return static_cast<double>(*number);
  if (const auto* text = std::get_if<std::unique_ptr<std::string>>(&value.value_)) {
    if (const auto number = NonFinite(**text)) return *number;
  }
  FailFound(value, "a number, \"inf\", \"-inf\" or \"nan\"");
}

float Json::AsF32(const JsonValue& value) const {
  const double f64 = AsF64(value);
  if (std::holds_alternative<std::unique_ptr<std::string>>(value.value_)) return static_cast<float>(f64);
  if (!std::isfinite(value.f32_))
    FailFound(value, "a number that float32 holds (up to 3.4028235e+38), \"inf\", \"-inf\" or \"nan\"");
  return value.f32_;
}

std::int64_t Json::AsInteger(const JsonValue& value) const {
  if (const auto* number = std::get_if<std::int64_t>(&value.value_)) return *number;
  FailFound(value, "an integer of 64 bits, written without point and exponent");
}

std::uint64_t Json::AsUnsigned(const JsonValue& value) const {
  if (const auto* number = std::get_if<std::uint64_t>(&value.value_)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value.value_); number != nullptr && *number >= 0) {
    return static_cast<std::uint64_t>(*number);
  }
  FailFound(value, "an integer from 0 to 2^64 - 1, written without point and exponent");
}

bool Json::AsBool(const JsonValue& value) const {
  if (const auto* boolean = std::get_if<bool>(&value.value_)) return *boolean;
  FailFound(value, "true or false");
}

const std::string& Json::AsString(const JsonValue& value) const {
  if (const auto* text = std::get_if<std::unique_ptr<std::string>>(&value.value_)) return **text;
  FailFound(value, "a string");
}

const JsonValue::Array& Json::AsArray(const JsonValue& value) const {
  if (const auto* array = std::get_if<std::unique_ptr<JsonValue::Array>>(&value.value_)) return **array;
  FailFound(value, "a list");
}

const JsonValue::Object& Json::AsObject(const JsonValue& value) const {
  if (const auto* object = std::get_if<std::unique_ptr<JsonValue::Object>>(&value.value_)) return **object;
  FailFound(value, "an object");
}

std::vector<float> Json::AsF32List(const JsonValue& value) const {
  const JsonValue::Array& array = AsArray(value);
  std::vector<float> list;
  list.reserve(array.size());
  for (const JsonValue& entry : array) list.push_back(AsF32(entry));
  return list;
}

Json::Matrix Json::AsF32Matrix(const JsonValue& value) const {
  const JsonValue::Array& rows = AsArray(value);
  Matrix matrix;
  matrix.rows = rows.size();
  if (rows.empty()) FailFound(value, "a list of at least one row");
  for (const JsonValue& row : rows) {
    const JsonValue::Array& entries = AsArray(row);
    if (matrix.entries.empty()) {
      if (entries.empty()) FailFound(row, "a row of at least one number");
      matrix.columns = entries.size();
      matrix.entries.reserve(matrix.rows * matrix.columns);
    }
    if (entries.size() != matrix.columns)
      FailFound(row, "a list of " + std::to_string(matrix.columns) + ", like the first row");
    for (const JsonValue& entry : entries) matrix.entries.push_back(AsF32(entry));
  }
  return matrix;
}

const JsonValue* Json::Find(const JsonValue& value, std::string_view key) const {
  for (const JsonMember& member : AsObject(value)) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

const JsonValue& Json::Member(const JsonValue& value, std::string_view key) const {
  if (const JsonValue* member = Find(value, key)) return *member;
  Fail(value, "the key " + Quoted(key) + " is missing");
}

void Json::AllowKeys(const JsonValue& value, const std::vector<std::string_view>& keys) const {
  for (const JsonMember& member : AsObject(value)) {
    if (std::find(keys.begin(), keys.end(), member.key) != keys.end()) continue;
    std::string allowed;
    for (const std::string_view key : keys) allowed += (allowed.empty() ? "" : ", ") + std::string(key);
    throw InputError(InputError::Kind::kData, {file_, member.value.line(), PathOf(value)},
                     "found the key " + Quoted(member.key) + DidYouMean(member.key, keys) + "; allowed: " + allowed);
  }
}

void Json::FailFound(const JsonValue& value, const std::string& allowed) const {
  std::string found;
  if (IsNull(value)) {
    found = "null";
  } else if (const auto* boolean = std::get_if<bool>(&value.value_)) {
    found = *boolean ? "true" : "false";
  } else if (const auto* signed_integer = std::get_if<std::int64_t>(&value.value_)) {
    found = std::to_string(*signed_integer);
  } else if (const auto* integer = std::get_if<std::uint64_t>(&value.value_)) {
    found = std::to_string(*integer);
  } else if (const auto* number = std::get_if<double>(&value.value_)) {
    found = ToText(*number);
    if (found.find_first_of(".e") == std::string::npos && found != "-0")
      found += ".0";  // it wasn't written as an integer
  } else if (const auto* text = std::get_if<std::unique_ptr<std::string>>(&value.value_)) {
    found = Quoted(**text);
  } else if (const auto* array = std::get_if<std::unique_ptr<JsonValue::Array>>(&value.value_)) {
    found = (*array)->empty() ? "an empty list" : "a list of " + std::to_string((*array)->size());
  } else {
    found = "an object";
  }
  Fail(value, "found " + found + "; allowed: " + allowed);
}

void Json::Fail(const JsonValue& value, const std::string& message) const {
  throw InputError(InputError::Kind::kData, {file_, value.line(), PathOf(value)}, message);
}

std::string Json::PathOf(const JsonValue& value) const {
  std::string path;
  const auto find = [&](const auto& self, const JsonValue& here) -> bool {
    if (&here == &value) return true;
    const std::size_t length = path.size();
    if (const auto* array = std::get_if<std::unique_ptr<JsonValue::Array>>(&here.value_)) {
      for (std::size_t i = 0; i < (*array)->size(); ++i) {
        path += '[' + std::to_string(i) + ']';
        if (self(self, (**array)[i])) return true;
        path.resize(length);
      }
    } else if (const auto* object = std::get_if<std::unique_ptr<JsonValue::Object>>(&here.value_)) {
      for (const JsonMember& member : **object) {
        if (!path.empty()) path += '.';
        path += member.key;
        if (self(self, member.value)) return true;
        path.resize(length);
      }
    }
    return false;
  };
  SCALETRACE_CHECK(find(find, *root_));
  return path;
}

std::string ToJsonString(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

}  // namespace scaletrace
