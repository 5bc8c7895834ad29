#include "model/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "kernels/flush_scope.h"
#include "kernels/statistics.h"

namespace scaletrace {

namespace {

// As the kernels want a NaN.
float Canonical(float v) { return std::isnan(v) ? std::numeric_limits<float>::quiet_NaN() : v; }

// Products of a step from which packing the batch pays.
constexpr std::size_t kWorkOfPacking = 1024;

}  // namespace

LinearModel::LinearModel(const KernelTable& kernels, const PrecisionOptions& precision, const ModelShape& shape, std::uint64_t seed, int threads)
    : kernels_(&kernels),
      rounding_(RoundingOf(precision, seed)),
      shape_(shape),
      wanted_threads_(threads),
      y_(shape.outputs * Padded(shape.max_rows)),
      parameters_(parameter_count()),
      scaled_(parameter_count()),
      unscaled_(parameter_count()) {
  SCALETRACE_CHECK(shape.max_rows >= 1 && shape.features >= 1 && shape.outputs >= 1);
  // The kernels index with 32 bits.
  SCALETRACE_CHECK(y_.size() < std::numeric_limits<std::int32_t>::max());
}

void LinearModel::PrepareRowsAndFeatures() {
  if (rounded_.size() > 0) return;
  x_by_row_ = AlignedFloats(shape_.max_rows * Padded(shape_.features));
  x_by_feature_ = AlignedFloats(shape_.features * Padded(shape_.max_rows));
  rounded_ = AlignedFloats(parameter_count());
  errors_ = AlignedFloats(y_.size());
  signals_ = AlignedFloats(y_.size());
  sums_ = AlignedFloats(SumScratch(shape_.max_rows, shape_.outputs));
}

void LinearModel::PreparePacked() {
  if (packed_) return;
  packed_ = std::make_unique<PackedModel>(*FindPacked(kernels_->target), PackedModel::Shape{shape_.max_rows, shape_.features, shape_.outputs},
                                          !rounding_[Role::kActivation].is_nothing(), PackedModel::Threads{.most = wanted_threads_}, parameters_.data(), scaled_.data());
  packed_->SetTargets(y_.data());
  if (!keep_signals_) return;
  if (errors_.size() == 0) {
    errors_ = AlignedFloats(y_.size());
    signals_ = AlignedFloats(y_.size());
  }
  packed_->KeepSignals(errors_.data(), signals_.data());
}

std::string LinearModel::path() const {
  return is_packed_ ? "packed, " + std::string(packed_->table().instruction) : "rows and features";
}

void LinearModel::SetParameters(std::span<const float> w, std::span<const float> b) {
  SCALETRACE_CHECK(w.size() == weight_count() && b.size() == shape_.outputs);
  for (std::size_t d = 0; d < shape_.features; ++d) {
    for (std::size_t k = 0; k < shape_.outputs; ++k) parameters_[k * shape_.features + d] = Canonical(w[d * shape_.outputs + k]);
  }
  for (std::size_t k = 0; k < shape_.outputs; ++k) parameters_[weight_count() + k] = Canonical(b[k]);
  if (packed_) packed_->ParametersChanged();
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

void LinearModel::RoundParameters() {
  StepRounding nearest = rounding_;
  nearest[Role::kMaster].mode = RoundingMode::kNearestEven;
  const FlushScope flush;
  kernels_->round(nearest, Role::kMaster, 0, 0, parameters_.data(), parameter_count(), parameters_.data());
  if (packed_) packed_->ParametersChanged();
}

void LinearModel::LoadFeatures(std::span<const float> x, std::span<const std::uint32_t> rows, std::uint64_t draw) {
  const std::size_t D = shape_.features, padded = Padded(D);
  rows_ = rows.empty() ? x.size() / D : rows.size();
  SCALETRACE_CHECK(rows_ >= 1 && rows_ <= shape_.max_rows);
  const auto row_of = [&](std::size_t i) { return x.data() + (rows.empty() ? i : rows[i]) * D; };
  // Several outputs or blocks of rows have more to gain from the wide tiles than a small step loses in calls.
  is_packed_ = !keep_ && CanPack(rounding_, rows_, D) && rows_ * D * shape_.outputs >= kWorkOfPacking;
  if (is_packed_) {
    PreparePacked();
    packed_->Begin(rows_);
    const FlushScope flush;
    for (std::size_t i0 = 0; i0 < rows_; i0 += kPanel) {
      const std::size_t count = std::min(kPanel, rows_ - i0);
      for (std::size_t i = 0; i < count; ++i) {
        kernels_->round(rounding_, Role::kInput, draw, (i0 + i) * D, row_of(i0 + i), D, packed_->load_buffer() + i * packed_->load_stride());
      }
      packed_->Load(i0, count);
    }
    return;
  }
  PrepareRowsAndFeatures();
  {
    const FlushScope flush;
    for (std::size_t i = 0; i < rows_; ++i) {
      const float* row = row_of(i);
      kernels_->round(rounding_, Role::kInput, draw, i * D, row, D, x_by_row_.data() + i * padded);
      if (keep_) std::copy(row, row + D, x_exact_.data() + i * D);
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
    for (std::size_t i = 0; i < rows_; ++i) y_[k * stride + i] = Canonical(y[i * K + k]);
  }
}

GradientArgs LinearModel::Args(float loss_scale, std::uint64_t draw) {
  return {
      .rounding = &rounding_,
      .draw = draw,
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
      .sums_with_bias = keep_ ? sums_with_bias_.data() : nullptr,
      .activations = keep_ ? activations_.data() : nullptr,
      .exact_signals = keep_ ? exact_signals_.data() : nullptr,
      .exact_gradients = keep_ ? exact_gradients_.data() : nullptr,
  };
}

LinearModel::Backward LinearModel::ComputeGradients(float loss_scale, std::uint64_t draw, float share) {
  if (is_packed_) {
    Backward backward;
    backward.loss = packed_->ComputeGradients(loss_scale, share, backward.finite.before);
    const FlushScope flush;
    backward.finite.after = kernels_->divide(scaled_.data(), loss_scale, parameter_count(), unscaled_.data()).after;
    return backward;
  }
  GradientArgs args = Args(loss_scale, draw);
  args.share = share;
  // The update changes the parameters before anyone asks what rounding them did.
  if (keep_) std::copy(parameters_.data(), parameters_.data() + parameter_count(), parameters_exact_.data());
  const FlushScope flush;
  const float loss = kernels_->gradients(args);
  return {loss, kernels_->divide(scaled_.data(), loss_scale, parameter_count(), unscaled_.data())};
}

Stretch LinearModel::TakeSteps(float loss_scale, float lr, std::span<float> losses, std::uint64_t draw) {
  if (is_packed_) {
    Stretch stretch;
    // Quotients by a smaller scale may be infinite where gradients aren't, and what is not finite has rules of its own.
    if (loss_scale >= 1 && std::isfinite(loss_scale)) {
      stretch.applied = packed_->TakeSteps(loss_scale, lr, losses);
      const FlushScope flush;
      stretch.finite = kernels_->divide(scaled_.data(), loss_scale, parameter_count(), unscaled_.data());
      return stretch;
    }
    while (stretch.applied < losses.size()) {
      const Backward backward = ComputeGradients(loss_scale, draw);
      losses[stretch.applied] = backward.loss;
      stretch.finite = backward.finite;
      if (!backward.finite.before || !backward.finite.after) break;
      Update(lr);
      ++stretch.applied;
    }
    return stretch;
  }
  const StretchArgs args = {
      .gradients = Args(loss_scale, draw),
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

void LinearModel::Accumulate() {
  if (accumulated_.size() == 0) accumulated_ = AlignedFloats(parameter_count());
  const StepRounding exact = UniformRounding(Float32(), true);
  const FlushScope flush;
  // 1 g + sum, rounded once: the addition.
  kernels_->update({.n = parameter_count(), .gradients = scaled_.data(), .parameters = accumulated_.data(), .lr = -1.0f, .rounding = &exact});
}

Finite LinearModel::FinishAccumulation(float loss_scale) {
  std::copy(accumulated_.data(), accumulated_.data() + parameter_count(), scaled_.data());
  std::fill(accumulated_.data(), accumulated_.data() + parameter_count(), 0.0f);
  const FlushScope flush;
  return kernels_->divide(scaled_.data(), loss_scale, parameter_count(), unscaled_.data());
}

Finite LinearModel::MultiplyScaled(float factor, float loss_scale) {
  const FlushScope flush;
  kernels_->multiply(factor, parameter_count(), scaled_.data());
  return kernels_->divide(scaled_.data(), loss_scale, parameter_count(), unscaled_.data());
}

void LinearModel::MultiplyUnscaled(float factor) {
  const FlushScope flush;
  kernels_->multiply(factor, parameter_count(), unscaled_.data());
}

void LinearModel::Update(UpdateArgs args) {
  args.n = parameter_count();
  args.gradients = unscaled_.data();
  args.parameters = parameters_.data();
  args.rounding = &rounding_;
  if (args.rule != UpdateRule::kSgd && first_.size() == 0) first_ = AlignedFloats(parameter_count());
  if (args.rule == UpdateRule::kAdam && second_.size() == 0) second_ = AlignedFloats(parameter_count());
  args.first = first_.data();
  args.second = second_.data();
  if (packed_) packed_->ParametersChanged();
  const FlushScope flush;
  kernels_->update(args);
}

void LinearModel::SetMoments(std::span<const float> first, std::span<const float> second) {
  const auto set = [&](std::span<const float> from, AlignedFloats& to) {
    SCALETRACE_CHECK(from.empty() || from.size() == parameter_count());
    to = AlignedFloats(from.size());
    std::copy(from.begin(), from.end(), to.data());
  };
  set(first, first_);
  set(second, second_);
}

void LinearModel::KeepUnrounded() {
  if (keep_) return;
  SCALETRACE_CHECK(rows_ == 0);
  keep_ = true;
  x_exact_ = AlignedFloats(shape_.max_rows * shape_.features);
  parameters_exact_ = AlignedFloats(parameter_count());
  exact_gradients_ = AlignedFloats(parameter_count());
  sums_with_bias_ = AlignedFloats(y_.size());
  activations_ = AlignedFloats(y_.size());
  exact_signals_ = AlignedFloats(y_.size());
}

template <class F>
void LinearModel::ForEachPiece(Role role, const F& f) const {
  SCALETRACE_CHECK(keep_);
  const std::size_t D = shape_.features, stride = Padded(rows_);
  switch (role) {
    case Role::kInput:
      for (std::size_t i = 0; i < rows_; ++i) f(x_exact_.data() + i * D, x_by_row_.data() + i * Padded(D), D);
      return;
    case Role::kWeight:
      return f(parameters_exact_.data(), rounded_.data(), parameter_count());
    case Role::kActivation:
      for (std::size_t k = 0; k < shape_.outputs; ++k) f(sums_with_bias_.data() + k * stride, activations_.data() + k * stride, rows_);
      return;
    case Role::kOutputGradient:
      for (std::size_t k = 0; k < shape_.outputs; ++k) f(exact_signals_.data() + k * stride, signals_.data() + k * stride, rows_);
      return;
    case Role::kGradient:
      return f(exact_gradients_.data(), scaled_.data(), parameter_count());
    default:
      SCALETRACE_CHECK(false);
  }
}

void LinearModel::Count(Role role, TensorCounts& counts) const {
  ForEachPiece(role, [&](const float* before, const float* after, std::size_t n) { kernels_->observe(rounding_[role], before, after, n, counts); });
}

void LinearModel::Count(Role role, ExponentCounts& counts) const {
  ForEachPiece(role, [&](const float* before, const float*, std::size_t n) { CountExponents(before, n, counts); });
}

double LinearModel::UnderflowShare() const {
  SCALETRACE_CHECK(!is_packed_ || keep_signals_);
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
