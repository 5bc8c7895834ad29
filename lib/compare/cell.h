// One cell of a trajectory: reading it, and whether two count as the same.
#ifndef SCALETRACE_COMPARE_CELL_H_
#define SCALETRACE_COMPARE_CELL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "trace/columns.h"

namespace scaletrace {

struct Cell {
  enum class Kind : std::uint8_t {
    kEmpty,    // nothing between the commas: a value that is not there, which is not NaN
    kInteger,  // flags too, as 0 and 1
    kFloat32,  // `number` holds a float
    kFloat64,
    kWord,
  };
  Kind kind = Kind::kEmpty;
  std::int64_t integer = 0;
  double number = 0;
  std::string_view word;
};

// Reads the text of a cell, false where it is none of that type; an empty text is always kEmpty but for words. Numbers: decimals as C and Python print them, in any case NaN, inf,
// infinity; of a kFloat32 one that is too large for a float (another program's double) stays a kFloat64. Flags: 0, 1, true, false. Integers: also with a fraction of zeros.
// A number is rounded once, straight from the decimal.
bool ReadCell(std::string_view text, CellType type, Cell& cell);
// Reads the text of a column that scaletrace does not know: an integer, a number (kFloat64), or a word.
Cell ReadAnyCell(std::string_view text);

// How far two numbers of a column may be apart. Any one of the three bounds that holds is enough; with all at 0 the bits must be the same. NaN is the same as any NaN and as nothing else;
// an infinity is the same as itself and as nothing else; so are empty cells and words.
struct Tolerance {
  bool ignore = false;  // not compared at all
  double absolute = 0;
  double relative = 0;  // of the expected value's magnitude
  double ulps = 0;      // units in the last place of `of`
  std::optional<CellType> of = {};  // kFloat32 or kFloat64: what the units are of; none: of the column's own type

  bool exact() const { return absolute == 0 && relative == 0 && ulps == 0; }
};

// Columns that have another tolerance than their own rule (trace/columns.h).
struct Tolerances {
  std::map<std::string, Tolerance> columns;
  std::optional<Tolerance> others;  // for float columns that are not in `columns`, and for those that scaletrace does not know

  // Every column to the bit.
  static Tolerances Exact() {
    Tolerances t;
    t.others = Tolerance{};
    return t;
  }
};

// What holds for a column: its own entry in `tolerances`; else exact where that is the column's rule (counts, flags, events, loss_scale); else `others`; else the rule. Columns that
// scaletrace does not know follow the rule of floats.
Tolerance ToleranceOf(const Tolerances& tolerances, std::string_view column);

bool SameCell(const Cell& expected, const Cell& got, const Tolerance& tolerance);

// Units in the last place between two numbers of a kind (kFloat32 or kFloat64, or mixed: as kFloat64): 0 for +0 and -0, NaN where either is not finite.
double UlpsBetween(const Cell& a, const Cell& b, std::optional<CellType> of = {});

// "0x3f800000" for a float, sixteen digits for a double; empty for other cells.
std::string BitsText(const Cell& cell);

}  // namespace scaletrace

#endif  // SCALETRACE_COMPARE_CELL_H_
