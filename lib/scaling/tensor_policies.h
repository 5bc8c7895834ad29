// Policies that scale tensors or layers, not one loss: te-delayed, ms-amp, adaloss. Pure functions; driven by
// `scaletrace policy KEY --amax-file`. They are not in the list of policy_list.h, since a run has one loss scale.
#ifndef SCALETRACE_SCALING_TENSOR_POLICIES_H_
#define SCALETRACE_SCALING_TENSOR_POLICIES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scaling/rules.h"

namespace scaletrace {

struct TensorPolicyInfo {
  std::string_view key;
  std::string_view project;
  std::string_view summary;
  std::string_view rule;
  std::string_view input;  // what a tensor or layer brings in each step: the numbers of TensorPolicy::kInputs, in words
};

enum class AmaxAlgorithm : std::uint8_t { kMax, kMostRecent };
inline constexpr std::string_view kAmaxAlgorithmNames[] = {"max", "most-recent"};
constexpr std::span<const std::string_view> EnumNames(AmaxAlgorithm) { return kAmaxAlgorithmNames; }

// A tensor policy P has kInfo, kName, kDoc, fields and Visit as other policies, and
//   static constexpr std::size_t kInputs;        numbers that a tensor brings in each step
//   struct State;  State Start() const;  bool operator==;
//   double Scale(const State&) const;            in force for the next step
//   State Next(const State&, std::span<const double> inputs) const;

struct TeDelayed {
  static constexpr TensorPolicyInfo kInfo = {
      .key = "te-delayed",
      .project = "TransformerEngine, DelayedScaling",
      .summary = "per tensor: the largest amax of a history sets the next scale; an inf in it freezes the scale",
      .rule =
          "h[0] <- amax of this step;  if it is 0 everything stays (the module did not run)\n"
          "a <- max of the history, slot 0 included (most-recent: h[0])\n"
          "h[i] <- h[i+1] for 1 <= i < L-1;  h[L-1] <- h[0];  h[0] <- 0\n"
          "s <- (a is finite and > 0) ? (fp8_max * 2^-margin)/a : s;  an infinite s becomes FLT_MAX",
      .input = "amax = max |x|",
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;
  static constexpr std::size_t kInputs = 1;

  struct State {
    float scale = 1;
    std::vector<float> history;  // L entries; slot 0 is that of the running step, 0 between steps
    bool operator==(const State&) const = default;
  };

  float fp8_max = 448;
  std::int64_t margin = 0;
  std::int64_t history_length = 1024;
  AmaxAlgorithm algorithm = AmaxAlgorithm::kMax;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"fp8_max", "largest number of the format: 448 for E4M3, 57344 for E5M2", MoreThan(0)}, self.fp8_max);
    v.Value({"margin", "the scale is 2^-margin of what it could be", Between(-100, 100)}, self.margin);
    v.Value({"history_length", "steps that are remembered, the running one included", Between(1, 1048576)},
            self.history_length);
    v.Value({"algorithm", "which amax of the history counts"}, self.algorithm);
  }

  State Start() const { return {1, std::vector<float>(static_cast<std::size_t>(history_length), 0.0f)}; }
  double Scale(const State& s) const { return s.scale; }
  // A NaN among the amax is ignored by the maximum; as the most recent it keeps the scale.
  State Next(const State& s, std::span<const double> inputs) const;
};

