// The packed step's kernels, compiled once for each instruction set. What they must equal: reference.cc. The tile that most of the time is spent in: FmaTile here, or bf16_dot.cc.
#include "kernels/packed.h"

#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/packed.cc"
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/sum_rows-inl.h"
#include "kernels/vectors-inl.h"
// clang-format on

#include <algorithm>
#include <vector>

#include "kernels/bf16_dot.h"

HWY_BEFORE_NAMESPACE();
namespace scaletrace {
namespace HWY_NAMESPACE {
namespace {

using WordTag = hn::RebindToUnsigned<Floats>;
using VW = hn::Vec<WordTag>;

constexpr std::int32_t kHigh = static_cast<std::int32_t>(0xFFFF0000);
constexpr std::int32_t kMinusZero = static_cast<std::int32_t>(0x80000000);

HWY_INLINE VW LoadWords(const std::uint32_t* from) { return hn::LoadU(WordTag(), from); }
HWY_INLINE void StoreWords(VW words, std::uint32_t* to) { hn::StoreU(words, WordTag(), to); }

// The first and the second number of each word.
HWY_INLINE VF First(VW words) { return FromBits(hn::And(hn::BitCast(Ints(), words), Int(kHigh))); }
HWY_INLINE VF Second(VW words) { return hn::BitCast(Floats(), hn::ShiftLeft<16>(words)); }

// Words of the numbers of two vectors, lane by lane. The numbers have no low bits.
HWY_INLINE VW Together(VF first, VF second) {
  const WordTag d;
  return hn::Or(hn::BitCast(d, first), hn::ShiftRight<16>(hn::BitCast(d, second)));
}

// Words of 2 kLanes numbers that follow each other.
HWY_INLINE VW Neighbours(VF a, VF b) {
#if HWY_TARGET == HWY_SCALAR
  return Together(a, b);
#else
  const hn::Repartition<std::uint64_t, WordTag> wide;
  const auto pair = [&](VF v) HWY_ATTR {
    const auto both = hn::BitCast(wide, v);
    return hn::BitCast(WordTag(), hn::Or(both, hn::ShiftRight<48>(both)));
  };
  return hn::ConcatEven(WordTag(), pair(b), pair(a));
#endif
}

// rows[i] lane j <-> rows[j] lane i.
HWY_INLINE void Transpose([[maybe_unused]] VF (&rows)[kLanes]) {
  if constexpr (kLanes >= 4) {
#if HWY_TARGET != HWY_SCALAR
    const Floats d;
    const hn::Repartition<double, Floats> wide;
    // Squares of 4 x 4 in each block of 128 bits.
    for (std::size_t q = 0; q < kLanes; q += 4) {
      const auto a = hn::BitCast(wide, hn::InterleaveLower(d, rows[q], rows[q + 1]));
      const auto b = hn::BitCast(wide, hn::InterleaveLower(d, rows[q + 2], rows[q + 3]));
      const auto c = hn::BitCast(wide, hn::InterleaveUpper(d, rows[q], rows[q + 1]));
      const auto e = hn::BitCast(wide, hn::InterleaveUpper(d, rows[q + 2], rows[q + 3]));
      rows[q] = hn::BitCast(d, hn::InterleaveLower(wide, a, b));
      rows[q + 1] = hn::BitCast(d, hn::InterleaveUpper(wide, a, b));
      rows[q + 2] = hn::BitCast(d, hn::InterleaveLower(wide, c, e));
      rows[q + 3] = hn::BitCast(d, hn::InterleaveUpper(wide, c, e));
    }
    // Then a transposition of the blocks: block b of rows[4 q + c] is block q of column 4 b + c.
    if constexpr (kLanes == 8) {
      for (std::size_t c = 0; c < 4; ++c) {
        const VF low = rows[c], high = rows[4 + c];
        rows[c] = hn::ConcatLowerLower(d, high, low);
        rows[4 + c] = hn::ConcatUpperUpper(d, high, low);
      }
    } else if constexpr (kLanes == 16) {
      for (std::size_t c = 0; c < 4; ++c) {
        const VF even_low = hn::ConcatLowerLower(d, rows[8 + c], rows[c]), even_high = hn::ConcatUpperUpper(d, rows[8 + c], rows[c]);
        const VF odd_low = hn::ConcatLowerLower(d, rows[12 + c], rows[4 + c]), odd_high = hn::ConcatUpperUpper(d, rows[12 + c], rows[4 + c]);
        rows[c] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd_low), even_low);
        rows[4 + c] = hn::OddEvenBlocks(odd_low, hn::SwapAdjacentBlocks(even_low));
        rows[8 + c] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(odd_high), even_high);
        rows[12 + c] = hn::OddEvenBlocks(odd_high, hn::SwapAdjacentBlocks(even_high));
      }
    }
#endif
  }
}

