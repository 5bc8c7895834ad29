// Steps written as letters: what drives a policy without a model. F: every gradient is finite. O: one is inf. N: one is
// NaN.
#ifndef SCALETRACE_SCALING_EVENTS_H_
#define SCALETRACE_SCALING_EVENTS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scaling/scaler.h"

namespace scaletrace {

// `count` steps of the same kind.
struct EventRun {
  char event;  // F, O or N
  std::int64_t count;
  bool operator==(const EventRun&) const = default;
};

// "FFOFF", "100F 1O" and mixtures; white space may stand between runs and after a '#' anything up to the line's end.
// Neighbours of the same kind are joined. InputError (kConfig) with file `origin` and the line where the text is
// anything else, has a count of 0 or more than 10^15 steps.
std::vector<EventRun> ParseEvents(std::string_view text, const std::string& origin);

// What a policy sees of one such step. An O or N fails every check; the largest gradient is 1, inf or NaN; all or none
// of the elements are large.
Observation ObservationOf(char event);

// Takes all steps of the run, the quiet ones at once. False where the policy raised, which ends it.
bool Drive(Scaler& scaler, const EventRun& run);

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_EVENTS_H_
