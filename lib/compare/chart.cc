#include "compare/chart.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/number.h"

namespace scaletrace {
namespace {

constexpr std::size_t kLabel = 9;  // characters at the left
constexpr const char* kReset = "\x1b[0m";

struct Mark {
  Event event;
  const char* utf8;
  const char* ascii;
  const char* color;
};
// Those that move the scale up stand on the line above, where several fall in one place the first here is shown.
constexpr Mark kUp[] = {{Event::kCeiling, "\u2594", "=", "\x1b[33m"}, {Event::kGrowth, "\u25b2", "^", "\x1b[32m"}};
constexpr Mark kDown[] = {{Event::kRaise, "!", "!", "\x1b[1;31m"},       {Event::kFloor, "\u2581", "_", "\x1b[31m"}, {Event::kForgiven, "~", "~", "\x1b[33m"},
                          {Event::kBackoff, "\u25bc", "v", "\x1b[31m"}, {Event::kOverflow, "x", "x", "\x1b[31m"}};

std::string Short(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof(text), value, std::chars_format::general, 3).ptr};
}

std::string Padded(const std::string& text, std::size_t width) { return text.size() < width ? std::string(width - text.size(), ' ') + text : text.substr(0, width); }

void AppendUtf8(std::string& out, char32_t c) {
  out += static_cast<char>(0xE0 | (c >> 12));
  out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
  out += static_cast<char>(0x80 | (c & 0x3F));
}

// A grid of dots, several to a character: 2 x 4 in braille, 1 x 2 in ASCII.
class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t lines, bool ascii)
      : across_(ascii ? 1 : 2), down_(ascii ? 2 : 4), columns_(columns), lines_(lines), ascii_(ascii), dots_(width() * height()) {}
  std::size_t width() const { return columns_ * across_; }
  std::size_t height() const { return lines_ * down_; }
  void Set(std::size_t x, std::size_t y) { dots_[y * width() + x] = true; }
  // One character, by its column and line from the top.
  std::string At(std::size_t column, std::size_t line) const {
    static constexpr int kBraille[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    int bits = 0;
    for (std::size_t y = 0; y < down_; ++y) {
      for (std::size_t x = 0; x < across_; ++x) {
        if (dots_[(line * down_ + y) * width() + column * across_ + x]) bits |= ascii_ ? 1 << y : kBraille[y][x];
      }
    }
    if (bits == 0) return " ";
    if (ascii_) return bits == 1 ? "'" : bits == 2 ? "." : ":";
    std::string out;
    AppendUtf8(out, static_cast<char32_t>(0x2800 + bits));
    return out;
  }

 private:
  std::size_t across_, down_, columns_, lines_;
  bool ascii_;
  std::vector<bool> dots_;
};

// A value's place on the vertical axis: logarithmic where all values are positive.
struct Axis {
  bool logarithmic = true;
  double low = 0, high = 1;  // in the units of Of

  double Of(double value) const { return logarithmic ? std::log2(value) : value; }
  double Back(double place) const { return logarithmic ? std::exp2(place) : place; }
};

Axis MakeAxis(const std::vector<ChartPart>& parts, Extremes ChartPart::*which) {
  Extremes all;
  for (const ChartPart& part : parts) all.Add(part.*which);
  Axis axis;
  if (all.empty()) return axis;
  axis.logarithmic = all.high > 0 && all.low >= 0;
  // A scale or a loss of 0 is drawn at the bottom. (Half of the smallest double is 0: the logarithm is halved.)
  axis.low = axis.logarithmic && !(all.low > 0) ? axis.Of(all.smallest_positive) - 1 : axis.Of(all.low);
  axis.high = axis.Of(all.high);
  if (!(axis.high - axis.low > 1e-9)) {
    axis.low -= axis.logarithmic ? 1 : std::fabs(axis.low) / 2 + 1e-30;
    axis.high += axis.logarithmic ? 1 : std::fabs(axis.high) / 2 + 1e-30;
  }
  return axis;
}

