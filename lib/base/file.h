// Files: reading with a limit, replacing by rename, appending whole lines. Every failure is an IoError with path and reason.
#ifndef SCALETRACE_BASE_FILE_H_
#define SCALETRACE_BASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace scaletrace {

// The whole of a regular file or a pipe ("-" is standard input). More than `max_bytes`, a directory or an unreadable file: IoError.
std::string ReadFile(const std::string& path, std::size_t max_bytes);

// Replaces `path` so that a reader, a crash or a full disk finds the old content or the new one, never a part. `durable`: the
// content is forced to the disk before the rename (needed only against power loss, and slow).
void WriteFileAtomically(const std::string& path, std::string_view content, bool durable = true);

// A file that grows by whole lines. The buffer is handed to the system in writes that end at a line's end and, where lines allow it, do not cross a
// page: a killed process then leaves whole lines (the system copies page by page and looks for a signal in between). Not copyable.
class LineFile {
 public:
  // Opens or creates `path` and cuts it to `keep_bytes` (which may not exceed its size: IoError).
  LineFile(const std::string& path, std::uint64_t keep_bytes);
  ~LineFile();  // closes without flushing: whoever cares has called Flush and seen its error
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  // `lines` ends with a newline. Buffered.
  void Append(std::string_view lines);
  // Hands the buffer to the system. After a failed write (a full disk) the file is cut back to its last whole line before the IoError is thrown.
  void Flush();
  // Flush, and force it to the disk.
  void Sync();
  // Bytes appended so far, the kept ones included.
  std::uint64_t size() const { return written_ + buffer_.size(); }

 private:
  void Write(std::string_view lines);

  std::string path_;
  std::string buffer_;
  std::uint64_t written_ = 0;
  int fd_ = -1;
};

}  // namespace scaletrace

#endif  // SCALETRACE_BASE_FILE_H_
