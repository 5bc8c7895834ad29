// What the tests of policies share: policies by key, parameters from text and at random, event strings.
#ifndef SCALETRACE_TESTS_SCALING_SUPPORT_H_
#define SCALETRACE_TESTS_SCALING_SUPPORT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "scaling/events.h"
#include "scaling/policy_list.h"
#include "scaling/scaler.h"

namespace scaletrace {

// The policy `key` with "parameter=VALUE" as --set has it.
inline Policy PolicyWith(std::string_view key, const std::vector<std::string>& settings = {}) {
  std::vector<std::string> overrides = {"scaler.policy=" + std::string(key)};
  for (const std::string& setting : settings) overrides.push_back("scaler." + setting);
  return ParseConfig("{}", "test", ".", overrides).scaler;
}

// The scales of each step and after the last one. Where the policy raises, those up to the failed step.
inline std::vector<double> Scales(const Policy& policy, std::string_view events) {
  Scaler scaler(policy);
  std::vector<double> scales = {scaler.loss_scale()};
  for (const char event : events) {
    if (scaler.Next(ObservationOf(event)).raised) return scales;
    scales.push_back(scaler.loss_scale());
  }
  return scales;
}

// A small generator for tests, so that a failure can be named by its seed (SplitMix64).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::int64_t Below(std::int64_t n) { return static_cast<std::int64_t>(Next() % static_cast<std::uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <class T>
  T Of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(Below(static_cast<std::int64_t>(values.size())))];
  }

 private:
  std::uint64_t state_;
};

// Parameters that make things happen within a few steps. `plain`: powers of two only, and scales that are not at the
// ends of their type.
class RandomParameters {
 public:
  RandomParameters(Dice& dice, bool plain) : dice_(dice), plain_(plain) {}

  template <class T>
  void Value(const Field& field, T& value) {
    const std::string_view key = field.key;
    if constexpr (kIsOptional<T>) {
      value.reset();
      if (dice_.Chance(60)) Value(field, value.emplace());
    } else if constexpr (kIsList<T>) {
      return;
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(dice_.Below(static_cast<std::int64_t>(EnumNames(T{}).size())));
    } else if constexpr (std::is_same_v<T, bool>) {
      value = dice_.Chance(50);
    } else if constexpr (std::is_integral_v<T>) {
      if (key == "factor") {
        value = plain_ ? 2 << dice_.Below(2) : 2 + dice_.Below(3);
      } else if (key == "good_steps") {
        value = 0;
      } else if (key == "first_extra" || key == "period_extra" || key == "publish_delay") {
        value = dice_.Below(2);
      } else {
        value = 1 + dice_.Below(4);
      }
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(Number(key, static_cast<double>(value)));
      // The ends of double's range, for those that hold one.
      if (std::is_same_v<T, double> && key == "init_scale" && !plain_ && dice_.Chance(8))
        value = static_cast<T>(dice_.Of<double>({0x1p1023, 0x1p-1073}));
    }
  }

 private:
  double Number(std::string_view key, double now) {
    if (key == "init_scale") {
      if (plain_ || dice_.Chance(60)) return dice_.Of<double>({1024, 4, 2, 1, 65536, 0x1p126});
      return dice_.Of<double>({1000, 0x1p127, 0x1p126, 0x1p-125, 0x1p-148, 0x1p24, 3, 0.001});
    }
    if (key == "growth_factor" || key == "factor")
      return plain_ ? dice_.Of<double>({2, 2, 4}) : dice_.Of<double>({2, 2, 4, 1.5, 3});
    if (key == "backoff_factor")
      return plain_ ? dice_.Of<double>({0.5, 0.5, 0.25}) : dice_.Of<double>({0.5, 0.5, 0.25, 0.3, 0.8});
    if (key == "growth_interval") return static_cast<double>(1 + dice_.Below(4));
    if (key == "min_scale" || key == "threshold")
      return plain_ ? dice_.Of<double>({1, 0.25}) : dice_.Of<double>({1, 0.25, 3, 1e-4, 1e-6});
    if (key == "max_scale") {
      if (plain_) return dice_.Of<double>({65536, 0x1p24});
      return dice_.Of<double>({65536, 0x1p24, 70000, 0x1p127, std::numeric_limits<double>::infinity()});
    }
    if (key == "tolerance" || key == "fraction") return dice_.Of<double>({0, 0.1, 0.25, 0.5});
    if (key == "window_scaling") return dice_.Of<double>({1, 1, 2});
    if (key == "amax") return dice_.Of<double>({1, 8, 0.001, 0});
    if (key == "overflow_x") return dice_.Of<double>({16, 65536, 0});
    return now;
  }

  Dice& dice_;
  bool plain_;
};

template <class P>
P WithRandomParameters(Dice& dice, bool plain) {
  P policy;
  RandomParameters random(dice, plain);
  P::Visit(policy, random);
  if constexpr (std::is_same_v<P, Schedule>) {
    policy.steps = {dice.Below(3), 3 + dice.Below(3), 6 + dice.Below(3)};
    policy.scales = {1024, 4096, 16};
    if (policy.shape == ScheduleShape::kConstant) {
      policy.steps.resize(1);
      policy.scales.resize(1);
    }
  }
  if constexpr (std::is_same_v<P, Scripted>) policy.scales = {4, 8, 8, 3, 65536};
  return policy;
}

}  // namespace scaletrace

#endif  // SCALETRACE_TESTS_SCALING_SUPPORT_H_
