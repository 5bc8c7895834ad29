// The golden files are sharp: a plain-loop step passes all of them, and the same step with one rule of the arithmetic broken fails some.
#include <cmath>
#include <optional>

#include "kernels/flush_scope.h"
#include "numerics/format.h"
#include "tests/catch.h"
#include "tests/golden.h"

namespace scaletrace {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 26;

enum class Mutation { kNone, kRunningSum, kNoFrontPad, kDoubleRounding, kMulAdd, kInverseScale };

struct State {
  std::vector<float> w, b;
  float scale, lr;
  std::int64_t good, interval;
  bool finite = true;
};

struct Data {
  std::size_t B, D, K;
  std::vector<float> x, y;
};

class Step {
 public:
  Step(const PrecisionOptions& precision, Mutation mutation)
      : format_(*FindFormat(precision.compute)), strict_(precision.profile == Profile::kStrict), mutation_(mutation) {}

  // Written from the specification, apart from the product's own loops, so that an error has to be made twice.
  [[gnu::noinline]] void Take(const Data& data, State& s) const {
    const std::size_t n = data.B * data.K;
    const float c = 2.0f * (1.0f / static_cast<float>(n));
    std::vector<float> g(n);
    for (std::size_t i = 0; i < data.B; ++i) {
      for (std::size_t k = 0; k < data.K; ++k) {
        float h = 0;
        for (std::size_t d = 0; d < data.D; ++d) h = Accumulate(R(data.x[i * data.D + d]), R(s.w[d * data.K + k]), h, data.D);
        const float sum = R(h) + R(s.b[k]);
        const float e = (strict_ ? R(sum) : sum) - data.y[i * data.K + k];
        g[i * data.K + k] = n == 1 ? R(s.scale * (2.0f * e)) : R((s.scale * c) * e);
      }
    }
    std::vector<float> gradients;
    for (std::size_t d = 0; d < data.D; ++d) {
      for (std::size_t k = 0; k < data.K; ++k) {
        float dot = 0;
        for (std::size_t i = 0; i < data.B; ++i) dot = Accumulate(R(data.x[i * data.D + d]), g[i * data.K + k], dot, data.B);
        gradients.push_back(R(dot));
      }
    }
    for (std::size_t k = 0; k < data.K; ++k) {
      std::vector<float> column;
      for (std::size_t i = 0; i < data.B; ++i) column.push_back(g[i * data.K + k]);
      gradients.push_back(SumRows(column));
    }
    s.finite = true;
    for (float& v : gradients) {
      v = mutation_ == Mutation::kInverseScale ? v * (1.0f / s.scale) : v / s.scale;
      s.finite = s.finite && std::isfinite(v);
    }
    if (s.finite) {
      for (std::size_t i = 0; i < s.w.size(); ++i) s.w[i] = Multiplied(-s.lr, gradients[i], s.w[i]);
      for (std::size_t k = 0; k < s.b.size(); ++k) s.b[k] = Multiplied(-s.lr, gradients[s.w.size() + k], s.b[k]);
      if (++s.good >= s.interval) {
        s.scale *= 2;
        s.good = 0;
      }
    } else {
      s.scale = std::max(s.scale * 0.5f, 1.0f);
      s.good = 0;
    }
  }

 private:
  float R(float v) const {
    // Double rounding: through a format with some more bits first, as a conversion by way of a wider format does.
    if (mutation_ == Mutation::kDoubleRounding) {
      Format wider = format_;
      wider.mantissa_bits += 4;
      v = Round(wider, v);
    }
    return Round(format_, v);
  }
  float Multiplied(float a, float b, float c) const {
    if (mutation_ != Mutation::kMulAdd) return std::fma(a, b, c);
    const float product = a * b;
    return product + c;
  }
  float Accumulate(float a, float b, float sum, std::size_t terms) const { return terms == 1 ? a * b : Multiplied(a, b, sum); }
  float SumRows(std::vector<float> v) const {
    if (v.size() == 1) return v[0];
    while (v.size() > 32 && mutation_ != Mutation::kRunningSum) {
      const std::size_t pad = (32 - v.size() % 32) % 32;
      const std::size_t front = mutation_ == Mutation::kNoFrontPad ? 0 : pad / 2;
      v.insert(v.begin(), front, 0.0f);
      v.insert(v.end(), pad - front, 0.0f);
      std::vector<float> sums;
      for (std::size_t i = 0; i < v.size(); i += 32) sums.push_back(Sum(v.data() + i, 32));
      v = sums;
    }
    return Sum(v.data(), v.size());
  }
  float Sum(const float* v, std::size_t n) const {
    float sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum = R(sum + v[i]);
    return sum;
  }

