// The generic policy and each named one that it can express, on random events: two independent implementations of the
// same rule.
#include <functional>
#include <optional>
#include <string>

#include "base/json.h"
#include "support.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

// What the options of dynamic are where a rule says nothing.
Dynamic Bare(double init_scale, std::int64_t growth_interval, Hold hold) {
  Dynamic d;
  d.init_scale = init_scale;
  d.growth_interval = growth_interval;
  d.hold = hold;
  d.min_scale.reset();
  d.max_scale.reset();
  d.on_inf = OnInf::kAllow;
  return d;
}

std::optional<double> Finite(double cap) { return std::isinf(cap) ? std::nullopt : std::optional<double>(cap); }
std::optional<double> Given(std::optional<float> limit) {
  return limit.value_or(0) == 0 ? std::nullopt : std::optional<double>(*limit);
}

struct Options {
  bool plain;             // factors that are powers of two, where the rule divides by the factor
  bool unscaling = true;  // whether the divisor of the gradients is compared too
};

template <class P>
void CheckAgrees(const Options& options, const std::function<std::optional<Dynamic>(const P&)>& express) {
  Dice dice(7);
  int compared = 0;
  for (int i = 0; i < 10000; ++i) {
    const P named = WithRandomParameters<P>(dice, options.plain);
    const int bad = dice.Of<int>({5, 20, 50, 80});
    std::string events;
    for (std::int64_t n = 1 + dice.Below(20); n > 0; --n) events += dice.Chance(bad) ? 'O' : 'F';
    if (FindProblem(named) || !Warnings(named).empty()) continue;
    const std::optional<Dynamic> generic = express(named);
    if (!generic || FindProblem(*generic)) continue;
    ++compared;
    Scaler a{Policy(named)}, b{Policy(*generic)};
    for (std::size_t step = 0; step < events.size(); ++step) {
      const Observation seen = ObservationOf(events[step]);
      const Scaler::Decision x = a.Next(seen), y = b.Next(seen);
      const bool same = x.finite == y.finite && x.apply == y.apply && x.event == y.event && x.raised == y.raised &&
                        (!options.unscaling || x.unscale_by == y.unscale_by) &&
                        (x.raised || a.loss_scale() == b.loss_scale()) && a.QuietSteps() == b.QuietSteps();
      if (!same && !x.raised) {
        INFO(P::kName << " " << FieldsToJson(named) << " as dynamic " << FieldsToJson(*generic) << ", step " << step
                      << " of " << events);
        INFO(a.loss_scale() << " " << Name(x.event) << " " << a.QuietSteps() << " and " << b.loss_scale() << " "
                            << Name(y.event) << " " << b.QuietSteps());
        FAIL_CHECK("dynamic and the named policy part");
        return;
      }
      if (x.raised != y.raised) {
        INFO(P::kName << " " << FieldsToJson(named) << " " << events);
        FAIL_CHECK("one raises");
        return;
      }
      if (x.raised) break;
    }
  }
  INFO(P::kName);
  CHECK(compared > 1000);
}

