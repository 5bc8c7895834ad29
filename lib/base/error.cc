#include "base/error.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace scaletrace {
namespace {

std::string OneLine(const Place& place, const std::string& message) {
  std::string line = Printable(place.file, 200);
  if (place.line > 0) line += ":" + std::to_string(place.line);
  if (!line.empty()) line += ": ";
  if (!place.key.empty()) line += Printable(place.key, 200) + ": ";
  return line + message;
}

// Letters inserted, left out, replaced or swapped with their neighbour ("optimal string alignment").
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_up, up, row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    two_up = std::exchange(up, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({up[j] + 1, row[j - 1] + 1, up[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], two_up[j - 2] + 1);
    }
  }
  return row[b.size()];
}

// Length of the well-formed UTF-8 sequence that `text` starts with, or 0. Overlong forms of two bytes count as broken;
// finer points do not matter in a message.
std::size_t Utf8Length(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  const std::size_t length = byte < 0x80                   ? 1
                             : byte >= 0xC2 && byte < 0xE0 ? 2
                             : byte >= 0xE0 && byte < 0xF0 ? 3
                             : byte >= 0xF0 && byte < 0xF5 ? 4
                                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

InputError::InputError(Kind kind, const Place& place, const std::string& message)
    : std::runtime_error(OneLine(place, message)), kind_(kind) {}

IoError::IoError(const std::string& path, const std::string& doing, int error_number)
    : std::runtime_error(Printable(path, 200) + ": " + doing + ": " + std::strerror(error_number)) {}

IoError::IoError(const std::string& path, const std::string& message)
    : std::runtime_error(Printable(path, 200) + ": " + message) {}

InternalError::InternalError(const char* file, int line, const char* condition)
    : std::logic_error(std::string(file) + ":" + std::to_string(line) + ": check failed: " + condition) {}

std::string_view NearestWord(std::string_view word, const std::vector<std::string_view>& candidates) {
  if (word.size() > 100) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = EditDistance(word, candidate);
    // One edit makes any letter of any other.
    if (distance < best_distance && distance < word.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string_view nearest = NearestWord(word, candidates);
  return nearest.empty() ? "" : " (did you mean '" + std::string(nearest) + "'?)";
}

std::string Printable(std::string_view text, std::size_t limit) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  std::size_t i = 0;
  while (i < text.size()) {
    if (i >= limit) return out + "...";
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = Utf8Length(text.substr(i));
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
      ++i;
    } else {
      out += text.substr(i, length);
      i += length;
    }
  }
  return out;
}

}  // namespace scaletrace
