// The program: arguments in, exit code out. What each command does: its own file (commands.h lists them).
#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <new>
#include <sstream>
#include <stdexcept>
#include <unistd.h>

#include "base/error.h"
#include "scaletrace/commands.h"
#include "scaletrace/messages.h"

namespace scaletrace {
namespace {

// Exit codes. 130 and 143 (ended by a signal, state saved) come from the commands.
constexpr int kUsageError = 2;  // the command line or a config
constexpr int kDataError = 3;   // data, a log, a trace; the machine
constexpr int kBug = 70;
constexpr int kClosedPipe = 128 + SIGPIPE;  // as for a program that the signal ends

struct Command {
  const char* name;
  const char* summary;
  Action (*add)(CLI::App&);
};

constexpr Command kCommands[] = {
    {"run", "Run a config: write its trace, say what happened", &AddRun},
    {"sweep", "Run a config many times over: axes, seeds, shards", &AddSweep},
    {"step", "Compute single training steps given as JSON", &AddStep},
    {"policy", "Drive a loss-scaling policy with a string of events", &AddPolicy},
    {"policies", "List the loss-scaling policies, or explain one", &AddPolicies},
    {"check", "Check cases: configs whose trajectories must be what they were", &AddCheck},
    {"show", "Draw a trace in the terminal: scale, loss, events, what happened", &AddShow},
    {"diff", "Compare two traces: the first difference, and what is around it", &AddDiff},
    {"plot", "Draw traces, histograms and sweeps as pictures (PNG, SVG, PDF, HTML)", &AddPlot},
    {"report", "Tell a run's or a sweep's story on one page (HTML): verdict, plots, events", &AddReport},
    {"formats", "List the number formats", &AddFormats},
    {"configs", "List the shipped configs and what each shows", &AddConfigs},
    {"init", "Copy a shipped config here, to change it", &AddInit},
    {"config", "Print a config with every default written out", &AddConfig},
    {"schema", "Print the JSON Schema of the config, for editors", &AddSchema},
};

constexpr const char* kAbout =
    "scaletrace simulates mixed-precision training under dynamic loss scaling, to the last bit,\n"
    "and writes every step's loss, loss scale and overflow events to a CSV trace.";

constexpr const char* kExamples =
    "Examples:\n"
    "  scaletrace init quickstart                      a config to start from, here\n"
    "  scaletrace run quickstart.yaml                  run it; the trace is runs/quickstart-.../trace.csv\n"
    "  scaletrace run quickstart.yaml --set scaler.growth_interval=200 --set seed=8\n"
    "  scaletrace policy --compare pytorch,deepspeed,flax --events '10F 2O 20F'\n"
    "  scaletrace policies deepspeed                   one policy in full: rule, parameters, a worked example\n"
    "\n"
    "Each command has its own --help. Exit codes: 0 done (numerical trouble is a result, not an error),\n"
    "1 a negative answer, 2 wrong usage or config, 3 wrong data or a machine's failure,\n"
    "4 shards of a sweep are missing, 70 a bug, 75 stopped by a time limit, 130/143 interrupted.";

std::string VersionText() {
  std::string compiled, running;
  for (const std::string_view name : CompiledTargetNames()) compiled += (compiled.empty() ? "" : " ") + std::string(name);
  for (const KernelTable& table : CompiledKernels()) running += (running.empty() ? "" : " ") + std::string(table.target);
  std::string text = SoftwareName() + "\n";
#if defined(__clang__)
  text += "compiler:         clang " __clang_version__ "\n";
#else
  text += "compiler:         g++ " __VERSION__ "\n";
#endif
  text += "build:            " SCALETRACE_BUILD_TYPE ", " SCALETRACE_FLAGS "\n";
  text += "targets compiled: " + compiled + "\n";
  text += "targets here:     " + running + "\n";
  return text + "target in use:    " + std::string(CompiledKernels().front().target);
}

int Main(int argc, char** argv) {
  CLI::App app(kAbout, "scaletrace");
  app.footer(kExamples);
  app.require_subcommand(1);
  app.set_version_flag("--version", VersionText, "Version, compiler, flags, instruction sets");
  app.get_formatter()->column_width(34);
  std::vector<std::pair<CLI::App*, Action>> commands;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    commands.emplace_back(sub, command.add(*sub));
  }
  if (argc == 1) {
    Print(app.help());
    FlushPrint();
    return kUsageError;
  }
  std::vector<std::string> arguments(argv + 1, argv + argc);
  // The words that many expect: `help`, `help COMMAND`, `version`.
  if (arguments[0] == "version") arguments[0] = "--version";
  if (arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.resize(std::min<std::size_t>(arguments.size(), 1));
    arguments.push_back("--help");
  }
  // All that stands behind the format's name are values, -1 and -inf too: there is nothing for a -- to part.
  if (arguments[0] == "formats") std::erase(arguments, "--");
  const std::string& first = arguments[0];
  std::vector<std::string_view> names = {"help", "version"};
  for (const Command& command : kCommands) names.push_back(command.name);
  const std::vector<std::string_view> options = {"-h", "--help", "--version"};
  const bool is_option = first.starts_with('-');
  const std::vector<std::string_view>& known = is_option ? options : names;
  if (std::find(known.begin(), known.end(), first) == known.end()) {
    Error(std::string("unknown ") + (is_option ? "option" : "command") + " '" + Printable(first) + "'" + DidYouMean(first, known) + " (see scaletrace --help)");
    return kUsageError;
  }
  try {
    std::vector<std::string> backwards(arguments.rbegin(), arguments.rend());  // as CLI11 takes them
    app.parse(backwards);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      app.exit(e, text, text);
      Print(text.str());
      FlushPrint();
      return 0;
    }
    std::string where = "scaletrace";
    for (const auto& [sub, action] : commands) {
      if (sub->parsed()) where += " " + sub->get_name();
    }
    Error(Printable(e.what(), 400) + " (see " + where + " --help)");
    return kUsageError;
  }
  for (const auto& [sub, action] : commands) {
    if (!sub->parsed()) continue;
    const int code = action();
    FlushPrint();
    return code;
  }
  return kUsageError;
}

