// scaletrace run: one config, one folder. What a folder holds and how a run goes on: lib/train/run_folder.h.
#include <csignal>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>

#include "base/cpus.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "config/config.h"
#include "scaletrace/commands.h"
#include "scaletrace/messages.h"
#include "train/run_folder.h"

namespace scaletrace {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

struct RunOptions {
  std::string config;
  std::vector<std::string> overrides;
  std::string out;
  std::string target;
  bool json = false;
  bool quiet = false;
  bool force = false;
  int jobs = 0;  // 0: the processors that the process may use
};

volatile std::sig_atomic_t signal_seen = 0;
volatile std::time_t signal_seconds = 0;  // when, as is signal_nanoseconds
volatile long signal_nanoseconds = 0;

// SIGINT and SIGTERM ask the run to save its state and end. A further one ends at once, but not within kSecondsToSave: the first often comes twice (`timeout`
// signals the process and then its group), and the state is being saved then.
constexpr double kSecondsToSave = 2;
void TakeSignal(int number) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (signal_seen == 0) {
    signal_seconds = now.tv_sec;
    signal_nanoseconds = now.tv_nsec;
    signal_seen = number;
  } else if (static_cast<double>(now.tv_sec - signal_seconds) + 1e-9 * static_cast<double>(now.tv_nsec - signal_nanoseconds) > kSecondsToSave) {
    std::_Exit(128 + number);
  }
}

class SignalScope {
 public:
  SignalScope() {
    struct sigaction action {};
    action.sa_handler = &TakeSignal;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    sigaction(SIGINT, &action, &old_int_);
    sigaction(SIGTERM, &action, &old_term_);
  }
  ~SignalScope() {
    if (signal_seen != 0) return;  // the process ends, and repeats must not change how
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
  }
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

 private:
  struct sigaction old_int_ {}, old_term_ {};
};

// One line on a terminal's stderr, drawn again some ten times a second; nothing in a pipe.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted) : wanted_(wanted && StderrIsTerminal()) {}
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const RunProgress& p) {
    if (!wanted_ || p.seconds < shown_at_ + 0.1) return;
    shown_at_ = p.seconds;
    const double rate = static_cast<double>(p.steps_here) / p.seconds;
    const double percent = 100.0 * static_cast<double>(p.steps_done) / static_cast<double>(p.steps_total);
    const double left = static_cast<double>(p.steps_total - p.steps_done) / rate;
    std::fprintf(stderr, "\r\x1b[K%5.1f %%  %s of %s steps, %s steps/s, %s left, scale %s, loss %.4g", percent, CountText(p.steps_done).c_str(),
                 CountText(p.steps_total).c_str(), RateText(rate).c_str(), DurationText(left).c_str(),
                 ToScaleText(p.summary->scale_last).c_str(), static_cast<double>(p.summary->last_loss));
    std::fflush(stderr);
    drawn_ = true;
  }
  void Clear() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
    drawn_ = false;
  }

 private:
  bool wanted_;
  bool drawn_ = false;
  double shown_at_ = 0.2;  // a short run shows none
};

// The name as a part of a path.
std::string FolderName(const std::string& name) {
  std::string safe;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
    safe += plain ? c : '_';
  }
  if (safe.empty() || safe[0] == '.') safe.insert(0, 1, '_');
  return safe.substr(0, 100);
}

const char* EndName(RunReport::End end) {
  switch (end) {
    case RunReport::End::kDone: return "done";
    case RunReport::End::kWasDone: return "was done";
    case RunReport::End::kInterrupted: return "interrupted";
  }
  return "";
}

std::string ReportJson(const RunConfig& config, const std::string& folder, const RunReport& report) {
  return "{\"name\": " + ToJsonString(config.name) + ", \"folder\": " + ToJsonString(folder) + ", \"end\": " + ToJsonString(EndName(report.end)) +
         ", \"resumed_at\": " + std::to_string(report.resumed_at) + ", \"summary\": " + FieldsToJson(report.summary) + ", \"story\": " + ToJsonString(Story(report.summary)) + ", \"seconds\": {\"data\": " +
         ToJsonText(report.seconds.data) + ", \"steps\": " + ToJsonText(report.seconds.steps) + ", \"trace\": " + ToJsonText(report.seconds.trace) +
         ", \"state\": " + ToJsonText(report.seconds.state) + "}}\n";
}

