#include "compare/compare.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "base/error.h"

namespace scaletrace {
namespace {

// The rows of a reader with one row of foresight.
class Rows {
 public:
  explicit Rows(RowReader& reader) : reader_(reader) {
    has_ = reader_.Next(row_);
    has_next_ = has_ && reader_.Next(next_);
  }
  bool has() const { return has_; }
  const Row& row() const { return row_; }
  const Row* next() const { return has_next_ ? &next_ : nullptr; }
  void Advance() {
    ++count_;
    std::swap(row_, next_);
    has_ = has_next_;
    has_next_ = has_next_ && reader_.Next(next_);
  }
  std::int64_t count() const { return count_; }
  const RowReader& reader() const { return reader_; }

 private:
  RowReader& reader_;
  Row row_, next_;
  bool has_ = false, has_next_ = false;
  std::int64_t count_ = 0;
};

// The events of both sides, in order, until they part; from then on a few more of each.
class Events {
 public:
  void Expected(std::int64_t step, std::string_view word) { Add(expected_, step, word); }
  void Got(std::int64_t step, std::string_view word) { Add(got_, step, word); }

  std::optional<EventChange> Change(bool derived) const {
    if (expected_.empty() && got_.empty()) return std::nullopt;
    EventChange change;
    change.derived = derived;
    const auto at = [](const std::deque<Entry>& list, std::size_t i) { return i < list.size() ? &list[i] : nullptr; };
    const Entry *a = at(expected_, 0), *b = at(got_, 0);
    if (a != nullptr) change.expected = a->word, change.expected_step = a->step;
    if (b != nullptr) change.got = b->word, change.got_step = b->step;
    const Entry *a1 = at(expected_, 1), *b1 = at(got_, 1);
    const auto same = [](const Entry* x, const Entry* y) { return x != nullptr && y != nullptr && *x == *y; };
    using Kind = EventChange::Kind;
    if (b == nullptr || (a != nullptr && same(a1, b))) {
      change.kind = Kind::kMissing;
    } else if (a == nullptr || same(a, b1)) {
      change.kind = Kind::kExtra;
    } else if (a->word == b->word) {
      change.kind = Kind::kMoved;
    } else if (a->step == b->step) {
      change.kind = Kind::kOther;
    } else {
      // The earlier of the two: when does the other side have it?
      const bool expected_first = a->step < b->step;
      const Entry& event = expected_first ? *a : *b;
      const std::deque<Entry>& others = expected_first ? got_ : expected_;
      const auto found = std::find_if(others.begin(), others.end(), [&](const Entry& e) { return e.word == event.word; });
      change.expected = change.got = event.word;
      if (found == others.end()) {
        change.kind = expected_first ? Kind::kMissing : Kind::kExtra;
      } else {
        change.kind = Kind::kMoved;
      }
      const std::int64_t other = found == others.end() ? 0 : found->step;
      change.expected_step = expected_first ? event.step : other;
      change.got_step = expected_first ? other : event.step;
    }
    return change;
  }

 private:
  struct Entry {
    std::int64_t step;
    std::string word;
    bool operator==(const Entry&) const = default;
  };
  static constexpr std::size_t kKept = 64;

  void Add(std::deque<Entry>& list, std::int64_t step, std::string_view word) {
    if (list.size() >= kKept) return;
    list.push_back({step, std::string(word)});
    while (!expected_.empty() && !got_.empty() && expected_.front() == got_.front()) {
      expected_.pop_front();
      got_.pop_front();
    }
  }

  std::deque<Entry> expected_, got_;
};

// What of a row is an event: its word, or where there are no words a move of the scale.
class EventSource {
 public:
  EventSource(int event_column, int scale_column) : event_column_(event_column), scale_column_(scale_column) {}
  std::string_view Next(const Row& row) {
    if (event_column_ >= 0) return row.cell(static_cast<std::size_t>(event_column_));
    if (scale_column_ < 0) return {};
    const std::string_view text = row.cell(static_cast<std::size_t>(scale_column_));
    if (has_last_ && text == last_text_) return {};
    const Cell cell = ReadAnyCell(text);
    const double value = cell.kind == Cell::Kind::kInteger ? static_cast<double>(cell.integer) : cell.number;
    const std::string_view word = !has_last_ ? "" : value > last_ ? "scale up" : value < last_ ? "scale down" : "";
    has_last_ = true;
    last_ = value;
    last_text_ = text;
    return word;
  }

