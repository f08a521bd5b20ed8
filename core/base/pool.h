// Free lists for small objects that come and go with every operator: tensors, storages, nodes.
#pragma once

#include <cstddef>
#include <vector>

#include "core/base/api.h"

namespace cresset {

/// Memory for an object of up to `pool_max` bytes from this thread's free lists, or operator new.
/// A block may be freed on another thread; it then serves that one.
CRESSET_API void* pool_allocate(size_t bytes);
CRESSET_API void pool_free(void* block, size_t bytes) noexcept;

constexpr size_t pool_max = 512;

/// Gives a class (and its subclasses, by their own size) pooled new and delete.
struct Pooled {
  static void* operator new(size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* block, size_t bytes) noexcept { pool_free(block, bytes); }
};

/// Lets short vectors that live as long as a node or a call use the pool.
template <class T> struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <class U> PoolAllocator(const PoolAllocator<U>&) {}
  T* allocate(size_t n) { return static_cast<T*>(pool_allocate(n * sizeof(T))); }
  void deallocate(T* block, size_t n) noexcept { pool_free(block, n * sizeof(T)); }
  bool operator==(const PoolAllocator&) const = default;
};
template <class T> using PoolVector = std::vector<T, PoolAllocator<T>>;

}  // namespace cresset
