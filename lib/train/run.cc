#include "train/run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "kernels/statistics.h"
#include "train/parameters_json.h"

namespace scaletrace {
namespace {

// Initial weights: entry i of w (row-major) is std * Normal(seed, kInitialWeights, i), rounded once.
std::vector<float> NormalWeights(std::uint64_t seed, std::size_t n, float std) {
  std::vector<float> w(n);
  for (std::size_t i = 0; i < n; ++i) w[i] = static_cast<float>(static_cast<double>(std) * Normal(seed, Stream::kInitialWeights, i));
  return w;
}

}  // namespace

Run::Run(const RunConfig& config, const KernelTable& kernels)
    : Run(config, kernels, MakeDataset(config.data, config.seed, config.folder)) {}

Run::Run(const RunConfig& config, const KernelTable& kernels, Dataset dataset)
    : config_(config),
      dataset_(std::move(dataset)),
      batches_(config.batch, dataset_.samples, config.seed),
      model_(kernels, config.precision, {batches_.max_rows(), dataset_.features, dataset_.outputs}),
      scaler_(config.scaler),
      needs_(scaler_.needs()),
      columns_(NeedsOf(config.trace.columns)),
      lr_(std::get<Sgd>(config.optimizer).lr),
      good_steps_(scaler_.initial_good_steps()) {
  const std::size_t weights = dataset_.features * dataset_.outputs;
  if (dataset_.initial && !std::holds_alternative<AutoInit>(config.model.init)) {
    throw InputError(InputError::Kind::kConfig, {.key = "model.init"},
                     "the data brings params to start from; allowed: auto");
  }
  if (dataset_.initial) {
    model_.SetParameters(dataset_.initial->w, dataset_.initial->b);
  } else if (const auto* normal = std::get_if<NormalInit>(&config.model.init)) {
    model_.SetParameters(NormalWeights(config.seed, weights, normal->std), std::vector<float>(dataset_.outputs));
  }
  targets_.resize(batches_.max_rows() * dataset_.outputs);
}

void Run::Load(std::int64_t step) {
  const bool full = batches_.is_full();
  const std::span<const std::uint32_t> rows = full ? std::span<const std::uint32_t>() : batches_.Rows(step);
  if (!full || !loaded_) model_.LoadFeatures(dataset_.x, rows);
  if (!full || !loaded_ || dataset_.TargetsChange(step)) {
    repeats_ = false;
    const std::span<float> targets = std::span(targets_).first(model_.rows() * dataset_.outputs);
    dataset_.TargetsAt(step, rows, targets);
    model_.LoadTargets(targets);
  }
  loaded_ = true;
}

StepRecord Run::Begin() {
  StepRecord record;
  record.step = summary_.steps;
  record.epoch = batches_.Epoch(record.step);
  record.loss_scale = scaler_.loss_scale();
  record.good_steps = good_steps_;
  record.lr = lr_;
  if (columns_ & kNeedsWeightNorm) record.weight_norm = Norm(model_.parameters().data(), model_.parameter_count());
  return record;
}

void Run::Finish(LinearModel::Backward backward, StepRecord& record) {
  record.loss = backward.loss;
  const Scaler::Decision decision = scaler_.Next(Observe(backward));
  record.grads_finite = decision.finite;
  record.event = decision.event;
  const auto unscale_by = static_cast<float>(decision.unscale_by);
  const bool unscale_anew = unscale_by != static_cast<float>(record.loss_scale);
  if (unscale_anew) model_.Unscale(unscale_by);

  const std::span<const float> u = model_.unscaled_gradients();
  if (columns_ & kNeedsGradNorm) record.grad_norm = Norm(u.data(), u.size());
  if (columns_ & kNeedsGradMax) record.grad_max_abs = MaxAbs(u.data(), u.size());
  if (columns_ & kNeedsUnderflow) record.underflow = model_.UnderflowShare();
  if (columns_ & kNeedsNonfinitePlace) {
    const LinearModel::Place place = model_.FirstNonfinite();
    record.nonfinite_tensor = place.tensor;
    record.nonfinite_index = place.index;
  }

  if (decision.apply) model_.Update(lr_);
  skipped_in_a_row_ = decision.apply ? 0 : skipped_in_a_row_ + 1;
  record.skipped_in_a_row = skipped_in_a_row_;
  record.skipped_total = summary_.skipped + (decision.apply ? 0 : 1);

  const double scale_after = scaler_.loss_scale();
  const bool scale_stays = scale_after == record.loss_scale || (std::isnan(scale_after) && std::isnan(record.loss_scale));
  good_steps_ = decision.finite && scale_stays ? good_steps_ + 1 : 0;
  repeats_ = !decision.apply && scale_stays && !unscale_anew;
  last_ = backward;
  summary_.Add(record, scale_after);
  if (decision.raised) summary_.stopped = "raise";
}

std::size_t Run::QuietSteps(std::size_t most) const {
  // Columns and policies that look at more than whether gradients are finite must see every step, and so must a stop that depends on the loss.
  const Needs flags = {.unscaled_finite = needs_.unscaled_finite, .scaled_finite = needs_.scaled_finite};
  const bool stops_on_loss = config_.stop_when == StopWhen::kDiverged || config_.stop_when == StopWhen::kStuckOrDiverged;
  if (columns_ != kNeedsNothing || !(needs_ == flags) || stops_on_loss || !batches_.is_full()) return 0;
  const std::int64_t first = summary_.steps;
  const std::int64_t limit = std::min({static_cast<std::int64_t>(most), config_.steps - first, scaler_.QuietSteps()});
  return limit < 1 ? 0 : static_cast<std::size_t>(dataset_.StepsWithSameTargets(first, limit));
}

std::size_t Run::TakeQuietSteps(std::span<StepRecord> records) {
  losses_.resize(std::max(losses_.size(), records.size()));
  const double scale = scaler_.loss_scale();
  const Stretch stretch = model_.TakeSteps(static_cast<float>(scale), lr_, std::span(losses_).first(records.size()));
  for (std::size_t i = 0; i < stretch.applied; ++i) {
    records[i] = Begin();
    records[i].loss = losses_[i];
    records[i].skipped_total = summary_.skipped;
    skipped_in_a_row_ = 0;
    ++good_steps_;
    summary_.Add(records[i], scale);
  }
  scaler_.Advance(static_cast<std::int64_t>(stretch.applied));
  if (stretch.applied == records.size()) return records.size();
  records[stretch.applied] = Begin();
  Finish({losses_[stretch.applied], stretch.finite}, records[stretch.applied]);
  return stretch.applied + 1;
}

Observation Run::Observe(const LinearModel::Backward& backward) const {
  Observation seen;
  seen.step = summary_.steps;
  seen.scaled_finite = backward.finite.before;
  seen.unscaled_finite = backward.finite.after;
  const std::span<const float> g = model_.scaled_gradients(), u = model_.unscaled_gradients();
  const std::size_t weights = model_.weight_count();
  if (needs_.sums_finite) {
    seen.sums_finite = std::isfinite(SumF32(g.data(), weights)) && std::isfinite(SumF32(g.data() + weights, g.size() - weights));
  }
  if (needs_.norm_finite) seen.norm_finite = std::isfinite(SumOfSquaresF32(u.data(), u.size()));
  if (needs_.scaled_norm_finite) seen.scaled_norm_finite = std::isfinite(SumOfSquaresF32(g.data(), g.size()));
  if (needs_.max_abs) seen.max_abs = static_cast<double>(MaxAbs(u.data(), u.size()));
  if (needs_.share_above) {
    seen.share_above = static_cast<double>(CountAbove(g.data(), g.size(), needs_.share_threshold)) / static_cast<double>(g.size());
  }
  return seen;
}

std::size_t Run::Steps(std::span<StepRecord> records) {
  std::size_t count = 0;
  const bool stop_stuck = config_.stop_when == StopWhen::kStuck || config_.stop_when == StopWhen::kStuckOrDiverged;
  const bool stop_diverged = config_.stop_when == StopWhen::kDiverged || config_.stop_when == StopWhen::kStuckOrDiverged;
  const auto lasted = [&](std::int64_t since) { return since >= 0 && summary_.steps - since >= config_.patience; };
  while (count < records.size() && !done()) {
    Load(summary_.steps);
    if (repeats_) {
      StepRecord& record = records[count++];
      record = Begin();
      Finish(last_, record);
    } else if (const std::size_t quiet = QuietSteps(records.size() - count); quiet > 0) {
      count += TakeQuietSteps(records.subspan(count, quiet));
    } else {
      StepRecord& record = records[count++];
      record = Begin();
      Finish(model_.ComputeGradients(static_cast<float>(record.loss_scale)), record);
    }
    if (!summary_.stopped.empty()) continue;
    if (stop_stuck && lasted(summary_.unchanged_since)) summary_.stopped = "stuck";
    if (stop_diverged && lasted(summary_.diverged_since)) summary_.stopped = "diverged";
  }
  return count;
}

std::string Run::StateMembers() const {
  return "\"params\": " + ParametersJson(model_.w(), model_.b()) +
         ",\n\"loss_scale\": " + ToJsonText(scaler_.loss_scale()) + ",\n\"good_steps\": " + std::to_string(good_steps_) +
         ",\n\"next_step\": " + std::to_string(summary_.steps) + ",\n\"skipped_in_a_row\": " + std::to_string(skipped_in_a_row_) +
         ",\n\"policy\": " + scaler_.StateJson() + ",\n\"summary\": " + FieldsToJson(summary_);
}

void Run::Restore(const Json& json, const JsonValue& object) {
  const JsonValue& params = json.Member(object, "params");
  const Json::Matrix w = json.AsF32Matrix(json.Member(params, "w"));
  const std::vector<float> b = json.AsF32List(json.Member(params, "b"));
  if (w.rows != dataset_.features || w.columns != dataset_.outputs || b.size() != dataset_.outputs) {
    json.Fail(params, "the parameters have another shape than the data of this config");
  }
  model_.SetParameters(w.entries, b);
  good_steps_ = json.AsInteger(json.Member(object, "good_steps"));
  skipped_in_a_row_ = json.AsInteger(json.Member(object, "skipped_in_a_row"));
  scaler_.Restore(json, json.Member(object, "policy"));
  FieldsFromJson(json, json.Member(object, "summary"), summary_);
  loaded_ = false;
}

}  // namespace scaletrace
