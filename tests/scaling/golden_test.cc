// What the public implementations do, vector by vector. The head of tests/golden/policies.tsv says how they were made.
#include <cmath>
#include <map>
#include <string>

#include "base/file.h"
#include "base/number.h"
#include "support.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts = {""};
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

struct Vector {
  std::size_t line;
  std::string key, init_scale, interval, events;
  std::vector<std::string> trace, params;
};

std::vector<Vector> ReadVectors() {
  std::vector<Vector> vectors;
  std::size_t number = 0;
  for (const std::string& line : Split(ReadFile(SCALETRACE_SOURCE_DIR "/tests/golden/policies.tsv", 1 << 20), '\n')) {
    ++number;
    if (line.empty() || line[0] == '#' || line.starts_with("impl\t")) continue;
    const std::vector<std::string> cells = Split(line, '\t');
    REQUIRE(cells.size() == 7);
    vectors.push_back({number, cells[0], cells[2], cells[3], cells[4], Split(cells[5], ','),
                       cells[6] == "-" ? std::vector<std::string>() : Split(cells[6], ';')});
  }
  return vectors;
}

double Tolerance(const std::string& key) { return key == "openseq2seq-logmax" ? 1e-9 : key == "chainer" ? 1e-12 : 0; }

TEST_CASE("Every golden vector is reproduced") {
  const std::vector<Vector> vectors = ReadVectors();
  CHECK(vectors.size() == 824);
  std::map<std::string, int> keys;
  for (const Vector& v : vectors) {
    ++keys[v.key];
    INFO("line " << v.line << ": " << v.key << " " << v.events);
    std::vector<std::string> settings = v.params;
    settings.push_back("init_scale=" + v.init_scale);
    settings.push_back("growth_interval=" + v.interval);
    Scaler scaler(PolicyWith(v.key, settings));
    const double tolerance = Tolerance(v.key);
    bool raised = false;
    std::size_t i = 0;
    for (; i < v.trace.size(); ++i) {
      if (v.trace[i] == "EXC" || v.trace[i] == "FPE") break;
      const double want = ReadCsvDouble(v.trace[i]).value();
      const double got = scaler.loss_scale();
      if (!(tolerance > 0 ? std::fabs(got - want) <= tolerance * std::fabs(want) : got == want)) {
        INFO("step " << i << ": " << ToText(got) << " where " << v.trace[i] << " is right");
        FAIL_CHECK("another scale");
        break;
      }
      if (i < v.events.size()) raised = scaler.Next(ObservationOf(v.events[i])).raised;
      const bool should_raise = i + 1 < v.trace.size() && (v.trace[i + 1] == "EXC" || v.trace[i + 1] == "FPE");
      if (raised != should_raise) {
        INFO("step " << i);
        FAIL_CHECK("raised where it should not, or not where it should");
        break;
      }
    }
  }
  CHECK(keys.size() == 32);
}

}  // namespace
}  // namespace scaletrace