 private:
  int event_column_, scale_column_;
  bool has_last_ = false;
  double last_ = 0;
  std::string last_text_;
};

class Comparer {
 public:
  Comparer(RowReader& expected, RowReader& got, const CompareOptions& options) : options_(options), a_(expected), b_(got) {
    ChooseColumns(expected, got);
    const bool words = expected.Find("event") >= 0 && got.Find("event") >= 0;
    derived_ = !words;
    const bool scales = expected.Find("loss_scale") >= 0 && got.Find("loss_scale") >= 0;
    a_events_ = EventSource(words ? expected.Find("event") : -1, scales ? expected.Find("loss_scale") : -1);
    b_events_ = EventSource(words ? got.Find("event") : -1, scales ? got.Find("loss_scale") : -1);
  }

  Comparison Run() {
    while (a_.has() || b_.has()) {
      if (a_.has() && b_.has() && a_.row().step == b_.row().step) {
        Pair();
      } else if (b_.has() && Passed(b_)) {
        Disorder(false);
      } else if (a_.has() && Passed(a_)) {
        Disorder(true);
      } else if (!b_.has() || (a_.has() && a_.row().step < b_.row().step)) {
        if (b_.has() && JumpsAhead(b_)) {
          Disorder(false);
        } else {
          Single(true);
        }
      } else if (a_.has() && JumpsAhead(a_)) {
        Disorder(true);
      } else {
        Single(false);
      }
    }
    Finish();
    return std::move(result_);
  }

 private:
  struct Pairing {
    std::string name;
    int a, b;
    const Column* known;
    Tolerance tolerance;
  };

  void ChooseColumns(const RowReader& a, const RowReader& b) {
    const std::vector<std::string>& wanted = options_.columns;
    const auto unknown = [&](const std::string& name, const char* who) {
      if (a.Find(name) >= 0 || b.Find(name) >= 0) return;
      std::vector<std::string_view> names(a.columns().begin(), a.columns().end());
      names.insert(names.end(), b.columns().begin(), b.columns().end());
      throw InputError(InputError::Kind::kConfig, {.file = who}, "found '" + Printable(name) + "', a column that neither " + a.name() + " nor " + b.name() + " has" + DidYouMean(name, names));
    };
    for (const std::string& name : wanted) unknown(name, "--columns");
    for (const auto& [name, tolerance] : options_.tolerances.columns) unknown(name, "tolerance");
    const auto is_wanted = [&](const std::string& name) {
      return name == "step" || ((wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end()) && !ToleranceOf(options_.tolerances, name).ignore);
    };
    pairs_.push_back({"step", a.Find("step"), b.Find("step"), FindColumn("step"), {}});
    for (const std::string& name : a.columns()) {
      if (name == "step") continue;
      const int other = b.Find(name);
      if (!is_wanted(name)) {
        result_.ignored_columns.push_back(name);
      } else if (other < 0) {
        result_.missing_columns.push_back(name);
      } else {
        pairs_.push_back({name, a.Find(name), other, FindColumn(name), ToleranceOf(options_.tolerances, name)});
      }
    }
    for (const std::string& name : b.columns()) {
      if (a.Find(name) >= 0) continue;
      // A column that was asked for by name has to be on both sides.
      if (!wanted.empty() && is_wanted(name)) {
        throw InputError(InputError::Kind::kData, {.file = a.name(), .line = 1}, "has no column '" + Printable(name) + "', which --columns asks for");
      }
      (is_wanted(name) ? result_.extra_columns : result_.ignored_columns).push_back(name);
    }
    for (const Pairing& p : pairs_) result_.columns.push_back(p.name);
    by_column_.resize(pairs_.size());
    differs_.resize(pairs_.size());
    if (!result_.missing_columns.empty()) {
      Difference d;
      d.kind = DifferenceKind::kColumn;
      d.column = result_.missing_columns.front();
      d.expected_line = d.got_line = 1;
      result_.first = d;
      result_.equal = false;
    }
  }

  bool Passed(const Rows& rows) const { return any_ && rows.row().step <= last_; }
  // The row stands before one that belongs before it.
  bool JumpsAhead(const Rows& rows) const {
    const Row* next = rows.next();
    return next != nullptr && next->step < rows.row().step && (!any_ || next->step > last_);
  }

  Cell Read(const Rows& rows, const Row& row, int column, const Pairing& p) const {
    Cell cell;
    const std::string_view text = row.cell(static_cast<std::size_t>(column));
    if (p.known == nullptr) return ReadAnyCell(text);
    if (ReadCell(text, p.known->type, cell)) return cell;
    static constexpr const char* kAllowed[] = {"an integer", "0 or 1", "a number, inf or NaN", "a number, inf or NaN", "a word"};
    throw InputError(InputError::Kind::kData, {.file = rows.reader().name(), .line = row.line, .key = p.name},
                     "found '" + Printable(text) + "'; allowed: " + kAllowed[static_cast<int>(p.known->type)]);
  }

