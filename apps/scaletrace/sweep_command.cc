// scaletrace sweep: many runs of one config. What a sweep is: lib/sweep/plan.h; its folder and how it survives: lib/sweep/parts.h.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "base/cpus.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "config/config.h"
#include "scaletrace/commands.h"
#include "scaletrace/messages.h"
#include "sweep/shard.h"
#include "sweep/summarize.h"
#include "sweep/sweep.h"

namespace scaletrace {
namespace {

constexpr int kSomeInvalid = 1, kShardsMissing = 4, kTimeLimit = 75;
constexpr double kSecondsBetweenLines = 60;  // of progress, where stderr is no terminal

struct Options {
  std::string file, out, shard, target, time_limit, stop_signal, keep_traces;
  std::vector<std::string> overrides;
  std::uint64_t shards = 0;
  int jobs = 0;
  bool quiet = false, force = false, json = false;
  // plan, config
  std::int64_t rows = 5;
  std::uint64_t run = 0;
  // status, merge, summarize
  std::string folder;
  std::string by, metrics, quantiles;
  bool csv = false;
};

InputError Wrong(const std::string& option, const std::string& message) { return InputError(InputError::Kind::kConfig, {.file = option}, message); }

std::string Count(std::uint64_t n) { return CountText(static_cast<std::int64_t>(n)); }
std::string Count(std::uint64_t n, const std::string& what) { return CountText(static_cast<std::int64_t>(n), what); }

// "45", "90s", "15m", "2h", "1d", "1:30:00" and sums of the letters, as in 1h30m.
double ReadDuration(const std::string& text) {
  const auto fail = [&] { return Wrong("--time-limit", "found '" + Printable(text) + "'; allowed: seconds, or a time like 90s, 15m, 1h30m, 1:30:00"); };
  double seconds = 0;
  std::string_view rest = text;
  if (text.find(':') != std::string::npos) {
    while (true) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      std::string_view part = rest.substr(0, end);
      while (part.size() > 1 && part[0] == '0') part.remove_prefix(1);
      const auto number = ReadUnsigned(part);
      if (!number) throw fail();
      seconds = seconds * 60 + static_cast<double>(*number);
      if (end == rest.size()) return seconds;
      rest.remove_prefix(end + 1);
    }
  }
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_not_of("0123456789."), rest.size());
    const auto number = ReadDouble(rest.substr(0, end));
    const char unit = end < rest.size() ? rest[end] : 's';
    const double factor = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : unit == 'd' ? 86400 : 0;
    if (!number || factor == 0 || (end == rest.size() && rest.size() != text.size())) throw fail();
    seconds += *number * factor;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (!(seconds > 0)) throw fail();
  return seconds;
}

