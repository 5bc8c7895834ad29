// Single facts about single policies: worked examples, what the golden vectors do not cover, and what a policy decides
// besides the scale.
#include <cmath>
#include <ctime>
#include <string>

#include "base/error.h"
#include "support.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

using Settings = std::vector<std::string>;
using Numbers = std::vector<double>;

Numbers ScalesOf(std::string_view key, const Settings& settings, std::string_view events) {
  return Scales(PolicyWith(key, settings), events);
}
Settings Window3(Settings more = {}) {
  more.insert(more.begin(), {"init_scale=1024", "growth_interval=3"});
  return more;
}

// By what each step's gradients are divided, over the scale of its backward pass: the factor by which the gradient used
// is off is its inverse.
Numbers UsedGradients(std::string_view key, const Settings& settings, std::string_view events) {
  Scaler scaler(PolicyWith(key, settings));
  Numbers used;
  for (const char event : events) {
    const double backward = scaler.loss_scale();
    const Scaler::Decision d = scaler.Next(ObservationOf(event));
    if (d.apply) used.push_back(backward / d.unscale_by);
  }
  return used;
}

std::vector<std::string> Events(std::string_view key, const Settings& settings, std::string_view events) {
  Scaler scaler(PolicyWith(key, settings));
  std::vector<std::string> names;
  for (const char event : events) names.emplace_back(Name(scaler.Next(ObservationOf(event)).event));
  return names;
}

TEST_CASE("The worked examples of the rules come out as written") {
  const std::string_view events = "FFFOOFFF";
  const Numbers most = {1024, 1024, 1024, 2048, 1024, 512, 512, 512, 1024};
  for (const char* key : {"jax-step", "pytorch", "pytorch-sharded-cpu", "apex-amp", "apex-fp16utils", "fairseq",
                          "fairseq2", "tf-dynamic", "keras", "jmp", "mpx", "paddle", "paddle-op", "mindspore-manager",
                          "mindspore-cell", "mindspore-scaler", "onnxruntime", "bmtrain", "fairscale-layerwise"}) {
    INFO(key);
    CHECK(ScalesOf(key, Window3(), events) == most);
  }
  const Numbers forgiving = {1024, 1024, 1024, 2048, 2048, 1024, 1024, 1024, 2048};
  CHECK(ScalesOf("apex-hysteresis", Window3({"hysteresis=2"}), events) == forgiving);
  CHECK(ScalesOf("megatron", Window3({"hysteresis=2"}), events) == forgiving);
  CHECK(ScalesOf("colossalai", Window3({"hysteresis=2"}), events) == forgiving);
  CHECK(ScalesOf("paddle", Window3({"decr_every_n=2"}), events) == forgiving);
  CHECK(ScalesOf("tf1-contrib", Window3({"backoff_factor=0.5"}), events) == forgiving);
  CHECK(ScalesOf("tf1-contrib", Window3(), events) == Numbers{1024, 1024, 1024, 2048, 2048, 1638.4000244140625,
                                                              1638.4000244140625, 1638.4000244140625,
                                                              3276.800048828125});
  CHECK(ScalesOf("deepspeed", Window3({"hysteresis=1"}), events) ==
        Numbers{1024, 1024, 1024, 1024, 512, 256, 256, 256, 256});
  CHECK(ScalesOf("deepspeed", Window3({"hysteresis=2"}), events) ==
        Numbers{1024, 1024, 1024, 1024, 1024, 512, 512, 512, 512});
  CHECK(ScalesOf("deepspeed-fp16optimizer", Window3(), events) ==
        Numbers{1024, 1024, 1024, 1024, 512, 256, 256, 256, 256});
  CHECK(ScalesOf("metaseq", Window3(), events) == Numbers{1024, 1024, 1024, 2048, 1024, 512, 1024, 2048, 2048});
  CHECK(ScalesOf("flax", Window3(), events) == Numbers{1024, 1024, 1024, 1024, 512, 256, 256, 256, 256});
  CHECK(ScalesOf("mxnet", Window3(), events) == Numbers{1024, 1024, 1024, 1024, 2048, 1024, 512, 512, 512});
  CHECK(ScalesOf("openseq2seq-backoff", Window3({"max_scale=2^24"}), events) == most);
  CHECK(ScalesOf("openseq2seq-backoff", Window3({"max_scale=2^24", "increment_first=true"}), events) ==
        Numbers{1024, 1024, 2048, 2048, 1024, 512, 512, 512, 1024});
  CHECK(ScalesOf("fairseq2", {"init_scale=8", "growth_interval=3", "min_scale=3"}, "OOOOOFFF") ==
        Numbers{8, 4, 3, 3, 3, 3, 3, 3, 6});
  CHECK(ScalesOf("mpx", {"init_scale=2^14", "growth_interval=1"}, "FFFOOF") ==
        Numbers{16384, 32768, 65504, 65504, 32752, 16376, 32752});
  CHECK(ScalesOf("bmtrain", {"init_scale=16", "growth_interval=2", "min_scale=3"}, "OOOOFFFF") ==
        Numbers{16, 8, 4, 2, 2, 2, 4, 4, 8});
  CHECK(ScalesOf("fairscale-layerwise", {"init_scale=16", "growth_interval=2", "min_scale=3", "max_scale=5000"},
                 "OOOOFFFF") == Numbers{16, 8, 4, 3, 3, 3, 6, 6, 12});
  CHECK(ScalesOf("popart-als", {"init_scale=128"}, "FFFOOFFF") ==
        Numbers{128, 256, 512, 1024, 512, 256, 512, 1024, 2048});
}

