#include "scaling/tensor_policies.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/math.h"

namespace scaletrace {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979323846;

// floor(log2 x), exactly. x > 0.
double FloorLog2(double x) {
  if (std::isinf(x)) return kInf;
  int exponent = 0;
  std::frexp(x, &exponent);
  return exponent - 1;
}

}  // namespace

TeDelayed::State TeDelayed::Next(const State& s, std::span<const double> inputs) const {
  const auto last = static_cast<float>(inputs[0]);
  if (last == 0) return s;
  State next = s;
  next.history[0] = last;
  float a = last;
  if (algorithm == AmaxAlgorithm::kMax) {
    a = 0;
    for (const float h : next.history) {
      if (h > a) a = h;
    }
  }
  for (std::size_t i = 1; i + 1 < next.history.size(); ++i) next.history[i] = next.history[i + 1];
  next.history.back() = last;
  next.history[0] = 0;
  if (std::isfinite(a) && a > 0) {
    next.scale = fp8_max * static_cast<float>(Exp2(static_cast<double>(-margin))) / a;
    if (std::isinf(next.scale)) next.scale = std::numeric_limits<float>::max();
  }
  return next;
}

template <bool kFixed>
typename MsAmpRule<kFixed>::State MsAmpRule<kFixed>::Next(const State& s, std::span<const double> inputs) const {
  State next = s;
  next.window.push_back(inputs[0]);
  if (static_cast<std::int64_t>(next.window.size()) > window) next.window.erase(next.window.begin());
  double a = -kInf;
  for (const double amax : next.window) {
    if (std::isnan(amax) || amax > a) a = amax;
    if (std::isnan(a)) break;
  }
  const bool usable = std::isfinite(a) && a > 0;
  if (kFixed && !usable) return next;
  // fp_max/inf is 0, and log2(0) is -inf; of a NaN or a negative number it is NaN, which is not < 0.
  const double e = usable ? FloorLog2(fp_max / a) - static_cast<double>(margin) : a == kInf ? -kInf : kInf;
  next.scale = usable ? Exp2(std::fabs(e)) : s.scale;
  if (e < 0) next.scale = 1 / next.scale;
  return next;
}
template struct MsAmpRule<false>;
template struct MsAmpRule<true>;

double Adaloss::LayerScale(std::span<const double> inputs, double carried) const {
  const double m_g = inputs[0], sd_g = inputs[1], m_w = inputs[2], sd_w = inputs[3], fan_in = inputs[4],
               largest = inputs[5];
  const double sigma = std::sqrt((sd_g * sd_g + m_g * m_g) * (sd_w * sd_w + m_w * m_w)) * std::sqrt(0.5 * fan_in);
  if (sigma == 0) return 1;
  double s = u_min / (std::sqrt(2.0) * InverseErf(p) * sigma);
  s = std::max(s, 1.0);
  s = std::min(s, 65504 / fan_in / largest);
  s = std::min(s, max_carried / carried);
  s = std::min(s, max_scale);
  return s > 0 ? Exp2(FloorLog2(s)) : s;
}

std::string WhyNotInRun(std::string_view key) {
  std::string why;
  ForEachKind<TensorPolicy>([&]<class P>() {
    if (P::kName == key)
      why = std::string(key) + " scales tensors or layers, not one loss, so a run cannot use it: scaletrace policy " +
            std::string(key) + " --amax-file drives it";
  });
  return why;
}

std::vector<std::vector<double>> TensorScales(const TensorPolicy& policy,
                                              const std::vector<std::vector<double>>& steps) {
  return std::visit(
      [&steps]<class P>(const P& p) {
        const std::size_t tensors = steps.empty() ? 0 : steps.front().size() / P::kInputs;
        std::vector<typename P::State> states(tensors, p.Start());
        std::vector<std::vector<double>> rows;
        const auto add_row = [&] {
          std::vector<double> row;
          for (const auto& state : states) row.push_back(p.Scale(state));
          rows.push_back(std::move(row));
        };
        add_row();
        for (const std::vector<double>& step : steps) {
          SCALETRACE_CHECK(step.size() == tensors * P::kInputs);
          double carried = 1;
          for (std::size_t t = 0; t < tensors; ++t) {
            const std::span<const double> inputs(step.data() + t * P::kInputs, P::kInputs);
            if constexpr (std::is_same_v<P, Adaloss>) {
              if (states[t].step++ % p.every == 0) states[t].scale = p.LayerScale(inputs, carried);
              carried *= states[t].scale;
            } else {
              states[t] = p.Next(states[t], inputs);
            }
          }
          add_row();
        }
        return rows;
      },
      policy);
}

double InverseErf(double p) {
  // Newton's method on erf(x) - p. The series erf(x) = 2/sqrt(pi) * sum of (-1)^n x^(2n+1) / (n! (2n+1)) has few digits
  // of cancellation for x < 2, which p = 0.99 does not reach.
  const auto erf = [](double x) {
    double term = x, sum = x;
    for (int n = 1; n < 60; ++n) {
      term *= -x * x / n;
      sum += term / (2 * n + 1);
    }
    return 2 / std::sqrt(kPi) * sum;
  };
  constexpr double kLog2E = 1.4426950408889634074;
  double x = p * std::sqrt(kPi) / 2;
  for (int i = 0; i < 60; ++i) x -= (erf(x) - p) / (2 / std::sqrt(kPi) * Exp2(-x * x * kLog2E));
  return x;
}

}  // namespace scaletrace
