#include "model/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/flush_scope.h"
#include "kernels/statistics.h"

namespace scaletrace {

LinearModel::LinearModel(const KernelTable& kernels, const PrecisionOptions& precision, const ModelShape& shape)
    : kernels_(&kernels),
      format_(FindFormat(precision.compute)),
      round_predictions_(precision.profile == Profile::kStrict),
      shape_(shape),
      x_by_row_(shape.max_rows * Padded(shape.features)),
      x_by_feature_(shape.features * Padded(shape.max_rows)),
      y_(shape.outputs * Padded(shape.max_rows)),
      parameters_(parameter_count()),
      rounded_(parameter_count()),
      scaled_(parameter_count()),
      unscaled_(parameter_count()),
      errors_(y_.size()),
      signals_(y_.size()),
      sums_(SumScratch(shape.max_rows, shape.outputs)) {
  SCALETRACE_CHECK(format_ != nullptr);
  SCALETRACE_CHECK(shape.max_rows >= 1 && shape.features >= 1 && shape.outputs >= 1);
  // The kernels index with 32 bits.
  SCALETRACE_CHECK(y_.size() < std::numeric_limits<std::int32_t>::max());
}

void LinearModel::SetParameters(std::span<const float> w, std::span<const float> b) {
  SCALETRACE_CHECK(w.size() == weight_count() && b.size() == shape_.outputs);
  for (std::size_t d = 0; d < shape_.features; ++d) {
    for (std::size_t k = 0; k < shape_.outputs; ++k) parameters_[k * shape_.features + d] = w[d * shape_.outputs + k];
  }
  std::copy(b.begin(), b.end(), parameters_.data() + weight_count());
}

std::vector<float> LinearModel::w() const {
  std::vector<float> w(weight_count());
  for (std::size_t d = 0; d < shape_.features; ++d) {
    for (std::size_t k = 0; k < shape_.outputs; ++k) w[d * shape_.outputs + k] = parameters_[k * shape_.features + d];
  }
  return w;
}

std::vector<float> LinearModel::b() const {
  return {parameters_.data() + weight_count(), parameters_.data() + parameter_count()};
}

void LinearModel::LoadFeatures(std::span<const float> x, std::span<const std::uint32_t> rows) {
  const std::size_t D = shape_.features, padded = Padded(D);
  rows_ = rows.empty() ? x.size() / D : rows.size();
  SCALETRACE_CHECK(rows_ >= 1 && rows_ <= shape_.max_rows);
  {
    const FlushScope flush;
    for (std::size_t i = 0; i < rows_; ++i) {
      kernels_->round(*format_, x.data() + (rows.empty() ? i : rows[i]) * D, D, x_by_row_.data() + i * padded);
    }
  }
  // Transposed in squares that fit the first cache. What an earlier, longer batch left behind the last row is cleared by the zeros of the padding.
  const std::size_t stride = Padded(rows_);
  constexpr std::size_t kSquare = 32;
  for (std::size_t i0 = 0; i0 < stride; i0 += kSquare) {
    const std::size_t i1 = std::min(i0 + kSquare, stride);
    for (std::size_t d0 = 0; d0 < D; d0 += kSquare) {
      const std::size_t d1 = std::min(d0 + kSquare, D);
      for (std::size_t d = d0; d < d1; ++d) {
        for (std::size_t i = i0; i < i1; ++i) x_by_feature_[d * stride + i] = i < rows_ ? x_by_row_[i * padded + d] : 0.0f;
      }
    }
  }
}

void LinearModel::LoadTargets(std::span<const float> y) {
  const std::size_t K = shape_.outputs, stride = Padded(rows_);
  SCALETRACE_CHECK(y.size() == rows_ * K);
  for (std::size_t k = 0; k < K; ++k) {
    for (std::size_t i = 0; i < rows_; ++i) y_[k * stride + i] = y[i * K + k];
  }
}

GradientArgs LinearModel::Args(float loss_scale) {
  return {
      .format = format_,
      .round_predictions = round_predictions_,
      .rows = rows_,
      .features = shape_.features,
      .outputs = shape_.outputs,
      .x_by_feature = x_by_feature_.data(),
      .x_by_row = x_by_row_.data(),
      .y = y_.data(),
      .parameters = parameters_.data(),
      .loss_scale = loss_scale,
      .rounded = rounded_.data(),
      .errors = errors_.data(),
      .signals = signals_.data(),
      .sums = sums_.data(),
      .gradients = scaled_.data(),
  };
}

LinearModel::Backward LinearModel::ComputeGradients(float loss_scale) {
  const GradientArgs args = Args(loss_scale);
  const FlushScope flush;
  const float loss = kernels_->gradients(args);
  return {loss, kernels_->divide(scaled_.data(), loss_scale, parameter_count(), unscaled_.data())};
}

Stretch LinearModel::TakeSteps(float loss_scale, float lr, std::span<float> losses) {
  const StretchArgs args = {
      .gradients = Args(loss_scale),
      .parameters = parameters_.data(),
      .quotients = unscaled_.data(),
      .lr = lr,
      .steps = losses.size(),
      .losses = losses.data(),
  };
  const FlushScope flush;
  return kernels_->stretch(args);
}

void LinearModel::Unscale(float divisor) {
  const FlushScope flush;
  kernels_->divide(scaled_.data(), divisor, parameter_count(), unscaled_.data());
}

void LinearModel::Update(float lr) {
  const FlushScope flush;
  kernels_->update(unscaled_.data(), lr, parameter_count(), parameters_.data());
}

double LinearModel::UnderflowShare() const {
  const std::size_t count = CountUnderflow(errors_.data(), signals_.data(), rows_, Padded(rows_), shape_.outputs);
  return static_cast<double>(count) / static_cast<double>(rows_ * shape_.outputs);
}

LinearModel::Place LinearModel::FirstNonfinite() const {
  for (std::size_t d = 0; d < shape_.features; ++d) {
    for (std::size_t k = 0; k < shape_.outputs; ++k) {
      if (!std::isfinite(unscaled_[k * shape_.features + d])) return {'w', static_cast<std::int64_t>(d * shape_.outputs + k)};
    }
  }
  for (std::size_t k = 0; k < shape_.outputs; ++k) {
    if (!std::isfinite(unscaled_[weight_count() + k])) return {'b', static_cast<std::int64_t>(k)};
  }
  return {};
}

}  // namespace scaletrace
