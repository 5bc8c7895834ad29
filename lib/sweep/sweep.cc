#include "sweep/sweep.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "config/config.h"
#include "sweep/verdict.h"
#include "trace/csv_writer.h"
#include "train/run.h"
#include "train/run_block.h"

namespace scaletrace {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Range = std::pair<std::uint64_t, std::uint64_t>;  // first, end

constexpr double kSecondsBetweenSyncs = 2, kSecondsToStop = 1.5;
// A killed process loses what its threads have in hand; runs that are taken together are faster. So batches start small and grow as long as they are short.
constexpr double kShortBatch = 0.5, kLongBatch = 2;
constexpr auto kPollInterval = std::chrono::milliseconds(50);
constexpr std::uint64_t kFirstBatch = 1, kLargestBatch = 4096, kSmallestShare = 16;

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The runs that are to do, handed out in order. Lists only what is missing, not every run.
class WorkList {
 public:
  WorkList(const PlanFacts& facts, const Shard& shard, const DoneRuns& done) : facts_(facts), shard_(shard), missing_(done.Missing(0, facts.runs)) {
    for (const Range& range : missing_) count_ += Overlap(range);
    left_ = count_;
  }

  std::uint64_t count() const { return count_; }

  // Up to `most` runs as ranges, each within a block; none: nothing is left. `threads` share what is left near the end.
  std::vector<Range> Take(std::uint64_t most, std::uint64_t threads) {
    const std::lock_guard lock(mutex_);
    most = std::min(most, std::max(std::min(most, kSmallestShare), left_ / (2 * threads)));
    std::vector<Range> taken;
    while (most > 0 && at_ < missing_.size()) {
      Range& range = missing_[at_];
      const std::uint64_t first = NextOwn(range.first);
      if (first >= range.second) {
        ++at_;
        continue;
      }
      const std::uint64_t block_end = (first / facts_.block + 1) * facts_.block;
      const std::uint64_t end = std::min({block_end, range.second, first + most});
      // Blocks that lie side by side make one record.
      if (!taken.empty() && taken.back().second == first) {
        taken.back().second = end;
      } else {
        taken.emplace_back(first, end);
      }
      most -= end - first;
      left_ -= end - first;
      range.first = end;
    }
    return taken;
  }

 private:
  // The first run from `run` on that is in a block of this shard.
  std::uint64_t NextOwn(std::uint64_t run) const {
    const std::uint64_t block = run / facts_.block;
    const std::uint64_t ahead = (shard_.number - 1 + shard_.count - block % shard_.count) % shard_.count;
    return ahead == 0 ? run : (block + ahead) * facts_.block;
  }
  std::uint64_t RunsBelow(std::uint64_t end) const {
    const std::uint64_t blocks = end / facts_.block;
    const std::uint64_t own = (blocks + shard_.count - shard_.number) / shard_.count;
    return own * facts_.block + (shard_.Has(blocks) ? end % facts_.block : 0);
  }
  std::uint64_t Overlap(const Range& range) const { return RunsBelow(range.second) - RunsBelow(range.first); }

