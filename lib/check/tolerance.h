// tolerance.yaml: how far each column of a trajectory may be from what is expected.
//   loss: {ulps: 16}                        # units in the last place of the column's type (f32)
//   grad_norm: {relative: 1e-6, absolute: 1e-9}   # either is enough
//   lr: exact                               # to the bit
//   seconds: ignore                         # not compared
//   activation: {ulps: 4, of: f32}          # a column that scaletrace does not know: units of f32, not of f64
//   default: {ulps: 0}                      # every float column that is not named here
#ifndef SCALETRACE_CHECK_TOLERANCE_H_
#define SCALETRACE_CHECK_TOLERANCE_H_

#include <string>
#include <string_view>

#include "compare/cell.h"

namespace scaletrace {

// InputError (kConfig) with file, line and column for anything else than the above; `file` stands in messages.
Tolerances ParseTolerances(std::string_view text, const std::string& file);
// The same from a file; IoError where it can't be read.
Tolerances ReadTolerances(const std::string& path);

}  // namespace scaletrace

#endif  // SCALETRACE_CHECK_TOLERANCE_H_
