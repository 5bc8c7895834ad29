// Scripts: found, and started in the place of this process, so that output, exit code and signals are their own.
#include "scaletrace/script.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "scaletrace/messages.h"

namespace scaletrace {
namespace {

namespace fs = std::filesystem;

// The path of this script: in the folder that SCALETRACE_TOOLS names, else where the program is installed, else in the source tree that it was built from.
std::string FindScript(const std::string& name) {
  std::error_code ignored;
  if (const char* folder = std::getenv("SCALETRACE_TOOLS"); folder != nullptr && *folder != '\0') {
    const fs::path path = fs::path(folder) / name;
    if (!fs::exists(path, ignored)) throw IoError(path.string(), "no such file; SCALETRACE_TOOLS must name a folder that has " + name);
    return path.string();
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const std::array<fs::path, 2> folders = {program.parent_path().parent_path() / SCALETRACE_SHARE_FOLDER / "tools", SCALETRACE_SOURCE_TOOLS};
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / name, ignored)) return (folder / name).string();
  }
  throw IoError(name, "found neither in " + folders[0].string() + " nor in " + folders[1].string() + "; SCALETRACE_TOOLS can name its folder");
}

// Whether this Python starts and has matplotlib. It looks for the package only: to import it takes much longer.
bool HasMatplotlib(const char* python) {
  std::string code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('matplotlib') is None)";
  std::string name = python, flags = "-Bc";
  std::array<char*, 4> arguments = {name.data(), flags.data(), code.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, python, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return false;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

[[noreturn]] void HandOver(const std::string& script_name, const std::string& command_name, const std::vector<std::string>& given) {
  const std::string script = FindScript(script_name);
  for (const char* python : {"/usr/bin/python3", "python3"}) {  // Debian's matplotlib belongs to Debian's Python, which need not be the first on PATH
    if (!HasMatplotlib(python)) continue;
    std::vector<std::string> words = {python, "-B", script};
    words.insert(words.end(), given.begin(), given.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::error_code unknown;
    ::setenv("SCALETRACE", fs::read_symlink("/proc/self/exe", unknown).c_str(), 1);  // for scripts that ask the program
    ::setenv("SCALETRACE_CALLED_AS", ("scaletrace " + command_name).c_str(), 1);  // for its messages
    FlushPrint();
    ::execvp(python, arguments.data());
    throw IoError(python, "cannot start", errno);
  }
  throw IoError(script_name, "no Python with matplotlib (tried /usr/bin/python3 and python3); on Debian and Ubuntu: apt-get install python3-matplotlib");
}

Action AddScript(CLI::App& command, const std::string& script) {
  command.set_help_flag();  // --help too is the script's
  command.prefix_command();
  return [&command, script]() -> int { HandOver(script, command.get_name(), command.remaining()); };
}

}  // namespace scaletrace