  const PlanFacts facts_;
  const Shard shard_;
  std::mutex mutex_;
  std::vector<Range> missing_;
  std::size_t at_ = 0;
  std::uint64_t count_ = 0, left_ = 0;
};

// Runs a config and writes its trace. nullopt where keep_going said false.
std::optional<RunOutcome> RunWithTrace(const RunConfig& config, const KernelTable& kernels, const std::function<bool()>& keep_going, const SweepFolder& folder,
                                       std::uint64_t number, const std::string& temporary) {
  Run run(config, kernels);
  std::error_code error;
  fs::remove(temporary, error);
  ScaleTally tally;
  {
    TraceWriter trace(temporary, config.trace);
    if (!TakeAllSteps(run, keep_going, [&](std::span<const StepRecord> records) { trace.Add(records); }, tally)) {
      fs::remove(temporary, error);
      return std::nullopt;
    }
    trace.Finish();
  }
  const std::string place = folder.traces + "/" + std::to_string(number);
  fs::create_directories(place, error);
  if (error) throw IoError(place, "cannot make the folder", error.value());
  WriteFileAtomically(temporary + ".yaml", ResolvedYaml(config), false);
  fs::rename(temporary + ".yaml", place + "/config.yaml", error);
  if (error) throw IoError(place + "/config.yaml", "cannot replace", error.value());
  fs::rename(temporary, place + "/trace.csv", error);
  if (error) throw IoError(place + "/trace.csv", "cannot replace", error.value());
  return OutcomeOf(run.summary(), config, tally);
}

// Everything in the folder's file system reaches the disk.
void SyncAll(const SweepFolder& folder) {
  const int fd = ::open(folder.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) throw IoError(folder.path, "cannot open", errno);
  const int result = ::syncfs(fd);
  const int error = errno;
  ::close(fd);
  if (result != 0 && error != EINVAL && error != EROFS) throw IoError(folder.path, "cannot write", error);
}

// What the threads of one process share.
class Workers {
 public:
  Workers(const SweepPlan& plan, const KernelTable& kernels, const SweepFolder& folder, WorkList& work, PartWriter& part, int threads)
      : plan_(plan), kernels_(kernels), folder_(folder), work_(work), part_(part), running_(threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this, threads, i] { Work(static_cast<std::uint64_t>(threads), i); });
  }
  ~Workers() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void Stop() { stop_ = true; }
  // Whether all threads have ended, after waiting a little for it.
  bool Wait() {
    std::unique_lock lock(mutex_);
    ended_.wait_for(lock, kPollInterval, [this] { return running_ == 0; });
    return running_ == 0;
  }
  void AddTo(SweepProgress& progress) {
    const std::lock_guard lock(mutex_);
    progress.done += counts_.done_here;
    progress.done_here = counts_.done_here;
    progress.dropped = counts_.dropped;
    progress.diverged = counts_.diverged;
    progress.stuck = counts_.stuck;
    progress.invalid = counts_.invalid;
  }
  // The error that ended the threads, if one did.
  void Rethrow() {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }
  std::string first_error() {
    const std::lock_guard lock(mutex_);
    return first_error_;
  }

 private:
  struct Item {
    std::uint64_t run;
    SweepPlan::Made made;
    bool traced = false;      // run on its own, with its trace
    std::size_t place = 0;    // in the configs of its kind
  };

  void Work(std::uint64_t threads, int index) {
    try {
      std::uint64_t batch = kFirstBatch;
      while (!stop_) {
        const std::vector<Range> ranges = work_.Take(batch, threads);
        if (ranges.empty()) break;
        const Clock::time_point start = Clock::now();
        DoBatch(ranges, index);
        const double seconds = SecondsSince(start);
        if (seconds < kShortBatch && batch < kLargestBatch) batch *= 2;
        if (seconds > kLongBatch && batch > 1) batch /= 2;
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      stop_ = true;
    }
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) ended_.notify_all();
  }

  void DoBatch(const std::vector<Range>& ranges, int index) {
    const auto keep_going = [this] { return !stop_.load(std::memory_order_relaxed); };
    // Kept by the thread from batch to batch: making a config anew costs more than changing one.
    thread_local std::vector<RunConfig> configs, alone;
    std::vector<Item> items;
    std::size_t together = 0, traced = 0;
    for (const auto& [first, end] : ranges) {
      for (std::uint64_t run = first; run < end; ++run) {
        if (configs.size() == together) configs.emplace_back();
        Item item = {run, plan_.Make(run, configs[together]), plan_.InSample(run), 0};
        item.traced = item.traced && item.made.error.empty() && !item.made.dropped;
        if (item.traced) {
          if (alone.size() == traced) alone.emplace_back();
          std::swap(alone[traced], configs[together]);
          item.place = traced++;
        } else if (!item.made.dropped) {
          item.place = together++;
        }
        items.push_back(std::move(item));
      }
    }
    // A combination that makes no config keeps its place, for its cells; here it is a run of no steps.
    for (const Item& item : items) {
      if (!item.made.error.empty()) MakeHarmless(configs[item.place]);
    }
    const std::vector<RunOutcome> outcomes = RunBlock(std::span(configs).first(together), kernels_, keep_going);

    // Rows, in order, up to the first run that was not finished.
    std::size_t at = 0;
    bool traces = false;
    std::string rows;
    for (const auto& [first, end] : ranges) {
      SweepProgress counts;
      std::uint64_t run = first;
      std::string first_error;
      rows.clear();
      for (; run < end; ++run, ++at) {
        Item& item = items[at];
        if (item.made.dropped) {
          ++counts.dropped;
          continue;
        }
        RunOutcome outcome;
        const RunConfig* config = nullptr;
        if (item.traced) {
          config = &alone[item.place];
          if (!keep_going()) break;
          try {
            auto finished = RunWithTrace(*config, kernels_, keep_going, folder_, run, Temporary(index));
            if (!finished) break;
            outcome = std::move(*finished);
            traces = true;
          } catch (const InputError& e) {
            if (e.kind() != InputError::Kind::kConfig) throw;
            item.made.error = e.what();
          }
        } else {
          if (item.place >= outcomes.size()) break;
          config = &configs[item.place];
          outcome = outcomes[item.place];
          if (item.made.error.empty()) item.made.error = outcome.error;
        }
        RunConfig again;
        if (!item.made.error.empty()) {
          // Its cells are those of the combination, as far as it got.
          plan_.Make(run, again);
          config = &again;
          ++counts.invalid;
          if (first_error.empty()) first_error = "run " + std::to_string(run) + ": " + item.made.error;
        } else {
          const std::string_view verdict = Verdict(outcome.summary);
          if (verdict == "diverged") {
            ++counts.diverged;
          } else if (verdict != "ok") {
            ++counts.stuck;
          }
          const bool keep = !item.traced && ((plan_.keep_traces() == KeepTraces::kDiverged && verdict == "diverged") ||
                                             (plan_.keep_traces() == KeepTraces::kTrouble && verdict != "ok"));
          if (keep) {
            if (!RunWithTrace(*config, kernels_, keep_going, folder_, run, Temporary(index))) break;
            traces = true;
          }
        }
        plan_.AppendRow(run, *config, item.made.error, outcome, rows);
      }
      if (traces) SyncAll(folder_);  // a row that says that a run is done comes after its trace
      traces = false;
      const std::lock_guard lock(mutex_);
      if (run > first) {
        part_.Append(first, run, counts.invalid, rows);
        counts_.done_here += run - first;
        counts_.dropped += counts.dropped;
        counts_.diverged += counts.diverged;
        counts_.stuck += counts.stuck;
        counts_.invalid += counts.invalid;
        if (first_error_.empty()) first_error_ = first_error;
      }
      if (run < end) return;
    }
  }

  static void MakeHarmless(RunConfig& config) {
    config = RunConfig();
    config.steps = 0;
    GaussianData data;
    data.samples = data.features = data.outputs = 1;
    config.data = data;
  }

  std::string Temporary(int index) const { return part_.path() + "." + std::to_string(index) + ".tmp"; }

  const SweepPlan& plan_;
  const KernelTable& kernels_;
  const SweepFolder& folder_;
  WorkList& work_;
  PartWriter& part_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;  // of all that follows, and of part_
  std::condition_variable ended_;
  int running_;
  SweepProgress counts_;
  std::string first_error_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

