// The precision options of a run.
#ifndef SCALETRACE_MODEL_PRECISION_H_
#define SCALETRACE_MODEL_PRECISION_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "numerics/format.h"

namespace scaletrace {

// strict: every operation of the compute format rounds its result. excess: the sum with the bias does not (XLA's default on a CPU).
enum class Profile : std::uint8_t { kStrict, kExcess };
inline constexpr std::string_view kProfileNames[] = {"strict", "excess"};
constexpr std::span<const std::string_view> EnumNames(Profile) { return kProfileNames; }

struct PrecisionOptions {
  std::string compute = "bfloat16";
  Profile profile = Profile::kStrict;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"compute", "format of the forward and backward pass", {}, FormatNames()}, self.compute);
    v.Value({"profile", "strict rounds after adding the bias, excess does not"}, self.profile);
  }
};

}  // namespace scaletrace

#endif  // SCALETRACE_MODEL_PRECISION_H_
