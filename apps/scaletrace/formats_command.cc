// scaletrace formats: the facts of each number format, derived from its row in lib/numerics/format.cc.
#include <cmath>
#include <cstdio>

#include "base/number.h"
#include "numerics/format.h"
#include "scaletrace/commands.h"
#include "scaletrace/messages.h"

namespace scaletrace {
namespace {

int ListFormats() {
  char line[256];
  const auto add = [&](const char* name, const char* bits, const char* e, const char* m, const char* max, const char* normal, const char* subnormal,
                       const char* epsilon, const char* special, const char* doc) {
    std::snprintf(line, sizeof(line), "%-15s %4s %3s %3s  %-14s %-14s %-14s %-13s %-8s  %s\n", name, bits, e, m, max, normal, subnormal, epsilon, special, doc);
    Print(line);
  };
  add("name", "bits", "e", "m", "max", "min normal", "min subnormal", "epsilon", "has", "");
  for (const Format& f : Formats()) {
    const auto power = [](int exponent) { return ToText(static_cast<float>(std::ldexp(1.0, exponent))); };
    add(std::string(f.name).c_str(), std::to_string(f.bits()).c_str(), std::to_string(f.exponent_bits).c_str(), std::to_string(f.mantissa_bits).c_str(),
        ToText(f.max_finite).c_str(), power(1 - f.bias).c_str(), power(1 - f.bias - f.mantissa_bits).c_str(), power(-f.mantissa_bits).c_str(),
        f.has_inf ? "inf NaN" : f.has_nan ? "NaN" : "neither", std::string(f.doc).c_str());
  }
  Print("\ne, m: bits of exponent and mantissa. epsilon: from 1 to the next number.\n");
  return 0;
}

}  // namespace

Action AddFormats(CLI::App&) { return ListFormats; }

}  // namespace scaletrace
