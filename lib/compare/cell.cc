#include "compare/cell.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/number.h"

namespace scaletrace {
namespace {

bool SameIgnoringCase(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() &&
         std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) { return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b; });
}

// A decimal as other programs print it ("1.", ".5", "+1", "1E+05", "007"), to what base/number.h reads; false where it is something else.
bool Normalize(std::string_view text, std::string& plain) {
  std::size_t i = 0;
  plain.clear();
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) {
    if (text[i] == '-') plain += '-';
    ++i;
  }
  const auto digits = [&](bool whole) {
    const std::size_t start = i;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
    std::string_view found = text.substr(start, i - start);
    const std::size_t count = found.size();
    if (whole) {
      while (found.size() > 1 && found[0] == '0') found.remove_prefix(1);
    }
    plain += found.empty() ? "0" : found;
    return count;
  };
  std::size_t count = digits(true);
  if (i < text.size() && text[i] == '.') {
    ++i;
    plain += '.';
    count += digits(false);
  }
  plain += i < text.size() ? std::string(text.substr(i)) : "";
  return count > 0;
}

template <class T>
bool ReadSpecial(std::string_view text, T& value) {
  const bool negative = text.starts_with('-');
  std::string_view word = text;
  if (negative || text.starts_with('+')) word.remove_prefix(1);
  if (SameIgnoringCase(word, "nan")) {
    value = std::numeric_limits<T>::quiet_NaN();
    return true;
  }
  if (SameIgnoringCase(word, "inf") || SameIgnoringCase(word, "infinity")) {
    value = negative ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
    return true;
  }
  return false;
}

template <class T>
bool ReadNumber(std::string_view text, T& value) {
  const auto plain_read = [&](std::string_view plain) {
    const auto read = [&] {
      if constexpr (std::is_same_v<T, float>) {
        return ReadCsvFloat(plain);
      } else {
        return ReadCsvDouble(plain);
      }
    }();
    if (read) value = *read;
    return read.has_value();
  };
  if (plain_read(text) || ReadSpecial(text, value)) return true;
  std::string plain;
  return Normalize(text, plain) && plain != text && plain_read(plain);
}

std::int64_t Order(float value) {
  const auto bits = std::bit_cast<std::int32_t>(value);
  return bits < 0 ? -static_cast<std::int64_t>(bits & 0x7fffffff) : bits;
}

// -2^63 < the result < 2^63.
std::int64_t Order(double value) {
  const auto bits = std::bit_cast<std::int64_t>(value);
  return bits < 0 ? -(bits & std::numeric_limits<std::int64_t>::max()) : bits;
}

bool IsNumber(const Cell& c) { return c.kind == Cell::Kind::kFloat32 || c.kind == Cell::Kind::kFloat64; }

// Integers as doubles, where a column that scaletrace does not know has both.
double Value(const Cell& c) { return c.kind == Cell::Kind::kInteger ? static_cast<double>(c.integer) : c.number; }

}  // namespace

bool ReadCell(std::string_view text, CellType type, Cell& cell) {
  cell = Cell{};
  if (type == CellType::kWord) {
    cell.kind = Cell::Kind::kWord;
    cell.word = text;
    return true;
  }
  if (text.empty()) return true;
  switch (type) {
    case CellType::kInteger:
    case CellType::kFlag: {
      cell.kind = Cell::Kind::kInteger;
      if (const auto read = ReadInteger(text)) {
        cell.integer = *read;
      } else if (SameIgnoringCase(text, "true") || SameIgnoringCase(text, "false")) {
        if (type != CellType::kFlag) return false;
        cell.integer = text.size() == 4 ? 1 : 0;
      } else {
        double value = 0;
        if (!ReadNumber(text, value) || !(std::fabs(value) <= 9007199254740992.0) || value != std::floor(value)) return false;
        cell.integer = static_cast<std::int64_t>(value);
      }
      return type == CellType::kInteger || cell.integer == 0 || cell.integer == 1;
    }
    case CellType::kFloat32: {
      float value = 0;
      if (ReadNumber(text, value)) {
        cell.kind = Cell::Kind::kFloat32;
        cell.number = static_cast<double>(value);
        return true;
      }
      [[fallthrough]];
    }
    default:
      cell.kind = Cell::Kind::kFloat64;
      return ReadNumber(text, cell.number);
  }
}

Cell ReadAnyCell(std::string_view text) {
  Cell cell;
  if (text.empty()) return cell;
  if (const auto read = ReadInteger(text)) {
    cell.kind = Cell::Kind::kInteger;
    cell.integer = *read;
  } else if (ReadNumber(text, cell.number)) {
    cell.kind = Cell::Kind::kFloat64;
  } else {
    cell.kind = Cell::Kind::kWord;
    cell.word = text;
  }
  return cell;
}

Tolerance ToleranceOf(const Tolerances& tolerances, std::string_view name) {
  if (const auto found = tolerances.columns.find(std::string(name)); found != tolerances.columns.end()) return found->second;
  const Column* column = FindColumn(name);
  const bool exact = column != nullptr && column->rule == CellRule::kExact;
  if (exact) return {};
  if (tolerances.others) return *tolerances.others;
  return {.ulps = kUlps};
}

bool SameCell(const Cell& expected, const Cell& got, const Tolerance& tolerance) {
  if (tolerance.ignore) return true;
  using Kind = Cell::Kind;
  if (expected.kind == Kind::kWord || got.kind == Kind::kWord) return expected.kind == got.kind && expected.word == got.word;
  if (expected.kind == Kind::kEmpty || got.kind == Kind::kEmpty) return expected.kind == got.kind;
  if (expected.kind == Kind::kInteger && got.kind == Kind::kInteger && expected.integer == got.integer) return true;
  const double a = Value(expected), b = Value(got);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b)) return expected.kind != Kind::kInteger || got.kind != Kind::kInteger;
  if (std::isinf(a) || std::isinf(b)) return false;
  const double apart = std::fabs(a - b);
  // Integers of a column that scaletrace knows are floats nowhere: units in the last place say nothing about them.
  const bool both_integers = expected.kind == Kind::kInteger && got.kind == Kind::kInteger;
  return (tolerance.absolute > 0 && apart <= tolerance.absolute) || (tolerance.relative > 0 && apart <= tolerance.relative * std::fabs(a)) ||
         (tolerance.ulps > 0 && !both_integers && UlpsBetween(expected, got, tolerance.of) <= tolerance.ulps);
}

double UlpsBetween(const Cell& first, const Cell& second, std::optional<CellType> of) {
  const double a = Value(first), b = Value(second);
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::quiet_NaN();
  const bool narrow = of ? *of == CellType::kFloat32 : first.kind == Cell::Kind::kFloat32 && second.kind == Cell::Kind::kFloat32;
  if (narrow) return std::fabs(static_cast<double>(Order(static_cast<float>(a)) - Order(static_cast<float>(b))));
  const std::int64_t x = Order(a), y = Order(b);
  // The difference of two 64-bit integers fits in an unsigned one.
  return static_cast<double>(x > y ? static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y) : static_cast<std::uint64_t>(y) - static_cast<std::uint64_t>(x));
}

std::string BitsText(const Cell& cell) {
  if (!IsNumber(cell)) return "";
  char text[24];
  if (cell.kind == Cell::Kind::kFloat32) {
    std::snprintf(text, sizeof(text), "0x%08x", static_cast<unsigned>(std::bit_cast<std::uint32_t>(static_cast<float>(cell.number))));
  } else {
    std::snprintf(text, sizeof(text), "0x%016llx", static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(cell.number)));
  }
  return text;
}

}  // namespace scaletrace
