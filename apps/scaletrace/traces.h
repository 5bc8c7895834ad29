// Traces as arguments of a command: a CSV file, a run's folder, standard input.
#ifndef SCALETRACE_APPS_TRACES_H_
#define SCALETRACE_APPS_TRACES_H_

#include <string>
#include <vector>

#include "compare/row_reader.h"

namespace scaletrace {

// `path` is a file, "-", or a folder with a trace.csv (a run's) or an expected.csv (a case's). InputError (kData), IoError.
RowReader OpenTrace(const std::string& path, const std::vector<ColumnName>& names = {});

// `text` as one word of a shell's command line, in quotes where it needs them.
std::string ShellWord(const std::string& text);

}  // namespace scaletrace

#endif  // SCALETRACE_APPS_TRACES_H_