// ---------------------------------------------------------------------------------------------------- the tile

template <int NK, int NV>
HWY_INLINE void FmaSums(std::size_t words, const std::uint32_t* HWY_RESTRICT a, std::size_t a_stride, const std::uint32_t* HWY_RESTRICT panel, std::size_t columns,
                        float* HWY_RESTRICT sums) {
  const WordTag d;
  VF sum[NK][NV];
  for (auto& row : sum) {
    for (VF& s : row) s = hn::Zero(Floats());
  }
  for (std::size_t t = 0; t < words; ++t, panel += columns) {
    VF first[NV], second[NV];
    for (std::size_t v = 0; v < NV; ++v) {
      const VW column = LoadWords(panel + v * kLanes);
      first[v] = First(column);
      second[v] = Second(column);
    }
    for (std::size_t k = 0; k < NK; ++k) {
      const VW factor = hn::Set(d, a[k * a_stride + t]);
      const VF one = First(factor), two = Second(factor);
      for (std::size_t v = 0; v < NV; ++v) sum[k][v] = Fma(two, second[v], Fma(one, first[v], sum[k][v]));
    }
  }
  for (std::size_t k = 0; k < NK; ++k) {
    for (std::size_t v = 0; v < NV; ++v) hn::StoreU(sum[k][v], Floats(), sums + k * kPanel + v * kLanes);
  }
}

void FmaTile(std::size_t words, std::size_t outputs, std::size_t columns, const std::uint32_t* a, std::size_t a_stride, const std::uint32_t* panel, float* sums) {
  // 6 x 3 sums, 6 halves of columns and 2 of a factor in 32 registers; or 3 x 2, 4 and 2 in 16.
  constexpr int kOutputs = kLanes == 16 ? 6 : 3, kWide = kLanes == 16 ? 3 : 2;
  const auto for_columns = [&](auto many, std::size_t k) HWY_ATTR {
    constexpr int NK = decltype(many)::value;
    std::size_t j = 0;
    for (; j + kWide * kLanes <= columns; j += kWide * kLanes) FmaSums<NK, kWide>(words, a + k * a_stride, a_stride, panel + j, columns, sums + k * kPanel + j);
    for (; j < columns; j += kLanes) FmaSums<NK, 1>(words, a + k * a_stride, a_stride, panel + j, columns, sums + k * kPanel + j);
  };
  std::size_t k = 0;
  for (; k + kOutputs <= outputs; k += kOutputs) for_columns(std::integral_constant<int, kOutputs>(), k);
  for (; k + 2 <= outputs; k += 2) for_columns(std::integral_constant<int, 2>(), k);
  for (; k < outputs; ++k) for_columns(std::integral_constant<int, 1>(), k);
}

// f(first, count) for outputs begin .. end in groups of nearly the same size, none above kTileOutputs.
template <class F>
HWY_INLINE void ForGroups(std::size_t begin, std::size_t end, const F& f) {
  const std::size_t n = end - begin, groups = (n + kTileOutputs - 1) / kTileOutputs;
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t first = g * n / groups, next = (g + 1) * n / groups;
    f(begin + first, next - first);
  }
}

// ---------------------------------------------------------------------------------------------------- packing

