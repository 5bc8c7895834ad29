// Batches on their way through a thread: order, number, errors, the end.
#include "train/write_behind.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <stdexcept>

#include "tests/catch.h"

namespace scaletrace {
namespace {

// Fills and hands over a batch of some records from `step` on, whose texts say so.
std::int64_t HandSome(WriteBehind& writer, std::int64_t step, std::size_t count) {
  WriteBehind::Batch& batch = writer.Next();
  batch.records.resize(count);
  batch.count = count;
  for (StepRecord& record : batch.records) record.step = step++;
  batch.histograms = std::to_string(step);
  writer.Hand();
  return step;
}

TEST_CASE("batches are written whole and in order, by the caller until a thread is started and by that thread from then on") {
  for (const int start_at : {-1, 0, 1, 100}) {
    INFO("thread from batch " << start_at);
    std::vector<std::int64_t> steps;
    std::vector<std::thread::id> threads;
    std::int64_t step = 0;
    WriteBehind writer([&](WriteBehind::Batch& batch) {
      for (std::size_t i = 0; i < batch.count; ++i) steps.push_back(batch.records[i].step);
      if (batch.histograms != std::to_string(steps.size())) throw std::logic_error("another batch's text");
      threads.push_back(std::this_thread::get_id());
    });
    for (int i = 0; i < 1000; ++i) {
      if (i == start_at) writer.Start();
      step = HandSome(writer, step, static_cast<std::size_t>(i * 7 % 40));
    }
    writer.Drain();
    REQUIRE(steps.size() == static_cast<std::size_t>(step));
    for (std::size_t i = 0; i < steps.size(); ++i) REQUIRE(steps[i] == static_cast<std::int64_t>(i));
    REQUIRE(threads.size() == 1000);
    for (int i = 0; i < 1000; ++i) {
      REQUIRE((threads[static_cast<std::size_t>(i)] == std::this_thread::get_id()) == (start_at < 0 || i < start_at));
    }
  }
}

TEST_CASE("steps go on while a batch is written, and wait when three are on their way") {
  std::atomic<bool> open = false;
  std::atomic<int> begun = 0, handed = 0;
  bool waited = true;
  WriteBehind writer([&](WriteBehind::Batch&) {
    ++begun;
    open.wait(false);
  });
  writer.Start();
  std::thread steps([&] {
    for (int i = 0; i < 10; ++i) {
      WriteBehind::Batch& batch = writer.Next();
      if (i >= 3) waited = waited && open;
      batch.count = 0;
      writer.Hand();
      ++handed;
    }
  });
  // Three get away although none is written; were it fewer, this would hang.
  while (handed < 3 || begun < 1) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(handed == 3);
  CHECK(begun == 1);
  open = true;
  open.notify_all();
  steps.join();
  writer.Drain();
  CHECK(waited);
  CHECK(begun == 10);
}

TEST_CASE("what writing throws reaches the caller, and nothing is written behind it") {
  for (const bool thread : {false, true}) {
    int calls = 0;
    {
      WriteBehind writer([&](WriteBehind::Batch&) {
        if (++calls == 5) throw std::runtime_error("full");
      });
      if (thread) writer.Start();
      CHECK_THROWS_WITH(
          [&] {
            for (std::int64_t i = 0; i < 100; ++i) HandSome(writer, i, 1);
          }(),
          "full");
      if (thread) CHECK_THROWS_WITH(writer.Drain(), "full");
      if (thread) CHECK_THROWS_WITH(writer.Next(), "full");
    }
    CHECK(calls == 5);
  }
}

TEST_CASE("an error of the last batch is seen when all are waited for") {
  WriteBehind writer([](WriteBehind::Batch&) { throw std::runtime_error("full"); });
  writer.Start();
  HandSome(writer, 0, 1);
  CHECK_THROWS_WITH(writer.Drain(), "full");
}

TEST_CASE("what was handed over is written though nobody waits for it") {
  int calls = 0;
  {
    WriteBehind writer([&](WriteBehind::Batch&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++calls;
    });
    writer.Start();
    for (std::int64_t i = 0; i < 10; ++i) HandSome(writer, i, 1);
  }
  CHECK(calls == 10);
}

TEST_CASE("the thread leaves signals to the others, but for those that it brings on itself, and starting it changes nothing for the caller") {
  const auto blocked = [] {
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    std::vector<int> signals;
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGPIPE, SIGXFSZ, SIGSEGV}) {
      if (sigismember(&now, number) == 1) signals.push_back(number);
    }
    return signals;
  };
  const std::vector<int> before = blocked();
  std::vector<int> in_thread;
  WriteBehind writer([&](WriteBehind::Batch&) { in_thread = blocked(); });
  writer.Start();
  HandSome(writer, 0, 1);
  writer.Drain();
  CHECK(in_thread == std::vector<int>{SIGINT, SIGTERM, SIGHUP, SIGALRM});
  CHECK(blocked() == before);
}

}  // namespace
}  // namespace scaletrace
