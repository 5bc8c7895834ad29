#include "compare/report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"

namespace scaletrace {
namespace {

std::string Step(std::int64_t n) { return "step " + std::to_string(n); }
std::string Count(std::int64_t n, const std::string& what) { return std::to_string(n) + " " + what + (n == 1 ? "" : "s"); }

// A cell as it may stand in a sentence: nothing between the commas is "(empty)".
std::string Shown(const std::string& cell) { return cell.empty() ? "(empty)" : Printable(cell, 40); }

// Three digits, for a distance.
std::string Rough(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value, std::chars_format::general, 3).ptr};
}

// Columns so far apart that counting units says nothing.
constexpr double kManyUlps = 1e6;

std::string Distance(const Difference& d) {
  if (!(d.ulps >= 0)) return "";
  if (d.ulps < kManyUlps) return Count(static_cast<std::int64_t>(d.ulps), "unit") + " in the last place apart";
  double a = 0, b = 0;
  std::from_chars(d.expected.data(), d.expected.data() + d.expected.size(), a);
  std::from_chars(d.got.data(), d.got.data() + d.got.size(), b);
  if (!(std::fabs(a) > 0) || !std::isfinite(b / a)) return "";
  const double ratio = b / a;
  if (ratio > 1.5) return Rough(ratio) + " times as large";
  if (ratio > 0 && ratio < 1 / 1.5) return "1/" + Rough(1 / ratio) + " of it";
  return Rough(std::fabs(ratio - 1) * 100) + " % apart";
}

std::string Allowed(const Tolerance& t) {
  if (t.exact()) return "";
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " or ") + part; };
  if (t.absolute > 0) add(ToText(t.absolute));
  if (t.relative > 0) add(ToText(t.relative) + " of the value");
  if (t.ulps > 0) add(ToText(t.ulps) + (t.ulps == 1 ? " unit in the last place" : " units in the last place"));
  return "; allowed: " + text;
}

std::string Headline(const Difference& d, const ReportNames& n) {
  const auto at_line = [](std::size_t line) { return line == 0 ? std::string() : " (line " + std::to_string(line) + ")"; };
  const std::string& side = d.in_expected ? n.expected : n.got;
  const std::size_t line = d.in_expected ? d.expected_line : d.got_line;
  switch (d.kind) {
    case DifferenceKind::kColumn: return "column " + Printable(d.column) + " is in " + n.expected + " but not in " + n.got;
    case DifferenceKind::kValue:
      return Step(d.step) + ", column " + Printable(d.column) + ": " + Shown(d.expected) + " in " + n.expected + ", " + Shown(d.got) + " in " + n.got;
    case DifferenceKind::kMissingRow:
    case DifferenceKind::kExtraRow: {
      const bool missing = d.kind == DifferenceKind::kMissingRow;
      return Step(d.step) + ": " + (missing ? n.got : n.expected) + " has no row for it" +
             (d.steps > 1 ? " and the " + Count(d.steps - 1, "row") + " after it" : std::string()) + ", " + (missing ? n.expected : n.got) + " has" +
             at_line(missing ? d.expected_line : d.got_line);
    }
    case DifferenceKind::kRepeatedRow: return Step(d.step) + ": " + side + " has a second row for it" + at_line(line);
    case DifferenceKind::kMisplacedRow:
      return Step(d.step) + ": its row in " + side + at_line(line) + " stands out of order, " +
             (d.previous > d.step ? "after step " + std::to_string(d.previous) : "before step " + std::to_string(d.previous));
  }
  return "";
}

std::string EventSentence(const EventChange& e, const ReportNames& n) {
  using Kind = EventChange::Kind;
  const std::string& word = e.kind == Kind::kExtra ? e.got : e.expected;
  const std::string what = e.derived ? "the move '" + Printable(word) + "'" : "event " + Printable(word);
  switch (e.kind) {
    case Kind::kMoved: {
      const std::int64_t late = e.got_step - e.expected_step;
      if (late == 0) return "";
      return what + " of " + Step(e.expected_step) + " comes " + Count(late < 0 ? -late : late, "step") + (late > 0 ? " late" : " early") + " in " + n.got + ", at " +
             Step(e.got_step);
    }
    case Kind::kMissing: return what + " of " + Step(e.expected_step) + " does not come in " + n.got;
    case Kind::kExtra: return what + " at " + Step(e.got_step) + " is in " + n.got + " only";
    case Kind::kOther: return "at " + Step(e.expected_step) + " " + n.expected + " has event " + Printable(e.expected) + ", " + n.got + " has " + Printable(e.got);
  }
  return "";
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + Printable(word);
  return text;
}

