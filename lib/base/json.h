// Strict JSON: a reader that limits depth and size while it reads and keeps both roundings of a number, and readers and
// writers of any struct with Visit (fields.h). What the objects mean: lib/data (given data), lib/scaling (policy
// states), lib/train (state files), apps (step).
#ifndef SCALETRACE_BASE_JSON_H_
#define SCALETRACE_BASE_JSON_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/fields.h"
#include "base/number.h"

namespace scaletrace {

struct JsonMember;
class JsonBuilder;

// One value of a Json document: only what was read. Reading it as something is the document's part, which knows file
// and key path.
class JsonValue {
 public:
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;

  std::size_t line() const { return line_; }

 private:
  friend class Json;
  friend class JsonBuilder;

  // int64_t: an integer in that range; uint64_t: one above it; double: any other number, among them -0.
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::unique_ptr<std::string>,
               std::unique_ptr<Array>, std::unique_ptr<Object>>
      value_;
  float f32_ = 0;  // of a number: rounded once, from the token; inf where that is too large
  std::uint32_t line_ = 0;
};
static_assert(sizeof(JsonValue) <= 24);

struct JsonMember {
  std::string key;
  JsonValue value;
};

// A whole document. All errors are InputErrors (kData) with file, line, key path, what was found and what is allowed.
// References and pointers that it hands out live as long as the document, and may not be moved from.
class Json {
 public:
  static constexpr int kMaxDepth = 64;

  // One JSON value with nothing but white space around it. Errors: more than `max_bytes`, deeper than kMaxDepth, a
  // repeated key, a NUL byte, broken UTF-8, a number beyond double. `first_line`: the number of the text's first line,
  // for one object of many in JSON lines.
  static Json Parse(std::string_view text, const std::string& file, std::size_t max_bytes, std::size_t first_line = 1);

  const JsonValue& root() const { return *root_; }
  const std::string& file() const { return file_; }

  // Readers of numbers take the strings "inf", "-inf" and "nan" besides. AsF32 has rounded once, from the decimals; a
  // number too large for the type is an error.
  float AsF32(const JsonValue& value) const;
  double AsF64(const JsonValue& value) const;
  // A number written without point and exponent.
  std::int64_t AsInteger(const JsonValue& value) const;
  std::uint64_t AsUnsigned(const JsonValue& value) const;
  bool AsBool(const JsonValue& value) const;
  const std::string& AsString(const JsonValue& value) const;
  const JsonValue::Array& AsArray(const JsonValue& value) const;
  const JsonValue::Object& AsObject(const JsonValue& value) const;
  bool IsNull(const JsonValue& value) const { return std::holds_alternative<std::monostate>(value.value_); }

  // A list of numbers, as AsF32.
  std::vector<float> AsF32List(const JsonValue& value) const;
  struct Matrix {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::vector<float> entries;  // row-major
  };
  // A list of lists of numbers, all of the same length; neither may be empty.
  Matrix AsF32Matrix(const JsonValue& value) const;

  // The member `key` of an object, or nullptr. An error where `value` is no object.
  const JsonValue* Find(const JsonValue& value, std::string_view key) const;
  // The same; an error where it is missing.
  const JsonValue& Member(const JsonValue& value, std::string_view key) const;
  // An error where the object has a key that is not among `keys`.
  void AllowKeys(const JsonValue& value, const std::vector<std::string_view>& keys) const;

  // "found FOUND; allowed: ALLOWED" at `value`.
  [[noreturn]] void FailFound(const JsonValue& value, const std::string& allowed) const;
  // Any message, with the file, line and key path of `value`, which must be a part of this document.
  [[noreturn]] void Fail(const JsonValue& value, const std::string& message) const;

 private:
  Json() = default;
  // "params.w[0][1]". Found by a search through the document: errors may be slow.
  std::string PathOf(const JsonValue& value) const;

  std::string file_;
  std::unique_ptr<JsonValue> root_;  // on the heap, so that a moved document keeps its references
};

// `text` in quotes, escaped. Broken UTF-8 becomes U+FFFD.
std::string ToJsonString(std::string_view text);

namespace internal {

class JsonFieldsWriter {
 public:
  template <class T>
  void Value(const Field& field, const T& value) {
    Key(field.key);
    Put(value);
  }
  template <class T>
  void Group(const Field& field, const T& group) {
    Key(field.key);
    Open();
    T::Visit(group, *this);
    out_ += '}';
  }
  template <class T>
  void Kind(const Field& field, const T& variant) {
    Value(field, std::string(KindName(variant)));
    std::visit([this]<class A>(const A& alternative) { A::Visit(alternative, *this); }, variant);
  }
  template <class T>
  void KindGroup(const Field& field, std::string_view tag, const T& variant) {
    Key(field.key);
    Open();
    Kind({tag, field.doc}, variant);
    out_ += '}';
  }