TEST_CASE("dynamic agrees with every policy that it can express") {
  CheckAgrees<JaxStep>({false}, [](const JaxStep& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF32);
    d.min_scale = 1;
    d.check = CheckOn::kUnscaled;
    return d;
  });
  const auto pytorch = []<class P>(const P& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF32Wide);
    d.growth_factor = p.growth_factor;
    d.backoff_factor = p.backoff_factor;
    d.on_inf = OnInf::kKeep;
    return d;
  };
  CheckAgrees<Pytorch>({false}, pytorch);
  CheckAgrees<PytorchFixed>({false}, [&](const PytorchFixed& p) {
    Dynamic d = pytorch(p);
    d.min_scale = 0x1p-126;
    return d;
  });
  CheckAgrees<PytorchShardedCpu>({false}, [&](const PytorchShardedCpu& p) {
    Dynamic d = pytorch(p);
    d.hold = Hold::kF32;
    d.on_inf = OnInf::kAllow;
    return d;
  });
  CheckAgrees<Keras>({false}, [](const Keras& p) { return Bare(p.init_scale, p.growth_interval, Hold::kF32); });
  CheckAgrees<KerasFixed>({false}, [](const KerasFixed& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF32);
    d.min_scale = 1;
    d.on_inf = OnInf::kKeep;
    return d;
  });
  CheckAgrees<ApexAmp>({false}, [](const ApexAmp& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF64);
    d.min_scale = p.min_scale;
    d.max_scale = Finite(p.max_scale);
    return d;
  });
  CheckAgrees<ApexFp16Utils>({true}, [](const ApexFp16Utils& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF64);
    d.growth_factor = p.factor;
    d.backoff_factor = 1 / p.factor;
    d.min_scale = 1;
    d.check = CheckOn::kSums;
    return d;
  });
  CheckAgrees<ApexHysteresis>({false}, [&](const ApexHysteresis& p) {
    Dynamic d = pytorch(p);
    d.tolerance_mode = ToleranceMode::kCountdown;
    d.hysteresis = p.hysteresis;
    d.refill = Refill::kAnyGood;
    return d;
  });
  const auto deepspeed = []<class P>(const P& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF64);
    d.first_extra = 1;
    d.tolerance_mode = ToleranceMode::kCountdown;
    d.hysteresis = p.hysteresis;
    d.refill = p.consecutive_hysteresis ? Refill::kAnyGood : Refill::kGrowth;
    d.min_scale = p.min_scale;
    d.floor_mode = p.raise_at_min ? FloorMode::kRaiseOnNext : FloorMode::kClamp;
    d.unscale = DivideBy::kNew;
    return d;
  };
  CheckAgrees<DeepSpeed>({false}, deepspeed);
  CheckAgrees<DeepSpeedFixed>({false}, [&](const DeepSpeedFixed& p) {
    Dynamic d = deepspeed(p);
    d.first_extra = 0;
    d.unscale = DivideBy::kOld;
    return d;
  });
  CheckAgrees<DeepSpeedFp16Optimizer>({false}, [](const DeepSpeedFp16Optimizer& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF64);
    d.first_extra = 1;
    d.min_scale = p.min_scale;
    d.check = CheckOn::kSums;
    d.unscale = DivideBy::kNew;
    return d;
  });
  const auto megatron = []<class P>(const P& p) {
    Dynamic d = Bare(p.init_scale, static_cast<std::int64_t>(p.growth_interval), Hold::kF32);
    d.growth_factor = p.growth_factor;
    d.backoff_factor = p.backoff_factor;
    d.tolerance_mode = ToleranceMode::kCountdown;
    d.hysteresis = p.hysteresis;
    d.min_scale = Given(p.min_scale);
    return d;
  };
  CheckAgrees<Megatron>({false}, megatron);
  CheckAgrees<MegatronFixed>({false}, [&](const MegatronFixed& p) {
    Dynamic d = megatron(p);
    d.on_inf = OnInf::kKeep;
    return d;
  });
  CheckAgrees<ColossalAi>({false}, [&](const ColossalAi& p) {
    Dynamic d = megatron(p);
    if (p.max_scale) d.max_scale = Finite(*p.max_scale);
    d.unscale = DivideBy::kNew;
    return d;
  });
  CheckAgrees<Fairseq>({true}, [](const Fairseq& p) -> std::optional<Dynamic> {
    if (!(p.init_scale > p.min_scale)) return std::nullopt;
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF64);
    d.growth_factor = p.factor;
    d.backoff_factor = 1 / p.factor;
    d.tolerance_mode = ToleranceMode::kFraction;
    d.fraction = p.tolerance;
    d.threshold = p.threshold;
    d.min_scale = p.min_scale;
    d.floor_mode = FloorMode::kRaiseWhenCrossed;
    d.check = CheckOn::kNorm;
    return d;
  });
  CheckAgrees<Metaseq>({false}, [](const Metaseq& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF64);
    d.window_scaling = 2;
    d.min_scale = p.min_scale;
    d.floor_mode = FloorMode::kRestore;
    d.check = CheckOn::kNorm;
    return d;
  });
  CheckAgrees<Fairseq2>({false}, [](const Fairseq2& p) -> std::optional<Dynamic> {
    if (p.min_scale < 2e-5) return std::nullopt;  // there the floor is not looked at
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF32Wide);
    d.growth_factor = p.factor;
    d.backoff_factor = 1 / p.factor;
    d.min_scale = p.min_scale;
    d.on_inf = OnInf::kKeep;
    return d;
  });
  CheckAgrees<Tf1Contrib>({false}, [](const Tf1Contrib& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF32);
    d.growth_factor = p.growth_factor;
    d.backoff_factor = p.backoff_factor;
    d.tolerance_mode = ToleranceMode::kBatch;
    d.hysteresis = p.decr_every_n;
    d.cleared_by_good = false;
    d.min_scale = 1;
    d.on_inf = OnInf::kKeep;
    d.check = CheckOn::kUnscaled;
    return d;
  });
  const auto by_factor = []<class P>(const P& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF32);
    d.growth_factor = static_cast<double>(p.factor);
    d.backoff_factor = 1 / static_cast<double>(p.factor);
    d.min_scale = 1;
    d.on_inf = OnInf::kKeep;
    d.check = CheckOn::kUnscaled;
    return d;
  };
  CheckAgrees<TfDynamic>({true}, by_factor);
  CheckAgrees<MindSporeScaler>({true}, by_factor);
  CheckAgrees<Jmp>({true}, [&](const Jmp& p) {
    Dynamic d = by_factor(p);
    d.min_scale = p.min_scale;
    return d;
  });
  CheckAgrees<Mpx>({true}, [&](const Mpx& p) {
    Dynamic d = by_factor(p);
    d.min_scale = p.min_scale;
    d.max_scale = 65504;
    d.check = CheckOn::kScaled;
    d.unscale = DivideBy::kNew;
    return d;
  });
  CheckAgrees<MindSporeCell>({true}, [&](const MindSporeCell& p) {
    Dynamic d = by_factor(p);
    d.on_inf = OnInf::kAllow;
    return d;
  });
  CheckAgrees<MindSporeManager>({false}, [&](const MindSporeManager& p) {
    Dynamic d = by_factor(p);
    d.hold = Hold::kF64;
    d.on_inf = OnInf::kAllow;
    d.max_consecutive = 1000;
    return d;
  });
  const auto flax = []<class P>(const P& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF32);
    d.growth_factor = p.growth_factor;
    d.backoff_factor = p.backoff_factor;
    d.period_extra = 1;
    d.min_scale = Given(p.min_scale);
    d.on_inf = OnInf::kSaturate;
    d.check = CheckOn::kUnscaled;
    return d;
  };
  CheckAgrees<Flax>({true}, flax);
  CheckAgrees<FlaxFixed>({true}, [&](const FlaxFixed& p) {
    Dynamic d = flax(p);
    d.period_extra = 0;
    d.on_inf = OnInf::kKeep;
    return d;
  });
  const auto paddle = []<class P>(const P& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF32);
    d.growth_factor = p.growth_factor;
    d.backoff_factor = p.backoff_factor;
    d.tolerance_mode = ToleranceMode::kBatch;
    d.hysteresis = p.decr_every_n;
    d.check = p.device == PaddleDevice::kGpu ? CheckOn::kUnscaled : CheckOn::kScaled;
    return d;
  };
  CheckAgrees<Paddle>({false}, paddle);
  CheckAgrees<PaddleOp>({false}, [&](const PaddleOp& p) {
    Dynamic d = paddle(p);
    d.min_scale = 1;
    d.on_inf = OnInf::kKeep;
    return d;
  });
  const auto mxnet = []<class P>(const P& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF64);
    d.max_scale = 0x1p24;
    return d;
  };
  CheckAgrees<MxnetFixed>({false}, mxnet);
  CheckAgrees<Mxnet>({false}, [&](const Mxnet& p) {
    Dynamic d = mxnet(p);
    d.publish_delay = 1;
    return d;
  });
  CheckAgrees<OpenSeq2SeqBackoff>({true}, [&](const OpenSeq2SeqBackoff& p) -> std::optional<Dynamic> {
    if (p.increment_first) return std::nullopt;
    Dynamic d = by_factor(p);
    d.on_inf = OnInf::kAllow;
    d.min_scale = p.min_scale;
    d.max_scale = p.max_scale;
    return d;
  });
  CheckAgrees<OnnxRuntime>({false}, [](const OnnxRuntime& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF64);
    d.min_scale = p.min_scale;
    d.max_scale = Finite(p.max_scale);
    return d;
  });
  const auto bmtrain = []<class P>(const P& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF64);
    d.growth_factor = p.factor;
    d.backoff_factor = 1 / p.factor;
    d.min_scale = p.min_scale;
    d.max_scale = Finite(p.max_scale);
    return d;
  };
  CheckAgrees<BmTrain>({true}, [&](const BmTrain& p) {
    Dynamic d = bmtrain(p);
    d.floor_mode = FloorMode::kGate;
    d.cap_mode = d.max_scale ? CapMode::kGate : CapMode::kClamp;
    return d;
  });
  CheckAgrees<BmTrainFixed>({true}, bmtrain);
  CheckAgrees<Chainer>({false}, [](const Chainer& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF64);
    d.growth_mode = GrowthMode::kEveryStep;
    d.min_scale = 1;
    d.max_scale = 65504;
    return d;
  });
  const auto fairscale = []<class P>(const P& p) {
    Dynamic d = Bare(p.init_scale, p.growth_interval, Hold::kF64);
    d.growth_factor = p.growth_factor;
    d.backoff_factor = p.backoff_factor;
    d.min_scale = p.min_scale;
    d.max_scale = Finite(p.max_scale);
    d.check = CheckOn::kUnscaled;
    return d;
  };
  CheckAgrees<FairscaleLayerwiseFixed>({false}, fairscale);
}

TEST_CASE("A countdown of dynamic that nothing refills stays spent") {
  Dynamic d;
  d.init_scale = 1024;
  d.growth_interval = 2;
  d.tolerance_mode = ToleranceMode::kCountdown;
  d.hysteresis = 2;
  d.refill = Refill::kNever;
  CHECK(Scales(d, "OFFOFFO") == std::vector<double>{1024, 1024, 1024, 2048, 1024, 1024, 2048, 1024});
  d.refill = Refill::kGrowth;
  CHECK(Scales(d, "OFFOFFO") == std::vector<double>{1024, 1024, 1024, 2048, 2048, 2048, 4096, 4096});
}

}  // namespace
}  // namespace scaletrace
