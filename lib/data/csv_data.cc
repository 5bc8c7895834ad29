// Data from a CSV file (RFC 4180, LF or CRLF): which columns, which cells, standardisation. Leaves the spelling of
// numbers to base/number.h.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/number.h"
#include "data/file_data.h"

namespace scaletrace {
namespace {

constexpr std::size_t kMaxColumns = std::size_t{1} << 20;
constexpr std::uint32_t kNotUsed = 0xffffffff;
// Names looked at for "did you mean", and their length.
constexpr std::size_t kMaxCandidates = 1000;
constexpr std::size_t kMaxCandidateLength = 100;

std::string Quoted(std::string_view text) { return "'" + Printable(text) + "'"; }

// Goes through a text cell by cell. Does not know how many cells a row should have.
class CellReader {
 public:
  CellReader(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  // Nothing is left: asked at the start of a row.
  bool AtEnd() const { return rest_.empty(); }
  // The line that the row of the last cell starts on.
  std::size_t line() const { return line_; }
  // 1-based, of the last cell in its row.
  std::size_t column() const { return column_; }

  // The next cell, valid until the next call. `*last`: it ends its row.
  std::string_view Next(bool* last) {
    if (row_ended_) {
      line_ = next_line_;
      column_ = 0;
    }
    ++column_;
    const std::string_view cell = !rest_.empty() && rest_[0] == '"' ? QuotedCell() : BareCell();
    // What ends a cell: a comma, LF, CRLF or the end of the text.
    row_ended_ = true;
    if (!rest_.empty() && rest_[0] == ',') {
      rest_.remove_prefix(1);
      row_ended_ = false;
    } else if (!rest_.empty()) {
      const std::size_t length = rest_[0] == '\n' ? 1 : rest_.substr(0, 2) == "\r\n" ? 2 : 0;
      if (length == 0) FailAfterCell();
      rest_.remove_prefix(length);
      ++next_line_;
    }
    *last = row_ended_;
    return cell;
  }

  [[noreturn]] void Fail(const std::string& message) const {
    throw InputError(InputError::Kind::kData, {file_, line_, "column " + std::to_string(column_)}, message);
  }

 private:
  std::string_view BareCell() {
    std::size_t length = 0;
    while (length < rest_.size() && rest_[length] != ',' && rest_[length] != '\n' && rest_[length] != '\r') {
      if (rest_[length] == '"')
        Fail("found a quote within a cell; allowed: quotes around a whole cell, doubled inside it");
      if (rest_[length] == '\0') Fail("found a NUL byte; allowed: text");
      ++length;
    }
    const std::string_view cell = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return cell;
  }

  std::string_view QuotedCell() {
    rest_.remove_prefix(1);
    bool doubled = false;
    std::size_t length = 0;
    while (true) {
      if (length == rest_.size()) Fail("found a quote that is never closed; allowed: quotes in pairs");
      if (rest_[length] == '\0') Fail("found a NUL byte; allowed: text");
      if (rest_[length] == '\n') ++next_line_;
      if (rest_[length] == '"') {
        if (length + 1 == rest_.size() || rest_[length + 1] != '"') break;
        doubled = true;
        ++length;
      }
      ++length;
    }
    std::string_view cell = rest_.substr(0, length);
    rest_.remove_prefix(length + 1);
    if (doubled) {
      unescaped_.clear();
      for (std::size_t i = 0; i < cell.size(); ++i) {
        unescaped_ += cell[i];
        if (cell[i] == '"') ++i;
      }
      cell = unescaped_;
    }
    return cell;
  }

  [[noreturn]] void FailAfterCell() const {
    if (rest_[0] == '\r') Fail("found a carriage return without a line feed; allowed: lines that end with LF or CRLF");
    Fail("found " + Quoted(rest_.substr(0, 1)) + " after a closing quote; allowed: a comma or the end of the line");
  }

  std::string_view rest_;
  const std::string& file_;
  std::size_t line_ = 1;
  std::size_t next_line_ = 1;
  std::size_t column_ = 0;
  bool row_ended_ = true;
  std::string unescaped_;
};

std::vector<std::string> ReadHeader(CellReader* reader) {
  std::vector<std::string> names;
  std::map<std::string_view, std::size_t> columns;
  for (bool last = false; !last;) {
    names.emplace_back(reader->Next(&last));
    if (names.size() > kMaxColumns) reader->Fail("found more than 2^20 columns; allowed: at most that many");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [other, is_new] = columns.emplace(names[i], i + 1);
    if (!is_new) {
      reader->Fail("found the column name " + Quoted(names[i]) + " twice, at columns " + std::to_string(other->second) +
                   " and " + std::to_string(i + 1) + "; allowed: each once");
    }
  }
  return names;
}

// Where the cells of each column of the file go: a place in the features, or in the targets, or nowhere.
struct Columns {
  std::vector<std::uint32_t> feature;  // by column of the file; kNotUsed where it is none
  std::vector<std::uint32_t> target;
  std::size_t features = 0;
  std::size_t targets = 0;
};

std::string ListOf(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 20;
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) list += (i == 0 ? "" : ", ") + Printable(names[i]);
  if (names.size() > kShown) list += " and " + std::to_string(names.size() - kShown) + " more";
  return list;
}

std::string Suggestion(const std::string& name, const std::vector<std::string>& names) {
  std::vector<std::string_view> candidates;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxCandidates); ++i) {
    if (names[i].size() <= kMaxCandidateLength) candidates.push_back(names[i]);
  }
  return DidYouMean(name, candidates);
}

