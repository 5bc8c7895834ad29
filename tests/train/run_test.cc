// Whole runs against a loop over the plain-loop step, on every instruction set, however many steps are taken at once.
#include <cmath>
#include <functional>

#include "base/error.h"
#include "kernels/flush_scope.h"
#include "kernels/reference.h"
#include "tests/catch.h"
#include "tests/golden.h"
#include "trace/columns.h"
#include "train/run.h"

namespace scaletrace {
namespace {

// What a run must record and end with.
struct Expected {
  std::vector<StepRecord> records;
  std::vector<float> w, b;
};

// p <- fma(-lr, g / S, p) where the step is applied, in the mode of the kernels.
[[gnu::noinline]] void Apply(const std::vector<float>& g, float divisor, float lr, std::vector<float>& p) {
  for (std::size_t i = 0; i < p.size(); ++i) p[i] = std::fma(-lr, g[i] / divisor, p[i]);
}

Expected PlainRun(const RunConfig& config) {
  const Dataset data = MakeDataset(config.data, config.seed, ".");
  Scaler scaler(config.scaler);
  Batches batches(config.batch, data.samples, config.seed);
  ReferenceInput in;
  in.rounding = RoundingOf(config.precision, config.seed);
  in.features = data.features;
  in.outputs = data.outputs;
  in.w.resize(data.features * data.outputs);
  in.b.resize(data.outputs);
  in.lr = std::get<Sgd>(config.optimizer).lr;
  Expected expected;
  for (std::int64_t step = 0; step < config.steps; ++step) {
    std::vector<std::uint32_t> rows;
    for (const std::uint32_t row : batches.Rows(step)) rows.push_back(row);
    in.rows = rows.empty() ? data.samples : rows.size();
    in.x.clear();
    for (std::size_t i = 0; i < in.rows; ++i) {
      const std::size_t row = rows.empty() ? i : rows[i];
      in.x.insert(in.x.end(), data.x.begin() + static_cast<std::ptrdiff_t>(row * data.features),
                  data.x.begin() + static_cast<std::ptrdiff_t>((row + 1) * data.features));
    }
    in.y.resize(in.rows * data.outputs);
    data.TargetsAt(step, rows, in.y);
    StepRecord record;
    record.step = step;
    record.loss_scale = scaler.loss_scale();
    in.loss_scale = static_cast<float>(record.loss_scale);
    const ReferenceOutput out = ReferenceStep(in);
    record.loss = out.loss;
    Observation seen;
    seen.step = step;
    seen.scaled_finite = out.scaled_finite;
    seen.unscaled_finite = out.unscaled_finite;
    const Scaler::Decision decision = scaler.Next(seen);
    record.grads_finite = decision.finite;
    record.event = decision.event;
    expected.records.push_back(record);
    if (decision.apply) {
      const FlushScope flush;
      Apply(out.gw, static_cast<float>(decision.unscale_by), in.lr, in.w);
      Apply(out.gb, static_cast<float>(decision.unscale_by), in.lr, in.b);
    }
    if (decision.raised) break;
  }
  expected.w = in.w;
  expected.b = in.b;
  return expected;
}

void Compare(const RunConfig& config) {
  const Expected expected = PlainRun(config);
  for (const KernelTable& kernels : CompiledKernels()) {
    for (const std::size_t at_once : {1, 7, 4096}) {
      INFO(config.name << " on " << kernels.target << ", " << at_once << " at once");
      Run run(config, kernels);
      std::vector<StepRecord> records, some(at_once);
      while (!run.done()) {
        const std::size_t n = run.Steps(some);
        records.insert(records.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(n));
      }
      REQUIRE(records.size() == expected.records.size());
      std::int64_t skipped = 0;
      for (std::size_t i = 0; i < records.size(); ++i) {
        INFO("step " << i);
        REQUIRE(records[i].step == expected.records[i].step);
        REQUIRE(SameBits(records[i].loss, expected.records[i].loss));
        REQUIRE(records[i].loss_scale == expected.records[i].loss_scale);
        REQUIRE(records[i].grads_finite == expected.records[i].grads_finite);
        REQUIRE(records[i].event == expected.records[i].event);
        skipped += records[i].skipped_in_a_row > 0 ? 1 : 0;
        REQUIRE(records[i].skipped_total == skipped);
      }
      REQUIRE(SameBits(run.model().w(), expected.w));
      REQUIRE(SameBits(run.model().b(), expected.b));
    }
  }
}

RunConfig Config(const std::string& name, DataOptions data, Policy policy, const std::string& format = "bfloat16") {
  RunConfig config;
  config.name = name;
  config.seed = 4;
  config.steps = 200;
  config.data = std::move(data);
  config.scaler = std::move(policy);
  config.precision.compute = format;
  return config;
}

template <class P>
P WithScale(double scale, std::int64_t interval) {
  P policy;
  policy.init_scale = static_cast<decltype(policy.init_scale)>(scale);
  policy.growth_interval = interval;
  return policy;
}

TEST_CASE("a run equals a loop over plain steps, with quiet stretches, overflows, spikes and batches") {
  GaussianData gaussian;
  gaussian.samples = 40;
  gaussian.features = 5;
  gaussian.outputs = 3;
  SpikesData spikes;
  spikes.samples = 2;
  spikes.features = 2;
  spikes.at = {3, 50, 51, 52, 120};
  spikes.every = 30;
  DriftData drift;
  drift.samples = 9;
  drift.features = 4;
  drift.period = 60;
  Compare(Config("growth to the ceiling and inf", gaussian, WithScale<JaxStep>(0x1p110, 7)));
  Compare(Config("saw-tooth in float16", gaussian, WithScale<JaxStep>(65536, 5), "float16"));
  Compare(Config("spikes", spikes, WithScale<JaxStep>(65536, 20)));
  Compare(Config("drift", drift, WithScale<JaxStep>(0x1p125, 3)));
  RunConfig batches = Config("batches", gaussian, WithScale<JaxStep>(65536, 5), "float8_e5m2");
  PermutedBatches permuted;
  permuted.size = 7;
  batches.batch = permuted;
  Compare(batches);
  RunConfig excess = Config("excess", gaussian, WithScale<JaxStep>(1000, 1));
  excess.precision.profile = Profile::kExcess;
  Compare(excess);
}

// All cells of a record that need nothing computed for them.
std::string Cells(const StepRecord& record) {
  std::string cells;
  for (const Column& column : Columns()) {
    char text[kMaxNumberLength];
    if (column.needs == kNeedsNothing) cells.append(text, column.write(text, record)).append(",");
  }
  return cells;
}

TEST_CASE("steps that are taken in one go are recorded and summed up as steps that are looked at one by one") {
  GaussianData gaussian;
  gaussian.samples = 6;
  gaussian.features = 3;
  RunConfig config = Config("recorded", gaussian, WithScale<JaxStep>(0x1p115, 13));
  RunConfig diverging = config;
  std::get<Sgd>(diverging.optimizer).lr = 3.0f;
  StepRecord stale;  // what was there before
  stale.epoch = stale.good_steps = stale.skipped_total = stale.skipped_in_a_row = 99;
  stale.event = Event::kFloor;
  stale.grads_finite = false;
  for (RunConfig& one : {std::ref(config), std::ref(diverging)}) {
    std::vector<StepRecord> quiet(200, stale), loud(200);
    Run run(one, CompiledKernels().front());
    // Some steps a time, so that stretches begin and end anywhere.
    for (std::size_t i = 0, n = 1; i < 200; i += n, n = n % 23 + 1) run.Steps(std::span(quiet).subspan(i, std::min<std::size_t>(n, 200 - i)));
    one.trace.columns = {"step", "grad_norm"};  // has to see each step
    Run other(one, CompiledKernels().front());
    REQUIRE(other.Steps(loud) == 200);
    for (std::size_t i = 0; i < 200; ++i) REQUIRE(Cells(quiet[i]) == Cells(loud[i]));
    REQUIRE(run.StateMembers() == other.StateMembers());
  }
}

TEST_CASE("a run can be stopped and restored at any step and ends in the same state") {
  SpikesData spikes;
  spikes.samples = 6;
  spikes.features = 3;
  spikes.every = 11;
  const RunConfig config = Config("restored", spikes, WithScale<JaxStep>(0x1p120, 4));
  std::vector<StepRecord> records(4096);
  Run whole(config, CompiledKernels().front());
  whole.Steps(records);
  const std::string end = whole.StateMembers();
  for (const std::size_t at : {0, 1, 10, 11, 12, 99, 199, 200}) {
    Run first(config, CompiledKernels().front());
    first.Steps(std::span(records).first(at));
    const Json state = Json::Parse("{" + first.StateMembers() + "}", "state", 1 << 20);
    Run second(config, CompiledKernels().back());
    second.Restore(state, state.root());
    second.Steps(records);
    CHECK(second.StateMembers() == end);
  }
}

TEST_CASE("a state of another shape or policy is refused") {
  GaussianData gaussian;
  gaussian.samples = 4;
  gaussian.features = 2;
  const RunConfig config = Config("one", gaussian, WithScale<JaxStep>(1024, 4));
  gaussian.features = 3;
  const RunConfig other = Config("other", gaussian, WithScale<JaxStep>(1024, 4));
  const Json state = Json::Parse("{" + Run(config, CompiledKernels().front()).StateMembers() + "}", "state", 1 << 20);
  Run run(other, CompiledKernels().front());
  CHECK_THROWS_AS(run.Restore(state, state.root()), InputError);
}

}  // namespace
}  // namespace scaletrace