void Pack(const PackedArgs& args, const float* x, std::size_t stride, std::size_t first_row, std::size_t count, float* scratch) {
  const std::size_t D = args.features, words = Words(D), word_stride = stride / 2;
  auto* const rows = reinterpret_cast<std::uint32_t*>(scratch);
  const std::size_t columns = Padded(std::min(kPanel, args.rows - first_row));
  for (std::size_t i = 0; i < columns; ++i) {
    for (std::size_t d = 0; d < stride; d += 2 * kLanes) {
      const float* from = x + i * stride + d;
      StoreWords(i < count ? Neighbours(hn::LoadU(Floats(), from), hn::LoadU(Floats(), from + kLanes)) : hn::Zero(WordTag()), rows + i * word_stride + d / 2);
    }
  }
  std::uint32_t* const forward = args.by_rows + words * first_row;
  for (std::size_t i = 0; i < columns; i += kLanes) {
    for (std::size_t t = 0; t < words; t += kLanes) {
      VF square[kLanes];
      for (std::size_t lane = 0; lane < kLanes; ++lane) square[lane] = hn::BitCast(Floats(), LoadWords(rows + (i + lane) * word_stride + t));
      Transpose(square);
      for (std::size_t lane = 0; lane < std::min(kLanes, words - t); ++lane) StoreWords(hn::BitCast(WordTag(), square[lane]), forward + (t + lane) * columns + i);
    }
  }
  for (std::size_t d0 = 0; d0 < D; d0 += kPanel) {
    const std::size_t wide = Padded(std::min(kPanel, D - d0));
    std::uint32_t* to = args.by_features + Words(args.rows) * d0 + first_row / 2 * wide;
    for (std::size_t i = 0; i < count; i += 2, to += wide) {
      for (std::size_t j = 0; j < wide; j += kLanes) {
        const float* from = x + i * stride + d0 + j;
        StoreWords(Together(hn::LoadU(Floats(), from), i + 1 < count ? hn::LoadU(Floats(), from + stride) : hn::Zero(Floats())), to + j);
      }
    }
  }
}

// ---------------------------------------------------------------------------------------------------- parameters

// w' of one output from numbers(d, count): kLanes masters from feature d on, zeros behind `count`.
template <class Numbers>
HWY_INLINE void PackWeights(std::size_t features, const Numbers& numbers, std::uint32_t* words) {
  const RoundCleanBfloat16 round;
  std::size_t d = 0;
  for (; d + 2 * kLanes <= features; d += 2 * kLanes) {
    const VF low = round(numbers(d, kLanes)), high = round(numbers(d + kLanes, kLanes));
    StoreWords(Neighbours(low, high), words + d / 2);
  }
  if (d == features) return;
  HWY_ALIGN float rest[2 * kLanes + 2];
  for (std::size_t i = 0; i < 2 * kLanes; i += kLanes) {
    if (d + i < features) hn::StoreU(round(numbers(d + i, std::min(kLanes, features - d - i))), Floats(), rest + i);
  }
  rest[features - d] = -0.0f;
  for (std::size_t i = 0; d + i < features; i += 2) {
    words[(d + i) / 2] = static_cast<std::uint32_t>(BitsOf(rest[i])) | static_cast<std::uint32_t>(BitsOf(rest[i + 1])) >> 16;
  }
}

void RoundParameters(const PackedArgs& args, std::size_t begin, std::size_t end) {
  const std::size_t D = args.features;
  for (std::size_t k = begin; k < end; ++k) {
    const float* p = args.parameters + k * D;
    PackWeights(D, [&](std::size_t d, std::size_t count) HWY_ATTR { return LoadCount(p + d, count); }, args.weights + k * Words(D));
  }
  const RoundCleanBfloat16 round;
  ForEachVector(args.parameters + args.outputs * D + begin, end - begin, [&](std::size_t i, VF v, std::size_t count) HWY_ATTR {
    StoreCount(round(v), count, args.bias + begin + i);
  });
}

template <bool kPlain>
HWY_INLINE void UpdateAs(const PackedArgs& args, float lr, std::size_t begin, std::size_t end) {
  const std::size_t D = args.features, weights = args.outputs * D;
  const VF minus_lr = hn::Set(Floats(), -lr);
  const VF divisor = hn::Set(Floats(), kPlain ? 1.0f / args.loss_scale : args.loss_scale);
  const auto updated = [&](VF g, VF p) HWY_ATTR { return Fma(minus_lr, kPlain ? hn::Mul(g, divisor) : hn::Div(g, divisor), p); };
  for (std::size_t k = begin; k < end; ++k) {
    float* p = args.parameters + k * D;
    const float* g = args.gradients + k * D;
    const auto next = [&](std::size_t d, std::size_t count) HWY_ATTR {
      const VF after = updated(LoadCount(g + d, count), LoadCount(p + d, count));
      StoreCount(after, count, p + d);
      return after;
    };
    PackWeights(D, next, args.weights + k * Words(D));
  }
  const RoundCleanBfloat16 round;
  float* b = args.parameters + weights + begin;
  ForEachVector(args.gradients + weights + begin, end - begin, [&](std::size_t i, VF g, std::size_t count) HWY_ATTR {
    const VF after = updated(g, LoadCount(b + i, count));
    StoreCount(after, count, b + i);
    StoreCount(round(after), count, args.bias + begin + i);
  });
}

