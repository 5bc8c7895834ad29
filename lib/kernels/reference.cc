#include "kernels/reference.h"

#include <cmath>
#include <tuple>

#include "base/random.h"
#include "kernels/flush_scope.h"

namespace scaletrace {
namespace {

// The roundings of one step, each with the random bits of its entry.
struct Rounder {
  const StepRounding& step;
  std::uint64_t draw;

  float operator()(Role role, float value, std::size_t entry, std::uint32_t level = 0) const {
    const bool random = step[role].mode == RoundingMode::kStochastic;
    return Round(step[role], value, random ? RoundingBits(step.seed, draw, RoundingTensor(role, level), static_cast<std::uint32_t>(entry)) : 0);
  }
};

// Step 7 for output k, but for the rounding to a gradient.
float SumOfRows(const Rounder& round, std::size_t k, std::vector<float> terms) {
  if (terms.size() == 1) return terms[0];
  for (std::uint32_t level = 0;; ++level) {
    const std::size_t blocks = terms.size() <= 32 ? 1 : (terms.size() + 31) / 32;
    const std::size_t length = blocks == 1 ? terms.size() : 32, padded = blocks * length;
    const std::size_t front = (padded - terms.size()) / 2;
    std::vector<float> sums(blocks, 0.0f);
    for (std::size_t i = 0; i < padded; ++i) {
      const float term = i >= front && i - front < terms.size() ? terms[i - front] : 0.0f;
      sums[i / length] = round(Role::kGradientSum, sums[i / length] + term, k * padded + i, level);
    }
    if (blocks == 1) return sums[0];
    terms = sums;
  }
}

// A dot whose only term stays a bare product, so that -0 survives.
struct Dot {
  bool single;
  float sum = 0.0f;
  void Add(float a, float b) { sum = single ? a * b : std::fma(a, b, sum); }
};

[[gnu::noinline]] void Compute(const ReferenceInput& in, ReferenceOutput& out) {
  const auto [B, D, K] = std::tuple(in.rows, in.features, in.outputs);
  const Rounder round{in.rounding, in.draw};
  std::vector<float> x(B * D), w(D * K), b(K);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = round(Role::kInput, in.x[i], i);
  for (std::size_t d = 0; d < D; ++d) {
    for (std::size_t k = 0; k < K; ++k) w[d * K + k] = round(Role::kWeight, in.w[d * K + k], k * D + d);
  }
  for (std::size_t k = 0; k < K; ++k) b[k] = round(Role::kBias, in.b[k], K * D + k);

  const float inverse_n = 1.0f / static_cast<float>(B * K);
  const float scaled_c = in.loss_scale * (2.0f * inverse_n * in.share);
  float lanes[16] = {};
  for (std::size_t i = 0; i < B; ++i) {
    for (std::size_t k = 0; k < K; ++k) {
      Dot h{.single = D == 1};
      for (std::size_t d = 0; d < D; ++d) h.Add(x[i * D + d], w[d * K + k]);
      const std::size_t at = i * K + k, entry = k * B + i;
      out.sums_with_bias[at] = round(Role::kDot, h.sum, entry) + b[k];
      out.activations[at] = round(Role::kActivation, out.sums_with_bias[at], entry);
      const float e = out.activations[at] - in.y[at];
      lanes[at % 16] += e * e;
      out.errors[at] = e;
      out.exact_signals[at] = B * K == 1 && in.share == 1.0f ? in.loss_scale * (2.0f * e) : scaled_c * e;
      out.signals[at] = round(Role::kOutputGradient, out.exact_signals[at], entry);
    }
  }
  float loss = lanes[0];
  for (int lane = 1; lane < 16; ++lane) loss += lanes[lane];
  out.loss = loss * inverse_n;

  for (std::size_t k = 0; k < K; ++k) {
    std::vector<float> column(B);
    for (std::size_t i = 0; i < B; ++i) column[i] = out.signals[i * K + k];
    out.gb[k] = round(Role::kGradient, SumOfRows(round, k, column), K * D + k);
    for (std::size_t d = 0; d < D; ++d) {
      Dot dot{.single = B == 1};
      for (std::size_t i = 0; i < B; ++i) dot.Add(out.signals[i * K + k], x[i * D + d]);
      out.gw[d * K + k] = round(Role::kGradient, dot.sum, k * D + d);
    }
  }

  const auto finish = [&](const std::vector<float>& g, const std::vector<float>& p, const auto& entry, std::vector<float>& u,
                          std::vector<float>& new_p) {
    for (std::size_t i = 0; i < g.size(); ++i) {
      u[i] = g[i] / in.loss_scale;
      new_p[i] = round(Role::kMaster, std::fma(-in.lr, u[i], p[i]), entry(i));
      if (!std::isfinite(g[i])) out.scaled_finite = false;
      if (!std::isfinite(u[i])) out.unscaled_finite = false;
    }
  };
  finish(out.gw, in.w, [D = D, K = K](std::size_t i) { return i % K * D + i / K; }, out.uw, out.new_w);
  finish(out.gb, in.b, [D = D, K = K](std::size_t k) { return K * D + k; }, out.ub, out.new_b);
}

// The optimizers' rules, entry by entry; see UpdateArgs.
[[gnu::noinline]] void Update(const UpdateArgs& args) {
  const Rounder round{*args.rounding, args.draw};
  for (std::size_t i = 0; i < args.n; ++i) {
    float p = args.parameters[i];
    const float g = args.weight_decay != 0 ? std::fma(args.weight_decay, p, args.gradients[i]) : args.gradients[i];
    float change = g;
    if (args.rule == UpdateRule::kMomentum || args.rule == UpdateRule::kNesterov) {
      args.first[i] = std::fma(args.momentum, args.first[i], g);
      change = args.rule == UpdateRule::kMomentum ? args.first[i] : std::fma(args.momentum, args.first[i], g);
    } else if (args.rule == UpdateRule::kAdam) {
      args.first[i] = std::fma(args.beta1, args.first[i], args.one_minus_beta1 * g);
      args.second[i] = std::fma(args.beta2, args.second[i], args.one_minus_beta2 * g * g);
      change = args.first[i] / (std::sqrt(args.second[i] / args.correction2) + args.epsilon);
    }
    if (args.shrink != 0) p = std::fma(-args.shrink, p, p);
    args.parameters[i] = round(Role::kMaster, std::fma(-args.lr, change, p), i);
  }
}

}  // namespace

ReferenceOutput ReferenceStep(const ReferenceInput& input) {
  ReferenceOutput out;
  const std::size_t targets = input.rows * input.outputs, weights = input.features * input.outputs;
  for (std::vector<float>* v : {&out.errors, &out.signals, &out.sums_with_bias, &out.activations, &out.exact_signals}) v->resize(targets);
  for (std::vector<float>* v : {&out.gw, &out.uw, &out.new_w}) v->resize(weights);
  for (std::vector<float>* v : {&out.gb, &out.ub, &out.new_b}) v->resize(input.outputs);
  const FlushScope flush;
  Compute(input, out);
  return out;
}

void ReferenceUpdate(const UpdateArgs& args) {
  const FlushScope flush;
  Update(args);
}

}  // namespace scaletrace
