#include "scaletrace/messages.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>

#include "base/error.h"

namespace scaletrace {

void SetUpMessages() {
  const auto logger = spdlog::stderr_color_st("scaletrace");
  logger->set_pattern("%n: %^%l%$: %v");
  spdlog::set_default_logger(logger);
}

void Warn(const std::string& text) { spdlog::warn("{}", text); }
void Error(const std::string& text) { spdlog::error("{}", text); }

namespace {

[[noreturn]] void FailToPrint() {
  if (errno == EPIPE) throw ClosedPipe();
  throw IoError("standard output", "cannot write", errno);
}

}  // namespace

void Print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) FailToPrint();
}

void FlushPrint() {
  if (std::fflush(stdout) != 0) FailToPrint();
}

bool StderrIsTerminal() { return ::isatty(STDERR_FILENO) == 1; }

std::string DurationText(double seconds) {
  char text[64];
  if (!(seconds >= 0)) {
    return "?";
  } else if (seconds < 0.9995e-6) {
    std::snprintf(text, sizeof(text), "%.3g ns", seconds * 1e9);
  } else if (seconds < 0.9995e-3) {
    std::snprintf(text, sizeof(text), "%.3g us", seconds * 1e6);
  } else if (seconds < 0.0995) {
    std::snprintf(text, sizeof(text), "%.3g ms", seconds * 1e3);
  } else if (seconds < 60) {
    std::snprintf(text, sizeof(text), "%.2g s", seconds);
    if (seconds >= 10) std::snprintf(text, sizeof(text), "%.0f s", seconds);
  } else if (seconds < 3600) {
    const auto whole = static_cast<long long>(std::llround(seconds));
    std::snprintf(text, sizeof(text), "%lld:%02lld", whole / 60, whole % 60);
  } else if (seconds < 3.6e6 * 24) {
    const auto whole = static_cast<long long>(std::llround(seconds));
    std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  } else {
    return "years";
  }
  return text;
}

std::string RateText(double value) {
  char text[64];
  const char* unit = "";
  for (const char* next : {" k", " M", " G"}) {
    if (!(value >= 999.5)) break;
    value /= 1000;
    unit = next;
  }
  std::snprintf(text, sizeof(text), value < 99.95 ? "%.3g%s" : "%.0f%s", value, unit);
  return text;
}

std::string CountText(std::int64_t n) {
  std::string digits = std::to_string(n);
  if (n < 10000) return digits;
  for (std::ptrdiff_t i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3) digits.insert(static_cast<std::size_t>(i), 1, ' ');
  return digits;
}

std::string CountText(std::int64_t n, const std::string& what) { return CountText(n) + " " + what + (n == 1 ? "" : "s"); }

}  // namespace scaletrace