void UpdatePacked(const PackedArgs& args, float lr, bool plain, std::size_t begin, std::size_t end) {
  if (plain) {
    UpdateAs<true>(args, lr, begin, end);
  } else {
    UpdateAs<false>(args, lr, begin, end);
  }
}

// ---------------------------------------------------------------------------------------------------- forward

// Squares of errors (outputs x kPanel) row by row.
HWY_INLINE void SquaresByRow(const float* errors, std::size_t count, std::size_t outputs, float* squares) {
  if (outputs == 1) {
    for (std::size_t i = 0; i < Padded(count); i += kLanes) {
      const VF e = hn::LoadU(Floats(), errors + i);
      hn::StoreU(hn::Mul(e, e), Floats(), squares + i);
    }
    return;
  }
  for (std::size_t i = 0; i < count; i += kLanes) {
    const std::size_t rows = std::min(kLanes, count - i);
    for (std::size_t k = 0; k < outputs; k += kLanes) {
      const std::size_t wide = std::min(kLanes, outputs - k);
      VF square[kLanes];
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const VF e = lane < wide ? hn::LoadU(Floats(), errors + (k + lane) * kPanel + i) : hn::Zero(Floats());
        square[lane] = hn::Mul(e, e);
      }
      Transpose(square);
      for (std::size_t lane = 0; lane < rows; ++lane) StoreCount(square[lane], wide, squares + (i + lane) * outputs + k);
    }
  }
}

std::size_t Forward(const PackedArgs& args, std::size_t panel, float* scratch, float* squares) {
  const Floats d;
  const std::size_t B = args.rows, K = args.outputs, words = Words(args.features), first_row = panel * kPanel;
  const std::size_t count = std::min(kPanel, B - first_row), columns = Padded(count), row_stride = Padded(B);
  const std::uint32_t* x = args.by_rows + words * first_row;
  float* const sums = scratch;
  float* const errors = scratch + kTileOutputs * kPanel;
  const RoundCleanBfloat16 round;
  const float inverse_n = 1.0f / static_cast<float>(B * K);
  const VF factor = hn::Set(d, args.loss_scale * (2.0f * inverse_n * args.share));
  const VF minus_zero = FromBits(Int(kMinusZero));
  const VI last = Int(static_cast<std::int32_t>(count) - 1);
  ForGroups(0, K, [&](std::size_t k0, std::size_t outputs) HWY_ATTR {
    args.tile(words, outputs, columns, args.weights + k0 * words, words, x, sums);
    for (std::size_t k = k0; k < k0 + outputs; ++k) {
      const VF bias = hn::Set(d, args.bias[k]);
      const float* sum = sums + (k - k0) * kPanel;
      const float* y = args.y + k * row_stride + first_row;
      const auto signal = [&](std::size_t j) HWY_ATTR {
        VF activation = hn::Add(round(hn::LoadU(d, sum + j)), bias);
        if (args.round_activations) activation = round(activation);
        VF e = hn::Sub(activation, hn::LoadU(d, y + j));
        VF g = round(hn::Mul(factor, e));
        if (j + kLanes > count) {
          const auto beyond = hn::Gt(Entries(j), last);
          e = FromBits(hn::IfThenZeroElse(beyond, Bits(e)));
          g = hn::IfThenElse(hn::RebindMask(d, beyond), minus_zero, g);
        }
        hn::StoreU(e, d, errors + k * kPanel + j);
        if (args.errors_out != nullptr) {
          hn::StoreU(e, d, args.errors_out + k * row_stride + first_row + j);
          hn::StoreU(g, d, args.signals_out + k * row_stride + first_row + j);
        }
        return g;
      };
      std::uint32_t* to = args.signals + k * args.signal_stride() + first_row / 2;
      for (std::size_t j = 0; j < columns; j += 2 * kLanes) {
        const VF low = signal(j);
        StoreWords(Neighbours(low, j + kLanes < columns ? signal(j + kLanes) : minus_zero), to + j / 2);
      }
    }
  });
  SquaresByRow(errors, count, K, squares);
  return count * K;
}

void AddSquares(const float* squares, std::size_t count, float* lanes) {
  const Floats d;
  VF sums[kGroups];
  for (std::size_t g = 0; g < kGroups; ++g) sums[g] = hn::LoadU(d, lanes + g * kLanes);
  std::size_t i = 0;
  for (; i + kPad <= count; i += kPad) {
    for (std::size_t g = 0; g < kGroups; ++g) sums[g] = hn::Add(sums[g], hn::LoadU(d, squares + i + g * kLanes));
  }
  for (std::size_t g = 0; g < kGroups && i < count; ++g, i += kLanes) {
    sums[g] = hn::Add(sums[g], count - i >= kLanes ? hn::LoadU(d, squares + i) : LoadPart(squares + i, count - i));
  }
  for (std::size_t g = 0; g < kGroups; ++g) hn::StoreU(sums[g], d, lanes + g * kLanes);
}