int ReadSignal(std::string text) {
  if (text.empty()) return 0;
  if (text.starts_with("SIG")) text.erase(0, 3);
  constexpr std::pair<const char*, int> kSignals[] = {{"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"TERM", SIGTERM}, {"INT", SIGINT},
                                                      {"HUP", SIGHUP},   {"CONT", SIGCONT}, {"XCPU", SIGXCPU}};
  for (const auto& [name, number] : kSignals) {
    if (text == name || text == std::to_string(number)) return number;
  }
  throw Wrong("--stop-signal", "found '" + Printable(text) + "'; allowed: USR1, USR2, TERM, INT, HUP, CONT, XCPU");
}

volatile std::sig_atomic_t signal_seen = 0;

// SIGINT, SIGTERM and the scheduler's warning ask the sweep to end; a second SIGINT or SIGTERM ends at once, which loses runs in progress only.
class SignalScope {
 public:
  explicit SignalScope(int stop_signal) {
    struct sigaction action {};
    action.sa_handler = [](int number) {
      if (signal_seen != 0 && (number == SIGINT || number == SIGTERM)) std::_Exit(128 + number);
      if (signal_seen == 0) signal_seen = number;
    };
    for (const int number : {SIGINT, SIGTERM, stop_signal}) {
      if (number == 0 || (number == stop_signal && (number == SIGINT || number == SIGTERM) && !saved_.empty() && saved_.size() == 2)) continue;
      struct sigaction old {};
      sigaction(number, &action, &old);
      saved_.emplace_back(number, old);
    }
  }
  ~SignalScope() {
    for (auto it = saved_.rbegin(); it != saved_.rend(); ++it) sigaction(it->first, &it->second, nullptr);
  }
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

 private:
  std::vector<std::pair<int, struct sigaction>> saved_;
};

std::string ProgressText(const SweepProgress& p) {
  const double rate = p.seconds > 0 ? static_cast<double>(p.done_here) / p.seconds : 0;
  std::string text = Count(p.done) + " of " + Count(p.total) + " runs, " + RateText(rate) + " runs/s";
  if (rate > 0) text += ", " + DurationText(static_cast<double>(p.total - p.done) / rate) + " left";
  text += ", " + Count(p.diverged) + " diverged, " + Count(p.stuck) + " stuck";
  if (p.invalid > 0) text += ", " + Count(p.invalid) + " invalid";
  return text;
}

// On a terminal one line that is drawn again; in a log a line a minute.
class Progress {
 public:
  explicit Progress(bool wanted) : wanted_(wanted), terminal_(StderrIsTerminal()), next_(terminal_ ? 0.3 : kSecondsBetweenLines) {}
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Show(const SweepProgress& p) {
    if (!wanted_ || p.seconds < next_) return;
    next_ = p.seconds + (terminal_ ? 0.1 : kSecondsBetweenLines);
    const double percent = 100.0 * static_cast<double>(p.done) / static_cast<double>(std::max<std::uint64_t>(p.total, 1));
    if (terminal_) {
      std::fprintf(stderr, "\r\x1b[K%5.1f %%  %s", percent, ProgressText(p).c_str());
      std::fflush(stderr);
      drawn_ = true;
    } else {
      std::fprintf(stderr, "scaletrace: %s\n", ProgressText(p).c_str());
    }
  }
  void Clear() {
    if (drawn_) std::fputs("\r\x1b[K", stderr);
    drawn_ = false;
  }

 private:
  bool wanted_, terminal_, drawn_ = false;
  double next_;
};

SweepPlan ReadPlan(const Options& options) {
  std::vector<std::string> overrides = options.overrides;
  if (!options.keep_traces.empty()) overrides.push_back("sweep.keep_traces=" + options.keep_traces);
  return SweepPlan::Read(options.file, overrides);
}

std::string DefaultFolder(const PlanFacts& facts) { return "sweeps/" + facts.name + "-" + facts.hash.substr(0, 8); }

std::optional<std::string> FromEnvironment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// ---- sweep FILE ----

int RunIt(const Options& options) {
  if (options.file.empty()) throw Wrong("sweep", "needs a FILE, or one of plan, config, status, merge, summarize (see scaletrace sweep --help)");
  if (options.jobs < 0 || options.jobs > kMostThreads) throw Wrong("-j", "found " + std::to_string(options.jobs) + "; allowed: a number from 1 to " + std::to_string(kMostThreads));
  const double time_limit = options.time_limit.empty() ? 0 : ReadDuration(options.time_limit);
  const int stop_signal = ReadSignal(options.stop_signal);
  const auto start = std::chrono::steady_clock::now();
  const SignalScope signals(stop_signal);

  SweepOptions sweep;
  sweep.threads = options.jobs == 0 ? UsableCpus() : options.jobs;
  sweep.force = options.force;
  if (!options.shard.empty()) {
    const ShardChoice choice = ChooseShard(options.shard, options.shards == 0 ? std::nullopt : std::optional(options.shards), FromEnvironment);
    sweep.shard = choice.shard;
    if (!choice.reason.empty() && !options.quiet) std::fprintf(stderr, "scaletrace: shard %s (%s)\n", sweep.shard.Text().c_str(), choice.reason.c_str());
  } else if (options.shards != 0) {
    throw Wrong("--shards", "says of how many, but not which one: add --shard auto, or give --shard K/N");
  }
  if (options.force && sweep.shard.count > 1) throw Wrong("--force", "would remove what other shards have done; remove the folder first");

  const SweepPlan plan = ReadPlan(options);
  sweep.folder = options.out.empty() ? DefaultFolder(plan.facts()) : options.out;
  if (!options.quiet) {
    for (const std::string& warning : plan.Warnings()) Warn(warning);
  }
  const KernelTable& kernels = KernelsFor(options.target);

  Progress progress(!options.quiet);
  bool out_of_time = false;
  SweepProgress last;
  const auto code = [&] { return out_of_time || (stop_signal != 0 && signal_seen == stop_signal) ? kTimeLimit : 128 + signal_seen; };
  const auto say_stopped = [&](const SweepProgress& p) {
    progress.Clear();
    const char* why = out_of_time ? "time limit reached" : code() == kTimeLimit ? "warned by the scheduler" : "interrupted";
    Warn(std::string(why) + " after " + Count(p.done) + " of " + Count(p.total, "run") +
         "; what is finished is saved: run the same command again to go on");
  };
  const SweepReport report = RunSweep(
      plan, kernels, sweep,
      [&](const SweepProgress& p) {
        last = p;
        progress.Show(p);
        out_of_time = time_limit > 0 && std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() >= time_limit;
        return signal_seen == 0 && !out_of_time;
      },
      [&] {
        say_stopped(last);
        std::_Exit(code());
      });
  progress.Clear();
  if (report.end == SweepReport::End::kInterrupted) {
    say_stopped(report.progress);
    return code();
  }
  const SweepProgress& p = report.progress;
  if (options.json) {
    Print("{\"name\": " + ToJsonString(plan.facts().name) + ", \"folder\": " + ToJsonString(sweep.folder) + ", \"shard\": " + ToJsonString(sweep.shard.Text()) +
          ", \"end\": " + (report.end == SweepReport::End::kWasDone ? "\"was done\"" : "\"done\"") + ", \"complete\": " + (report.complete ? "true" : "false") +
          ", \"runs\": " + std::to_string(p.total) + ", \"done_here\": " + std::to_string(p.done_here) + ", \"diverged\": " + std::to_string(p.diverged) +
          ", \"stuck\": " + std::to_string(p.stuck) + ", \"invalid\": " + std::to_string(p.invalid) + ", \"seconds\": " + ToJsonText(p.seconds) + "}\n");
  } else if (!options.quiet) {
    std::string text = plan.facts().name + ": " + (sweep.shard.count > 1 ? "shard " + sweep.shard.Text() + ", " : "") + Count(p.total, "run");
    if (report.end == SweepReport::End::kWasDone) {
      text += " (was done before)\n";
    } else {
      if (p.done_here < p.total) text += ", " + Count(p.done_here) + " of them now";
      text += ": " + Count(p.diverged) + " diverged, " + Count(p.stuck) + " stuck";
      if (p.dropped > 0) text += ", " + Count(p.dropped) + " dropped by where";
      text += "; " + DurationText(p.seconds);
      if (p.seconds > 0 && p.done_here > 0) text += " (" + RateText(static_cast<double>(p.done_here) / p.seconds) + " runs/s on " + std::to_string(sweep.threads) + (sweep.threads == 1 ? " thread)" : " threads)");
      text += "\n";
    }
    if (report.complete) {
      text += "  " + sweep.folder + "/results.csv\n";
    } else {
      text += "  when all shards are done: scaletrace sweep merge " + sweep.folder + "\n";
    }
    Print(text);
  }
  if (report.failed > 0) {
    Error(Count(report.failed) + (report.failed == 1 ? " combination makes no config" : " combinations make no config") + " (verdict invalid)" +
          (report.first_error.empty() ? "" : ": " + report.first_error));
    return kSomeInvalid;
  }
  return 0;
}

// ---- sweep plan FILE ----

struct Kept {
  std::uint64_t looked = 0, kept = 0;
};

// How many runs `where` keeps, of all or of a sample spread over them.
Kept CountKept(const SweepPlan& plan) {
  constexpr std::uint64_t kMost = 20000;
  Kept count;
  RunConfig config;
  const std::uint64_t looks = std::min(plan.runs(), kMost);
  for (std::uint64_t i = 0; i < looks; ++i) {
    const auto run = static_cast<std::uint64_t>(static_cast<double>(plan.runs()) / static_cast<double>(looks) * static_cast<double>(i));
    ++count.looked;
    if (!plan.Make(std::min(run, plan.runs() - 1), config).dropped) ++count.kept;
  }
  return count;
}

struct Estimate {
  double seconds = 0;       // of one run
  double row_bytes = 0;     // of results.csv
  double trace_bytes = 0;   // of one trace
};

// A few runs spread over the plan, cut to the first steps and timed for a tenth of a second or so; nothing is kept of them.
Estimate Trial(const SweepPlan& plan, const KernelTable& kernels) {
  constexpr std::uint64_t kRuns = 64;
  std::vector<RunConfig> configs;
  std::vector<std::uint64_t> numbers;
  double steps = 0, trace_bytes = 0;
  for (std::uint64_t i = 0; i < std::min(kRuns * 4, plan.runs()) && configs.size() < kRuns; ++i) {
    const std::uint64_t run = plan.runs() / std::min(kRuns * 4, plan.runs()) * i;
    RunConfig config;
    const SweepPlan::Made made = plan.Make(run, config);
    if (made.dropped || !made.error.empty()) continue;
    steps += static_cast<double>(config.steps);
    // A cell has some seven bytes.
    if (config.trace.every > 0) trace_bytes += 7.0 * static_cast<double>(config.trace.columns.size()) * std::ceil(static_cast<double>(config.steps) / static_cast<double>(config.trace.every));
    configs.push_back(std::move(config));
    numbers.push_back(run);
  }
  Estimate estimate;
  if (configs.empty()) return estimate;
  const auto count = static_cast<double>(configs.size());
  steps /= count;
  estimate.trace_bytes = trace_bytes / count;
  std::vector<RunOutcome> outcomes;
  for (std::int64_t cut = 16;; cut *= 4) {
    std::vector<RunConfig> cut_configs = configs;
    double taken = 0;
    for (RunConfig& config : cut_configs) {
      config.steps = std::min(config.steps, cut);
      taken += static_cast<double>(config.steps);
    }
    const auto start = std::chrono::steady_clock::now();
    const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    outcomes = RunBlock(cut_configs, kernels, [&] { return seconds() < 0.3; });
    if (outcomes.empty()) break;
    estimate.seconds = seconds() / static_cast<double>(outcomes.size()) * (taken > 0 ? steps * count / taken : 1);
    if (seconds() > 0.08 || outcomes.size() < configs.size() || static_cast<double>(cut) >= steps) break;
  }
  std::string rows;
  for (std::size_t i = 0; i < outcomes.size(); ++i) plan.AppendRow(numbers[i], configs[i], outcomes[i].error, outcomes[i], rows);
  if (!outcomes.empty()) estimate.row_bytes = static_cast<double>(rows.size()) / static_cast<double>(outcomes.size());
  return estimate;
}

std::string BytesText(double bytes) { return RateText(bytes) + (bytes < 999.5 ? " B" : "B"); }

// Cells in columns, numbers to the right.
std::string Table(const std::vector<std::vector<std::string>>& rows, const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = indent;
    for (std::size_t i = 0; i < row.size(); ++i) line += (i > 0 ? "  " : "") + std::string(widths[i] - row[i].size(), ' ') + row[i];
    text += line + "\n";
  }
  return text;
}

