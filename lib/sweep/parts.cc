#include "sweep/parts.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/sha256.h"

namespace scaletrace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostPlanBytes = std::size_t{1} << 22;
constexpr std::size_t kLongestHead = 256;
constexpr std::uint64_t kLongestRecord = std::uint64_t{1} << 30;
constexpr std::string_view kMagic = "scaletrace rows 1 ";

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

void WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw IoError(path, "cannot write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

// Sixteen hexadecimal digits that no other process has, on this machine or another.
std::string RandomSuffix() {
  std::array<unsigned char, 8> random;
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) throw IoError("random numbers", "the system has none", errno);
  std::string suffix;
  for (const unsigned char byte : random) {
    suffix += "0123456789abcdef"[byte >> 4];
    suffix += "0123456789abcdef"[byte & 15];
  }
  return suffix;
}

// Bytes from `offset` on, as many as `size` or up to the end of the file.
std::string ReadAt(int fd, std::uint64_t offset, std::size_t size, const std::string& path) {
  std::string bytes(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const ssize_t n = ::pread(fd, bytes.data() + have, size - have, static_cast<off_t>(offset + have));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw IoError(path, "cannot read", errno);
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

// Takes the next word and the space after it.
std::string_view Word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

struct Head {
  std::uint64_t first, end, failed, bytes;
  std::string_view sum;
};

// Of the numbers at a record's head too: a record with another END would claim runs that were never done.
std::string SumOf(std::uint64_t first, std::uint64_t end, std::uint64_t failed, std::string_view rows) {
  std::string text = std::to_string(first) + " " + std::to_string(end) + " " + std::to_string(failed) + " " + std::to_string(rows.size()) + "\n";
  text += rows;
  return Sha256(text);
}

std::optional<Head> ParseHead(std::string_view line) {
  if (Word(line) != "rows") return std::nullopt;
  const auto first = ReadUnsigned(Word(line)), end = ReadUnsigned(Word(line)), failed = ReadUnsigned(Word(line)), bytes = ReadUnsigned(Word(line));
  if (!first || !end || !failed || !bytes || *first >= *end || *bytes > kLongestRecord || line.size() != 64) return std::nullopt;
  return Head{*first, *end, *failed, *bytes, line};
}

// Reads one part's records as far as they are whole. False where the file has no whole first line: then it holds nothing yet.
bool ReadPart(const PlanFacts& facts, std::uint32_t index, const std::function<bool()>& keep_going, Part& part, DoneRuns& done) {
  const Descriptor file(::open(part.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ENOENT) return false;  // removed since the folder was listed
    throw IoError(part.path, "cannot open", errno);
  }
  struct stat info;
  if (::fstat(file.get(), &info) != 0) throw IoError(part.path, "cannot read", errno);
  part.written_at = info.st_mtim.tv_sec;
  std::string head = ReadAt(file.get(), 0, kLongestHead, part.path);
  std::size_t end = head.find('\n');
  if (end == std::string::npos || !head.starts_with(kMagic)) return false;
  std::string_view words = std::string_view(head).substr(kMagic.size(), end - kMagic.size());
  if (Word(words) != facts.hash) {
    throw InputError(InputError::Kind::kData, {.file = part.path}, "is a part of another sweep than the plan.json beside it");
  }
  const auto number = ReadUnsigned(Word(words)), count = ReadUnsigned(words);
  if (!number || !count || *number < 1 || *number > *count) return false;
  part.shard = {*number, *count};
  std::uint64_t offset = end + 1;
  while (true) {
    if (!keep_going()) {
      done.interrupted = true;
      return true;
    }
    head = ReadAt(file.get(), offset, kLongestHead, part.path);
    end = head.find('\n');
    if (end == std::string::npos) break;
    const auto parsed = ParseHead(std::string_view(head).substr(0, end));
    if (!parsed || parsed->end > facts.runs) break;
    offset += end + 1;
    const std::string rows = ReadAt(file.get(), offset, parsed->bytes, part.path);
    if (rows.size() != parsed->bytes || SumOf(parsed->first, parsed->end, parsed->failed, rows) != parsed->sum) break;
    done.ranges.push_back({parsed->first, parsed->end, parsed->failed, index, offset, parsed->bytes});
    offset += parsed->bytes;
  }
  return true;
}

std::uint64_t RunOf(std::string_view line, const std::string& path) {
  const auto run = ReadUnsigned(line.substr(0, line.find(',')));
  if (!run) throw InputError(InputError::Kind::kData, {.file = path}, "has a row that begins with no number of a run");
  return *run;
}

// Hands out all rows in chunks of whole lines, each run once and in order, until chunk() says false, which it then returns.
bool ForEachChunk(const DoneRuns& done, const std::function<bool(std::string_view)>& chunk) {
  std::uint64_t next = 0;
  int open_part = -1;
  std::optional<Descriptor> file;
  for (const DoneRange& range : done.ranges) {
    if (range.end <= next) continue;
    const std::string& path = done.parts[range.part].path;
    if (open_part != static_cast<int>(range.part)) {
      file.emplace(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (file->get() < 0) throw IoError(path, "cannot open", errno);
      open_part = static_cast<int>(range.part);
    }
    const std::string rows = ReadAt(file->get(), range.offset, range.bytes, path);
    if (rows.size() != range.bytes) throw IoError(path, "became shorter while it was read");
    std::string_view rest = rows;
    while (!rest.empty() && RunOf(rest, path) < next) rest.remove_prefix(std::min(rest.find('\n'), rest.size() - 1) + 1);
    if (!chunk(rest)) return false;
    next = range.end;
  }
  return true;
}

}  // namespace

PlanFacts ReadPlanFacts(const SweepFolder& folder) {
  std::error_code error;
  if (!fs::exists(folder.plan, error)) throw IoError(folder.path, "is no folder of a sweep: it has no plan.json");
  const Json json = Json::Parse(ReadFile(folder.plan, kMostPlanBytes), folder.plan, kMostPlanBytes);
  PlanFacts facts;
  FieldsFromJson(json, json.root(), facts);
  if (facts.format != 1) {
    throw InputError(InputError::Kind::kData, {.file = folder.plan}, "found format " + std::to_string(facts.format) + "; allowed: 1 (a newer program made it)");
  }
  if (facts.runs == 0 || facts.block == 0) throw InputError(InputError::Kind::kData, {.file = folder.plan}, "found a plan without runs");
  return facts;
}

ShardLock::ShardLock(const SweepFolder& folder, const Shard& shard) {
  const std::string path = folder.parts + "/" + std::to_string(shard.number) + "-of-" + std::to_string(shard.count) + ".lock";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) throw IoError(path, "cannot open", errno);
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL) return;
  const int error = errno;
  ::close(fd_);
  if (error == EWOULDBLOCK) {
    throw IoError(folder.path, "another process works on this sweep" + (shard.count > 1 ? " (shard " + shard.Text() + ")" : std::string()) +
                                   "; it goes on, this one ends");
  }
  throw IoError(path, "cannot lock", error);
}

