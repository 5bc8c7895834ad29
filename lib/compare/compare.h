// Two trajectories, row against row: the first difference, what is around it, which event moved, whether the two meet again. Rows belong together by their step. Memory does
// not grow with their number. How it reads to a person: report.h. What a cell is: cell.h.
#ifndef SCALETRACE_COMPARE_COMPARE_H_
#define SCALETRACE_COMPARE_COMPARE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare/cell.h"
#include "compare/row_reader.h"

namespace scaletrace {

struct CompareOptions {
  Tolerances tolerances;
  std::vector<std::string> columns;  // only these are compared; empty: all that both have
  std::int64_t rows_around = 3;      // rows kept before and after the first difference
  std::optional<std::int64_t> around;  // keep the rows around this step instead
};

enum class DifferenceKind : std::uint8_t {
  kColumn,      // a column of the expected trajectory is not in the other
  kValue,       // a cell
  kMissingRow,  // the expected trajectory has a row for this step, the other has none
  kExtraRow,    // the other way round
  kRepeatedRow, // a step that was there already
  kMisplacedRow // a row that does not stand in the order of steps
};

struct Difference {
  DifferenceKind kind = DifferenceKind::kValue;
  std::int64_t step = 0;
  std::string column;                // of kColumn and kValue
  Tolerance tolerance;               // of kValue
  std::string expected, got;         // the cells' text; of kValue
  std::string expected_bits, got_bits;
  double ulps = 0;                   // NaN where that means nothing
  bool in_expected = false;          // of kRepeatedRow and kMisplacedRow: in which of the two
  std::size_t expected_line = 0, got_line = 0;  // 0: there is none
  std::int64_t steps = 1;            // of kMissingRow and kExtraRow: how many rows in a row
  std::int64_t previous = 0;         // of kMisplacedRow: the step of the row before
};

// An event that one of the two has elsewhere or not at all.
struct EventChange {
  enum class Kind : std::uint8_t { kMoved, kMissing, kExtra, kOther };
  Kind kind = Kind::kMoved;
  std::string expected, got;  // words: "growth"; where a trajectory has no events "scale up", "scale down" by its scale
  std::int64_t expected_step = 0, got_step = 0;
  bool derived = false;  // from the loss scale
};

struct ColumnDifferences {
  std::string column;
  std::int64_t rows = 0;  // that differ
  std::int64_t first_step = 0;
  double largest = 0;     // |expected - got| over finite numbers
  double largest_ulps = 0;
};

// A row near the first difference. An empty `expected` or `got`: there is no such row on that side.
struct ContextRow {
  std::int64_t step = 0;
  std::vector<std::string> expected, got;  // in the order of Comparison::columns
  std::vector<bool> differs;               // by column; empty where a side has no row
};

struct Comparison {
  bool equal = true;
  std::vector<std::string> columns;          // compared, the first of them step
  std::vector<std::string> missing_columns;  // of the expected trajectory that the other has not
  std::vector<std::string> extra_columns;    // the other way round; these make no difference
  std::vector<std::string> ignored_columns;  // by tolerance, or by CompareOptions::columns
  std::optional<Difference> first;           // columns before rows
  std::optional<Difference> first_row;       // the first among rows, where `first` is a column
  std::optional<EventChange> event;
  std::vector<ColumnDifferences> by_column;  // those that differ, in the order of `columns`
  std::int64_t expected_rows = 0, got_rows = 0;
  std::int64_t rows_equal = 0, rows_differing = 0;  // of the rows that both have
  std::int64_t rows_missing = 0, rows_extra = 0, rows_repeated = 0, rows_misplaced = 0;
  std::int64_t stretches = 0;                // unbroken rows of steps that differ
  std::int64_t last_differing_step = 0;
  // The first step after the first stretch, and the first of the equal rows at the end; -1: there is none.
  std::int64_t equal_again_at = -1, equal_to_the_end_from = -1;
  std::int64_t rows_equal_at_the_end = 0;
  std::vector<ContextRow> context;
};

// Compares all rows. A column of `expected` that `got` lacks is a difference, one that only `got` has is not. Errors: those of the readers; InputError (kData) with the line for a cell that is
// none of its column; InputError (kConfig) where options.columns or a tolerance names a column that neither has.
Comparison Compare(RowReader& expected, RowReader& got, const CompareOptions& options = {});

}  // namespace scaletrace

#endif  // SCALETRACE_COMPARE_COMPARE_H_
