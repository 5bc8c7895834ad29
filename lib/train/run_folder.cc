#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "trace/csv_writer.h"
#include "train/run.h"
#include "train/write_behind.h"

namespace scaletrace {
namespace {

namespace fs = std::filesystem;

constexpr double kSecondsOfABatch = 0.02;
constexpr std::size_t kSmallestBatch = 1, kLargestBatch = 4096;
constexpr std::size_t kLargestState = std::size_t{4} << 30;
constexpr std::size_t kLargestSummary = std::size_t{1} << 20;

class Stopwatch {
 public:
  // Seconds since the last call, or since the start.
  double Lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Holds the folder for this process until the end of the scope.
class FolderLock {
 public:
  explicit FolderLock(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_ < 0) throw IoError(path, "cannot open", errno);
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
    const int error = errno;
    ::close(fd_);
    if (error == EWOULDBLOCK) throw IoError(path, "another process runs in this folder");
    throw IoError(path, "cannot lock", error);
  }
  ~FolderLock() { ::close(fd_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

struct Paths {
  explicit Paths(const std::string& folder)
      : config(folder + "/config.yaml"),
        resolved(folder + "/config.resolved.yaml"),
        trace(folder + "/trace.csv"),
        histograms(folder + "/histograms.csv"),
        state(folder + "/final.json"),
        run(folder + "/run.json"),
        summary(folder + "/summary.json") {}
  std::string config, resolved, trace, histograms, state, run, summary;
};

// Whether a run writes a file of that name, or leaves it behind where it is killed while it replaces one.
bool IsFileOfRun(std::string_view name) {
  static constexpr std::string_view kNames[] = {"config.yaml", "config.resolved.yaml", "trace.csv",  "histograms.csv",
                                                "final.json",  "run.json",             "summary.json"};
  for (const std::string_view own : kNames) {
    if (name == own || name.starts_with(std::string(own) + ".tmp.")) return true;
  }
  return false;
}

// The files that grow. On cache lines of their own, and of the processor's prefetches: one thread may write while another computes.
struct alignas(128) Rows {
  TraceWriter trace;
  std::optional<LineFile> histograms;
};

[[noreturn]] void Refuse(const std::string& path, const std::string& why) {
  throw InputError(InputError::Kind::kConfig, {.file = path}, why + "; choose another --out, or --force to start anew in it");
}

bool Holds(const std::string& path, const std::string& text) {
  std::error_code error;
  return fs::file_size(path, error) == text.size() && !error && ReadFile(path, text.size()) == text;
}

// A folder without a state: empty, or what a run leaves that was killed before it wrote its first state. Anything else is refused.
void CheckHasNothingElse(const Paths& paths, const FolderOptions& options) {
  std::error_code error;
  bool ours = true;
  for (fs::directory_iterator it(options.path, error), end; !error && it != end; it.increment(error)) {
    ours = ours && IsFileOfRun(it->path().filename().native());
  }
  if (error) throw IoError(options.path, "cannot read", error.value());
  const bool resolved = fs::exists(paths.resolved, error);
  // Both are written after a state.
  if (ours && resolved && (fs::exists(paths.summary, error) || fs::exists(paths.run, error))) {
    Refuse(options.path, "final.json, the state of the run in this folder, is missing");
  }
  if (ours && resolved && !Holds(paths.resolved, options.resolved_text)) Refuse(options.path, "the folder holds a run of another config");
  // config.yaml comes first: alone it may be anybody's.
  if (ours && !resolved && fs::exists(paths.config, error)) ours = Holds(paths.config, options.config_text);
  if (ours && !resolved) ours = !fs::exists(paths.trace, error) && !fs::exists(paths.run, error) && !fs::exists(paths.summary, error);
  if (!ours) Refuse(options.path, "the folder holds other files than a run's");
}

// Whether summary.json says that the run with this state is done. An empty one, or one of another run, does not.
bool SaysDone(const std::string& path, const FolderOptions& options, const Summary& state) {
  std::error_code error;
  if (!fs::exists(path, error)) return false;
  try {
    const Json json = Json::Parse(ReadFile(path, kLargestSummary), path, kLargestSummary);
    Summary said;
    FieldsFromJson(json, json.Member(json.root(), "summary"), said);
    return json.AsString(json.Member(json.root(), "hash")) == options.hash && said.steps == state.steps;
  } catch (const InputError&) {
    return false;
  }
}

void CheckWholeTrace(const std::string& path, std::uint64_t bytes) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_regular_file(status)) return;
  const std::uintmax_t size = fs::file_size(path, error);
  if (!error && size >= bytes) return;
  throw IoError(path, std::string(fs::exists(status) ? "is shorter than the run wrote it" : "is missing") +
                          ", though the run was done; --force runs it anew");
}

// The state of an earlier process of the same run, or nothing where the folder is new.
std::optional<Json> EarlierState(const Paths& paths, const FolderOptions& options) {
  std::error_code error;
  if (!fs::exists(paths.state, error)) {
    if (!options.force) CheckHasNothingElse(paths, options);
    return std::nullopt;
  }
  if (options.force) return std::nullopt;
  Json state = Json::Parse(ReadFile(paths.state, kLargestState), paths.state, kLargestState);
  if (state.AsString(state.Member(state.root(), "hash")) == options.hash) return state;
  Refuse(options.path, "the folder holds a run of another config");
}

std::string Timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

std::string RunJson(const FolderOptions& options, const KernelTable& kernels, const LinearModel& model, const RunReport& report, const std::string& started) {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  return "{\n\"software\": " + ToJsonString(options.software) + ",\n\"target\": " + ToJsonString(kernels.target) +
         ",\n\"path\": " + ToJsonString(model.path()) + ",\n\"threads\": " + std::to_string(model.threads()) +
         ",\n\"host\": " + ToJsonString(host) + ",\n\"started\": " + ToJsonString(started) + ",\n\"ended\": " + ToJsonString(Timestamp()) +
         ",\n\"resumed_at\": " + std::to_string(report.resumed_at) + ",\n\"seconds\": {\"data\": " + ToJsonText(report.seconds.data) +
         ", \"steps\": " + ToJsonText(report.seconds.steps) + ", \"trace\": " + ToJsonText(report.seconds.trace) +
         ", \"state\": " + ToJsonText(report.seconds.state) + "}\n}\n";
}

std::string SummaryJson(const FolderOptions& options, const std::string& name, const Summary& summary) {
  return "{\n\"name\": " + ToJsonString(name) + ",\n\"hash\": " + ToJsonString(options.hash) + ",\n\"summary\": " + FieldsToJson(summary) +
         ",\n\"story\": " + ToJsonString(Story(summary)) + "\n}\n";
}

}  // namespace

RunReport RunInFolder(const RunConfig& config, const KernelTable& kernels, const FolderOptions& options,
                      const std::function<bool(const RunProgress&)>& keep_going) {
  Stopwatch watch;
  RunReport report;
  const std::string started = Timestamp();
  const Paths paths(options.path);
  {
    std::error_code error;
    fs::create_directories(options.path, error);
    if (error) throw IoError(options.path, "cannot make the folder", error.value());
  }
  const FolderLock lock(options.path);
  const std::optional<Json> earlier = EarlierState(paths, options);

  TraceState trace_state;
  if (earlier) {
    FieldsFromJson(*earlier, earlier->Member(earlier->root(), "summary"), report.summary);
    FieldsFromJson(*earlier, earlier->Member(earlier->root(), "trace"), trace_state);
  }
  std::error_code error;
  if (earlier && SaysDone(paths.summary, options, report.summary)) {
    CheckWholeTrace(paths.trace, trace_state.bytes);
    report.end = RunReport::End::kWasDone;
    report.resumed_at = report.summary.steps;
    return report;
  }

  Run run(config, kernels, options.threads);
  if (earlier) {
    run.Restore(*earlier, earlier->root());
    report.resumed_at = run.summary().steps;
  } else {
    fs::remove(paths.summary, error);
    WriteFileAtomically(paths.config, options.config_text);
    WriteFileAtomically(paths.resolved, options.resolved_text);
  }
  Rows rows{TraceWriter(paths.trace, config.trace, trace_state), std::nullopt};
  auto& [trace, histograms] = rows;
  if (config.trace.histograms > 0) {
    histograms.emplace(paths.histograms, earlier ? static_cast<std::uint64_t>(earlier->AsInteger(earlier->Member(earlier->root(), "histogram_bytes"))) : 0);
    if (histograms->size() == 0) histograms->Append("step,tensor,loss_scale,exponent,count\n");
  }
  report.seconds.data = watch.Lap();

  const auto state_text = [&] { return "{\n\"hash\": " + ToJsonString(options.hash) + ",\n" + run.StateMembers(); };
  // The rows go to the disk before the state that counts on them.
  const auto save = [&](std::string state) {
    trace.Sync();
    if (histograms) histograms->Sync();
    state += ",\n\"histogram_bytes\": " + std::to_string(histograms ? histograms->size() : 0) + ",\n\"trace\": " + FieldsToJson(trace.state()) + "\n}\n";
    WriteFileAtomically(paths.state, state);
  };
  if (!earlier) save(state_text());
  report.seconds.state += watch.Lap();

  // Where this has a thread, the files and the seconds of writing are that thread's until the last batch is written.
  WriteBehind writer([&](WriteBehind::Batch& batch) {
    Stopwatch writing;
    trace.Add(std::span(batch.records).first(batch.count));
    trace.Flush();  // so that others can follow the file
    if (histograms) {
      if (!batch.histograms.empty()) histograms->Append(batch.histograms);
      histograms->Flush();
    }
    report.seconds.trace += writing.Lap();
    if (batch.state.empty()) return;
    save(std::exchange(batch.state, {}));
    report.seconds.state += writing.Lap();
  });

  std::size_t size = kSmallestBatch;
  double since_save = 0, seconds = 0;
  bool interrupted = false;
  while (!run.done()) {
    if (!keep_going({run.summary().steps, config.steps, report.steps_here, seconds, &run.summary()})) {
      interrupted = true;
      break;
    }
    if (!writer.started() && seconds >= options.seconds_alone && run.model().threads() < options.threads) writer.Start();
    WriteBehind::Batch& batch = writer.Next();
    batch.records.resize(size);
    const double before = watch.Lap();
    batch.count = run.Steps(batch.records);
    const double steps = watch.Lap();
    if (histograms) batch.histograms = run.TakeHistograms();
    if (since_save + before + steps >= options.seconds_between_states) {
      writer.Drain();  // of all states, which may be large, there is one at a time
      batch.state = state_text();
    }
    const bool saves = !batch.state.empty();
    report.steps_here += static_cast<std::int64_t>(batch.count);
    writer.Hand();
    const double after = watch.Lap();
    report.seconds.steps += steps;
    seconds += before + steps + after;
    since_save = saves ? 0 : since_save + before + steps + after;
    if (steps < kSecondsOfABatch / 2 && size < kLargestBatch) size *= 2;
    if (steps > kSecondsOfABatch * 2 && size > kSmallestBatch) size /= 2;
  }
  writer.Drain();
  watch.Lap();
  if (!interrupted) trace.Finish();
  save(state_text());
  report.seconds.state += watch.Lap();
  report.summary = run.summary();
  report.end = interrupted ? RunReport::End::kInterrupted : RunReport::End::kDone;
  WriteFileAtomically(paths.run, RunJson(options, kernels, run.model(), report, started));
  if (!interrupted) WriteFileAtomically(paths.summary, SummaryJson(options, config.name, report.summary));
  return report;
}

}  // namespace scaletrace
