#include "train/run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/number.h"
#include "base/random.h"
#include "kernels/statistics.h"
#include "train/parameters_json.h"

namespace scaletrace {
namespace {

// What the columns of one tensor say.
TensorStatistics Statistics(const TensorCounts& counts) {
  const auto share = [&](std::uint64_t count) { return static_cast<float>(static_cast<double>(count) / static_cast<double>(counts.entries)); };
  return {.underflow = share(counts.underflow),
          .subnormal = share(counts.subnormal),
          .saturated = share(counts.saturated),
          .overflow = share(counts.overflow),
          .max_abs = std::bit_cast<float>(counts.max_bits),
          .min_abs = counts.min_bits == 0xFFFFFFFF ? 0.0f : std::bit_cast<float>(counts.min_bits)};
}

// Initial weights: entry i of w (row-major) is std * Normal(seed, kInitialWeights, i), rounded once.
std::vector<float> NormalWeights(std::uint64_t seed, std::size_t n, float std) {
  std::vector<float> w(n);
  for (std::size_t i = 0; i < n; ++i) w[i] = static_cast<float>(static_cast<double>(std) * Normal(seed, Stream::kInitialWeights, i));
  return w;
}

constexpr Role kObservedRoles[kObservedCount] = {Role::kInput, Role::kWeight, Role::kActivation, Role::kOutputGradient, Role::kGradient};

// The data, where every batch can be cut into the pieces that the config wants.
Dataset CheckedDataset(const RunConfig& config) {
  Dataset dataset = MakeDataset(config.data, config.seed, config.folder);
  const auto pieces = static_cast<std::size_t>(config.micro_batches);
  if (pieces == 1) return dataset;
  const Batches batches(config.batch, dataset.samples, config.seed);
  const auto* permuted = std::get_if<PermutedBatches>(&config.batch);
  const std::size_t rows = batches.max_rows();
  // The short batch at the end of an epoch, where there is one.
  const std::size_t last = permuted != nullptr && !permuted->drop_last ? dataset.samples % rows : 0;
  for (const std::size_t size : {rows, last}) {
    if (size % pieces == 0) continue;
    throw InputError(InputError::Kind::kConfig, {.key = "micro_batches"},
                     "found " + std::to_string(pieces) + ", and a batch has " + std::to_string(size) + " rows; allowed: a divisor of that" +
                         (size == last ? " (or batch.drop_last: true)" : ""));
  }
  return dataset;
}

}  // namespace

Run::Run(const RunConfig& config, const KernelTable& kernels, int threads)
    : Run(config, kernels, CheckedDataset(config), threads) {}

Run::Run(const RunConfig& config, const KernelTable& kernels, Dataset dataset, int threads)
    : config_(config),
      dataset_(std::move(dataset)),
      batches_(config.batch, dataset_.samples, config.seed),
      model_(kernels, config.precision, {batches_.max_rows() / static_cast<std::size_t>(config.micro_batches), dataset_.features, dataset_.outputs},
             config.seed, threads),
      scaler_(config.scaler),
      needs_(scaler_.needs()),
      columns_(NeedsOf(config.trace.columns)),
      plain_update_(std::holds_alternative<Sgd>(config.optimizer) && IsConstant(config.lr_schedule) &&
                    std::holds_alternative<NoClipping>(config.clipping) && config.micro_batches == 1),
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
  model_.RoundParameters();
  repeatable_ = !model_.rounding().is_stochastic() && config.trace.histograms == 0 && config.micro_batches == 1;
  if (columns_ & kNeedsUnderflow) model_.KeepSignals();
  if (columns_ >= kNeedsFirstTensor || config.trace.histograms > 0) model_.KeepUnrounded();
}

void Run::Load(std::int64_t step) {
  if (config_.micro_batches > 1) return;  // ComputeGradients loads them
  const bool full = batches_.is_full();
  const std::span<const std::uint32_t> rows = full ? std::span<const std::uint32_t>() : batches_.Rows(step);
  // A full batch is rounded once, with the random bits of step 0, whether the run was resumed or not.
  const bool first = !full || !features_loaded_;
  if (first) {
    model_.LoadFeatures(dataset_.x, rows, full ? 0 : Draw(step));
    input_counted_ = false;
    features_loaded_ = true;
  }
  if (first || !targets_loaded_ || dataset_.TargetsChange(step)) {
    if (dataset_.y.empty()) return;  // the model holds the only targets that there are
    repeats_ = false;
    if (full && dataset_.TargetsAreY(step)) {
      model_.LoadTargets(dataset_.y);
    } else {
      model_.LoadTargets(TargetsAt(step, rows));
    }
    targets_loaded_ = true;
  }
  if (!full || !first) return;
  // The model has its own, packed.
  std::vector<float>().swap(dataset_.x);
  if (dataset_.TargetsAreAlwaysY()) std::vector<float>().swap(dataset_.y);
}