// How far the difference goes, and whether it ends.
std::string Extent(const Comparison& c) {
  const std::int64_t different = c.rows_differing + c.rows_missing + c.rows_extra + c.rows_repeated + c.rows_misplaced;
  std::string text = Count(different, "row") + (different == 1 ? " differs" : " differ");
  std::string parts;
  const auto part = [&](std::int64_t n, const char* what) {
    if (n > 0) parts += (parts.empty() ? "" : ", ") + std::to_string(n) + " " + what;
  };
  part(c.rows_differing, "in their values");
  part(c.rows_missing, "missing");
  part(c.rows_extra, "too many");
  part(c.rows_repeated, "repeated");
  part(c.rows_misplaced, "out of order");
  if (c.rows_differing != different) text += " (" + parts + ")";
  text += ", " + std::to_string(c.rows_equal) + (c.rows_equal == 1 ? " is equal" : " are equal");
  return text;
}

std::string Meeting(const Comparison& c) {
  if (c.rows_equal_at_the_end > 0) {
    std::string text = "the two meet again at " + Step(c.equal_to_the_end_from) + " and stay equal to the end (" + Count(c.rows_equal_at_the_end, "row") + ")";
    if (c.stretches > 1) text += "; before that they part " + std::to_string(c.stretches) + " times";
    return text;
  }
  if (c.equal_again_at >= 0) {
    return "the two are equal again at " + Step(c.equal_again_at) + ", but not to the end: they part " + std::to_string(c.stretches) + " times, and differ in the last row";
  }
  return "the two do not meet again";
}

std::string Columns(const Comparison& c) {
  std::string text;
  for (const ColumnDifferences& d : c.by_column) {
    text += (text.empty() ? "" : "; ") + Printable(d.column) + " in " + Count(d.rows, "row") + " from " + Step(d.first_step);
    if (d.largest_ulps > 0) text += d.largest_ulps < kManyUlps ? " (at most " + Count(static_cast<std::int64_t>(d.largest_ulps), "ulp") + ")" : " (at most " + Rough(d.largest) + " apart)";
  }
  return text;
}

// The rows around the first difference: a row that is the same on both sides once, else one line a side, with a star at each cell that differs.
std::string Table(const Comparison& c, const ReportNames& names, const std::string& indent) {
  struct Line {
    std::string side;
    std::vector<std::string> cells;
  };
  std::vector<Line> lines = {{"", c.columns}};
  const auto add = [&](const std::string& side, const std::vector<std::string>& cells, const ContextRow& row, bool star) {
    Line line{side, {}};
    for (std::size_t i = 0; i < cells.size(); ++i) line.cells.push_back(Printable(cells[i], 24) + (star && i < row.differs.size() && row.differs[i] ? "*" : ""));
    lines.push_back(line);
  };
  for (const ContextRow& row : c.context) {
    const bool differs = std::find(row.differs.begin(), row.differs.end(), true) != row.differs.end();
    if (!row.expected.empty() && !row.got.empty() && !differs) {
      add("", row.expected, row, false);
      continue;
    }
    if (!row.expected.empty()) add(names.expected, row.expected, row, false);
    if (!row.got.empty()) add(names.got, row.got, row, true);
  }
  std::vector<std::size_t> widths(c.columns.size());
  std::size_t side_width = 0;
  for (const Line& line : lines) {
    side_width = std::max(side_width, line.side.size());
    for (std::size_t i = 0; i < line.cells.size(); ++i) widths[i] = std::max(widths[i], line.cells[i].size());
  }
  std::string text;
  for (const Line& line : lines) {
    std::string out = indent + line.side + std::string(side_width - line.side.size(), ' ');
    for (std::size_t i = 0; i < line.cells.size(); ++i) {
      const std::string pad(widths[i] - line.cells[i].size(), ' ');
      out += "  " + (i == 0 ? pad + line.cells[i] : line.cells[i] + pad);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  }
  return text;
}

}  // namespace

std::string ComparisonHeadline(const Comparison& comparison, const ReportNames& names) {
  return comparison.first ? Headline(*comparison.first, names) : "no differences";
}

std::string ComparisonReport(const Comparison& c, const ReportNames& names, const std::string& indent) {
  std::string text;
  const auto say = [&](const std::string& line) {
    if (!line.empty()) text += indent + line + "\n";
  };
  const auto value = [&](const Difference& d) {
    if (d.kind != DifferenceKind::kValue) return;
    const std::size_t side = std::max(names.expected.size(), names.got.size());
    const std::size_t cell = std::max(Shown(d.expected).size(), Shown(d.got).size());
    const auto line = [&](const std::string& name, const std::string& decimal, const std::string& bits, std::size_t number) {
      std::string out = "  " + name + std::string(side - name.size(), ' ') + "  " + Shown(decimal) + std::string(cell - Shown(decimal).size(), ' ');
      if (!bits.empty()) out += "  " + bits;
      say(out + "  (line " + std::to_string(number) + ")");
    };
    line(names.expected, d.expected, d.expected_bits, d.expected_line);
    line(names.got, d.got, d.got_bits, d.got_line);
    const std::string distance = Distance(d) + Allowed(d.tolerance);
    if (!distance.empty()) say("  " + (distance.starts_with("; ") ? distance.substr(2) : distance));
  };
  if (c.first) {
    say("first difference: " + Headline(*c.first, names));
    value(*c.first);
    if (c.first->kind == DifferenceKind::kColumn) {
      if (c.missing_columns.size() > 1) say("columns missing in " + names.got + ": " + Joined(c.missing_columns));
      say(c.first_row ? "first among the columns that both have: " + Headline(*c.first_row, names) : "all columns that both have are equal");
      if (c.first_row) value(*c.first_row);
    }
    if (c.event) say(EventSentence(*c.event, names));
    if (c.first_row) {
      say(Extent(c));
      say(Meeting(c));
      say(Columns(c));
    }
  } else {
    say(Count(c.rows_equal, "row") + (c.rows_equal == 1 ? " is equal in " : " are equal in ") + Joined(c.columns));
  }
  if (!c.context.empty()) text += "\n" + Table(c, names, indent) + "\n";
  if (!c.extra_columns.empty()) say("not compared, in " + names.got + " only: " + Joined(c.extra_columns));
  if (!c.ignored_columns.empty()) say("not compared, as asked: " + Joined(c.ignored_columns));
  return text;
}

