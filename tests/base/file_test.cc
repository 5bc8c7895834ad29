// Files: limits, replacing, whole lines, full disks.
#include "base/file.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/error.h"
#include "base/sha256.h"
#include "tests/catch.h"

namespace scaletrace {
namespace {

namespace fs = std::filesystem;

// An empty folder that goes away.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("scaletrace-file-test-" + std::to_string(::getpid()));
  Folder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
};

void Put(const std::string& path, const std::string& content) { std::ofstream(path, std::ios::binary) << content; }

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Files of this process can't grow beyond `bytes` while it lives: writes fail as on a full disk.
struct FileSizeLimit {
  rlimit old;
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    rlimit limit = old;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old);
    std::signal(SIGXFSZ, SIG_DFL);
  }
};

TEST_CASE("A file is read whole, up to its limit") {
  const Folder folder;
  const std::string path = folder / "file";
  std::string content;
  for (int i = 0; i < 300000; ++i) content += static_cast<char>(i * 7);
  Put(path, content);
  CHECK(ReadFile(path, content.size()) == content);
  CHECK_THROWS_WITH(ReadFile(path, content.size() - 1), path + ": is larger than 292 KiB, the most that is read");
  Put(path, "");
  CHECK(ReadFile(path, 0).empty());
}

TEST_CASE("What can't be read is an error that says why") {
  const Folder folder;
  CHECK_THROWS_WITH(ReadFile(folder / "none", 10), (folder / "none") + ": cannot open: No such file or directory");
  CHECK_THROWS_WITH(ReadFile(folder.path.string(), 10), folder.path.string() + ": is a directory, expected a file");
  CHECK_THROWS_AS(ReadFile("/dev/zero", 1 << 20), IoError);
}

TEST_CASE("A pipe is read to its end and no further than the limit") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  REQUIRE(::write(ends[1], "abcdef", 6) == 6);
  ::close(ends[1]);
  const std::string path = "/dev/fd/" + std::to_string(ends[0]);
  CHECK(ReadFile(path, 6) == "abcdef");
  ::close(ends[0]);
}

TEST_CASE("A file is replaced whole, and a failure leaves the old one") {
  const Folder folder;
  const std::string path = folder / "file";
  WriteFileAtomically(path, "old");
  CHECK(Slurp(path) == "old");
  WriteFileAtomically(path, "new", /*durable=*/false);
  CHECK(Slurp(path) == "new");
  {
    const FileSizeLimit limit(1000);
    CHECK_THROWS_WITH(WriteFileAtomically(path, std::string(2000, 'x')), path + ": cannot write: File too large");
  }
  CHECK(Slurp(path) == "new");
  CHECK_THROWS_WITH(WriteFileAtomically(folder / "none/file", "x"),
                    (folder / "none/file") + ": cannot create: No such file or directory");
  fs::create_directory(folder / "taken");
  CHECK_THROWS_WITH(WriteFileAtomically(folder / "taken", "x"), ContainsSubstring("taken: cannot replace: "));
  // No temporary file is left.
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 2);
}

TEST_CASE("A line file keeps what it is told to keep and grows by what is appended") {
  const Folder folder;
  const std::string path = folder / "lines";
  {
    LineFile file(path, 0);
    file.Append("one\n");
    CHECK(file.size() == 4);
    CHECK(Slurp(path).empty());  // buffered
    file.Append("two\nthree\n");
    file.Flush();
    CHECK(Slurp(path) == "one\ntwo\nthree\n");
    file.Append("lost\n");
  }
  CHECK(Slurp(path) == "one\ntwo\nthree\n");
  {
    LineFile file(path, 8);
    CHECK(file.size() == 8);
    CHECK(Slurp(path) == "one\ntwo\n");
    file.Append("four\n");
    file.Sync();
  }
  CHECK(Slurp(path) == "one\ntwo\nfour\n");
  CHECK_THROWS_WITH(LineFile(path, 100), ContainsSubstring("is shorter than what was written before"));
  CHECK(Slurp(path) == "one\ntwo\nfour\n");
  CHECK_THROWS_AS(LineFile(folder.path.string(), 0), IoError);
}

TEST_CASE("Lines of all lengths arrive in order, at every place in a page") {
  const Folder folder;
  const std::string path = folder / "lines";
  std::string expected;
  LineFile file(path, 0);
  for (std::size_t i = 0; i < 3000; ++i) {
    const std::string line = std::string(i % 97 == 0 ? 9000 : i * 7919 % 400, static_cast<char>('a' + i % 26)) + "\n";
    file.Append(line);
    expected += line;
    CHECK(file.size() == expected.size());
    if (i % 100 == 0) {
      const std::string now = Slurp(path);
      CHECK((now.empty() || now.back() == '\n'));
      CHECK(expected.starts_with(now));
    }
  }
  file.Flush();
  CHECK(Slurp(path) == expected);
}

TEST_CASE("Lines formatted in place and lines appended arrive in the order of the calls, and few writes carry many") {
  const Folder folder;
  const std::string path = folder / "lines";
  std::string expected;
  LineFile file(path, 0);
  std::uintmax_t seen = 0;
  int writes = 0;
  for (std::size_t i = 0; i < 40000; ++i) {
    const std::string line = std::to_string(i) + ",in place\n";
    char* const out = file.Reserve(400);  // more than is taken
    file.Commit(std::copy(line.begin(), line.end(), out));
    expected += line;
    if (i % 1000 == 0) {
      const std::string other(i % 2000 == 0 ? 7 : 400000, 'x');  // the longer are larger than any buffer
      file.Append(other + "\n");
      expected += other + "\n";
    }
    REQUIRE(file.size() == expected.size());
    if (const std::uintmax_t size = fs::file_size(path); size != seen) {
      seen = size;
      ++writes;
    }
  }
  CHECK(writes <= 41);  // one for each long line, and one for what came before it
  file.Flush();
  CHECK(Slurp(path) == expected);
}

TEST_CASE("A full disk leaves whole lines and says so") {
  const Folder folder;
  const std::string path = folder / "lines";
  const std::string line = std::string(99, 'x') + "\n";
  for (const rlim_t room :
       {rlim_t{0}, rlim_t{50}, rlim_t{100}, rlim_t{250}, rlim_t{4096}, rlim_t{5000}, rlim_t{70000}}) {
    INFO("room " << room);
    LineFile file(path, 0);
    for (int i = 0; i < 600; ++i) file.Append(line);  // short of a flush
    const FileSizeLimit limit(room);
    CHECK_THROWS_WITH(
        [&] {
          for (int i = 0; i < 200; ++i) file.Append(line);
          file.Flush();
        }(),
        path + ": cannot write: File too large");
    const std::string kept = Slurp(path);
    CHECK(kept.size() % 100 == 0);
    CHECK(kept.size() <= room);
    // All that fit.
    CHECK(kept.size() + line.size() > room);
    CHECK(file.size() == kept.size());
  }
  LineFile full("/dev/full", 0);
  full.Append("x\n");
  CHECK_THROWS_WITH(full.Flush(), "/dev/full: cannot write: No space left on device");
}

TEST_CASE("SHA-256 gives the published digests") {
  // FIPS 180-2, appendix B.
  CHECK(Sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(Sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(Sha256(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(Sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace scaletrace
