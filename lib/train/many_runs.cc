#include "train/many_runs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/random.h"
#include "data/batches.h"
#include "data/dataset.h"
#include "kernels/aligned.h"
#include "kernels/flush_scope.h"
#include "kernels/many_runs.h"
#include "scaling/scaler.h"

namespace scaletrace {
namespace {

// Floats of one pack of runs that the second cache holds with room to spare.
constexpr std::size_t kMaxPackFloats = std::size_t{1} << 16;
// How much is done between two questions whether to go on: floats of lanes times steps. Some thousandths of a second.
constexpr std::size_t kWorkBetweenAsking = std::size_t{1} << 23;
// The same for a step that only the policy sees.
constexpr std::size_t kWorkOfAsking = 256;
// Times in a pack count from its start and are brought back to 0 when they reach this.
constexpr std::int64_t kTimeLimit = std::int64_t{1} << 30;

// ---------------------------------------------------------------------------------------------------- data

// The datasets that were asked for last: the runs of a sweep that differ in other keys share theirs.
class DatasetCache {
 public:
  std::shared_ptr<const Dataset> Get(const RunConfig& config) {
    for (std::size_t i = entries_.size(); i-- > 0;) {
      const Entry& entry = entries_[i];
      if (entry.seed == config.seed && entry.options == config.data && entry.folder == config.folder) return entry.data;
    }
    auto data = std::make_shared<const Dataset>(MakeDataset(config.data, config.seed, config.folder));
    floats_ += Floats(*data);
    entries_.push_back({config.data, config.seed, config.folder, data});
    while (entries_.size() > kMaxEntries || (entries_.size() > 1 && floats_ > kMaxFloats)) {
      floats_ -= Floats(*entries_.front().data);
      entries_.erase(entries_.begin());
    }
    return data;
  }

 private:
  static constexpr std::size_t kMaxEntries = 16, kMaxFloats = std::size_t{1} << 22;
  static std::size_t Floats(const Dataset& data) { return data.x.size() + data.y.size(); }
  struct Entry {
    DataOptions options;
    std::uint64_t seed;
    std::string folder;
    std::shared_ptr<const Dataset> data;
  };
  std::vector<Entry> entries_;
  std::size_t floats_ = 0;
};

// The shape where the options alone tell it.
std::optional<ManyShape> ShapeOf(const DataOptions& options) {
  return std::visit(
      []<class T>(const T& o) -> std::optional<ManyShape> {
        if constexpr (std::is_base_of_v<LinearTeacher, T>) {
          return ManyShape{static_cast<std::size_t>(o.samples), static_cast<std::size_t>(o.features), static_cast<std::size_t>(o.outputs)};
        } else {
          return std::nullopt;
        }
      },
      options);
}

// Entries of a lane, all arrays together.
std::size_t LaneEntries(const ManyShape& shape) {
  const std::size_t parameters = shape.outputs * (shape.features + 1);
  return shape.rows * (shape.features + shape.outputs) + 2 * parameters + ManyScratch(shape);
}

bool IsSmall(const ManyShape& shape, std::size_t lanes) {
  constexpr std::size_t kMost = kMaxPackFloats;  // no product below overflows
  if (shape.rows > kMost || shape.features > kMost || shape.outputs > kMost) return false;
  return LaneEntries(shape) * lanes <= kMaxPackFloats;
}

// As the kernels want a NaN.
float Canonical(float v) { return std::isnan(v) ? std::numeric_limits<float>::quiet_NaN() : v; }

// Above this a loss counts as diverged, as Summary has it: where the first loss sets no limit, only what is not finite does.
float LossLimit(float first_loss) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const double limit = kDivergedFactor * static_cast<double>(first_loss);
  if (!std::isfinite(limit) || !(first_loss > 0) || limit >= static_cast<double>(kLargest)) return kLargest;
  const auto nearest = static_cast<float>(limit);
  return static_cast<double>(nearest) <= limit ? nearest : std::nextafter(nearest, 0.0f);
}

// ---------------------------------------------------------------------------------------------------- a pack

class Pack {
 public:
  Pack(const ManyRunsTable& many, const KernelTable& kernels, const StepRounding& rounding, const ManyShape& shape, const std::function<bool()>& keep_going,
       ManyRunsObserver& observer)
      : many_(many),
        kernels_(kernels),
        keep_going_(keep_going),
        observer_(observer),
        rounding_(rounding),
        shape_(shape),
        W_(many.lanes(shape)),
        parameter_count_(shape.outputs * (shape.features + 1)),
        step_work_(LaneEntries(shape) * W_),
        most_steps_(static_cast<std::int64_t>(kWorkBetweenAsking / step_work_)),
        x_(shape.rows * shape.features * W_),
        y_(shape.rows * shape.outputs * W_),
        parameters_(parameter_count_ * W_),
        loss_scale_(W_),
        lr_(W_),
        loss_limit_(W_),
        scratch_(ManyScratch(shape) * W_),
        gradients_(parameter_count_ * W_),
        losses_(W_),
        divisors_(W_),
        lanes_(W_) {
    SCALETRACE_CHECK(W_ <= kMaxRunLanes);
    for (std::size_t i = 0; i < W_; ++i) Clear(i);
    args_ = {
        .format = &rounding_[Role::kDot].format,
        .round_predictions = !rounding_[Role::kActivation].is_nothing(),
        .shape = shape,
        .x = x_.data(),
        .y = y_.data(),
        .parameters = parameters_.data(),
        .loss_scale = loss_scale_.data(),
        .lr = lr_.data(),
        .loss_limit = loss_limit_.data(),
        .last_within = last_within_,
        .scratch = scratch_.data(),
        .gradients = gradients_.data(),
        .losses = losses_.data(),
    };
  }

