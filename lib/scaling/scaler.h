// Any policy with its state, as one value: what a training loop or a replay drives.
#ifndef SCALETRACE_SCALING_SCALER_H_
#define SCALETRACE_SCALING_SCALER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/event.h"
#include "scaling/policy.h"
#include "scaling/policy_list.h"

namespace scaletrace {

class Scaler {
 public:
  explicit Scaler(const Policy& policy);

  struct Decision {
    bool finite = true;     // the verdict that the policy went by
    bool apply = true;      // take the step
    double unscale_by = 1;  // divide the gradients by this
    Event event = Event::kNone;
    bool raised = false;  // the run ends; the state did not change
  };

  const PolicyInfo& info() const;
  double loss_scale() const { return loss_scale_; }  // in force for the next step
  Decision Next(const Observation& observation);

  // See policy.h.
  std::int64_t QuietSteps() const;
  void Advance(std::int64_t n);

  // The state as one JSON object, and back. Restore throws InputError (kData) naming `file` where the text is not this policy's state.
  std::string StateJson() const;
  void Restore(std::string_view json, const std::string& file);

  bool operator==(const Scaler& other) const { return state_ == other.state_; }

 private:
  template <class V>
  struct States;
  template <class... Ps>
  struct States<std::variant<Ps...>> {
    using type = std::variant<typename Ps::State...>;
  };

  Policy policy_;
  States<Policy>::type state_;
  double loss_scale_;
};

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_SCALER_H_
