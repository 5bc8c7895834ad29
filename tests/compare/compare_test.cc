// Two trajectories, one of them changed at a known place: the comparison finds that place and names it.
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "base/error.h"
#include "base/number.h"
#include "compare/compare.h"
#include "compare/report.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

using Lines = std::vector<std::vector<std::string>>;  // the header first

const std::vector<std::string> kNames = {"step", "loss", "loss_scale", "good_steps", "grads_finite", "event", "grad_norm"};

std::string Text(const Lines& lines) {
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) text += (i > 0 ? "," : "") + line[i];
    text += "\n";
  }
  return text;
}

Comparison CompareTexts(const std::string& a, const std::string& b, const CompareOptions& options = {}) {
  RowReader x("a.csv", GivenText(a)), y("b.csv", GivenText(b));
  return Compare(x, y, options);
}

CompareOptions Exactly() {
  CompareOptions options;
  options.tolerances = Tolerances::Exact();
  return options;
}

// Some 300 rows whose cells take every kind of value; an event every 20 to 40 steps.
Lines RandomTrace(std::mt19937& engine) {
  Lines lines = {kNames};
  const int rows = 200 + static_cast<int>(engine() % 200);
  int next_event = 30;
  double scale = 65536;
  for (int i = 0; i < rows; ++i) {
    const bool event = i == next_event;
    const bool growth = event && engine() % 2 == 0;
    if (event) next_event += 20 + static_cast<int>(engine() % 20);
    const auto loss = static_cast<float>(1.0 / (1 + i)) * static_cast<float>(engine() % 1000 + 1);
    const bool inf = engine() % 50 == 0;
    lines.push_back({std::to_string(i), inf ? "inf" : ToText(loss), ToText(scale), std::to_string(engine() % 100), event && !growth ? "0" : "1",
                     !event ? "" : growth ? "growth" : "backoff", ToText(std::ldexp(static_cast<double>(engine()), -20))});
    if (event) scale *= growth ? 2 : 0.5;
  }
  return lines;
}

TEST_CASE("of a text that is still being written the whole lines are read, wherever its pieces end") {
  const std::string text = "step,loss\n0,1\n1,2.5\n2,0.";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    std::size_t at = 0;
    RowReader reader("text", WholeLines([&](std::string& out) {
                       if (at >= text.size()) return false;
                       out += text.substr(at, piece);
                       at += piece;
                       return true;
                     }));
    Row row;
    REQUIRE(reader.Next(row));
    REQUIRE(reader.Next(row));
    REQUIRE(row.cell(1) == "2.5");
    REQUIRE_FALSE(reader.Next(row));
  }
}