std::span<const float> Run::TargetsAt(std::int64_t step, std::span<const std::uint32_t> rows) {
  const std::size_t size = (rows.empty() ? dataset_.samples : rows.size()) * dataset_.outputs;
  if (targets_.size() < size) targets_.resize(size);
  const std::span<float> targets = std::span(targets_).first(size);
  dataset_.TargetsAt(step, rows, targets);
  return targets;
}

void Run::LoadPiece(std::int64_t step, std::int64_t piece) {
  std::span<const std::uint32_t> rows;
  if (batches_.is_full()) {
    if (all_rows_.empty()) {
      all_rows_.resize(dataset_.samples);
      for (std::size_t i = 0; i < all_rows_.size(); ++i) all_rows_[i] = static_cast<std::uint32_t>(i);
    }
    rows = all_rows_;
  } else {
    rows = batches_.Rows(step);
  }
  const std::size_t size = rows.size() / static_cast<std::size_t>(config_.micro_batches);
  rows = rows.subspan(static_cast<std::size_t>(piece) * size, size);
  model_.LoadFeatures(dataset_.x, rows, static_cast<std::uint64_t>(piece) + (batches_.is_full() ? 0 : Draw(step)));
  model_.LoadTargets(TargetsAt(step, rows));
}

LinearModel::Backward Run::ComputeGradients(double loss_scale) {
  const auto scale = static_cast<float>(loss_scale);
  const std::int64_t step = summary_.steps, pieces = config_.micro_batches;
  // What rounding did to the features is counted once for each batch that is loaded.
  for (std::size_t i = 0; i < kObservedCount; ++i) {
    if (!input_counted_ || kObservedRoles[i] != Role::kInput) counts_[i] = {};
  }
  exponents_ = {};
  LinearModel::Backward backward;
  if (pieces == 1) {
    backward = model_.ComputeGradients(scale, Draw(step));
    ObserveTensors();
  } else {
    // As trainers do it: the loss of each piece over the number of pieces, gradients added up; one piece's overflow makes the sum overflow.
    const float share = 1.0f / static_cast<float>(pieces);
    float losses = 0;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      LoadPiece(step, piece);
      const float loss = model_.ComputeGradients(scale, Draw(step) + static_cast<std::uint64_t>(piece), share).loss;
      ObserveTensors();
      losses = piece == 0 ? loss : losses + loss;
      model_.Accumulate();
    }
    backward = {losses * share, model_.FinishAccumulation(scale)};
  }
  const auto* clipping = std::get_if<NormClipping>(&config_.clipping);
  if (clipping != nullptr && clipping->when == ClipWhen::kScaled) {
    const std::span<const float> g = model_.scaled_gradients();
    backward.finite = model_.MultiplyScaled(ClipFactor(*clipping, Norm(g.data(), g.size())), scale);
  }
  return backward;
}

void Run::ObserveTensors() {
  const bool histogram = HistogramDue(summary_.steps);
  for (std::size_t i = 0; i < kObservedCount; ++i) {
    const bool known = kObservedRoles[i] == Role::kInput && input_counted_;
    if ((columns_ & (kNeedsFirstTensor << i)) && !known) model_.Count(kObservedRoles[i], counts_[i]);
    if (histogram) model_.Count(kObservedRoles[i], exponents_[i]);
  }
  input_counted_ = config_.micro_batches == 1;
}

void Run::WriteHistograms(double loss_scale) {
  char scale[kMaxNumberLength];
  const std::string_view scale_text(scale, static_cast<std::size_t>(WriteNumber(scale, loss_scale) - scale));
  const std::string step = std::to_string(summary_.steps);
  for (std::size_t i = 0; i < kObservedCount; ++i) {
    const auto row = [&](std::string_view exponent, std::uint64_t count) {
      if (count == 0) return;
      histograms_ += step + "," + std::string(kObservedTensors[i]) + "," + std::string(scale_text) + "," + std::string(exponent) + "," + std::to_string(count) + "\n";
    };
    const ExponentCounts& counts = exponents_[i];
    row("zero", counts.zero);
    for (std::size_t e = 0; e < counts.by_exponent.size(); ++e) {
      row(std::to_string(static_cast<int>(e) + ExponentCounts::kLowest), counts.by_exponent[e]);
    }
    row("inf", counts.inf);
    row("nan", counts.nan);
  }
}

