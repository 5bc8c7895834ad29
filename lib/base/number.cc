#include "base/number.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <system_error>

namespace scaletrace {
namespace {

char* Copy(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

template <class T>
char* WriteFloating(char* out, T value) {
  // to_chars prints "-nan" for a NaN with its sign bit set.
  if (std::isnan(value)) return Copy(out, "NaN");
  if (std::isinf(value)) return Copy(out, value > 0 ? "inf" : "-inf");
  return std::to_chars(out, out + kMaxNumberLength, value).ptr;
}

template <class T>
std::string Text(T value) {
  char buffer[kMaxNumberLength];
  return {buffer, WriteFloating(buffer, value)};
}

template <class T>
std::string JsonText(T value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  // Many JSON readers take "-0" for an integer and lose its sign.
  if (value == 0 && std::signbit(value)) return "-0.0";
  return Text(value);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Whether all of `text` is [-] int [. digits] [e [+-] digits], int without leading zeros.
bool IsPlainDecimal(std::string_view text, bool integer) {
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t start = i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    return i - start;
  };
  if (i < text.size() && text[i] == '-') ++i;
  const std::size_t first = i;
  const std::size_t whole = digits();
  if (whole == 0 || (whole > 1 && text[first] == '0')) return false;
  if (integer) return i == text.size();
  if (i < text.size() && text[i] == '.') {
    ++i;
    if (digits() == 0) return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

// from_chars gives result_out_of_range for an overflow and an underflow alike and stores nothing. An underflow is told from the sign of the
// decimal exponent of the leading digit.
bool IsBelowOne(std::string_view text) {
  std::int64_t exponent = 0;
  const std::size_t e = text.find_first_of("eE");
  if (e != std::string_view::npos) {
    std::string_view digits = text.substr(e + 1);
    const bool negative = digits.front() == '-';
    if (digits.front() == '+' || negative) digits.remove_prefix(1);
    const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (r.ec != std::errc{}) exponent = std::numeric_limits<std::int64_t>::max() / 2;
    if (negative) exponent = -exponent;
  }
  // The place of the first digit that is not 0, counted from the point.
  std::int64_t place = 0;
  std::string_view mantissa = text.substr(0, e);
  if (mantissa.front() == '-') mantissa.remove_prefix(1);
  const std::size_t point = mantissa.find('.');
  const std::string_view whole = mantissa.substr(0, point);
  if (whole != "0") {
    place = static_cast<std::int64_t>(whole.size());
  } else if (point != std::string_view::npos) {
    const std::size_t first = mantissa.find_first_not_of('0', point + 1);
    place = first == std::string_view::npos ? 0 : -static_cast<std::int64_t>(first - point - 1);
  }
  return exponent + place <= 0;
}

template <class T>
std::optional<T> ReadFloating(std::string_view text) {
  if (!IsPlainDecimal(text, /*integer=*/false)) return std::nullopt;
  T value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range) {
    if (!IsBelowOne(text)) return std::nullopt;
    return text.front() == '-' ? -T{0} : T{0};
  }
  if (result.ec != std::errc{} || std::isinf(value)) return std::nullopt;
  return value;
}

template <class T>
std::optional<T> ReadWhole(std::string_view text) {
  if (!IsPlainDecimal(text, /*integer=*/true)) return std::nullopt;
  T value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
std::optional<T> ReadCsv(std::string_view text) {
  if (text == "NaN") return std::numeric_limits<T>::quiet_NaN();
  if (text == "inf") return std::numeric_limits<T>::infinity();
  if (text == "-inf") return -std::numeric_limits<T>::infinity();
  return ReadFloating<T>(text);
}

}  // namespace

char* WriteNumber(char* out, float value) { return WriteFloating(out, value); }
char* WriteNumber(char* out, double value) { return WriteFloating(out, value); }
char* WriteNumber(char* out, std::int64_t value) { return std::to_chars(out, out + kMaxNumberLength, value).ptr; }

std::string ToText(float value) { return Text(value); }
std::string ToText(double value) { return Text(value); }
std::string ToJsonText(float value) { return JsonText(value); }
std::string ToJsonText(double value) { return JsonText(value); }

std::string ToScaleText(double value) {
  int exponent = 0;
  if (std::isfinite(value) && std::frexp(value, &exponent) == 0.5 && (exponent - 1 >= 10 || exponent - 1 <= -10)) {
    return "2^" + std::to_string(exponent - 1);
  }
  const auto narrow = static_cast<float>(value);
  return static_cast<double>(narrow) == value ? ToText(narrow) : ToText(value);
}

std::optional<float> ReadFloat(std::string_view text) { return ReadFloating<float>(text); }
std::optional<double> ReadDouble(std::string_view text) { return ReadFloating<double>(text); }
std::optional<std::int64_t> ReadInteger(std::string_view text) { return ReadWhole<std::int64_t>(text); }
std::optional<std::uint64_t> ReadUnsigned(std::string_view text) {
  if (!text.empty() && text.front() == '-') return std::nullopt;
  return ReadWhole<std::uint64_t>(text);
}

std::optional<float> ReadCsvFloat(std::string_view text) { return ReadCsv<float>(text); }
std::optional<double> ReadCsvDouble(std::string_view text) { return ReadCsv<double>(text); }

}  // namespace scaletrace
