// What a run leaves in its folder is the same whoever writes it and whenever it stops, and the state never counts on rows that are not there.
#include "train/run_folder.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "config/config.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMax = std::size_t{1} << 28;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("scaletrace-folder-test-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directory(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

RunConfig Config(std::int64_t steps, const std::string& more = "") {
  return ParseConfig("name: some\nsteps: " + std::to_string(steps) +
                         "\ndata: {kind: spikes, samples: 4, features: 2, every: 40}\nscaler: {policy: jax-step, growth_interval: 7}\n" + more,
                     "test", ".");
}

FolderOptions Options(const std::string& path, bool thread) {
  FolderOptions options;
  options.path = path;
  options.hash = "test";
  options.threads = thread ? 2 : 1;
  options.seconds_alone = 0;
  return options;
}

std::size_t ThreadsOfProcess() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

const std::function<bool(const RunProgress&)> kGoOn = [](const RunProgress&) { return true; };

// All files but the one that tells of time.
std::map<std::string, std::string> Contents(const std::string& path) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().filename() != "run.json") contents[entry.path().filename()] = ReadFile(entry.path(), kMax);
  }
  return contents;
}

struct State {
  std::int64_t next_step = 0, bytes = 0, histogram_bytes = 0;
};

State ReadState(const std::string& path) {
  const Json json = Json::Parse(ReadFile(path + "/final.json", kMax), "final.json", kMax);
  return {json.AsInteger(json.Member(json.root(), "next_step")), json.AsInteger(json.Member(json.Member(json.root(), "trace"), "bytes")),
          json.AsInteger(json.Member(json.root(), "histogram_bytes"))};
}

const std::string kHistograms = "trace: {histograms: 10, columns: [step, loss, event, grad_norm]}\n";
const std::string kThinned = "trace: {every: 1000}\n";

TEST_CASE("a thread that writes leaves the same files as none, and the caller is asked in its own thread") {
  const Folder folder;
  for (const auto& [name, config] : {std::pair<std::string, RunConfig>{"plain", Config(60000)}, {"histograms", Config(3000, kHistograms)},
                                     {"thinned", Config(60000, kThinned)}, {"none", Config(0)}}) {
    INFO(name);
    std::vector<std::map<std::string, std::string>> contents;
    for (const bool thread : {false, true}) {
      const std::string path = folder / (name + (thread ? "-thread" : ""));
      std::set<std::thread::id> ids = {std::this_thread::get_id()};
      const RunReport report = RunInFolder(config, CompiledKernels().front(), Options(path, thread), [&](const RunProgress& progress) {
        ids.insert(std::this_thread::get_id());
        return progress.steps_done == progress.summary->steps;
      });
      CHECK(report.end == RunReport::End::kDone);
      CHECK(report.steps_here == config.steps);
      CHECK(ids.size() == 1);
      contents.push_back(Contents(path));
    }
    CHECK(contents[0].size() == (name == "histograms" ? 6 : 5));
    CHECK(contents[0] == contents[1]);
  }
}

TEST_CASE("only a run that has gone on for a while, and has a thread that computes no step, gets one that writes") {
  const Folder folder;
  const auto most = [&](int threads, double seconds_alone) {
    FolderOptions options = Options(folder / "run", true);
    options.threads = threads;
    options.seconds_alone = seconds_alone;
    options.force = true;
    std::size_t seen = 0;
    RunInFolder(Config(3000), CompiledKernels().front(), options, [&](const RunProgress&) {
      seen = std::max(seen, ThreadsOfProcess());
      return true;
    });
    return seen;
  };
  const std::size_t before = ThreadsOfProcess();
  CHECK(most(1, 0) == before);
  CHECK(most(2, 1e9) == before);
  CHECK(most(2, 0) == before + 1);
  CHECK(most(8, 0) == before + 1);
}

TEST_CASE("a run that is asked to stop has all its rows and its state on the disk, and goes on to the same bytes") {
  const Folder folder;
  for (const std::string& more : {std::string(), kHistograms, kThinned}) {
    const RunConfig config = Config(20000, more);
    RunInFolder(config, CompiledKernels().front(), Options(folder / "whole", false), kGoOn);
    int stops = 0;
    RunReport report;
    do {
      int calls = 0;
      report = RunInFolder(config, CompiledKernels().front(), Options(folder / "stopped", true), [&](const RunProgress&) { return ++calls < 3 + stops; });
      const State state = ReadState(folder / "stopped");
      CHECK(state.next_step == report.summary.steps);
      CHECK(static_cast<std::uintmax_t>(state.bytes) == fs::file_size(folder / "stopped/trace.csv"));
      ++stops;
    } while (report.end == RunReport::End::kInterrupted);
    CHECK(stops > 4);
    CHECK(Contents(folder / "stopped") == Contents(folder / "whole"));
    fs::remove_all(folder / "whole");
    fs::remove_all(folder / "stopped");
  }
}

