#include "trace/csv_writer.h"

#include <algorithm>

#include "base/error.h"
#include "base/number.h"

namespace scaletrace {
namespace {

void AppendCell(std::string& line, const Column& column, const StepRecord& record) {
  const std::size_t size = line.size();
  line.resize(size + kMaxNumberLength);
  line.resize(static_cast<std::size_t>(column.write(line.data() + size, record) - line.data()));
}

RowFilterState ReadState(const TraceState& text, const std::string& path) {
  const auto bad = [&] { return InputError(InputError::Kind::kData, {.file = path}, "the saved state of the trace is damaged"); };
  RowFilterState state;
  const auto event = std::find(std::begin(kEventNames), std::end(kEventNames), text.streak);
  if (event == std::end(kEventNames)) throw bad();
  state.streak = static_cast<Event>(event - std::begin(kEventNames));
  if (text.pending.empty()) return state;
  std::string_view rest = text.pending;
  for (const Column& column : Columns()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    if (!column.read(rest.substr(0, end), state.pending)) throw bad();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  state.has_pending = true;
  return state;
}

}  // namespace

TraceWriter::TraceWriter(const std::string& path, const TraceOptions& options, const TraceState& state)
    : filter_(options.every, ReadState(state, path)), file_(path, state.bytes) {
  std::string header;
  for (const std::string& name : options.columns) {
    const Column* const column = FindColumn(name);
    SCALETRACE_CHECK(column != nullptr);
    columns_.push_back({column->write_next, {}});
    header.append(header.empty() ? "" : ",").append(name);
  }
  SCALETRACE_CHECK(!columns_.empty());
  if (state.bytes == 0) file_.Append(header + "\n");
}

void TraceWriter::Write(const StepRecord& record) {
  char* out = file_.Reserve(columns_.size() * (kMaxNumberLength + 1));
  for (Cells& column : columns_) {
    out = column.write(out, record, column.last);
    *out++ = ',';
  }
  out[-1] = '\n';
  file_.Commit(out);
}

void TraceWriter::Add(std::span<const StepRecord> records) {
  for (const StepRecord& record : records) filter_.Add(record, [this](const StepRecord& r) { Write(r); });
}

TraceState TraceWriter::state() const {
  TraceState state;
  state.bytes = file_.size();
  state.streak = Name(filter_.state().streak);
  if (filter_.state().has_pending) {
    for (const Column& column : Columns()) {
      AppendCell(state.pending, column, filter_.state().pending);
      state.pending += ',';
    }
    state.pending.pop_back();
  }
  return state;
}

void TraceWriter::Finish() {
  filter_.Finish([this](const StepRecord& r) { Write(r); });
  file_.Flush();
}

}  // namespace scaletrace
