// Which rows a step sees.
#include "data/batches.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

std::vector<std::uint32_t> RowsOf(Batches& batches, std::int64_t step) {
  const auto rows = batches.Rows(step);
  return {rows.begin(), rows.end()};
}

TEST_CASE("a full batch is all rows in order and an epoch is a step") {
  Batches batches(FullBatch{}, 17, 1);
  CHECK(batches.is_full());
  CHECK(batches.max_rows() == 17);
  for (const std::int64_t step : {std::int64_t{0}, std::int64_t{5}, std::int64_t{9000000000000000}}) {
    CHECK(batches.Rows(step).empty());
    CHECK(batches.Epoch(step) == step);
  }
}

TEST_CASE("permuted batches cut each epoch's permutation, the short last batch kept unless drop_last") {
  for (const bool drop_last : {false, true}) {
    for (const std::int64_t size : {1, 3, 5, 10, 11, 1000}) {
      INFO("size " << size << ", drop_last " << drop_last);
      constexpr std::size_t kSamples = 10;
      Batches batches(PermutedBatches{size, drop_last}, kSamples, 42);
      CHECK_FALSE(batches.is_full());
      const std::size_t rows = std::min(static_cast<std::size_t>(size), kSamples);
      CHECK(batches.max_rows() == rows);
      const std::int64_t steps = static_cast<std::int64_t>(drop_last ? kSamples / rows : (kSamples + rows - 1) / rows);
      for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
        // Fisher and Yates with the indexes that docs/data.md gives.
        std::vector<std::uint32_t> order(kSamples);
        std::iota(order.begin(), order.end(), 0u);
        for (std::size_t i = kSamples - 1; i > 0; --i) {
          const std::uint64_t index = static_cast<std::uint64_t>(epoch) * kSamples + i;
          std::swap(order[i], order[UniformBelow(42, Stream::kBatchOrder, index, i + 1)]);
        }
        std::vector<std::uint32_t> seen;
        for (std::int64_t b = 0; b < steps; ++b) {
          CHECK(batches.Epoch(epoch * steps + b) == epoch);
          const auto batch = RowsOf(batches, epoch * steps + b);
          CHECK(batch.size() <= rows);
          CHECK((batch.size() == rows || (b == steps - 1 && !drop_last)));
          seen.insert(seen.end(), batch.begin(), batch.end());
        }
        CHECK(seen.size() == (drop_last ? static_cast<std::size_t>(steps) * rows : kSamples));
        CHECK(std::equal(seen.begin(), seen.end(), order.begin()));
        std::sort(order.begin(), order.end());
        for (std::uint32_t i = 0; i < kSamples; ++i) REQUIRE(order[i] == i);
      }
    }
  }
}

TEST_CASE("every order of three rows is as likely as another") {
  Batches batches(PermutedBatches{3, false}, 3, 7);
  std::vector<int> counts(27);
  constexpr int kEpochs = 60000;
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const auto rows = batches.Rows(epoch);
    ++counts[rows[0] * 9 + rows[1] * 3 + rows[2]];
  }
  for (const std::size_t code : {5u, 7u, 11u, 15u, 19u, 21u})
    CHECK(std::fabs(counts[code] - kEpochs / 6.0) < 5 * std::sqrt(kEpochs / 6.0));
}

TEST_CASE("the rows of a step depend on nothing but seed and step") {
  const std::vector<BatchOptions> kinds = {PermutedBatches{4, false}, PermutedBatches{4, true}, DrawnBatches{4}};
  for (const BatchOptions& options : kinds) {
    Batches ascending(options, 23, 9);
    std::vector<std::vector<std::uint32_t>> rows;
    for (std::int64_t step = 0; step < 60; ++step) rows.push_back(RowsOf(ascending, step));
    Batches jumping(options, 23, 9);
    for (const std::int64_t step : {59, 0, 31, 30, 1, 58, 7, 7})
      CHECK(RowsOf(jumping, step) == rows[static_cast<std::size_t>(step)]);
    Batches other_seed(options, 23, 10);
    CHECK(RowsOf(other_seed, 0) != rows[0]);
  }
}

TEST_CASE("drawn batches take any row any number of times and count epochs in rows") {
  Batches batches(DrawnBatches{12}, 5, 3);
  CHECK(batches.max_rows() == 12);
  std::vector<int> counts(5);
  for (std::int64_t step = 0; step < 5000; ++step) {
    const auto rows = batches.Rows(step);
    REQUIRE(rows.size() == 12);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      REQUIRE(rows[i] == UniformBelow(3, Stream::kBatchOrder, static_cast<std::uint64_t>(step) * 12 + i, 5));
      ++counts[rows[i]];
    }
    REQUIRE(batches.Epoch(step) == step * 12 / 5);
  }
  for (const int count : counts) CHECK(std::fabs(count - 12000) < 5 * std::sqrt(12000.0));
}

TEST_CASE("epochs of drawn batches neither overflow nor go back") {
  Batches batches(DrawnBatches{1 << 26}, 1, 3);
  CHECK(batches.Epoch(10) == std::int64_t{10} << 26);
  CHECK(batches.Epoch(9000000000000000) == std::numeric_limits<std::int64_t>::max());
  Batches large(DrawnBatches{3}, 1 << 26, 3);
  CHECK(large.Epoch(9000000000000000) ==
        9000000000000000 / (1 << 26) * 3 + 9000000000000000 % (1 << 26) * 3 / (1 << 26));
}

TEST_CASE("a single sample works in every kind") {
  for (const BatchOptions& options : std::vector<BatchOptions>{PermutedBatches{8, false}, PermutedBatches{8, true}}) {
    Batches batches(options, 1, 3);
    CHECK(RowsOf(batches, 5) == std::vector<std::uint32_t>{0});
    CHECK(batches.Epoch(5) == 5);
  }
  Batches drawn(DrawnBatches{2}, 1, 3);
  CHECK(RowsOf(drawn, 5) == std::vector<std::uint32_t>{0, 0});
}

}  // namespace
}  // namespace scaletrace
