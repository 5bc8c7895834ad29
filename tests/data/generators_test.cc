// The synthetic kinds: their bytes against checksums.tsv (which reference.py prints from docs/data.md), and what their
// names promise.
#include "data/generators.h"

#include <Eigen/SVD>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/random.h"
#include "base/sha256.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

// The options that reference.py has.
template <class T>
void Adjust(T&) {}
void Adjust(HeavyTailedData& o) { o.dof = 2.5f; }
void Adjust(OutliersData& o) {
  o.share = 0.2f;
  o.factor = 33.3f;
}
void Adjust(ScaledData& o) {
  o.feature_factor = 1e-3f;
  o.target_factor = 3e4f;
}
void Adjust(SpikesData& o) { o.every = 7; }

std::string Checksum(const Dataset& data) {
  std::string bytes;
  for (const auto* values : {&data.x, &data.y, &data.y_turned, &data.noise}) {
    for (const float value : *values) {
      const auto bits = std::bit_cast<std::uint32_t>(value);
      for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 0xff);
    }
  }
  return Sha256(bytes);
}

template <class T>
T Sized(std::int64_t samples, std::int64_t features, std::int64_t outputs = 1, float noise = 0.1f) {
  T options;
  options.samples = samples;
  options.features = features;
  options.outputs = outputs;
  options.noise = noise;
  return options;
}

Eigen::MatrixXd Matrix(const std::vector<float>& values, std::size_t rows, std::size_t columns) {
  Eigen::MatrixXd matrix(static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns));
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      matrix(static_cast<Eigen::Index>(r), static_cast<Eigen::Index>(c)) = static_cast<double>(values[r * columns + c]);
    }
  }
  return matrix;
}

// The targets that a linear model leaves over, in the mean square.
double ResidualSquare(const Dataset& data) {
  const Eigen::MatrixXd x = Matrix(data.x, data.samples, data.features);
  const Eigen::MatrixXd y = Matrix(data.y, data.samples, data.outputs);
  const Eigen::MatrixXd fit = x.colPivHouseholderQr().solve(y);
  return (x * fit - y).squaredNorm() / static_cast<double>(y.size());
}

double MeanSquare(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

TEST_CASE("every kind that reads no file has the bytes of its checksums at two seeds") {
  std::map<std::pair<std::string, std::uint64_t>, std::string> checksums;
  const std::string table = ReadFile(std::string(SCALETRACE_SOURCE_DIR) + "/tests/data/checksums.tsv", 1 << 20);
  std::size_t at = table.find('\n') + 1;
  while (at < table.size()) {
    const std::size_t seed_at = table.find('\t', at) + 1;
    const std::size_t sum_at = table.find('\t', seed_at) + 1;
    const std::size_t end = table.find('\n', sum_at);
    checksums[{table.substr(at, seed_at - 1 - at), std::stoull(table.substr(seed_at))}] =
        table.substr(sum_at, end - sum_at);
    at = end + 1;
  }
  ForEachKind<DataOptions>([&]<class T>() {
    if constexpr (!requires(T o) { o.file; }) {
      T options = Sized<T>(37, 5, 3, 0.25f);
      Adjust(options);
      for (const std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{0xfedcba9876543210}}) {
        INFO(T::kName << ", seed " << seed);
        const Dataset data = MakeDataset(options, seed, ".");
        CHECK(data.samples == 37);
        CHECK(data.features == 5);
        CHECK(data.outputs == 3);
        CHECK(Checksum(data) == checksums[{std::string(T::kName), seed}]);
      }
      CHECK(Checksum(MakeDataset(options, 1, ".")) == Checksum(MakeDataset(options, 1, "elsewhere")));
      CHECK(DataFileHash(options, ".").empty());
    }
  });
}