[[noreturn]] void Refuse(const std::string& path, const std::string& why) {
  throw InputError(InputError::Kind::kConfig, {.file = path}, why + "; choose another --out, or --force to start anew in it");
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Makes the folder this plan's, or finds that it is.
void PrepareFolder(const SweepFolder& folder, const SweepPlan& plan, bool force) {
  std::error_code error;
  fs::create_directories(folder.path, error);
  if (error) throw IoError(folder.path, "cannot make the folder", error.value());
  if (force) {
    for (const std::string& path : {folder.results, folder.plan, folder.yaml, folder.parts, folder.traces}) {
      fs::remove_all(path, error);
      if (error) throw IoError(path, "cannot remove", error.value());
    }
  }
  if (!Exists(folder.plan)) {
    for (fs::directory_iterator it(folder.path, error), end; !force && !error && it != end; it.increment(error)) {
      // What a process leaves behind that was stopped here, or is just doing the same.
      const std::string name = it->path().filename();
      if (name != "parts" && !name.starts_with("sweep.yaml") && !name.starts_with("plan.json")) Refuse(folder.path, "the folder holds other files than a sweep's");
    }
    WriteFileAtomically(folder.yaml, plan.text());
    WriteFileAtomically(folder.plan, FieldsToJson(plan.facts()) + "\n");
  }
  if (!(ReadPlanFacts(folder) == plan.facts())) Refuse(folder.path, "the folder holds another sweep, or the same of other data");
  fs::create_directories(folder.parts, error);
  if (error) throw IoError(folder.parts, "cannot make the folder", error.value());
}

// What a single process leaves behind in parts/ is not needed once the results are there. Other shards' parts are theirs.
void RemoveOwnParts(const SweepFolder& folder) {
  std::error_code error;
  std::vector<fs::path> own;
  for (fs::directory_iterator it(folder.parts, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.starts_with("1-of-1.") || name == "results.lock") own.push_back(it->path());
  }
  // Of processes that were killed before the folder was this sweep's.
  for (fs::directory_iterator it(folder.path, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.starts_with("plan.json.tmp.") || name.starts_with("sweep.yaml.tmp.")) own.push_back(it->path());
  }
  for (const fs::path& path : own) fs::remove(path, error);
  fs::remove(folder.parts, error);  // succeeds where it is empty
}

}  // namespace

