#include "scaling/events.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/number.h"

namespace scaletrace {
namespace {

constexpr std::int64_t kMaxSteps = 1'000'000'000'000'000;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::vector<EventRun> ParseEvents(std::string_view text, const std::string& origin) {
  std::vector<EventRun> runs;
  std::size_t line = 1;
  std::int64_t total = 0;
  const auto fail = [&](const std::string& found) {
    throw InputError(InputError::Kind::kConfig, {origin, line, ""},
                     "found " + found +
                         "; allowed: F, O, N, each with a count of at least 1 before it if wanted, as in FFO or 100F "
                         "1O, at most 10^15 steps");
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
    if (c == '#') {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
      continue;
    }
    std::size_t digits = 0;
    while (i + digits < text.size() && IsDigit(text[i + digits])) ++digits;
    const std::string_view number = text.substr(i, digits);
    const char event = i + digits < text.size() ? text[i + digits] : ' ';
    const std::string_view token = text.substr(i, digits + 1);
    const std::int64_t count = digits == 0 ? 1 : ReadInteger(number).value_or(0);
    if ((event != 'F' && event != 'O' && event != 'N') || count < 1 || count > kMaxSteps - total)
      fail(Printable(token));
    i += digits;
    total += count;
    if (!runs.empty() && runs.back().event == event) {
      runs.back().count += count;
    } else {
      runs.push_back({event, count});
    }
  }
  if (runs.empty()) fail("no step");
  return runs;
}

Observation ObservationOf(char event) {
  Observation o;
  o.max_abs = 1;
  if (event == 'F') return o;
  o.unscaled_finite = o.scaled_finite = o.sums_finite = o.norm_finite = o.scaled_norm_finite = false;
  o.flag_nan = event == 'N';
  o.max_abs = o.flag_nan ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  o.share_above = o.flag_nan ? 0 : 1;  // NaN is above nothing
  return o;
}

bool Drive(Scaler& scaler, const EventRun& run) {
  const Observation seen = ObservationOf(run.event);
  for (std::int64_t left = run.count; left > 0;) {
    if (run.event == 'F') {
      const std::int64_t quiet = std::min(scaler.QuietSteps(), left);
      if (quiet > 0) scaler.Advance(quiet);
      left -= quiet;
      if (left == 0) break;
    }
    if (scaler.Next(seen).raised) return false;
    --left;
  }
  return true;
}

}  // namespace scaletrace
