// A few threads that take the parts of one computation together, again and again: for parts of microseconds, which starting a thread would outlast.
#ifndef SCALETRACE_BASE_TEAM_H_
#define SCALETRACE_BASE_TEAM_H_

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace scaletrace {

class Team {
 public:
  // The caller is one of the threads; size - 1 others are started (fewer where the system refuses: see size()).
  explicit Team(int size);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return size_; }
  // f(0) in the caller, f(1) ... in the others; returns when all have returned. f must not throw, and every call of Barrier in it must be made by all.
  void Run(const std::function<void(int thread)>& f);
  // Within f: waits until all threads are here. What one wrote before, the others see behind it.
  void Barrier();

 private:
  void Work(int thread);

  int size_ = 1;
  std::atomic<int> arrived_{0};
  std::atomic<int> round_{0};  // counts barriers, and wraps
  const std::function<void(int)>* task_ = nullptr;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

// Tells the processor that the caller waits for another thread, briefly.
void Relax();

}  // namespace scaletrace

#endif  // SCALETRACE_BASE_TEAM_H_
