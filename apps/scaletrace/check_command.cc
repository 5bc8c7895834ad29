// scaletrace check: cases as regression tests. What a case is and how one is checked: lib/check/case.h.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "check/case.h"
#include "check/junit.h"
#include "scaletrace/commands.h"
#include "scaletrace/messages.h"
#include "scaletrace/traces.h"

namespace scaletrace {
namespace {

constexpr int kSomeFailed = 1;
// Reports in full; of failures after that one line each (the XML has them all).
constexpr int kFullReports = 20;

struct CheckOptions {
  std::vector<std::string> paths;
  bool update = false;
  bool list = false;
  bool quiet = false;
  int jobs = 0;
  std::string junit;
  std::string keep;
  std::string target;
  std::int64_t rows = 3;
};

// DIR/a/b.csv for the case a/b; what leads out of a folder is left out.
std::string KeptPath(const std::string& folder, const std::string& path) {
  std::filesystem::path kept = folder;
  for (const auto& part : std::filesystem::path(path).lexically_normal().relative_path()) {
    if (part != ".." && part != "." && !part.empty()) kept /= part;
  }
  return kept.string() + ".csv";
}

std::string Indented(const std::string& text) {
  std::string out;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    if (end > start) out += "  " + text.substr(start, end - start);
    out += '\n';
    start = end + 1;
  }
  return out;
}

class Checker {
 public:
  explicit Checker(const CheckOptions& options) : options_(options), kernels_(KernelsFor(options.target)) {
    std::set<std::string> seen;
    for (const std::string& path : options.paths) {
      for (std::string& found : FindCases(path)) {
        if (seen.insert(found).second) results_.push_back({std::move(found), {}});
      }
    }
    done_.resize(results_.size());
  }

  int Execute() {
    if (options_.list) {
      for (const NamedResult& r : results_) Print(r.path + "\n");
      return 0;
    }
    const auto start = std::chrono::steady_clock::now();
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t jobs = std::min(results_.size(), options_.jobs > 0 ? static_cast<std::size_t>(options_.jobs) : processors);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 1; i < jobs; ++i) threads.emplace_back([this] { Work(); });
      Work();
    }
    if (failure_) std::rethrow_exception(failure_);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!options_.junit.empty()) WriteFileAtomically(options_.junit, JUnitXml(results_, seconds), /*durable=*/false);
    std::string text = CountText(static_cast<std::int64_t>(results_.size()), "case") + ": " + CountText(passed_) + " passed";
    if (updated_ > 0) text += ", " + CountText(updated_) + " updated";
    if (failed_ > 0) text += ", " + CountText(failed_) + " failed";
    if (errors_ > 0) text += ", " + CountText(errors_) + " could not be checked";
    Print(text + " (" + DurationText(seconds) + ")\n");
    return failed_ + errors_ > 0 ? kSomeFailed : 0;
  }

 private:
  // Takes case after case. Results are printed in the order of the cases, whoever is ready first.
  void Work() {
    while (!stop_) {
      const std::size_t i = next_++;
      if (i >= results_.size()) return;
      try {
        CaseOptions options;
        options.rows_around = options_.rows;
        options.update = options_.update;
        if (!options_.keep.empty()) options.keep = KeptPath(options_.keep, results_[i].path);
        results_[i].result = CheckCase(results_[i].path, kernels_, options);
        const std::lock_guard lock(mutex_);
        done_[i] = true;
        for (; shown_ < results_.size() && done_[shown_]; ++shown_) Show(results_[shown_]);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        stop_ = true;
      }
    }
  }

  void Show(const NamedResult& r) {
    using Status = CaseResult::Status;
    const Status status = r.result.status;
    (status == Status::kPassed ? passed_ : status == Status::kUpdated ? updated_ : status == Status::kFailed ? failed_ : errors_) += 1;
    if (status == Status::kPassed || options_.quiet) return;
    const std::string word = status == Status::kUpdated ? "updated " : status == Status::kFailed ? "FAILED  " : "ERROR   ";
    if (reports_++ >= kFullReports) {
      Print(word + r.path + ": " + r.result.headline + "\n");
      return;
    }
    Print(word + r.path + "\n" + Indented(r.result.report));
    if (status == Status::kFailed) Print("  look closer: scaletrace check " + ShellWord(r.path) + " --rows 20\n");
    if (status == Status::kFailed) Print("  is it meant? scaletrace check " + ShellWord(r.path) + " --update\n");
    Print("\n");
  }

  const CheckOptions& options_;
  const KernelTable& kernels_;
  std::vector<NamedResult> results_;
  std::vector<bool> done_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::size_t shown_ = 0;
  int reports_ = 0;
  std::int64_t passed_ = 0, updated_ = 0, failed_ = 0, errors_ = 0;
};

}  // namespace

Action AddCheck(CLI::App& command) {
  auto options = std::make_shared<CheckOptions>();
  command.add_option("PATH", options->paths, "A case's folder, or a folder that holds cases at any depth")->required();
  command.add_flag("--update", options->update, "Write expected.csv anew where it differs or is not there; says what changed");
  command.add_option("--jobs", options->jobs, "Cases at once; default: one per processor")->type_name("N")->check(CLI::Range(1, 4096));
  command.add_option("--junit", options->junit, "Write the results as JUnit XML, for CI systems")->type_name("FILE");
  command.add_option("--keep", options->keep, "Write what each failed case computed to DIR/CASE.csv")->type_name("DIR");
  command.add_option("--rows", options->rows, "Rows shown before and after the first difference")->type_name("N")->check(CLI::Range(0, 10000))->capture_default_str();
  command.add_flag("--list", options->list, "Print the cases, and check none");
  command.add_flag("--quiet", options->quiet, "Print the last line only");
  AddTargetOption(command, options->target);
  command.footer(
      "A case is a folder:\n"
      "  config.yaml      as for scaletrace run\n"
      "  expected.csv     any columns of a trace, step among them, from any program\n"
      "  tolerance.yaml   optional, by column: exact, ignore, or {ulps: 4, absolute: 1e-9, relative: 1e-6}, any one of which\n"
      "                   is enough; without it floats may be 4 units in the last place apart and all else is exact\n"
      "  events.txt       optional: no model is trained, the scaler gets these steps: F finite, O inf, N NaN, as in '100F 1O'\n"
      "Exit code 0: all passed (or were updated), 1: some did not.\n\n"
      "Examples:\n"
      "  scaletrace check tests/cases\n"
      "  mkdir -p cases/mine && scaletrace init quickstart && mv quickstart.yaml cases/mine/config.yaml\n"
      "  scaletrace check cases --update                  # writes cases/mine/expected.csv\n"
      "  scaletrace check cases --junit results.xml --keep failed");
  return [options] { return Checker(*options).Execute(); };
}

}  // namespace scaletrace