std::string Chart(const std::string& title, const Overview& overview, Extremes ChartPart::*which, bool powers, const char* color, const ChartOptions& options) {
  const std::size_t columns = options.width - kLabel - 2;
  Canvas canvas(columns, options.height, options.ascii);
  const std::vector<ChartPart> parts = overview.Parts(canvas.width());
  const Axis axis = MakeAxis(parts, which);
  const auto top = static_cast<double>(canvas.height() - 1);
  const auto row = [&](double value) {
    const double place = value > 0 || !axis.logarithmic ? (axis.Of(value) - axis.low) / (axis.high - axis.low) : 0;
    return static_cast<std::size_t>(std::lround(top - std::clamp(place, 0.0, 1.0) * top));
  };
  std::vector<bool> inf(columns), nan(columns);
  std::optional<double> last;
  for (std::size_t x = 0; x < parts.size(); ++x) {
    const Extremes& part = parts[x].*which;
    const std::size_t column = x * columns / canvas.width();
    inf[column] = inf[column] || part.inf;
    nan[column] = nan[column] || part.nan;
    if (part.empty()) {
      // A row that a thinned trace left out: the value before still holds. What is not finite breaks the line.
      if (part.inf || part.nan) last.reset();
      if (last) canvas.Set(x, row(*last));
      continue;
    }
    std::size_t from = row(part.high), to = row(part.low);
    if (last) {
      from = std::min(from, row(*last));
      to = std::max(to, row(*last));
    }
    for (std::size_t y = from; y <= to; ++y) canvas.Set(x, y);
    last = part.last;
  }
  const auto label = [&](std::size_t line) {
    const double place = axis.high - (axis.high - axis.low) * static_cast<double>(line) / static_cast<double>(options.height - 1);
    if (!powers || !axis.logarithmic) return Short(axis.Back(place));
    return std::fabs(place) < 10 ? Short(std::exp2(std::round(place * 4) / 4)) : "2^" + std::to_string(std::lround(place));
  };
  const char* bar = options.ascii ? "|" : "\u2502";
  std::string text = title + "\n";
  for (std::size_t line = 0; line < options.height; ++line) {
    const bool labelled = line == 0 || line + 1 == options.height || line == (options.height - 1) / 2;
    std::string out = Padded(labelled ? label(line) : "", kLabel) + " " + bar;
    std::string cells;
    for (std::size_t x = 0; x < columns; ++x) {
      cells += line == 0 && nan[x] ? "N" : line == 0 && inf[x] ? (options.ascii ? "I" : "\u221e") : canvas.At(x, line);
    }
    cells.erase(cells.find_last_not_of(' ') + 1);
    if (options.color && !cells.empty()) cells = color + cells + kReset;
    text += out + cells + "\n";
  }
  return text;
}

std::string Strip(const std::vector<ChartPart>& parts, std::span<const Mark> marks, const ChartOptions& options) {
  std::string out;
  bool any = false;
  for (const ChartPart& part : parts) {
    const auto found = std::find_if(marks.begin(), marks.end(), [&](const Mark& m) { return (part.events >> static_cast<int>(m.event) & 1u) != 0; });
    if (found == marks.end()) {
      out += ' ';
      continue;
    }
    any = true;
    const char* mark = options.ascii ? found->ascii : found->utf8;
    out += options.color ? std::string(found->color) + mark + kReset : std::string(mark);
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return any ? out : "";
}

}  // namespace

void Extremes::Add(double value) {
  if (std::isnan(value)) {
    nan = true;
  } else if (std::isinf(value)) {
    inf = true;
  } else {
    low = std::min(low, value);
    high = std::max(high, value);
    if (value > 0) smallest_positive = std::min(smallest_positive, value);
    last = value;
  }
}

void Extremes::Add(const Extremes& later) {
  if (!later.empty()) last = later.last;
  low = std::min(low, later.low);
  high = std::max(high, later.high);
  smallest_positive = std::min(smallest_positive, later.smallest_positive);
  nan = nan || later.nan;
  inf = inf || later.inf;
}

