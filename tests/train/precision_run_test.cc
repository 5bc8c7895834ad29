// Whole runs with roles, presets, custom formats, optimizers, schedules, clipping and micro-batches, against loops over the plain-loop step.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "kernels/flush_scope.h"
#include "kernels/reference.h"
#include "kernels/statistics.h"
#include "tests/catch.h"
#include "tests/golden.h"
#include "train/run.h"

namespace scaletrace {
namespace {

RunConfig SmallConfig() {
  RunConfig config;
  config.seed = 3;
  config.steps = 60;
  GaussianData data;
  data.samples = 48;
  data.features = 5;
  data.outputs = 3;
  config.data = data;
  StaticScale policy;
  policy.init_scale = 1024;
  config.scaler = policy;
  return config;
}

// A run as a reader of the documentation would write it: full batch or pieces of it, scale constant.
struct Plain {
  std::vector<float> losses, lrs, w, b;
};

[[gnu::noinline]] void Times(float factor, std::vector<float>& values) {
  const FlushScope flush;
  [&]() __attribute__((noinline)) {
    for (float& v : values) v *= factor;
  }();
}

[[gnu::noinline]] std::vector<float> Divided(const std::vector<float>& values, float divisor) {
  std::vector<float> quotients(values.size());
  const FlushScope flush;
  [&]() __attribute__((noinline)) {
    for (std::size_t i = 0; i < values.size(); ++i) quotients[i] = values[i] / divisor;
  }();
  return quotients;
}

Plain PlainRun(const RunConfig& config) {
  const Dataset data = MakeDataset(config.data, config.seed, ".");
  const std::size_t D = data.features, K = data.outputs, weights = D * K;
  const auto pieces = static_cast<std::size_t>(config.micro_batches);
  const float scale = static_cast<float>(std::get<StaticScale>(config.scaler).init_scale);
  ReferenceInput in;
  in.rounding = RoundingOf(config.precision, config.seed);
  in.features = D;
  in.outputs = K;
  in.w.resize(weights);
  in.b.resize(K);
  in.loss_scale = scale;
  in.rows = data.samples / pieces;
  in.share = 1.0f / static_cast<float>(pieces);
  OptimizerState state;
  std::vector<float> p(weights + K), m(weights + K), v(weights + K);
  Plain plain;
  for (std::int64_t step = 0; step < config.steps; ++step) {
    std::vector<float> g(weights + K);
    float loss = 0;
    for (std::size_t k = 0; k < K; ++k) {
      for (std::size_t d = 0; d < D; ++d) in.w[d * K + k] = p[k * D + d];
      in.b[k] = p[weights + k];
    }
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const std::size_t first = piece * in.rows;
      in.x.assign(data.x.begin() + static_cast<std::ptrdiff_t>(first * D), data.x.begin() + static_cast<std::ptrdiff_t>((first + in.rows) * D));
      std::vector<std::uint32_t> rows(in.rows);
      for (std::size_t i = 0; i < in.rows; ++i) rows[i] = static_cast<std::uint32_t>(first + i);
      in.y.resize(in.rows * K);
      data.TargetsAt(step, rows, in.y);
      in.draw = static_cast<std::uint64_t>(step) * pieces + piece;
      const ReferenceOutput out = ReferenceStep(in);
      loss += out.loss;
      for (std::size_t k = 0; k < K; ++k) {
        for (std::size_t d = 0; d < D; ++d) g[k * D + d] += out.gw[d * K + k];
        g[weights + k] += out.gb[k];
      }
    }
    plain.losses.push_back(pieces == 1 ? loss : loss * in.share);
    const auto* clip = std::get_if<NormClipping>(&config.clipping);
    if (clip != nullptr && clip->when == ClipWhen::kScaled) Times(ClipFactor(*clip, Norm(g.data(), g.size())), g);
    std::vector<float> u = Divided(g, scale);
    if (clip != nullptr && clip->when == ClipWhen::kUnscaled) Times(ClipFactor(*clip, Norm(u.data(), u.size())), u);
    const float lr = LearningRate(config.optimizer, config.lr_schedule, config.steps, step, step);
    plain.lrs.push_back(lr);
    UpdateArgs args = NextUpdate(config.optimizer, lr, state);
    args.n = weights + K;
    args.gradients = u.data();
    args.parameters = p.data();
    args.first = m.data();
    args.second = v.data();
    args.rounding = &in.rounding;
    args.draw = static_cast<std::uint64_t>(step) * pieces;
    ReferenceUpdate(args);
  }
  plain.w.resize(weights);
  for (std::size_t k = 0; k < K; ++k) {
    for (std::size_t d = 0; d < D; ++d) plain.w[d * K + k] = p[k * D + d];
  }
  plain.b.assign(p.begin() + static_cast<std::ptrdiff_t>(weights), p.end());
  return plain;
}

std::vector<StepRecord> AllSteps(Run& run, std::size_t at_once) {
  std::vector<StepRecord> records, some(at_once);
  while (!run.done()) {
    const std::size_t n = run.Steps(some);
    records.insert(records.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(n));
  }
  return records;
}

void Compare(const RunConfig& config, const std::string& what) {
  const Plain plain = PlainRun(config);
  CHECK(plain.w != std::vector<float>(plain.w.size()));
  for (const KernelTable& kernels : CompiledKernels()) {
    for (const std::size_t at_once : {1, 64}) {
      INFO(what << " on " << kernels.target << ", " << at_once << " at once");
      Run run(config, kernels);
      const std::vector<StepRecord> records = AllSteps(run, at_once);
      REQUIRE(records.size() == plain.losses.size());
      for (std::size_t i = 0; i < records.size(); ++i) {
        INFO("step " << i);
        REQUIRE(SameBits(records[i].loss, plain.losses[i]));
        REQUIRE(SameBits(records[i].lr, plain.lrs[i]));
      }
      REQUIRE(SameBits(run.model().w(), plain.w));
      REQUIRE(SameBits(run.model().b(), plain.b));
    }
  }
}

TEST_CASE("presets, single roles and stochastic masters run as the plain loops say") {
  for (const std::string_view preset : PresetNames()) {
    RunConfig config = SmallConfig();
    config.precision.preset = preset;
    Compare(config, std::string(preset));
  }
  RunConfig config = SmallConfig();
  config.precision.master = {.format = "bfloat16", .rounding = RoundingMode::kStochastic};
  Compare(config, "stochastic masters");
  config.precision.activation = {.format = "float8_e4m3fn", .rounding = RoundingMode::kStochastic, .overflow = Overflow::kSaturate};
  config.precision.gradient_sum.rounding = RoundingMode::kStochastic;
  Compare(config, "stochastic activations and sums");
}

TEST_CASE("optimizers, schedules, clipping and micro-batches run as the plain loops say") {
  RunConfig config = SmallConfig();
  config.optimizer = Momentum{.lr = 0.02f, .weight_decay = 0.01f};
  Compare(config, "momentum");
  config.optimizer = Momentum{.lr = 0.02f, .nesterov = true};
  config.lr_schedule = CosineSchedule{{.warmup = 7}};
  Compare(config, "nesterov with a cosine");
  config.optimizer = Adam{.lr = 0.05f, .weight_decay = 0.1f};
  config.lr_schedule = StepSchedule{{.warmup = 3}, 10, 0.5f};
  Compare(config, "adam with steps");
  config.optimizer = AdamW{.lr = 0.05f};
  config.lr_schedule = LinearSchedule{{}, 40, 0.1f};
  config.micro_batches = 4;
  Compare(config, "adamw with micro-batches");
  config.optimizer = Sgd{};
  config.lr_schedule = ConstantSchedule{};
  config.clipping = NormClipping{.max_norm = 0.5f, .when = ClipWhen::kScaled};
  Compare(config, "clipped before the division");
  config.micro_batches = 1;
  config.clipping = NormClipping{.max_norm = 0.5f, .when = ClipWhen::kUnscaled};
  Compare(config, "clipped after the division");
}

TEST_CASE("a schedule's learning rates are those of its formula") {
  const OptimizerOptions optimizer = Sgd{.lr = 1.0f};
  const auto at = [&](const ScheduleOptions& s, std::int64_t step) { return LearningRate(optimizer, s, 100, step, step); };
  const ScheduleOptions cosine = CosineSchedule{{.warmup = 20}};
  CHECK(at(cosine, 0) == 0.05f);
  CHECK(at(cosine, 19) == 1.0f);
  CHECK(at(cosine, 20) == 1.0f);
  CHECK(at(cosine, 60) == Approx(0.5));
  CHECK(at(cosine, 100) == Approx(0).margin(1e-7));
  CHECK(at(cosine, 1000) == Approx(0).margin(1e-7));
  const ScheduleOptions steps = StepSchedule{{}, 30, 0.5f};
  CHECK(at(steps, 29) == 1.0f);
  CHECK(at(steps, 30) == 0.5f);
  CHECK(at(steps, 95) == 0.125f);
  const ScheduleOptions linear = LinearSchedule{{}, 50, 0.25f};
  CHECK(at(linear, 25) == 0.625f);
  CHECK(at(linear, 50) == 0.25f);
  StepSchedule by_updates{{.counts = ScheduleCount::kUpdates}, 10, 0.5f};
  CHECK(LearningRate(optimizer, by_updates, 100, 50, 9) == 1.0f);
  CHECK(LearningRate(optimizer, by_updates, 100, 50, 10) == 0.5f);
}

TEST_CASE("adam's first update is the learning rate against the sign of the gradient, whatever its size") {
  RunConfig config = SmallConfig();
  config.precision.compute = "float32";
  config.steps = 1;
  config.optimizer = Adam{.lr = 0.25f};
  Run run(config, *FindKernels(""));
  AllSteps(run, 1);
  for (const float w : run.model().w()) CHECK(std::fabs(w) == Approx(0.25).epsilon(1e-4));
}

TEST_CASE("a run with every kind of state goes on bit for bit from its state") {
  RunConfig config = SmallConfig();
  config.precision.master = {.format = "bfloat16", .rounding = RoundingMode::kStochastic};
  config.precision.input.rounding = RoundingMode::kStochastic;
  config.optimizer = AdamW{.lr = 0.05f};
  config.lr_schedule = CosineSchedule{{.warmup = 7, .counts = ScheduleCount::kUpdates}};
  config.clipping = NormClipping{};
  for (const std::int64_t pieces : {1, 3}) {
    config.micro_batches = pieces;
    const KernelTable& kernels = *FindKernels("");
    Run whole(config, kernels);
    const std::vector<StepRecord> expected = AllSteps(whole, 7);
    Run first(config, kernels);
    std::vector<StepRecord> some(23);
    REQUIRE(first.Steps(some) == 23);
    const std::string text = "{" + first.StateMembers() + "}";
    const Json json = Json::Parse(text, "state", text.size());
    Run second(config, kernels);
    second.Restore(json, json.root());
    const std::vector<StepRecord> rest = AllSteps(second, 5);
    REQUIRE(rest.size() == expected.size() - 23);
    for (std::size_t i = 0; i < rest.size(); ++i) {
      REQUIRE(SameBits(rest[i].loss, expected[23 + i].loss));
      REQUIRE(rest[i].lr == expected[23 + i].lr);
    }
    CHECK(SameBits(second.model().w(), whole.model().w()));
    CHECK(second.StateMembers() == whole.StateMembers());
  }
}

TEST_CASE("a custom format with the bits of a built-in one gives the same run") {
  struct Same {
    std::string name;
    CustomFormatOptions custom;
  };
  for (const Same& same : {Same{"float16", {5, 10, Specials::kIeee}}, Same{"bfloat16", {8, 7, Specials::kIeee}}, Same{"float8_e4m3fn", {4, 3, Specials::kFn}},
                           Same{"float8_e5m2fnuz", {5, 2, Specials::kFnuz}}, Same{"float4_e2m1fn", {2, 1, Specials::kNone}}}) {
    RunConfig built_in = SmallConfig();
    built_in.precision.compute = same.name;
    RunConfig custom = SmallConfig();
    custom.precision.compute = "custom";
    custom.precision.custom = same.custom;
    for (const KernelTable& kernels : CompiledKernels()) {
      INFO(same.name << " on " << kernels.target);
      Run a(built_in, kernels), b(custom, kernels);
      const std::vector<StepRecord> as = AllSteps(a, 64), bs = AllSteps(b, 64);
      for (std::size_t i = 0; i < as.size(); ++i) REQUIRE(SameBits(as[i].loss, bs[i].loss));
      REQUIRE(SameBits(a.model().w(), b.model().w()));
    }
  }
}

TEST_CASE("the overflow of one micro-batch skips the whole step") {
  RunConfig config = SmallConfig();
  config.micro_batches = 4;
  config.precision.compute = "float16";
  config.steps = 4;
  Pytorch policy;
  policy.init_scale = 0x1p20f;
  policy.growth_interval = 1000;
  config.scaler = policy;
  Run run(config, *FindKernels(""));
  const std::vector<StepRecord> records = AllSteps(run, 4);
  CHECK_FALSE(records[0].grads_finite);
  CHECK(records[0].skipped_in_a_row == 1);
  CHECK(records[1].loss_scale == 0x1p19);
}

TEST_CASE("a batch that micro-batches do not divide is refused") {
  RunConfig config = SmallConfig();
  config.micro_batches = 5;
  CHECK_THROWS_AS(Run(config, *FindKernels("")), InputError);
}

TEST_CASE("the columns and histograms of the tensors say what rounding did to them") {
  RunConfig config = SmallConfig();
  config.steps = 3;
  config.precision.compute = "float16";
  config.trace.columns = {"output_gradient_underflow", "output_gradient_subnormal", "output_gradient_max_abs", "activation_max_abs"};
  config.trace.histograms = 2;
  std::get<StaticScale>(config.scaler).init_scale = 0x1p-9;
  const Dataset data = MakeDataset(config.data, config.seed, ".");
  ReferenceInput in;
  in.rounding = RoundingOf(config.precision, config.seed);
  in.rows = data.samples;
  in.features = data.features;
  in.outputs = data.outputs;
  in.x = data.x;
  in.y.resize(in.rows * in.outputs);
  data.TargetsAt(0, {}, in.y);
  in.w.resize(in.features * in.outputs);
  in.b.resize(in.outputs);
  in.loss_scale = 0x1p-9f;
  const ReferenceOutput out = ReferenceStep(in);
  double underflow = 0, subnormal = 0;
  float max = 0;
  std::map<int, int> exponents;
  for (std::size_t i = 0; i < out.signals.size(); ++i) {
    underflow += out.exact_signals[i] != 0 && out.signals[i] == 0 ? 1 : 0;
    subnormal += out.signals[i] != 0 && std::fabs(out.signals[i]) < 0x1p-14f ? 1 : 0;
    max = std::max(max, std::fabs(out.exact_signals[i]));
    ++exponents[std::ilogb(out.exact_signals[i])];
  }
  REQUIRE(subnormal > 0);
  for (const KernelTable& kernels : CompiledKernels()) {
    Run run(config, kernels);
    std::vector<StepRecord> records(1);
    REQUIRE(run.Steps(records) == 1);
    const TensorStatistics& g = records[0].tensors[3];
    CHECK(g.underflow == static_cast<float>(underflow / static_cast<double>(out.signals.size())));
    CHECK(g.subnormal == static_cast<float>(subnormal / static_cast<double>(out.signals.size())));
    CHECK(g.max_abs == max);
    CHECK(records[0].tensors[2].max_abs == 0.0f);
    const std::string lines = run.TakeHistograms();
    for (const auto& [exponent, count] : exponents) {
      const std::string line = "0,output_gradient,0.001953125," + std::to_string(exponent) + "," + std::to_string(count) + "\n";
      INFO(line);
      CHECK(lines.find(line) != std::string::npos);
    }
    CHECK(run.Steps(records) == 1);
    CHECK(run.TakeHistograms().empty());
    CHECK(run.Steps(records) == 1);
    CHECK(run.TakeHistograms().find("2,input,") == 0);
    // The features are counted once and shown in every row.
    RunConfig with_input = config;
    with_input.trace.columns = {"input_max_abs", "input_subnormal"};
    Run observed(with_input, kernels);
    std::vector<StepRecord> rows(3);
    REQUIRE(observed.Steps(rows) == 3);
    float largest = 0;
    for (const float x : data.x) largest = std::max(largest, std::fabs(x));
    for (const StepRecord& row : rows) CHECK(row.tensors[0].max_abs == largest);
    CHECK(rows[0].tensors[0].subnormal == rows[2].tensors[0].subnormal);
  }
}

}  // namespace
}  // namespace scaletrace