template <bool kFixed>
struct MsAmpRule {
  static constexpr TensorPolicyInfo kInfo = [] {
    TensorPolicyInfo i = {
        .key = "ms-amp",
        .project = "Microsoft MS-AMP",
        .summary = "per tensor: a power of two from the largest amax of a window; an amax of inf inverts the old scale",
        .rule =
            "a <- largest amax of the window\n"
            "e <- floor(log2(fp_max/a)) - margin;  s <- 2^|e|, or the old scale if a is not finite or not > 0\n"
            "if e < 0: s <- 1/s        (a = inf makes e = -inf)",
        .input = "amax = max |x|",
    };
    if (kFixed) {
      i.key = "ms-amp-fixed";
      i.summary = "ms-amp that keeps its scale where an amax is inf";
      i.rule = "as ms-amp, but s stays where a is not finite or not > 0";
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;
  static constexpr std::size_t kInputs = 1;

  struct State {
    double scale = 1;
    std::vector<double> window;  // at most `window` entries, oldest first
    bool operator==(const State&) const = default;
  };

  double fp_max = 448;
  std::int64_t margin = 0;
  std::int64_t window = 16;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"fp_max", "largest number of the format: 448 for E4M3, 57344 for E5M2", MoreThan(0)}, self.fp_max);
    v.Value({"margin", "the scale is 2^-margin of what it could be", Between(-100, 100)}, self.margin);
    v.Value({"window",
             "steps that are remembered: 16 for activations and output gradients, 1 for weights and their gradients",
             Between(1, 1048576)},
            self.window);
  }

  State Start() const { return {}; }
  double Scale(const State& s) const { return s.scale; }
  State Next(const State& s, std::span<const double> inputs) const;
};
using MsAmp = MsAmpRule<false>;
using MsAmpFixed = MsAmpRule<true>;
extern template struct MsAmpRule<false>;
extern template struct MsAmpRule<true>;

// The scale of one layer: what multiplies the gradient that it passes on. `carried` is the product of the scales of the
// layers behind it.
struct Adaloss {
  static constexpr TensorPolicyInfo kInfo = {
      .key = "adaloss",
      .project = "gradient-scaling (Zhao, Vogel, Ahmed)",
      .summary =
          "per layer, in the backward pass: from the moments of gradient and weight, so that a share p of the products "
          "underflows; no skips",
      .rule =
          "sigma <- sqrt((sd_g^2 + m_g^2) * (sd_w^2 + m_w^2)) * sqrt(fan_in/2)\n"
          "s <- u_min / (sqrt(2) * erfinv(p) * sigma);  sigma = 0: s = 1\n"
          "s <- max(s, 1);  s <- min(s, (65504/fan_in)/largest |g_i w_j|);  s <- min(s, 1024/carried);  s <- min(s, "
          "16);  s <- 2^floor(log2 s)\n"
          "carried <- carried * s for the layer before it",
      .input = "m_g sd_g m_w sd_w fan_in largest|g*w|",
  };
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;
  static constexpr std::size_t kInputs = 6;

  // The layers of a step are given in the order of the backward pass: `carried` goes from one to the next.
  struct State {
    double scale = 1;
    std::int64_t step = 0;
    bool operator==(const State&) const = default;
  };

  double p = 1e-3;
  double u_min = 6e-8;
  double max_carried = 1024;
  double max_scale = 16;
  std::int64_t every = 1;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"p", "the share of products that may underflow", Between(1e-12, 0.99)}, self.p);
    v.Value({"u_min", "the smallest number of the format", MoreThan(0)}, self.u_min);
    v.Value({"max_carried", "the product of all scales does not go above this", MoreThan(0).OrPower()},
            self.max_carried);
    v.Value({"max_scale", "one layer's scale does not go above this", MoreThan(0).OrPower()}, self.max_scale);
    v.Value({"every", "steps between updates", Between(1, 2147483647)}, self.every);
  }

  State Start() const { return {}; }
  double Scale(const State& s) const { return s.scale; }
  double LayerScale(std::span<const double> inputs, double carried) const;
};

using TensorPolicy = std::variant<TeDelayed, MsAmp, MsAmpFixed, Adaloss>;

// One sentence why a run cannot use the policy `key`, where that is a tensor policy; else empty.
std::string WhyNotInRun(std::string_view key);

// The scales of all tensors in each step: entry 0 before the first one, and one more entry than `steps`. Each step has
// the inputs of the tensors one after the other, kInputs numbers each; all steps have as many.
std::vector<std::vector<double>> TensorScales(const TensorPolicy& policy,
                                              const std::vector<std::vector<double>>& steps);

// x with erf(x) = p, for p in (0, 1): relative error below 1e-12.
double InverseErf(double p);

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_TENSOR_POLICIES_H_
