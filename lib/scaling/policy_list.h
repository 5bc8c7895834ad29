// The one list of policies. A new one is a header and its name here.
#ifndef SCALETRACE_SCALING_POLICY_LIST_H_
#define SCALETRACE_SCALING_POLICY_LIST_H_

#include <variant>

#include "scaling/jax_step.h"

namespace scaletrace {

using Policy = std::variant<JaxStep>;

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_POLICY_LIST_H_
