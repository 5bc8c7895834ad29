// What there is to say of number formats, as text: tables, one format in full, what a format makes of a value, the page
// docs/formats.md. Who prints it: apps/.
#ifndef SCALETRACE_NUMERICS_FORMAT_TEXT_H_
#define SCALETRACE_NUMERICS_FORMAT_TEXT_H_

#include <string>
#include <string_view>

#include "numerics/format.h"

namespace scaletrace {

// "0|0101|010": sign, exponent, mantissa of a code.
std::string CodeFields(const Format& format, std::uint32_t code);
// "0x2a", as many digits as the format needs.
std::string CodeHex(const Format& format, std::uint32_t code);

// All formats, a line each: bits, range, epsilon, special codes.
std::string FormatsTable();
// One in full. Of a format of six bits or fewer all its numbers.
std::string FormatText(const Format& format);
// What the format makes of `value` in each rounding mode: value, code, and for stochastic rounding the two neighbours
// with their exact probabilities. Saturating and flushing get lines of their own where they change something. `typed`:
// how the user wrote the value.
std::string ConversionText(const Format& format, float value, std::string_view typed);
// docs/formats.md.
std::string FormatsMarkdown();

}  // namespace scaletrace

#endif  // SCALETRACE_NUMERICS_FORMAT_TEXT_H_
