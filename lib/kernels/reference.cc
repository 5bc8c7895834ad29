#include "kernels/reference.h"

#include <cmath>
#include <tuple>

#include "kernels/flush_scope.h"

namespace scaletrace {
namespace {

// Step 7 for one output: `terms` summed in the compute format.
float SumOfRows(const Format& format, std::vector<float> terms) {
  if (terms.size() == 1) return terms[0];
  while (true) {
    const std::size_t blocks = terms.size() <= 32 ? 1 : (terms.size() + 31) / 32;
    const std::size_t length = blocks == 1 ? terms.size() : 32;
    const std::size_t front = (blocks * length - terms.size()) / 2;
    std::vector<float> sums(blocks, 0.0f);
    for (std::size_t i = 0; i < blocks * length; ++i) {
      const float term = i >= front && i - front < terms.size() ? terms[i - front] : 0.0f;
      sums[i / length] = Round(format, sums[i / length] + term);
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
  const auto round = [&](float v) { return Round(*in.format, v); };
  const auto round_all = [&](std::vector<float> v) {
    for (float& e : v) e = round(e);
    return v;
  };
  const std::vector<float> x = round_all(in.x), w = round_all(in.w), b = round_all(in.b);

  const float inverse_n = 1.0f / static_cast<float>(B * K);
  const float scaled_c = in.loss_scale * (2.0f * inverse_n);
  float lanes[16] = {};
  for (std::size_t i = 0; i < B; ++i) {
    for (std::size_t k = 0; k < K; ++k) {
      Dot h{.single = D == 1};
      for (std::size_t d = 0; d < D; ++d) h.Add(x[i * D + d], w[d * K + k]);
      const float sum = round(h.sum) + b[k];
      const float prediction = in.round_predictions ? round(sum) : sum;
      const std::size_t at = i * K + k;
      const float e = prediction - in.y[at];
      lanes[at % 16] += e * e;
      out.errors[at] = e;
      out.signals[at] = round(B * K == 1 ? in.loss_scale * (2.0f * e) : scaled_c * e);
    }
  }
  float loss = lanes[0];
  for (int lane = 1; lane < 16; ++lane) loss += lanes[lane];
  out.loss = loss * inverse_n;

  for (std::size_t k = 0; k < K; ++k) {
    std::vector<float> column(B);
    for (std::size_t i = 0; i < B; ++i) column[i] = out.signals[i * K + k];
    out.gb[k] = SumOfRows(*in.format, column);
    for (std::size_t d = 0; d < D; ++d) {
      Dot dot{.single = B == 1};
      for (std::size_t i = 0; i < B; ++i) dot.Add(out.signals[i * K + k], x[i * D + d]);
      out.gw[d * K + k] = round(dot.sum);
    }
  }

  const auto finish = [&](const std::vector<float>& g, const std::vector<float>& p, std::vector<float>& u,
                          std::vector<float>& new_p) {
    for (std::size_t i = 0; i < g.size(); ++i) {
      u[i] = g[i] / in.loss_scale;
      new_p[i] = std::fma(-in.lr, u[i], p[i]);
      if (!std::isfinite(g[i])) out.scaled_finite = false;
      if (!std::isfinite(u[i])) out.unscaled_finite = false;
    }
  };
  finish(out.gw, in.w, out.uw, out.new_w);
  finish(out.gb, in.b, out.ub, out.new_b);
}

}  // namespace

ReferenceOutput ReferenceStep(const ReferenceInput& input) {
  ReferenceOutput out;
  const std::size_t targets = input.rows * input.outputs, weights = input.features * input.outputs;
  for (std::vector<float>* v : {&out.errors, &out.signals}) v->resize(targets);
  for (std::vector<float>* v : {&out.gw, &out.uw, &out.new_w}) v->resize(weights);
  for (std::vector<float>* v : {&out.gb, &out.ub, &out.new_b}) v->resize(input.outputs);
  const FlushScope flush;
  Compute(input, out);
  return out;
}

}  // namespace scaletrace