std::string ComparisonJson(const Comparison& c) {
  const auto list = [](const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ", ") + ToJsonString(word);
    return "[" + text + "]";
  };
  const auto difference = [](const std::optional<Difference>& d) -> std::string {
    if (!d) return "null";
    static constexpr const char* kKinds[] = {"column", "value", "missing_row", "extra_row", "repeated_row", "misplaced_row"};
    std::string text = "{\"kind\": " + ToJsonString(kKinds[static_cast<int>(d->kind)]);
    if (d->kind != DifferenceKind::kColumn) text += ", \"step\": " + std::to_string(d->step);
    if (!d->column.empty()) text += ", \"column\": " + ToJsonString(d->column);
    if (d->kind == DifferenceKind::kValue) {
      text += ", \"expected\": " + ToJsonString(d->expected) + ", \"got\": " + ToJsonString(d->got) + ", \"expected_bits\": " + ToJsonString(d->expected_bits) + ", \"got_bits\": " +
              ToJsonString(d->got_bits) + ", \"ulps\": " + (d->ulps >= 0 ? ToJsonText(d->ulps) : "null");
    }
    if (d->kind == DifferenceKind::kMissingRow || d->kind == DifferenceKind::kExtraRow) text += ", \"rows\": " + std::to_string(d->steps);
    if (d->kind == DifferenceKind::kRepeatedRow || d->kind == DifferenceKind::kMisplacedRow) text += std::string(", \"in\": ") + (d->in_expected ? "\"expected\"" : "\"got\"");
    if (d->expected_line > 0) text += ", \"expected_line\": " + std::to_string(d->expected_line);
    if (d->got_line > 0) text += ", \"got_line\": " + std::to_string(d->got_line);
    return text + "}";
  };
  const auto step = [](std::int64_t n) { return n < 0 ? std::string("null") : std::to_string(n); };
  std::string text = std::string("{\"equal\": ") + (c.equal ? "true" : "false") + ", \"first\": " + difference(c.first) + ", \"first_row\": " + difference(c.first_row) + ", \"event\": ";
  if (c.event) {
    static constexpr const char* kKinds[] = {"moved", "missing", "extra", "other"};
    text += "{\"kind\": " + ToJsonString(kKinds[static_cast<int>(c.event->kind)]) + ", \"expected\": " + ToJsonString(c.event->expected) + ", \"expected_step\": " +
            std::to_string(c.event->expected_step) + ", \"got\": " + ToJsonString(c.event->got) + ", \"got_step\": " + std::to_string(c.event->got_step) + "}";
  } else {
    text += "null";
  }
  text += ", \"rows\": {\"expected\": " + std::to_string(c.expected_rows) + ", \"got\": " + std::to_string(c.got_rows) + ", \"equal\": " + std::to_string(c.rows_equal) + ", \"differing\": " +
          std::to_string(c.rows_differing) + ", \"missing\": " + std::to_string(c.rows_missing) + ", \"extra\": " + std::to_string(c.rows_extra) + ", \"repeated\": " +
          std::to_string(c.rows_repeated) + ", \"misplaced\": " + std::to_string(c.rows_misplaced) + "}, \"equal_again_at\": " + step(c.equal_again_at) + ", \"equal_to_the_end_from\": " +
          step(c.equal_to_the_end_from) + ", \"by_column\": [";
  for (std::size_t i = 0; i < c.by_column.size(); ++i) {
    const ColumnDifferences& d = c.by_column[i];
    text += (i > 0 ? ", " : "") + std::string("{\"column\": ") + ToJsonString(d.column) + ", \"rows\": " + std::to_string(d.rows) + ", \"first_step\": " + std::to_string(d.first_step) +
            ", \"largest\": " + ToJsonText(d.largest) + ", \"largest_ulps\": " + ToJsonText(d.largest_ulps) + "}";
  }
  return text + "], \"columns\": " + list(c.columns) + ", \"missing_columns\": " + list(c.missing_columns) + ", \"extra_columns\": " + list(c.extra_columns) + ", \"ignored_columns\": " +
         list(c.ignored_columns) + "}\n";
}

}  // namespace scaletrace
