#include "train/run_block.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <type_traits>

#include "base/error.h"

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

RunOutcome OutcomeOf(const Run& run, const RunConfig& config, const ScaleTally& tally) {
  RunOutcome outcome;
  outcome.summary = run.summary();
  outcome.scale_median = tally.LowerMedian();
  if (const double ceiling = ScaleCeiling(config.scaler); ceiling > 0) {
    // A policy that holds its scale as a float stops at the ceiling rounded to one.
    const auto rounded = static_cast<double>(static_cast<float>(ceiling));
    outcome.steps_at_ceiling = tally.Count(ceiling) + (rounded != ceiling ? tally.Count(rounded) : 0);
  }
  return outcome;
}

std::vector<RunOutcome> RunBlock(std::span<const RunConfig> configs, const KernelTable& kernels, const std::function<bool()>& keep_going) {
  std::vector<RunOutcome> outcomes;
  outcomes.reserve(configs.size());
  for (const RunConfig& given : configs) {
    if (!keep_going()) break;
    RunConfig config = given;
    config.trace.columns = {"step"};  // so that nothing is computed for a trace
    std::optional<Run> run;
    try {
      run.emplace(config, kernels);
    } catch (const InputError& e) {
      if (e.kind() != InputError::Kind::kConfig) throw;
      outcomes.emplace_back().error = e.what();
      continue;
    }
    ScaleTally tally;
    if (!TakeAllSteps(*run, keep_going, [](std::span<const StepRecord>) {}, tally)) break;
    outcomes.push_back(OutcomeOf(*run, config, tally));
  }
  return outcomes;
}

}  // namespace scaletrace
