// Runs whose steps are packed against the same runs in rows and features (a column about a tensor keeps them there), under every policy and on several threads.
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "train/run.h"

namespace scaletrace {
namespace {

template <std::size_t... kI>
std::vector<Policy> EveryPolicy(std::index_sequence<kI...>) {
  return {std::variant_alternative_t<kI, Policy>()...};
}

struct Taken {
  std::vector<StepRecord> records;
  std::vector<float> w, b;
  std::string path;
  int threads;
};

Taken Take(const RunConfig& config, int threads) {
  Run run(config, CompiledKernels().front(), threads);
  Taken taken;
  taken.records.resize(static_cast<std::size_t>(config.steps));
  taken.records.resize(run.Steps(taken.records));
  taken.w = run.model().w();
  taken.b = run.model().b();
  taken.path = run.model().path();
  taken.threads = run.model().threads();
  return taken;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::isnan(a[i]) && std::isnan(b[i])) && std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return false;
  }
  return true;
}

TEST_CASE("packed runs equal those in rows and features under every policy, through bursts and overflows, at 1, 2 and 5 threads") {
  std::size_t skipped = 0, several = 0;
  std::uint64_t seed = 0;
  for (const Policy& policy : EveryPolicy(std::make_index_sequence<std::variant_size_v<Policy>>())) {
    if (FindProblem(policy)) continue;
    ++seed;
    RunConfig config;
    SpikesData data;
    // Shapes with remainders; each third one is large enough for five threads.
    data.samples = seed % 3 == 0 ? 331 : static_cast<std::int64_t>(40 + seed);
    data.features = seed % 3 == 0 ? 481 : static_cast<std::int64_t>(30 + 2 * seed);
    data.outputs = seed % 3 == 0 ? 37 : static_cast<std::int64_t>(1 + seed % 7);
    data.every = 7;
    data.factor = 3e38f;
    config.data = data;
    config.seed = seed;
    config.steps = 24;
    config.scaler = policy;
    config.precision.profile = seed % 2 == 0 ? Profile::kStrict : Profile::kExcess;
    Sgd sgd;
    sgd.lr = 1e-4f;
    config.optimizer = sgd;
    INFO(Scaler(policy).info().key << " " << data.samples << "x" << data.features << "x" << data.outputs);
    RunConfig other = config;
    other.trace.columns = {"step", "loss", "gradient_underflow"};
    const Taken expected = Take(other, 1);
    REQUIRE(expected.path == "rows and features");
    for (const int threads : {1, 2, 5}) {
      const Taken taken = Take(config, threads);
      REQUIRE(taken.path.starts_with("packed"));
      several += taken.threads == threads && threads > 1;
      REQUIRE(taken.records.size() == expected.records.size());
      for (std::size_t i = 0; i < taken.records.size(); ++i) {
        const StepRecord &a = taken.records[i], &b = expected.records[i];
        const auto same = [](auto x, auto y) { return x == y || (x != x && y != y); };
        REQUIRE((a.step == b.step && same(a.loss, b.loss) && same(a.loss_scale, b.loss_scale) && a.good_steps == b.good_steps));
        REQUIRE((a.grads_finite == b.grads_finite && a.event == b.event && a.skipped_total == b.skipped_total));
      }
      REQUIRE(SameBits(taken.w, expected.w));
      REQUIRE(SameBits(taken.b, expected.b));
      skipped += static_cast<std::size_t>(taken.records.back().skipped_total);
    }
  }
  CHECK(skipped > 50);
  CHECK(several >= 20);
}

}  // namespace
}  // namespace scaletrace
