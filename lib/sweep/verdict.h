// One word for how a run went, for tables. The sentence for a person: Story in train/summary.h.
#ifndef SCALETRACE_SWEEP_VERDICT_H_
#define SCALETRACE_SWEEP_VERDICT_H_

#include <string_view>

#include "train/summary.h"

namespace scaletrace {

// Of a combination that makes no config.
inline constexpr std::string_view kInvalidVerdict = "invalid";

// The first that applies: raised (the policy raised), diverged (the loss at the end is not finite or above kDivergedFactor times the first; its gradients then
// overflow at any scale, so that such a run is stuck besides), inf (the scale is inf), zero (the scale is 0), stuck (the last ten steps or more were skipped, or
// every step), else ok.
std::string_view Verdict(const Summary& summary);

}  // namespace scaletrace

#endif  // SCALETRACE_SWEEP_VERDICT_H_
