// What a loss-scaling policy is. A policy is a plain struct: its fields are the parameters (immutable while it runs),
// its State is a small value, and everything it does is a pure function of both. It knows no models, formats or YAML.
// The list of all of them: policy_list.h. A value that holds any of them, for those who drive one: scaler.h.
#ifndef SCALETRACE_SCALING_POLICY_H_
#define SCALETRACE_SCALING_POLICY_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/event.h"

namespace scaletrace {

// What one step's gradients looked like. `scaled` means as they come out of the backward pass (S times too large),
// `unscaled` after the division by S. Only the parts that the policy's Needs name are filled in; the others keep these
// defaults.
struct Observation {
  std::int64_t step = 0;           // 0-based, attempts counted
  bool unscaled_finite = true;     // every entry of g/S
  bool scaled_finite = true;       // every entry of g
  bool sums_finite = true;         // the f32 sum of each tensor of g
  bool norm_finite = true;         // the f32 sum of squares over all entries of g/S
  bool scaled_norm_finite = true;  // the f32 sum of squares over all entries of g
  bool flag_nan =
      false;  // the number that a project has for its verdict is NaN itself: only made-up steps have that (events.h)
  double max_abs = 0;      // largest |entry| of g/S; inf or NaN where one is
  double share_above = 0;  // share of the entries of |g| above Needs::share_threshold
};

struct Needs {
  bool unscaled_finite = false;
  bool scaled_finite = false;
  bool sums_finite = false;
  bool norm_finite = false;
  bool scaled_norm_finite = false;
  bool max_abs = false;
  bool share_above = false;
  double share_threshold = 0;

  bool operator==(const Needs&) const = default;
};

// In which type S lives and how a product is rounded. kF32: the factor is rounded to float first, then one float
// operation. kF32Wide: S is float, the product with the double factor is rounded once to float. kF64: all double.
enum class Hold : std::uint8_t { kF32, kF32Wide, kF64 };
inline constexpr std::string_view kHoldNames[] = {"f32", "f32-wide", "f64"};
constexpr std::span<const std::string_view> EnumNames(Hold) { return kHoldNames; }

// Which S divides the gradients: the one of the backward pass; the updated one (a bug of some public policies:
// gradients are off by the growth factor on each growth); none, so that gradients stay scaled (a bug too).
enum class Unscale : std::uint8_t { kOld, kNew, kNot };
inline constexpr std::string_view kUnscaleNames[] = {"old", "new", "not"};
constexpr std::span<const std::string_view> EnumNames(Unscale) { return kUnscaleNames; }

// Properties that hold for every parameter setting that the policy accepts without a warning. Tests check each where it
// is made, and show a counterexample where it is not.
struct Claims {
  bool never_grows_on_overflow = false;
  bool keeps_powers_of_two = false;  // from a power of two, with factors and limits that are powers of two
  bool stays_within_limits = false;  // between its min_scale and max_scale, or the fixed floor and ceiling
  bool stays_positive = false;       // S never becomes 0 or negative
  bool stays_finite = false;         // S never becomes inf or NaN
  bool quiet_steps_exact = false;    // the finite step after QuietSteps of them does change the scale or has an event
};

struct PolicyInfo {
  std::string_view key;
  std::string_view project;  // "PyTorch"
  std::string_view file;     // the file that has the rule, in that project
  std::string_view summary;  // one line: what is special
  std::string_view rule;     // the whole rule, in lines
  Hold hold = Hold::kF32;
  double floor = 0;                                          // a fixed one; 0: none, or a parameter min_scale
  double ceiling = std::numeric_limits<double>::infinity();  // likewise, max_scale
  Needs needs;                                               // all that it may need, whatever the parameters
  Claims claims;
};

// The policy's answer to one observation.
template <class State>
struct Outcome {
  State next;
  Event event = Event::kNone;
  bool apply = true;  // whether the optimizer takes the step
  Unscale unscale = Unscale::kOld;
  bool raised =
      false;  // the public implementation raises here: the run ends, and `next` is the state that it leaves behind
};

// Why parameters do not go together: the key of the one to blame, and "found X; allowed: Y".
struct ParameterProblem {
  std::string_view key;
  std::string message;
};

// A policy P has
//   static constexpr PolicyInfo kInfo;
//   static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;    (for fields.h)
//   fields, and Visit over them (fields.h)
//   struct State { ...; Visit; bool operator==(const State&) const = default; };    the field of LossScale, if it has
//   one, is called loss_scale State Start() const; double LossScale(const State&) const; in force for the next step
//   bool Finite(const Observation&) const;                                   the verdict that it goes by
//   Outcome<State> Next(const State&, const Observation&) const;
//   std::int64_t QuietSteps(const State&) const;   how many finite steps from here, at least, change nothing that
//   LossScale shows and have
//                                                  no event and are applied; 0 for a policy that must see every
//                                                  observation
//   State Advance(const State&, std::int64_t n) const;                       n <= QuietSteps: n finite steps at once
// and may have
//   void Validate() const;                        throws InputError (kConfig), Place::key the parameter, for what the
//   fields' limits cannot say std::vector<std::string> Warnings() const;    see Warnings in scaler.h Needs NeedsNow()
//   const;                       where the parameters decide what it needs

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_POLICY_H_
