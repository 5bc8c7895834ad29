// Single steps and whole runs against the golden files, which a JAX program wrote.
#include <cstdlib>

#include "base/number.h"
#include "tests/catch.h"
#include "tests/golden.h"
#include "train/run.h"
#include "train/run_folder.h"
#include "train/single_step.h"

namespace scaletrace {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 26;

// A folder of its own for a test, removed at the end.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "scaletrace-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_CASE("every golden step comes out equal in parameters, scale, counter and flag on every instruction set, and its loss within 4 ulp") {
  for (const std::string& set : GoldenSets()) {
    const std::vector<std::string> lines = Lines(GoldenFolder() + "/" + set + "/steps.jsonl");
    REQUIRE(lines.size() >= 100);
    for (const KernelTable& kernels : CompiledKernels()) {
      for (std::size_t i = 0; i < lines.size(); ++i) {
        INFO(set << " line " << i + 1 << " on " << kernels.target);
        const Json golden = Json::Parse(lines[i], "steps.jsonl", kMaxBytes, i + 1);
        const std::string text = SingleStep(golden, golden.Member(golden.root(), "input"), kernels, PrecisionOf(set));
        const Json ours = Json::Parse(text, "ours", kMaxBytes);
        const JsonValue& expected = golden.Member(golden.root(), "output");
        const auto f32 = [](const Json& json, const JsonValue& object, const char* key) { return json.AsF32(json.Member(object, key)); };
        const auto w = [](const Json& json, const JsonValue& object) {
          return json.AsF32Matrix(json.Member(json.Member(object, "params"), "w")).entries;
        };
        const auto b = [](const Json& json, const JsonValue& object) { return json.AsF32List(json.Member(json.Member(object, "params"), "b")); };
        REQUIRE(SameBits(w(ours, ours.root()), w(golden, expected)));
        REQUIRE(SameBits(b(ours, ours.root()), b(golden, expected)));
        REQUIRE(SameBits(f32(ours, ours.root(), "loss_scale"), f32(golden, expected, "loss_scale")));
        REQUIRE(ours.AsInteger(ours.Member(ours.root(), "good_steps")) == golden.AsInteger(golden.Member(expected, "good_steps")));
        REQUIRE(ours.AsBool(ours.Member(ours.root(), "grads_finite")) == golden.AsBool(golden.Member(expected, "grads_finite")));
        REQUIRE(LossesAgree(f32(ours, ours.root(), "loss"), f32(golden, expected, "loss")));
      }
    }
  }
}

// Where XLA sums in another order, the final parameters may differ by this share of the largest; measured, and given with the golden files.
double FinalTolerance(const std::string& trace) {
  if (trace.find("bfloat16-strict/trace_08") != std::string::npos) return 1.2 * 3.7e-5;
  if (trace.find("bfloat16-excess/trace_05") != std::string::npos) return 1.2 * 4.3e-3;
  if (trace.find("float16-strict/trace_04") != std::string::npos && trace.find("bfloat16") == std::string::npos) return 1.2 * 9.5e-6;
  return 0;
}

// `ours` and `golden` hold w and then b.
void CheckFinal(const std::vector<float>& ours, const std::vector<float>& golden, double tolerance) {
  REQUIRE(ours.size() == golden.size());
  if (tolerance == 0) {
    REQUIRE(SameBits(ours, golden));
    return;
  }
  float largest = 0;
  for (const float v : golden) largest = std::max(largest, std::fabs(v));
  for (std::size_t i = 0; i < ours.size(); ++i) {
    REQUIRE(std::fabs(static_cast<double>(ours[i]) - static_cast<double>(golden[i])) <= tolerance * static_cast<double>(largest));
  }
}

