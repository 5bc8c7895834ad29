// scaletrace plot: pictures. They are drawn by a Python program, tools/plot.py, which this command hands over to.
#include "scaletrace/commands.h"
#include "scaletrace/script.h"

namespace scaletrace {

Action AddPlot(CLI::App& command) { return AddScript(command, "plot.py"); }

}  // namespace scaletrace
