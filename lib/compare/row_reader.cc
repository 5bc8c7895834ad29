#include "compare/row_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "base/error.h"
#include "compare/cell.h"
#include "trace/columns.h"

namespace scaletrace {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 18;
constexpr std::size_t kMaxLine = std::size_t{1} << 20;
constexpr std::string_view kNot = "not-";

std::string Quoted(std::string_view text) { return "'" + Printable(text) + "'"; }

}  // namespace

TextSource WholeLines(TextSource source) {
  return [source = std::move(source), held = std::string()](std::string& out) mutable {
    std::string text = std::move(held);
    held.clear();
    while (source(text)) {
      const std::size_t end = text.rfind('\n');
      if (end == std::string::npos) continue;
      held = text.substr(end + 1);
      out.append(text, 0, end + 1);
      return true;
    }
    return false;
  };
}

TextSource FileText(const std::string& path) {
  struct Descriptor {
    int fd = -1;
    ~Descriptor() {
      if (fd > 2) ::close(fd);
    }
  };
  auto file = std::make_shared<Descriptor>();
  file->fd = path == "-" ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file->fd < 0) throw IoError(path, "cannot open", errno);
  struct stat info;
  if (::fstat(file->fd, &info) == 0 && S_ISDIR(info.st_mode)) throw IoError(path, "is a directory, expected a file");
  return [file, path](std::string& out) {
    const std::size_t size = out.size();
    out.resize(size + kPiece);
    ssize_t n = -1;
    do {
      n = ::read(file->fd, out.data() + size, kPiece);
    } while (n < 0 && errno == EINTR);
    if (n < 0) throw IoError(path, "cannot read", errno);
    out.resize(size + static_cast<std::size_t>(n));
    return n > 0;
  };
}

TextSource GivenText(std::string text) {
  auto shared = std::make_shared<std::string>(std::move(text));
  return [shared](std::string& out) {
    if (shared->empty()) return false;
    out += *shared;
    shared->clear();
    return true;
  };
}

ColumnName ParseColumnName(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  ColumnName name;
  if (equals != std::string_view::npos) {
    name.theirs = text.substr(0, equals);
    std::string_view ours = text.substr(equals + 1);
    name.negated = ours.starts_with(kNot);
    if (name.negated) ours.remove_prefix(kNot.size());
    name.ours = ours;
  }
  const auto fail = [&](const std::string& message) { throw InputError(InputError::Kind::kConfig, {.file = "--map"}, message); };
  if (name.theirs.empty() || name.ours.empty()) fail("found " + Quoted(text) + "; allowed: THEIRS=OURS, as in scale=loss_scale or found_inf=not-grads_finite");
  const Column* column = FindColumn(name.ours);
  if (column == nullptr) {
    std::vector<std::string_view> names(ColumnNames().begin(), ColumnNames().end());
    std::string all;
    for (const std::string_view n : names) all += (all.empty() ? "" : ", ") + std::string(n);
    fail("found " + Quoted(name.ours) + ", which is no column of a trace" + DidYouMean(name.ours, names) + "; allowed: " + all);
  }
  if (name.negated && column->type != CellType::kFlag) fail("found not-" + name.ours + "; allowed: not- before a flag (grads_finite)");
  return name;
}

void RowReader::Fail(std::size_t line, const std::string& message) const {
  throw InputError(InputError::Kind::kData, {.file = name_, .line = line}, message);
}

RowReader::RowReader(std::string name, TextSource source, const std::vector<ColumnName>& names) : name_(std::move(name)), source_(std::move(source)) {
  std::string_view line;
  if (!Line(line)) Fail(0, "found nothing; allowed: CSV with a header line");
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  Row row;
  row.line = line_;
  Split(line, row);
  for (std::size_t i = 0; i < row.ends.size(); ++i) {
    header_.emplace_back(row.cell(i));
    columns_.push_back(header_.back());
    negated_.push_back(false);
    for (const ColumnName& n : names) {
      if (n.theirs != header_.back()) continue;
      columns_.back() = n.ours;
      negated_.back() = n.negated;
      any_negated_ = any_negated_ || n.negated;
    }
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const auto first = std::find(columns_.begin(), columns_.end(), columns_[i]);
    if (first == columns_.begin() + static_cast<std::ptrdiff_t>(i)) continue;
    const std::string& other = header_[static_cast<std::size_t>(first - columns_.begin())];
    if (other == header_[i]) Fail(line_, "found the column " + Quoted(other) + " twice; allowed: each name once");
    Fail(line_, "found both " + Quoted(other) + " and " + Quoted(header_[i]) + ", which --map makes one column; allowed: one of them");
  }
  const int step = Find("step");
  if (step < 0) {
    std::string found;
    for (const std::string& n : header_) found += (found.empty() ? "" : ", ") + n;
    Fail(line_, "found no column 'step' among: " + Printable(found, 200) + "; allowed: CSV with commas and a column that counts steps, named step or by --map THEIRS=step");
  }
  step_column_ = static_cast<std::size_t>(step);
}

