// Data from a JSON file, and the messages for wrong ones.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "data/generators.h"
#include "tests/catch.h"
#include "tests/data/temporary_folder.h"

namespace scaletrace {
namespace {

Dataset Read(const std::string& text) {
  const TemporaryFolder folder;
  folder.Write("data.json", text);
  return MakeDataset(GivenData{"data.json"}, 1, folder.path());
}

// The message, without the folder before "data.json".
std::string ErrorOf(const std::string& text) {
  try {
    Read(text);
  } catch (const InputError& error) {
    CHECK(error.kind() == InputError::Kind::kData);
    const std::string what = error.what();
    return what.substr(what.find("data.json"));
  }
  return "no error";
}

TEST_CASE("a JSON file gives features, targets and parameters") {
  const Dataset data = Read(R"({"x": [[1, 2.5, -3e-2], [0.1, 16777217, 1e-46]], "y": [[4, 5], [6, -0.0]],
                               "params": {"w": [[1, 2], [3, 4], [5, 6]], "b": [7, 8]}})");
  CHECK(data.samples == 2);
  CHECK(data.features == 3);
  CHECK(data.outputs == 2);
  CHECK(data.x == std::vector<float>{1, 2.5f, -3e-2f, 0.1f, 16777216, 0});
  CHECK(data.y == std::vector<float>{4, 5, 6, 0});
  CHECK(std::signbit(data.y[3]));
  REQUIRE(data.initial.has_value());
  CHECK(data.initial->w == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(data.initial->b == std::vector<float>{7, 8});
  CHECK_FALSE(data.TargetsChange(1));
}

TEST_CASE("parameters may be absent and the keys of a whole run's description are ignored") {
  const Dataset data = Read(
      R"({"x": [[1]], "y": [[2]], "loss_scale": "inf", "good_steps": 3, "lr": 0.1, "growth_interval": 5, "steps": 7,
                               "final": {"params": "nan"}})");
  CHECK_FALSE(data.initial.has_value());
  CHECK(data.x == std::vector<float>{1});
}

TEST_CASE("what is wrong with a JSON file is said with file, line, key, found and allowed") {
  CHECK_THAT(ErrorOf("{\"x\": [[1]],\n\"y\": [[1]],\n\"z\": 3}"),
             ContainsSubstring("data.json:3: found the key \"z\""));
  CHECK_THAT(ErrorOf("{\"y\": [[1]]}"), ContainsSubstring("x"));
  CHECK_THAT(ErrorOf("{\"x\": [[1]]}"), ContainsSubstring("y"));
  CHECK_THAT(ErrorOf("{\"x\": [[1], [2]],\n \"y\": [[1]]}"),
             ContainsSubstring("data.json:2: y: found 1 row; allowed: 2"));
  CHECK_THAT(ErrorOf("{\"x\": [[1, 2],\n [3]], \"y\": [[1], [2]]}"), ContainsSubstring("data.json:2: x[1]"));
  CHECK_THAT(ErrorOf("{\"x\": [], \"y\": []}"), ContainsSubstring("data.json:1: x"));
  CHECK_THAT(ErrorOf("{\"x\": [[]], \"y\": [[1]]}"), ContainsSubstring("data.json:1: x"));
  CHECK_THAT(ErrorOf("{\"x\": [[1,\n\"nan\"]], \"y\": [[1]]}"), ContainsSubstring("data.json:2: x[0][1]: found"));
  CHECK_THAT(ErrorOf("{\"x\": [[1]], \"y\": [[\"inf\"]]}"), ContainsSubstring("a finite number"));
  CHECK_THAT(ErrorOf("{\"x\": [[1]], \"y\": [[1e39]]}"), ContainsSubstring("data.json:1: y[0][0]"));
  CHECK_THAT(ErrorOf("{\"x\": [[1]], \"y\": [[true]]}"), ContainsSubstring("data.json:1: y[0][0]"));
  CHECK_THAT(ErrorOf("{\"x\": 1, \"y\": [[1]]}"), ContainsSubstring("data.json:1: x"));
  CHECK_THAT(ErrorOf("{\"x\": [[1]], \"y\": [[1]], \"params\": {\"w\": [[1]]}}"), ContainsSubstring("b"));
  CHECK_THAT(ErrorOf("{\"x\": [[1]], \"y\": [[1]], \"params\": {\"w\": [[1]], \"b\": [1, 2]}}"),
             ContainsSubstring("params.b: found 2 entries; allowed: 1"));
  CHECK_THAT(ErrorOf("{\"x\": [[1]], \"y\": [[1]], \"params\": {\"w\": [[1], [2]], \"b\": [1]}}"),
             ContainsSubstring("params.w: found 2 rows; allowed: 1"));
  CHECK_THAT(ErrorOf("{\"x\": [[1]], \"y\": [[1]], \"params\": {\"w\": [[1, 2]], \"b\": [1]}}"),
             ContainsSubstring("params.w: found 2 columns; allowed: 1"));
  CHECK_THAT(ErrorOf("{\"x\": [[1]], \"y\": [[1]], \"params\": {\"w\": [[\"-inf\"]], \"b\": [1]}}"),
             ContainsSubstring("params.w[0][0]"));
  CHECK_THAT(ErrorOf("{\"x\": [[1]], \"y\": [[1]], \"params\": {\"w\": [[1]], \"b\": [\"nan\"]}}"),
             ContainsSubstring("params.b[0]"));
  CHECK_THAT(ErrorOf("{\"x\": [[1]], \"y\": [[1]], \"params\": {\"w\": [[1]], \"b\": [1], \"c\": 1}}"),
             ContainsSubstring("params: found the key \"c\""));
  CHECK(ErrorOf("") != "no error");
  CHECK(ErrorOf("[1, 2]") != "no error");
  CHECK(ErrorOf(std::string(100000, '[')) != "no error");
}

TEST_CASE("a missing JSON file and a folder in its place are errors of the machine that name the path") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(MakeDataset(GivenData{"none.json"}, 1, folder.path()), IoError);
  CHECK_THROWS_WITH(MakeDataset(GivenData{"none.json"}, 1, folder.path()), ContainsSubstring("none.json"));
  std::filesystem::create_directory(folder.path() + "/a.json");
  CHECK_THROWS_WITH(MakeDataset(GivenData{"a.json"}, 1, folder.path()), ContainsSubstring("directory"));
}

TEST_CASE("the hash of data from a file is the SHA-256 of its bytes, wherever the path is taken from") {
  const TemporaryFolder folder;
  folder.Write("data.json", "abc");
  CHECK(DataFileHash(GivenData{"data.json"}, folder.path()) == Sha256("abc"));
  CHECK(DataFileHash(CsvData{folder.path() + "/data.json", {}, {}, {}}, "nowhere") == Sha256("abc"));
  CHECK_THROWS_AS(DataFileHash(GivenData{"none.json"}, folder.path()), IoError);
}

}  // namespace
}  // namespace scaletrace
