#include "data/generators.h"

#include <variant>

#include "base/error.h"
#include "base/random.h"

namespace scaletrace {
namespace {

constexpr std::uint64_t kMaxEntries = std::uint64_t{1} << 31;

void CheckSizes(const LinearTeacher& o) {
  const auto n = static_cast<std::uint64_t>(o.samples), d = static_cast<std::uint64_t>(o.features), k = static_cast<std::uint64_t>(o.outputs);
  if (n * d > kMaxEntries || n * k > kMaxEntries || d * k > kMaxEntries) {
    throw InputError(InputError::Kind::kConfig, {"", 0, "data.samples"}, "too large");
  }
}

Dataset Make(const GaussianData& o, std::uint64_t seed) {
  CheckSizes(o);
  Dataset data;
  data.samples = static_cast<std::size_t>(o.samples);
  data.features = static_cast<std::size_t>(o.features);
  data.outputs = static_cast<std::size_t>(o.outputs);
  data.x.resize(data.samples * data.features);
  for (std::size_t i = 0; i < data.x.size(); ++i) data.x[i] = static_cast<float>(Normal(seed, Stream::kFeatures, i));
  std::vector<double> teacher(data.features * data.outputs);
  for (std::size_t i = 0; i < teacher.size(); ++i) teacher[i] = Normal(seed, Stream::kTeacher, i);
  data.y.resize(data.samples * data.outputs);
  std::vector<double> sum(data.outputs);
  for (std::size_t n = 0; n < data.samples; ++n) {
    sum.assign(data.outputs, 0.0);
    for (std::size_t d = 0; d < data.features; ++d) {
      const double x = data.x[n * data.features + d];
      for (std::size_t k = 0; k < data.outputs; ++k) sum[k] += x * teacher[d * data.outputs + k];
    }
    for (std::size_t k = 0; k < data.outputs; ++k) {
      const std::size_t i = n * data.outputs + k;
      data.y[i] = static_cast<float>(sum[k] + static_cast<double>(o.noise) * Normal(seed, Stream::kNoise, i));
    }
  }
  return data;
}

}  // namespace

Dataset MakeDataset(const DataOptions& options, std::uint64_t seed, const std::string&) {
  return std::visit([&](const auto& o) { return Make(o, seed); }, options);
}

std::string DataFileHash(const DataOptions&, const std::string&) { return ""; }

}  // namespace scaletrace
