// Kinds of data, one row each: the options (as they stand in a config under `data:`) and the function that makes the
// Dataset. The formula of each: docs/data.md. A new kind is a struct here, its Make function (generators.cc, or
// file_data.h where it reads a file), and its name in DataOptions.
#ifndef SCALETRACE_DATA_GENERATORS_H_
#define SCALETRACE_DATA_GENERATORS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fields.h"
#include "data/dataset.h"

namespace scaletrace {

// The sizes and the linear teacher that the synthetic kinds share. y = x T + noise, T standard normal, and x too where
// the kind says nothing else.
struct LinearTeacher {
  std::int64_t samples = 256;
  std::int64_t features = 32;
  std::int64_t outputs = 1;
  float noise = 0.1f;

  bool operator==(const LinearTeacher&) const = default;
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
  bool operator==(const GaussianData&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    LinearTeacher::VisitTeacher(self, v);
  }
};

struct HeavyTailedData : LinearTeacher {
  static constexpr std::string_view kName = "heavy-tailed",
                                    kDoc = "features from Student's t: now and then one is far out";
  float dof = 3;
  bool operator==(const HeavyTailedData&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    LinearTeacher::VisitTeacher(self, v);
    v.Value(
        {"dof", "degrees of freedom, smaller is wilder; 1 is Cauchy's, above 2 the variance exists", Between(0.5, 1e6)},
        self.dof);
  }
};

struct OutliersData : LinearTeacher {
  static constexpr std::string_view kName = "outliers",
                                    kDoc = "gaussian, a share of the rows (features and targets) times a factor";
  float share = 0.01f;
  float factor = 100;
  bool operator==(const OutliersData&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    LinearTeacher::VisitTeacher(self, v);
    v.Value({"share", "chance of a row to be an outlier", Between(0, 1)}, self.share);
    v.Value({"factor", "multiplies an outlier's features and targets"}, self.factor);
  }
};

struct IllConditionedData : LinearTeacher {
  static constexpr std::string_view kName = "ill-conditioned", kDoc = "features with a given condition number";
  float condition = 1000;
  bool operator==(const IllConditionedData&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    LinearTeacher::VisitTeacher(self, v);
    v.Value({"condition",
             "largest over smallest singular value of the features; the others are spaced evenly in the logarithm",
             Between(1, 1e6)},
            self.condition);
  }
};

struct ScaledData : LinearTeacher {
  static constexpr std::string_view kName = "scaled",
                                    kDoc =
                                        "gaussian, features and targets times factors, to force underflow or overflow";
  float feature_factor = 1;
  float target_factor = 1;
  bool operator==(const ScaledData&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    LinearTeacher::VisitTeacher(self, v);
    v.Value({"feature_factor", "multiplies the features, after the targets were made"}, self.feature_factor);
    v.Value({"target_factor", "multiplies the targets"}, self.target_factor);
  }
};

struct DriftData : LinearTeacher {
  static constexpr std::string_view kName = "drift",
                                    kDoc = "gaussian, with a teacher that moves on a circle over the steps";
  double period = 1000;
  bool operator==(const DriftData&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    LinearTeacher::VisitTeacher(self, v);
    v.Value({"period", "steps until the teacher is back where it began", AtLeast(1)}, self.period);
  }
};

struct SpikesData : LinearTeacher {
  static constexpr std::string_view kName = "spikes",
                                    kDoc = "gaussian, the targets times a factor at some steps: a repeatable overflow";
  std::vector<std::int64_t> at;
  std::int64_t every = 0;
  float factor = 1e36f;
  bool operator==(const SpikesData&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    LinearTeacher::VisitTeacher(self, v);
    v.Value({"at", "steps with a spike", Between(0, 9e15)}, self.at);
    v.Value({"every", "a spike at every multiple of this step besides, except step 0; 0: none", Between(0, 9e15)},
            self.every);
    v.Value({"factor", "multiplies the targets in a step with a spike"}, self.factor);
  }
};

struct GivenData {
  static constexpr std::string_view kName = "given", kDoc = "features, targets and perhaps parameters from a JSON file";
  std::string file;
  bool operator==(const GivenData&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"file", "JSON with x, y and, optionally, params {w, b} to start from; relative to the config's folder"},
            self.file);
  }
};

enum class Standardize : std::uint8_t { kNone, kFeatures, kAll };
inline constexpr std::string_view kStandardizeNames[] = {"none", "features", "all"};
constexpr std::span<const std::string_view> EnumNames(Standardize) { return kStandardizeNames; }

struct CsvData {
  static constexpr std::string_view kName = "csv", kDoc = "columns of a CSV file";
  std::string file;
  std::vector<std::string> features;
  std::vector<std::string> targets;
  Standardize standardize = Standardize::kNone;
  bool operator==(const CsvData&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"file", "CSV with a header line; relative to the config's folder"}, self.file);
    v.Value({"features", "names of the feature columns, in this order; empty: every column that is no target"},
            self.features);
    v.Value({"targets", "names of the target columns, in this order"}, self.targets);
    v.Value({"standardize", "columns brought to mean 0 and variance 1: none, the features, or all (targets too)"},
            self.standardize);
  }
};

using DataOptions = std::variant<GaussianData, HeavyTailedData, OutliersData, IllConditionedData, ScaledData, DriftData,
                                 SpikesData, GivenData, CsvData>;

// The data for `options`; `seed` is the run's. Relative paths are taken from `folder`. A file that is missing,
// unreadable or wrong: IoError, or InputError (kData) that names file, line and column or key. Sizes whose product is
// beyond 2^31 entries, or more than memory has: InputError (kConfig) with the key "data.samples". Options that
// contradict the file or each other: InputError (kConfig) with their key.
Dataset MakeDataset(const DataOptions& options, std::uint64_t seed, const std::string& folder);

// SHA-256 of the file that the options name; empty where they name none. Errors as above.
std::string DataFileHash(const DataOptions& options, const std::string& folder);

// Part of every run's hash: raised when a generator's output changes.
inline constexpr int kGeneratorsVersion = 1;

}  // namespace scaletrace

#endif  // SCALETRACE_DATA_GENERATORS_H_