TEST_CASE("A fraction of overflows is forgiven by fairseq") {
  CHECK(ScalesOf("fairseq", {"init_scale=1024", "growth_interval=100", "tolerance=0.25"}, "FFFFOFOFFFFFO") ==
        Numbers{1024, 1024, 1024, 1024, 1024, 1024, 1024, 512, 512, 512, 512, 512, 512, 512});
  // Growth keeps the count, so that a single overflow after it can be the whole fraction; the fixed one starts anew.
  const Settings settings = {"init_scale=1024", "growth_interval=3", "tolerance=1.5"};
  CHECK(ScalesOf("fairseq", settings, "OFFFO").back() == 1024);
  CHECK(ScalesOf("fairseq-fixed", settings, "OFFFO").back() == 2048);
}

TEST_CASE("Hysteresis means four things") {
  const std::string_view events = "OFOFOOOF";
  CHECK(ScalesOf("pytorch", Window3(), events) == Numbers{1024, 512, 512, 256, 256, 128, 64, 32, 32});
  const Numbers at_growth = {1024, 1024, 1024, 512, 512, 256, 128, 64, 64};
  const Numbers any_good = {1024, 1024, 1024, 1024, 1024, 1024, 512, 256, 256};
  CHECK(ScalesOf("megatron", Window3(), events) == at_growth);
  CHECK(ScalesOf("colossalai", Window3(), events) == at_growth);
  CHECK(ScalesOf("deepspeed", Window3(), events) == at_growth);
  CHECK(ScalesOf("apex-hysteresis", Window3({"hysteresis=2"}), events) == any_good);
  CHECK(ScalesOf("deepspeed", Window3({"consecutive_hysteresis=true"}), events) == any_good);
  CHECK(ScalesOf("paddle", Window3({"decr_every_n=2"}), events) ==
        Numbers{1024, 1024, 1024, 1024, 1024, 1024, 512, 512, 512});
  CHECK(ScalesOf("tf1-contrib", Window3({"backoff_factor=0.5"}), events) ==
        Numbers{1024, 1024, 1024, 512, 512, 512, 256, 256, 256});
}