// Opens what is closed of standard input, output and error, so that no file of ours gets its number, and messages land in it. Reading the input and writing the
// output then fails, as it does on a closed one; messages go nowhere.
void OpenStandardFiles() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY) != fd) std::_Exit(kDataError);
  }
}

}  // namespace

std::string SoftwareName() { return "scaletrace " SCALETRACE_VERSION; }

void AddTargetOption(CLI::App& command, std::string& target) {
  command.add_option("--target", target, "Force an instruction set, to test or to compare (--version lists them)")->type_name("NAME");
}

const KernelTable& KernelsFor(const std::string& target) {
  if (const KernelTable* table = FindKernels(target)) return *table;
  std::string names;
  for (const KernelTable& table : CompiledKernels()) names += (names.empty() ? "" : ", ") + std::string(table.target);
  throw InputError(InputError::Kind::kConfig, {.file = "--target"}, "found '" + Printable(target) + "'; allowed here: " + names);
}

}  // namespace scaletrace

int main(int argc, char** argv) {
  using namespace scaletrace;
  OpenStandardFiles();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write
  std::signal(SIGXFSZ, SIG_IGN);  // likewise a file-size limit
  SetUpMessages();
  try {
    return Main(argc, argv);
  } catch (const ClosedPipe&) {
    return kClosedPipe;
  } catch (const InputError& e) {
    Error(e.what());
    return e.kind() == InputError::Kind::kConfig ? kUsageError : kDataError;
  } catch (const IoError& e) {
    Error(e.what());
    return kDataError;
  } catch (const std::bad_alloc&) {
    Error("not enough memory for this");
    return kDataError;
  } catch (const std::length_error&) {  // a container larger than any memory
    Error("not enough memory for this");
    return kDataError;
  } catch (const std::exception& e) {
    Error(std::string(e.what()) + " (this is a bug in scaletrace: please report it)");
    return kBug;
  }
}