TEST_CASE("a state counts only on rows that are on the disk before it, and from each the run goes on to the same bytes") {
  const Folder folder;
  const RunConfig config = Config(30000, "trace: {histograms: 100}\n");
  const std::string whole = folder / "whole", path = folder / "run", copy = folder / "copy";
  RunInFolder(config, CompiledKernels().front(), Options(whole, false), kGoOn);
  FolderOptions options = Options(path, true);
  options.seconds_between_states = 0;  // one with each batch
  std::set<std::int64_t> states;
  int calls = 0;
  RunInFolder(config, CompiledKernels().front(), options, [&](const RunProgress& progress) {
    const State state = ReadState(path);
    const std::string trace = ReadFile(path + "/trace.csv", kMax), histograms = ReadFile(path + "/histograms.csv", kMax);
    states.insert(state.next_step);
    REQUIRE(state.next_step <= progress.steps_done);
    REQUIRE(static_cast<std::size_t>(state.bytes) <= trace.size());
    REQUIRE(static_cast<std::size_t>(state.histogram_bytes) <= histograms.size());
    // The header and a row for each step.
    REQUIRE(std::count(trace.begin(), trace.begin() + state.bytes, '\n') == state.next_step + 1);
    // As after a kill at this moment; the state is copied first, for files go on to grow.
    if (calls++ % 8 == 0) {
      fs::create_directory(copy);
      for (const char* name : {"/final.json", "/trace.csv", "/histograms.csv", "/config.yaml", "/config.resolved.yaml"}) fs::copy_file(path + name, copy + name);
      RunInFolder(config, CompiledKernels().front(), Options(copy, true), kGoOn);
      REQUIRE(Contents(copy) == Contents(whole));
      fs::remove_all(copy);
    }
    return true;
  });
  CHECK(states.size() > 5);
  CHECK(Contents(path) == Contents(whole));
}

TEST_CASE("a disk that is full ends a run with whole rows, whoever writes them") {
  const Folder folder;
  const RunConfig config = Config(60000);
  RunInFolder(config, CompiledKernels().front(), Options(folder / "whole", false), kGoOn);
  const std::string all = ReadFile(folder / "whole/trace.csv", kMax);
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  for (const bool thread : {false, true}) {
    for (const rlim_t room : {rlim_t{5000}, rlim_t{300001}, static_cast<rlim_t>(all.size() - 1)}) {
      INFO((thread ? "thread, " : "no thread, ") << room << " bytes");
      const std::string path = folder / "full";
      rlimit limit = old;
      limit.rlim_cur = room;
      ::setrlimit(RLIMIT_FSIZE, &limit);
      CHECK_THROWS_WITH(RunInFolder(config, CompiledKernels().front(), Options(path, thread), kGoOn), path + "/trace.csv: cannot write: File too large");
      ::setrlimit(RLIMIT_FSIZE, &old);
      const std::string trace = ReadFile(path + "/trace.csv", kMax);
      CHECK(all.starts_with(trace));
      CHECK(trace.ends_with("\n"));
      CHECK(trace.size() + 100 > room);  // all that fit
      CHECK_FALSE(fs::exists(path + "/summary.json"));
      CHECK(static_cast<std::size_t>(ReadState(path).bytes) <= trace.size());
      RunInFolder(config, CompiledKernels().front(), Options(path, thread), kGoOn);
      CHECK(Contents(path) == Contents(folder / "whole"));
      fs::remove_all(path);
    }
  }
  std::signal(SIGXFSZ, SIG_DFL);
}

TEST_CASE("what the caller throws ends a run whose thread is writing") {
  const Folder folder;
  int calls = 0;
  CHECK_THROWS_AS(RunInFolder(Config(1000000), CompiledKernels().front(), Options(folder / "thrown", true),
                              [&](const RunProgress&) -> bool {
                                if (++calls == 20) throw std::length_error("enough");
                                return true;
                              }),
                  std::length_error);
  const std::string trace = ReadFile(folder / "thrown/trace.csv", kMax);
  CHECK(trace.ends_with("\n"));
}

}  // namespace
}  // namespace scaletrace
