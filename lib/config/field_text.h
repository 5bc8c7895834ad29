// What the fields of fields.h look like as words: what a value may be, and how it is spelled in YAML. Shared by the
// reader's messages, the resolved config, the JSON Schema's and the reference's defaults.
#ifndef SCALETRACE_CONFIG_FIELD_TEXT_H_
#define SCALETRACE_CONFIG_FIELD_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/fields.h"
#include "base/number.h"

namespace scaletrace {

// "a, b, c".
template <class Names>
std::string Choices(const Names& names) {
  std::string text;
  for (const std::string_view name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

// What a field of type T may be: "an integer >= 1", "true or false", "strict, excess" and so on.
template <class T>
std::string AllowedText(const Field& field) {
  if constexpr (kIsOptional<T>) {
    return AllowedText<typename T::value_type>(field) + ", or none";
  } else if constexpr (kIsList<T>) {
    const std::string entry = AllowedText<typename T::value_type>(field);
    return field.names.empty() ? "a list, each entry " + entry : "a list of any of " + entry;
  } else if constexpr (std::is_same_v<T, bool>) {
    return "true or false";
  } else if constexpr (std::is_enum_v<T>) {
    return Choices(EnumNames(T{}));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return field.names.empty() ? "text" : Choices(field.names);
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    // 2^64 - 1 is no double, and so no limit.
    return field.limits.low > 0 || field.limits.high < 0x1p64 ? Describe(field.limits, true)
                                                              : "an integer from 0 to 18446744073709551615";
  } else {
    return Describe(field.limits, std::is_integral_v<T>);
  }
}

// A string as a YAML scalar that reads back to it: plain where that is beyond doubt, else in double quotes.
std::string YamlString(std::string_view text);

// A value as a YAML flow scalar or list, on one line, that reads back to it.
template <class T>
std::string YamlText(const T& value) {
  if constexpr (kIsOptional<T>) {
    return value ? YamlText(*value) : "none";
  } else if constexpr (kIsList<T>) {
    std::string text = "[";
    for (std::size_t i = 0; i < value.size(); ++i) {
      text += (i > 0 ? ", " : "") + YamlText<typename T::value_type>(value[i]);
    }
    return text + "]";
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(EnumNames(value)[static_cast<std::size_t>(value)]);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return YamlString(value);
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {
    return ToText(value);
  }
}

}  // namespace scaletrace

#endif  // SCALETRACE_CONFIG_FIELD_TEXT_H_