float Loss(const float* lanes, std::size_t n) {
  float sum = lanes[0];
  for (std::size_t lane = 1; lane < kPad; ++lane) sum += lanes[lane];
  return sum * (1.0f / static_cast<float>(n));
}

// ---------------------------------------------------------------------------------------------------- the sum over the rows

// Where blocks of 32 rows are whole ones of 16 words: NV vectors of them from chain `first` on, each lane a chain.
template <int NV>
HWY_INLINE void SumWholeBlocks(const std::uint32_t* signals, std::size_t stride, std::size_t blocks, std::size_t chains, std::size_t first, float* out) {
  const RoundCleanBfloat16 round;
  constexpr std::size_t kWordsOfBlock = kBlock / 2;
  HWY_ALIGN std::uint32_t words[NV * kWordsOfBlock * kLanes];
  for (std::size_t v = 0; v < NV; ++v) {
    for (std::size_t q = 0; q < kWordsOfBlock; q += kLanes) {
      VF square[kLanes];
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const std::size_t chain = std::min(first + v * kLanes + lane, chains - 1);
        square[lane] = hn::BitCast(Floats(), LoadWords(signals + chain / blocks * stride + chain % blocks * kWordsOfBlock + q));
      }
      Transpose(square);
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        StoreWords(hn::BitCast(WordTag(), square[lane]), words + ((q + lane) * NV + v) * kLanes);
      }
    }
  }
  VF sum[NV];
  for (VF& s : sum) s = hn::Zero(Floats());
  for (std::size_t t = 0; t < kWordsOfBlock; ++t) {
    VW two[NV];
    for (std::size_t v = 0; v < NV; ++v) two[v] = LoadWords(words + (t * NV + v) * kLanes);
    for (std::size_t v = 0; v < NV; ++v) sum[v] = round(hn::Add(sum[v], First(two[v])));
    for (std::size_t v = 0; v < NV; ++v) sum[v] = round(hn::Add(sum[v], Second(two[v])));
  }
  for (std::size_t v = 0; v < NV; ++v) {
    const std::size_t at = first + v * kLanes;
    if (at < chains) StoreCount(sum[v], std::min(kLanes, chains - at), out + at);
  }
}

// The same where they lie across words: one row after the other from gathered words.
HWY_INLINE void SumAnyBlocks(const PackedArgs& args, std::size_t blocks, std::size_t chains, std::size_t first, float* out) {
  const RoundCleanBfloat16 round;
  const std::size_t B = args.rows, length = blocks == 1 ? B : kBlock, front = (blocks * length - B) / 2;
  HWY_ALIGN std::int32_t first_row[kLanes], first_word[kLanes];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::size_t chain = std::min(first + lane, chains - 1);
    first_row[lane] = static_cast<std::int32_t>(chain % blocks * length) - static_cast<std::int32_t>(front);
    first_word[lane] = static_cast<std::int32_t>(chain / blocks * args.signal_stride());
  }
  VI row = hn::Load(Ints(), first_row);
  const VI start = hn::Load(Ints(), first_word), last = Int(static_cast<std::int32_t>(B) - 1);
  const auto* words = reinterpret_cast<const std::int32_t*>(args.signals);
  VF sum = hn::Zero(Floats());
  for (std::size_t i = 0; i < length; ++i, row = hn::Add(row, Int(1))) {
    // Rows before the first and behind the last are +0.
    const auto valid = hn::AndNot(hn::Gt(row, last), hn::Gt(row, Int(-1)));
    const VI index = hn::IfThenElseZero(valid, hn::Add(start, hn::ShiftRight<1>(row)));
    const VW two = hn::BitCast(WordTag(), hn::GatherIndex(Ints(), words, index));
    // All lanes have rows of the same parity: blocks are of 32 rows.
    const bool odd = ((i + front) & 1) != 0;
    const VI term = Bits(odd ? Second(two) : First(two));
    sum = round(hn::Add(sum, FromBits(hn::IfThenElseZero(valid, term))));
  }
  StoreCount(sum, std::min(kLanes, chains - first), out + first);
}

