// The commands, one function each: it adds its options to the subcommand and returns what to do when that is called. The list: main.cc.
#ifndef SCALETRACE_APPS_COMMANDS_H_
#define SCALETRACE_APPS_COMMANDS_H_

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "kernels/kernels.h"

namespace scaletrace {

using Action = std::function<int()>;  // returns the exit code; errors are exceptions (base/error.h)

Action AddStep(CLI::App& command);
Action AddRun(CLI::App& command);
Action AddSweep(CLI::App& command);
Action AddConfig(CLI::App& command);
Action AddConfigs(CLI::App& command);
Action AddInit(CLI::App& command);
Action AddSchema(CLI::App& command);
Action AddFormats(CLI::App& command);
Action AddPolicy(CLI::App& command);
Action AddPolicies(CLI::App& command);
Action AddCheck(CLI::App& command);
Action AddShow(CLI::App& command);
Action AddDiff(CLI::App& command);
Action AddPlot(CLI::App& command);
Action AddReport(CLI::App& command);

// The option that forces an instruction set, for tests and benchmarks; empty means the best.
void AddTargetOption(CLI::App& command, std::string& target);
// The kernels of that name. InputError (kConfig) with the names there are.
const KernelTable& KernelsFor(const std::string& target);

// "scaletrace 0.1.0"
std::string SoftwareName();

}  // namespace scaletrace

#endif  // SCALETRACE_APPS_COMMANDS_H_
