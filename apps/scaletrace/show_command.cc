// scaletrace show: a trace on the terminal: scale and loss as a chart of text, the events, the verdict. The chart: lib/compare/chart.h.
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "compare/cell.h"
#include "compare/chart.h"
#include "scaletrace/commands.h"
#include "scaletrace/messages.h"
#include "scaletrace/traces.h"
#include "sweep/verdict.h"
#include "train/summary.h"

namespace scaletrace {
namespace {

struct ShowOptions {
  std::string trace;
  std::vector<std::string> map;
  std::string steps;
  bool json = false;
  bool ascii = false;
  bool no_color = false;
};

struct Window {
  std::size_t columns = 80, lines = 26;
  bool terminal = false;
};

std::optional<std::size_t> NumberIn(const char* variable) {
  const char* text = std::getenv(variable);
  std::size_t n = 0;
  if (text == nullptr || std::from_chars(text, text + std::char_traits<char>::length(text), n).ec != std::errc{} || n == 0) return std::nullopt;
  return n;
}

Window FindWindow() {
  Window window;
  window.terminal = ::isatty(STDOUT_FILENO) == 1;
  winsize size{};
  if (window.terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    window.columns = size.ws_col;
    if (size.ws_row > 0) window.lines = size.ws_row;
  }
  if (const auto n = NumberIn("COLUMNS")) window.columns = *n;
  if (const auto n = NumberIn("LINES")) window.lines = *n;
  window.columns = std::clamp<std::size_t>(window.columns, 40, 400);
  return window;
}

bool LocaleIsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text = value;
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

// "100:200", either side may be left out.
std::pair<std::int64_t, std::int64_t> ParseSteps(const std::string& text) {
  std::pair<std::int64_t, std::int64_t> range{std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  const std::size_t colon = text.find(':');
  const auto side = [&](std::string_view part, std::int64_t& to) {
    if (part.empty()) return true;
    const auto n = ReadInteger(part);
    if (n) to = *n;
    return n.has_value();
  };
  if (colon == std::string::npos || !side(std::string_view(text).substr(0, colon), range.first) || !side(std::string_view(text).substr(colon + 1), range.second) ||
      range.first > range.second) {
    throw InputError(InputError::Kind::kConfig, {.file = "--steps"}, "found '" + Printable(text) + "'; allowed: FROM:TO, as in 100:200, 100: or :200");
  }
  return range;
}

// What show needs of a row, and of the one before, since the scale after a step stands in the next row.
class Reading {
 public:
  Reading(const RowReader& reader, std::pair<std::int64_t, std::int64_t> range) : reader_(reader), range_(range) {
    for (std::size_t i = 0; i < kNames.size(); ++i) at_[i] = reader.Find(kNames[i]);
    if (!has(kLoss) && !has(kScale)) {
      throw InputError(InputError::Kind::kData, {.file = reader.name(), .line = 1}, "has neither a column loss nor loss_scale; --map THEIRS=OURS names them");
    }
  }

  void Add(const Row& row) {
    if (row.step < range_.first || row.step > range_.second) return;
    StepRecord r;
    r.step = row.step;
    r.loss = has(kLoss) ? static_cast<float>(Number(row, kLoss)) : 1;
    r.loss_scale = has(kScale) ? Number(row, kScale) : 1;
    r.grads_finite = !has(kFinite) || Cellf(row, kFinite).integer != 0;
    if (has(kEvent)) {
      const std::string_view word = row.cell(static_cast<std::size_t>(at_[kEvent]));
      const auto* found = std::find(std::begin(kEventNames), std::end(kEventNames), word);
      if (found != std::end(kEventNames)) r.event = static_cast<Event>(found - std::begin(kEventNames));
    }
    const bool skipped = has(kSkipped) ? Cellf(row, kSkipped).integer > 0 : !r.grads_finite;
    in_a_row_ = skipped ? in_a_row_ + 1 : 0;
    r.skipped_in_a_row = in_a_row_;
    ++rows_;
    if (pending_) {
      complete_ = complete_ && r.step == pending_->step + 1;
      Take(r.loss_scale);
    } else {
      complete_ = r.step == 0;
    }
    pending_ = r;
  }

  void Finish() {
    if (pending_) Take(pending_->loss_scale);
    // Without losses nothing is said about them.
    if (!has(kLoss)) {
      summary_.first_loss = 1;
      summary_.last_loss = 0.5f;
    }
  }

  bool loss() const { return has(kLoss); }
  bool scale() const { return has(kScale); }
  bool complete() const { return complete_; }
  std::int64_t rows() const { return rows_; }
  const Overview& overview() const { return overview_; }
  const Summary& summary() const { return summary_; }
  const std::array<std::int64_t, std::size(kEventNames)>& counts() const { return counts_; }

 private:
  enum Which : std::size_t { kLoss, kScale, kFinite, kEvent, kSkipped };
  static constexpr std::array<std::string_view, 5> kNames = {"loss", "loss_scale", "grads_finite", "event", "skipped_in_a_row"};

  bool has(Which which) const { return at_[which] >= 0; }
  Cell Cellf(const Row& row, Which which) const {
    Cell cell;
    const std::string_view text = row.cell(static_cast<std::size_t>(at_[which]));
    if (ReadCell(text, FindColumn(kNames[which])->type, cell)) return cell;
    throw InputError(InputError::Kind::kData, {.file = reader_.name(), .line = row.line, .key = std::string(kNames[which])},
                     "found '" + Printable(text) + "'; allowed: " + (which <= kScale ? "a number, inf or NaN" : "an integer"));
  }
  // An empty cell is a value that is not there, drawn as NaN.
  double Number(const Row& row, Which which) const {
    const Cell cell = Cellf(row, which);
    return cell.kind == Cell::Kind::kEmpty ? std::numeric_limits<double>::quiet_NaN() : cell.number;
  }

  void Take(double scale_after) {
    StepRecord& r = *pending_;
    if (!has(kEvent) && scale_after != r.loss_scale) r.event = scale_after > r.loss_scale ? Event::kGrowth : Event::kBackoff;
    ++counts_[static_cast<std::size_t>(r.event)];
    overview_.Add(r.step, static_cast<double>(r.loss), r.loss_scale, r.event);
    summary_.Add(r, scale_after);
  }

  const RowReader& reader_;
  std::pair<std::int64_t, std::int64_t> range_;
  std::array<int, 5> at_{};
  std::optional<StepRecord> pending_;
  Overview overview_;
  Summary summary_;
  std::array<std::int64_t, std::size(kEventNames)> counts_{};
  std::int64_t rows_ = 0, in_a_row_ = 0;
  bool complete_ = true;
};

// The summary that a run's folder holds, if the trace is a whole one of a run that is done.
std::optional<Summary> SummaryOf(const std::string& path) {
  const std::string file = (std::filesystem::path(path) / "summary.json").string();
  std::error_code error;
  if (!std::filesystem::is_directory(path, error) || !std::filesystem::exists(file, error)) return std::nullopt;
  constexpr std::size_t kMost = std::size_t{1} << 20;
  const Json json = Json::Parse(ReadFile(file, kMost), file, kMost);
  Summary summary;
  FieldsFromJson(json, json.Member(json.root(), "summary"), summary);
  return summary;
}

// For programs. What cannot be said of a trace that is not whole, or has no scale, is null.
std::string ReadingJson(const std::string& name, const Reading& reading, const std::optional<Summary>& summary, bool done) {
  std::string events;
  for (std::size_t i = 1; i < std::size(kEventNames); ++i) {
    events += (events.empty() ? "" : ", ") + ToJsonString(kEventNames[i]) + ": " + std::to_string(reading.counts()[i]);
  }
  const bool rows = reading.rows() > 0;
  return "{\"trace\": " + ToJsonString(name) + ", \"rows\": " + std::to_string(reading.rows()) +
         ", \"first_step\": " + (rows ? std::to_string(reading.overview().first_step()) : "null") +
         ", \"last_step\": " + (rows ? std::to_string(reading.overview().last_step()) : "null") + ", \"done\": " + (done ? "true" : "false") +
         ", \"events\": {" + events + "}, \"summary\": " + (summary ? FieldsToJson(*summary) : "null") +
         ", \"verdict\": " + (summary ? ToJsonString(Verdict(*summary)) : "null") + ", \"story\": " + (summary ? ToJsonString(Story(*summary)) : "null") + "}\n";
}

// Sentences in lines of at most `width`.
std::string Wrapped(const std::string& text, std::size_t width) {
  std::string out, line;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    start = end + 1;
  }
  return line.empty() ? out : out + line + "\n";
}

int Execute(const ShowOptions& options) {
  std::vector<ColumnName> names;
  for (const std::string& text : options.map) names.push_back(ParseColumnName(text));
  const auto range = options.steps.empty() ? ParseSteps(":") : ParseSteps(options.steps);
  RowReader reader = OpenTrace(options.trace, names);
  Reading reading(reader, range);
  for (Row row; reader.Next(row);) reading.Add(row);
  reading.Finish();
  const std::optional<Summary> of_run = options.steps.empty() ? SummaryOf(options.trace) : std::nullopt;
  std::optional<Summary> summary = of_run;
  if (!summary && reading.rows() > 0 && reading.complete() && reading.scale()) summary = reading.summary();
  if (options.json) {
    Print(ReadingJson(reader.name(), reading, summary, of_run.has_value()));
    return 0;
  }
  if (reading.rows() == 0) {
    Print(reader.name() + ": no rows" + (options.steps.empty() ? "" : " in steps " + options.steps) + "\n");
    return 0;
  }
  const Window window = FindWindow();
  ChartOptions chart;
  chart.width = window.columns - 1;  // some terminals break a line that fills them
  chart.ascii = options.ascii || !LocaleIsUtf8();
  chart.color = window.terminal && !options.no_color && std::getenv("NO_COLOR") == nullptr;
  chart.loss = reading.loss();
  chart.scale = reading.scale();
  const std::size_t charts = (chart.loss ? 1u : 0u) + (chart.scale ? 1u : 0u);
  // Beside the charts stand a title, two headings, the axis, the events and the verdict.
  const std::size_t room = window.lines > 13 ? window.lines - 13 : 0;
  chart.height = std::clamp<std::size_t>(room / charts, 4, 12);

  const Overview& overview = reading.overview();
  std::string title = Printable(reader.name(), window.columns > 50 ? window.columns - 35 : 15) + ": steps " + std::to_string(overview.first_step()) + " to " +
                      std::to_string(overview.last_step());
  const std::int64_t all = overview.last_step() - overview.first_step() + 1;
  if (all != reading.rows()) title += ", " + CountText(reading.rows(), "row");
  Print(title + "\n" + DrawOverview(overview, chart));
  std::string events;
  for (std::size_t i = 1; i < std::size(kEventNames); ++i) {
    if (reading.counts()[i] > 0) events += (events.empty() ? "" : ", ") + CountText(reading.counts()[i]) + " " + std::string(kEventNames[i]);
  }
  Print("events: " + (events.empty() ? std::string("none") : events) + "\n");
  if (summary) Print(Wrapped(Story(*summary), window.columns - 1));
  return 0;
}

}  // namespace

Action AddShow(CLI::App& command) {
  auto options = std::make_shared<ShowOptions>();
  command.add_option("TRACE", options->trace, "A CSV file, a run's or a case's folder, or - for standard input")->required();
  command.add_option("--steps", options->steps, "Only these steps, as in 100:200, 100: or :200")->type_name("FROM:TO");
  command.add_option("--map", options->map, "A column with another name, as in --map scale=loss_scale")->type_name("THEIRS=OURS")->allow_extra_args(false);
  command.add_flag("--json", options->json, "Print counts, summary, verdict and story as one JSON object instead");
  command.add_flag("--ascii", options->ascii, "Draw with plain ASCII; the default where the locale is not UTF-8");
  command.add_flag("--no-color", options->no_color, "No colors; the default in a pipe, or where NO_COLOR is set");
  command.footer(
      "Draws the loss scale and the loss over the steps, each on a logarithmic axis, as wide as the window (COLUMNS, or 80), marks the\n"
      "events below, and says what happened. No spike is lost: each place shows the extremes of its steps.\n\n"
      "Examples:\n"
      "  scaletrace show runs/quickstart\n"
      "  scaletrace show runs/quickstart --steps 880:980\n"
      "  scaletrace show runs/quickstart --json | jq -r .verdict\n"
      "  scaletrace show torch.csv --map scale=loss_scale --map found_inf=not-grads_finite");
  return [options] { return Execute(*options); };
}

}  // namespace scaletrace