TEST_CASE("every golden trace comes out of a run with equal flags, scales and counters in every row, and equal final parameters") {
  for (const std::string& set : GoldenSets()) {
    for (const std::string& trace : GoldenTraces(set)) {
      INFO(trace);
      const Json golden = Json::Parse(ReadFile(trace + ".json", kMaxBytes), trace, kMaxBytes);
      const auto member = [&](const char* key) -> const JsonValue& { return golden.Member(golden.root(), key); };
      RunConfig config;
      config.steps = golden.AsInteger(member("steps"));
      GivenData given;
      given.file = trace + ".json";
      config.data = given;
      config.precision = PrecisionOf(set);
      Sgd sgd;
      sgd.lr = golden.AsF32(member("lr"));
      config.optimizer = sgd;
      JaxStep policy;
      policy.init_scale = golden.AsF32(member("loss_scale"));
      policy.growth_interval = golden.AsInteger(member("growth_interval"));
      policy.good_steps = golden.AsInteger(member("good_steps"));
      config.scaler = policy;

      const Scratch scratch;
      FolderOptions folder;
      folder.path = scratch.path();
      folder.hash = "test";
      RunInFolder(config, CompiledKernels().front(), folder, [](const RunProgress&) { return true; });

      const std::vector<std::string> expected = Lines(trace + ".csv"), rows = Lines(scratch.path() + "/trace.csv");
      REQUIRE(rows.size() == expected.size());
      REQUIRE(rows.front().rfind("step,loss,loss_scale,good_steps,grads_finite", 0) == 0);
      for (std::size_t i = 1; i < rows.size(); ++i) {
        INFO("row " << i - 1);
        const std::vector<std::string> ours = Cells(rows[i]), theirs = Cells(expected[i]);
        REQUIRE(ours[0] == theirs[0]);
        REQUIRE(std::isfinite(*ReadCsvFloat(ours[1])) == std::isfinite(*ReadCsvFloat(theirs[1])));
        // Compared as f32: the golden file spells them as such.
        REQUIRE(static_cast<float>(*ReadCsvDouble(ours[2])) == *ReadCsvFloat(theirs[2]));
        REQUIRE(ours[3] == theirs[3]);
        REQUIRE(ours[4] == theirs[4]);
      }

      const Json last = Json::Parse(ReadFile(scratch.path() + "/final.json", kMaxBytes), "final.json", kMaxBytes);
      const JsonValue& theirs = member("final");
      const auto parameters = [](const Json& json, const JsonValue& object) {
        const JsonValue& params = json.Member(object, "params");
        std::vector<float> all = json.AsF32Matrix(json.Member(params, "w")).entries;
        for (const float v : json.AsF32List(json.Member(params, "b"))) all.push_back(v);
        return all;
      };
      CheckFinal(parameters(last, last.root()), parameters(golden, theirs), FinalTolerance(trace));
      REQUIRE(last.AsF32(last.Member(last.root(), "loss_scale")) == golden.AsF32(golden.Member(theirs, "loss_scale")));
      REQUIRE(last.AsInteger(last.Member(last.root(), "good_steps")) == golden.AsInteger(golden.Member(theirs, "good_steps")));
    }
  }
}

TEST_CASE("the three printed examples of the specification come out as printed") {
  const auto step = [](const std::string& text, Profile profile) {
    PrecisionOptions precision;
    precision.profile = profile;
    const Json in = Json::Parse(text, "example", kMaxBytes);
    return SingleStep(in, in.root(), CompiledKernels().front(), precision);
  };
  const std::string first = R"({"params": {"w": [[0.5], [-1.25]], "b": [0.1]}, "x": [[1, 2], [0.5, -1]], "y": [[-1.9], [1.5]],
    "loss_scale": 1024, "good_steps": 0, "lr": 0.1, "growth_interval": 2})";
  const std::string second = R"({"params": {"w": [[1.3], [0.7]], "b": [-0.2]}, "x": [[0.9, 1.1], [-0.4, 2.2]], "y": [[1.94], [0.81]],
    "loss_scale": 512, "good_steps": 2, "lr": 0.05, "growth_interval": 3})";
  const std::string third = R"({"params": {"w": [[0.5], [-1.25]], "b": [0.1]}, "x": [[1, 2], [0.5, -1]], "y": [[40], [-30]],
    "loss_scale": 3e38, "good_steps": 0, "lr": 0.1, "growth_interval": 2})";
  const auto check = [&](const std::string& text, float loss, std::vector<float> w, float b, float scale, std::int64_t good, bool finite) {
    const Json out = Json::Parse(text, "answer", kMaxBytes);
    const auto near = [](float ours, float printed) { return std::fabs(ours - printed) <= 0.6e-6f * std::max(1.0f, std::fabs(printed)); };
    const auto& params = out.Member(out.root(), "params");
    CHECK(near(out.AsF32(out.Member(out.root(), "loss")), loss));
    const std::vector<float> ours = out.AsF32Matrix(out.Member(params, "w")).entries;
    CHECK(near(ours[0], w[0]));
    CHECK(near(ours[1], w[1]));
    CHECK(near(out.AsF32List(out.Member(params, "b"))[0], b));
    CHECK(out.AsF32(out.Member(out.root(), "loss_scale")) == scale);
    CHECK(out.AsInteger(out.Member(out.root(), "good_steps")) == good);
    CHECK(out.AsBool(out.Member(out.root(), "grads_finite")) == finite);
  };
  check(step(first, Profile::kStrict), 0.005159f, {0.494775f, -1.240137f}, 0.089697f, 1024, 1, true);
  check(step(second, Profile::kStrict), 0.021242f, {1.309521f, 0.709766f}, -0.19043f, 1024, 0, true);
  check(step(third, Profile::kStrict), 1377.068848f, {0.5f, -1.25f}, 0.1f, 1.5e38f, 0, false);
  const Json excess = Json::Parse(step(first, Profile::kExcess), "answer", kMaxBytes);
  CHECK(std::fabs(excess.AsF32(excess.Member(excess.root(), "loss")) - 0.0050098f) < 1e-7f);
}

}  // namespace
}  // namespace scaletrace
