// The columns of a trace, one row each: name, how a cell is written and read, how two are compared, what it means.
#ifndef SCALETRACE_TRACE_COLUMNS_H_
#define SCALETRACE_TRACE_COLUMNS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "base/number.h"
#include "trace/record.h"

namespace scaletrace {

// What has to be computed for a column beyond the bare step. A bit set.
enum ColumnNeeds : std::uint32_t {
  kNeedsNothing = 0,
  kNeedsGradNorm = 1,
  kNeedsGradMax = 2,
  kNeedsUnderflow = 4,
  kNeedsWeightNorm = 8,
  kNeedsNonfinitePlace = 16,
  kNeedsFirstTensor = 32,  // and the following bits: the statistics of kObservedTensors, one bit each
};

// What a column's cells hold.
enum class CellType : std::uint8_t { kInteger, kFlag, kFloat32, kFloat64, kWord };

// When two cells of a column count as the same, unless someone says otherwise: to the bit, or within kUlps units in the last place of the column's type.
enum class CellRule : std::uint8_t { kExact, kUlps };
inline constexpr double kUlps = 4;

// The cell that a column wrote last. Of a trace most cells repeat the one above or count on from it, and then cost next to nothing.
struct LastCell {
  std::uint64_t bits = 0;  // of the value
  std::uint32_t length = 0;
  bool known = false;      // whether there is one
  char text[kMaxNumberLength] = {};
};

struct Column {
  std::string_view name;
  std::string_view doc;
  std::uint32_t needs;
  bool in_default;
  CellType type;
  CellRule rule;
  char* (*write)(char* out, const StepRecord& record);  // room for kMaxNumberLength
  // The same text, faster where it is like the last cell of this column, which it then is itself.
  char* (*write_next)(char* out, const StepRecord& record, LastCell& last);
  bool (*read)(std::string_view cell, StepRecord& record);  // false: not a cell of this column
};

std::span<const Column> Columns();
std::span<const std::string_view> ColumnNames();
std::vector<std::string> DefaultColumns();
// The column of that name, or nullptr.
const Column* FindColumn(std::string_view name);
// What must be computed for these columns: bits of ColumnNeeds.
std::uint32_t NeedsOf(std::span<const std::string> columns);

// Which rows and columns a trace keeps.
struct TraceOptions {
  std::int64_t every = 1;
  std::vector<std::string> columns = DefaultColumns();
  std::int64_t histograms = 0;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"every", "keep every N-th row, rows with an event besides (of an unbroken streak of the same event the first and the last); 0 keeps none",
             Between(0, 9e15)}, self.every);
    v.Value({"columns", "columns of trace.csv, in this order", {}, ColumnNames()}, self.columns);
    v.Value({"histograms", "every N-th step the exponents of the tensors, before they are rounded, go to histograms.csv; 0: never", Between(0, 9e15)},
            self.histograms);
  }
};

}  // namespace scaletrace

#endif  // SCALETRACE_TRACE_COLUMNS_H_
