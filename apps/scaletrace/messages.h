// What the program says to a person: messages through spdlog on stderr, results on stdout, times and counts in readable form.
#ifndef SCALETRACE_APPS_MESSAGES_H_
#define SCALETRACE_APPS_MESSAGES_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace scaletrace {

void SetUpMessages();
void Warn(const std::string& text);
void Error(const std::string& text);

// Whoever read stdout has seen enough, as `head` has: no error, and nothing to say.
class ClosedPipe {};

// Writes to stdout; ClosedPipe where its reader is gone, IoError where it fails otherwise (a full disk).
void Print(std::string_view text);
// Flushes stdout; IoError likewise.
void FlushPrint();

bool StderrIsTerminal();

// "92 ns", "8.5 us", "850 ms", "12 s", "4:05", "1:02:45"
std::string DurationText(double seconds);
// "850", "12.3 k", "1.25 M"
std::string RateText(double value);
// Thousands apart: "2 000 000"; below 10000 as it is.
std::string CountText(std::int64_t n);
// The same with what is counted: "1 step", "20 steps".
std::string CountText(std::int64_t n, const std::string& what);

}  // namespace scaletrace

#endif  // SCALETRACE_APPS_MESSAGES_H_