std::string ReportText(const RunConfig& config, const std::string& folder, const RunReport& report) {
  const Summary& s = report.summary;
  std::string text = config.name + ": " + CountText(s.steps, "step") + ", " + CountText(s.updates, "update") + ", " + CountText(s.skipped) + " skipped";
  if (report.end == RunReport::End::kWasDone) {
    text += " (was done before)";
  } else if (report.resumed_at > 0) {
    text += " (went on at step " + std::to_string(report.resumed_at) + ")";
  }
  text += "\n";
  if (s.steps > 0) {
    text += "  loss   " + ToText(s.first_loss) + " at first, " + ToText(s.last_loss) + " at last\n";
    const bool moved = s.scale_min != s.scale_first || s.scale_max != s.scale_first;
    text += "  scale  " + ToScaleText(s.scale_first) + (moved ? " at first, " + ToScaleText(s.scale_min) + " to " + ToScaleText(s.scale_max) + " in force, " : " in every step, ") +
            ToScaleText(s.scale_last) + " next; " + CountText(s.growths, "growth") + ", " + CountText(s.backoffs, "backoff") +
            (s.forgiven > 0 ? ", " + CountText(s.forgiven, "overflow") + " forgiven" : "") + "\n";
  }
  if (report.steps_here > 0) {
    text += "  time   data " + DurationText(report.seconds.data) + ", steps " + DurationText(report.seconds.steps) + " (" +
            DurationText(report.seconds.steps / static_cast<double>(report.steps_here)) + " each), trace " + DurationText(report.seconds.trace) +
            ", state " + DurationText(report.seconds.state) + "\n";
  }
  text += "  " + Story(s) + "\n";
  return text + "  " + folder + "/trace.csv\n";
}

int Execute(const RunOptions& options) {
  const std::string text = ReadFile(options.config, kMaxConfigBytes);
  const std::size_t slash = options.config.rfind('/');
  const std::string folder_of_config = slash == std::string::npos ? "." : options.config.substr(0, slash + 1);
  const RunConfig config = ParseConfig(text, options.config, folder_of_config, options.overrides);
  if (!options.quiet) {
    for (const std::string& warning : ConfigWarnings(config)) Warn(warning);
  }

  FolderOptions folder;
  folder.config_text = text;
  folder.resolved_text = ResolvedYaml(config);
  folder.hash = ConfigHash(config);
  folder.path = options.out.empty() ? "runs/" + FolderName(config.name) + "-" + folder.hash.substr(0, 8) : options.out;
  folder.software = SoftwareName();
  folder.force = options.force;
  folder.threads = options.jobs == 0 ? UsableCpus() : options.jobs;
  const KernelTable& kernels = KernelsFor(options.target);

  const SignalScope signals;
  ProgressLine progress(!options.quiet);
  const RunReport report = RunInFolder(config, kernels, folder, [&](const RunProgress& p) {
    progress.Show(p);
    return signal_seen == 0;
  });
  progress.Clear();

  if (report.end == RunReport::End::kInterrupted) {
    if (options.json) Print(ReportJson(config, folder.path, report));
    Warn("interrupted after step " + std::to_string(report.summary.steps) + " of " + std::to_string(config.steps) +
         "; the state is saved: run the same command again to go on");
    return 128 + signal_seen;
  }
  if (options.json) {
    Print(ReportJson(config, folder.path, report));
  } else if (!options.quiet) {
    Print(ReportText(config, folder.path, report));
  }
  return 0;
}

}  // namespace

Action AddRun(CLI::App& command) {
  auto options = std::make_shared<RunOptions>();
  command.add_option("CONFIG", options->config, "YAML file; `scaletrace init quickstart` makes one")->required();
  command.add_option("--set", options->overrides, "Override a key, as in --set scaler.init_scale=2^20")->type_name("KEY.PATH=VALUE")
      ->allow_extra_args(false);
  command.add_option("--out", options->out, "The run's folder itself; default runs/NAME-HASH8")->type_name("DIR");
  command.add_flag("--json", options->json, "Print the summary as one JSON object");
  command.add_flag("--quiet", options->quiet, "Print nothing but errors");
  command.add_flag("--force", options->force, "Start anew, replacing what an earlier run left in the folder");
  command.add_option("-j,--jobs", options->jobs, "At most N threads for a large step; default: the processors this process may use. The results are the same for any N")
      ->type_name("N")->check(CLI::Range(1, kMostThreads));
  AddTargetOption(command, options->target);
  command.footer(
      "The folder gets config.yaml, config.resolved.yaml, trace.csv, final.json (the state), run.json (time, host, version) and, at the end,\n"
      "summary.json. Interrupted or killed, the same command goes on where it stopped, to the same bytes. Done already: says so.\n\n"
      "Examples:\n"
      "  scaletrace run quickstart.yaml\n"
      "  scaletrace run quickstart.yaml --set optimizer.lr=0.2 --set trace.columns='[step, loss, grad_norm]' --out runs/hot\n"
      "  scaletrace run big.yaml --json | jq .story");
  return [options] { return Execute(*options); };
}

}  // namespace scaletrace
