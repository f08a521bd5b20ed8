// The pool runs every piece of a region once, whoever asks and whoever helps.
#include "core/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace cresset {
namespace {

struct Counts {
  std::vector<std::atomic<int>> runs;
  explicit Counts(int64_t count) : runs(static_cast<size_t>(count)) {}
};

void count_piece(void* context, int64_t index) {
  ++static_cast<Counts*>(context)->runs[static_cast<size_t>(index)];
}

void expect_each_once(ThreadPool& pool, int64_t count, int threads) {
  Counts counts(count);
  pool.run(count, threads, count_piece, &counts);
  for (auto& runs : counts.runs) ASSERT_EQ(runs, 1);
}

TEST(ThreadPool, RunsEveryPieceOnce) {
  for (int64_t region = 0; region < 20'000; ++region)
    expect_each_once(thread_pool(), 1 + region % 17, 2 + static_cast<int>(region % 3));
}

TEST(ThreadPool, WakesHelpersThatSleep) {
  for (int region = 0; region < 20; ++region) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    expect_each_once(thread_pool(), 64, 3);
  }
}

TEST(ThreadPool, SeveralCallersAtOnce) {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller)
    callers.emplace_back([] {
      for (int64_t region = 0; region < 5'000; ++region)
        expect_each_once(thread_pool(), 1 + region % 9, 3);
    });
  for (std::thread& caller : callers) caller.join();
}

TEST(ThreadPool, EachThreadBeginsWithItsOwnShare) {
  struct Both {
    std::atomic<int> begun{0};
    std::thread::id first;
  };
  for (int region = 0; region < 200; ++region) {
    Both both;
    // Neither piece ends before the other has begun, so two threads take one each.
    thread_pool().run(
        2, 2,
        [](void* context, int64_t index) {
          auto& b = *static_cast<Both*>(context);
          if (index == 0) b.first = std::this_thread::get_id();
          ++b.begun;
          while (b.begun < 2) std::this_thread::yield();
        },
        &both);
    ASSERT_EQ(both.first, std::this_thread::get_id());
  }
}

TEST(ThreadPool, UsesNoMoreThreadsThanAsked) {
  expect_each_once(thread_pool(), 8, 4);  // three helpers exist from here on
  struct Seen {
    std::mutex mutex;
    std::set<std::thread::id> threads;
  } seen;
  for (int region = 0; region < 200; ++region)
    thread_pool().run(
        8, 2,
        [](void* context, int64_t) {
          auto& s = *static_cast<Seen*>(context);
          std::lock_guard lock(s.mutex);
          s.threads.insert(std::this_thread::get_id());
        },
        &seen);
  EXPECT_LE(seen.threads.size(), 2u);
}

}  // namespace
}  // namespace cresset