TEST_CASE("gaussian data are standard normal features, a linear teacher and the noise asked for") {
  const Dataset data = MakeDataset(Sized<GaussianData>(4000, 16, 4, 0.5f), 3, ".");
  CHECK(std::fabs(MeanSquare(data.x) - 1) < 5 * std::sqrt(2.0 / 64000));
  // 16 of the 4000 degrees of freedom go into the fit.
  CHECK(std::fabs(ResidualSquare(data) / (0.25 * (1 - 16.0 / 4000)) - 1) < 5 * std::sqrt(2.0 / 16000));
  const Dataset exact = MakeDataset(Sized<GaussianData>(100, 16, 4, 0), 3, ".");
  CHECK(ResidualSquare(exact) < 1e-11);
}

TEST_CASE("a sample does not depend on how many there are") {
  const Dataset few = MakeDataset(Sized<GaussianData>(10, 8, 2), 5, ".");
  const Dataset many = MakeDataset(Sized<GaussianData>(1000, 8, 2), 5, ".");
  CHECK(std::equal(few.x.begin(), few.x.end(), many.x.begin()));
  CHECK(std::equal(few.y.begin(), few.y.end(), many.y.begin()));
}

TEST_CASE("heavy-tailed features go far out as often as Student's t does, and stay finite at the smallest dof") {
  HeavyTailedData options = Sized<HeavyTailedData>(20000, 10);
  options.dof = 1;
  const Dataset data = MakeDataset(options, 4, ".");
  for (const double t : {1.0, 10.0, 100.0, 1000.0}) {
    const double p = 1 - 2 * std::atan(t) / 3.14159265358979;
    const auto far = std::count_if(data.x.begin(), data.x.end(), [&](float x) { return std::fabs(x) > t; });
    INFO("beyond " << t);
    CHECK(std::fabs(static_cast<double>(far) - 200000 * p) < 5 * std::sqrt(200000 * p));
  }
  options.dof = 0.5f;
  const Dataset wild = MakeDataset(options, 4, ".");
  CHECK(*std::max_element(wild.x.begin(), wild.x.end()) > 1e6f);
  CHECK(std::all_of(wild.x.begin(), wild.x.end(), [](float x) { return std::isfinite(x); }));
}

TEST_CASE("outliers are whole rows of the gaussian data times the factor, about as many as asked for") {
  OutliersData options = Sized<OutliersData>(5000, 3, 2);
  options.share = 0.1f;
  options.factor = 64;
  const Dataset plain = MakeDataset(Sized<GaussianData>(5000, 3, 2), 6, ".");
  const Dataset data = MakeDataset(options, 6, ".");
  int outliers = 0;
  for (std::size_t n = 0; n < data.samples; ++n) {
    const float factor = data.x[n * 3] == plain.x[n * 3] ? 1.0f : 64.0f;
    outliers += factor != 1;
    for (std::size_t d = 0; d < 3; ++d) REQUIRE(data.x[n * 3 + d] == plain.x[n * 3 + d] * factor);
    for (std::size_t k = 0; k < 2; ++k) REQUIRE(data.y[n * 2 + k] == plain.y[n * 2 + k] * factor);
  }
  CHECK(std::fabs(outliers - 500) < 5 * std::sqrt(450.0));
  options.share = 0;
  CHECK(MakeDataset(options, 6, ".").x == plain.x);
  options.share = 1;
  CHECK(MakeDataset(options, 6, ".").x[0] == plain.x[0] * 64);
}

