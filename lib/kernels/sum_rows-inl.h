// The sum of g over the rows, in the compute format: lanes are sums. Included once for each instruction set.
#if defined(SCALETRACE_KERNELS_SUM_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SCALETRACE_KERNELS_SUM_ROWS_INL_H_
#undef SCALETRACE_KERNELS_SUM_ROWS_INL_H_
#else
#define SCALETRACE_KERNELS_SUM_ROWS_INL_H_
#endif

#include <algorithm>

#include "kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace scaletrace {
namespace HWY_NAMESPACE {
namespace {

constexpr std::size_t kBlock = 32;

// Up to 32 rows: one sum an output, row by row.
template <class Round>
HWY_INLINE void SumFewRows(const Round& round, const float* in, std::size_t stride, std::size_t rows, std::size_t outputs, float* out) {
  const Floats d;
  const Ints di;
  for (std::size_t k = 0; k < outputs; k += kLanes) {
    const std::size_t count = std::min(kLanes, outputs - k);
    VF sum = hn::Zero(d);
    const VI first = hn::Mul(Entries(k), Int(static_cast<std::int32_t>(rows)));
    if (outputs == 1) {
      for (std::size_t i = 0; i < rows; ++i) sum = round(hn::Add(sum, hn::Set(d, in[i])), hn::Add(first, Int(static_cast<std::int32_t>(i))));
    } else {
      // Lanes beyond the last output repeat it.
      const VI lane = hn::Min(hn::Iota(di, 0), Int(static_cast<std::int32_t>(count) - 1));
      const VI start = hn::Mul(lane, Int(static_cast<std::int32_t>(stride)));
      for (std::size_t i = 0; i < rows; ++i) {
        sum = round(hn::Add(sum, hn::GatherIndex(d, in + k * stride + i, start)), hn::Add(first, Int(static_cast<std::int32_t>(i))));
      }
    }
    StoreCount(sum, count, out + k);
  }
}

// More than 32 rows, one level: NV vectors of sums at once, so that the long chain of dependent additions of one hides behind the others'. Lane m of `first` + ... is the sum of block m % blocks of
// output m / blocks.
template <int NV, class Round>
HWY_INLINE void SumBlocks(const Round& round, const float* in, std::size_t stride, std::size_t rows, std::size_t blocks,
                          std::size_t sums, std::size_t first, float* out) {
  const Floats d;
  const Ints di;
  const std::size_t front = (blocks * kBlock - rows) / 2;
  VI row[NV], start[NV], entry[NV];
  VF sum[NV];
  std::size_t output = first / blocks, block = first % blocks;
  for (int v = 0; v < NV; ++v) {
    HWY_ALIGN std::int32_t first_row[kLanes], first_start[kLanes], first_entry[kLanes];
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      first_row[lane] = static_cast<std::int32_t>(block * kBlock) - static_cast<std::int32_t>(front);
      first_start[lane] = static_cast<std::int32_t>(output * stride);
      first_entry[lane] = static_cast<std::int32_t>((output * blocks + block) * kBlock);
      if (first + static_cast<std::size_t>(v) * kLanes + lane + 1 >= sums) continue;  // lanes beyond the last repeat it
      if (++block == blocks) {
        block = 0;
        ++output;
      }
    }
    row[v] = hn::Load(di, first_row);
    start[v] = hn::Load(di, first_start);
    entry[v] = hn::Load(di, first_entry);
    sum[v] = hn::Zero(d);
  }
  const VI last = Int(static_cast<std::int32_t>(rows) - 1);
  for (std::size_t i = 0; i < kBlock; ++i) {
    for (int v = 0; v < NV; ++v) {
      // Rows before the first and behind the last are zeros.
      const auto valid = hn::AndNot(hn::Gt(row[v], last), hn::Gt(row[v], Int(-1)));
      const VI index = hn::IfThenElseZero(valid, hn::Add(start[v], row[v]));
      const VI term = hn::IfThenElseZero(valid, Bits(hn::GatherIndex(d, in, index)));
      sum[v] = round(hn::Add(sum[v], FromBits(term)), hn::Add(entry[v], Int(static_cast<std::int32_t>(i))));
      row[v] = hn::Add(row[v], Int(1));
    }
  }
  for (int v = 0; v < NV; ++v) {
    const std::size_t at = first + static_cast<std::size_t>(v) * kLanes;
    if (at < sums) StoreCount(sum[v], std::min(kLanes, sums - at), out + at);
  }
}

// in: outputs x stride, `rows` of them used. out: one sum an output. scratch: SumScratch(rows, outputs).
template <class Roles>
HWY_INLINE void SumRows(const Roles& roles, const float* in, std::size_t stride, std::size_t rows, std::size_t outputs,
                        float* scratch, float* out) {
  if (rows == 1) {
    for (std::size_t k = 0; k < outputs; ++k) out[k] = in[k * stride];
    return;
  }
  std::uint32_t level = 0;
  for (; rows > kBlock; ++level) {
    const auto round = roles.Sum(level);
    const std::size_t blocks = (rows + kBlock - 1) / kBlock;
    const std::size_t sums = outputs * blocks;
    std::size_t m = 0;
    for (; m + 4 * kLanes <= sums; m += 4 * kLanes) SumBlocks<4>(round, in, stride, rows, blocks, sums, m, scratch);
    for (; m < sums; m += kLanes) SumBlocks<1>(round, in, stride, rows, blocks, sums, m, scratch);
    in = scratch;
    stride = blocks;
    rows = blocks;
    scratch += sums;
  }
  SumFewRows(roles.Sum(level), in, stride, rows, outputs, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace scaletrace
HWY_AFTER_NAMESPACE();

#endif  // SCALETRACE_KERNELS_SUM_ROWS_INL_H_
