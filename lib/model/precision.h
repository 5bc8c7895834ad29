// The precision options of a run: formats and rounding by role, presets, and what they mean for a step.
#ifndef SCALETRACE_MODEL_PRECISION_H_
#define SCALETRACE_MODEL_PRECISION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "kernels/step_rounding.h"
#include "numerics/format.h"

namespace scaletrace {

// strict: every operation of the compute format rounds its result. excess: the sum with the bias does not (XLA's default on a CPU).
enum class Profile : std::uint8_t { kStrict, kExcess };
inline constexpr std::string_view kProfileNames[] = {"strict", "excess"};
constexpr std::span<const std::string_view> EnumNames(Profile) { return kProfileNames; }

// What is beyond the largest finite number becomes inf (NaN where there is no inf, the largest number where there is neither), or that number.
enum class Overflow : std::uint8_t { kInf, kSaturate };
inline constexpr std::string_view kOverflowNames[] = {"inf", "saturate"};
constexpr std::span<const std::string_view> EnumNames(Overflow) { return kOverflowNames; }

enum class Subnormals : std::uint8_t { kKeep, kFlush };
inline constexpr std::string_view kSubnormalsNames[] = {"keep", "flush"};
constexpr std::span<const std::string_view> EnumNames(Subnormals) { return kSubnormalsNames; }

// Names for `compute` and for a role's `format`: "auto", the rows of the format list, "custom".
std::span<const std::string_view> RoleFormatNames();
// Names of the presets; the first is the default.
std::span<const std::string_view> PresetNames();

// One role. "auto" is filled in by Resolved.
struct RoleOptions {
  // In a config a plain value stands for this key.
  static constexpr std::string_view kShorthand = "format";

  std::string format = "auto";
  RoundingMode rounding = RoundingMode::kNearestEven;
  Overflow overflow = Overflow::kInf;
  Subnormals subnormals = Subnormals::kKeep;

  bool operator==(const RoleOptions&) const = default;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"format", "auto = as the preset, `compute` and `profile` say", {}, RoleFormatNames()}, self.format);
    v.Value({"rounding", "stochastic: the bits follow from seed, step, role and entry"}, self.rounding);
    v.Value({"overflow", "inf = NaN in a format without inf; saturate = the largest finite number, for inf too"}, self.overflow);
    v.Value({"subnormals", "flush = below the smallest normal number of the format is 0"}, self.subnormals);
  }
};

// The format that the name `custom` stands for.
struct CustomFormatOptions {
  std::int64_t exponent_bits = 5;
  std::int64_t mantissa_bits = 10;
  Specials specials = Specials::kIeee;

  bool operator==(const CustomFormatOptions&) const = default;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"exponent_bits", "8 only with specials ieee", Between(2, 8)}, self.exponent_bits);
    v.Value({"mantissa_bits", "stored ones; at least 1 with specials ieee and fnuz", Between(0, 23)}, self.mantissa_bits);
    v.Value({"specials", "ieee = inf and NaN; fn = one NaN, no inf; fnuz = likewise and no -0; none = every code is a number"}, self.specials);
  }
};

struct PrecisionOptions {
  std::string preset{PresetNames()[0]};
  std::string compute = "auto";
  Profile profile = Profile::kStrict;
  RoleOptions input, weight, bias, dot, activation, output_gradient, gradient_sum, gradient, master;
  CustomFormatOptions custom;

  bool operator==(const PrecisionOptions&) const = default;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"preset", "which formats `auto` stands for", {}, PresetNames()}, self.preset);
    v.Value({"compute", "format of all roles that the preset doesn't set apart; auto = the preset's", {}, RoleFormatNames()}, self.compute);
    v.Value({"profile", "strict rounds after adding the bias, excess does not"}, self.profile);
    v.Group({"input", "x', the features"}, self.input);
    v.Group({"weight", "w', the copy of the weights that the forward pass sees"}, self.weight);
    v.Group({"bias", "b', likewise"}, self.bias);
    v.Group({"dot", "the result of x'.w'"}, self.dot);
    v.Group({"activation", "after the bias is added"}, self.activation);
    v.Group({"output_gradient", "g, the scaled gradient of the outputs"}, self.output_gradient);
    v.Group({"gradient_sum", "the running sum of g over the rows, after every addition (float32: rounded once, as a gradient)"}, self.gradient_sum);
    v.Group({"gradient", "the scaled gradients of w and b"}, self.gradient);
    v.Group({"master", "the parameters that are updated, after every update"}, self.master);
    v.Group({"custom", "the format that the name custom stands for"}, self.custom);
  }
};

// The same options with no `auto` left.
PrecisionOptions Resolved(const PrecisionOptions& options);

// What is wrong with the custom format, where a role uses it; its key is below `precision`.
std::optional<FormatProblem> FindProblem(const PrecisionOptions& options);

// What they mean for a step; `seed`: of stochastic rounding. InputError (kConfig) where FindProblem finds one.
StepRounding RoundingOf(const PrecisionOptions& options, std::uint64_t seed);

// The presets as rows of a Markdown table, for the documentation.
std::string PresetTable();

}  // namespace scaletrace

#endif  // SCALETRACE_MODEL_PRECISION_H_
