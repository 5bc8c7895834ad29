// Policies that scale tensors or layers.
#include "scaling/tensor_policies.h"

#include <cmath>
#include <limits>

#include "scaling/policy_list.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The scale of one tensor after each step.
std::vector<double> After(const TensorPolicy& policy, const std::vector<double>& amax) {
  std::vector<std::vector<double>> steps;
  for (const double a : amax) steps.push_back({a});
  std::vector<double> scales;
  for (const std::vector<double>& row : TensorScales(policy, steps)) scales.push_back(row[0]);
  scales.erase(scales.begin());
  return scales;
}

TEST_CASE("te-delayed divides the format's largest number by the largest amax of its history") {
  TeDelayed policy;
  policy.history_length = 4;
  CHECK(After(policy, {2, 4, 1, 1, 1, 1}) == std::vector<double>{224, 112, 112, 112, 112, 448});
  policy.margin = 1;
  CHECK(After(policy, {2}) == std::vector<double>{112});
  policy.margin = 0;
  policy.algorithm = AmaxAlgorithm::kMostRecent;
  CHECK(After(policy, {2, 4, 1}) == std::vector<double>{224, 112, 448});
}

TEST_CASE("te-delayed: what is not a usable amax") {
  TeDelayed policy;
  policy.history_length = 3;
  CHECK(After(policy, {2, 0, 0}) == std::vector<double>{224, 224, 224});  // the module did not run
  // An inf freezes the scale until it has left the window.
  CHECK(After(policy, {2, kInf, 1, 1, 1}) == std::vector<double>{224, 224, 224, 224, 448});
  CHECK(After(policy, {2, kNaN, 1, 1}) == std::vector<double>{224, 224, 224, 448});
  CHECK(After(policy, {1e-38}) == std::vector<double>{static_cast<double>(std::numeric_limits<float>::max())});
  TeDelayed recent = policy;
  recent.algorithm = AmaxAlgorithm::kMostRecent;
  CHECK(After(recent, {2, kNaN, 1}) == std::vector<double>{224, 224, 448});
  // A history of the running step alone.
  policy.history_length = 1;
  CHECK(After(policy, {2, 4, 1}) == std::vector<double>{224, 112, 448});
}

TEST_CASE("te-delayed scales every tensor by itself") {
  const auto rows = TensorScales(TeDelayed(), {{1, 448}, {2, 0}});
  CHECK(rows == std::vector<std::vector<double>>{{1, 1}, {448, 1}, {224, 1}});
}

TEST_CASE("ms-amp takes powers of two, and inverts the old scale at inf") {
  MsAmp policy;
  policy.window = 1;
  CHECK(After(policy, {448, 7, 5, 1000, 448.5}) == std::vector<double>{1, 64, 64, 0.25, 0.5});
  CHECK(After(policy, {7, kInf, 7, 0, kNaN, -1}) == std::vector<double>{64, 0.015625, 64, 64, 64, 64});
  policy.margin = 2;
  CHECK(After(policy, {7, 448}) == std::vector<double>{16, 0.25});
  MsAmpFixed fixed;
  fixed.window = 1;
  CHECK(After(fixed, {7, kInf, 7, 0}) == std::vector<double>{64, 64, 64, 64});
  MsAmp remembers;
  remembers.window = 2;
  CHECK(After(remembers, {448, 7, 7}) == std::vector<double>{1, 1, 64});
}

TEST_CASE("The inverse of the error function is right") {
  for (const double p : {1e-12, 1e-3, 0.1, 0.5, 0.9, 0.99}) {
    INFO(p);
    CHECK(std::erf(InverseErf(p)) == Approx(p).epsilon(1e-12));
  }
}

TEST_CASE("adaloss follows the moments, within its limits") {
  const Adaloss policy;
  // sd 1e-6 of g, 0.01 of w, fan_in 512: sigma = 1e-8 * 16, s = 6e-8 / (sqrt(2) * erfinv(1e-3) * 1.6e-7) = 299, then at
  // most 16.
  const std::vector<double> layer = {0, 1e-6, 0, 0.01, 512, 1e-6};
  CHECK(policy.LayerScale(layer, 1) == 16);
  CHECK(policy.LayerScale(layer, 128) == 8);
  CHECK(policy.LayerScale(layer, 2048) == 0.5);
  const double sigma = 0.01 * 0.5 * std::sqrt(0.5 * 100);
  Adaloss wide;
  wide.u_min = 1e-3;
  wide.max_scale = 1e6;
  wide.max_carried = 1e6;
  const double s = 1e-3 / (std::sqrt(2.0) * InverseErf(1e-3) * sigma);
  CHECK(wide.LayerScale(std::vector<double>{0.006, 0.008, 0.3, 0.4, 100, 1e-9}, 1) ==
        std::exp2(std::floor(std::log2(s))));
  CHECK(policy.LayerScale(std::vector<double>{0, 1, 0, 1, 512, 1}, 1) == 1);         // large gradients need no scale
  CHECK(policy.LayerScale(std::vector<double>{0, 0, 0, 1, 512, 0}, 1) == 1);         // sigma = 0
  CHECK(policy.LayerScale(std::vector<double>{0, 1e-6, 0, 0.01, 512, 50}, 1) == 2);  // 65504/512/50 = 2.56
  // The layers of a step share what they carry: 16 * 16 * 4 = 1024, and no more.
  const std::vector<double> step = {0, 1e-6, 0, 0.01, 512, 1e-6, 0, 1e-6, 0, 0.01, 512, 1e-6,
                                    0, 1e-6, 0, 0.01, 512, 1e-6, 0, 1e-6, 0, 0.01, 512, 1e-6};
  CHECK(TensorScales(policy, {step})[1] == std::vector<double>{16, 16, 4, 1});
  Adaloss seldom;
  seldom.every = 2;
  const std::vector<double> large = {0, 1, 0, 1, 512, 1};
  CHECK(TensorScales(seldom, {layer, large, large}) == std::vector<std::vector<double>>{{1}, {16}, {16}, {1}});
}

TEST_CASE("A run is told why it cannot use a policy that scales tensors") {
  CHECK_THAT(WhyNotInRun("te-delayed"), ContainsSubstring("te-delayed scales tensors or layers, not one loss"));
  CHECK(WhyNotInRun("pytorch").empty());
  for (const std::string_view key : KindNames<Policy>()) CHECK(WhyNotInRun(key).empty());
}

}  // namespace
}  // namespace scaletrace
