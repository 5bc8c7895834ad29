// The golden files of single steps and traces, and how they are compared.
#ifndef SCALETRACE_TESTS_GOLDEN_H_
#define SCALETRACE_TESTS_GOLDEN_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "model/precision.h"

namespace scaletrace {

inline std::string GoldenFolder() { return std::string(SCALETRACE_SOURCE_DIR) + "/tests/golden/step"; }

// Folders FORMAT-PROFILE.
inline std::vector<std::string> GoldenSets() {
  std::vector<std::string> sets;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenFolder())) sets.push_back(entry.path().filename());
  std::sort(sets.begin(), sets.end());
  return sets;
}

inline PrecisionOptions PrecisionOf(const std::string& set) {
  const std::size_t dash = set.rfind('-');
  PrecisionOptions precision;
  precision.compute = set.substr(0, dash);
  precision.profile = set.substr(dash + 1) == "excess" ? Profile::kExcess : Profile::kStrict;
  return precision;
}

// Paths of the traces of a set, without .json.
inline std::vector<std::string> GoldenTraces(const std::string& set) {
  std::vector<std::string> traces;
  for (const auto& entry : std::filesystem::directory_iterator(GoldenFolder() + "/" + set)) {
    if (entry.path().extension() == ".json") traces.push_back(entry.path().parent_path() / entry.path().stem());
  }
  std::sort(traces.begin(), traces.end());
  return traces;
}

inline std::vector<std::string> Lines(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

inline std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

// Equal bits, all NaNs being one.
inline bool SameBits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float p, float q) { return SameBits(p, q); });
}

// Losses: both not finite, or within 4 units in the last place (losses are not negative).
inline bool LossesAgree(float a, float b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return !std::isfinite(a) && !std::isfinite(b);
  return std::abs(static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(a)) - static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(b))) <= 4;
}

}  // namespace scaletrace

#endif  // SCALETRACE_TESTS_GOLDEN_H_
