// The rows of a trajectory as CSV text, one after the other, whoever wrote it: a run, another framework's script, R. Memory does not grow with the number of rows.
// What a cell means: cell.h. Which two rows belong together: compare.h.
#ifndef SCALETRACE_COMPARE_ROW_READER_H_
#define SCALETRACE_COMPARE_ROW_READER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace scaletrace {

// Appends the next piece of a text to its argument; false at the end. A piece may end anywhere.
using TextSource = std::function<bool(std::string&)>;

// A file, or "-" for standard input. IoError where it can't be opened (now) or read (later).
TextSource FileText(const std::string& path);
// Of a text that somebody is still writing: without what stands behind its last line end.
TextSource WholeLines(TextSource source);
// The text itself.
TextSource GivenText(std::string text);

// Another name for a column: `theirs` in the header is read as `ours`. `negated`: a flag that means the opposite (found_inf for grads_finite).
struct ColumnName {
  std::string theirs;
  std::string ours;
  bool negated = false;
};

// "THEIRS=OURS" or "THEIRS=not-OURS", as given to --map. InputError (kConfig) where the text is no such pair.
ColumnName ParseColumnName(std::string_view text);

struct Row {
  std::int64_t step = 0;
  std::size_t line = 0;  // from 1, the header included
  std::string text;      // the cells one after the other, without commas and quotes
  std::vector<std::uint32_t> ends;

  std::string_view cell(std::size_t i) const {
    const std::uint32_t start = i == 0 ? 0 : ends[i - 1];
    return std::string_view(text).substr(start, ends[i] - start);
  }
};

class RowReader {
 public:
  // Reads the header. `name` stands in messages. Cells are separated by commas, lines by LF or CRLF; cells in double quotes, as R and Excel write them, and a byte
  // order mark are taken. InputError (kData) with the line: no header, a column twice, no column `step`, one of names[].ours that is there without its mapping, a line
  // of more than a MiB. A mapping whose `theirs` is not there is left alone: see Has.
  RowReader(std::string name, TextSource source, const std::vector<ColumnName>& names = {});

  const std::string& name() const { return name_; }
  // After the mapping.
  const std::vector<std::string>& columns() const { return columns_; }
  // The header's own words.
  const std::vector<std::string>& header() const { return header_; }
  // The index of a column, or -1.
  int Find(std::string_view column) const;

  // The next row; false at the end. InputError (kData) with the line: another number of cells than the header has, a step that is no integer, a blank line that
  // others follow, a quoted cell that doesn't end.
  bool Next(Row& row);

 private:
  // The next line without its end; false where there is none. Valid until the next call.
  bool Line(std::string_view& line);
  void Split(std::string_view line, Row& row) const;
  [[noreturn]] void Fail(std::size_t line, const std::string& message) const;

  std::string name_;
  TextSource source_;
  std::string buffer_;
  std::size_t position_ = 0;
  bool ended_ = false;
  std::size_t line_ = 0;
  std::vector<std::string> header_, columns_;
  std::vector<bool> negated_;
  bool any_negated_ = false;
  std::size_t step_column_ = 0;
};

}  // namespace scaletrace

#endif  // SCALETRACE_COMPARE_ROW_READER_H_
