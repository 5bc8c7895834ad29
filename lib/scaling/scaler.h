// Any policy with its state, as one value: what a training loop or a replay drives.
#ifndef SCALETRACE_SCALING_SCALER_H_
#define SCALETRACE_SCALING_SCALER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/event.h"
#include "base/json.h"
#include "scaling/policy.h"
#include "scaling/policy_list.h"

namespace scaletrace {

class Scaler {
 public:
  // Throws InputError (kConfig, its key the parameter's) where the parameters do not go together.
  explicit Scaler(const Policy& policy);

  struct Decision {
    bool finite = true;     // the verdict that the policy went by
    bool apply = true;      // take the step
    double unscale_by = 1;  // divide the gradients by this
    Event event = Event::kNone;
    bool raised = false;  // the run ends; the step is not taken
  };

  const PolicyInfo& info() const;
  // The parts of an observation that the policy looks at, with the parameters it has.
  Needs needs() const;
  double loss_scale() const { return loss_scale_; }  // in force for the next step
  // Good steps that the policy's parameters say were counted before the first step; 0 where it has no such parameter.
  std::int64_t initial_good_steps() const;
  Decision Next(const Observation& observation);

  // See policy.h.
  std::int64_t QuietSteps() const;
  void Advance(std::int64_t n);

  // The state as one JSON object, {"policy": KEY, ...}, and back. Restore throws InputError (kData) naming `file` where
  // the text is not a state of this policy; the scaler is then unchanged.
  std::string StateJson() const;
  void Restore(std::string_view json, const std::string& file);
  void Restore(const Json& json, const JsonValue& value);

  // The state's counters besides the scale, in a fixed order: names, and values as CSV cells (flags as 0 and 1).
  std::vector<std::string_view> CounterNames() const;
  std::vector<std::string> Counters() const;

  // The same policy kind in the same state; parameters are not compared.
  bool operator==(const Scaler& other) const;

 private:
  template <class P>
  struct Driven {
    P policy;
    typename P::State state;
  };
  template <class V>
  struct DrivenList;
  template <class... Ps>
  struct DrivenList<std::variant<Ps...>> {
    using type = std::variant<Driven<Ps>...>;
  };
  using AnyDriven = DrivenList<Policy>::type;

  AnyDriven driven_;
  double loss_scale_;
};

// What no single field's limits can say about the parameters; nullopt: nothing.
std::optional<ParameterProblem> FindProblem(const Policy& policy);
// One line for each parameter value that is accepted, as its project accepts it, although it makes little sense: "KEY:
// SENTENCE".
std::vector<std::string> Warnings(const Policy& policy);

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_SCALER_H_