TEST_CASE("of 200 changes of a trace, each at a random place, the first difference is named rightly") {
  std::mt19937 engine(2024);
  std::set<int> kinds_seen;
  for (int seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    const Lines expected = RandomTrace(engine);
    Lines got = expected;
    const std::size_t rows = expected.size() - 1;
    const std::size_t at = 2 + engine() % (rows - 3);  // index in `expected` of a row that has others around it
    const auto step_of = [&](std::size_t i) { return std::stoll(expected[i][0]); };
    const int kind = seed % 10;
    kinds_seen.insert(kind);
    INFO("kind " << kind << ", row " << at);
    const auto check = [&](DifferenceKind want, std::int64_t step, const std::string& column) {
      const Comparison c = CompareTexts(Text(expected), Text(got), Exactly());
      REQUIRE_FALSE(c.equal);
      REQUIRE(c.first);
      CHECK(c.first->kind == want);
      CHECK(c.first->column == column);
      if (want != DifferenceKind::kColumn) CHECK(c.first->step == step);
      return c;
    };
    switch (kind) {
      case 0: {  // one bit of a loss
        std::size_t row = at;
        while (expected[row][1] == "inf") row = 2 + engine() % (rows - 3);
        const auto value = static_cast<float>(std::stod(expected[row][1]));
        const int bit = static_cast<int>(engine() % 32);
        const auto changed = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (1u << bit));
        got[row][1] = ToText(changed);
        const Comparison c = check(DifferenceKind::kValue, step_of(row), "loss");
        CHECK(c.rows_differing == 1);
        CHECK(c.first->expected == expected[row][1]);
        CHECK(c.first->got == ToText(changed));
        CHECK(c.first->expected_line == row + 1);
        CHECK(c.first->got_line == row + 1);
        if (bit < 20) CHECK(c.first->ulps == std::ldexp(1.0, bit));
        break;
      }
      case 1: {  // one bit of a loss scale
        const double value = std::stod(expected[at][2]);
        got[at][2] = ToText(std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) ^ (std::uint64_t{1} << (engine() % 64))));
        CHECK(check(DifferenceKind::kValue, step_of(at), "loss_scale").rows_differing == 1);
        break;
      }
      case 2: {  // a row dropped, or a few
        const std::size_t n = std::min<std::size_t>(1 + engine() % 3, got.size() - at);
        got.erase(got.begin() + static_cast<std::ptrdiff_t>(at), got.begin() + static_cast<std::ptrdiff_t>(at + n));
        const Comparison c = check(DifferenceKind::kMissingRow, step_of(at), "");
        CHECK(c.first->steps == static_cast<std::int64_t>(n));
        CHECK(c.rows_missing == static_cast<std::int64_t>(n));
        CHECK(c.rows_differing == 0);
        break;
      }
      case 3: {  // a row doubled, right there or further on
        const std::size_t to = engine() % 2 == 0 ? at + 1 : at + 1 + engine() % (got.size() - at - 1);
        got.insert(got.begin() + static_cast<std::ptrdiff_t>(to), expected[at]);
        const Comparison c = check(DifferenceKind::kRepeatedRow, step_of(at), "");
        CHECK(c.first->got_line == to + 1);
        CHECK(c.rows_repeated == 1);
        CHECK(c.rows_equal == static_cast<std::int64_t>(rows));
        break;
      }
      case 4: {  // two neighbours swapped
        std::swap(got[at], got[at + 1]);
        const Comparison c = check(DifferenceKind::kMisplacedRow, step_of(at + 1), "");
        CHECK(c.first->got_line == at + 1);
        CHECK(c.rows_equal == static_cast<std::int64_t>(rows) - 1);
        break;
      }
      case 5: {  // two rows further apart swapped
        const std::size_t other = at + 2 <= rows - 1 ? at + 2 + engine() % (rows - at - 2 + 1) : at + 1;
        std::swap(got[at], got[other]);
        const Comparison c = check(DifferenceKind::kMisplacedRow, step_of(other), "");
        CHECK(c.first->got_line == at + 1);
        CHECK(c.rows_repeated == 0);
        break;
      }
      case 6: {  // an event moved
        std::vector<std::size_t> events;
        for (std::size_t i = 1; i <= rows; ++i) {
          if (!expected[i][5].empty()) events.push_back(i);
        }
        const std::size_t from = events[engine() % events.size()];
        std::ptrdiff_t k = 0;
        while (k == 0 || static_cast<std::ptrdiff_t>(from) + k > static_cast<std::ptrdiff_t>(rows)) k = static_cast<std::ptrdiff_t>(engine() % 31) - 15;
        const auto to = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(from) + k);
        std::swap(got[from][5], got[to][5]);
        const Comparison c = check(DifferenceKind::kValue, step_of(std::min(from, to)), "event");
        REQUIRE(c.event);
        CHECK(c.event->kind == EventChange::Kind::kMoved);
        CHECK(c.event->got_step - c.event->expected_step == k);
        CHECK(c.event->expected == expected[from][5]);
        break;
      }
      case 7: {  // a column gone
        const std::size_t column = 1 + engine() % (kNames.size() - 1);
        for (auto& line : got) line.erase(line.begin() + static_cast<std::ptrdiff_t>(column));
        const Comparison c = check(DifferenceKind::kColumn, 0, kNames[column]);
        CHECK_FALSE(c.first_row);
        CHECK(c.rows_equal == static_cast<std::int64_t>(rows));
        break;
      }
      case 8: {  // NaN for inf
        std::size_t row = at;
        got[row][1] = "NaN";
        Lines with_inf = expected;
        with_inf[row][1] = "inf";
        const Comparison c = CompareTexts(Text(with_inf), Text(got), Exactly());
        REQUIRE(c.first);
        CHECK(c.first->kind == DifferenceKind::kValue);
        CHECK(c.first->step == step_of(row));
        CHECK(c.first->column == "loss");
        CHECK(c.first->expected == "inf");
        CHECK(c.first->got == "NaN");
        break;
      }
      case 9: {  // a row's whole end gone: a trace cut short
        got.resize(at);
        const Comparison c = check(DifferenceKind::kMissingRow, step_of(at), "");
        CHECK(c.first->steps == static_cast<std::int64_t>(expected.size() - at));
        CHECK(c.equal_to_the_end_from == -1);
        break;
      }
    }
    // And a trace is equal to itself.
    CHECK(CompareTexts(Text(got), Text(got), Exactly()).equal);
  }
  CHECK(kinds_seen.size() == 10);
}

