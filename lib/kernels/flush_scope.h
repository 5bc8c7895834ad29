// The floating-point mode of the kernels: nearest-even, subnormal operands and results flushed to zero. Set around a call of a kernel and nowhere else.
#ifndef SCALETRACE_KERNELS_FLUSH_SCOPE_H_
#define SCALETRACE_KERNELS_FLUSH_SCOPE_H_

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace scaletrace {

// Sets the mode and restores what it found. A compiler knows nothing of the mode and may move arithmetic across the change, so the arithmetic has to sit in a
// function that it can't see into: a kernel called through a pointer, or one marked noinline. Memory is a barrier on both sides.
class FlushScope {
 public:
  FlushScope() : found_(Read()) {
#if defined(__x86_64__)
    Write(0x1F80u | 0x8000u | 0x0040u);  // exceptions masked, nearest, FTZ, DAZ
#elif defined(__aarch64__)
    Write((found_ & ~std::uint64_t{3u << 22}) | (1u << 24));  // nearest, FZ
#endif
  }
  ~FlushScope() { Write(found_); }
  FlushScope(const FlushScope&) = delete;
  FlushScope& operator=(const FlushScope&) = delete;

 private:
#if defined(__x86_64__)
  using Mode = std::uint32_t;
  static Mode Read() {
    asm volatile("" ::: "memory");
    return _mm_getcsr();
  }
  static void Write(Mode mode) {
    asm volatile("" ::: "memory");
    _mm_setcsr(mode);
    asm volatile("" ::: "memory");
  }
#elif defined(__aarch64__)
  using Mode = std::uint64_t;
  static Mode Read() {
    Mode mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode)::"memory");
    return mode;
  }
  static void Write(Mode mode) { asm volatile("msr fpcr, %0" ::"r"(mode) : "memory"); }
#else
#error "scaletrace knows how to flush subnormals on x86-64 and AArch64 only"
#endif

  Mode found_;
};

}  // namespace scaletrace

#endif  // SCALETRACE_KERNELS_FLUSH_SCOPE_H_