  // Takes all runs to their end, but for those that can't start, which go to `left`. False where it was told to stop before.
  bool Take(std::span<const RunConfig> configs, std::span<const std::size_t> runs, DatasetCache& cache, std::vector<std::size_t>& left) {
    std::size_t next = 0;
    const auto refill = [&](std::size_t i) {
      while (next < runs.size() && !lanes_[i].active) {
        const std::size_t run = runs[next++];
        if (!GoesOn(kWorkOfAsking)) return;
        try {
          Start(i, run, configs[run], cache.Get(configs[run]));
        } catch (const InputError& e) {
          if (e.kind() != InputError::Kind::kConfig) throw;
          Clear(i);
          left.push_back(run);
        }
      }
    };
    for (std::size_t i = 0; i < W_; ++i) refill(i);
    while (!stopped_) {
      std::int64_t ask_at = std::numeric_limits<std::int64_t>::max();
      for (const Lane& lane : lanes_) ask_at = lane.active ? std::min(ask_at, lane.ask_at) : ask_at;
      if (ask_at == std::numeric_limits<std::int64_t>::max()) return true;
      Advance(ask_at);
      for (std::size_t i = 0; i < W_; ++i) {
        if (!lanes_[i].due) continue;
        GoOn(i);
        refill(i);
      }
      if (now_ >= kTimeLimit) Rebase();
    }
    return false;
  }

 private:
  struct Lane {
    bool active = false;
    bool due = false;     // asked in this round
    std::size_t run = 0;
    const RunConfig* config = nullptr;
    std::shared_ptr<const Dataset> data;
    std::optional<Scaler> scaler;
    Summary summary;
    std::int64_t good_steps = 0, skipped_in_a_row = 0;
    std::int64_t synced = 0;  // the time of the run's step summary.steps: those since then were quiet
    std::int64_t ask_at = 0;  // the time of the next step that the policy must see
    // Of the last step that the policy saw.
    bool repeats = false;  // the next step has the same gradients
    float loss = 0;
    Observation seen;
  };

