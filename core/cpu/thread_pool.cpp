// Threads that the host starts and that help with parallel regions, for WebAssembly.
#if defined(__EMSCRIPTEN_PTHREADS__)
#include "core/cpu/thread_pool.h"

namespace cresset {
namespace {

/// Waits some 20 microseconds for `come`, the time between two operators of a training step:
/// falling asleep and waking costs more.
template <class Condition> bool spin(Condition come) {
  for (int i = 0; i < 10000; ++i) {
    if (come()) return true;
  }
  return false;
}

}  // namespace

/// Never destroyed: helpers wait on it until the process ends.
ThreadPool& thread_pool() {
  static ThreadPool* pool = new ThreadPool;
  return *pool;
}

void ThreadPool::run(int64_t count, Job job, void* context) {
  std::unique_lock owner(owner_, std::try_to_lock);
  if (!owner.owns_lock()) {
    for (int64_t i = 0; i < count; ++i) job(context, i);
    return;
  }
  bool anyone_sleeps;
  {
    std::lock_guard lock(mutex_);
    job_ = job;
    context_ = context;
    pending_ = count;
    count_ = 0;
    next_ = 0;
    count_ = count;
    anyone_sleeps = sleeping_ > 0;
  }
  if (anyone_sleeps) wake_.notify_all();
  while (run_piece()) {
  }
  auto finished = [this] { return pending_.load() == 0; };
  if (spin(finished)) return;
  std::unique_lock lock(mutex_);
  done_.wait(lock, finished);
}

/// Takes a piece and runs it; false when none is left.
bool ThreadPool::run_piece() {
  Job job;
  void* context;
  int64_t index;
  {
    std::lock_guard lock(mutex_);
    if (!has_piece()) return false;
    index = next_++;
    job = job_;
    context = context_;
  }
  job(context, index);
  std::lock_guard lock(mutex_);
  if (--pending_ == 0) done_.notify_one();
  return true;
}

void ThreadPool::help() {
  ++helpers_;
  for (;;) {
    while (run_piece()) {
    }
    auto come = [this] { return has_piece(); };
    if (spin(come)) continue;
    std::unique_lock lock(mutex_);
    ++sleeping_;
    wake_.wait(lock, come);
    --sleeping_;
  }
}

}  // namespace cresset
#endif