// Whether n numbers are all finite.
HWY_INLINE bool Finite32(const float* in, std::size_t n) {
  VI most = Int(0);
  ForEachVector(in, n, [&](std::size_t, VF v, std::size_t) HWY_ATTR { most = hn::Max(most, hn::And(Bits(v), Int(kMagnitude))); });
  return hn::AllFalse(Ints(), hn::Gt(most, Int(kInf - 1)));
}

bool SumSignals(const PackedArgs& args, float* scratch) {
  const std::size_t B = args.rows, K = args.outputs;
  float* const gb = args.gradients + K * args.features;
  const std::size_t blocks = (B + kBlock - 1) / kBlock, chains = K * blocks;
  float* const sums = blocks == 1 ? gb : scratch;
  std::size_t m = 0;
  if (B % kBlock == 0) {
    for (; m + kLanes < chains; m += 2 * kLanes) SumWholeBlocks<2>(args.signals, args.signal_stride(), blocks, chains, m, sums);
    for (; m < chains; m += kLanes) SumWholeBlocks<1>(args.signals, args.signal_stride(), blocks, chains, m, sums);
  } else {
    for (; m < chains; m += kLanes) SumAnyBlocks(args, blocks, chains, m, sums);
  }
  if (blocks > 1) {
    struct {
      HWY_INLINE auto Sum(std::uint32_t) const {
        return [](VF v, VI) HWY_ATTR { return RoundCleanBfloat16()(v); };
      }
    } const roles;
    SumRows(roles, sums, blocks, blocks, K, sums + chains, gb);
  }
  return Finite32(gb, K);
}

// ---------------------------------------------------------------------------------------------------- backward

bool Backward(const PackedArgs& args, std::size_t panel, std::size_t begin, std::size_t end, float* scratch) {
  const Floats d;
  const std::size_t D = args.features, words = Words(args.rows), first = panel * kPanel, stride = args.signal_stride();
  const std::size_t count = std::min(kPanel, D - first), columns = Padded(count);
  const std::uint32_t* x = args.by_features + words * first;
  const RoundCleanBfloat16 round;
  VI most = Int(0);
  ForGroups(begin, end, [&](std::size_t k0, std::size_t outputs) HWY_ATTR {
    args.tile(words, outputs, columns, args.signals + k0 * stride, stride, x, scratch);
    for (std::size_t k = 0; k < outputs; ++k) {
      float* to = args.gradients + (k0 + k) * D + first;
      std::size_t j = 0;
      for (; j + kLanes <= count; j += kLanes) {
        const VF g = round(hn::LoadU(d, scratch + k * kPanel + j));
        hn::StoreU(g, d, to + j);
        most = hn::Max(most, hn::And(Bits(g), Int(kMagnitude)));
      }
      if (j < count) {
        const VF g = round(hn::LoadU(d, scratch + k * kPanel + j));
        StorePart(g, count - j, to + j);
        // A signal that isn't finite makes NaN of the zeros beyond the last feature.
        most = hn::Max(most, hn::IfThenElseZero(hn::FirstN(Ints(), count - j), hn::And(Bits(g), Int(kMagnitude))));
      }
    }
  });
  return hn::AllFalse(Ints(), hn::Gt(most, Int(kInf - 1)));
}

PackedTable Table() {
  return {hwy::TargetName(HWY_TARGET), "fma", &FmaTile, &Pack, &RoundParameters, &Forward, &AddSquares, &Loss, &SumSignals, &Backward, &UpdatePacked};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace scaletrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace scaletrace {
namespace {

HWY_EXPORT(Table);

// As in kernels.cc, whose tables are made first: both set Highway's process-wide choice for a moment.
const std::vector<PackedTable>& All() {
  static const std::vector<PackedTable> all = [] {
    CompiledKernels();
    std::vector<PackedTable> tables;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(target);
      const PackedTable table = HWY_DYNAMIC_DISPATCH(Table)();
      if (table.target != hwy::TargetName(target)) continue;
      // Targets with 16 lanes.
      if (table.target.starts_with("AVX3") && Bf16DotTile() != nullptr) {
        tables.push_back(table);
        tables.back().instruction = "bf16 dot";
        tables.back().tile = Bf16DotTile();
      }
      tables.push_back(table);
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
    return tables;
  }();
  return all;
}

}  // namespace

std::span<const PackedTable> CompiledPacked() { return All(); }

const PackedTable* FindPacked(std::string_view target) {
  for (const PackedTable& table : All()) {
    if (target.empty() || table.target == target) return &table;
  }
  return nullptr;
}

}  // namespace scaletrace
#endif  // HWY_ONCE