  const Format& format_;
  bool strict_;
  Mutation mutation_;
};

Data ReadData(const Json& json, const JsonValue& object) {
  const Json::Matrix x = json.AsF32Matrix(json.Member(object, "x")), y = json.AsF32Matrix(json.Member(object, "y"));
  return {x.rows, x.columns, y.columns, x.entries, y.entries};
}

State ReadState(const Json& json, const JsonValue& object) {
  const JsonValue& params = json.Member(object, "params");
  return {json.AsF32Matrix(json.Member(params, "w")).entries,
          json.AsF32List(json.Member(params, "b")),
          json.AsF32(json.Member(object, "loss_scale")),
          json.AsF32(json.Member(object, "lr")),
          json.AsInteger(json.Member(object, "good_steps")),
          json.AsInteger(json.Member(object, "growth_interval")),
          true};
}

// How many golden steps and traces of bfloat16 come out otherwise. A trace: its scales row by row and its final scale and parameters, those whose final parameters
// are known to differ left out.
int Failures(Mutation mutation) {
  int failures = 0;
  for (const std::string& set : {std::string("bfloat16-strict"), std::string("bfloat16-excess")}) {
    const Step step(PrecisionOf(set), mutation);
    const FlushScope flush;
    for (const std::string& line : Lines(GoldenFolder() + "/" + set + "/steps.jsonl")) {
      const Json json = Json::Parse(line, "steps.jsonl", kMaxBytes);
      const JsonValue& input = json.Member(json.root(), "input");
      const JsonValue& output = json.Member(json.root(), "output");
      State state = ReadState(json, input);
      step.Take(ReadData(json, input), state);
      const JsonValue& params = json.Member(output, "params");
      const bool same = SameBits(state.w, json.AsF32Matrix(json.Member(params, "w")).entries) &&
                        SameBits(state.b, json.AsF32List(json.Member(params, "b"))) &&
                        SameBits(state.scale, json.AsF32(json.Member(output, "loss_scale"))) &&
                        state.good == json.AsInteger(json.Member(output, "good_steps"));
      failures += same ? 0 : 1;
    }
    for (const std::string& trace : GoldenTraces(set)) {
      if (trace.find("strict/trace_08") != std::string::npos || trace.find("excess/trace_05") != std::string::npos) continue;
      const Json json = Json::Parse(ReadFile(trace + ".json", kMaxBytes), trace, kMaxBytes);
      const std::vector<std::string> rows = Lines(trace + ".csv");
      const Data data = ReadData(json, json.root());
      State state = ReadState(json, json.root());
      bool same = true;
      for (std::size_t i = 1; i < rows.size() && same; ++i) {
        same = SameBits(state.scale, *ReadCsvFloat(Cells(rows[i])[2]));
        step.Take(data, state);
      }
      const JsonValue& params = json.Member(json.Member(json.root(), "final"), "params");
      same = same && SameBits(state.w, json.AsF32Matrix(json.Member(params, "w")).entries) &&
             SameBits(state.b, json.AsF32List(json.Member(params, "b")));
      failures += same ? 0 : 1;
    }
  }
  return failures;
}

TEST_CASE("a plain step written from the specification passes every golden file") { CHECK(Failures(Mutation::kNone) == 0); }
TEST_CASE("the golden files catch a plain running sum in place of the blocks of 32") { CHECK(Failures(Mutation::kRunningSum) > 0); }
TEST_CASE("the golden files catch a missing front pad") { CHECK(Failures(Mutation::kNoFrontPad) > 0); }
TEST_CASE("the golden files catch a double rounding") { CHECK(Failures(Mutation::kDoubleRounding) > 0); }
TEST_CASE("the golden files catch a product and a sum in place of a fused multiply-add") { CHECK(Failures(Mutation::kMulAdd) > 0); }
TEST_CASE("the golden files catch a multiplication by 1/S in place of the division") { CHECK(Failures(Mutation::kInverseScale) > 0); }

}  // namespace
}  // namespace scaletrace
