// How often each loss scale was in force, for the median and the time at the ceiling: what a summary of a run has besides Summary (run_block.h).
#ifndef SCALETRACE_TRAIN_SCALE_TALLY_H_
#define SCALETRACE_TRAIN_SCALE_TALLY_H_

#include <cmath>
#include <cstdint>
#include <map>

namespace scaletrace {

class ScaleTally {
 public:
  // `count` further steps with this scale in force. NaN counts as one value, above all others.
  void Add(double scale, std::int64_t count = 1) {
    if (last_ == nullptr || !(scale == last_scale_)) {
      last_ = &counts_[scale];
      last_scale_ = scale;
    }
    *last_ += count;
    total_ += count;
  }

  // The lower median: the value at place (n - 1) / 2, rounded down, of the n scales in ascending order. 0 where there are none.
  double LowerMedian() const {
    std::int64_t left = (total_ + 1) / 2;
    for (const auto& [scale, count] : counts_) {
      left -= count;
      if (left <= 0) return scale;
    }
    return 0;
  }

  // How many steps had exactly this scale; 0 for NaN.
  std::int64_t Count(double scale) const {
    const auto it = std::isnan(scale) ? counts_.end() : counts_.find(scale);
    return it == counts_.end() ? 0 : it->second;
  }

 private:
  struct NanLast {
    bool operator()(double a, double b) const { return std::isnan(b) ? !std::isnan(a) : a < b; }
  };

  std::map<double, std::int64_t, NanLast> counts_;  // distinct scales are few but for policies that grow in every step
  std::int64_t* last_ = nullptr;                    // the entry of the step before: a scale stays for a while
  double last_scale_ = 0;
  std::int64_t total_ = 0;
};

}  // namespace scaletrace

#endif  // SCALETRACE_TRAIN_SCALE_TALLY_H_
