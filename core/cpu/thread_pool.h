// Threads that the host starts and that help with parallel regions, for WebAssembly.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace cresset {

/// Shares the pieces of one region at a time among the calling thread and the helpers that are
/// awake. The caller takes pieces itself until none is left, so it never waits for a helper that
/// has not come.
class ThreadPool {
 public:
  using Job = void (*)(void* context, int64_t index);

  /// Runs job(context, i) for i in [0, count); a second caller at the same time runs alone.
  void run(int64_t count, Job job, void* context);
  /// The life of a helping thread.
  [[noreturn]] void help();
  int helpers() const { return helpers_.load(std::memory_order_relaxed); }

 private:
  bool run_piece();
  bool has_piece() const { return next_.load() < count_.load(); }

  std::mutex owner_, mutex_;
  std::condition_variable wake_, done_;
  std::atomic<int> helpers_{0};
  // Written under mutex_; the counters are also read without it, while spinning.
  Job job_ = nullptr;
  void* context_ = nullptr;
  std::atomic<int64_t> next_{0}, count_{0}, pending_{0};
  int sleeping_ = 0;
};

ThreadPool& thread_pool();

}  // namespace cresset
