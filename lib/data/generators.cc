// The synthetic kinds of data. All sums are double, in index order, every operation rounded by itself, and are rounded
// to f32 once. Leaves files to given_data.cc and csv_data.cc, and what a step makes of moving targets to dataset.cc.
#include "data/generators.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/math.h"
#include "base/random.h"
#include "base/sha256.h"
#include "data/file_data.h"

namespace scaletrace {
namespace {

constexpr std::uint64_t kMaxEntries = std::uint64_t{1} << 31;

// The shape of `o` with x and y allocated.
Dataset Allocate(const LinearTeacher& o) {
  const auto samples = static_cast<std::uint64_t>(o.samples);
  const auto features = static_cast<std::uint64_t>(o.features);
  const auto outputs = static_cast<std::uint64_t>(o.outputs);
  const auto check = [&](std::uint64_t rows, std::uint64_t columns, const char* what) {
    if (rows * columns <= kMaxEntries) return;  // both are below 2^32: no overflow
    throw InputError(InputError::Kind::kConfig, {"", 0, "data.samples"},
                     "found " + std::to_string(rows) + " x " + std::to_string(columns) + " entries of the " + what +
                         " (samples " + std::to_string(samples) + ", features " + std::to_string(features) +
                         ", outputs " + std::to_string(outputs) + "); allowed: at most 2^31 entries");
  };
  SCALETRACE_CHECK(o.samples >= 1 && o.features >= 1 && o.outputs >= 1);
  SCALETRACE_CHECK(samples < kMaxEntries && features < kMaxEntries && outputs < kMaxEntries);
  check(samples, features, "features");
  check(samples, outputs, "targets");
  check(features, outputs, "teacher");
  Dataset data;
  data.samples = samples;
  data.features = features;
  data.outputs = outputs;
  data.x.resize(samples * features);
  data.y.resize(samples * outputs);
  return data;
}

void FillNormal(std::uint64_t seed, std::vector<float>* x) {
  for (std::size_t i = 0; i < x->size(); ++i) (*x)[i] = static_cast<float>(Normal(seed, Stream::kFeatures, i));
}

// The product of the features with a normal teacher of its own stream, plus noise_std times normal noise (no noise is
// drawn for 0), into `y`.
void FillTargets(const Dataset& data, std::uint64_t seed, Stream teacher_stream, float noise_std,
                 std::vector<float>* y) {
  std::vector<double> teacher(data.features * data.outputs);
  for (std::size_t i = 0; i < teacher.size(); ++i) teacher[i] = Normal(seed, teacher_stream, i);
  std::vector<double> sums(data.outputs);
  for (std::size_t n = 0; n < data.samples; ++n) {
    std::fill(sums.begin(), sums.end(), 0.0);
    const double* t = teacher.data();
    for (std::size_t d = 0; d < data.features; ++d, t += data.outputs) {
      const double x = data.x[n * data.features + d];
      for (std::size_t k = 0; k < data.outputs; ++k) sums[k] += x * t[k];
    }
    for (std::size_t k = 0; k < data.outputs; ++k) {
      const std::size_t i = n * data.outputs + k;
      if (noise_std > 0) sums[k] += static_cast<double>(noise_std) * Normal(seed, Stream::kNoise, i);
      (*y)[i] = static_cast<float>(sums[k]);
    }
  }
}

void Multiply(float factor, std::span<float> values) {
  for (float& value : values) value *= factor;
}

Dataset Make(const GaussianData& o, std::uint64_t seed, const std::string&) {
  Dataset data = Allocate(o);
  FillNormal(seed, &data.x);
  FillTargets(data, seed, Stream::kTeacher, o.noise, &data.y);
  return data;
}

// What the kinds start from that change gaussian data.
Dataset MakeGaussian(const LinearTeacher& o, std::uint64_t seed) { return Make(GaussianData{o}, seed, ""); }

Dataset Make(const HeavyTailedData& o, std::uint64_t seed, const std::string&) {
  Dataset data = Allocate(o);
  for (std::size_t i = 0; i < data.x.size(); ++i) {
    data.x[i] = static_cast<float>(StudentT(seed, Stream::kFeatures, i, static_cast<double>(o.dof)));
  }
  FillTargets(data, seed, Stream::kTeacher, o.noise, &data.y);
  return data;
}

Dataset Make(const OutliersData& o, std::uint64_t seed, const std::string&) {
  Dataset data = MakeGaussian(o, seed);
  for (std::size_t n = 0; n < data.samples; ++n) {
    if (!(Uniform(seed, Stream::kOutliers, n) < static_cast<double>(o.share))) continue;
    Multiply(o.factor, std::span(data.x).subspan(n * data.features, data.features));
    Multiply(o.factor, std::span(data.y).subspan(n * data.outputs, data.outputs));
  }
  return data;
}

// x = U S V, where the rows of U are cosines in a random order with random signs (its columns are orthogonal exactly,
// whatever the shape), S is the given spectrum, and V a chain of plane rotations by random angles in the pattern of a
// fast Fourier transform: every coordinate meets every other in log2 D passes, so that 10^7 entries take a second,
// where a product with a dense V would take features times as long.
Dataset Make(const IllConditionedData& o, std::uint64_t seed, const std::string&) {
  Dataset data = Allocate(o);
  const std::size_t samples = data.samples;
  const std::size_t features = data.features;
  const std::size_t rank = std::min(samples, features);

  std::vector<double> scales(rank);  // of the cosines: singular values, normalised so that the mean square of x is 1
  double squares = 0;
  for (std::size_t j = 0; j < rank; ++j) {
    scales[j] =
        rank == 1
            ? 1.0
            : Exp2(-(Log2(static_cast<double>(o.condition)) * static_cast<double>(j)) / static_cast<double>(rank - 1));
    squares += scales[j] * scales[j];
  }
  const double unit = std::sqrt(static_cast<double>(features) / squares);
  for (std::size_t j = 0; j < rank; ++j) scales[j] = (scales[j] * unit) * (j == 0 ? 1.0 : std::sqrt(2.0));

  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0u);
  for (std::size_t i = samples - 1; i > 0; --i) {
    std::swap(order[i], order[UniformBelow(seed, Stream::kFeatures, samples + i, i + 1)]);
  }

