// The threads that help with parallel regions, and how a region's pieces are shared among them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace cresset {

/// Shares the pieces of one region at a time among the calling thread and the helpers that are
/// awake. The caller takes pieces itself until none is left, so it never waits for a helper that
/// has not come: see Note [Helpers that come late].
class ThreadPool {
 public:
  using Job = void (*)(void* context, int64_t index);

  /// Runs job(context, i) for i in [0, count) on at most `threads` threads, the caller among them.
  /// A second caller at the same time runs alone. `job` must not throw.
  void run(int64_t count, int threads, Job job, void* context);
  /// The life of a helping thread.
  [[noreturn]] void help();
  int helpers() const { return helpers_.load(std::memory_order_relaxed); }
  /// Starts threads until `count` of them help. For hosts where the core may start threads itself.
  void start(int count);

 private:
  int64_t take_piece();
  void run_pieces();
  uint32_t left() const { return static_cast<uint32_t>(ticket_.load()); }
  bool wants(int helper) const { return left() > 0 && helper < limit_.load(); }

  std::mutex owner_, mutex_;
  std::condition_variable wake_, done_;
  std::atomic<int> helpers_{0}, sleeping_{0}, limit_{0};
  int started_ = 0;
  /// The region's number, and in the low 32 bits how many of its pieces nobody has taken yet.
  std::atomic<uint64_t> ticket_{0};
  std::atomic<int64_t> pending_{0};  ///< pieces that have not ended
  std::atomic<bool> waiting_{false};
  // Written by the caller before the ticket, read after a piece was taken.
  Job job_ = nullptr;
  void* context_ = nullptr;
  int64_t count_ = 0;
};

ThreadPool& thread_pool();

// Note [Helpers that come late]
// A process rarely has all cores for itself: the host's collector and compiler run on threads of
// their own, and a core that shares its units with a busy one is slower. With one piece for each
// thread and a barrier, every region would wait for the slowest. Regions are cut into several
// pieces for each thread, and whoever is free takes the next.

}  // namespace cresset