ShardLock::~ShardLock() {
  if (fd_ >= 0) ::close(fd_);
}

PartWriter::PartWriter(const SweepFolder& folder, const std::string& plan_hash, const Shard& shard)
    : folder_(folder.parts),
      first_line_(std::string(kMagic) + plan_hash + " " + std::to_string(shard.number) + " " + std::to_string(shard.count) + "\n") {
  path_ = folder_ + "/" + std::to_string(shard.number) + "-of-" + std::to_string(shard.count) + "." + RandomSuffix() + ".rows";
}

PartWriter::~PartWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void PartWriter::Append(std::uint64_t first, std::uint64_t end, std::uint64_t failed, std::string_view rows) {
  std::string record = "rows " + std::to_string(first) + " " + std::to_string(end) + " " + std::to_string(failed) + " " + std::to_string(rows.size()) + " " +
                       SumOf(first, end, failed, rows) + "\n";
  record += rows;
  if (failed_) throw IoError(path_, "cannot write after an earlier failure");
  failed_ = true;
  if (fd_ < 0) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (fd_ < 0) throw IoError(path_, "cannot create", errno);
    record.insert(0, first_line_);
  }
  WriteAll(fd_, record, path_);
  failed_ = false;
}

void PartWriter::Sync() {
  if (fd_ < 0) return;
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) throw IoError(path_, "cannot write", errno);
  if (named_) return;
  const Descriptor directory(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());
  named_ = true;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> DoneRuns::Missing(std::uint64_t first, std::uint64_t end) const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> missing;
  for (const DoneRange& range : ranges) {
    if (range.first >= end || first >= end) break;
    if (range.end <= first) continue;
    if (range.first > first) missing.emplace_back(first, range.first);
    first = std::max(first, range.end);
  }
  if (first < end) missing.emplace_back(first, end);
  return missing;
}