  // Counts work that was done; false once the caller said stop.
  bool GoesOn(std::size_t work) {
    work_ += work;
    if (work_ >= kWorkBetweenAsking) {
      work_ = 0;
      stopped_ = stopped_ || !keep_going_();
    }
    return !stopped_;
  }

  void Clear(std::size_t i) {
    for (std::size_t e = 0; e < shape_.rows * shape_.features; ++e) x_[e * W_ + i] = 0;
    for (std::size_t e = 0; e < shape_.rows * shape_.outputs; ++e) y_[e * W_ + i] = 0;
    for (std::size_t e = 0; e < parameter_count_; ++e) parameters_[e * W_ + i] = 0;
    loss_scale_[i] = 1;
    lr_[i] = 0;
    loss_limit_[i] = std::numeric_limits<float>::max();
    last_within_[i] = -1;
    lanes_[i] = {};
  }

  void Start(std::size_t i, std::size_t run, const RunConfig& config, std::shared_ptr<const Dataset> data) {
    Lane& lane = lanes_[i];
    lane = {};
    lane.active = true;
    lane.run = run;
    lane.config = &config;
    lane.scaler.emplace(config.scaler);
    lane.good_steps = lane.scaler->initial_good_steps();
    const std::size_t D = shape_.features, K = shape_.outputs;

    buffer_.resize(data->x.size());
    {
      const FlushScope flush;
      kernels_.round(rounding_, Role::kInput, 0, 0, data->x.data(), data->x.size(), buffer_.data());
    }
    for (std::size_t e = 0; e < buffer_.size(); ++e) x_[e * W_ + i] = buffer_[e];
    const auto* normal = std::get_if<NormalInit>(&config.model.init);
    if (data->initial && !std::holds_alternative<AutoInit>(config.model.init)) {
      throw InputError(InputError::Kind::kConfig, {.key = "model.init"}, "the data brings params to start from; allowed: auto");
    }
    for (std::size_t k = 0; k < K; ++k) {
      for (std::size_t d = 0; d < D; ++d) {
        const std::size_t at = d * K + k;
        float w = 0;
        if (data->initial) w = Canonical(data->initial->w[at]);
        if (normal) w = static_cast<float>(static_cast<double>(normal->std) * Normal(config.seed, Stream::kInitialWeights, at));
        parameters_[(k * D + d) * W_ + i] = w;
      }
      parameters_[(K * D + k) * W_ + i] = data->initial ? Canonical(data->initial->b[k]) : 0;
    }
    lr_[i] = std::get<Sgd>(config.optimizer).lr;
    loss_limit_[i] = std::numeric_limits<float>::max();
    lane.data = std::move(data);
    lane.synced = lane.ask_at = now_;  // the first step sets the limit of the loss
    last_within_[i] = static_cast<std::int32_t>(now_) - 1;
    loss_scale_[i] = static_cast<float>(lane.scaler->loss_scale());
    if (config.steps < 1) {
      End(i);
    } else {
      LoadTargets(i);
    }
  }

  void End(std::size_t i) {
    const std::size_t D = shape_.features, K = shape_.outputs;
    w_.resize(D * K);
    b_.resize(K);
    for (std::size_t k = 0; k < K; ++k) {
      for (std::size_t d = 0; d < D; ++d) w_[d * K + k] = parameters_[(k * D + d) * W_ + i];
      b_[k] = parameters_[(K * D + k) * W_ + i];
    }
    observer_.OnEnd(lanes_[i].run, lanes_[i].summary, w_, b_);
    Clear(i);
  }

  void LoadTargets(std::size_t i) {
    const Lane& lane = lanes_[i];
    buffer_.resize(lane.data->y.size());
    lane.data->TargetsAt(lane.summary.steps, {}, buffer_);
    for (std::size_t e = 0; e < buffer_.size(); ++e) y_[e * W_ + i] = Canonical(buffer_[e]);
  }

