// Kinds of data, one row each: the options (as they stand in a config under `data:`) and the function that makes the Dataset.
// The formula of each: docs/data.md. A new kind is a struct here, its Make function, and its name in DataOptions.
#ifndef SCALETRACE_DATA_GENERATORS_H_
#define SCALETRACE_DATA_GENERATORS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "data/dataset.h"

namespace scaletrace {

// The sizes and the linear teacher that the synthetic kinds share. y = x T + noise, T and x standard normal.
struct LinearTeacher {
  std::int64_t samples = 256;
  std::int64_t features = 32;
  std::int64_t outputs = 1;
  float noise = 0.1f;

  template <class Self, class V>
  static void VisitTeacher(Self& self, V& v) {
    v.Value({"samples", "rows of the data", Between(1, 1 << 26)}, self.samples);
    v.Value({"features", "inputs of the model (D)", Between(1, 1 << 20)}, self.features);
    v.Value({"outputs", "outputs of the model (K)", Between(1, 1 << 20)}, self.outputs);
    v.Value({"noise", "standard deviation of the noise on the targets", AtLeast(0)}, self.noise);
  }
};

struct GaussianData : LinearTeacher {
  static constexpr std::string_view kName = "gaussian", kDoc = "normal features, linear teacher, normal noise";
  template <class Self, class V>
  static void Visit(Self& self, V& v) { LinearTeacher::VisitTeacher(self, v); }
};

using DataOptions = std::variant<GaussianData>;

// The data for `options`; `seed` is the run's. Relative paths are taken from `folder`. A file that is missing, unreadable or wrong: IoError, or InputError
// (kData) that names file, line and column. Sizes whose product is beyond 2^31 entries: InputError (kConfig) with key "data".
Dataset MakeDataset(const DataOptions& options, std::uint64_t seed, const std::string& folder);

// SHA-256 of the files that the options name, in order; empty where they name none. Errors as above.
std::string DataFileHash(const DataOptions& options, const std::string& folder);

// Part of every run's hash: raised when a generator's output changes.
inline constexpr int kGeneratorsVersion = 1;

}  // namespace scaletrace

#endif  // SCALETRACE_DATA_GENERATORS_H_