std::string Shortened(std::string text) {
  constexpr std::size_t kMost = 24;
  if (text.size() > kMost) text = text.substr(0, kMost - 3) + "...";
  return text;
}

int Plan(const Options& options) {
  const SweepPlan plan = ReadPlan(options);
  const PlanFacts& facts = plan.facts();
  std::string product;
  for (const Axis& axis : plan.axes()) product += (product.empty() ? "" : " x ") + Count(axis.count());
  if (plan.repeat() > 1) product += (product.empty() ? "" : " x ") + Count(plan.repeat(), "seed");
  std::string text = facts.name + ": " + Count(plan.runs(), "run");
  if (plan.capped()) {
    text += ", of the " + product + " taken evenly (cap)\n";
  } else {
    text += product.find(' ') == std::string::npos ? "\n" : " = " + product + "\n";
  }
  double runs = static_cast<double>(plan.runs());
  if (facts.filtered) {
    const Kept kept = CountKept(plan);
    const double share = static_cast<double>(kept.kept) / static_cast<double>(kept.looked);
    runs *= share;
    const bool exact = kept.looked == plan.runs();
    text += "where " + plan.where() + ": keeps " + (exact ? Count(kept.kept) : "about " + Count(static_cast<std::uint64_t>(std::llround(runs)))) + "\n";
  }
  if (!plan.axes().empty()) text += "\naxes\n";
  for (const Axis& axis : plan.axes()) {
    text += "  " + axis.name() + ": ";
    if (axis.keys().size() == 1 && axis.keys()[0] == axis.name()) {
      YamlNode scratch;
      const std::uint64_t shown = std::min<std::uint64_t>(axis.count(), 6);
      text += Count(axis.count(), "value") + ": ";
      for (std::uint64_t i = 0; i < shown; ++i) {
        std::vector<KeyValue> settings;
        axis.Settings(i + 1 == shown ? axis.count() - 1 : i, settings);
        std::string value = settings[0].value.text;
        if (settings[0].value.kind == YamlNode::Kind::kList) value = "[...]";
        text += (i == 0 ? "" : i + 1 == shown && shown < axis.count() ? ", ..., " : ", ") + Printable(value);
      }
    } else {
      text += Count(axis.count(), "setting") + " of";
      for (std::size_t i = 0; i < axis.keys().size(); ++i) text += (i == 0 ? " " : ", ") + axis.keys()[i];
    }
    text += "\n";
  }

  std::vector<std::string> header, cells;
  SplitCsv(facts.header, header);
  const std::size_t shown_columns = header.size() - 14;
  std::vector<std::vector<std::string>> table;
  table.emplace_back(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(shown_columns));
  std::string problems;
  for (std::uint64_t run = 0; run < plan.runs() && table.size() <= static_cast<std::size_t>(options.rows) && run < 100000; ++run) {
    RunConfig config;
    const SweepPlan::Made made = plan.Make(run, config);
    if (made.dropped) continue;
    if (!made.error.empty()) problems += "  run " + std::to_string(run) + " makes no config: " + made.error + "\n";
    std::string row;
    plan.AppendRow(run, config, made.error, {}, row);
    row.pop_back();
    SplitCsv(row, cells);
    cells.resize(shown_columns);
    for (std::string& cell : cells) cell = Shortened(cell);
    table.push_back(cells);
  }
  text += "\nfirst runs\n" + Table(table, "  ") + problems;

  const int threads = options.jobs > 0 ? options.jobs : UsableCpus();
  const Estimate estimate = Trial(plan, KernelsFor(options.target));
  double kept_traces = 0;
  if (plan.keep_traces() == KeepTraces::kAll) kept_traces = runs;
  if (plan.keep_traces() == KeepTraces::kSample) kept_traces = std::min(runs, static_cast<double>(plan.sample()));
  text += "\ntime   about " + DurationText(std::max(runs * estimate.seconds / threads, 1e-3)) + " on " + std::to_string(threads) + (threads == 1 ? " thread" : " threads") +
          " (from a few steps, timed now)\n";
  text += "disk   about " + BytesText(2 * runs * estimate.row_bytes) + " while it runs, " + BytesText(runs * estimate.row_bytes) + " of results.csv at the end";
  if (kept_traces > 0) text += ", " + BytesText(kept_traces * estimate.trace_bytes) + " of traces";
  if (plan.keep_traces() == KeepTraces::kDiverged || plan.keep_traces() == KeepTraces::kTrouble) {
    text += ", " + BytesText(estimate.trace_bytes) + " for each trace that is kept";
  }
  text += "\nfolder " + DefaultFolder(facts) + " unless --out says another\n";
  for (const std::string& warning : plan.Warnings()) Warn(warning);
  Print(text);
  return 0;
}