std::uint64_t RunsOfShard(const PlanFacts& facts, const Shard& shard) { return WorkList(facts, shard, {}).count(); }
std::uint64_t MissingOfShard(const PlanFacts& facts, const Shard& shard, const DoneRuns& done) { return WorkList(facts, shard, done).count(); }

SweepReport RunSweep(const SweepPlan& plan, const KernelTable& kernels, const SweepOptions& options,
                     const std::function<bool(const SweepProgress&)>& keep_going, const std::function<void()>& too_slow) {
  const SweepFolder folder(options.folder);
  PrepareFolder(folder, plan, options.force);
  const PlanFacts& facts = plan.facts();
  SweepReport report;
  report.progress.total = RunsOfShard(facts, options.shard);
  const auto was_done = [&] {
    report.end = SweepReport::End::kWasDone;
    report.complete = true;
    report.progress.done = report.progress.total;
    return report;
  };
  if (Exists(folder.results)) return was_done();
  const ShardLock lock(folder, options.shard);
  if (Exists(folder.results)) return was_done();  // by the process that had the lock

  const auto interrupted = [&] {
    report.end = SweepReport::End::kInterrupted;
    return report;
  };
  const auto may_go_on = [&] { return keep_going(report.progress); };
  const DoneRuns earlier = ReadParts(folder, facts, may_go_on);
  if (earlier.interrupted) return interrupted();
  WorkList work(facts, options.shard, earlier);
  report.progress.done = report.progress.total - work.count();
  report.failed = earlier.Failed();
  PartWriter part(folder, facts.hash, options.shard);
  const SweepProgress before = report.progress;
  if (work.count() > 0) {
    const Clock::time_point start = Clock::now();
    const auto threads = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(std::max(options.threads, 1)), work.count()));
    Workers workers(plan, kernels, folder, work, part, threads);
    double synced = 0;
    std::optional<Clock::time_point> stopped;
    while (!workers.Wait()) {
      report.progress = before;
      workers.AddTo(report.progress);
      report.progress.seconds = SecondsSince(start);
      if (!stopped && !keep_going(report.progress)) {
        workers.Stop();
        stopped = Clock::now();
      }
      if (stopped && SecondsSince(*stopped) > kSecondsToStop) {
        part.Sync();
        too_slow();
        stopped = Clock::now() + std::chrono::hours(24);
      }
      if (!stopped && report.progress.seconds > synced + kSecondsBetweenSyncs) {
        part.Sync();
        synced = report.progress.seconds;
      }
    }
    part.Sync();
    report.progress = before;
    workers.AddTo(report.progress);
    report.progress.seconds = SecondsSince(start);
    report.first_error = workers.first_error();
    report.failed += report.progress.invalid;
    workers.Rethrow();
  }
  if (report.progress.done < report.progress.total) return interrupted();
  if (options.shard.count == 1) {
    const DoneRuns all = ReadParts(folder, facts, may_go_on);
    if (all.interrupted || !WriteResults(folder, facts, all, may_go_on)) return interrupted();
    RemoveOwnParts(folder);
    report.complete = true;
  }
  return report;
}

}  // namespace scaletrace
