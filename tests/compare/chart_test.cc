// Pictures of text: no spike is lost, nothing is wider than it may be, and memory stays bounded.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compare/chart.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

// Code points: no more than one column each, here.
std::size_t Width(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

TEST_CASE("an overview keeps every extreme and event, however many steps there are") {
  for (const std::int64_t steps : {std::int64_t{1}, std::int64_t{100}, std::int64_t{4096}, std::int64_t{4097}, std::int64_t{1000003}}) {
    INFO(steps);
    Overview overview;
    for (std::int64_t i = 0; i < steps; ++i) overview.Add(i, i == steps / 3 ? 1e9 : 1, i == steps / 2 ? 0x1p-30 : 1024, i == steps - 1 ? Event::kGrowth : Event::kNone);
    CHECK(overview.first_step() == 0);
    CHECK(overview.last_step() == steps - 1);
    for (const std::size_t n : {std::size_t{1}, std::size_t{68}, std::size_t{5000}}) {
      const std::vector<ChartPart> parts = overview.Parts(n);
      REQUIRE(parts.size() == n);
      double high = 0, low = 1e300;
      std::uint32_t events = 0;
      for (const ChartPart& part : parts) {
        high = std::max(high, part.loss.high);
        low = std::min(low, part.scale.low);
        events |= part.events;
      }
      CHECK(high == 1e9);
      CHECK(low == 0x1p-30);
      CHECK(events == 1u << static_cast<int>(Event::kGrowth));
    }
  }
}

TEST_CASE("a picture of anything fits its width and has its height") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const double all[] = {1, 0, -1, inf, -inf, nan, 1e308, 5e-324, 65536};
  for (const bool ascii : {false, true}) {
    for (const std::size_t width : {std::size_t{39}, std::size_t{79}, std::size_t{399}}) {
      for (const double first : all) {
        for (const double second : all) {
          Overview overview;
          overview.Add(0, first, first, Event::kBackoff);
          overview.Add(1, second, second, Event::kGrowth);
          overview.Add(9, first, second, Event::kCeiling);
          ChartOptions options;
          options.width = width;
          options.height = 5;
          options.ascii = ascii;
          const std::vector<std::string> lines = Lines(DrawOverview(overview, options));
          CHECK((lines.size() == 2 * 6 + 2 + 3 || (width < 50 && lines.size() == 2 * 6 + 2 + 4)));
          for (const std::string& line : lines) {
            INFO(line);
            CHECK(Width(line) <= width);
            if (ascii) CHECK(std::all_of(line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace scaletrace
