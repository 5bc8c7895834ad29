// Float buffers aligned to a cache line, with room for one whole vector beyond the end.
#ifndef SCALETRACE_KERNELS_ALIGNED_H_
#define SCALETRACE_KERNELS_ALIGNED_H_

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>

#include "kernels/kernels.h"

namespace scaletrace {

class AlignedFloats {
 public:
  explicit AlignedFloats(std::size_t size = 0)
      : size_(size), data_(static_cast<float*>(::operator new((size + kPad) * sizeof(float), kAlignment))) {
    std::fill_n(data_.get(), size + kPad, 0.0f);
  }
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  float& operator[](std::size_t i) { return data_.get()[i]; }
  float operator[](std::size_t i) const { return data_.get()[i]; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(float* p) const { ::operator delete(p, kAlignment); }
  };
  std::size_t size_;
  std::unique_ptr<float, Free> data_;
};

}  // namespace scaletrace

#endif  // SCALETRACE_KERNELS_ALIGNED_H_