std::uint64_t DoneRuns::Count() const {
  std::uint64_t count = 0, next = 0;
  for (const DoneRange& range : ranges) {
    if (range.end <= next) continue;
    count += range.end - std::max(range.first, next);
    next = range.end;
  }
  return count;
}

std::uint64_t DoneRuns::Failed() const {
  std::uint64_t failed = 0, next = 0;
  for (const DoneRange& range : ranges) {
    if (range.end <= next) continue;
    failed += range.failed;
    next = range.end;
  }
  return failed;
}

DoneRuns ReadParts(const SweepFolder& folder, const PlanFacts& facts, const std::function<bool()>& keep_going) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator it(folder.parts, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".rows") paths.push_back(it->path().string());
  }
  if (error && error.value() != ENOENT) throw IoError(folder.parts, "cannot read", error.value());
  std::sort(paths.begin(), paths.end());
  DoneRuns done;
  for (const std::string& path : paths) {
    Part part;
    part.path = path;
    if (ReadPart(facts, static_cast<std::uint32_t>(done.parts.size()), keep_going, part, done)) done.parts.push_back(std::move(part));
    if (done.interrupted) break;
  }
  std::sort(done.ranges.begin(), done.ranges.end(), [](const DoneRange& a, const DoneRange& b) {
    return a.first != b.first ? a.first < b.first : a.end != b.end ? a.end > b.end : a.part < b.part;
  });
  return done;
}

void ForEachRow(const DoneRuns& done, const std::function<void(std::string_view)>& row) {
  ForEachChunk(done, [&](std::string_view rows) {
    while (!rows.empty()) {
      const std::size_t end = std::min(rows.find('\n'), rows.size());  // no cell holds a line's end: no config does
      row(rows.substr(0, end));
      rows.remove_prefix(std::min(end + 1, rows.size()));
    }
    return true;
  });
}

bool WriteResults(const SweepFolder& folder, const PlanFacts& facts, const DoneRuns& done, const std::function<bool()>& keep_going) {
  SCALETRACE_CHECK(done.Missing(0, facts.runs).empty());
  // One process at a time may use the temporary name; the lock goes with the process.
  const std::string lock_path = folder.parts + "/results.lock";
  const Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (lock.get() < 0) throw IoError(lock_path, "cannot open", errno);
  int locked = ::flock(lock.get(), LOCK_EX);
  while (locked != 0 && errno == EINTR) locked = ::flock(lock.get(), LOCK_EX);
  const std::string temporary = folder.parts + "/results.csv.tmp" + (locked == 0 ? "" : "." + RandomSuffix());
  {
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.get() < 0) throw IoError(temporary, "cannot create", errno);
    try {
      std::string buffer = facts.header + "\n";
      const bool all = ForEachChunk(done, [&](std::string_view rows) {
        buffer += rows;
        if (buffer.size() < (std::size_t{1} << 20)) return true;
        WriteAll(file.get(), buffer, folder.results);
        buffer.clear();
        return keep_going();
      });
      if (!all) {
        ::unlink(temporary.c_str());
        return false;
      }
      WriteAll(file.get(), buffer, folder.results);
      if (::fsync(file.get()) != 0) throw IoError(folder.results, "cannot write", errno);
    } catch (...) {
      ::unlink(temporary.c_str());
      throw;
    }
  }
  if (std::rename(temporary.c_str(), folder.results.c_str()) != 0) throw IoError(folder.results, "cannot replace", errno);
  const Descriptor directory(::open(folder.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());
  return true;
}

}  // namespace scaletrace
