// The summary of many steps at once against that of the same steps one by one.
#include "train/summary.h"

#include <limits>
#include <random>

#include "base/json.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

TEST_CASE("a stretch of applied steps counts as its steps one by one") {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> losses = {1.0f, 0.5f, 1000.0f, 1001.0f, 3e38f, kInf, kNan, 0.0f, -0.0f, 1e-45f};
  const std::vector<double> scales = {65536, 0, 1e-40, static_cast<double>(kInf)};
  std::mt19937 engine(7);
  for (int run = 0; run < 3000; ++run) {
    Summary one_by_one, at_once;
    // Runs of one kind of loss are likely, so that rows of diverged steps begin, end and go on from stretch to stretch.
    const std::size_t kinds = 1 + engine() % losses.size(), shift = engine() % losses.size();
    for (int piece = 0; piece < 6; ++piece) {
      StepRecord record;
      record.loss_scale = scales[engine() % scales.size()];
      std::vector<float> some(engine() % 5);
      const std::int64_t first = at_once.steps;
      for (std::size_t i = 0; i < some.size(); ++i) {
        some[i] = losses[(shift + engine() % kinds) % losses.size()];
        record.step = first + static_cast<std::int64_t>(i);
        record.loss = some[i];
        one_by_one.Add(record, record.loss_scale);
      }
      StepRecord begin = record;
      begin.step = first;
      begin.loss = some.empty() ? 0 : some[0];
      at_once.AddQuiet(begin, some);
      REQUIRE(FieldsToJson(at_once) == FieldsToJson(one_by_one));
      if (engine() % 2 == 0) continue;
      // A skipped step in between.
      record.step = at_once.steps;
      record.skipped_in_a_row = 1;
      record.event = Event::kOverflow;
      record.loss = losses[engine() % losses.size()];
      one_by_one.Add(record, record.loss_scale);
      at_once.Add(record, record.loss_scale);
    }
  }
}

}  // namespace
}  // namespace scaletrace
