// What the vector kernels share: names for Highway's types, a multiply-add that is fused everywhere, rounding to a format. Included once for each instruction set, inside
// HWY_BEFORE_NAMESPACE's reach, by the files that hold kernels.
#if defined(SCALETRACE_KERNELS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SCALETRACE_KERNELS_VECTORS_INL_H_
#undef SCALETRACE_KERNELS_VECTORS_INL_H_
#else
#define SCALETRACE_KERNELS_VECTORS_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace scaletrace {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, kPad>;
using Ints = hn::RebindToSigned<Floats>;
using VF = hn::Vec<Floats>;
using VI = hn::Vec<Ints>;
constexpr std::size_t kLanes = hn::MaxLanes(Floats());
constexpr std::size_t kGroups = kPad / kLanes;

// Highway's MulAdd rounds twice where the processor has no fused multiply-add.
#undef SCALETRACE_FUSED
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SSSE3 || HWY_TARGET == HWY_SSE4 || \
    (defined(HWY_SSE2) && HWY_TARGET == HWY_SSE2)
#define SCALETRACE_FUSED 0
#else
#define SCALETRACE_FUSED 1
#endif

HWY_INLINE VF Fma(VF a, VF b, VF c) {
#if SCALETRACE_FUSED
  return hn::MulAdd(a, b, c);
#else
  HWY_ALIGN float pa[kLanes], pb[kLanes], pc[kLanes];
  const Floats d;
  hn::Store(a, d, pa);
  hn::Store(b, d, pb);
  hn::Store(c, d, pc);
  for (std::size_t i = 0; i < kLanes; ++i) pc[i] = std::fma(pa[i], pb[i], pc[i]);
  return hn::Load(d, pc);
#endif
}

HWY_INLINE VI Bits(VF v) { return hn::BitCast(Ints(), v); }
HWY_INLINE VF FromBits(VI v) { return hn::BitCast(Floats(), v); }
HWY_INLINE VI Int(std::int32_t v) { return hn::Set(Ints(), v); }

// The first `count` < kLanes floats, zeros behind them; nothing beyond them is touched.
HWY_INLINE VF LoadPart(const float* from, std::size_t count) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  return hn::MaskedLoad(hn::FirstN(Floats(), count), Floats(), from);
#else
  HWY_ALIGN float part[kLanes] = {};
  for (std::size_t i = 0; i < count; ++i) part[i] = from[i];
  return hn::Load(Floats(), part);
#endif
}

HWY_INLINE void StorePart(VF v, std::size_t count, float* to) {
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
  hn::BlendedStore(v, hn::FirstN(Floats(), count), Floats(), to);
#else
  HWY_ALIGN float part[kLanes];
  hn::Store(v, Floats(), part);
  for (std::size_t i = 0; i < count; ++i) to[i] = part[i];
#endif
}

// body(i, v, count) for n floats, with `count` valid lanes.
template <class Body>
HWY_INLINE void ForEachVector(const float* in, std::size_t n, const Body& body) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, hn::LoadU(Floats(), in + i), kLanes);
  if (i < n) body(i, LoadPart(in + i, n - i), n - i);
}

// The first `count` of a vector's worth of floats.
HWY_INLINE VF LoadCount(const float* from, std::size_t count) {
  return count == kLanes ? hn::LoadU(Floats(), from) : LoadPart(from, count);
}

HWY_INLINE void StoreCount(VF v, std::size_t count, float* to) {
  if (count == kLanes) {
    hn::StoreU(v, Floats(), to);
  } else {
    StorePart(v, count, to);
  }
}

// ---------------------------------------------------------------------------------------------------- rounding to a format
// Integer operations on the bits: Highway's own conversions truncate or are wrong on some targets, and a conversion instruction flushes.

constexpr std::int32_t kMagnitude = 0x7FFFFFFF;
constexpr std::int32_t kInf = 0x7F800000;
constexpr std::int32_t kQuietNan = 0x7FC00000;

