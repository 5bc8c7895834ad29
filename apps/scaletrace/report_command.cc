// scaletrace report: the story of a run or of a sweep as one page. It is put together by a Python program, tools/report.py, which this command hands over to and which
// asks this program for the verdict (show --json).
#include "scaletrace/commands.h"
#include "scaletrace/script.h"

namespace scaletrace {

Action AddReport(CLI::App& command) { return AddScript(command, "report.py"); }

}  // namespace scaletrace
