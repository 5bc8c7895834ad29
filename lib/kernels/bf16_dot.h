// The product of a tile with the processor's bf16 dot: the one kernel that Highway 1.0.3 can't express.
#ifndef SCALETRACE_KERNELS_BF16_DOT_H_
#define SCALETRACE_KERNELS_BF16_DOT_H_

#include "kernels/packed.h"

namespace scaletrace {

// nullptr where the processor has no such instruction, or where it is not two fused steps of the sum on every hard case of a table that is tried once. Works in the
// flushing mode whatever the mode is, as the instruction does.
TileFunction Bf16DotTile();

// Whether a tile function agrees with fused multiply-adds in the flushing mode on that table. For tests, too: a function that does not must be found out.
bool AgreesWithFma(TileFunction tile);

}  // namespace scaletrace

#endif  // SCALETRACE_KERNELS_BF16_DOT_H_