TEST_CASE("a missing row is not a row of NaN, and NaN equals NaN") {
  CHECK(CompareTexts("step,loss\n0,NaN\n", "step,loss\n0,NaN\n").equal);
  CHECK(CompareTexts("step,loss\n0,NaN\n", "step,loss\n0,nan\n").equal);
  CHECK(CompareTexts("step,loss\n0,NaN\n", "step,loss\n0,-nan\n").equal);
  const Comparison missing = CompareTexts("step,loss\n0,1\n1,NaN\n2,1\n", "step,loss\n0,1\n2,1\n");
  REQUIRE(missing.first);
  CHECK(missing.first->kind == DifferenceKind::kMissingRow);
  CHECK(missing.first->step == 1);
  // An empty cell is a value that is not there, and neither 0 nor NaN.
  CHECK_FALSE(CompareTexts("step,loss\n0,NaN\n", "step,loss\n0,\n").equal);
  CHECK_FALSE(CompareTexts("step,loss\n0,0\n", "step,loss\n0,\n").equal);
  CHECK(CompareTexts("step,loss\n0,\n", "step,loss\n0,\n").equal);
  CHECK_FALSE(CompareTexts("step,loss\n0,inf\n", "step,loss\n0,-inf\n").equal);
  CHECK_FALSE(CompareTexts("step,loss\n0,3.4028235e38\n", "step,loss\n0,inf\n").equal);
}

TEST_CASE("by default floats may be four units in the last place apart, and scales, counts, flags and events may not") {
  const float one = 1;
  float four = one, five = one;
  for (int i = 0; i < 5; ++i) {
    five = std::nextafter(five, 2.0f);
    if (i < 4) four = five;
  }
  const auto row = [](const std::string& name, const std::string& cell) { return "step," + name + "\n0," + cell + "\n"; };
  CHECK(CompareTexts(row("loss", "1"), row("loss", ToText(four))).equal);
  CHECK_FALSE(CompareTexts(row("loss", "1"), row("loss", ToText(five))).equal);
  CHECK(CompareTexts(row("loss", "0"), row("loss", "-0")).equal);
  CHECK_FALSE(CompareTexts(row("loss", "0"), row("loss", "-0"), Exactly()).equal);
  CHECK(CompareTexts(row("grad_norm", "1"), row("grad_norm", ToText(1 + 4 * 0x1p-52))).equal);
  CHECK_FALSE(CompareTexts(row("grad_norm", "1"), row("grad_norm", ToText(1 + 5 * 0x1p-52))).equal);
  CHECK_FALSE(CompareTexts(row("loss_scale", "1"), row("loss_scale", ToText(1 + 0x1p-52))).equal);
  CHECK_FALSE(CompareTexts(row("good_steps", "1"), row("good_steps", "2")).equal);
  CHECK_FALSE(CompareTexts(row("grads_finite", "1"), row("grads_finite", "0")).equal);
  CHECK_FALSE(CompareTexts(row("event", "growth"), row("event", "")).equal);
  // Columns that scaletrace does not know: integers and words exactly, numbers as floats.
  CHECK_FALSE(CompareTexts(row("mine", "9007199254740993"), row("mine", "9007199254740992")).equal);
  CHECK(CompareTexts(row("mine", "0.1"), row("mine", "0.10000000000000002")).equal);
  CHECK_FALSE(CompareTexts(row("mine", "0.1"), row("mine", "0.1000001")).equal);
  CHECK_FALSE(CompareTexts(row("mine", "x"), row("mine", "y")).equal);
}

