// A trajectory as a picture of text. What is drawn of a long one: for each stretch of steps its extremes, so that no spike is lost. Nothing here asks what the terminal is: the caller says.
#ifndef SCALETRACE_COMPARE_CHART_H_
#define SCALETRACE_COMPARE_CHART_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/event.h"

namespace scaletrace {

// One quantity over a stretch of steps.
struct Extremes {
  double low = std::numeric_limits<double>::infinity();  // of the finite values; low > high: there are none
  double high = -std::numeric_limits<double>::infinity();
  double smallest_positive = std::numeric_limits<double>::infinity();
  double last = 0;  // finite
  bool nan = false, inf = false;

  bool empty() const { return !(low <= high); }
  void Add(double value);
  void Add(const Extremes& later);
};

struct ChartPart {
  Extremes loss, scale;
  std::uint32_t events = 0;  // bit i: Event i happened
};

// Takes steps in order and keeps at most kStretches stretches of equal length, which doubles when there would be more.
class Overview {
 public:
  static constexpr std::size_t kStretches = 4096;

  // A step below the first one counts to the first stretch. NaN and infinities are kept as marks.
  void Add(std::int64_t step, double loss, double scale, Event event);

  std::int64_t first_step() const { return first_; }
  std::int64_t last_step() const { return last_; }
  bool empty() const { return stretches_.empty(); }
  // The steps from first_step to last_step in `n` parts of (nearly) equal length.
  std::vector<ChartPart> Parts(std::size_t n) const;

 private:
  std::int64_t first_ = 0, last_ = 0, width_ = 1;
  std::vector<ChartPart> stretches_;
};

struct ChartOptions {
  std::size_t width = 80;   // of the whole picture, in characters, the labels at the left included; at least 30
  std::size_t height = 7;   // of each of the two charts, in lines
  bool ascii = false;       // else braille and arrows, in UTF-8
  bool color = false;       // escape sequences
  bool loss = true, scale = true;
};

// Scale, loss and events over the steps, lines each ended and none longer than options.width. `overview` is not empty.
std::string DrawOverview(const Overview& overview, const ChartOptions& options);

}  // namespace scaletrace

#endif  // SCALETRACE_COMPARE_CHART_H_