TEST_CASE("At the ceiling some keep, some saturate, and some never come back") {
  const Settings settings = {"init_scale=2^126", "growth_interval=1"};
  const auto ceiling = [&](const char* key) { return ScalesOf(key, settings, "FFFOOF"); };
  const double inf = std::numeric_limits<double>::infinity();
  const Numbers kept = {0x1p126, 0x1p127, 0x1p127, 0x1p127, 0x1p126, 0x1p125, 0x1p126};
  const Numbers stuck = {0x1p126, 0x1p127, inf, inf, inf, inf, inf};
  const Numbers wide = {0x1p126, 0x1p127, 0x1p128, 0x1p129, 0x1p128, 0x1p127, 0x1p128};
  for (const char* key : {"pytorch", "tf-dynamic", "jmp"}) CHECK(ceiling(key) == kept);
  for (const char* key : {"jax-step", "keras", "paddle", "mindspore-cell"}) CHECK(ceiling(key) == stuck);
  for (const char* key : {"megatron", "colossalai"})
    CHECK(ScalesOf(key, {"init_scale=2^126", "growth_interval=1", "hysteresis=1"}, "FFFOOF") == stuck);
  for (const char* key : {"apex-fp16utils", "fairseq", "mindspore-manager", "bmtrain"}) CHECK(ceiling(key) == wide);
  CHECK(ceiling("mxnet") == Numbers{0x1p126, 0x1p126, 0x1p24, 0x1p24, 0x1p24, 0x1p23, 0x1p22});
  const double max = 3.4028234663852886e38;
  CHECK(ScalesOf("flax", settings, "FFFFFOO") ==
        Numbers{0x1p126, 0x1p126, 0x1p127, 0x1p127, max, max, max / 2, max / 4});
}

TEST_CASE("At the floor some clamp, some raise, some fall to 0, down through the subnormals") {
  CHECK(Events("deepspeed", {"init_scale=2", "hysteresis=1"}, "OO") == std::vector<std::string>{"backoff", "raise"});
  CHECK(Events("fairseq", {"init_scale=2^-11"}, "OOO") == std::vector<std::string>{"backoff", "backoff", "raise"});
  CHECK(Events("jax-step", {"init_scale=2"}, "OO") == std::vector<std::string>{"backoff", "floor"});
  CHECK(Events("megatron", {"init_scale=2"}, "OOO") == std::vector<std::string>{"forgiven", "backoff", "floor"});

  const Numbers falling = ScalesOf("pytorch", {}, std::string(166, 'O'));
  CHECK(falling[144] == 0x1p-128);
  CHECK(falling[165] == 0x1p-149);
  CHECK(falling[166] == 0);
  CHECK(ScalesOf("pytorch-fixed", {}, std::string(166, 'O')).back() == 0x1p-126);
  CHECK(ScalesOf("flax", {"min_scale=none"}, std::string(165, 'O')).back() == 0x1p-149);

  // The 1001st overflow in a row raises, with the state that it leaves.
  Scaler manager(PolicyWith("mindspore-manager"));
  for (int i = 0; i < 1000; ++i) REQUIRE_FALSE(manager.Next(ObservationOf('O')).raised);
  CHECK(manager.Next(ObservationOf('O')).raised);
}

