// The moving targets of dataset.h. Leaves what the values are to the generators.
#include "data/dataset.h"

#include <algorithm>

#include "base/error.h"
#include "base/math.h"

namespace scaletrace {

bool Dataset::IsSpike(std::int64_t step) const {
  if (spike_every > 0 && step > 0 && step % spike_every == 0) return true;
  return std::binary_search(spike_steps.begin(), spike_steps.end(), step);
}

bool Dataset::TargetsChange(std::int64_t step) const {
  return step <= 0 || period > 0 || IsSpike(step) != IsSpike(step - 1);
}

std::int64_t Dataset::StepsWithSameTargets(std::int64_t step, std::int64_t most) const {
  if (period > 0 || IsSpike(step)) return 1;
  const auto next = std::upper_bound(spike_steps.begin(), spike_steps.end(), step);
  if (next != spike_steps.end()) most = std::min(most, *next - step);
  if (spike_every > 0) most = std::min(most, spike_every - step % spike_every);
  return most;
}

void Dataset::TargetsAt(std::int64_t step, std::span<const std::uint32_t> rows, std::span<float> out) const {
  const std::size_t count = rows.empty() ? samples : rows.size();
  SCALETRACE_CHECK(out.size() == count * outputs);
  const bool moves = period > 0;
  const double turns = moves ? static_cast<double>(step) / period : 0;
  const float cos = static_cast<float>(CosTurns(turns));
  const float sin = static_cast<float>(SinTurns(turns));
  const bool spike = IsSpike(step);
  float* to = out.data();
  for (std::size_t i = 0; i < count; ++i, to += outputs) {
    const std::size_t row = rows.empty() ? i : rows[i];
    SCALETRACE_CHECK(row < samples);
    const std::size_t from = row * outputs;
    if (moves) {
      for (std::size_t k = 0; k < outputs; ++k) {
        to[k] = (cos * y[from + k] + sin * y_turned[from + k]) + noise[from + k];
      }
    } else {
      std::copy_n(y.data() + from, outputs, to);
    }
    if (spike) {
      for (std::size_t k = 0; k < outputs; ++k) to[k] *= spike_factor;
    }
  }
}

}  // namespace scaletrace
