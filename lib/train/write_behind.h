// A run's rows on their way to the disk, in batches: written at once, or by a thread of their own while further steps are computed.
// What is written, and where to: run_folder.cc.
#ifndef SCALETRACE_TRAIN_WRITE_BEHIND_H_
#define SCALETRACE_TRAIN_WRITE_BEHIND_H_

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "trace/record.h"

namespace scaletrace {

class WriteBehind {
 public:
  struct Batch {
    std::vector<StepRecord> records;  // the first `count` are the batch's
    std::size_t count = 0;
    std::string histograms;  // whole lines of histograms.csv
    std::string state;       // to be saved behind all rows so far, or empty
  };
  // One is filled, one is written, and one evens out the times that these take.
  static constexpr std::size_t kBatches = 3;

  // `write` gets the batches one by one, in the order of Hand, and may throw.
  explicit WriteBehind(std::function<void(Batch&)> write) : write_(std::move(write)) {}
  // Ends when all batches handed over are written, or one could not be.
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // From now on a thread of its own calls `write`. Where the system has none to give, all stays as it is.
  void Start();
  bool started() const { return thread_.joinable(); }

  // The batch to fill next, as it was left when it was written; waits until one is free. Throws what `write` threw, of a batch handed over before.
  Batch& Next();
  // Hands over the batch that Next gave. Without a thread: writes it, and throws what `write` throws.
  void Hand();
  // Waits until all batches handed over are written; what `write` did is then to be seen here. Throws like Next.
  void Drain();

 private:
  void Work();
  void WaitUntilFewer(std::size_t batches);

  std::function<void(Batch&)> write_;
  std::array<Batch, kBatches> batches_;  // in a ring
  std::mutex mutex_;                     // of what follows
  std::condition_variable work_, room_;
  std::uint64_t handed_ = 0, written_ = 0;  // batches so far
  bool stop_ = false;
  std::exception_ptr error_;  // `write` threw it, and is called no more
  std::thread thread_;
};

}  // namespace scaletrace

#endif  // SCALETRACE_TRAIN_WRITE_BEHIND_H_