  void Open() {
    out_ += '{';
    first_ = true;
  }
  std::string Close() && { return std::move(out_) + "}"; }

 private:
  void Key(std::string_view key) {
    if (!first_) out_ += ", ";
    first_ = false;
    out_ += ToJsonString(key) + ": ";
  }
  template <class T>
  void Put(const T& value) {
    if constexpr (kIsOptional<T>) {
      if (value) {
        Put(*value);
      } else {
        out_ += "null";
      }
    } else if constexpr (kIsList<T>) {
      out_ += '[';
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (i > 0) out_ += ", ";
        Put<typename T::value_type>(value[i]);
      }
      out_ += ']';
    } else if constexpr (std::is_enum_v<T>) {
      out_ += ToJsonString(EnumNames(value)[static_cast<std::size_t>(value)]);
    } else if constexpr (std::is_same_v<T, std::string>) {
      out_ += ToJsonString(value);
    } else if constexpr (std::is_same_v<T, bool>) {
      out_ += value ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
      out_ += std::to_string(value);
    } else {
      out_ += ToJsonText(value);
    }
  }

  std::string out_;
  bool first_ = true;
};

class JsonFieldsReader {
 public:
  JsonFieldsReader(const Json& json, const JsonValue& object) : json_(json), object_(object) {}

  template <class T>
  void Value(const Field& field, T& value) {
    keys_.push_back(field.key);
    Get(json_.Member(object_, field.key), value);
  }
  template <class T>
  void Group(const Field& field, T& group) {
    keys_.push_back(field.key);
    JsonFieldsReader inner(json_, json_.Member(object_, field.key));
    T::Visit(group, inner);
    inner.Finish();
  }
  template <class T>
  void Kind(const Field& field, T& variant) {
    keys_.push_back(field.key);
    const JsonValue& tag = json_.Member(object_, field.key);
    if (!SetKind(variant, json_.AsString(tag))) json_.FailFound(tag, Choices(KindNames<T>()));
    std::visit([this]<class A>(A& alternative) { A::Visit(alternative, *this); }, variant);
  }
  template <class T>
  void KindGroup(const Field& field, std::string_view tag, T& variant) {
    keys_.push_back(field.key);
    JsonFieldsReader inner(json_, json_.Member(object_, field.key));
    inner.Kind({tag, field.doc}, variant);
    inner.Finish();
  }

  void Finish() const { json_.AllowKeys(object_, keys_); }

 private:
  static std::string Choices(std::span<const std::string_view> names) {
    std::string text;
    for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
    return text;
  }
  template <class T>
  void Get(const JsonValue& json, T& value) {
    if constexpr (kIsOptional<T>) {
      value.reset();
      if (!json_.IsNull(json)) Get(json, value.emplace());
    } else if constexpr (kIsList<T>) {
      value.clear();
      for (const JsonValue& entry : json_.AsArray(json)) {
        typename T::value_type read{};
        Get(entry, read);
        value.push_back(std::move(read));
      }
    } else if constexpr (std::is_enum_v<T>) {
      const std::string& name = json_.AsString(json);
      const auto names = EnumNames(T{});
      std::size_t i = 0;
      while (i < names.size() && names[i] != name) ++i;
      if (i == names.size()) json_.FailFound(json, Choices(names));
      value = static_cast<T>(i);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = json_.AsString(json);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = json_.AsBool(json);
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      value = json_.AsUnsigned(json);
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      value = json_.AsInteger(json);
    } else if constexpr (std::is_same_v<T, float>) {
      value = json_.AsF32(json);
    } else {
      static_assert(std::is_same_v<T, double>, "fields.h lists the types that a field may have");
      value = json_.AsF64(json);
    }
  }

  const Json& json_;
  const JsonValue& object_;
  std::vector<std::string_view> keys_;
};

}  // namespace internal

// The fields of a struct with Visit as one object on one line. Numbers read back to the same value (the sign of a NaN
// is dropped), an absent optional is null.
template <class T>
std::string FieldsToJson(const T& fields) {
  internal::JsonFieldsWriter writer;
  writer.Open();
  T::Visit(fields, writer);
  return std::move(writer).Close();
}

// Reads what FieldsToJson writes, from the object `value` of `json`. Unknown and missing keys are errors. Limits are
// not looked at: a state may hold what no config may (an infinite scale).
template <class T>
void FieldsFromJson(const Json& json, const JsonValue& value, T& fields) {
  internal::JsonFieldsReader reader(json, value);
  T::Visit(fields, reader);
  reader.Finish();
}

}  // namespace scaletrace

#endif  // SCALETRACE_BASE_JSON_H_