  struct Rotation {
    std::size_t i, j;
    double cos, sin;
  };
  std::vector<Rotation> rotations;
  std::uint64_t pass = 0;
  for (std::size_t h = 1; h < features; h *= 2, ++pass) {
    for (std::size_t i = 0; i + h < features; ++i) {
      if (i % (2 * h) >= h) continue;
      const double turns = Uniform(seed, Stream::kRotation, pass * features + i);
      rotations.push_back({i, i + h, CosTurns(turns), SinTurns(turns)});
    }
  }

  std::vector<double> row(features);
  const std::uint64_t turn = 4 * static_cast<std::uint64_t>(samples);
  for (std::size_t n = 0; n < samples; ++n) {
    const double sign = Uniform(seed, Stream::kFeatures, n) < 0.5 ? 1.0 : -1.0;
    const std::uint64_t odd = 2 * static_cast<std::uint64_t>(order[n]) + 1;
    std::fill(row.begin(), row.end(), 0.0);
    for (std::size_t j = 0; j < rank; ++j) {
      // The angle is reduced as an integer, so that high frequencies lose no digits.
      const double turns = static_cast<double>(odd * j % turn) / static_cast<double>(turn);
      row[j] = sign * (scales[j] * CosTurns(turns));
    }
    for (const Rotation& r : rotations) {
      const double a = row[r.i];
      const double b = row[r.j];
      row[r.i] = r.cos * a - r.sin * b;
      row[r.j] = r.sin * a + r.cos * b;
    }
    for (std::size_t d = 0; d < features; ++d) data.x[n * features + d] = static_cast<float>(row[d]);
  }
  FillTargets(data, seed, Stream::kTeacher, o.noise, &data.y);
  return data;
}

Dataset Make(const ScaledData& o, std::uint64_t seed, const std::string&) {
  Dataset data = MakeGaussian(o, seed);
  Multiply(o.feature_factor, data.x);
  Multiply(o.target_factor, data.y);
  return data;
}

Dataset Make(const DriftData& o, std::uint64_t seed, const std::string&) {
  Dataset data = Allocate(o);
  FillNormal(seed, &data.x);
  FillTargets(data, seed, Stream::kTeacher, 0, &data.y);
  data.period = o.period;
  data.y_turned.resize(data.y.size());
  FillTargets(data, seed, Stream::kDrift, 0, &data.y_turned);
  data.noise.resize(data.y.size());
  for (std::size_t i = 0; i < data.noise.size(); ++i) {
    data.noise[i] = static_cast<float>(static_cast<double>(o.noise) * Normal(seed, Stream::kNoise, i));
  }
  return data;
}

Dataset Make(const SpikesData& o, std::uint64_t seed, const std::string&) {
  if (o.at.empty() && o.every == 0) {
    throw InputError(InputError::Kind::kConfig, {"", 0, "data.at"},
                     "found no step with a spike; allowed: a list of steps here, or data.every, or both");
  }
  Dataset data = MakeGaussian(o, seed);
  data.spike_steps = o.at;
  std::sort(data.spike_steps.begin(), data.spike_steps.end());
  data.spike_every = o.every;
  data.spike_factor = o.factor;
  return data;
}

std::string PathOf(const std::string& file, const std::string& folder) {
  if (file.empty()) {
    throw InputError(InputError::Kind::kConfig, {"", 0, "data.file"},
                     "found no file; allowed: a path, relative to the config's folder");
  }
  return file[0] == '/' ? file : folder + "/" + file;
}

Dataset Make(const GivenData& o, std::uint64_t, const std::string& folder) {
  return ReadGivenData(o, PathOf(o.file, folder));
}
Dataset Make(const CsvData& o, std::uint64_t, const std::string& folder) {
  return ReadCsvData(o, PathOf(o.file, folder));
}

}  // namespace

Dataset MakeDataset(const DataOptions& options, std::uint64_t seed, const std::string& folder) {
  try {
    return std::visit([&](const auto& o) { return Make(o, seed, folder); }, options);
  } catch (const std::bad_alloc&) {
    throw InputError(InputError::Kind::kData, {"", 0, "data.samples"},
                     "the data need more memory than there is; allowed: fewer rows or columns");
  }
}

std::string DataFileHash(const DataOptions& options, const std::string& folder) {
  return std::visit(
      [&]<class T>(const T& o) -> std::string {
        if constexpr (requires { o.file; }) {
          return Sha256(ReadFile(PathOf(o.file, folder), kMaxCsvBytes));
        } else {
          return "";
        }
      },
      options);
}

}  // namespace scaletrace
