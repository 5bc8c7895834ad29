// The columns of a trace and the choice of its rows.
#include <unistd.h>

#include <limits>
#include <random>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/number.h"
#include "tests/catch.h"
#include "tests/golden.h"
#include "trace/csv_writer.h"

namespace scaletrace {
namespace {

std::string Cell(const Column& column, const StepRecord& record) {
  char text[kMaxNumberLength];
  return {text, column.write(text, record)};
}

StepRecord RandomRecord(std::mt19937& engine) {
  const auto any_float = [&] { return std::bit_cast<float>(static_cast<std::uint32_t>(engine())); };
  const auto any_double = [&] { return std::bit_cast<double>((std::uint64_t{engine()} << 32) | engine()); };
  StepRecord r;
  r.step = static_cast<std::int64_t>(engine());
  r.epoch = static_cast<std::int64_t>(engine());
  r.loss = any_float();
  r.loss_scale = any_double();
  r.good_steps = static_cast<std::int64_t>(engine());
  r.grads_finite = engine() % 2 == 0;
  r.event = static_cast<Event>(engine() % std::size(kEventNames));
  r.lr = any_float();
  r.grad_norm = any_double();
  r.grad_max_abs = any_float();
  r.underflow = any_double();
  r.weight_norm = any_double();
  r.skipped_total = static_cast<std::int64_t>(engine());
  r.skipped_in_a_row = static_cast<std::int64_t>(engine());
  r.nonfinite_tensor = "\0wb"[engine() % 3];
  r.nonfinite_index = r.nonfinite_tensor == 0 ? 0 : static_cast<std::int64_t>(engine());
  return r;
}

TEST_CASE("every column writes cells that it reads back to the same cell") {
  std::mt19937 engine(1);
  for (int i = 0; i < 20000; ++i) {
    const StepRecord record = RandomRecord(engine);
    StepRecord back;
    for (const Column& column : Columns()) {
      INFO(column.name);
      const std::string cell = Cell(column, record);
      REQUIRE(cell.find_first_of(",\n\" ") == std::string::npos);
      REQUIRE(column.read(cell, back));
    }
    for (const Column& column : Columns()) REQUIRE(Cell(column, back) == Cell(column, record));
    REQUIRE(back.event == record.event);
    REQUIRE(SameBits(back.loss, record.loss));
  }
}

TEST_CASE("a cell after another one of its column is the same text as alone, whether it repeats, counts on or jumps") {
  std::mt19937 engine(2);
  std::vector<LastCell> last(Columns().size());
  StepRecord record;
  const auto check = [&] {
    for (std::size_t i = 0; i < Columns().size(); ++i) {
      const Column& column = Columns()[i];
      INFO(column.name);
      char text[kMaxNumberLength];
      REQUIRE(std::string(text, column.write_next(text, record, last[i])) == Cell(column, record));
    }
  };
  for (const std::int64_t start : {std::int64_t{-12}, std::int64_t{0}, std::int64_t{985}, std::int64_t{99990}, std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max() - 30}) {
    for (std::int64_t i = 0; i < 30; ++i) {
      record.step = start + i;
      record.epoch = start + i / 2;
      record.good_steps = start + 2 * i;
      record.skipped_total = start - i + 30;
      check();
    }
  }
  for (const float loss : {0.0f, -0.0f, 0.0f, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN(), 1.5f, 1.5f}) {
    record.loss = loss;
    record.loss_scale = static_cast<double>(loss);
    record.tensors[3].max_abs = loss;
    check();
  }
  for (int i = 0; i < 20000; ++i) {
    const StepRecord before = record;
    record = RandomRecord(engine);
    if (engine() % 2 == 0) record.event = before.event;
    if (engine() % 2 == 0) record.loss = before.loss;
    if (engine() % 2 == 0) record.step = before.step + static_cast<std::int64_t>(engine() % 3);
    if (engine() % 2 == 0) record.nonfinite_index = before.nonfinite_index;
    check();
  }
}

TEST_CASE("non-finite cells have the one spelling that other readers take, and bad cells are refused") {
  StepRecord r;
  r.loss = -std::numeric_limits<float>::quiet_NaN();
  CHECK(Cell(*FindColumn("loss"), r) == "NaN");
  r.loss = -std::numeric_limits<float>::infinity();
  CHECK(Cell(*FindColumn("loss"), r) == "-inf");
  r.loss_scale = static_cast<double>(3e38f);
  CHECK(Cell(*FindColumn("loss_scale"), r) == "3.0000000054977558e+38");
  for (const char* cell : {"", "x", "1.5x", "nan", "Inf", "+1", "0x1"}) {
    CHECK_FALSE(FindColumn("loss")->read(cell, r));
    CHECK_FALSE(FindColumn("step")->read(cell, r));
    CHECK_FALSE(FindColumn("grads_finite")->read(cell, r));
  }
  CHECK_FALSE(FindColumn("event")->read("grown", r));
  CHECK(FindColumn("event")->read("", r));
  CHECK(FindColumn("no such column") == nullptr);
}

TEST_CASE("names of columns differ, and the default ones are among them") {
  std::set<std::string_view> names(ColumnNames().begin(), ColumnNames().end());
  CHECK(names.size() == Columns().size());
  for (const std::string& name : DefaultColumns()) CHECK(names.count(name) == 1);
  const std::vector<std::string> some = {"step", "grad_norm", "underflow"};
  CHECK(NeedsOf(some) == (kNeedsGradNorm | kNeedsUnderflow));
  CHECK(NeedsOf(DefaultColumns()) == kNeedsNothing);
}

// Steps that a filter keeps of events given as letters, '.' being none.
std::vector<std::int64_t> Kept(const std::string& events, std::int64_t every) {
  RowFilter filter(every);
  std::vector<std::int64_t> kept;
  const auto keep = [&](const StepRecord& r) { kept.push_back(r.step); };
  for (std::size_t i = 0; i < events.size(); ++i) {
    StepRecord r;
    r.step = static_cast<std::int64_t>(i);
    r.event = events[i] == 'b' ? Event::kBackoff : events[i] == 'f' ? Event::kFloor : events[i] == 'g' ? Event::kGrowth : Event::kNone;
    filter.Add(r, keep);
  }
  filter.Finish(keep);
  return kept;
}

using Steps = std::vector<std::int64_t>;

TEST_CASE("a thinned trace keeps every Nth row, each event, and of a streak the first and the last") {
  CHECK(Kept("....", 1) == Steps{0, 1, 2, 3});
  CHECK(Kept("bbbb", 1) == Steps{0, 1, 2, 3});
  CHECK(Kept("........", 3) == Steps{0, 3, 6});
  CHECK(Kept(".g......", 100) == Steps{0, 1});
  CHECK(Kept("..bbbbb..", 100) == Steps{0, 2, 6});
  CHECK(Kept("..bbfff.f", 100) == Steps{0, 2, 3, 4, 6, 8});
  CHECK(Kept("..bbbbbbbb", 4) == Steps{0, 2, 4, 8, 9});
  CHECK(Kept("bb", 100) == Steps{0, 1});
  CHECK(Kept("b.b.b", 100) == Steps{0, 2, 4});
  CHECK(Kept("bbgg", 0).empty());
  CHECK(Kept("", 1).empty());
}

TEST_CASE("a trace written in pieces by several writers has the bytes of one written at once") {
  std::mt19937 engine(3);
  std::vector<StepRecord> records;
  for (int i = 0; i < 2000; ++i) {
    StepRecord r = RandomRecord(engine);
    r.step = i;
    // Streaks of some length.
    r.event = engine() % 4 != 0 && i > 0 ? records.back().event : static_cast<Event>(engine() % 4);
    records.push_back(r);
  }
  const std::string folder = std::filesystem::temp_directory_path() / ("scaletrace-trace-test-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  for (const std::int64_t every : {1, 7, 1000}) {
    TraceOptions options;
    options.every = every;
    for (const std::string_view name : ColumnNames()) options.columns.emplace_back(name);
    const std::string whole = folder + "/whole.csv", pieces = folder + "/pieces.csv";
    {
      TraceWriter writer(whole, options);
      writer.Add(records);
      writer.Finish();
    }
    TraceState state;
    for (std::size_t i = 0; i < records.size();) {
      const std::size_t n = std::min<std::size_t>(engine() % 300, records.size() - i);
      TraceWriter writer(pieces, options, state);
      writer.Add(std::span(records).subspan(i, n));
      i += n;
      writer.Sync();
      state = writer.state();
      // What comes after the state was saved is cut away by the next writer.
      if (i < records.size()) {
        writer.Add(std::span(records).subspan(i, 1));
        writer.Flush();
      } else {
        writer.Finish();
      }
    }
    CHECK(ReadFile(pieces, 1 << 24) == ReadFile(whole, 1 << 24));
  }
  TraceState damaged;
  damaged.bytes = 10;
  damaged.pending = "1,2,3";
  CHECK_THROWS_AS(TraceWriter(folder + "/whole.csv", TraceOptions{}, damaged), InputError);
  damaged.pending.clear();
  damaged.streak = "grown";
  CHECK_THROWS_AS(TraceWriter(folder + "/whole.csv", TraceOptions{}, damaged), InputError);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace scaletrace
