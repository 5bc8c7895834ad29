// The linear model under training: master parameters, the packed batch, and the two halves of a step with the scaling policy between them.
#ifndef SCALETRACE_MODEL_MODEL_H_
#define SCALETRACE_MODEL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/aligned.h"
#include "kernels/kernels.h"
#include "kernels/statistics.h"
#include "model/packed_model.h"
#include "model/precision.h"

namespace scaletrace {

struct ModelShape {
  std::size_t max_rows = 0;  // of a batch
  std::size_t features = 0;  // D
  std::size_t outputs = 0;   // K
};

class LinearModel {
 public:
  // All parameters 0. `seed`: of stochastic rounding. threads: at most so many are used, where a step is long enough; the bits don't depend on it. InputError as RoundingOf.
  LinearModel(const KernelTable& kernels, const PrecisionOptions& precision, const ModelShape& shape, std::uint64_t seed = 0, int threads = 1);

  // w: D x K, row-major. b: K. Taken as they are; RoundParameters brings them to the masters' format.
  void SetParameters(std::span<const float> w, std::span<const float> b);
  std::vector<float> w() const;
  std::vector<float> b() const;

  // Rounds all parameters to the masters' format, to nearest whatever the mode.
  void RoundParameters();

  // Rounds and packs a batch: the rows `rows` of x (any number of rows x D, row-major), all of x in order where `rows` is empty. `draw`: the number of
  // the step in the random bits of stochastic rounding, here and below.
  void LoadFeatures(std::span<const float> x, std::span<const std::uint32_t> rows, std::uint64_t draw = 0);
  // y: one row for each of the batch's, x K.
  void LoadTargets(std::span<const float> y);

  // Forward, loss, scaled gradients, and their division by S. Returns the loss.
  struct Backward {
    float loss = 0;
    Finite finite;  // before and after the division
  };
  // share: 1, or 1/m for one of m micro-batches of a step.
  Backward ComputeGradients(float loss_scale, std::uint64_t draw = 0, float share = 1);
  // Gradients of several micro-batches: Accumulate after the ComputeGradients of each adds its scaled gradients, in f32 from +0, in the order of the calls;
  // Divide puts the sum in the place of the scaled gradients, divides it by S, and starts anew.
  void Accumulate();
  Finite FinishAccumulation(float loss_scale);
  // Multiplies the scaled gradients by `factor` and divides them anew; or the unscaled ones.
  Finite MultiplyScaled(float factor, float loss_scale);
  void MultiplyUnscaled(float factor);
  // Divides the scaled gradients anew, for a policy that unscales with another scale than that of the backward pass.
  void Unscale(float divisor);
  // One update with the unscaled gradients u. Of `args` the rule and its numbers are read, and the draw; m and v are the model's own, 0 at first.
  void Update(UpdateArgs args);
  // p <- R_master(fma(-lr, u, p)).
  void Update(float lr) { Update(UpdateArgs{.lr = lr}); }

  // Up to losses.size() whole steps with one S while the gradients are finite, scaled and unscaled; each loss goes to `losses`. Where it ends early, the
  // step that wasn't finite is as after ComputeGradients, its loss behind those of the applied ones.
  // The draw of the first is `draw`, and each one's one more than that of the one before.
  Stretch TakeSteps(float loss_scale, float lr, std::span<float> losses, std::uint64_t draw = 0);

  // What the last ComputeGradients left, output by output: K x D weights and then K biases.
  std::span<const float> scaled_gradients() const { return {scaled_.data(), parameter_count()}; }
  std::span<const float> unscaled_gradients() const { return {unscaled_.data(), parameter_count()}; }
  std::span<const float> parameters() const { return {parameters_.data(), parameter_count()}; }
  std::size_t weight_count() const { return shape_.features * shape_.outputs; }
  std::size_t parameter_count() const { return weight_count() + shape_.outputs; }
  std::size_t rows() const { return rows_; }

  // From now on ComputeGradients keeps e and g, for UnderflowShare. Before the first batch.
  void KeepSignals() { keep_signals_ = true; }
  // From now on ComputeGradients keeps what it rounded, for Count. Costs memory and time. Before the first batch.
  void KeepUnrounded();
  // What rounding did in the last ComputeGradients (kInput: the last LoadFeatures) to the tensor of that role: kInput, kWeight (w and b), kActivation,
  // kOutputGradient or kGradient (w and b).
  // Added to `counts`.
  void Count(Role role, TensorCounts& counts) const;
  // How the exponents of the values before that rounding are spread, likewise.
  void Count(Role role, ExponentCounts& counts) const;

  // m and v of the optimizer, in the order of the parameters; empty until the first update that needs them. Restored by whoever restores the parameters.
  std::span<const float> first_moments() const { return {first_.data(), first_.size()}; }
  std::span<const float> second_moments() const { return {second_.data(), second_.size()}; }
  void SetMoments(std::span<const float> first, std::span<const float> second);

  const StepRounding& rounding() const { return rounding_; }

  // Share of the entries of g that are 0 where e is not. After KeepSignals.
  double UnderflowShare() const;

  // How the loaded batch's steps are computed: "packed, bf16 dot", "packed, fma" (packed_model.h), or "rows and features" (kernels.h).
  std::string path() const;
  int threads() const { return packed_ ? packed_->threads() : 1; }

  // The first entry of the unscaled gradients that isn't finite, in the order w (row-major), b.
  struct Place {
    char tensor = 0;  // 'w', 'b'; 0: all are finite
    std::int64_t index = 0;
  };
  Place FirstNonfinite() const;

 private:
  GradientArgs Args(float loss_scale, std::uint64_t draw);
  // The arrays of GradientArgs, or of packed_.
  void PrepareRowsAndFeatures();
  void PreparePacked();
  // f(before, after, n) for each run of neighbouring entries of the tensor.
  template <class F>
  void ForEachPiece(Role role, const F& f) const;

  const KernelTable* kernels_;
  StepRounding rounding_;
  ModelShape shape_;
  int wanted_threads_;
  std::size_t rows_ = 0;
  bool is_packed_ = false;  // the loaded batch
  std::unique_ptr<PackedModel> packed_;

  AlignedFloats x_by_row_, x_by_feature_, y_;
  AlignedFloats parameters_, rounded_, scaled_, unscaled_;
  AlignedFloats errors_, signals_, sums_;
  AlignedFloats first_, second_, accumulated_;
  bool keep_ = false, keep_signals_ = false;
  AlignedFloats x_exact_, parameters_exact_, sums_with_bias_, activations_, exact_signals_, exact_gradients_;
};

}  // namespace scaletrace

#endif  // SCALETRACE_MODEL_MODEL_H_
