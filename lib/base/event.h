// What a scaling policy did in a step: the closed list that traces, policies, comparisons and plots share.
#ifndef SCALETRACE_BASE_EVENT_H_
#define SCALETRACE_BASE_EVENT_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace scaletrace {

// Where two apply, the one that stands first here wins (kNone, which is the empty cell of a trace, applies when nothing else does).
enum class Event : std::uint8_t {
  kNone,
  kRaise,     // the policy raised: the run ends with this step
  kFloor,     // backed off and was stopped by the floor
  kForgiven,  // an overflow that hysteresis or a tolerance bore: the scale stays, the step is skipped
  kBackoff,   // an overflow made the scale smaller
  kOverflow,  // an overflow that changed nothing
  kCeiling,   // growth was due and the ceiling stopped or shortened it
  kGrowth,    // the scale grew
};

inline constexpr std::string_view kEventNames[] = {"",        "raise",    "floor",   "forgiven",
                                                   "backoff", "overflow", "ceiling", "growth"};
constexpr std::span<const std::string_view> EnumNames(Event) { return kEventNames; }
constexpr std::string_view Name(Event event) { return kEventNames[static_cast<int>(event)]; }

}  // namespace scaletrace

#endif  // SCALETRACE_BASE_EVENT_H_
