// Every file under tests/bad must get the message in the file of the same name that ends in ".expected": one line, the
// folder left out; "..." at its end stands for any rest. Besides: inputs that are too large or too strange to store.
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "config/config.h"
#include "data/file_data.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

namespace fs = std::filesystem;

const std::string kBad = std::string(SCALETRACE_SOURCE_DIR) + "/tests/bad/";

// What `read` says about the file, without the folder; "accepted" where it takes the file.
std::string Complaint(const std::function<void(const std::string&)>& read, const fs::path& path,
                      InputError::Kind kind) {
  try {
    read(path.string());
  } catch (const InputError& error) {
    CHECK(error.kind() == kind);
    std::string text = error.what();
    const std::string folder = path.parent_path().string() + "/";
    if (text.starts_with(folder)) text.erase(0, folder.size());
    return text;
  }
  return "accepted";
}

void CheckFolder(const std::string& name, std::size_t at_least, InputError::Kind kind,
                 const std::function<void(const std::string&)>& read) {
  std::set<fs::path> inputs;
  for (const auto& entry : fs::directory_iterator(kBad + name)) {
    if (entry.path().extension() != ".expected") inputs.insert(entry.path());
  }
  CHECK(inputs.size() >= at_least);
  for (const fs::path& input : inputs) {
    INFO(input);
    fs::path sidecar = input;
    sidecar.replace_extension(".expected");
    std::string expected = ReadFile(sidecar.string(), 10000);
    std::string complaint = Complaint(read, input, kind) + "\n";
    // A list that grows is not written out.
    if (expected.ends_with("...\n")) {
      expected.resize(expected.size() - 4);
      CHECK(complaint.size() > expected.size());
      complaint.resize(expected.size());
    }
    CHECK(complaint == expected);
  }
}

TEST_CASE("Every bad config gets its message") {
  CheckFolder("config", 80, InputError::Kind::kConfig, [](const std::string& path) { ReadConfig(path); });
}

TEST_CASE("Every bad JSON text gets its message") {
  CheckFolder("json", 15, InputError::Kind::kData,
              [](const std::string& path) { Json::Parse(ReadFile(path, 1 << 20), path, 1 << 20); });
}

TEST_CASE("Every bad file of given data gets its message") {
  CheckFolder("given", 10, InputError::Kind::kData, [](const std::string& path) { ReadGivenData({}, path); });
}

TEST_CASE("Every bad CSV file gets its message") {
  CheckFolder("csv", 15, InputError::Kind::kData, [](const std::string& path) {
    CsvData options;
    options.targets = {"y"};
    ReadCsvData(options, path);
  });
}

#if defined(__SANITIZE_ADDRESS__)
#define SCALETRACE_SLOWER 8
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SCALETRACE_SLOWER 8
#endif
#endif
#ifndef SCALETRACE_SLOWER
#define SCALETRACE_SLOWER 1
#endif

// Runs `read`, which must throw an E, and gives its message. Checks the processor's time and the growth of memory.
template <class E>
std::string QuickError(const std::function<void()>& read) {
  const auto used = [] {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage;
  };
  const auto seconds = [](const rusage& usage) {
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const rusage before = used();
  std::string message = "accepted";
  try {
    read();
  } catch (const E& error) {
    message = error.what();
  }
  const rusage after = used();
  CHECK(seconds(after) - seconds(before) < 2.0 * SCALETRACE_SLOWER);
  CHECK(after.ru_maxrss - before.ru_maxrss < SCALETRACE_SLOWER * (256L << 10));  // KiB
  return message;
}

std::string Repeat(std::string_view text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST_CASE("Ten thousand levels of nesting end in a quick error in every spelling") {
  const auto parse = [](const std::string& text) {
    return QuickError<InputError>([&] { ParseConfig(text, "c.yaml", "."); });
  };
  // Never closed: yaml-cpp, which looks for the end of a line first, calls it a key.
  for (const std::string_view unit : {"[", "{a: ", "[\n"})
    CHECK(parse("a: " + Repeat(unit, 10000)).starts_with("c.yaml:"));
  CHECK(parse("a: " + Repeat("[", 10000) + Repeat("]", 10000)) == "c.yaml:1: nested deeper than 64 levels");
  CHECK(parse(Repeat("- ", 10000)) == "c.yaml:1: nested deeper than 64 levels");
  CHECK(parse("? " + Repeat("? ", 10000)) ==
        "c.yaml:1: found a list or mapping as a key, or one that is never closed; allowed: a word as a key");
  std::string staircase;
  for (std::size_t i = 0; i < 1000; ++i) staircase += std::string(i, ' ') + "a:\n";
  CHECK(parse(staircase) == "c.yaml:65: nested deeper than 64 levels");
  CHECK(QuickError<InputError>([] { Json::Parse(Repeat("[", 10000), "d.json", 1 << 20); }) ==
        "d.json:1: nested deeper than 64 levels");
  CHECK(QuickError<InputError>([] { Json::Parse(Repeat("{\"a\":", 10000), "d.json", 1 << 20); }) ==
        "d.json:1: nested deeper than 64 levels");
}

TEST_CASE("A megabyte of anything is refused quickly") {
  for (const std::string_view unit :
       {"[",  "[\n", "{",   "- ", "? ", ": ", "a: ", "{a: ", "*a ", "&a ", "! ",    "!a ", "%", "---\n", "...\n",   "'",
        "\"", "''",  "|\n", ",",  "a",  " ",  "\n",  "#\n",  "\t",  "a\n", "- a\n", "}",   "]", "\\",    "\xC3\xA9"}) {
    for (const std::string_view start : {"", "a: ["}) {
      INFO("units of '" << unit << "' behind '" << start << "'");
      const std::string text = std::string(start) + Repeat(unit, ((std::size_t{1} << 20) - 10) / unit.size());
      CHECK(QuickError<InputError>([&] { ParseConfig(text, "c.yaml", "."); }) != "accepted");
    }
  }
}

TEST_CASE("Files that are no configs are refused before they are read") {
  const fs::path folder = fs::temp_directory_path() / ("scaletrace-bad-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string path = (folder / "junk").string();
  CHECK(QuickError<IoError>([&] { ReadConfig(folder.string()); }) ==
        folder.string() + ": is a directory, expected a file");
  CHECK(QuickError<IoError>([&] { ReadConfig(path); }) == path + ": cannot open: No such file or directory");
  {
    std::ofstream file(path);
    const std::string block = Repeat("[{\1*&", 200000);
    for (int i = 0; i < 100; ++i) file << block;
  }
  REQUIRE(fs::file_size(path) >= 100000000);
  CHECK(QuickError<IoError>([&] { ReadConfig(path); }) == path + ": is larger than 1024 KiB, the most that is read");
  CHECK(QuickError<IoError>([&] { ReadGivenData({}, path); }) ==
        path + ": is larger than " + std::to_string(kMaxGivenBytes >> 10) + " KiB, the most that is read");
  CHECK(QuickError<IoError>([] { ReadConfig("/dev/zero"); }) ==
        "/dev/zero: is larger than 1024 KiB, the most that is read");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace scaletrace
