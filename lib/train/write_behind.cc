#include "train/write_behind.h"

#include <csignal>
#include <system_error>

namespace scaletrace {
namespace {

// Keeps signals that are sent to the process away from threads started in this scope: who handles them does so in a thread that was there before. Those that
// a thread brings on itself, as by writing to a closed pipe, are its own wherever it runs.
class SignalsElsewhere {
 public:
  SignalsElsewhere() {
    sigset_t sent;
    sigfillset(&sent);
    for (const int own : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPIPE, SIGSEGV, SIGSYS, SIGTRAP, SIGXFSZ}) sigdelset(&sent, own);
    pthread_sigmask(SIG_BLOCK, &sent, &before_);
  }
  ~SignalsElsewhere() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsElsewhere(const SignalsElsewhere&) = delete;
  SignalsElsewhere& operator=(const SignalsElsewhere&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

WriteBehind::~WriteBehind() {
  if (!started()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_one();
  thread_.join();
}

void WriteBehind::Start() {
  if (started()) return;
  const SignalsElsewhere signals;
  try {
    thread_ = std::thread([this] { Work(); });
  } catch (const std::system_error&) {
    return;
  }
}

WriteBehind::Batch& WriteBehind::Next() {
  WaitUntilFewer(kBatches);
  return batches_[handed_ % kBatches];  // only this thread changes handed_
}

void WriteBehind::Hand() {
  if (!started()) {
    write_(batches_[handed_ % kBatches]);
    ++handed_;
    ++written_;
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ++handed_;
  }
  work_.notify_one();
}

void WriteBehind::Drain() { WaitUntilFewer(1); }

// Waits until fewer batches than that are handed over and not written.
void WriteBehind::WaitUntilFewer(std::size_t batches) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return error_ || handed_ - written_ < batches; });
  if (error_) std::rethrow_exception(error_);
}

void WriteBehind::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stop_ || handed_ > written_; });
    if (handed_ == written_) return;
    Batch& batch = batches_[written_ % kBatches];
    lock.unlock();
    std::exception_ptr error;
    try {
      write_(batch);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) {
      error_ = error;
    } else {
      ++written_;
    }
    room_.notify_one();
    if (error) return;
  }
}

}  // namespace scaletrace