TEST_CASE("a tolerance is met by any one of its bounds, and infinity by none") {
  const auto same = [](double a, double b, const Tolerance& t) {
    return SameCell({.kind = Cell::Kind::kFloat64, .number = a}, {.kind = Cell::Kind::kFloat64, .number = b}, t);
  };
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(same(1, 1.5, {.absolute = 0.5}));
  CHECK_FALSE(same(1, 1.75, {.absolute = 0.5}));
  CHECK(same(100, 101, {.relative = 0.01}));
  CHECK_FALSE(same(100, 102, {.relative = 0.01}));
  CHECK(same(100, 101, {.absolute = 0.1, .relative = 0.01}));
  CHECK(same(1, 1 + 0x1p-52, {.ulps = 1}));
  CHECK(same(1, 1 + 0x1p-24, {.ulps = 1, .of = CellType::kFloat32}));
  CHECK(same(-0x1p-1074, 0x1p-1074, {.ulps = 2}));
  for (const Tolerance& t : {Tolerance{.absolute = inf}, Tolerance{.relative = inf}, Tolerance{.ulps = 1e300}}) {
    CHECK_FALSE(same(inf, 1, t));
    CHECK_FALSE(same(1, inf, t));
    CHECK_FALSE(same(nan, 1, t));
    CHECK_FALSE(same(1, nan, t));
    CHECK(same(inf, inf, t));
    CHECK(same(nan, nan, t));
  }
}

TEST_CASE("cells are read as other programs print them, and nothing else is") {
  const auto reads = [](const std::string& text, CellType type) {
    Cell cell;
    return ReadCell(text, type, cell) ? std::optional<Cell>(cell) : std::nullopt;
  };
  for (const char* text : {"1.5", "1.50", "+1.5", "15e-1", "1.5E+00", "01.5", "1.5e0"}) {
    INFO(text);
    REQUIRE(reads(text, CellType::kFloat32));
    CHECK(reads(text, CellType::kFloat32)->number == 1.5);
  }
  for (const char* text : {"inf", "Inf", "INF", "+inf", "Infinity"}) CHECK(std::isinf(reads(text, CellType::kFloat64)->number));
  for (const char* text : {"nan", "NaN", "-nan", "NAN"}) CHECK(std::isnan(reads(text, CellType::kFloat32)->number));
  for (const char* text : {"True", "true", "TRUE", "1", "1.0"}) CHECK(reads(text, CellType::kFlag)->integer == 1);
  for (const char* text : {"False", "0", "0.0"}) CHECK(reads(text, CellType::kFlag)->integer == 0);
  CHECK(reads("5.0", CellType::kInteger)->integer == 5);
  CHECK(reads(".5", CellType::kFloat32)->number == 0.5);
  CHECK(reads("1.", CellType::kFloat32)->number == 1);
  for (const char* text : {"x", "1.5x", "0x1p3", "1_000", "1 ", " 1", "--1", "+", ".", "e5", "1e", "infx", "None", "NA"}) {
    INFO(text);
    CHECK_FALSE(reads(text, CellType::kFloat32));
    CHECK_FALSE(reads(text, CellType::kFloat64));
  }
  for (const char* text : {"2", "x", "-1", "0.5", "yes"}) CHECK_FALSE(reads(text, CellType::kFlag));
  for (const char* text : {"0.5", "1e300", "inf", "nan", "true"}) CHECK_FALSE(reads(text, CellType::kInteger));
  // A float that was printed as a double is the float; a number that no float holds stays what it is.
  CHECK(reads("0.10000000149011612", CellType::kFloat32)->number == static_cast<double>(0.1f));
  CHECK(reads("1e39", CellType::kFloat32)->kind == Cell::Kind::kFloat64);
  CHECK(BitsText(*reads("1", CellType::kFloat32)) == "0x3f800000");
  CHECK(BitsText(*reads("1", CellType::kFloat64)) == "0x3ff0000000000000");
}