int ShowConfig(const Options& options) {
  const SweepPlan plan = ReadPlan(options);
  if (options.run >= plan.runs()) throw Wrong("RUN", "found " + std::to_string(options.run) + "; allowed: a number below " + std::to_string(plan.runs()));
  RunConfig config;
  const SweepPlan::Made made = plan.Make(options.run, config);
  if (!made.error.empty()) {
    Error("run " + std::to_string(options.run) + ": " + made.error);
    return kSomeInvalid;
  }
  if (made.dropped) Warn("run " + std::to_string(options.run) + " is dropped by where");
  Print(ResolvedYaml(config));
  return 0;
}

// ---- sweep status DIR, merge DIR ----

// The shards that the folder was worked on with: the largest number of shards that a part has.
std::uint64_t ShardCount(const DoneRuns& done) {
  std::uint64_t count = 1;
  for (const Part& part : done.parts) count = std::max(count, part.shard.count);
  return count;
}

std::string MissingText(const DoneRuns& done, const PlanFacts& facts) {
  const auto missing = done.Missing(0, facts.runs);
  std::string text;
  for (std::size_t i = 0; i < missing.size() && i < 4; ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(missing[i].first) + (missing[i].second - missing[i].first > 1 ? "-" + std::to_string(missing[i].second - 1) : "");
  }
  return text + (missing.size() > 4 ? ", ..." : "");
}

