// The threads that help with parallel regions, and how a region's pieces are shared among them.
#if !defined(__EMSCRIPTEN__) || defined(__EMSCRIPTEN_PTHREADS__)
#include "core/cpu/thread_pool.h"

#include <algorithm>
#include <system_error>
#include <thread>

namespace cresset {
namespace {

#if defined(__x86_64__)
void relax() { __builtin_ia32_pause(); }
constexpr int spins = 12000;
#else
void relax() {}
constexpr int spins = 12000;
#endif

/// Waits for `come` about as long as the time between two operators of a training step: falling
/// asleep and waking costs more.
template <class Condition> bool spin(Condition come) {
  for (int i = 0; i < spins; ++i) {
    if (come()) return true;
    relax();
  }
  return false;
}

}  // namespace

/// Never destroyed: helpers wait on it until the process ends.
ThreadPool& thread_pool() {
  static ThreadPool* pool = new ThreadPool;
  return *pool;
}

void ThreadPool::start(int count) {
  try {
    for (; started_ < count; ++started_) std::thread([this] { help(); }).detach();
  } catch (const std::system_error&) {
    // The system gives no more threads: those that there are do the work.
  }
}

void ThreadPool::run(int64_t count, int threads, Job job, void* context) {
  std::unique_lock owner(owner_, std::try_to_lock);
  if (!owner.owns_lock()) {
    for (int64_t i = 0; i < count; ++i) job(context, i);
    return;
  }
#if !defined(__EMSCRIPTEN__)
  start(static_cast<int>(std::min<int64_t>(threads, count)) - 1);
#endif
  job_ = job;
  context_ = context;
  count_ = count;
  limit_ = threads - 1;
  pending_ = count;
  const uint64_t region = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  ticket_ = region << 32 | static_cast<uint32_t>(count);
  if (sleeping_.load() > 0) {
    // A helper that is about to sleep holds the lock until it does.
    { std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  run_pieces();
  auto finished = [this] { return pending_.load() == 0; };
  if (spin(finished)) return;
  std::unique_lock lock(mutex_);
  waiting_ = true;
  done_.wait(lock, finished);
  waiting_ = false;
}

/// The index of a piece that is the caller's from now on; -1 when none is left.
int64_t ThreadPool::take_piece() {
  uint64_t ticket = ticket_.load();
  // A ticket that is unchanged is of the same region: the next one begins when this one has ended.
  while (static_cast<uint32_t>(ticket) != 0)
    if (ticket_.compare_exchange_weak(ticket, ticket - 1))
      return count_ - static_cast<int64_t>(static_cast<uint32_t>(ticket));
  return -1;
}

void ThreadPool::run_pieces() {
  for (int64_t index; (index = take_piece()) >= 0;) {
    job_(context_, index);
    if (pending_.fetch_sub(1) != 1 || !waiting_.load()) continue;
    std::lock_guard lock(mutex_);
    done_.notify_one();
  }
}

void ThreadPool::help() {
  const int number = helpers_++;
  auto come = [this, number] { return wants(number); };
  for (;;) {
    if (!spin(come)) {
      std::unique_lock lock(mutex_);
      ++sleeping_;
      wake_.wait(lock, come);
      --sleeping_;
    }
    run_pieces();
  }
}

}  // namespace cresset
#endif