  // To the time `ask_at` or the first step before it that isn't finite in some lane; that step is taken as the policies of the lanes that it concerns decide.
  void Advance(std::int64_t ask_at) {
    const std::int64_t most = std::min(ask_at - now_, most_steps_);
    ManySteps taken;
    {
      const FlushScope flush;
      taken = many_.steps(args_, static_cast<std::size_t>(most), static_cast<std::int32_t>(now_));
    }
    now_ += static_cast<std::int64_t>(taken.applied);
    GoesOn((taken.applied + 1) * step_work_);
    const std::uint64_t bad = taken.scaled_bad | taken.unscaled_bad;
    std::uint64_t apply = 0;
    for (std::size_t i = 0; i < W_; ++i) {
      Lane& lane = lanes_[i];
      divisors_[i] = loss_scale_[i];
      lane.due = lane.active && (lane.ask_at == now_ || (bad >> i & 1) != 0);
      if (!lane.due) {
        apply |= std::uint64_t{lane.active} << i;
        continue;
      }
      SeeQuietSteps(i);
      lane.loss = losses_[i];
      lane.seen = {};
      lane.seen.scaled_finite = (taken.scaled_bad >> i & 1) == 0;
      lane.seen.unscaled_finite = (taken.unscaled_bad >> i & 1) == 0;
      const Scaler::Decision decision = Ask(lane);
      divisors_[i] = static_cast<float>(decision.unscale_by);
      apply |= std::uint64_t{decision.apply} << i;
    }
    const FlushScope flush;
    many_.apply(args_, divisors_.data(), apply);
    ++now_;
  }

  // The steps since the lane was last looked at.
  void SeeQuietSteps(std::size_t i) {
    Lane& lane = lanes_[i];
    const std::int64_t count = now_ - lane.synced;
    if (count == 0) return;
    Summary& s = lane.summary;
    const std::int64_t first = s.steps, diverged_before = s.diverged_since, last = last_within_[i];
    StepRecord record = Begin(lane);
    record.skipped_total = s.skipped;
    record.loss = s.first_loss;  // the summary gets what it says of losses below, and from the step that comes now
    s.Add(record, record.loss_scale);
    s.steps += count - 1;
    s.updates += count - 1;
    if (last < lane.synced) {
      s.diverged_since = diverged_before >= 0 ? diverged_before : first;
    } else {
      s.diverged_since = last >= now_ - 1 ? -1 : first + (last - lane.synced) + 1;
    }
    observer_.OnSteps(lane.run, record, count);
    lane.scaler->Advance(count);
    lane.good_steps += count;
    lane.skipped_in_a_row = 0;
    lane.synced = now_;
  }

  StepRecord Begin(const Lane& lane) const {
    StepRecord record;
    record.step = lane.summary.steps;
    record.epoch = record.step;
    record.loss_scale = lane.scaler->loss_scale();
    record.good_steps = lane.good_steps;
    record.lr = std::get<Sgd>(lane.config->optimizer).lr;
    return record;
  }

