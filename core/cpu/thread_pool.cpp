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
  const int shares = static_cast<int>(std::min<int64_t>({count, threads, most_shares}));
  job_ = job;
  context_ = context;
  count_ = count;
  shares_ = shares;
  limit_ = threads - 1;
  pending_ = count;
  const uint64_t region = region_.load(std::memory_order_relaxed) + 1;
  for (int i = 0; i < shares; ++i) {
    const auto pieces = static_cast<uint32_t>(share_begin(i + 1) - share_begin(i));
    share_[i].ticket = region << 32 | pieces;
  }
  region_ = region;
  if (sleeping_.load() > 0) {
    // A helper that is about to sleep holds the lock until it does.
    { std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  run_pieces(0, region);
  auto finished = [this] { return pending_.load() == 0; };
  if (spin(finished)) return;
  std::unique_lock lock(mutex_);
  waiting_ = true;
  done_.wait(lock, finished);
  waiting_ = false;
}

/// The index of a piece of this share that is the caller's from now on; -1 when none is left, or
/// when the region has ended.
int64_t ThreadPool::take_piece(int share, uint64_t region) {
  std::atomic<uint64_t>& shared = share_[share].ticket;
  uint64_t ticket = shared.load();
  for (;;) {
    const uint32_t left = static_cast<uint32_t>(ticket);
    if (left == 0 || ticket >> 32 != static_cast<uint32_t>(region)) return -1;
    if (shared.compare_exchange_weak(ticket, ticket - 1)) return share_begin(share + 1) - left;
  }
}

/// Takes pieces until none is left, those of share `home` first.
void ThreadPool::run_pieces(int home, uint64_t region) {
  const int shares = shares_.load();
  for (int i = 0; i < shares; ++i) {
    const int share = (home + i) % shares;
    for (int64_t index; (index = take_piece(share, region)) >= 0;) {
      job_(context_, index);
      if (pending_.fetch_sub(1) != 1 || !waiting_.load()) continue;
      std::lock_guard lock(mutex_);
      done_.notify_one();
    }
  }
}

void ThreadPool::help() {
  const int number = helpers_++;
  uint64_t seen = 0;
  auto come = [&] { return region_.load() != seen && number < limit_.load(); };
  for (;;) {
    if (!spin(come)) {
      std::unique_lock lock(mutex_);
      ++sleeping_;
      wake_.wait(lock, come);
      --sleeping_;
    }
    seen = region_.load();
    // The limit is the one of this region or of a later one, which then does not give its pieces.
    if (number < limit_.load()) run_pieces(number + 1, seen);
  }
}

}  // namespace cresset
#endif