TEST_CASE("metaseq's window shrinks at the floor, and then the scale doubles on every step") {
  const Settings settings = {"init_scale=1", "growth_interval=8", "min_scale=1"};
  CHECK(ScalesOf("metaseq", settings, "OOOFFF") == Numbers{1, 1, 1, 1, 2, 4, 4});
  CHECK(ScalesOf("metaseq-fixed", settings, "OOOFFF") == Numbers{1, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("Unscaling with the new scale halves the gradient of each growth step") {
  const Settings settings = {"init_scale=1024", "growth_interval=2"};
  CHECK(UsedGradients("deepspeed", settings, "FFFFFF") == Numbers{1, 1, 0.5, 1, 0.5, 1});
  CHECK(UsedGradients("deepspeed-fp16optimizer", settings, "FFFFFF") == Numbers{1, 1, 0.5, 1, 0.5, 1});
  CHECK(UsedGradients("mpx", settings, "FFFFFF") == Numbers{1, 0.5, 1, 0.5, 1, 0.5});
  CHECK(UsedGradients("colossalai", settings, "FFFFFF") == Numbers{1, 0.5, 1, 0.5, 1, 0.5});
  CHECK(UsedGradients("mpx", {"init_scale=2^15", "growth_interval=1"}, "F") == Numbers{32768.0 / 65504});
  for (const char* key :
       {"deepspeed-fixed", "deepspeed-fp16optimizer-fixed", "mpx-fixed", "colossalai-fixed", "pytorch"}) {
    INFO(key);
    CHECK(UsedGradients(key, settings, "FFFFFF") == Numbers(6, 1));
  }
}

TEST_CASE("fairscale does not unscale the step after an overflow") {
  const Settings settings = {"init_scale=1024"};
  CHECK(UsedGradients("fairscale-layerwise", settings, "FOFF") == Numbers{1, 512, 1});
  CHECK(UsedGradients("fairscale-layerwise-fixed", settings, "FOFF") == Numbers{1, 1, 1});
}

TEST_CASE("Each policy goes by the check of its project") {
  const auto seen = [](auto change) {
    Observation o = ObservationOf('F');
    change(o);
    return o;
  };
  const auto finite = [](std::string_view key, const Observation& o, const Settings& settings = {}) {
    return Scaler(PolicyWith(key, settings)).Next(o).finite;
  };
  const Observation scaled = seen([](Observation& o) { o.scaled_finite = false; });
  const Observation unscaled = seen([](Observation& o) { o.unscaled_finite = false; });
  const Observation sums = seen([](Observation& o) { o.sums_finite = false; });
  const Observation norm = seen([](Observation& o) { o.norm_finite = false; });
  const Observation scaled_norm = seen([](Observation& o) { o.scaled_norm_finite = false; });
  for (const char* key :
       {"pytorch", "keras", "megatron", "deepspeed", "colossalai", "mpx", "mxnet", "bmtrain", "chainer", "apex-amp"}) {
    INFO(key);
    CHECK_FALSE(finite(key, scaled));
    CHECK(finite(key, unscaled));
  }
  for (const char* key :
       {"jax-step", "tf-dynamic", "flax", "mindspore-cell", "fairscale-layerwise", "paddle", "static", "none"}) {
    INFO(key);
    CHECK_FALSE(finite(key, unscaled));
    CHECK(finite(key, scaled));
  }
  CHECK_FALSE(finite("paddle", scaled, {"device=cpu"}));
  CHECK_FALSE(finite("apex-fp16utils", sums));
  CHECK(finite("apex-fp16utils-fixed", sums));
  CHECK_FALSE(finite("fairseq", norm));
  CHECK_FALSE(finite("metaseq", norm));
  CHECK_FALSE(finite("deepspeed-fp16optimizer", scaled_norm));
  CHECK(finite("popart-als", unscaled));
  // What a policy needs is what its verdict depends on.
  CHECK(Scaler(PolicyWith("paddle", {"device=cpu"})).needs().scaled_finite);
  CHECK_FALSE(Scaler(PolicyWith("paddle", {"device=cpu"})).needs().unscaled_finite);
  CHECK(Scaler(PolicyWith("dynamic", {"check=scaled-norm"})).needs().scaled_norm_finite);
  CHECK(Scaler(PolicyWith("popart-als", {"bin_edge=0.5"})).needs().share_threshold == 32752);
}

TEST_CASE("A flag that is NaN is not an overflow to every rule, but a NaN gradient is") {
  // The kernel never forgives it, and leaves the hysteresis alone.
  CHECK(ScalesOf("apex-hysteresis", Window3({"hysteresis=3"}), "ONOO") == Numbers{1024, 1024, 512, 512, 256});
  CHECK(ScalesOf("pytorch-sharded-cpu", Window3(), "NNN").back() == 2048);
  CHECK(ScalesOf("pytorch", Window3(), "NNN").back() == 128);
  Observation gradient = ObservationOf('N');
  gradient.flag_nan = false;
  CHECK(Scaler(PolicyWith("apex-hysteresis", {"hysteresis=3"})).Next(gradient).event == Event::kForgiven);
  CHECK(Scaler(PolicyWith("pytorch-sharded-cpu")).Next(gradient).event == Event::kBackoff);
}

TEST_CASE("The log-max scaler takes an overflow as 65536 where 16 was meant") {
  const auto near = [](const Numbers& got, const Numbers& want) {
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(want[i]).epsilon(1e-6));
  };
  Scaler scaler(PolicyWith("openseq2seq-logmax"));
  Numbers scales;
  for (const double amax : {1.0, 8.0, 0.5, 2.0, 4.0}) {
    Observation seen = ObservationOf('F');
    seen.max_abs = amax;
    scaler.Next(seen);
    scales.push_back(scaler.loss_scale());
  }
  near(scales, {16384, 927.667, 1085.411, 1642.361, 1581.322});
  near(ScalesOf("openseq2seq-logmax", {}, "FFFOOFFF"), {1, 16384, 16384, 16384, 1, 1, 1, 1, 1});

  // One overflow after 500 quiet steps: how long S stays at its floor.
  const auto steps_at_floor = [](const char* key) {
    Scaler s(PolicyWith(key));
    for (int i = 0; i < 500; ++i) s.Next(ObservationOf('F'));
    s.Next(ObservationOf('O'));
    int steps = 0;
    for (; s.loss_scale() == 1 && steps < 20000; ++steps) s.Next(ObservationOf('F'));
    return steps;
  };
  CHECK(steps_at_floor("openseq2seq-logmax") == Approx(11000).epsilon(0.1));
  CHECK(steps_at_floor("openseq2seq-logmax-fixed") == 0);

  // A gradient of exactly 0 ends it.
  CHECK(std::isnan(ScalesOf("openseq2seq-logmax", {"amax=0"}, "FF").back()));
}

TEST_CASE("chainer doubles on every step until the first overflow, then creeps") {
  const Numbers got = ScalesOf("chainer", {"growth_interval=2"}, "FFFOOFFF");
  const Numbers want = {1, 2, 4, 8, 4, 2, 2.8284271247461903, 4.000000000000001, 5.6568542494923815};
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::fabs(got[i] - want[i]) <= 1e-12 * want[i]);
}

TEST_CASE("popart-als counts large elements and steps on every overflow") {
  Scaler scaler(PolicyWith("popart-als", {"init_scale=128", "threshold=0.25"}));
  Observation seen = ObservationOf('O');
  seen.share_above = 0.25;  // u == l * T/(1-T): not more
  const Scaler::Decision d = scaler.Next(seen);
  CHECK(d.apply);
  CHECK(d.finite);
  CHECK(scaler.loss_scale() == 256);
  seen.share_above = 0.26;
  scaler.Next(seen);
  CHECK(scaler.loss_scale() == 128);
  // A NaN is above no bound.
  CHECK(ScalesOf("popart-als", {"init_scale=128"}, "N").back() == 256);
}

TEST_CASE("optax gives up after M overflows in a row and applies, until a finite step") {
  const auto applied = [](const char* m) {
    Scaler scaler(PolicyWith("optax-apply-if-finite", {std::string("max_consecutive_errors=") + m}));
    std::string text;
    for (const char event : std::string("FOOOOFOOOF")) text += scaler.Next(ObservationOf(event)).apply ? 'a' : 's';
    return text;
  };
  CHECK(applied("2") == "assaaassaa");
  CHECK(applied("1") == "asaaaasaaa");
  CHECK(applied("0") == "aaaaaaaaaa");
}

TEST_CASE("Static scales skip or apply, and no scaling applies everything") {
  const auto applied = [](const Policy& policy) { return Scaler(policy).Next(ObservationOf('O')).apply; };
  CHECK_FALSE(applied(PolicyWith("static")));
  CHECK(applied(PolicyWith("static", {"on_overflow=apply"})));
  CHECK(applied(PolicyWith("none")));
  CHECK(ScalesOf("static", {"init_scale=3"}, "FOF") == Numbers{3, 3, 3, 3});
  CHECK(ScalesOf("none", {}, "FOF") == Numbers{1, 1, 1, 1});
}

TEST_CASE("A schedule is constant, piecewise, linear or cosine in log2") {
  CHECK(ScalesOf("schedule", {"scales=[8]"}, "FOF") == Numbers{8, 8, 8, 8});
  const Settings points = {"steps=[2, 6]", "scales=[2^4, 2^12]"};
  const auto with = [&](const char* shape) {
    Settings all = points;
    all.push_back(std::string("shape=") + shape);
    return ScalesOf("schedule", all, "FFFOFFF");
  };
  CHECK(with("piecewise") == Numbers{16, 16, 16, 16, 16, 16, 4096, 4096});
  CHECK(with("linear") == Numbers{16, 16, 16, 64, 256, 1024, 4096, 4096});
  const Numbers cosine = with("cosine");
  CHECK(cosine[2] == 16);
  CHECK(cosine[3] == Approx(std::exp2(4 + 8 * (1 - std::sqrt(0.5)) / 2)));
  CHECK(cosine[4] == 256);
  CHECK(cosine[6] == 4096);
  CHECK(ScalesOf("scripted", {"scales=[4, 2^3, 2]"}, "FOFF") == Numbers{4, 8, 2, 2, 2});
}

TEST_CASE("jax-step starts with the good steps that it is given") {
  CHECK(ScalesOf("jax-step", {"init_scale=4", "growth_interval=3", "good_steps=2"}, "FFFF") == Numbers{4, 8, 8, 8, 16});
  CHECK(Scaler(PolicyWith("jax-step", {"good_steps=7"})).initial_good_steps() == 7);
}

TEST_CASE("A billion steps with an overflow in ten thousand take less than two seconds", "[.benchmark]") {
  ForEachKind<Policy>([]<class P>() {
    if constexpr (P::kInfo.needs.max_abs || P::kInfo.needs.share_above) return;  // these look at more than a flag
    Policy policy = P();
    if constexpr (std::is_same_v<P, DeepSpeed> || std::is_same_v<P, DeepSpeedFixed>)
      std::get<P>(policy).raise_at_min = false;
    Scaler scaler(policy);
    const std::clock_t start = std::clock();
    for (int i = 0; i < 100'000; ++i) {
      if (!Drive(scaler, {'F', 9999}) || !Drive(scaler, {'O', 1})) break;
    }
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    INFO(P::kName);
    CHECK(seconds < 2);
  });
}

TEST_CASE("In a long stretch of good steps a policy is asked only where something happens") {
  ForEachKind<Policy>([]<class P>() {
    // Some look at more than a flag, and Chainer's scale moves on every good step.
    if constexpr (P::kInfo.needs.max_abs || P::kInfo.needs.share_above || std::is_same_v<P, Chainer>) return;
    Scaler scaler{Policy(P())};
    scaler.Next(ObservationOf('O'));
    int asked = 0;
    for (std::int64_t left = 9999; left > 0;) {
      const std::int64_t quiet = std::min(scaler.QuietSteps(), left);
      scaler.Advance(quiet);
      left -= quiet;
      if (left == 0) break;
      scaler.Next(ObservationOf('F'));
      ++asked;
      --left;
    }
    INFO(P::kName);
    CHECK(asked <= 50);
  });
}

TEST_CASE("Events are read with counts, strictly") {
  using Runs = std::vector<EventRun>;
  CHECK(ParseEvents("FFOFF", "--events") == Runs{{'F', 2}, {'O', 1}, {'F', 2}});
  CHECK(ParseEvents("100F 1O\nN # a note\n3F", "--events") == Runs{{'F', 100}, {'O', 1}, {'N', 1}, {'F', 3}});
  CHECK(ParseEvents("2F3F", "--events") == Runs{{'F', 5}});
  for (const char* text : {"", "  ", "FX", "0F", "12", "f", "-1F", "1000000000000001F", "999999999999999F 2F", "01F"}) {
    INFO(text);
    CHECK_THROWS_AS(ParseEvents(text, "--events"), InputError);
  }
  CHECK_THROWS_WITH(ParseEvents("F\nFQ", "e.txt"), ContainsSubstring("e.txt:2: found Q; allowed: F, O, N"));
}

TEST_CASE("A state is refused where it is not one of this policy") {
  Scaler scaler(PolicyWith("pytorch"));
  scaler.Next(ObservationOf('O'));
  const std::string before = scaler.StateJson();
  CHECK(before == R"({"policy": "pytorch", "loss_scale": 32768, "good_steps": 0})");
  for (const char* text :
       {R"({"policy": "keras", "loss_scale": 32768, "good_steps": 0})", R"({"policy": "pytorch", "loss_scale": 32768})",
        R"({"policy": "pytorch", "loss_scale": 32768, "good_steps": 0, "x": 1})",
        R"({"policy": "pytorch", "loss_scale": 1e300, "good_steps": 0})",
        R"({"policy": "pytorch", "loss_scale": 1, "good_steps": 9223372036854775807})", "[]", ""}) {
    INFO(text);
    CHECK_THROWS_AS(scaler.Restore(text, "final.json"), InputError);
    CHECK(scaler.StateJson() == before);
  }
  CHECK_THROWS_WITH(scaler.Restore(R"({"policy": "keras", "loss_scale": 32768, "good_steps": 0})", "final.json"),
                    ContainsSubstring("policy: found \"keras\"; allowed: \"pytorch\""));
}

}  // namespace
}  // namespace scaletrace
