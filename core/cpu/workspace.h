// Aligned scratch memory for kernels that pack or unroll their inputs.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace cresset {

/// A block of bytes aligned to 64 that grows on demand and never shrinks.
class AlignedBuffer {
 public:
  /// At least `bytes` bytes with undefined contents; throws std::bad_alloc.
  void* reserve(size_t bytes) {
    if (bytes > capacity_) {
      memory_.reset();
      capacity_ = 0;
      memory_.reset(::operator new(bytes, std::align_val_t{kAlignment}));
      capacity_ = bytes;
    }
    return memory_.get();
  }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(void* p) const { ::operator delete(p, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<void, Free> memory_;
  size_t capacity_ = 0;
};

/// Scratch of one kernel call: small blocks come from a per-thread cache, so that a training loop
/// does not allocate; a nested call, or one beyond the cache's bound, gets memory of its own.
class Scratch {
 public:
  explicit Scratch(size_t bytes) {
    Cache& cache = thread_cache();
    if (bytes <= kCachedBytes && !cache.busy) {
      pointer_ = cache.buffer.reserve(bytes);
      cache.busy = cached_ = true;
    } else {
      pointer_ = own_.reserve(bytes);
    }
  }
  ~Scratch() {
    if (cached_) thread_cache().busy = false;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <class T>
  T* as() const {
    return static_cast<T*>(pointer_);
  }

 private:
  static constexpr size_t kCachedBytes = size_t{16} << 20;
  struct Cache {
    AlignedBuffer buffer;
    bool busy = false;
  };
  static Cache& thread_cache() {
    static thread_local Cache cache;
    return cache;
  }

  AlignedBuffer own_;
  void* pointer_ = nullptr;
  bool cached_ = false;
};

}  // namespace cresset
