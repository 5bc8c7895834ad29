// scaletrace diff: two trajectories, the first difference and what is around it. The comparison: lib/compare.
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "check/tolerance.h"
#include "compare/compare.h"
#include "compare/report.h"
#include "scaletrace/commands.h"
#include "scaletrace/messages.h"
#include "scaletrace/traces.h"

namespace scaletrace {
namespace {

constexpr int kDiffers = 1;

struct DiffOptions {
  std::string a, b;
  std::vector<std::string> map;
  std::vector<std::string> columns;
  std::string tolerance;
  double ulps = -1;
  std::int64_t rows = 3;
  std::int64_t at = 0;
  bool has_at = false;
  bool json = false;
  bool quiet = false;
};

// A column that one side alone has under a name that other projects use for one of ours.
struct Alias {
  std::string_view theirs, map;
};
constexpr Alias kAliases[] = {
    {"scale", "loss_scale"},       {"cur_scale", "loss_scale"},       {"current_scale", "loss_scale"}, {"lossscale", "loss_scale"},
    {"found_inf", "not-grads_finite"}, {"overflow", "not-grads_finite"}, {"is_finite", "grads_finite"},
    {"growth_tracker", "good_steps"}, {"fin_steps", "good_steps"},
};

std::string Hint(const Comparison& c) {
  for (const auto* list : {&c.missing_columns, &c.extra_columns}) {
    for (const std::string& name : *list) {
      for (const Alias& alias : kAliases) {
        if (alias.theirs == name) return "hint: --map " + name + "=" + std::string(alias.map) + " compares that column with ours\n";
      }
    }
  }
  return "";
}

int Execute(const DiffOptions& options) {
  CompareOptions compare;
  compare.tolerances = Tolerances::Exact();
  if (!options.tolerance.empty()) compare.tolerances = ReadTolerances(options.tolerance);
  if (options.ulps >= 0) compare.tolerances.others = Tolerance{.ulps = options.ulps};
  compare.columns = options.columns;
  compare.rows_around = options.rows;
  if (options.has_at) compare.around = options.at;
  std::vector<ColumnName> names;
  for (const std::string& text : options.map) names.push_back(ParseColumnName(text));
  if (options.a == "-" && options.b == "-") throw InputError(InputError::Kind::kConfig, {.file = "diff"}, "found - twice; allowed: standard input for one of the two");
  RowReader a = OpenTrace(options.a, names), b = OpenTrace(options.b, names);
  for (const ColumnName& name : names) {
    const auto has = [&](const RowReader& r) { return std::find(r.header().begin(), r.header().end(), name.theirs) != r.header().end(); };
    if (!has(a) && !has(b)) throw InputError(InputError::Kind::kConfig, {.file = "--map"}, "found '" + Printable(name.theirs) + "', a column that neither trace has");
  }
  const Comparison c = Compare(a, b, compare);
  if (options.json) {
    Print(ComparisonJson(c));
  } else if (!options.quiet) {
    Print(std::string(c.equal ? "equal" : "different") + "\n  A  " + a.name() + " (" + CountText(c.expected_rows, "row") + ")\n  B  " + b.name() + " (" + CountText(c.got_rows, "row") + ")\n");
    Print(ComparisonReport(c, {"A", "B"}));
    Print(Hint(c));
    if (c.first_row && !options.has_at && options.a != "-" && options.b != "-") {
      std::string command = "scaletrace diff " + ShellWord(options.a) + " " + ShellWord(options.b);
      for (const std::string& text : options.map) command += " --map " + ShellWord(text);
      if (!options.tolerance.empty()) command += " --tolerance " + ShellWord(options.tolerance);
      if (options.ulps >= 0) command += " --ulps " + RateText(options.ulps);
      Print("look closer: " + command + " --at " + std::to_string(c.first_row->step) + " --rows 20\n");
    }
  }
  return c.equal ? 0 : kDiffers;
}

}  // namespace

std::string ShellWord(const std::string& text) {
  if (!text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+@%") == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

RowReader OpenTrace(const std::string& path, const std::vector<ColumnName>& names) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (path == "-") return {"standard input", FileText(path), names};
  // The last line of a run that isn't done may be half written.
  const auto text = [&](const fs::path& file) {
    const fs::path folder = file.parent_path();
    const bool in_progress = fs::exists(folder / "config.resolved.yaml", error) && !fs::exists(folder / "summary.json", error);
    return in_progress ? WholeLines(FileText(file.string())) : FileText(file.string());
  };
  if (!fs::is_directory(path, error)) return {path, text(path), names};
  for (const char* file : {"trace.csv", "expected.csv"}) {
    const std::string inside = (fs::path(path) / file).string();
    if (fs::exists(inside, error)) return {inside, text(inside), names};
  }
  throw InputError(InputError::Kind::kData, {.file = path}, "found a folder without trace.csv; allowed: a CSV file, a run's folder, or a case's folder");
}

Action AddDiff(CLI::App& command) {
  auto options = std::make_shared<DiffOptions>();
  command.add_option("A", options->a, "What is expected: a CSV file, a run's folder, or - for standard input")->required();
  command.add_option("B", options->b, "What is compared with it")->required();
  command.add_option("--map", options->map, "A column with another name: --map scale=loss_scale, --map found_inf=not-grads_finite")->type_name("THEIRS=OURS")->allow_extra_args(false);
  command.add_option("--columns", options->columns, "Compare these and step only")->delimiter(',')->type_name("NAME,NAME,...");
  CLI::Option* ulps = command.add_option("--ulps", options->ulps, "Let float columns (loss_scale excepted) be this many units in the last place apart; default 0")
                          ->type_name("N")->check(CLI::NonNegativeNumber);
  command.add_option("--tolerance", options->tolerance, "A tolerance.yaml, as a case has it")->type_name("FILE")->excludes(ulps);
  command.add_option("--rows", options->rows, "Rows shown before and after the first difference")->type_name("N")->check(CLI::Range(0, 10000))->capture_default_str();
  CLI::Option* at = command.add_option("--at", options->at, "Show the rows around this step instead")->type_name("STEP");
  CLI::Option* json = command.add_flag("--json", options->json, "Print one JSON object");
  command.add_flag("--quiet", options->quiet, "Print nothing: the exit code says it")->excludes(json);
  command.footer(
      "Rows belong together by their step. A row that is missing is not a row of NaN; NaN equals NaN. A column of A that B lacks is a\n"
      "difference; one that only B has is named and not compared. Exit code 0: equal, 1: different.\n\n"
      "Examples:\n"
      "  scaletrace diff runs/before runs/after\n"
      "  scaletrace diff torch.csv runs/mine --map scale=loss_scale --columns loss_scale\n"
      "  scaletrace diff a.csv b.csv --ulps 4 --json | jq .first");
  return [options, at] {
    options->has_at = at->count() > 0;
    return Execute(*options);
  };
}

}  // namespace scaletrace