  // One step whose gradients are known, as Run takes it.
  Scaler::Decision Ask(Lane& lane) {
    StepRecord record = Begin(lane);
    record.loss = lane.loss;
    lane.seen.step = record.step;
    const Scaler::Decision decision = lane.scaler->Next(lane.seen);
    record.grads_finite = decision.finite;
    record.event = decision.event;
    lane.skipped_in_a_row = decision.apply ? 0 : lane.skipped_in_a_row + 1;
    record.skipped_in_a_row = lane.skipped_in_a_row;
    record.skipped_total = lane.summary.skipped + (decision.apply ? 0 : 1);
    const double scale_after = lane.scaler->loss_scale();
    const bool scale_stays = scale_after == record.loss_scale || (std::isnan(scale_after) && std::isnan(record.loss_scale));
    lane.good_steps = decision.finite && scale_stays ? lane.good_steps + 1 : 0;
    lane.repeats = !decision.apply && scale_stays && static_cast<float>(decision.unscale_by) == static_cast<float>(record.loss_scale);
    lane.summary.Add(record, scale_after);
    observer_.OnSteps(lane.run, record, 1);
    if (decision.raised) lane.summary.stopped = "raise";
    const RunConfig& config = *lane.config;
    const auto lasted = [&](std::int64_t since) { return since >= 0 && lane.summary.steps - since >= config.patience; };
    if (lane.summary.stopped.empty()) {
      if (StopsStuck(config) && lasted(lane.summary.unchanged_since)) lane.summary.stopped = "stuck";
      if (StopsDiverged(config) && lasted(lane.summary.diverged_since)) lane.summary.stopped = "diverged";
    }
    return decision;
  }

  static bool StopsStuck(const RunConfig& c) { return c.stop_when == StopWhen::kStuck || c.stop_when == StopWhen::kStuckOrDiverged; }
  static bool StopsDiverged(const RunConfig& c) { return c.stop_when == StopWhen::kDiverged || c.stop_when == StopWhen::kStuckOrDiverged; }

  static bool Done(const Lane& lane) { return lane.summary.steps >= lane.config->steps || !lane.summary.stopped.empty(); }

  // After a step that the policy saw: what else there is to do before the next.
  void GoOn(std::size_t i) {
    Lane& lane = lanes_[i];
    const Dataset& data = *lane.data;
    // Steps that repeat the last one need no gradients. Each lane has its own count of steps, so that others need not wait.
    while (!Done(lane) && lane.repeats && !data.TargetsChange(lane.summary.steps) && GoesOn(kWorkOfAsking)) Ask(lane);
    if (stopped_) return;
    if (Done(lane)) return End(i);
    if (data.TargetsChange(lane.summary.steps)) LoadTargets(i);
    loss_limit_[i] = LossLimit(lane.summary.first_loss);
    loss_scale_[i] = static_cast<float>(lane.scaler->loss_scale());
    lane.synced = now_;
    const std::int64_t step = lane.summary.steps;
    std::int64_t alike = data.StepsWithSameTargets(step, lane.config->steps - step);
    if (StopsDiverged(*lane.config)) {
      const std::int64_t since = lane.summary.diverged_since;
      alike = std::min(alike, lane.config->patience - (since < 0 ? 0 : step - since));
    }
    lane.ask_at = now_ + std::max<std::int64_t>(std::min(lane.scaler->QuietSteps(), alike - 1), 0);
  }

  void Rebase() {
    for (std::size_t i = 0; i < W_; ++i) {
      last_within_[i] = static_cast<std::int32_t>(std::max<std::int64_t>(last_within_[i] - now_, -2 * kTimeLimit));
      lanes_[i].synced -= now_;
      lanes_[i].ask_at -= now_;
    }
    now_ = 0;
  }

  const ManyRunsTable& many_;
  const KernelTable& kernels_;
  const std::function<bool()>& keep_going_;
  ManyRunsObserver& observer_;
  const StepRounding rounding_;
  const ManyShape shape_;
  const std::size_t W_, parameter_count_, step_work_;
  const std::int64_t most_steps_;
  AlignedFloats x_, y_, parameters_, loss_scale_, lr_, loss_limit_, scratch_, gradients_, losses_, divisors_;
  alignas(64) std::int32_t last_within_[kMaxRunLanes];
  std::vector<Lane> lanes_;
  ManyArgs args_;
  std::int64_t now_ = 0;
  std::size_t work_ = 0;
  bool stopped_ = false;
  std::vector<float> buffer_, w_, b_;
};

}  // namespace

