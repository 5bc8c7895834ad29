// The kinds of data that are read from a file. How they are chosen: generators.h.
#ifndef SCALETRACE_DATA_FILE_DATA_H_
#define SCALETRACE_DATA_FILE_DATA_H_

#include <cstddef>
#include <string>

#include "data/dataset.h"
#include "data/generators.h"

namespace scaletrace {

inline constexpr std::size_t kMaxGivenBytes = std::size_t{1} << 25;
inline constexpr std::size_t kMaxCsvBytes = std::size_t{1} << 30;

// `path` is where `options.file` lies. Errors as of MakeDataset. Values that are not finite are errors in both: a run
// starts from numbers.
Dataset ReadGivenData(const GivenData& options, const std::string& path);
// Takes about three times the size of the file at most, and 150 bytes a column.
Dataset ReadCsvData(const CsvData& options, const std::string& path);

}  // namespace scaletrace

#endif  // SCALETRACE_DATA_FILE_DATA_H_