std::uint64_t CountInvalid(const SweepFolder& folder) {
  std::ifstream file(folder.results);
  std::uint64_t count = 0;
  for (std::string line; std::getline(file, line);) count += line.ends_with(",invalid") ? 1 : 0;
  return count;
}

int Status(const Options& options) {
  const SweepFolder folder(options.folder);
  const PlanFacts facts = ReadPlanFacts(folder);
  const bool complete = std::filesystem::exists(folder.results);
  const DoneRuns done = ReadParts(folder, facts);
  const std::uint64_t count = complete ? facts.runs : done.Count();
  const std::uint64_t failed = complete ? CountInvalid(folder) : done.Failed();
  const std::uint64_t shards = ShardCount(done);
  struct Row {
    Shard shard;
    std::uint64_t runs = 0, missing = 0, failed = 0;
    std::int64_t written_at = 0;
  };
  std::vector<Row> rows;
  constexpr std::uint64_t kMostRows = 10000;
  for (std::uint64_t number = 1; number <= std::min(shards, kMostRows); ++number) {
    Row row{{number, shards}};
    row.runs = RunsOfShard(facts, row.shard);
    row.missing = complete ? 0 : MissingOfShard(facts, row.shard, done);
    rows.push_back(row);
  }
  for (std::uint32_t part = 0; part < done.parts.size(); ++part) {
    const Shard& shard = done.parts[part].shard;
    if (shard.count != shards || shard.number > rows.size()) continue;
    Row& row = rows[shard.number - 1];
    row.written_at = std::max(row.written_at, done.parts[part].written_at);
    for (const DoneRange& range : done.ranges) row.failed += range.part == part ? range.failed : 0;
  }
  const std::int64_t now = std::time(nullptr);
  if (options.json) {
    std::string text = "{\"name\": " + ToJsonString(facts.name) + ", \"runs\": " + std::to_string(facts.runs) + ", \"done\": " + std::to_string(count) +
                       ", \"missing\": " + std::to_string(facts.runs - count) + ", \"failed\": " + std::to_string(failed) +
                       ", \"complete\": " + (complete ? "true" : "false") + ", \"shards\": [";
    for (const Row& row : rows) {
      text += std::string(row.shard.number > 1 ? ", " : "") + "{\"shard\": " + ToJsonString(row.shard.Text()) + ", \"runs\": " + std::to_string(row.runs) +
              ", \"done\": " + std::to_string(row.runs - row.missing) + ", \"missing\": " + std::to_string(row.missing) + ", \"failed\": " +
              std::to_string(row.failed) + "}";
    }
    Print(text + "]}\n");
    return 0;
  }
  std::string text = facts.name + ": " + Count(count) + " of " + Count(facts.runs, "run") + " done, " + Count(facts.runs - count) + " missing, " + Count(failed) + " failed\n";
  if (complete) {
    text += "  " + folder.results + "\n";
  } else {
    std::vector<std::vector<std::string>> table = {{"shard", "runs", "done", "missing", "failed", "last write"}};
    for (const Row& row : rows) {
      table.push_back({row.shard.Text(), Count(row.runs), Count(row.runs - row.missing), Count(row.missing), Count(row.failed),
                       row.written_at == 0 ? "never" : DurationText(static_cast<double>(std::max<std::int64_t>(now - row.written_at, 1))) + " ago"});
    }
    text += Table(table, "  ");
    text += count == facts.runs ? "  nothing is missing: scaletrace sweep merge " + options.folder + "\n" : "  missing: runs " + MissingText(done, facts) + "\n";
  }
  Print(text);
  return 0;
}