void Run::Begin(StepRecord& record) const {
  record.step = summary_.steps;
  record.epoch = batches_.Epoch(record.step);
  record.loss_scale = scaler_.loss_scale();
  record.good_steps = good_steps_;
  record.lr = LearningRate(config_.optimizer, config_.lr_schedule, config_.steps, record.step, summary_.updates);
  if (columns_ & kNeedsWeightNorm) record.weight_norm = Norm(model_.parameters().data(), model_.parameter_count());
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

  for (std::size_t i = 0; i < kObservedCount; ++i) {
    if (columns_ & (kNeedsFirstTensor << i)) record.tensors[i] = Statistics(counts_[i]);
  }
  if (HistogramDue(record.step)) WriteHistograms(record.loss_scale);

  if (decision.apply) {
    const auto* clipping = std::get_if<NormClipping>(&config_.clipping);
    if (clipping != nullptr && clipping->when == ClipWhen::kUnscaled) model_.MultiplyUnscaled(ClipFactor(*clipping, Norm(u.data(), u.size())));
    UpdateArgs update = NextUpdate(config_.optimizer, record.lr, optimizer_);
    update.draw = Draw(record.step);
    model_.Update(update);
  }
  skipped_in_a_row_ = decision.apply ? 0 : skipped_in_a_row_ + 1;
  record.skipped_in_a_row = skipped_in_a_row_;
  record.skipped_total = summary_.skipped + (decision.apply ? 0 : 1);

  const double scale_after = scaler_.loss_scale();
  const bool scale_stays = scale_after == record.loss_scale || (std::isnan(scale_after) && std::isnan(record.loss_scale));
  good_steps_ = decision.finite && scale_stays ? good_steps_ + 1 : 0;
  repeats_ = !decision.apply && scale_stays && !unscale_anew && repeatable_;
  last_ = backward;
  summary_.Add(record, scale_after);
  if (decision.raised) summary_.stopped = "raise";
}

std::size_t Run::QuietSteps(std::size_t most) const {
  // Columns and policies that look at more than whether gradients are finite must see every step, and so must a stop that depends on the loss.
  const Needs flags = {.unscaled_finite = needs_.unscaled_finite, .scaled_finite = needs_.scaled_finite};
  const bool stops_on_loss = config_.stop_when == StopWhen::kDiverged || config_.stop_when == StopWhen::kStuckOrDiverged;
  if (columns_ != kNeedsNothing || !(needs_ == flags) || stops_on_loss || !batches_.is_full() || !plain_update_ ||
      config_.trace.histograms > 0) {
    return 0;
  }
  const std::int64_t first = summary_.steps;
  const std::int64_t limit = std::min({static_cast<std::int64_t>(most), config_.steps - first, scaler_.QuietSteps()});
  return limit < 1 ? 0 : static_cast<std::size_t>(dataset_.StepsWithSameTargets(first, limit));
}

std::size_t Run::TakeQuietSteps(std::span<StepRecord> records) {
  losses_.resize(std::max(losses_.size(), records.size()));
  const double scale = scaler_.loss_scale();
  StepRecord first;
  Begin(first);
  const Stretch stretch =
      model_.TakeSteps(static_cast<float>(scale), first.lr, std::span(losses_).first(records.size()), Draw(summary_.steps));
  if (stretch.applied > 0) {
    first.loss = losses_[0];
    first.skipped_total = summary_.skipped;
    for (std::size_t i = 0; i < stretch.applied; ++i) {
      StepRecord& record = records[i];
      const auto later = static_cast<std::int64_t>(i);
      record.step = first.step + later;
      record.epoch = first.epoch + later;  // of a full batch each step is one
      record.loss = losses_[i];
      record.loss_scale = first.loss_scale;
      record.good_steps = first.good_steps + later;
      record.grads_finite = true;
      record.event = Event::kNone;
      record.lr = first.lr;
      record.skipped_total = first.skipped_total;
      record.skipped_in_a_row = 0;
    }
    skipped_in_a_row_ = 0;
    good_steps_ += static_cast<std::int64_t>(stretch.applied);
    summary_.AddQuiet(first, std::span(losses_).first(stretch.applied));
  }
  scaler_.Advance(static_cast<std::int64_t>(stretch.applied));
  if (stretch.applied == records.size()) return records.size();
  Begin(records[stretch.applied]);
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
      Begin(record);
      Finish(last_, record);
    } else if (const std::size_t quiet = QuietSteps(records.size() - count); quiet > 0) {
      count += TakeQuietSteps(records.subspan(count, quiet));
    } else {
      StepRecord& record = records[count++];
      Begin(record);
      Finish(ComputeGradients(record.loss_scale), record);
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
         ",\n\"optimizer\": " + FieldsToJson(optimizer_) +
         ",\n\"moments\": {\"first\": " + ListJson(model_.first_moments()) + ", \"second\": " + ListJson(model_.second_moments()) + "}" +
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
  FieldsFromJson(json, json.Member(object, "optimizer"), optimizer_);
  const JsonValue& moments = json.Member(object, "moments");
  const std::vector<float> first = json.AsF32List(json.Member(moments, "first")), second = json.AsF32List(json.Member(moments, "second"));
  for (const std::vector<float>* list : {&first, &second}) {
    if (!list->empty() && list->size() != model_.parameter_count()) json.Fail(moments, "the moments have another number than the parameters");
  }
  model_.SetMoments(first, second);
  good_steps_ = json.AsInteger(json.Member(object, "good_steps"));
  skipped_in_a_row_ = json.AsInteger(json.Member(object, "skipped_in_a_row"));
  scaler_.Restore(json, json.Member(object, "policy"));
  FieldsFromJson(json, json.Member(object, "summary"), summary_);
  targets_loaded_ = false;
}

}  // namespace scaletrace
