// Exact text for numbers: the shortest decimals that read back to the same value, and readers that round once.
// Infinities and NaN are spelled differently in CSV and JSON; both spellings live here.
#ifndef SCALETRACE_BASE_NUMBER_H_
#define SCALETRACE_BASE_NUMBER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace scaletrace {

// At most this many characters are written by the Write functions below.
inline constexpr int kMaxNumberLength = 32;

// CSV spelling, written at `out` (room for kMaxNumberLength): the shortest decimal that reads back to the same value,
// exactly "NaN", "inf" or "-inf" otherwise. The sign of a NaN is dropped. Returns the end.
char* WriteNumber(char* out, float value);
char* WriteNumber(char* out, double value);
char* WriteNumber(char* out, std::int64_t value);

// The same as a string.
std::string ToText(float value);
std::string ToText(double value);

// JSON spelling: as above for finite values but -0, which is "-0.0"; "inf", "-inf" and "nan" in quotes otherwise.
std::string ToJsonText(float value);
std::string ToJsonText(double value);

// 2^k where `value` is a power of two of at least 2^10 or at most 2^-10, else the shortest decimal (of the f32, where it is one). For people, not for files.
std::string ToScaleText(double value);

// Decimal numbers with optional sign (-), fraction and exponent, and nothing around them: "1", "-0.5", "6.5e4". No leading zeros ("010"),
// no leading or trailing point, no '+' except in the exponent, no hex, no underscores, no inf or nan.
// Rounded once, straight from the decimal. A value too large for the type is nullopt; too small a one becomes 0 or a subnormal.
std::optional<float> ReadFloat(std::string_view text);
std::optional<double> ReadDouble(std::string_view text);
// Integers: "-" and digits, no leading zeros.
std::optional<std::int64_t> ReadInteger(std::string_view text);
std::optional<std::uint64_t> ReadUnsigned(std::string_view text);

// CSV cells: as ReadFloat and ReadDouble, and "NaN", "inf", "-inf" besides.
std::optional<float> ReadCsvFloat(std::string_view text);
std::optional<double> ReadCsvDouble(std::string_view text);

}  // namespace scaletrace

#endif  // SCALETRACE_BASE_NUMBER_H_