std::string ReaderError(const std::string& text, const std::vector<ColumnName>& names = {}) {
  try {
    RowReader reader("t.csv", GivenText(text), names);
    Row row;
    while (reader.Next(row)) {
    }
  } catch (const InputError& e) {
    CHECK(e.kind() == InputError::Kind::kData);
    return e.what();
  }
  return "none";
}

TEST_CASE("a file that is no trajectory is refused with its line and what is allowed") {
  CHECK(ReaderError("") == "t.csv: found nothing; allowed: CSV with a header line");
  CHECK(ReaderError("loss\n1\n") == "t.csv:1: found no column 'step' among: loss; allowed: CSV with commas and a column that counts steps, named step or by --map THEIRS=step");
  CHECK(ReaderError("step,a,a\n") == "t.csv:1: found the column 'a' twice; allowed: each name once");
  CHECK(ReaderError("step,a\n0,1\n1\n") == "t.csv:3: found 1 cell; allowed: 2, as in the header");
  CHECK(ReaderError("step,a\n0,1\nx,1\n") == "t.csv:3: step: found 'x'; allowed: an integer");
  CHECK(ReaderError("step,a\n0,1\n\n1,1\n") == "t.csv:3: found a blank line between rows; allowed: one row a line");
  CHECK(ReaderError("step,a\n0,\"1\n1,1\n") == "t.csv:2: found a quoted cell that does not end on its line; allowed: cells of one line");
  CHECK(ReaderError("step,a\n0,1\n\n\n") == "none");
  CHECK(ReaderError("step,scale,loss_scale\n", {{"scale", "loss_scale"}}) ==
        "t.csv:1: found both 'scale' and 'loss_scale', which --map makes one column; allowed: one of them");
  CHECK(ReaderError("step," + std::string(3 << 20, 'a')) == "t.csv:1: found a line of more than 1 MiB; allowed: CSV");
}

TEST_CASE("CSV as R, Excel and other tools write it is read like our own") {
  const std::string ours = "step,loss,event\n0,1.5,\n1,2,growth\n";
  for (const std::string theirs :
       {"\xEF\xBB\xBFstep,loss,event\n0,1.5,\n1,2,growth\n", "step,loss,event\r\n0,1.5,\r\n1,2,growth\r\n", "\"step\",\"loss\",\"event\"\n0,1.50,\"\"\n1,2,\"growth\"",
        "step,loss,event\n0,1.5E+00,\n1.0,2.0,growth\n\n"}) {
    CHECK(CompareTexts(ours, theirs, Exactly()).equal);
  }
  RowReader expected("a", GivenText("step,loss_scale,grads_finite\n0,2,0\n1,1,1\n"));
  RowReader got("b", GivenText("iteration,scale,found_inf\n0,2.0,True\n1,1.0,0.0\n"), {ParseColumnName("iteration=step"), ParseColumnName("scale=loss_scale"), ParseColumnName("found_inf=not-grads_finite")});
  CHECK(Compare(expected, got, Exactly()).equal);
  for (const char* bad : {"scale", "=loss_scale", "scale=", "scale=lossscale", "found_inf=not-loss"}) CHECK_THROWS_AS(ParseColumnName(bad), InputError);
}

TEST_CASE("a text that comes in pieces of any size gives the same rows") {
  std::mt19937 engine(7);
  const std::string text = Text(RandomTrace(engine));
  for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
    std::size_t at = 0;
    RowReader pieces("pieces", [&](std::string& out) {
      const std::size_t n = std::min(size, text.size() - at);
      out += text.substr(at, n);
      at += n;
      return n > 0;
    });
    RowReader whole("whole", GivenText(text));
    CHECK(Compare(whole, pieces, Exactly()).equal);
  }
}

