#include "base/file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "base/error.h"

namespace scaletrace {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 16;
// Of a LineFile: more is no faster, and leaves the second cache to others.
constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

// Closes a descriptor at the end of a scope.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd > 2) ::close(fd);
  }
};

struct Written {
  std::size_t bytes = 0;
  int error = 0;  // errno of the first failure, 0 where all was written
};

Written WriteAll(int fd, std::string_view bytes) {
  Written written;
  while (written.bytes < bytes.size()) {
    const ssize_t n = ::write(fd, bytes.data() + written.bytes, bytes.size() - written.bytes);
    if (n >= 0) {
      written.bytes += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      written.error = errno;
      break;
    }
  }
  return written;
}

}  // namespace

std::string ReadFile(const std::string& path, std::size_t max_bytes) {
  const Descriptor file{path == "-" ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) throw IoError(path, "cannot open", errno);
  struct stat info;
  if (::fstat(file.fd, &info) != 0) throw IoError(path, "cannot read", errno);
  if (S_ISDIR(info.st_mode)) throw IoError(path, "is a directory, expected a file");
  const auto too_large = [&] {
    return IoError(path, "is larger than " + std::to_string(max_bytes >> 10) + " KiB, the most that is read");
  };
  if (S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) > max_bytes) throw too_large();
  std::string content;
  while (true) {
    const std::size_t old_size = content.size();
    content.resize(old_size + kReadBytes);
    const ssize_t n = ::read(file.fd, content.data() + old_size, kReadBytes);
    if (n < 0 && errno != EINTR) throw IoError(path, "cannot read", errno);
    content.resize(old_size + (n > 0 ? static_cast<std::size_t>(n) : 0));
    if (content.size() > max_bytes) throw too_large();
    if (n == 0) return content;
  }
}

void WriteFileAtomically(const std::string& path, std::string_view content, bool durable) {
  // Containers on one shared folder may all have the same process number.
  std::uint32_t random = 0;
  if (::getrandom(&random, sizeof(random), 0) != static_cast<ssize_t>(sizeof(random))) random = 0;
  const std::string temporary = path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(random);
  const auto fail = [&](const char* doing, int error) {
    ::unlink(temporary.c_str());
    return IoError(path, doing, error);
  };
  {
    const Descriptor file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
    if (file.fd < 0) throw IoError(path, "cannot create", errno);
    if (const int error = WriteAll(file.fd, content).error) throw fail("cannot write", error);
    if (durable && ::fsync(file.fd) != 0) throw fail("cannot write", errno);
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) throw fail("cannot replace", errno);
}

LineFile::LineFile(const std::string& path, std::uint64_t keep_bytes) : path_(path) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) throw IoError(path, "cannot open", errno);
  Descriptor guard{fd_};
  struct stat info;
  if (::fstat(fd_, &info) != 0) throw IoError(path, "cannot open", errno);
  if (static_cast<std::uint64_t>(info.st_size) < keep_bytes) {
    throw IoError(path, "is shorter than what was written before; delete the folder to start anew");
  }
  if (S_ISREG(info.st_mode) && ::ftruncate(fd_, static_cast<off_t>(keep_bytes)) != 0) throw IoError(path, "cannot cut", errno);
  if (S_ISREG(info.st_mode) && ::lseek(fd_, 0, SEEK_END) < 0) throw IoError(path, "cannot seek", errno);
  written_ = keep_bytes;
  guard.fd = -1;  // ours from here on
}

LineFile::~LineFile() { ::close(fd_); }

void LineFile::MakeRoom(std::size_t bytes) {
  Flush();
  if (bytes <= capacity_) return;
  capacity_ = std::max(bytes, kBufferBytes);
  buffer_ = std::make_unique_for_overwrite<char[]>(capacity_);
}

void LineFile::Append(std::string_view lines) {
  if (lines.size() > kBufferBytes) {
    Flush();
    Write(lines);
    return;
  }
  char* const out = Reserve(lines.size());
  std::copy(lines.begin(), lines.end(), out);
  Commit(out + lines.size());
}

void LineFile::Write(std::string_view lines) {
  // After a short write the next one goes on, or gets the reason.
  const auto [done, error] = WriteAll(fd_, lines);
  if (error == 0) {
    written_ += done;
    return;
  }
  written_ += lines.substr(0, done).rfind('\n') + 1;  // 0 where there is none
  used_ = 0;
  if (::ftruncate(fd_, static_cast<off_t>(written_)) == 0) ::lseek(fd_, 0, SEEK_END);
  throw IoError(path_, "cannot write", error);
}

void LineFile::Flush() {
  if (used_ > 0) Write({buffer_.get(), used_});
  used_ = 0;
}

void LineFile::Sync() {
  Flush();
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) throw IoError(path_, "cannot write", errno);
}

}  // namespace scaletrace