int RowReader::Find(std::string_view column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  return found == columns_.end() ? -1 : static_cast<int>(found - columns_.begin());
}

bool RowReader::Line(std::string_view& line) {
  std::size_t searched = position_;
  while (true) {
    const void* end = searched < buffer_.size() ? std::memchr(buffer_.data() + searched, '\n', buffer_.size() - searched) : nullptr;
    if (end != nullptr) {
      const auto at = static_cast<std::size_t>(static_cast<const char*>(end) - buffer_.data());
      line = std::string_view(buffer_).substr(position_, at - position_);
      position_ = at + 1;
      break;
    }
    if (ended_) {
      if (position_ == buffer_.size()) return false;
      line = std::string_view(buffer_).substr(position_);
      position_ = buffer_.size();
      break;
    }
    if (buffer_.size() - position_ > kMaxLine) Fail(line_ + 1, "found a line of more than 1 MiB; allowed: CSV");
    searched = buffer_.size() - position_;
    buffer_.erase(0, position_);
    position_ = 0;
    ended_ = !source_(buffer_);
  }
  ++line_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

void RowReader::Split(std::string_view line, Row& row) const {
  row.text.clear();
  row.ends.clear();
  if (std::memchr(line.data(), '"', line.size()) == nullptr) {
    while (true) {
      const void* comma = line.empty() ? nullptr : std::memchr(line.data(), ',', line.size());
      const std::size_t n = comma == nullptr ? line.size() : static_cast<std::size_t>(static_cast<const char*>(comma) - line.data());
      row.text.append(line.data(), n);
      row.ends.push_back(static_cast<std::uint32_t>(row.text.size()));
      if (comma == nullptr) return;
      line.remove_prefix(n + 1);
    }
  }
  for (std::size_t i = 0;; ++i) {
    if (i < line.size() && line[i] == '"') {
      for (++i;; ++i) {
        if (i >= line.size()) Fail(row.line, "found a quoted cell that does not end on its line; allowed: cells of one line");
        if (line[i] != '"') {
          row.text += line[i];
        } else if (i + 1 < line.size() && line[i + 1] == '"') {
          row.text += line[i++];
        } else {
          break;
        }
      }
      ++i;
      if (i < line.size() && line[i] != ',') Fail(row.line, "found text after a quoted cell; allowed: a comma");
    } else {
      while (i < line.size() && line[i] != ',') {
        if (line[i] == '"') Fail(row.line, "found a quote inside a cell; allowed: quotes around a whole cell");
        row.text += line[i++];
      }
    }
    row.ends.push_back(static_cast<std::uint32_t>(row.text.size()));
    if (i >= line.size()) return;
  }
}

bool RowReader::Next(Row& row) {
  std::string_view line;
  if (!Line(line)) return false;
  row.line = line_;
  if (line.empty() && columns_.size() > 1) {
    const std::size_t blank = line_;
    while (Line(line)) {
      if (!line.empty()) Fail(blank, "found a blank line between rows; allowed: one row a line");
    }
    return false;
  }
  Split(line, row);
  if (row.ends.size() != columns_.size()) {
    Fail(row.line, "found " + std::to_string(row.ends.size()) + (row.ends.size() == 1 ? " cell" : " cells") + "; allowed: " + std::to_string(columns_.size()) +
                       ", as in the header");
  }
  if (any_negated_) {
    Row turned;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      Cell cell;
      if (!negated_[i]) {
        turned.text += row.cell(i);
      } else if (!ReadCell(row.cell(i), CellType::kFlag, cell)) {
        Fail(row.line, header_[i] + ": found " + Quoted(row.cell(i)) + "; allowed: 0 or 1");
      } else if (cell.kind == Cell::Kind::kInteger) {
        turned.text += cell.integer == 0 ? '1' : '0';
      }
      turned.ends.push_back(static_cast<std::uint32_t>(turned.text.size()));
    }
    row.text.swap(turned.text);
    row.ends.swap(turned.ends);
  }
  Cell step;
  if (!ReadCell(row.cell(step_column_), CellType::kInteger, step) || step.kind != Cell::Kind::kInteger) {
    Fail(row.line, header_[step_column_] + ": found " + Quoted(row.cell(step_column_)) + "; allowed: an integer");
  }
  row.step = step.integer;
  return true;
}

}  // namespace scaletrace
