// The linear model under training: master parameters, the packed batch, and the two halves of a step with the scaling policy between them.
#ifndef SCALETRACE_MODEL_MODEL_H_
#define SCALETRACE_MODEL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/aligned.h"
#include "kernels/kernels.h"
#include "model/precision.h"

namespace scaletrace {

struct ModelShape {
  std::size_t max_rows = 0;  // of a batch
  std::size_t features = 0;  // D
  std::size_t outputs = 0;   // K
};

class LinearModel {
 public:
  // All parameters 0. `precision.compute` must name a format.
  LinearModel(const KernelTable& kernels, const PrecisionOptions& precision, const ModelShape& shape);

  // w: D x K, row-major. b: K.
  void SetParameters(std::span<const float> w, std::span<const float> b);
  std::vector<float> w() const;
  std::vector<float> b() const;

  // Rounds and packs a batch: the rows `rows` of x (any number of rows x D, row-major), all of x in order where `rows` is empty.
  void LoadFeatures(std::span<const float> x, std::span<const std::uint32_t> rows);
  // y: one row for each of the batch's, x K.
  void LoadTargets(std::span<const float> y);

  // Forward, loss, scaled gradients, and their division by S. Returns the loss.
  struct Backward {
    float loss = 0;
    Finite finite;  // before and after the division
  };
  Backward ComputeGradients(float loss_scale);
  // Divides the scaled gradients anew, for a policy that unscales with another scale than that of the backward pass.
  void Unscale(float divisor);
  // p <- fma(-lr, u, p) with the unscaled gradients u.
  void Update(float lr);

  // Up to losses.size() whole steps with one S while the gradients are finite, scaled and unscaled; each loss goes to `losses`. Where it ends early, the
  // step that wasn't finite is as after ComputeGradients, its loss behind those of the applied ones.
  Stretch TakeSteps(float loss_scale, float lr, std::span<float> losses);

  // What the last ComputeGradients left, output by output: K x D weights and then K biases.
  std::span<const float> scaled_gradients() const { return {scaled_.data(), parameter_count()}; }
  std::span<const float> unscaled_gradients() const { return {unscaled_.data(), parameter_count()}; }
  std::span<const float> parameters() const { return {parameters_.data(), parameter_count()}; }
  std::size_t weight_count() const { return shape_.features * shape_.outputs; }
  std::size_t parameter_count() const { return weight_count() + shape_.outputs; }
  std::size_t rows() const { return rows_; }

  // Share of the entries of g that are 0 where e is not.
  double UnderflowShare() const;

  // The first entry of the unscaled gradients that isn't finite, in the order w (row-major), b.
  struct Place {
    char tensor = 0;  // 'w', 'b'; 0: all are finite
    std::int64_t index = 0;
  };
  Place FirstNonfinite() const;

 private:
  GradientArgs Args(float loss_scale);

  const KernelTable* kernels_;
  const Format* format_;
  bool round_predictions_;
  ModelShape shape_;
  std::size_t rows_ = 0;

  AlignedFloats x_by_row_, x_by_feature_, y_;
  AlignedFloats parameters_, rounded_, scaled_, unscaled_;
  AlignedFloats errors_, signals_, sums_;
};

}  // namespace scaletrace

#endif  // SCALETRACE_MODEL_MODEL_H_