TEST_CASE("extra columns are named and make no difference, ignored ones neither") {
  const Comparison c = CompareTexts("step,loss\n0,1\n", "step,seconds,loss\n0,5,1\n");
  CHECK(c.equal);
  CHECK(c.extra_columns == std::vector<std::string>{"seconds"});
  CompareOptions options;
  options.tolerances.columns["loss"].ignore = true;
  CHECK(CompareTexts("step,loss\n0,1\n", "step,loss\n0,2\n", options).equal);
  CHECK(CompareTexts("step,loss\n0,1\n", "step\n0\n", options).equal);
  options.tolerances.columns["los"].ignore = true;
  CHECK_THROWS_WITH(CompareTexts("step,loss\n0,1\n", "step,loss\n0,2\n", options),
                    ContainsSubstring("found 'los', a column that neither a.csv nor b.csv has (did you mean 'loss'?)"));
  CompareOptions some;
  some.columns = {"loss_scale"};
  CHECK(CompareTexts("step,loss,loss_scale\n0,1,2\n", "step,loss,loss_scale\n0,7,2\n", some).equal);
  CHECK_THROWS_AS(CompareTexts("step,loss\n0,1\n", "step,loss\n0,7\n", some), InputError);
}

TEST_CASE("the report says whether the two meet again, and which event moved, from the scale where there are no events") {
  const auto trace = [](int backoff_at, bool meets) {
    std::string text = "step,loss_scale\n";
    for (int i = 0; i < 40; ++i) text += std::to_string(i) + "," + (i <= backoff_at ? "65536" : i < 30 || meets ? "32768" : "16384") + "\n";
    return text;
  };
  Comparison c = CompareTexts(trace(9, true), trace(12, true));
  REQUIRE(c.event);
  CHECK(c.event->derived);
  CHECK(c.event->expected_step == 10);
  CHECK(c.event->got_step == 13);
  CHECK(c.equal_to_the_end_from == 13);
  CHECK(c.rows_equal_at_the_end == 27);
  std::string report = ComparisonReport(c, {"A", "B"});
  CHECK_THAT(report, ContainsSubstring("first difference: step 10, column loss_scale: 32768 in A, 65536 in B"));
  CHECK_THAT(report, ContainsSubstring("0x40e0000000000000"));
  CHECK_THAT(report, ContainsSubstring("the move 'scale down' of step 10 comes 3 steps late in B, at step 13"));
  CHECK_THAT(report, ContainsSubstring("the two meet again at step 13 and stay equal to the end (27 rows)"));
  c = CompareTexts(trace(9, true), trace(12, false));
  CHECK(c.equal_again_at == 13);
  CHECK(c.equal_to_the_end_from == -1);
  CHECK_THAT(ComparisonReport(c, {"A", "B"}), ContainsSubstring("but not to the end"));
  c = CompareTexts(trace(9, true), trace(12, true));
  CHECK_THAT(ComparisonJson(c), ContainsSubstring("\"event\": {\"kind\": \"moved\", \"expected\": \"scale down\", \"expected_step\": 10, \"got\": \"scale down\", \"got_step\": 13}"));
}

TEST_CASE("the rows around the first difference are kept, or those around a step that was asked for") {
  std::string a = "step,loss\n", b = a;
  for (int i = 0; i < 100; ++i) {
    a += std::to_string(i) + ",1\n";
    b += std::to_string(i) + (i == 50 ? ",2\n" : ",1\n");
  }
  const auto steps = [](const Comparison& c) {
    std::vector<std::int64_t> out;
    for (const ContextRow& row : c.context) out.push_back(row.step);
    return out;
  };
  CompareOptions options;
  options.rows_around = 2;
  CHECK(steps(CompareTexts(a, b, options)) == std::vector<std::int64_t>{48, 49, 50, 51, 52});
  options.around = 99;
  CHECK(steps(CompareTexts(a, b, options)) == std::vector<std::int64_t>{97, 98, 99});
  options.around = 0;
  CHECK(steps(CompareTexts(a, a, options)) == std::vector<std::int64_t>{0, 1, 2});
  options.rows_around = 0;
  options.around.reset();
  CHECK(steps(CompareTexts(a, b, options)) == std::vector<std::int64_t>{50});
  CHECK(CompareTexts(a, a, options).context.empty());
}

}  // namespace
}  // namespace scaletrace
