#include "base/fields.h"

#include <cmath>
#include <cstdint>

#include "base/number.h"

namespace scaletrace {
namespace {

// A bound of an integer is written out: 2147483647, not 2.147483647e+09.
std::string BoundText(double bound, bool integer) {
  return integer && std::fabs(bound) < 0x1p63 ? std::to_string(static_cast<std::int64_t>(bound)) : ToText(bound);
}

}  // namespace

std::string Describe(const Limits& limits, bool integer) {
  std::string text = integer ? "an integer" : "a number";
  const bool has_low = std::isfinite(limits.low);
  const bool has_high = std::isfinite(limits.high);
  if (has_low && has_high && !limits.low_open && !limits.high_open) {
    text += " from " + BoundText(limits.low, integer) + " to " + BoundText(limits.high, integer);
  } else {
    if (has_low) text += (limits.low_open ? " > " : " >= ") + BoundText(limits.low, integer);
    if (has_low && has_high) text += " and";
    if (has_high) text += (limits.high_open ? " < " : " <= ") + BoundText(limits.high, integer);
  }
  if (limits.power && limits.infinity) return text + ", 2^k, or inf";
  if (limits.power) return text + " or 2^k";
  if (limits.infinity) return text + " or inf";
  return text;
}

}  // namespace scaletrace