void Overview::Add(std::int64_t step, double loss, double scale, Event event) {
  if (stretches_.empty()) first_ = last_ = step;
  last_ = std::max(last_, step);
  std::int64_t index = std::max<std::int64_t>(0, step - first_) / width_;
  while (index >= static_cast<std::int64_t>(kStretches)) {
    std::vector<ChartPart> halved((stretches_.size() + 1) / 2);
    for (std::size_t i = 0; i < stretches_.size(); ++i) {
      halved[i / 2].loss.Add(stretches_[i].loss);
      halved[i / 2].scale.Add(stretches_[i].scale);
      halved[i / 2].events |= stretches_[i].events;
    }
    stretches_ = std::move(halved);
    width_ *= 2;
    index = (step - first_) / width_;
  }
  if (static_cast<std::size_t>(index) >= stretches_.size()) stretches_.resize(static_cast<std::size_t>(index) + 1);
  ChartPart& stretch = stretches_[static_cast<std::size_t>(index)];
  stretch.loss.Add(loss);
  stretch.scale.Add(scale);
  if (event != Event::kNone) stretch.events |= 1u << static_cast<int>(event);
}

std::vector<ChartPart> Overview::Parts(std::size_t n) const {
  std::vector<ChartPart> parts(n);
  const std::size_t count = stretches_.size();
  for (std::size_t i = 0; i < count; ++i) {
    ChartPart& part = parts[std::min(n - 1, i * n / count)];
    part.loss.Add(stretches_[i].loss);
    part.scale.Add(stretches_[i].scale);
    part.events |= stretches_[i].events;
  }
  return parts;
}

std::string DrawOverview(const Overview& overview, const ChartOptions& options) {
  std::string text;
  if (options.scale) text += Chart("loss scale", overview, &ChartPart::scale, true, "\x1b[36m", options);
  if (options.loss) text += Chart("loss", overview, &ChartPart::loss, false, "\x1b[33m", options);
  const std::size_t columns = options.width - kLabel - 2;
  const std::string line = options.ascii ? "-" : "\u2500";
  std::string axis = Padded("", kLabel) + " " + (options.ascii ? "+" : "\u2514");
  for (std::size_t i = 0; i < columns; ++i) axis += line;
  text += axis + "\n";
  const std::string first = std::to_string(overview.first_step()), middle = std::to_string(overview.first_step() + (overview.last_step() - overview.first_step()) / 2),
                    last = std::to_string(overview.last_step());
  std::string steps = Padded("step", kLabel) + "  " + first;
  const std::size_t at_middle = kLabel + 2 + columns / 2 - middle.size() / 2, at_end = options.width - last.size();
  if (at_middle > steps.size() + 1 && overview.last_step() - overview.first_step() > 2) steps += std::string(at_middle - steps.size(), ' ') + middle;
  if (at_end > steps.size() + 1) steps += std::string(at_end - steps.size(), ' ') + last;
  text += steps + "\n";
  const std::vector<ChartPart> parts = overview.Parts(columns);
  if (const std::string up = Strip(parts, kUp, options); !up.empty()) text += Padded("up", kLabel) + "  " + up + "\n";
  if (const std::string down = Strip(parts, kDown, options); !down.empty()) text += Padded("overflow", kLabel) + "  " + down + "\n";
  std::uint32_t events = 0;
  bool inf = false, nan = false;
  for (const ChartPart& part : parts) {
    events |= part.events;
    inf = inf || part.loss.inf || part.scale.inf;
    nan = nan || part.loss.nan || part.scale.nan;
  }
  // As many to a line as fit; a mark is one character wide.
  std::string legend;
  std::size_t used = options.width;
  const auto explain = [&](const std::string& mark, std::string_view word) {
    const std::size_t wide = 4 + word.size();
    if (used + wide > options.width) {
      legend += (legend.empty() ? "" : "\n") + std::string(kLabel, ' ');
      used = kLabel;
    }
    legend += "  " + mark + " " + std::string(word);
    used += wide;
  };
  for (const std::span<const Mark> marks : {std::span<const Mark>(kUp), std::span<const Mark>(kDown)}) {
    for (const Mark& m : marks) {
      if (events >> static_cast<int>(m.event) & 1u) explain(options.ascii ? m.ascii : m.utf8, Name(m.event));
    }
  }
  if (inf) explain(options.ascii ? "I" : "\u221e", "inf");
  if (nan) explain("N", "NaN");
  if (!legend.empty()) text += legend + "\n";
  return text;
}

}  // namespace scaletrace
