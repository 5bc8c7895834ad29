#include "kernels/bf16_dot.h"

#include <cmath>
#include <cstring>

#include "kernels/flush_scope.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace scaletrace {
namespace {

// Bits of bfloat16 numbers that are hard for one or the other shortcut of a processor: zeros of both signs, subnormals, the smallest and the largest normal ones, infinities, NaN,
// numbers whose products cancel, round up at a tie, or fall below the smallest normal number.
constexpr std::uint32_t kHard[] = {0x0000, 0x8000, 0x0001, 0x807F, 0x0080, 0x8080, 0x00FF, 0x3F80, 0xBF80, 0x3F81, 0x3F7F, 0xBF81, 0x4049, 0x1F80, 0x9F81, 0x2000,
                                   0x5F80, 0xDF81, 0x7F00, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0x3380, 0xB400, 0x4B80, 0x0B80, 0x8C01, 0x3FFF, 0xC2FE, 0x3B03};
constexpr std::size_t kHardCount = sizeof(kHard) / sizeof(kHard[0]);

float Number(std::uint32_t bfloat16) {
  const std::uint32_t bits = bfloat16 << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

[[gnu::noinline]] void PlainSums(std::size_t words, std::size_t outputs, std::size_t columns, const std::uint32_t* a, std::size_t a_stride, const std::uint32_t* panel,
                                 float* sums) {
  for (std::size_t k = 0; k < outputs; ++k) {
    for (std::size_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (std::size_t t = 0; t < words; ++t) {
        const std::uint32_t x = panel[t * columns + j], f = a[k * a_stride + t];
        sum = std::fma(Number(f >> 16), Number(x >> 16), sum);
        sum = std::fma(Number(f & 0xFFFF), Number(x & 0xFFFF), sum);
      }
      sums[k * kPanel + j] = sum;
    }
  }
}

}  // namespace

bool AgreesWithFma(TileFunction tile) {
  // Three words of all pairs of hard numbers in some order, on every lane of a tile.
  constexpr std::size_t kWords = 3;
  std::uint32_t a[kTileOutputs * kWords], panel[kWords * kPanel];
  float expected[kTileOutputs * kPanel] = {}, found[kTileOutputs * kPanel] = {};
  std::uint32_t state = 1;
  const auto next = [&] {
    state = state * 1664525 + 1013904223;  // Knuth's constants for a sequence modulo 2^32
    const std::uint32_t high = kHard[state >> 27], low = kHard[(state >> 17) % kHardCount];
    return high << 16 | low;
  };
  const FlushScope flush;
  for (int turn = 0; turn < 64; ++turn) {
    for (std::uint32_t& word : a) word = next();
    for (std::uint32_t& word : panel) word = next();
    PlainSums(kWords, kTileOutputs, kPanel, a, kWords, panel, expected);
    tile(kWords, kTileOutputs, kPanel, a, kWords, panel, found);
    for (std::size_t i = 0; i < kTileOutputs * kPanel; ++i) {
      const bool both_nan = std::isnan(expected[i]) && std::isnan(found[i]);
      if (!both_nan && std::memcmp(&expected[i], &found[i], sizeof(float)) != 0) return false;
    }
  }
  return true;
}

#if defined(__x86_64__)

// From here on code may use these instructions; nothing is included behind this line, so that no inline function of a library is compiled with them.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")
#endif

namespace {

constexpr std::size_t kAhead = 1024;  // words

// kOutputs x 16 kVectors sums in registers: 6 x 4 of the 32, and a vector of words for each column.
template <int kOutputs, int kVectors>
inline __attribute__((always_inline)) void Tile(std::size_t words, const std::uint32_t* a, std::size_t a_stride, const std::uint32_t* panel, float* sums) {
  __m512 sum[kOutputs][kVectors];
#pragma GCC unroll 8
  for (int k = 0; k < kOutputs; ++k) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[k][v] = _mm512_setzero_ps();
  }
  for (std::size_t t = 0; t < words; ++t) {
    // Far ahead: the panels of a large batch come from the third cache or from memory, one after the other.
    if (kOutputs <= 2) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) _mm_prefetch(reinterpret_cast<const char*>(panel + (t * kVectors + static_cast<std::size_t>(v)) * 16 + kAhead), _MM_HINT_T0);
    }
    __m512i column[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) column[v] = _mm512_loadu_si512(panel + (t * kVectors + static_cast<std::size_t>(v)) * 16);
#pragma GCC unroll 8
    for (int k = 0; k < kOutputs; ++k) {
      const __m512i factor = _mm512_set1_epi32(static_cast<int>(a[static_cast<std::size_t>(k) * a_stride + t]));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[k][v] = _mm512_dpbf16_ps(sum[k][v], (__m512bh)column[v], (__m512bh)factor);
    }
  }
#pragma GCC unroll 8
  for (int k = 0; k < kOutputs; ++k) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) _mm512_storeu_ps(sums + static_cast<std::size_t>(k) * kPanel + static_cast<std::size_t>(v) * 16, sum[k][v]);
  }
}

template <int kOutputs>
void TileOf(std::size_t words, std::size_t columns, const std::uint32_t* a, std::size_t a_stride, const std::uint32_t* panel, float* sums) {
  switch (columns / 16) {
    case 1: return Tile<kOutputs, 1>(words, a, a_stride, panel, sums);
    case 2: return Tile<kOutputs, 2>(words, a, a_stride, panel, sums);
    case 3: return Tile<kOutputs, 3>(words, a, a_stride, panel, sums);
    default: return Tile<kOutputs, 4>(words, a, a_stride, panel, sums);
  }
}

void DotTile(std::size_t words, std::size_t outputs, std::size_t columns, const std::uint32_t* a, std::size_t a_stride, const std::uint32_t* panel, float* sums) {
  switch (outputs) {
    case 1: return TileOf<1>(words, columns, a, a_stride, panel, sums);
    case 2: return TileOf<2>(words, columns, a, a_stride, panel, sums);
    case 3: return TileOf<3>(words, columns, a, a_stride, panel, sums);
    case 4: return TileOf<4>(words, columns, a, a_stride, panel, sums);
    case 5: return TileOf<5>(words, columns, a, a_stride, panel, sums);
    default: return TileOf<6>(words, columns, a, a_stride, panel, sums);
  }
}

}  // namespace

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

TileFunction Bf16DotTile() {
  static const TileFunction tile = [] {
    // Asks the operating system, too, whether it keeps the wide registers.
    __builtin_cpu_init();
    const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bf16");
    return has && AgreesWithFma(&DotTile) ? &DotTile : nullptr;
  }();
  return tile;
}

#else

TileFunction Bf16DotTile() { return nullptr; }

#endif

}  // namespace scaletrace
