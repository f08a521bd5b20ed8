// A lock for critical sections of a few instructions.
#pragma once

#include <atomic>
#include <thread>

namespace cresset {

/// Costs one atomic operation where a mutex costs two and two calls. For use with std::lock_guard.
class SpinLock {
 public:
  void lock() noexcept {
    while (taken_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() noexcept { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
};

}  // namespace cresset
