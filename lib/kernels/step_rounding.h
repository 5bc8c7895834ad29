// Where a step rounds, to what, and which random bits stochastic rounding uses there. Names of the roles in a config, and presets: model/precision.h.
#ifndef SCALETRACE_KERNELS_STEP_ROUNDING_H_
#define SCALETRACE_KERNELS_STEP_ROUNDING_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "numerics/format.h"

namespace scaletrace {

// The places of a step where a result is rounded, in the order of the step. The numbers enter the random bits of stochastic rounding: never change or reuse one.
//   role             what is rounded                                 entries are counted
//   kInput           x'                                              row by row: i D + d
//   kWeight          w'                                              output by output: k D + d
//   kBias            b'                                              K D + k
//   kDot             h = x'.w'                                       output by output: k B + i
//   kActivation      h + b'                                          k B + i
//   kOutputGradient  g                                               k B + i
//   kGradientSum     the sum of g over the rows, after each addition; level 0 adds the rows, level 1 the sums of blocks of 32 rows, and so on;
//                    with P rows of a level (padded to a multiple of 32 where there are more than 32): k P + i
//   kGradient        the gradients of w and b before the division    k D + d, K D + k
//   kMaster          the parameters after the update                 k D + d, K D + k
enum class Role : std::uint8_t { kInput, kWeight, kBias, kDot, kActivation, kOutputGradient, kGradientSum, kGradient, kMaster };
inline constexpr std::size_t kRoles = 9;

// The number of a role's tensor for RoundingBits.
constexpr std::uint32_t RoundingTensor(Role role, std::uint32_t level = 0) { return static_cast<std::uint32_t>(role) + 1 + 16 * level; }

struct StepRounding {
  std::array<Rounding, kRoles> roles;
  std::uint64_t seed = 0;  // of stochastic rounding

  const Rounding& operator[](Role role) const { return roles[static_cast<std::size_t>(role)]; }
  Rounding& operator[](Role role) { return roles[static_cast<std::size_t>(role)]; }
  bool is_stochastic() const {
    for (const Rounding& rounding : roles) {
      if (rounding.mode == RoundingMode::kStochastic) return true;
    }
    return false;
  }
};

// The specification's step: every result of the compute pass in one format, the sum with the bias too unless `round_activations` is false (profile excess),
// the masters in f32.
inline StepRounding UniformRounding(const Format& format, bool round_activations) {
  StepRounding rounding;
  rounding.roles.fill(Rounding{.format = format});
  rounding[Role::kMaster].format = Float32();
  if (!round_activations) rounding[Role::kActivation].format = Float32();
  return rounding;
}

// Whether all results of the compute pass are rounded to nearest in one format, that of kDot; the activations may stay exact. The input and the masters
// are not looked at.
inline bool IsUniform(const StepRounding& step) {
  const auto same = [&](const Rounding& r) { return r.is_plain() && SameNumbers(r.format, step[Role::kDot].format); };
  for (const Role role : {Role::kWeight, Role::kBias, Role::kDot, Role::kOutputGradient, Role::kGradientSum, Role::kGradient}) {
    if (!same(step[role])) return false;
  }
  return same(step[Role::kActivation]) || step[Role::kActivation].is_nothing();
}

}  // namespace scaletrace

#endif  // SCALETRACE_KERNELS_STEP_ROUNDING_H_