namespace {

// The rounding of runs that share lanes: everything but the masters to one format of the kernel's list. nullopt: these options are others.
std::optional<StepRounding> SharedRounding(const PrecisionOptions& precision) {
  if (FindProblem(precision)) return std::nullopt;
  const StepRounding rounding = RoundingOf(precision, 0);
  const Rounding& dot = rounding[Role::kDot];
  if (!IsUniform(rounding) || !rounding[Role::kInput].is_plain() || !rounding[Role::kMaster].is_nothing()) return std::nullopt;
  if (!SameNumbers(rounding[Role::kInput].format, dot.format) || FindFormat(dot.format.name) == nullptr) return std::nullopt;
  return rounding;
}

bool AllButPrecisionFits(const RunConfig& config) {
  if (!std::holds_alternative<FullBatch>(config.batch) || std::holds_alternative<DriftData>(config.data)) return false;
  if (!std::holds_alternative<Sgd>(config.optimizer) || !IsConstant(config.lr_schedule)) return false;
  if (!std::holds_alternative<NoClipping>(config.clipping) || config.micro_batches != 1) return false;
  if (FindProblem(config.scaler)) return false;
  const Needs needs = Scaler(config.scaler).needs();
  return needs == Needs{.unscaled_finite = needs.unscaled_finite, .scaled_finite = needs.scaled_finite};
}

}  // namespace

bool CanRunTogether(const RunConfig& config) { return AllButPrecisionFits(config) && SharedRounding(config.precision).has_value(); }

std::vector<std::size_t> RunTogether(std::span<const RunConfig> configs, std::span<const std::size_t> which, const KernelTable& kernels, const std::function<bool()>& keep_going,
                                     ManyRunsObserver& observer) {
  const ManyRunsTable* many = FindManyRuns(kernels.target);
  SCALETRACE_CHECK(many != nullptr);
  struct Group {
    StepRounding rounding;
    ManyShape shape;
    std::vector<std::size_t> runs;
  };
  std::vector<Group> groups;
  std::vector<std::size_t> left;
  DatasetCache cache;
  // Neighbours in a sweep mostly have the same precision, and looking up its formats takes as long as some steps of a run.
  const PrecisionOptions* precision = nullptr;
  std::optional<StepRounding> shared;
  for (const std::size_t run : which) {
    const RunConfig& config = configs[run];
    if (precision == nullptr || !(*precision == config.precision)) {
      precision = &config.precision;
      shared = SharedRounding(*precision);
    }
    if (!shared || !AllButPrecisionFits(config)) {
      left.push_back(run);
      continue;
    }
    std::optional<ManyShape> shape = ShapeOf(config.data);
    if (!shape) {
      try {
        const auto data = cache.Get(config);
        shape = {data->samples, data->features, data->outputs};
      } catch (const InputError& e) {
        if (e.kind() != InputError::Kind::kConfig) throw;
        left.push_back(run);
        continue;
      }
    }
    if (!IsSmall(*shape, many->lanes(*shape))) {
      left.push_back(run);
      continue;
    }
    const StepRounding& rounding = *shared;
    const auto same = [&](const Group& g) { 
      return g.shape == *shape && SameNumbers(g.rounding[Role::kDot].format, rounding[Role::kDot].format) &&
             SameNumbers(g.rounding[Role::kActivation].format, rounding[Role::kActivation].format);
    };
    auto group = std::find_if(groups.rbegin(), groups.rend(), same);
    if (group == groups.rend()) {
      groups.push_back({rounding, *shape, {}});
      group = groups.rbegin();
    }
    group->runs.push_back(run);
  }
  for (const Group& group : groups) {
    if (2 * group.runs.size() <= many->lanes(group.shape)) {
      left.insert(left.end(), group.runs.begin(), group.runs.end());
      continue;
    }
    Pack pack(*many, kernels, group.rounding, group.shape, keep_going, observer);
    if (!pack.Take(configs, group.runs, cache, left)) break;
  }
  std::sort(left.begin(), left.end());
  return left;
}

}  // namespace scaletrace