  // Two rows of the same step.
  void Pair() {
    const Row &a = a_.row(), &b = b_.row();
    bool differs = false;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const Pairing& p = pairs_[i];
      differs_[i] = false;
      const Cell x = Read(a_, a, p.a, p);
      if (a.cell(static_cast<std::size_t>(p.a)) == b.cell(static_cast<std::size_t>(p.b))) continue;
      const Cell y = Read(b_, b, p.b, p);
      if (SameCell(x, y, p.tolerance)) continue;
      differs_[i] = true;
      differs = true;
      ColumnDifferences& c = by_column_[i];
      if (c.rows++ == 0) c.first_step = a.step;
      // Fractions only.
      const bool numbers = !BitsText(x).empty() && !BitsText(y).empty();
      const double ulps = numbers ? UlpsBetween(x, y, p.tolerance.of) : std::numeric_limits<double>::quiet_NaN();
      if (ulps >= 0) {
        c.largest = std::max(c.largest, std::fabs(x.number - y.number));
        c.largest_ulps = std::max(c.largest_ulps, ulps);
      }
      if (!first_row_) {
        Difference d;
        d.step = a.step;
        d.column = p.name;
        d.tolerance = p.tolerance;
        d.expected = a.cell(static_cast<std::size_t>(p.a));
        d.got = b.cell(static_cast<std::size_t>(p.b));
        d.expected_bits = BitsText(x);
        d.got_bits = BitsText(y);
        d.ulps = ulps;
        d.expected_line = a.line;
        d.got_line = b.line;
        first_row_ = d;
      }
    }
    result_.rows_equal += differs ? 0 : 1;
    result_.rows_differing += differs ? 1 : 0;
    // A row of an earlier step that both have says nothing about order.
    last_ = any_ ? std::max(last_, a.step) : a.step;
    any_ = true;
    NoteStretch(differs, a.step);
    Keep(&a, &b);
    NoteEvents(&a, &b);
    Advance(true, true);
  }

  // A row of one side whose step the other has passed without having it, or has not.
  void Single(bool of_a) {
    Rows& rows = of_a ? a_ : b_;
    const Row& row = rows.row();
    (of_a ? result_.rows_missing : result_.rows_extra) += 1;
    if (!first_row_) {
      Difference d;
      d.kind = of_a ? DifferenceKind::kMissingRow : DifferenceKind::kExtraRow;
      d.step = row.step;
      (of_a ? d.expected_line : d.got_line) = row.line;
      const Rows& other = of_a ? b_ : a_;
      if (other.has()) (of_a ? d.got_line : d.expected_line) = other.row().line;
      first_row_ = d;
      counting_ = true;
    } else if (counting_ && (first_row_->kind == DifferenceKind::kMissingRow) == of_a) {
      ++first_row_->steps;
    } else {
      counting_ = false;
    }
    // The rows between two steps of the other side are one span.
    std::vector<Span>& missed = missed_[!of_a];
    if (!missed.empty() && any_ && missed.back().last == last_) {
      missed.back().last = row.step;
    } else if (missed.size() < kSpansKept) {
      missed.push_back({row.step, row.step});
    }
    last_ = row.step;
    any_ = true;
    NoteStretch(true, row.step);
    Keep(of_a ? &row : nullptr, of_a ? nullptr : &row);
    NoteEvents(of_a ? &row : nullptr, of_a ? nullptr : &row);
    Advance(of_a, !of_a);
  }

  // A row that stands where its step can't.
  void Disorder(bool of_a) {
    Rows& rows = of_a ? a_ : b_;
    const Row& row = rows.row();
    const bool late = Passed(rows);
    // The row of a step that was missed so far comes after all.
    const bool explains = late && first_row_ && first_row_->kind == (of_a ? DifferenceKind::kExtraRow : DifferenceKind::kMissingRow) && row.step == first_row_->step;
    const auto& missed = missed_[of_a];
    const bool was_missed = std::any_of(missed.begin(), missed.end(), [&](const Span& s) { return s.first <= row.step && row.step <= s.last; });
    const bool repeated = late && !explains && !was_missed;
    (repeated ? result_.rows_repeated : result_.rows_misplaced) += 1;
    if (!first_row_ || explains) {
      Difference d;
      d.kind = repeated ? DifferenceKind::kRepeatedRow : DifferenceKind::kMisplacedRow;
      d.step = row.step;
      d.in_expected = of_a;
      (of_a ? d.expected_line : d.got_line) = row.line;
      d.previous = last_;
      if (!late) {
        // What should stand here is the row that comes next.
        d.previous = rows.next()->step;
      }
      first_row_ = d;
    }
    counting_ = false;
    NoteStretch(true, row.step);
    Keep(of_a ? &row : nullptr, of_a ? nullptr : &row);
    Advance(of_a, !of_a);
  }

