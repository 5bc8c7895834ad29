// Commands whose work a Python program in tools/ does: plot, report.
#ifndef SCALETRACE_APPS_SCRIPT_H_
#define SCALETRACE_APPS_SCRIPT_H_

#include <string>
#include <vector>

#include "scaletrace/commands.h"

namespace scaletrace {

// Becomes this script of tools/, run by a Python that has matplotlib, for `scaletrace COMMAND_NAME GIVEN...`. Returns never; throws IoError. The script finds in
// SCALETRACE_CALLED_AS what it was called as, for its messages, and in SCALETRACE the path of this program.
[[noreturn]] void HandOver(const std::string& script_name, const std::string& command_name, const std::vector<std::string>& given);

// A command that is a script through and through, --help included.
Action AddScript(CLI::App& command, const std::string& script);

}  // namespace scaletrace

#endif  // SCALETRACE_APPS_SCRIPT_H_
