// What a loss-scaling policy is. A policy is a plain struct: its fields are the parameters (immutable while it runs), its State is a small value, and
// everything it does is a pure function of both. It knows no models, formats or YAML. The list of all of them: policy_list.h.
// A value that holds any of them, for those who drive one: scaler.h.
#ifndef SCALETRACE_SCALING_POLICY_H_
#define SCALETRACE_SCALING_POLICY_H_

#include <cstdint>
#include <string_view>

#include "base/event.h"

namespace scaletrace {

// What one step's gradients looked like. `scaled` means as they come out of the backward pass (S times too large), `unscaled` after the division by S. Only the
// parts that the policy's Needs name are filled in; the others keep these defaults.
struct Observation {
  std::int64_t step = 0;          // 0-based, attempts counted
  bool unscaled_finite = true;    // every entry of g/S
  bool scaled_finite = true;      // every entry of g
  bool sums_finite = true;        // the f32 sum of each tensor of g
  bool norm_finite = true;        // the f32 sum of squares over all entries of g/S
  bool has_nan = false;           // a NaN among the entries that made the verdict non-finite
  double max_abs = 0;             // largest |entry| of g/S; inf or NaN where one is
  double share_above = 0;         // share of the entries of |g| above Needs::share_threshold
};

struct Needs {
  bool unscaled_finite = false;
  bool scaled_finite = false;
  bool sums_finite = false;
  bool norm_finite = false;
  bool has_nan = false;
  bool max_abs = false;
  bool share_above = false;
  double share_threshold = 0;
};

// The type that holds S and in which it is multiplied (specified per policy).
enum class Hold : std::uint8_t { kF32, kF64 };

// Properties that hold for every parameter setting that the policy accepts without a warning. Tests check each where it is made, and look for a counterexample
// where it is not.
struct Claims {
  bool never_grows_on_overflow = false;
  bool keeps_powers_of_two = false;  // from a power of two, with factors that are powers of two
  bool stays_within_limits = false;  // between its floor and ceiling, once S is there
  bool stays_finite = false;         // S never becomes inf or NaN
};

struct PolicyInfo {
  std::string_view key;
  std::string_view project;  // "PyTorch", and the file that has the rule
  std::string_view file;
  std::string_view summary;  // one line: what is special
  Hold hold = Hold::kF32;
  Needs needs;
  Claims claims;
};

// The policy's answer to one observation.
template <class State>
struct Outcome {
  State next;
  Event event = Event::kNone;
  bool apply = true;         // whether the optimizer takes the step
  bool unscale_new = false;  // divide the gradients by the new S, not by the one of the backward pass (a bug that some public policies have)
  bool raised = false;       // the public implementation raises here: `next` is the state before, and the run ends
};

// A policy P has
//   static constexpr PolicyInfo kInfo;
//   static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;    (for fields.h)
//   fields, and Visit over them (fields.h)
//   struct State { ...; Visit; bool operator==(const State&) const = default; };
//   State Start() const;
//   double LossScale(const State&) const;                                    in force for the next step
//   bool Finite(const Observation&) const;                                   the verdict that it goes by
//   Outcome<State> Next(const State&, const Observation&) const;
//   std::int64_t QuietSteps(const State&) const;   how many finite steps from here, at least, change nothing that LossScale shows and have
//                                                  no event and are applied; 0 for a policy that must see every observation
//   State Advance(const State&, std::int64_t n) const;                       n <= QuietSteps: n finite steps at once

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_POLICY_H_
