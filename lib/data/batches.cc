// The orders of batches.h. Leaves the random numbers to base/random.cc.
#include "data/batches.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace scaletrace {
namespace {

// The rows that a batch may have at most: for permuted ones not more than there are.
std::size_t BatchSize(const BatchOptions& options, std::size_t samples) {
  if (const auto* permuted = std::get_if<PermutedBatches>(&options)) {
    return std::min(static_cast<std::size_t>(permuted->size), samples);
  }
  if (const auto* drawn = std::get_if<DrawnBatches>(&options)) return static_cast<std::size_t>(drawn->size);
  return samples;
}

}  // namespace

Batches::Batches(const BatchOptions& options, std::size_t samples, std::uint64_t seed)
    : options_(options), samples_(samples), seed_(seed), size_(BatchSize(options, samples)) {
  SCALETRACE_CHECK(samples >= 1 && samples <= std::numeric_limits<std::uint32_t>::max());
  SCALETRACE_CHECK(size_ >= 1);
  if (const auto* permuted = std::get_if<PermutedBatches>(&options_)) {
    steps_per_epoch_ = static_cast<std::int64_t>(permuted->drop_last ? samples / size_ : (samples + size_ - 1) / size_);
  }
}

std::size_t Batches::max_rows() const { return size_; }

bool Batches::is_full() const { return std::holds_alternative<FullBatch>(options_); }

std::int64_t Batches::Epoch(std::int64_t step) const {
  SCALETRACE_CHECK(step >= 0);
  if (!std::holds_alternative<DrawnBatches>(options_)) return step / steps_per_epoch_;
  // floor(step size / samples), with step = whole samples + rest so that no product is larger than it must be.
  const std::int64_t samples = static_cast<std::int64_t>(samples_);
  const std::int64_t size = static_cast<std::int64_t>(size_);
  const std::int64_t whole = step / samples;
  const std::int64_t rest = step % samples * size / samples;
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  return whole > (kMax - rest) / size ? kMax : whole * size + rest;
}

std::span<const std::uint32_t> Batches::Rows(std::int64_t step) {
  SCALETRACE_CHECK(step >= 0);
  if (is_full()) return {};
  if (std::holds_alternative<DrawnBatches>(options_)) {
    order_.resize(size_);
    const std::uint64_t first = static_cast<std::uint64_t>(step) * size_;  // modulo 2^64, as every index
    for (std::size_t i = 0; i < size_; ++i) {
      order_[i] = static_cast<std::uint32_t>(UniformBelow(seed_, Stream::kBatchOrder, first + i, samples_));
    }
    return order_;
  }
  const std::int64_t epoch = step / steps_per_epoch_;
  if (epoch != epoch_) Permute(epoch);
  const std::size_t begin = static_cast<std::size_t>(step % steps_per_epoch_) * size_;
  return std::span<const std::uint32_t>(order_).subspan(begin, std::min(size_, samples_ - begin));
}

// Fisher and Yates from the last place down.
void Batches::Permute(std::int64_t epoch) {
  order_.resize(samples_);
  std::iota(order_.begin(), order_.end(), 0u);
  const std::uint64_t first = static_cast<std::uint64_t>(epoch) * samples_;  // modulo 2^64, as every index
  for (std::size_t i = samples_ - 1; i > 0; --i) {
    std::swap(order_[i], order_[UniformBelow(seed_, Stream::kBatchOrder, first + i, i + 1)]);
  }
  epoch_ = epoch;
}

}  // namespace scaletrace
