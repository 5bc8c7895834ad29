#include "train/run_block.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "train/many_runs.h"

namespace scaletrace {
namespace {

constexpr double kSecondsOfAStretch = 0.02;
constexpr std::size_t kFirstStretch = 64, kLargestStretch = 4096;

// Finds the field max_scale of a policy.
struct CeilingFinder {
  double ceiling = 0;
  template <class T>
  void Value(const Field& field, const T& value) {
    if (field.key != "max_scale") return;
    if constexpr (std::is_arithmetic_v<T>) {
      ceiling = static_cast<double>(value);
    } else if constexpr (kIsOptional<T>) {
      if (value) ceiling = static_cast<double>(*value);
    }
  }
  template <class T>
  void Group(const Field&, const T&) {}
  template <class T>
  void Kind(const Field&, const T&) {}
};

}  // namespace

double ScaleCeiling(const Policy& policy) {
  return std::visit(
      []<class P>(const P& p) {
        CeilingFinder finder;
        P::Visit(p, finder);
        // Where floor and ceiling are one, the scale cannot move and is at no limit.
        const double fixed = P::kInfo.floor < P::kInfo.ceiling ? P::kInfo.ceiling : 0.0;
        const double ceiling = finder.ceiling != 0 ? finder.ceiling : fixed;
        return std::isfinite(ceiling) ? ceiling : 0.0;
      },
      policy);
}

bool TakeAllSteps(Run& run, const std::function<bool()>& keep_going, const std::function<void(std::span<const StepRecord>)>& each, ScaleTally& tally) {
  std::vector<StepRecord> records(kFirstStretch);
  while (!run.done()) {
    if (!keep_going()) return false;
    const auto start = std::chrono::steady_clock::now();
    const std::size_t count = run.Steps(records);
    const std::span<const StepRecord> taken = std::span(records).first(count);
    for (const StepRecord& record : taken) tally.Add(record.loss_scale);
    each(taken);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (seconds < kSecondsOfAStretch / 2 && records.size() < kLargestStretch) records.resize(records.size() * 2);
    if (seconds > kSecondsOfAStretch * 2 && records.size() > 1) records.resize(records.size() / 2);
  }
  return true;
}

RunOutcome OutcomeOf(const Summary& summary, const RunConfig& config, const ScaleTally& tally) {
  RunOutcome outcome;
  outcome.summary = summary;
  outcome.scale_median = tally.LowerMedian();
  if (const double ceiling = ScaleCeiling(config.scaler); ceiling > 0) {
    // A policy that holds its scale as a float stops at the ceiling rounded to one.
    const auto rounded = static_cast<double>(static_cast<float>(ceiling));
    outcome.steps_at_ceiling = tally.Count(ceiling) + (rounded != ceiling ? tally.Count(rounded) : 0);
  }
  return outcome;
}

namespace {

// The outcomes of the runs that share lanes.
class OutcomeCollector : public ManyRunsObserver {
 public:
  OutcomeCollector(std::span<const RunConfig> configs, std::vector<RunOutcome>& outcomes, std::vector<char>& ended)
      : configs_(configs), outcomes_(outcomes), ended_(ended), tallies_(configs.size()) {}
  void OnSteps(std::size_t run, const StepRecord& record, std::int64_t count) override { tallies_[run].Add(record.loss_scale, count); }
  void OnEnd(std::size_t run, const Summary& summary, std::span<const float>, std::span<const float>) override {
    outcomes_[run] = OutcomeOf(summary, configs_[run], tallies_[run]);
    ended_[run] = true;
    tallies_[run] = {};
  }

 private:
  std::span<const RunConfig> configs_;
  std::vector<RunOutcome>& outcomes_;
  std::vector<char>& ended_;
  std::vector<ScaleTally> tallies_;  // empty but for the runs that are under way
};

// The outcome of one run by itself; nullopt where it was told to stop before its end.
std::optional<RunOutcome> RunAlone(RunConfig config, const KernelTable& kernels, const std::function<bool()>& keep_going) {
  config.trace.columns = {"step"};  // so that nothing is computed for a trace
  std::optional<Run> run;
  try {
    run.emplace(config, kernels);
  } catch (const InputError& e) {
    if (e.kind() != InputError::Kind::kConfig) throw;
    RunOutcome outcome;
    outcome.error = e.what();
    return outcome;
  }
  ScaleTally tally;
  if (!TakeAllSteps(*run, keep_going, [](std::span<const StepRecord>) {}, tally)) return std::nullopt;
  return OutcomeOf(run->summary(), config, tally);
}

}  // namespace

std::vector<RunOutcome> RunBlock(std::span<const RunConfig> configs, const KernelTable& kernels, const std::function<bool()>& keep_going, std::size_t* together) {
  bool going = true;
  const std::function<bool()> goes_on = [&] { return going = going && keep_going(); };
  std::vector<RunOutcome> outcomes(configs.size());
  std::vector<char> ended(configs.size());
  if (goes_on()) {
    std::vector<std::size_t> all(configs.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    OutcomeCollector collector(configs, outcomes, ended);
    const std::vector<std::size_t> left = RunTogether(configs, all, kernels, goes_on, collector);
    if (together != nullptr) *together = configs.size() - left.size();
    for (const std::size_t run : left) {
      if (!goes_on()) break;
      if (std::optional<RunOutcome> outcome = RunAlone(configs[run], kernels, goes_on)) {
        outcomes[run] = std::move(*outcome);
        ended[run] = true;
      }
    }
  }
  outcomes.resize(static_cast<std::size_t>(std::find(ended.begin(), ended.end(), false) - ended.begin()));
  return outcomes;
}

}  // namespace scaletrace
