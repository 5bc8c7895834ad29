// Parameters as JSON: {"w": D x K nested lists, "b": list}. Reading is Json's part.
#ifndef SCALETRACE_TRAIN_PARAMETERS_JSON_H_
#define SCALETRACE_TRAIN_PARAMETERS_JSON_H_

#include <cstddef>
#include <span>
#include <string>

#include "base/number.h"

namespace scaletrace {

inline std::string ListJson(std::span<const float> values) {
  std::string text = "[";
  for (const float v : values) {
    if (text.size() > 1) text += ", ";
    text += ToJsonText(v);
  }
  return text + "]";
}

// w: row-major with b.size() columns.
inline std::string ParametersJson(std::span<const float> w, std::span<const float> b) {
  std::string text = "{\"w\": [";
  for (std::size_t i = 0; i < w.size(); i += b.size()) text += (i > 0 ? ", " : "") + ListJson(w.subspan(i, b.size()));
  return text + "], \"b\": " + ListJson(b) + "}";
}

}  // namespace scaletrace

#endif  // SCALETRACE_TRAIN_PARAMETERS_JSON_H_