int Merge(const Options& options) {
  const SweepFolder folder(options.folder);
  const PlanFacts facts = ReadPlanFacts(folder);
  if (std::filesystem::exists(folder.results)) {
    if (!options.quiet) Print(folder.results + " is there already, with all " + Count(facts.runs, "run") + "\n");
    return 0;
  }
  const DoneRuns done = ReadParts(folder, facts);
  const std::uint64_t missing = facts.runs - done.Count();
  if (missing > 0) {
    const std::uint64_t shards = ShardCount(done);
    std::string names;
    int shown = 0;
    for (std::uint64_t number = 1; number <= shards && shown < 20; ++number) {
      const Shard shard{number, shards};
      if (MissingOfShard(facts, shard, done) == 0) continue;
      names += (shown++ > 0 ? ", " : "") + shard.Text();
    }
    Error(options.folder + ": " + (shown == 1 ? "shard " : "shards ") + names + (shown == 20 ? ", ..." : "") + (shown == 1 ? " misses " : " miss ") +
          Count(missing) + " of " + Count(facts.runs, "run") + " (" + MissingText(done, facts) + ")");
    return kShardsMissing;
  }
  WriteResults(folder, facts, done);
  if (!options.quiet) Print(facts.name + ": " + Count(facts.runs, "run") + " of " + std::to_string(done.parts.size()) + (done.parts.size() == 1 ? " part\n  " : " parts\n  ") + folder.results + "\n");
  return 0;
}