  void Advance(bool a, bool b) {
    if (a) a_.Advance();
    if (b) b_.Advance();
  }

  void NoteEvents(const Row* a, const Row* b) {
    if (a != nullptr) {
      if (const std::string_view word = a_events_.Next(*a); !word.empty()) events_.Expected(a->step, word);
    }
    if (b != nullptr) {
      if (const std::string_view word = b_events_.Next(*b); !word.empty()) events_.Got(b->step, word);
    }
  }

  void NoteStretch(bool differs, std::int64_t step) {
    if (differs) {
      if (!in_stretch_) ++result_.stretches;
      result_.last_differing_step = step;
      result_.equal_to_the_end_from = -1;
      result_.rows_equal_at_the_end = 0;
    } else if (result_.stretches > 0) {
      if (in_stretch_ && result_.stretches == 1) result_.equal_again_at = step;
      if (result_.rows_equal_at_the_end++ == 0) result_.equal_to_the_end_from = step;
    }
    in_stretch_ = differs;
  }

  // A row of each side or of one, as it was read.
  struct Kept {
    Row a, b;
    bool has_a = false, has_b = false;
    std::vector<bool> differs;
  };

  // The rows before and after the first difference, or around a step that was asked for.
  void Keep(const Row* a, const Row* b) {
    const auto n = static_cast<std::size_t>(options_.rows_around);
    const std::int64_t step = a != nullptr ? a->step : b->step;
    const bool reached = options_.around ? step >= *options_.around : first_row_.has_value();
    if (reached && after_ > n) return;
    // Before, the oldest one makes room, with its memory.
    Kept kept;
    if (!reached && kept_.size() >= n) {
      if (n == 0) return;
      kept = std::move(kept_.front());
      kept_.pop_front();
    }
    kept.has_a = a != nullptr;
    kept.has_b = b != nullptr;
    if (a != nullptr) kept.a = *a;
    if (b != nullptr) kept.b = *b;
    if (a != nullptr && b != nullptr) kept.differs = differs_;
    kept_.push_back(std::move(kept));
    after_ += reached ? 1 : 0;
  }

  ContextRow ContextOf(const Kept& kept) const {
    ContextRow row;
    row.step = kept.has_a ? kept.a.step : kept.b.step;
    for (const Pairing& p : pairs_) {
      if (kept.has_a) row.expected.emplace_back(kept.a.cell(static_cast<std::size_t>(p.a)));
      if (kept.has_b) row.got.emplace_back(kept.b.cell(static_cast<std::size_t>(p.b)));
    }
    if (kept.has_a && kept.has_b) row.differs = kept.differs;
    return row;
  }

  void Finish() {
    result_.expected_rows = a_.count();
    result_.got_rows = b_.count();
    if (first_row_) result_.equal = false;
    result_.first_row = first_row_;
    if (!result_.first) result_.first = first_row_;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (by_column_[i].rows == 0) continue;
      by_column_[i].column = pairs_[i].name;
      result_.by_column.push_back(by_column_[i]);
    }
    if (!result_.equal) result_.event = events_.Change(derived_);
    if (!first_row_ && !options_.around) return;
    for (const Kept& kept : kept_) result_.context.push_back(ContextOf(kept));
  }

  const CompareOptions& options_;
  Rows a_, b_;
  Comparison result_;
  std::vector<Pairing> pairs_;
  std::vector<ColumnDifferences> by_column_;
  std::vector<bool> differs_;
  EventSource a_events_{-1, -1}, b_events_{-1, -1};
  Events events_;
  bool derived_ = false;
  bool any_ = false;          // a row was seen
  std::int64_t last_ = 0;     // the largest step so far
  std::optional<Difference> first_row_;
  bool counting_ = false;     // the rows missing at the first difference go on
  bool in_stretch_ = false;
  // Steps for which a side ([1]: the expected one) had no row where it should stand; what comes late is looked up there.
  struct Span {
    std::int64_t first, last;
  };
  static constexpr std::size_t kSpansKept = 1000;
  std::vector<Span> missed_[2];
  std::deque<Kept> kept_;
  std::size_t after_ = 0;
};

}  // namespace

Comparison Compare(RowReader& expected, RowReader& got, const CompareOptions& options) { return Comparer(expected, got, options).Run(); }

}  // namespace scaletrace
