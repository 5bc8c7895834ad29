// A folder that lives as long as a test, for files to read.
#ifndef SCALETRACE_TESTS_DATA_TEMPORARY_FOLDER_H_
#define SCALETRACE_TESTS_DATA_TEMPORARY_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace scaletrace {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "scaletrace-data-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  void Write(const std::string& name, std::string_view content) const {
    std::ofstream file(path_ + "/" + name, std::ios::binary);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!file.flush()) throw std::runtime_error("cannot write " + name);
  }

 private:
  std::string path_;
};

}  // namespace scaletrace

#endif  // SCALETRACE_TESTS_DATA_TEMPORARY_FOLDER_H_
