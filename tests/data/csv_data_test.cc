// Data from a CSV file, and the messages for wrong ones.
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/generators.h"
#include "tests/catch.h"
#include "tests/data/temporary_folder.h"

namespace scaletrace {
namespace {

using Names = std::vector<std::string>;

Dataset Read(std::string_view text, const Names& features, const Names& targets,
             Standardize standardize = Standardize::kNone) {
  const TemporaryFolder folder;
  folder.Write("data.csv", text);
  return MakeDataset(CsvData{"data.csv", features, targets, standardize}, 1, folder.path());
}

// The message, without the folder before "data.csv".
std::string ErrorOf(std::string_view text, const Names& features = {"a"}, const Names& targets = {"b"},
                    InputError::Kind kind = InputError::Kind::kData) {
  try {
    Read(text, features, targets);
  } catch (const InputError& error) {
    CHECK(error.kind() == kind);
    const std::string what = error.what();
    const std::size_t at = what.find("data.csv");
    return at == std::string::npos ? what : what.substr(at);
  }
  return "no error";
}

TEST_CASE("columns are taken by name, in the order asked for, others may hold anything") {
  const std::string_view text = "a,label,b,c\n1,x y,2,3\n-4e-1,,5,6.5\n";
  const Dataset data = Read(text, {"c", "a"}, {"b"});
  CHECK(data.samples == 2);
  CHECK(data.features == 2);
  CHECK(data.outputs == 1);
  CHECK(data.x == std::vector<float>{3, 1, 6.5f, -0.4f});
  CHECK(data.y == std::vector<float>{2, 5});
  CHECK_FALSE(data.initial.has_value());
}

TEST_CASE("without a list of features every column that is no target is one") {
  const Dataset data = Read("a,b,c\n1,2,3\n", {}, {"b"});
  CHECK(data.x == std::vector<float>{1, 3});
  CHECK(data.y == std::vector<float>{2});
}

TEST_CASE("quotes, CRLF, a byte order mark and a missing last line end are read") {
  const Dataset data = Read("\xef\xbb\xbf\"a,\"\"1\"\"\",\"b\nline\",note\r\n1,\"2\",\"x,\"\"\n\r\n\"\r\n3,4,\"\"",
                            {"a,\"1\""}, {"b\nline"});
  CHECK(data.x == std::vector<float>{1, 3});
  CHECK(data.y == std::vector<float>{2, 4});
  CHECK(Read("a,b\r\n1,2\r\n", {"a"}, {"b"}).y == Read("a,b\n1,2", {"a"}, {"b"}).y);
}

TEST_CASE("cells round to f32 once, straight from their decimals") {
  // Just above the middle of two f32; rounding to double first loses that.
  const Dataset data = Read("a,b\n1.00000005960464477540,-0\n", {"a"}, {"b"});
  CHECK(data.x[0] == 1.00000012f);
  CHECK(data.y[0] == 0);
  CHECK(std::signbit(data.y[0]));
}

TEST_CASE("standardized columns have mean 0 and variance 1, equal values become 0") {
  const std::string_view text = "a,k,b\n1,0.1,10\n2,0.1,20\n3,0.1,30\n6,0.1,60\n";
  const Dataset features = Read(text, {"a", "k"}, {"b"}, Standardize::kFeatures);
  const double deviation = std::sqrt((4 + 1 + 0 + 9) / 4.0);
  const double want[] = {-2, -1, 0, 3};
  for (std::size_t n = 0; n < 4; ++n) {
    CHECK(features.x[2 * n] == static_cast<float>(want[n] / deviation));
    CHECK(features.x[2 * n + 1] == 0);
  }
  CHECK(features.y == std::vector<float>{10, 20, 30, 60});
  const Dataset all = Read(text, {"a", "k"}, {"b"}, Standardize::kAll);
  CHECK(all.x == features.x);
  for (std::size_t n = 0; n < 4; ++n) CHECK(all.y[n] == static_cast<float>(want[n] * 10 / (deviation * 10)));
}

TEST_CASE("a wrong cell is named by file, line, column, what was found and what is allowed") {
  CHECK_THAT(ErrorOf("a,b\n1,2\n1,x\n"),
             ContainsSubstring("data.csv:3: column 2 (b): found 'x'; allowed: a finite decimal number"));
  CHECK_THAT(ErrorOf("a,b\n,2\n"), ContainsSubstring("data.csv:2: column 1 (a): found an empty cell"));
  for (const std::string cell : {"NaN", "inf", "-inf", "nan", "+1", "1e39", " 1", "1 ", "0x10", "010", "1_000", ".5",
                                 "5.", "1;2", "\"1,5\"", "--1"}) {
    INFO(cell);
    CHECK_THAT(ErrorOf("a,b\n1,2\n" + cell + ",2\n"), ContainsSubstring("data.csv:3: column 1 (a): found '"));
  }
  // The line is where the row starts, though a cell before it has a line feed.
  CHECK_THAT(ErrorOf("a,c,b\n1,\"\n\n\",2\n1,\"\n\",x\n"), ContainsSubstring("data.csv:5: column 3 (b): found 'x'"));
}

TEST_CASE("a broken CSV file is refused with the place") {
  CHECK_THAT(ErrorOf(""), ContainsSubstring("data.csv: found an empty file"));
  CHECK_THAT(ErrorOf("\xef\xbb\xbf"), ContainsSubstring("found an empty file"));
  CHECK_THAT(ErrorOf("a,b"), ContainsSubstring("data.csv:1: found a header and no rows"));
  CHECK_THAT(ErrorOf("a,b\n"), ContainsSubstring("found a header and no rows"));
  CHECK_THAT(ErrorOf("a,b\n1,2\n1\n"), ContainsSubstring("data.csv:3: column 1: found 1 cell in this row; allowed: 2"));
  CHECK_THAT(ErrorOf("a,b\n1,2,3\n"),
             ContainsSubstring("data.csv:2: column 2: found more than 2 cells in this row; allowed: 2"));
  CHECK_THAT(ErrorOf("a,b\n1,2\n\n"), ContainsSubstring("data.csv:3: column 1: found 1 cell"));
  CHECK_THAT(ErrorOf("a,b\n1,2,\n"), ContainsSubstring("found more than 2 cells"));
  CHECK_THAT(ErrorOf("a,b,a\n1,2,3\n"), ContainsSubstring("found the column name 'a' twice, at columns 1 and 3"));
  CHECK_THAT(ErrorOf("a,b\n\"1,2\n3,4\n"),
             ContainsSubstring("data.csv:2: column 1: found a quote that is never closed"));
  CHECK_THAT(ErrorOf("a,b\n1\"2\",2\n"), ContainsSubstring("data.csv:2: column 1: found a quote within a cell"));
  CHECK_THAT(ErrorOf("a,b\n\"1\"2,2\n"), ContainsSubstring("data.csv:2: column 1: found '2' after a closing quote"));
  CHECK_THAT(ErrorOf("a,b\r1,2\r"), ContainsSubstring("found a carriage return without a line feed"));
  CHECK_THAT(ErrorOf(std::string_view("a,b\n1,\0002\n", 9)),
             ContainsSubstring("data.csv:2: column 2: found a NUL byte"));
  CHECK_THAT(ErrorOf(std::string_view("a,b\n1,\"\0\"\n", 10)),
             ContainsSubstring("data.csv:2: column 2: found a NUL byte"));
  CHECK_THAT(ErrorOf(std::string_view("\xff\xfe\x61\0", 4)), ContainsSubstring("found UTF-16"));
}

TEST_CASE("columns that are not there, or asked for twice, are refused with the key") {
  CHECK_THAT(ErrorOf("height,b\n1,2\n", {"hieght"}),
             ContainsSubstring(
                 "data.csv:1: data.features: found no column 'hieght' (did you mean 'height'?); allowed: height, b"));
  CHECK_THAT(ErrorOf("a,c\n1,2\n"), ContainsSubstring("data.csv:1: data.targets: found no column 'b'"));
  CHECK_THAT(ErrorOf("a,b\n1,2\n", {"a", "a"}, {"b"}, InputError::Kind::kConfig),
             ContainsSubstring("data.features: found the column 'a' again"));
  CHECK_THAT(ErrorOf("a,b\n1,2\n", {"b"}, {"b"}, InputError::Kind::kConfig),
             ContainsSubstring("data.features: found the column 'b' again"));
  CHECK_THAT(ErrorOf("a,b\n1,2\n", {"a"}, {}, InputError::Kind::kConfig),
             ContainsSubstring("data.targets: found no target column"));
  CHECK_THAT(ErrorOf("b\n1\n", {}, {"b"}, InputError::Kind::kConfig),
             ContainsSubstring("data.targets: found every column of the file"));
}

TEST_CASE("a header of more than 2^20 columns and a header of one long name end in an error, soon") {
  std::string commas;
  for (int i = 0; i <= 1 << 20; ++i) commas += std::to_string(i) + ",";
  CHECK_THAT(ErrorOf(commas + "a,b\n"), ContainsSubstring("found more than 2^20 columns"));
  const std::string message = ErrorOf(std::string(std::size_t{20} << 20, 'x') + ",b\n1,2\n", {"xx"});
  CHECK_THAT(message, ContainsSubstring("found no column 'xx'"));
  CHECK(message.size() < 1000);
}

TEST_CASE("a missing CSV file and a folder in its place are errors of the machine that name the path") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(MakeDataset(CsvData{"none.csv", {}, {"b"}, {}}, 1, folder.path()), IoError);
  CHECK_THROWS_WITH(MakeDataset(CsvData{"none.csv", {}, {"b"}, {}}, 1, folder.path()), ContainsSubstring("none.csv"));
  std::filesystem::create_directory(folder.path() + "/a.csv");
  CHECK_THROWS_WITH(MakeDataset(CsvData{"a.csv", {}, {"b"}, {}}, 1, folder.path()), ContainsSubstring("directory"));
}

}  // namespace
}  // namespace scaletrace
