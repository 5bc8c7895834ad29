// What a sweep is: a base config and axes, and how run i becomes a config. Nothing is listed: run i is computed from i, in the time of setting its keys, so
// that a plan of a billion runs is as small as one of ten. Running it: sweep.h; what its folder holds: parts.h.
//
// Combinations are counted with the last axis fastest; with `repeat` each one stands for that many runs in a row, of seeds seed, seed + 1, .... `cap` takes
// that many runs of all, spread evenly: combination j of n is drawn from the j-th of n equal parts. `where` drops combinations but renumbers none: the numbers
// of the others stay what they were.
#ifndef SCALETRACE_SWEEP_PLAN_H_
#define SCALETRACE_SWEEP_PLAN_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "config/keys.h"
#include "sweep/axis.h"
#include "sweep/condition.h"
#include "train/run_block.h"

namespace scaletrace {

// Without `cap` no sweep is larger.
inline constexpr std::uint64_t kMostRunsWithoutCap = 10'000'000;

enum class KeepTraces : std::uint8_t { kNone, kAll, kDiverged, kTrouble, kSample };

// What plan.json says: enough to read the parts of a folder and put them together.
struct PlanFacts {
  std::uint64_t format = 1;
  std::string hash;         // of everything that the results depend on
  std::string name;
  std::uint64_t runs = 0;   // run numbers are below this
  std::uint64_t block = 1;  // runs that are assigned to a shard together
  bool filtered = false;    // `where` may have dropped some of the numbers
  std::string header;       // first line of results.csv, without its end

  bool operator==(const PlanFacts&) const = default;
  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"format", "version of the folder's files"}, self.format);
    v.Value({"hash", "of everything that the results depend on"}, self.hash);
    v.Value({"name", "of the base config"}, self.name);
    v.Value({"runs", "numbers of runs are below this"}, self.runs);
    v.Value({"block", "runs that are assigned to a shard together"}, self.block);
    v.Value({"filtered", "whether a condition may have dropped runs"}, self.filtered);
    v.Value({"header", "of results.csv"}, self.header);
  }
};

class SweepPlan {
 public:
  // From YAML: a config with the key `sweep` (docs/sweeps.md). `overrides` as of --set, sweep.KEY=VALUE among them. Throws InputError (kConfig), IoError. What can be
  // said about single values is checked here, for each kind of config that the axes make (a few thousand of them at most); what only a combination shows is for
  // Make.
  static SweepPlan Read(const std::string& path, const std::vector<std::string>& overrides = {});
  SweepPlan(std::string_view text, const std::string& file, const std::string& folder, const std::vector<std::string>& overrides = {});

  const std::string& text() const { return text_; }  // as given
  const PlanFacts& facts() const { return facts_; }
  const std::vector<Axis>& axes() const { return axes_; }
  std::uint64_t combinations() const { return combinations_; }  // of all axes, before `cap` and `where`
  std::uint64_t repeat() const { return repeat_; }
  std::uint64_t runs() const { return facts_.runs; }
  bool capped() const { return kept_combinations_ < combinations_; }
  const std::string& where() const { return where_text_; }
  KeepTraces keep_traces() const { return keep_traces_; }
  std::uint64_t sample() const { return sample_; }  // of kSample
  // Whether the trace of this run is kept, as far as that does not depend on its outcome.
  bool InSample(std::uint64_t run) const;
  // Sentences about what is allowed but hardly meant (ConfigWarnings of the first runs, without repetition).
  std::vector<std::string> Warnings() const;

  struct Made {
    bool dropped = false;  // by `where`
    std::string error;     // why the combination makes no config; what `config` holds then is only good for its cells
  };
  // The config of a run (a number below runs()); any threads at once. `config` may hold anything before: its memory is used again.
  Made Make(std::uint64_t run, RunConfig& config) const;

  // Its row, with the end of line. `outcome` is not looked at where error is not empty.
  void AppendRow(std::uint64_t run, const RunConfig& config, const std::string& error, const RunOutcome& outcome, std::string& out) const;

 private:
  struct Base {
    RunConfig config;
    std::string error;
  };

  void ReadSweep(const YamlNode& sweep, const std::string& name);
  void CheckValues() const;
  Base MakeBase(std::uint64_t structure) const;
  std::shared_ptr<const Base> BaseOf(std::uint64_t structure) const;
  // The setting of each axis in a combination.
  void Digits(std::uint64_t combination, std::vector<std::uint64_t>& digits) const;
  std::uint64_t StructureOf(const std::vector<std::uint64_t>& digits) const;
  std::uint64_t CombinationOf(std::uint64_t run) const;
  std::string Hash(const YamlNode& sweep) const;
  std::uint64_t BlockSize() const;

  std::string text_, file_, folder_;
  YamlNode root_;  // without `sweep`
  std::vector<Axis> axes_;
  std::vector<std::string> columns_;
  std::uint64_t combinations_ = 1, kept_combinations_ = 1, structures_ = 1;
  std::uint64_t repeat_ = 1;
  std::string where_text_;
  std::optional<Condition> where_;
  KeepTraces keep_traces_ = KeepTraces::kNone;
  std::uint64_t sample_ = 0;
  PlanFacts facts_;

  // Configs by structure, made when first asked for.
  struct Cache {
    std::mutex mutex;
    std::unordered_map<std::uint64_t, std::shared_ptr<const Base>> bases;
  };
  std::unique_ptr<Cache> cache_ = std::make_unique<Cache>();
};

// A cell as CSV needs it: in quotes where it has a comma, a quote or a line's end.
void AppendCsvCell(std::string_view text, std::string& out);

}  // namespace scaletrace

#endif  // SCALETRACE_SWEEP_PLAN_H_
