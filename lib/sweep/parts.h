// The folder of a sweep, as the workers and the readers of it see it.
//   sweep.yaml     as given                     plan.json    PlanFacts: what the folder is of; written before any part
//   parts/         finished rows, by worker     traces/RUN/  trace.csv and config.yaml of kept runs
//   results.csv    all rows in order: made from the parts when none is missing, by rename; its presence means done
//
// A worker writes into one part that is its own: parts/K-of-N.SUFFIX.rows, opened new by each process under a name that no other process has. So no two processes
// ever write to one file, whatever is started twice or at once, on one machine or on many. A part is
//   scaletrace rows 1 PLANHASH K N
//   rows FIRST END FAILED BYTES SHA256        then BYTES bytes: the rows of the runs FIRST <= run < END (fewer lines where a condition dropped some)
//   ...                                       the sum is of "FIRST END FAILED BYTES\n" and the rows
// appended record by record. A reader takes records as long as they are whole and their sums are right; what follows is what a crash, a full disk or a lost page
// left behind, and its runs count as not done. Parts are never mended: a worker that goes on opens a new one.
#ifndef SCALETRACE_SWEEP_PARTS_H_
#define SCALETRACE_SWEEP_PARTS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sweep/plan.h"

namespace scaletrace {

// Shard `number` of `count`: the blocks b with b mod count = number - 1.
struct Shard {
  std::uint64_t number = 1;
  std::uint64_t count = 1;

  bool operator==(const Shard&) const = default;
  bool Has(std::uint64_t block) const { return block % count == number - 1; }
  std::string Text() const { return std::to_string(number) + "/" + std::to_string(count); }
};

struct SweepFolder {
  explicit SweepFolder(std::string path_of_folder)
      : path(std::move(path_of_folder)),
        plan(path + "/plan.json"),
        yaml(path + "/sweep.yaml"),
        parts(path + "/parts"),
        results(path + "/results.csv"),
        traces(path + "/traces") {}
  std::string path, plan, yaml, parts, results, traces;
};

// What plan.json of the folder says. IoError where there is none; InputError (kData) where it is no plan.
PlanFacts ReadPlanFacts(const SweepFolder& folder);

// Holds parts/K-of-N.lock for this process as long as it lives. IoError where another process has it. Where the file system has no locks there is none: two
// processes then do the same work twice, and nothing else.
class ShardLock {
 public:
  ShardLock(const SweepFolder& folder, const Shard& shard);
  ~ShardLock();
  ShardLock(const ShardLock&) = delete;
  ShardLock& operator=(const ShardLock&) = delete;

 private:
  int fd_ = -1;
};

class PartWriter {
 public:
  // The file is made when the first record comes.
  PartWriter(const SweepFolder& folder, const std::string& plan_hash, const Shard& shard);
  ~PartWriter();
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;

  // Hands a record to the system. After an IoError (a full disk) the part is to be left alone: Append throws.
  void Append(std::uint64_t first, std::uint64_t end, std::uint64_t failed, std::string_view rows);
  // Forces what was appended to the disk. May be called beside Append.
  void Sync();
  const std::string& path() const { return path_; }
  bool started() const { return fd_ >= 0; }

 private:
  void Write(std::string_view bytes);

  std::string folder_, path_, first_line_;
  std::atomic<int> fd_ = -1;
  bool failed_ = false;
  bool named_ = false;  // the folder's entry of it is on the disk
};

// One record of a part.
struct DoneRange {
  std::uint64_t first = 0, end = 0, failed = 0;
  std::uint32_t part = 0;
  std::uint64_t offset = 0, bytes = 0;  // of its rows
};

struct Part {
  std::string path;
  Shard shard;
  std::int64_t written_at = 0;  // seconds since 1970: last write
};

// All that the parts of a folder hold. Ranges are sorted and may overlap: processes that were started on the same work wrote the same rows.
struct DoneRuns {
  std::vector<Part> parts;
  std::vector<DoneRange> ranges;
  bool interrupted = false;  // keep_going said false: the rest was not read

  // The runs of [first, end) that no range has, in order.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> Missing(std::uint64_t first, std::uint64_t end) const;
  std::uint64_t Count() const;   // different runs
  std::uint64_t Failed() const;  // among the ranges, those that overlap counted once
};

// Parts of another plan are an InputError (kData): files of two sweeps are mixed. Memory: per record, not per row. keep_going, here and below, is asked at every
// record; gigabytes of rows take a while.
DoneRuns ReadParts(const SweepFolder& folder, const PlanFacts& facts, const std::function<bool()>& keep_going = [] { return true; });

// Calls row(line) for every row of the parts, in order of the runs, each run once; `line` without its end.
void ForEachRow(const DoneRuns& done, const std::function<void(std::string_view line)>& row);

// Writes results.csv from parts that miss nothing: complete, on the disk, in its place by rename. Waits while another process does the same. False, and nothing is
// written, where keep_going said false.
bool WriteResults(const SweepFolder& folder, const PlanFacts& facts, const DoneRuns& done, const std::function<bool()>& keep_going = [] { return true; });

}  // namespace scaletrace

#endif  // SCALETRACE_SWEEP_PARTS_H_
