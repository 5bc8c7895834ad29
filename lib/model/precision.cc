// Presets and the resolution of `auto`.
#include "model/precision.h"

#include <array>
#include <utility>
#include <vector>

#include "base/error.h"

namespace scaletrace {
namespace {

struct RolePreset {
  Role role;
  std::string_view format;
  bool saturate = false;
};

struct Preset {
  std::string_view name;
  std::string_view compute;
  std::vector<RolePreset> apart;  // the roles that don't follow `compute`
  std::string_view doc;
};

// What a role follows where a preset says nothing: `compute`, but for the masters.
const std::vector<Preset>& Presets() {
  static const std::vector<Preset> presets = {
      {"uniform", "bfloat16", {}, "every role in `compute`, float32 masters: the step of docs/numerics.md"},
      {"jax-bf16", "bfloat16", {}, "a model with dtype bfloat16 and param_dtype float32 in Flax, as XLA compiles it for a CPU"},
      {"jax-fp16", "float16", {}, "the same in float16"},
      {"pure-bf16", "bfloat16", {{Role::kMaster, "bfloat16"}}, "the masters are bfloat16 too: small updates are lost to rounding"},
      {"torch-amp-fp16",
       "float16",
       {{Role::kDot, "float32"}, {Role::kGradientSum, "float32"}},
       "torch.autocast: a linear layer in float16 whose product gets its bias before the one rounding, sums in float32, gradients in float16, float32 masters"},
      {"fp8-hybrid",
       "bfloat16",
       {{Role::kInput, "float8_e4m3fn", true},
        {Role::kWeight, "float8_e4m3fn", true},
        {Role::kDot, "float32"},
        {Role::kOutputGradient, "float8_e5m2", true},
        {Role::kGradientSum, "float32"}},
       "E4M3 forward and E5M2 backward, saturating, as the HYBRID recipe of Transformer Engine, the products in bfloat16; one scale for all instead of one a tensor"},
  };
  return presets;
}

const Preset& FindPreset(std::string_view name) {
  for (const Preset& preset : Presets()) {
    if (preset.name == name) return preset;
  }
  SCALETRACE_CHECK(false);
}

struct RoleName {
  std::string_view name;
  RoleOptions PrecisionOptions::* options;
};
// In the order of Role.
constexpr RoleName kRoleNames[kRoles] = {{"input", &PrecisionOptions::input},
                                         {"weight", &PrecisionOptions::weight},
                                         {"bias", &PrecisionOptions::bias},
                                         {"dot", &PrecisionOptions::dot},
                                         {"activation", &PrecisionOptions::activation},
                                         {"output_gradient", &PrecisionOptions::output_gradient},
                                         {"gradient_sum", &PrecisionOptions::gradient_sum},
                                         {"gradient", &PrecisionOptions::gradient},
                                         {"master", &PrecisionOptions::master}};

Format FormatNamed(const std::string& name, const CustomFormatOptions& custom) {
  if (name == "custom") return CustomFormat(static_cast<int>(custom.exponent_bits), static_cast<int>(custom.mantissa_bits), custom.specials);
  const Format* format = FindFormat(name);
  SCALETRACE_CHECK(format != nullptr);
  return *format;
}

}  // namespace

std::span<const std::string_view> RoleFormatNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all = {"auto"};
    all.insert(all.end(), FormatNames().begin(), FormatNames().end());
    all.push_back("custom");
    return all;
  }();
  return names;
}

std::span<const std::string_view> PresetNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Preset& preset : Presets()) all.push_back(preset.name);
    return all;
  }();
  return names;
}

PrecisionOptions Resolved(const PrecisionOptions& options) {
  PrecisionOptions resolved = options;
  const Preset& preset = FindPreset(options.preset);
  if (resolved.compute == "auto") resolved.compute = preset.compute;
  for (std::size_t i = 0; i < kRoles; ++i) {
    RoleOptions& role = resolved.*kRoleNames[i].options;
    if (role.format != "auto") continue;
    const auto is_role = [&](Role r) { return static_cast<std::size_t>(r) == i; };
    role.format = is_role(Role::kMaster) || (is_role(Role::kActivation) && options.profile == Profile::kExcess) ? "float32" : resolved.compute;
    for (const RolePreset& apart : preset.apart) {
      if (!is_role(apart.role)) continue;
      role.format = apart.format;
      if (apart.saturate) role.overflow = Overflow::kSaturate;
    }
  }
  return resolved;
}

std::optional<FormatProblem> FindProblem(const PrecisionOptions& options) {
  bool in_use = false;
  const PrecisionOptions resolved = Resolved(options);
  for (const RoleName& role : kRoleNames) in_use = in_use || (resolved.*role.options).format == "custom";
  if (!in_use) return std::nullopt;
  auto problem = FindFormatProblem(options.custom.exponent_bits, options.custom.mantissa_bits, options.custom.specials);
  if (problem) problem->key.insert(0, "custom.");
  return problem;
}

StepRounding RoundingOf(const PrecisionOptions& options, std::uint64_t seed) {
  StepRounding rounding;
  rounding.seed = seed;
  bool left = options.compute == "auto";
  for (const RoleName& role : kRoleNames) left = left || (options.*role.options).format == "auto";
  if (left) return RoundingOf(Resolved(options), seed);
  for (std::size_t i = 0; i < kRoles; ++i) {
    const RoleOptions& role = options.*kRoleNames[i].options;
    rounding.roles[i] = {.format = FormatNamed(role.format, options.custom),
                         .mode = role.rounding,
                         .saturate = role.overflow == Overflow::kSaturate,
                         .flush_subnormals = role.subnormals == Subnormals::kFlush};
  }
  return rounding;
}

std::string PresetTable() {
  std::string text = "| preset | compute | apart from it | what it is |\n|---|---|---|---|\n";
  for (const Preset& preset : Presets()) {
    text += "| `" + std::string(preset.name) + "` | `" + std::string(preset.compute) + "` | ";
    for (std::size_t i = 0; i < preset.apart.size(); ++i) {
      const RolePreset& apart = preset.apart[i];
      text += (i > 0 ? ", " : "") + std::string(kRoleNames[static_cast<std::size_t>(apart.role)].name) + " `" + std::string(apart.format) + "`" +
              (apart.saturate ? " (saturating)" : "");
    }
    text += " | " + std::string(preset.doc) + " |\n";
  }
  return text;
}

}  // namespace scaletrace
