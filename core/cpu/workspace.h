// Aligned scratch memory for kernels that pack or unroll their inputs.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace cresset {

/// A block of bytes aligned to 64 that grows on demand and never shrinks.
class AlignedBuffer {
 public:
  /// At least `bytes` bytes with undefined contents; throws std::bad_alloc.
  void* reserve(size_t bytes) {
    if (bytes > capacity_) {
      memory_.reset();
      capacity_ = 0;
      memory_.reset(::operator new (bytes, std::align_val_t{kAlignment}));
      capacity_ = bytes;
    }
    return memory_.get();
  }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(void* p) const { ::operator delete (p, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<void, Free> memory_;
  size_t capacity_ = 0;
};

/// Scratch of one kernel call. Each thread keeps a small stack of blocks, one per nesting level, so
/// that a training loop does not allocate; what is beyond its bounds is allocated and freed.
class Scratch {
 public:
  explicit Scratch(size_t bytes) {
    if (bytes == 0) return;
    Cache& cache = thread_cache();
    if (bytes <= kCachedBytes && cache.depth < kLevels) {
      pointer_ = cache.levels[cache.depth].reserve(bytes);
      ++cache.depth;
      cached_ = true;
    } else {
      pointer_ = own_.reserve(bytes);
    }
  }
  ~Scratch() {
    if (cached_) --thread_cache().depth;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  template <class T> T* as() const { return static_cast<T*>(pointer_); }

 private:
  static constexpr size_t kCachedBytes = size_t{64} << 20;
  static constexpr int kLevels = 4;
  struct Cache {
    AlignedBuffer levels[kLevels];
    int depth = 0;
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
