// Which rows a step sees: a pure function of (seed, step). The formulas: docs/data.md.
#ifndef SCALETRACE_DATA_BATCHES_H_
#define SCALETRACE_DATA_BATCHES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fields.h"

namespace scaletrace {

struct FullBatch {
  static constexpr std::string_view kName = "full", kDoc = "every row in every step: an epoch is a step";
  template <class Self, class V>
  static void Visit(Self&, V&) {}
};

struct PermutedBatches {
  static constexpr std::string_view kName = "permuted",
                                    kDoc = "a new random order of the rows each epoch, cut into batches";
  std::int64_t size = 32;
  bool drop_last = false;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"size", "rows of a batch; more than there are is all of them", Between(1, 1 << 26)}, self.size);
    v.Value({"drop_last", "leave out the short batch at the end of an epoch"}, self.drop_last);
  }
};

struct DrawnBatches {
  static constexpr std::string_view kName = "replacement",
                                    kDoc = "rows drawn with replacement, an epoch being as many rows as there are";
  std::int64_t size = 32;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"size", "rows of a batch", Between(1, 1 << 26)}, self.size);
  }
};

using BatchOptions = std::variant<FullBatch, PermutedBatches, DrawnBatches>;

class Batches {
 public:
  Batches(const BatchOptions& options, std::size_t samples, std::uint64_t seed);

  // The most rows that a step has.
  std::size_t max_rows() const;
  bool is_full() const;  // all rows in order, in every step
  // Whole epochs finished before `step`. Drawn batches: floor(step size / samples), at most the largest int64.
  std::int64_t Epoch(std::int64_t step) const;
  // The rows of `step`; empty for a full batch (all, in order). Valid until the next call. Any order of steps is right,
  // ascending is fast.
  std::span<const std::uint32_t> Rows(std::int64_t step);

 private:
  void Permute(std::int64_t epoch);

  BatchOptions options_;
  std::size_t samples_;
  std::uint64_t seed_;
  std::size_t size_;                  // rows of a batch that is not short
  std::int64_t steps_per_epoch_ = 1;  // not for drawn batches
  std::int64_t epoch_ = -1;           // the epoch that order_ belongs to
  std::vector<std::uint32_t> order_;  // a permutation, or the rows drawn last
};

}  // namespace scaletrace

#endif  // SCALETRACE_DATA_BATCHES_H_