// ---- sweep summarize DIR ----

std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    if (end > start) words.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

int SummarizeIt(const Options& options) {
  SummarizeOptions what;
  what.by = Words(options.by);
  what.metrics = Words(options.metrics);
  if (!options.quantiles.empty()) what.quantiles.clear();
  for (const std::string& word : Words(options.quantiles)) {
    const auto q = ReadDouble(word);
    if (!q || !(*q >= 0 && *q <= 1)) throw Wrong("--quantiles", "found '" + Printable(word) + "'; allowed: numbers from 0 to 1, with commas between them");
    what.quantiles.push_back(*q);
  }
  SweepSummary summary;
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(options.folder, error);
  const SweepFolder folder(options.folder);
  const std::string path = is_file ? options.folder : folder.results;
  if (std::filesystem::exists(path, error)) {
    std::ifstream file(path);
    std::string header;
    if (!std::getline(file, header)) throw IoError(path, "cannot read, or is empty");
    summary = Summarize(header, path, [&](const auto& add) {
      for (std::string line; std::getline(file, line);) add(line);
    }, what);
    if (file.bad()) throw IoError(path, "cannot read", errno);
  } else {
    const PlanFacts facts = ReadPlanFacts(folder);
    const DoneRuns done = ReadParts(folder, facts);
    Warn("not complete: of " + Count(done.Count()) + " of " + Count(facts.runs, "run") + " so far");
    summary = Summarize(facts.header, folder.parts, [&](const auto& add) { ForEachRow(done, add); }, what);
  }

  std::vector<std::string> header = summary.by;
  header.insert(header.end(), {"runs", "ok"});
  const auto percent = [](double q) { return "q" + ToText(std::round(q * 1e6) / 1e4); };
  for (const std::string& metric : summary.metrics) {
    header.push_back(metric + "_median");
    for (const double q : what.quantiles) header.push_back(metric + "_" + percent(q));
    header.push_back(metric + "_min");
    header.push_back(metric + "_max");
    header.push_back(metric + "_nan");
  }
  const auto number = [&](double value) {
    if (options.csv) return ToText(value);
    char text[40];
    std::snprintf(text, sizeof(text), "%.6g", value);
    return std::isnan(value) ? std::string("NaN") : std::string(text);
  };
  std::vector<std::vector<std::string>> table = {header};
  for (const GroupSummary& group : summary.groups) {
    std::vector<std::string>& row = table.emplace_back(group.values);
    row.push_back(std::to_string(group.runs));
    row.push_back(std::to_string(group.ok));
    for (const MetricSummary& metric : group.metrics) {
      row.push_back(number(metric.median));
      for (const double q : metric.quantiles) row.push_back(number(q));
      row.push_back(number(metric.smallest));
      row.push_back(number(metric.largest));
      row.push_back(std::to_string(metric.nan));
    }
  }
  if (!options.csv) {
    Print(Table(table, ""));
    return 0;
  }
  std::string text;
  for (const auto& row : table) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text += ',';
      AppendCsvCell(row[i], text);
    }
    text += '\n';
  }
  Print(text);
  return 0;
}

}  // namespace

