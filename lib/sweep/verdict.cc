#include "sweep/verdict.h"

namespace scaletrace {

std::string_view Verdict(const Summary& summary) {
  if (summary.raised_at >= 0) return "raised";
  if (summary.diverged_since >= 0) return "diverged";
  if (summary.inf_since >= 0) return "inf";
  if (summary.zero_since >= 0) return "zero";
  const bool skipping = summary.skipping_since >= 0 && summary.steps - summary.skipping_since >= 10;
  if (skipping || (summary.steps > 0 && summary.updates == 0) || summary.stopped == "stuck") return "stuck";
  return "ok";
}

}  // namespace scaletrace