HWY_INLINE std::int32_t BitsOf(float value) {
  std::int32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

HWY_INLINE float FloatOf(std::int32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Each rounds a vector to nearest.
struct RoundNothing {
  explicit RoundNothing(const Format&) {}
  HWY_INLINE VF operator()(VF v) const { return v; }
};

struct RoundBfloat16 {
  explicit RoundBfloat16(const Format&) {}
  HWY_INLINE VF operator()(VF v) const {
    const VI bits = Bits(v);
    const VI odd = hn::And(hn::BitCast(Ints(), hn::ShiftRight<16>(hn::BitCast(hn::RebindToUnsigned<Floats>(), bits))), Int(1));
    // A carry out of the mantissa raises the exponent, at the top to infinity. A NaN must not be carried into.
    const VI carried = hn::Add(bits, hn::Add(odd, Int(0x7FFF)));
    const auto is_nan = hn::Gt(hn::And(bits, Int(kMagnitude)), Int(kInf));
    const VI rounded = hn::IfThenElse(is_nan, hn::Or(bits, Int(kQuietNan)), carried);
    return FromBits(hn::And(rounded, Int(static_cast<std::int32_t>(0xFFFF0000))));
  }
};

// The same where no NaN has low bits that a carry could run through: arithmetic makes none of its own, so only what comes in must be without (Canonical in
// kernels/canonical.h).
struct RoundCleanBfloat16 {
  RoundCleanBfloat16() = default;
  explicit RoundCleanBfloat16(const Format&) {}
  HWY_INLINE VF operator()(VF v) const {
    const VI bits = Bits(v);
    const VI odd = hn::And(hn::BitCast(Ints(), hn::ShiftRight<16>(hn::BitCast(hn::RebindToUnsigned<Floats>(), bits))), Int(1));
    const VI carried = hn::Add(hn::Add(bits, Int(0x7FFF)), odd);
    return FromBits(hn::And(carried, Int(static_cast<std::int32_t>(0xFFFF0000))));
  }
};

// Any format.
struct RoundAny {
  explicit RoundAny(const Format& f)
      : dropped(23 - f.mantissa_bits),
        max_bits(BitsOf(f.max_finite)),
        overflow(f.has_inf ? kInf : f.has_nan ? kQuietNan : max_bits),
        // With f32's bias the subnormals of both coincide and the normal path serves them. Otherwise the smallest normal is where it ends.
        smallest_normal(f.bias == 127 ? 0 : (128 - f.bias) << 23),
        // 2^23 units of the format's last subnormal place: adding it makes f32's own rounding fall on that place.
        magic(FloatOf((128 - f.bias - f.mantissa_bits + 23) << 23)),
        zero_sign(f.negative_zero) {}

  HWY_INLINE VF operator()(VF v) const {
    const VI bits = Bits(v);
    const VI magnitude = hn::And(bits, Int(kMagnitude));
    VI sign = hn::AndNot(Int(kMagnitude), bits);
    const VI odd = hn::And(hn::ShiftRightSame(magnitude, dropped), Int(1));
    const VI half = Int((1 << (dropped - 1)) - 1);
    VI rounded = hn::And(hn::Add(magnitude, hn::Add(odd, half)), Int(~((1 << dropped) - 1)));
    const VF shift = hn::Set(Floats(), magic);
    const VI small = Bits(hn::Sub(hn::Add(FromBits(magnitude), shift), shift));
    rounded = hn::IfThenElse(hn::Lt(magnitude, Int(smallest_normal)), small, rounded);
    rounded = hn::IfThenElse(hn::Gt(rounded, Int(max_bits)), Int(overflow), rounded);
    rounded = hn::IfThenElse(hn::Gt(magnitude, Int(kInf)), Int(kQuietNan), rounded);
    if (!zero_sign) sign = hn::IfThenElse(hn::Eq(rounded, Int(0)), Int(0), sign);
    return FromBits(hn::Or(rounded, sign));
  }

  int dropped;
  std::int32_t max_bits, overflow, smallest_normal;
  float magic;
  bool zero_sign;
};

// The numbers of the entries `first` ... of a vector.
HWY_INLINE VI Entries(std::size_t first) { return hn::Iota(Ints(), static_cast<std::int32_t>(first)); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace scaletrace
HWY_AFTER_NAMESPACE();

#endif  // SCALETRACE_KERNELS_VECTORS_INL_H_