Columns ChooseColumns(const CsvData& options, const std::vector<std::string>& names, const std::string& path) {
  const auto config_error = [](const std::string& key, const std::string& message) {
    return InputError(InputError::Kind::kConfig, {"", 0, key}, message);
  };
  Columns columns;
  columns.feature.assign(names.size(), kNotUsed);
  columns.target.assign(names.size(), kNotUsed);
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < names.size(); ++i) places.emplace(names[i], i);
  const auto find = [&](const std::string& name, const std::string& key) {
    const auto found = places.find(name);
    if (found == places.end()) {
      throw InputError(InputError::Kind::kData, {path, 1, key},
                       "found no column " + Quoted(name) + Suggestion(name, names) + "; allowed: " + ListOf(names));
    }
    if (columns.feature[found->second] != kNotUsed || columns.target[found->second] != kNotUsed) {
      throw config_error(
          key, "found the column " + Quoted(name) + " again; allowed: each column once, as a feature or as a target");
    }
    return found->second;
  };
  if (options.targets.empty())
    throw config_error("data.targets", "found no target column; allowed: a list of column names");
  for (const std::string& name : options.targets) {
    columns.target[find(name, "data.targets")] = static_cast<std::uint32_t>(columns.targets++);
  }
  for (const std::string& name : options.features) {
    columns.feature[find(name, "data.features")] = static_cast<std::uint32_t>(columns.features++);
  }
  if (options.features.empty()) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (columns.target[i] == kNotUsed) columns.feature[i] = static_cast<std::uint32_t>(columns.features++);
    }
    if (columns.features == 0)
      throw config_error("data.targets", "found every column of the file; allowed: at least one is left as a feature");
  }
  return columns;
}

// The rows after the header. Every row is checked to have as many cells as the header.
std::size_t CountRows(CellReader reader, const std::vector<std::string>& names) {
  std::size_t rows = 0;
  while (!reader.AtEnd()) {
    for (bool last = false; !last;) {
      reader.Next(&last);
      const bool too_few = last && reader.column() < names.size();
      if (too_few || (!last && reader.column() >= names.size())) {
        reader.Fail("found " + std::string(too_few ? "" : "more than ") + std::to_string(reader.column()) +
                    (reader.column() == 1 ? " cell" : " cells") +
                    " in this row; allowed: " + std::to_string(names.size()) + ", as in the header");
      }
    }
    ++rows;
  }
  return rows;
}

float ReadCell(const CellReader& reader, std::string_view cell, const std::string& name, const std::string& path) {
  if (const auto value = ReadFloat(cell)) return *value;
  throw InputError(InputError::Kind::kData,
                   {path, reader.line(), "column " + std::to_string(reader.column()) + " (" + Printable(name) + ")"},
                   "found " + (cell.empty() ? "an empty cell" : Quoted(cell)) +
                       "; allowed: a finite decimal number within f32, such as -0.5 or 6.5e4, without spaces");
}

// Each column of the row-major matrix to (value - mean) / standard deviation (over N, not N - 1). A column of equal
// values becomes 0.
void StandardizeColumns(std::size_t rows, std::size_t columns, std::vector<float>* values) {
  for (std::size_t c = 0; c < columns; ++c) {
    const auto at = [&](std::size_t r) -> float& { return (*values)[r * columns + c]; };
    double sum = 0;
    bool constant = true;
    for (std::size_t r = 0; r < rows; ++r) {
      sum += static_cast<double>(at(r));
      constant = constant && at(r) == at(0);
    }
    const double mean = sum / static_cast<double>(rows);
    double squares = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      const double difference = static_cast<double>(at(r)) - mean;
      squares += difference * difference;
    }
    const double deviation = std::sqrt(squares / static_cast<double>(rows));
    for (std::size_t r = 0; r < rows; ++r) {
      at(r) = constant ? 0.0f : static_cast<float>((static_cast<double>(at(r)) - mean) / deviation);
    }
  }
}

}  // namespace

Dataset ReadCsvData(const CsvData& options, const std::string& path) {
  const std::string content = ReadFile(path, kMaxCsvBytes);
  std::string_view text = content;
  const auto fail = [&](std::size_t line, const std::string& message) {
    throw InputError(InputError::Kind::kData, {path, line, ""}, message);
  };
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) fail(1, "found UTF-16; allowed: UTF-8");
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.empty()) fail(0, "found an empty file; allowed: a header line and at least one row");

  CellReader reader(text, path);
  const std::vector<std::string> names = ReadHeader(&reader);
  const Columns columns = ChooseColumns(options, names, path);

  Dataset data;
  // Counted first, so that memory never holds a growing copy.
  data.samples = CountRows(reader, names);
  if (data.samples == 0) fail(1, "found a header and no rows; allowed: at least one row");
  data.features = columns.features;
  data.outputs = columns.targets;
  data.x.resize(data.samples * data.features);
  data.y.resize(data.samples * data.outputs);
  for (std::size_t n = 0; n < data.samples; ++n) {
    for (std::size_t c = 0; c < names.size(); ++c) {
      bool last = false;
      const std::string_view cell = reader.Next(&last);
      if (columns.feature[c] != kNotUsed) {
        data.x[n * data.features + columns.feature[c]] = ReadCell(reader, cell, names[c], path);
      } else if (columns.target[c] != kNotUsed) {
        data.y[n * data.outputs + columns.target[c]] = ReadCell(reader, cell, names[c], path);
      }
    }
  }
  if (options.standardize != Standardize::kNone) StandardizeColumns(data.samples, data.features, &data.x);
  if (options.standardize == Standardize::kAll) StandardizeColumns(data.samples, data.outputs, &data.y);
  return data;
}

}  // namespace scaletrace