Action AddSweep(CLI::App& command) {
  auto o = std::make_shared<Options>();
  const auto add_file = [o](CLI::App& c) { return c.add_option("FILE", o->file, "YAML: a config with a key sweep (docs/sweeps.md)"); };
  const auto add_plan_options = [o](CLI::App& c) {
    c.add_option("--set", o->overrides, "Override a key, as in --set steps=100 --set sweep.repeat=5")->type_name("KEY.PATH=VALUE")->allow_extra_args(false);
  };
  command.require_subcommand(0, 1);
  command.set_help_flag("--help,-h", "This text");
  add_file(command);
  add_plan_options(command);
  command.add_option("--out", o->out, "The sweep's folder itself; default sweeps/NAME-HASH8")->type_name("DIR");
  command.add_option("-j,--jobs", o->jobs, "Threads; default: the processors this process may use")->type_name("N");
  command.add_option("--shard", o->shard, "Do one share of N, as in 2/8; auto asks the scheduler's environment")->type_name("K/N|auto");
  command.add_option("--shards", o->shards, "N, for schedulers that say K only (Kubernetes, PBS, GNU parallel)")->type_name("N");
  command.add_option("--keep-traces", o->keep_traces, "none, all, diverged, trouble, 'sample N'; instead of sweep.keep_traces")->type_name("WHICH");
  command.add_option("--time-limit", o->time_limit, "End in time, with exit 75: 3600, 50m, 1h30m, 1:30:00")->type_name("TIME");
  command.add_option("--stop-signal", o->stop_signal, "The scheduler's warning signal: end with exit 75")->type_name("USR1");
  command.add_flag("--json", o->json, "Print the end as one JSON object");
  command.add_flag("--quiet", o->quiet, "Print nothing but errors");
  command.add_flag("--force", o->force, "Start anew, replacing what an earlier sweep left in the folder");
  AddTargetOption(command, o->target);
  command.footer(
      "Killed at any moment, the same command goes on, and results.csv comes out the same to the byte: for any -j, any number of shards, any interruptions.\n\n"
      "Examples:\n"
      "  scaletrace init sweep-init-scale && scaletrace sweep plan sweep-init-scale.yaml\n"
      "  scaletrace sweep sweep-init-scale.yaml --out map\n"
      "  scaletrace sweep summarize map --by init_scale --metric skipped,final_loss\n"
      "  srun -n 64 scaletrace sweep big.yaml --out /shared/big -j 1 --shard auto && scaletrace sweep merge /shared/big\n\n"
      "Exit codes: 0 done, 1 a combination makes no config, 2 usage or config, 3 data or machine, 4 shards missing (merge), 75 time limit or warning, 130/143 interrupted.");

  const auto sub = [&](const char* name, const char* about) {
    CLI::App* c = command.add_subcommand(name, about);
    c->set_help_flag("--help,-h", "This text");
    return c;
  };
  const auto add_folder = [o](CLI::App& c) { c.add_option("DIR", o->folder, "The sweep's folder")->required(); };

  CLI::App* plan = sub("plan", "Say what a sweep would do: runs, axes, the first few, time and disk");
  add_file(*plan)->required();
  add_plan_options(*plan);
  plan->add_option("--rows", o->rows, "First runs to show (5)")->type_name("N")->check(CLI::Range(0, 1000));
  plan->add_option("-j,--jobs", o->jobs, "Threads of the estimated time")->type_name("N")->check(CLI::Range(1, kMostThreads));
  CLI::App* config = sub("config", "Print the config of one run, to run it alone");
  add_file(*config)->required();
  config->add_option("RUN", o->run, "Its number in results.csv")->required();
  add_plan_options(*config);
  config->footer("Example:\n  scaletrace sweep config FILE 4711 > run.yaml && scaletrace run run.yaml");
  CLI::App* status = sub("status", "Say what of a sweep is done, missing and failed, by shard");
  add_folder(*status);
  status->add_flag("--json", o->json, "As one JSON object");
  CLI::App* merge = sub("merge", "Put the parts of all shards together as results.csv");
  add_folder(*merge);
  merge->add_flag("--quiet", o->quiet, "Print nothing but errors");
  merge->footer("Exit 4, naming the shards, where runs are missing. Shards that ran elsewhere: copy their files in parts/ (and traces/) here first; no two have the same name.");
  CLI::App* summarize = sub("summarize", "Group the results: medians, quantiles, counts");
  summarize->add_option("DIR", o->folder, "The sweep's folder, or a results.csv")->required();
  summarize->add_option("--by", o->by, "Columns to group by, as in policy,init_scale")->type_name("COLUMN,...");
  o->metrics = "skipped,final_loss";
  summarize->add_option("--metric", o->metrics, "Columns of numbers to describe; default skipped,final_loss")->type_name("COLUMN,...");
  summarize->add_option("--quantiles", o->quantiles, "Besides the median; default 0.1,0.9")->type_name("Q,...");
  summarize->add_flag("--csv", o->csv, "As CSV, numbers in full");
  return [o, plan, config, status, merge, summarize] {
    if (plan->parsed()) return Plan(*o);
    if (config->parsed()) return ShowConfig(*o);
    if (status->parsed()) return Status(*o);
    if (merge->parsed()) return Merge(*o);
    if (summarize->parsed()) return SummarizeIt(*o);
    return RunIt(*o);
  };
}

}  // namespace scaletrace
