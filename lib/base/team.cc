#include "base/team.h"

#include <system_error>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace scaletrace {

void Relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

Team::Team(int size) {
  // Counted before any of them starts: the first barrier is that of the first task.
  size_ = size;
  for (int i = 1; i < size; ++i) {
    try {
      threads_.emplace_back([this, i] { Work(i); });
    } catch (const std::system_error&) {
      break;
    }
  }
  if (static_cast<int>(threads_.size()) + 1 == size) return;
  // Too few for the barriers: those that did start are let go, and the caller works alone.
  stop_ = true;
  const int missing = size - 1 - static_cast<int>(threads_.size());
  arrived_.fetch_add(missing);
  Barrier();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  stop_ = false;
  size_ = 1;
}

Team::~Team() {
  if (threads_.empty()) return;
  stop_ = true;
  Barrier();
  for (std::thread& thread : threads_) thread.join();
}

void Team::Run(const std::function<void(int)>& f) {
  if (size_ == 1) return f(0);
  task_ = &f;
  Barrier();
  f(0);
  Barrier();
}

void Team::Work(int thread) {
  for (;;) {
    Barrier();
    if (stop_) return;
    (*task_)(thread);
    Barrier();
  }
}

void Team::Barrier() {
  if (size_ == 1) return;
  const int round = round_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    round_.notify_all();
    return;
  }
  // Some ten microseconds awake, for the others are mostly about to come; then asleep, so that a team that waits for its next task, or shares its processors, takes nothing from others.
  for (int i = 0; i < 2000; ++i) {
    if (round_.load(std::memory_order_acquire) != round) return;
    Relax();
  }
  while (round_.load(std::memory_order_acquire) == round) round_.wait(round, std::memory_order_acquire);
}

}  // namespace scaletrace
