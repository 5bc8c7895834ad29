// trace.csv: chooses the rows to keep, formats them, appends them in whole lines. Reading: csv_reader.h.
#ifndef SCALETRACE_TRACE_CSV_WRITER_H_
#define SCALETRACE_TRACE_CSV_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "trace/columns.h"

namespace scaletrace {

struct RowFilterState {
  Event streak = Event::kNone;  // of the step before
  bool has_pending = false;
  StepRecord pending;  // the last step of the streak so far, if its row is not out yet
};

// Which rows of a stream of records a trace keeps: every N-th step, every step with an event, but of an unbroken streak of the same event only the first and the
// last (a step that is due anyway is kept inside a streak too). What is kept of a streak's end is known one step late: `pending`.
class RowFilter {
 public:
  explicit RowFilter(std::int64_t every, const RowFilterState& state = {}) : every_(every), state_(state) {}

  // Calls keep(record) for each row that is known to stay, in order.
  template <class Keep>
  void Add(const StepRecord& record, const Keep& keep) {
    if (every_ == 0) return;
    const bool due = every_ == 1 || record.step % every_ == 0;  // a division takes longer than a row
    const bool inside = record.event != Event::kNone && record.event == state_.streak;
    if (!inside) Finish(keep);
    state_.streak = record.event;
    if (due || (record.event != Event::kNone && !inside)) {
      state_.has_pending = false;
      keep(record);
    } else if (inside) {
      state_.pending = record;
      state_.has_pending = true;
    }
  }
  // The end of the stream.
  template <class Keep>
  void Finish(const Keep& keep) {
    if (state_.has_pending) keep(state_.pending);
    state_.has_pending = false;
  }
  const RowFilterState& state() const { return state_; }

 private:
  std::int64_t every_;
  RowFilterState state_;
};

// What a later process needs to go on with a trace: bytes of the file that are certain, and the state of the filter as text.
struct TraceState {
  std::uint64_t bytes = 0;
  std::string streak;   // event name of the step before
  std::string pending;  // a row with all columns, or empty

  template <class Self, class V>
  static void Visit(Self& self, V& v) {
    v.Value({"bytes", "of trace.csv"}, self.bytes);
    v.Value({"streak", "event of the last step"}, self.streak);
    v.Value({"pending", "a row not written yet, since its streak of events goes on"}, self.pending);
  }
};

class TraceWriter {
 public:

  // Writes the header where `state` is new, else cuts the file to state.bytes and goes on. Every name in options.columns is one of Columns(). IoError as LineFile;
  // InputError (kData) naming `path` where the state is not one that state() made.
  TraceWriter(const std::string& path, const TraceOptions& options, const TraceState& state = {});

  void Add(std::span<const StepRecord> records);
  // Hands all rows so far to the system and forces them to the disk; then state() is what the disk holds.
  void Sync() { file_.Sync(); }
  void Flush() { file_.Flush(); }
  TraceState state() const;
  // The end of the run: writes what is pending and flushes.
  void Finish();

 private:
  void Write(const StepRecord& record);

  struct Cells {
    char* (*write)(char* out, const StepRecord& record, LastCell& last);
    LastCell last;
  };

  std::vector<Cells> columns_;
  RowFilter filter_;
  LineFile file_;
};

}  // namespace scaletrace

#endif  // SCALETRACE_TRACE_CSV_WRITER_H_
