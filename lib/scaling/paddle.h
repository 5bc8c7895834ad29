// Paddle's two modes, which disagree: paddle (eager) and paddle-op (static graph).
#ifndef SCALETRACE_SCALING_PADDLE_H_
#define SCALETRACE_SCALING_PADDLE_H_

#include "scaling/rules.h"

namespace scaletrace {

enum class PaddleDevice : std::uint8_t { kGpu, kCpu };
inline constexpr std::string_view kPaddleDeviceNames[] = {"gpu", "cpu"};
constexpr std::span<const std::string_view> EnumNames(PaddleDevice) { return kPaddleDeviceNames; }

template <bool kOp>
struct PaddleRule : Rule<TwoCountsState<float>, Check::kUnscaled> {
  static constexpr PolicyInfo kInfo = [] {
    PolicyInfo i = {
        .key = "paddle",
        .project = "Paddle (eager)",
        .file = "python/paddle/amp/grad_scaler.py",
        .summary =
            "backs off after D overflows in a row, and then needs D more; no floor, no cap, no guard: grows to inf and "
            "stays there",
        .rule =
            "O: good <- 0;  bad <- bad+1;  if bad == D: S <- S*b, bad <- 0, else forgiven\n"
            "F: bad <- 0;  good <- good+1;  if good == W: S <- S*g, good <- 0",
        .hold = Hold::kF32,
        .needs = {.unscaled_finite = true, .scaled_finite = true},
        .claims = {.never_grows_on_overflow = true,
                   .keeps_powers_of_two = true,
                   .stays_within_limits = true,
                   .quiet_steps_exact = true},
    };
    if (kOp) {
      i.key = "paddle-op";
      i.project = "Paddle (static graph)";
      i.file = "the update_loss_scaling operator";
      i.summary = "paddle with a floor of 1 and a guard: a growth to inf keeps S";
      i.rule =
          "O: as paddle, but S <- max(S*b, 1)\n"
          "F: as paddle, but S <- S*g only if that is finite";
      i.floor = 1;
      i.claims.stays_positive = i.claims.stays_finite = true;
    }
    return i;
  }();
  static constexpr std::string_view kName = kInfo.key, kDoc = kInfo.summary;

  float init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  std::int64_t decr_every_n = 1;
  PaddleDevice device = PaddleDevice::kGpu;

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value(InitScale(), self.init_scale);
    v.Value(GrowthFactor(MoreThan(1)), self.growth_factor);
    v.Value(BackoffFactor(LessThan(1)), self.backoff_factor);
    v.Value(GrowthInterval(), self.growth_interval);
    v.Value({"decr_every_n", "overflows in a row for one backoff", kCount}, self.decr_every_n);
    v.Value({"device", "gpu checks the unscaled gradients, cpu the scaled ones"}, self.device);
  }

  State Start() const { return {init_scale}; }
  bool Finite(const Observation& o) const { return device == PaddleDevice::kGpu ? o.unscaled_finite : o.scaled_finite; }
  Needs NeedsNow() const { return NeedsFor(device == PaddleDevice::kGpu ? Check::kUnscaled : Check::kScaled); }
  Outcome<State> Next(const State& s, const Observation& o) const {
    if (!Finite(o)) {
      if (s.bad_steps + 1 != decr_every_n)
        return {.next = {s.loss_scale, 0, s.bad_steps + 1}, .event = Event::kForgiven, .apply = false};
      const float wanted = TimesF32(s.loss_scale, backoff_factor);
      const auto c = Shrunk(s.loss_scale, wanted, kOp ? std::max(wanted, 1.0f) : wanted);
      return {.next = {c.scale, 0, 0}, .event = c.event, .apply = false};
    }
    if (s.good_steps + 1 != growth_interval) return {.next = {s.loss_scale, s.good_steps + 1, 0}};
    const float wanted = TimesF32(s.loss_scale, growth_factor);
    const auto c = kOp ? GrownIfFinite(s.loss_scale, wanted) : Grown(s.loss_scale, wanted);
    return {.next = {c.scale, 0, 0}, .event = c.event};
  }
  std::int64_t QuietSteps(const State& s) const { return QuietUntilEqual(s.good_steps, growth_interval); }
  State Advance(const State& s, std::int64_t n) const {
    return {s.loss_scale, s.good_steps + n, n > 0 ? 0 : s.bad_steps};
  }
};
using Paddle = PaddleRule<false>;
using PaddleOp = PaddleRule<true>;

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_PADDLE_H_
