// Files: reading with a limit, replacing by rename, appending whole lines. Every failure is an IoError with path and reason.
#ifndef SCALETRACE_BASE_FILE_H_
#define SCALETRACE_BASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace scaletrace {

// The whole of a regular file or a pipe ("-" is standard input). More than `max_bytes`, a directory or an unreadable file: IoError.
std::string ReadFile(const std::string& path, std::size_t max_bytes);

// Replaces `path` so that a reader, a crash or a full disk finds the old content or the new one, never a part. `durable`: the
// content is forced to the disk before the rename (needed only against power loss, and slow).
void WriteFileAtomically(const std::string& path, std::string_view content, bool durable = true);

// A file that grows by whole lines. Lines are handed to the system many at once, as writes cost by the call: of a killed process whole lines are left, but for
// one that lies on a page's end, where the system was copying just then (it copies page by page and looks for a signal in between). Not copyable.
class LineFile {
 public:
  // Opens or creates `path` and cuts it to `keep_bytes` (which may not exceed its size: IoError).
  LineFile(const std::string& path, std::uint64_t keep_bytes);
  ~LineFile();  // closes without flushing: whoever cares has called Flush and seen its error
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // `lines` ends with a newline. Buffered.
  void Append(std::string_view lines);
  // The same for lines that are formatted in place: room for `bytes`, of which Commit takes those up to `end`.
  char* Reserve(std::size_t bytes) {
    if (bytes > capacity_ - used_) MakeRoom(bytes);
    return buffer_.get() + used_;
  }
  void Commit(const char* end) { used_ = static_cast<std::size_t>(end - buffer_.get()); }
  // Hands the buffer to the system. After a failed write (a full disk) the file is cut back to its last whole line before the IoError is thrown.
  void Flush();
  // Flush, and force it to the disk.
  void Sync();
  // Bytes appended so far, the kept ones included.
  std::uint64_t size() const { return written_ + used_; }

 private:
  void MakeRoom(std::size_t bytes);
  void Write(std::string_view lines);

  std::string path_;
  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_ = 0, used_ = 0;  // of the buffer
  std::uint64_t written_ = 0;
  int fd_ = -1;
};

}  // namespace scaletrace

#endif  // SCALETRACE_BASE_FILE_H_
