// The step in bfloat16 over a packed batch, in parts that several threads may share: for profile strict and excess, everything to nearest, masters in f32. Bit-equal to
// reference.h on every instruction set. Who owns the arrays, splits the parts and keeps the order between them: model/packed_model.cc.
//
// Words. A word holds two bfloat16 numbers that follow each other in the sum of a dot, the first in the high half: so the processor's bf16 dot, which takes the high halves
// first, is two steps of the sum. Where the number of terms is odd, the last word's low half is -0 in the operand of words by output and +0 in the panels: their
// product, -0, changes no sum.
//
// Panels. The batch is packed twice: by blocks of 64 rows for the forward product (word t of a row: features 2t and 2t+1), by blocks of 64 features for the backward one (word t
// of a feature: rows 2t and 2t+1). A panel is words x columns; the last one has as many columns as there are left, padded to kPad with zeros.
#ifndef SCALETRACE_KERNELS_PACKED_H_
#define SCALETRACE_KERNELS_PACKED_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/kernels.h"

namespace scaletrace {

inline constexpr std::size_t kPanel = 64;         // columns
inline constexpr std::size_t kTileOutputs = 6;    // at most so many outputs of a panel at once
constexpr std::size_t Words(std::size_t terms) { return (terms + 1) / 2; }
constexpr std::size_t Panels(std::size_t columns) { return (columns + kPanel - 1) / kPanel; }

// sums[k * kPanel + j] = the chain over t of word t of output k with word t of column j, from +0; outputs <= kTileOutputs, columns a multiple of kPad and at most kPanel.
// a: outputs x a_stride words; panel: words x columns.
using TileFunction = void (*)(std::size_t words, std::size_t outputs, std::size_t columns, const std::uint32_t* a, std::size_t a_stride, const std::uint32_t* panel,
                              float* sums);

// Every NaN in y and parameters has the bits 0x7FC00000 or 0xFFC00000.
struct PackedArgs {
  TileFunction tile = nullptr;
  bool round_activations = true;
  std::size_t rows = 0, features = 0, outputs = 0;  // B, D >= 2; K >= 1
  std::uint32_t* by_rows = nullptr;      // forward panels, Words(D) * Padded(B)
  std::uint32_t* by_features = nullptr;  // backward panels, Words(B) * Padded(D)
  const float* y = nullptr;              // K x Padded(B)
  float* parameters = nullptr;           // K x D weights, output by output, then K biases: the masters
  float loss_scale = 1, share = 1;       // as in GradientArgs
  std::uint32_t* weights = nullptr;      // K x Words(D): w'
  float* bias = nullptr;                 // Padded(K): b'
  std::uint32_t* signals = nullptr;      // K x SignalStride: g
  float* gradients = nullptr;            // K*D + K: scaled
  // Where not null, K x Padded(B): e and g, zeros beyond B.
  float* errors_out = nullptr;
  float* signals_out = nullptr;

  // Words from one output's g to the next one's: whole panels.
  std::size_t signal_stride() const { return Panels(rows) * (kPanel / 2); }
};

// Floats of scratch that a thread needs.
constexpr std::size_t PackedScratch(const PackedArgs& args) {
  const std::size_t panel = args.outputs * kPanel, sums = SumScratch(args.rows, args.outputs);
  return kTileOutputs * kPanel + (panel > sums ? panel : sums) + kPad;
}

struct PackedTable {
  std::string_view target;       // "AVX3", ...
  std::string_view instruction;  // "bf16 dot", "fma"
  TileFunction tile;
  // Rows first_row .. of x' (count x stride floats of bfloat16 values) into both panels; first_row a multiple of kPanel, count <= kPanel. Each row is followed by
  // zeros up to `stride`, a multiple of 2 kPad. scratch: kPanel * stride / 2 floats.
  void (*pack)(const PackedArgs& args, const float* x, std::size_t stride, std::size_t first_row, std::size_t count, float* scratch);
  // w' and b' of the outputs begin .. end.
  void (*round_parameters)(const PackedArgs& args, std::size_t begin, std::size_t end);
  // Steps 2 to 6 for one block of kPanel rows; the squares of its errors go to `squares` (kPanel * K floats), row by row. Returns how many there are.
  std::size_t (*forward)(const PackedArgs& args, std::size_t panel, float* scratch, float* squares);
  // Adds squares to the 16 lanes of the loss; the blocks come in order.
  void (*add_squares)(const float* squares, std::size_t count, float* lanes);
  // The loss of n errors from its lanes.
  float (*loss)(const float* lanes, std::size_t n);
  // Step 7. Whether every sum is finite.
  bool (*sum_signals)(const PackedArgs& args, float* scratch);
  // Step 8 for the outputs begin .. end of one block of kPanel features. Whether every gradient is finite.
  bool (*backward)(const PackedArgs& args, std::size_t panel, std::size_t begin, std::size_t end, float* scratch);
  // Steps 9 and 12 for the outputs begin .. end, and w' and b' of the next step. plain: S is a power of two from 1 to 2^126.
  void (*update)(const PackedArgs& args, float lr, bool plain, std::size_t begin, std::size_t end);
};

// The tables of the instruction sets that were compiled in and that this processor has, best first: those with a bf16 dot, where it passes its check, stand before
// the same target's without.
std::span<const PackedTable> CompiledPacked();
// The first table of that target, or nullptr. An empty name: the best.
const PackedTable* FindPacked(std::string_view target);

}  // namespace scaletrace

#endif  // SCALETRACE_KERNELS_PACKED_H_