TEST_CASE("ill-conditioned features have the condition number and the evenly spaced singular values of their formula") {
  const auto check = [](std::int64_t samples, std::int64_t features, float condition, double tolerance) {
    INFO(samples << " x " << features << ", condition " << condition);
    IllConditionedData options = Sized<IllConditionedData>(samples, features);
    options.condition = condition;
    const Dataset data = MakeDataset(options, 8, ".");
    CHECK(std::fabs(MeanSquare(data.x) - 1) < 1e-6);
    const Eigen::VectorXd values = Matrix(data.x, data.samples, data.features).jacobiSvd().singularValues();
    const double last = static_cast<double>(values.size() - 1);
    for (Eigen::Index j = 0; j < values.size(); ++j) {
      const double want = last == 0 ? 1 : std::pow(static_cast<double>(condition), -static_cast<double>(j) / last);
      REQUIRE(std::fabs(values[j] / values[0] / want - 1) < tolerance);
    }
  };
  check(256, 32, 1000, 1e-3);
  check(256, 32, 1, 1e-5);
  check(100, 7, 10, 1e-5);
  check(33, 33, 1e4f, 1e-2);
  check(12, 50, 100, 1e-3);
  check(64, 1, 1000, 1e-6);
  check(1, 9, 1000, 1e-6);
  check(200, 16, 1e5f, 0.1);
}

TEST_CASE("ill-conditioned features hide their directions: no single column carries one") {
  IllConditionedData options = Sized<IllConditionedData>(512, 64);
  options.condition = 1e4f;
  const Dataset data = MakeDataset(options, 9, ".");
  const Eigen::MatrixXd x = Matrix(data.x, 512, 64);
  const Eigen::VectorXd top = Eigen::JacobiSVD<Eigen::MatrixXd>(x, Eigen::ComputeThinV).matrixV().col(0);
  CHECK(top.cwiseAbs().maxCoeff() < 0.9);
  CHECK((top.array().abs() > 1e-4).count() == 64);
}

TEST_CASE("scaled data are the gaussian data times their factors, into subnormals and infinities if need be") {
  const Dataset plain = MakeDataset(Sized<GaussianData>(50, 3, 2), 6, ".");
  ScaledData options = Sized<ScaledData>(50, 3, 2);
  options.feature_factor = 1e-30f;
  options.target_factor = 3e38f;
  const Dataset data = MakeDataset(options, 6, ".");
  bool overflowed = false;
  for (std::size_t i = 0; i < data.x.size(); ++i) REQUIRE(data.x[i] == plain.x[i] * 1e-30f);
  for (std::size_t i = 0; i < data.y.size(); ++i) {
    REQUIRE(data.y[i] == plain.y[i] * 3e38f);
    overflowed = overflowed || std::isinf(data.y[i]);
  }
  CHECK(overflowed);
}

TEST_CASE("sizes whose product is beyond 2^31 entries are refused with the key") {
  const auto message = [](std::int64_t samples, std::int64_t features, std::int64_t outputs) {
    try {
      MakeDataset(Sized<GaussianData>(samples, features, outputs), 1, ".");
    } catch (const InputError& error) {
      CHECK(error.kind() == InputError::Kind::kConfig);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK_THAT(message(1 << 26, 1 << 20, 1),
             ContainsSubstring("data.samples: found 67108864 x 1048576 entries of the features"));
  CHECK_THAT(message(1 << 26, 1, 1 << 20), ContainsSubstring("entries of the targets"));
  CHECK_THAT(message(1, 1 << 20, 1 << 20), ContainsSubstring("entries of the teacher"));
  CHECK_THAT(message(1 << 26, 33, 1), ContainsSubstring("allowed: at most 2^31 entries"));
}

TEST_CASE("spikes without a step are refused with the key") {
  CHECK_THROWS_WITH(MakeDataset(SpikesData{}, 1, "."), ContainsSubstring("data.at: found no step with a spike"));
}

TEST_CASE("a kind that reads a file asks for its name") {
  CHECK_THROWS_WITH(MakeDataset(GivenData{}, 1, "."), ContainsSubstring("data.file: found no file"));
  CHECK_THROWS_WITH(MakeDataset(CsvData{}, 1, "."), ContainsSubstring("data.file: found no file"));
  CHECK_THROWS_WITH(DataFileHash(CsvData{}, "."), ContainsSubstring("data.file: found no file"));
}

}  // namespace
}  // namespace scaletrace
