// The CPU caching allocator: size classes, free lists, limits and the reclaim hook.
#include "core/tensor/allocator.h"

#include <bit>
#include <cstdint>
#include <cstdlib>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <mutex>
#include <vector>

#include "core/base/error.h"
#include "core/base/spin_lock.h"
#include "core/tensor/device_runtime.h"

namespace cresset {
namespace {

// Four classes per power of two from 64 bytes on: at most 25% of a block is slack.
constexpr size_t smallest = 64;
constexpr int classes = 4 * 48;

size_t class_index(size_t bytes) {
  if (bytes <= smallest) return 0;
  size_t log = std::bit_width(bytes - 1) - 1;
  size_t quarter = ((bytes - 1) >> (log - 2)) & 3;
  return (log - 6) * 4 + quarter + 1;
}

size_t class_bytes(size_t index) {
  if (index == 0) return smallest;
  size_t log = (index - 1) / 4 + 6, quarter = (index - 1) % 4;
  size_t bytes = (size_t{4} + quarter + 1) << (log - 2);
  return (bytes + 63) & ~size_t{63};
}

// More than any machine has; on 32 bits, the largest class below 4 GiB.
constexpr size_t largest = sizeof(size_t) > 4 ? SIZE_MAX >> 12 : size_t{7} << 29;

#if defined(__linux__)
constexpr size_t huge_page = size_t{1} << 21;

// Large blocks ask for huge pages: the first touch of 4 KiB pages costs more than most kernels.
void* system_allocate(size_t bytes) {
  if (bytes < huge_page) return std::aligned_alloc(64, bytes);
  void* p = std::aligned_alloc(huge_page, (bytes + huge_page - 1) / huge_page * huge_page);
  if (p) madvise(p, bytes, MADV_HUGEPAGE);
  return p;
}
#else
void* system_allocate(size_t bytes) { return std::aligned_alloc(64, bytes); }
#endif

struct Cache {
  SpinLock mutex;
  std::vector<void*> free_blocks[classes];
  AllocatorStats stats;
  int64_t limit = 0;
  int64_t since_sweep = 0;
  ReclaimHook reclaim = nullptr;
};

// Leaked on purpose: tensors may be freed by static destructors of the host.
Cache& cache() {
  static Cache* c = new Cache;
  return *c;
}

void release_cached(Cache& c) noexcept {
  for (size_t i = 0; i < classes; ++i) {
    for (void* p : c.free_blocks[i]) {
      std::free(p);
      c.stats.reserved -= static_cast<int64_t>(class_bytes(i));
    }
    c.free_blocks[i].clear();
  }
}

void* try_allocate(Cache& c, size_t index, size_t rounded) {
  std::lock_guard lock(c.mutex);
  auto& list = c.free_blocks[index];
  void* p = nullptr;
  if (!list.empty()) {
    p = list.back();
    list.pop_back();
    ++c.stats.cache_hits;
  } else {
    auto fits = [&] {
      return c.limit == 0 || c.stats.reserved + static_cast<int64_t>(rounded) <= c.limit;
    };
    if (!fits()) release_cached(c);
    if (fits()) p = system_allocate(rounded);
    if (!p && fits()) {
      release_cached(c);
      p = system_allocate(rounded);
    }
    if (!p) return nullptr;
    c.stats.reserved += static_cast<int64_t>(rounded);
  }
  ++c.stats.allocations;
  c.since_sweep += static_cast<int64_t>(rounded);
  c.stats.allocated += static_cast<int64_t>(rounded);
  if (c.stats.allocated > c.stats.peak_allocated) c.stats.peak_allocated = c.stats.allocated;
  return p;
}

}  // namespace

void* cpu_allocate(size_t bytes) {
  Cache& c = cache();
  CHECK(bytes <= largest, OutOfMemory, "cpu: tried to allocate ", bytes,
        " bytes, more than any machine has");
  size_t index = class_index(bytes), rounded = class_bytes(index);
  for (int attempt = 0;; ++attempt) {
    if (void* p = try_allocate(c, index, rounded)) return p;
    if (!c.reclaim || !c.reclaim(attempt)) break;
  }
  AllocatorStats s = cpu_allocator_stats();
  fail(ErrorKind::OutOfMemory, "cpu: out of memory: tried to allocate ", bytes, " bytes; ",
       s.allocated, " allocated, ", s.reserved, " reserved", c.limit ? ", limit " : "",
       c.limit ? std::to_string(c.limit) : "");
}

void cpu_free(void* block, size_t bytes) noexcept {
  Cache& c = cache();
  size_t index = class_index(bytes);
  std::lock_guard lock(c.mutex);
  c.stats.allocated -= static_cast<int64_t>(class_bytes(index));
  c.free_blocks[index].push_back(block);
}

void cpu_empty_cache() noexcept {
  std::lock_guard lock(cache().mutex);
  release_cached(cache());
}

AllocatorStats cpu_allocator_stats() noexcept {
  std::lock_guard lock(cache().mutex);
  return cache().stats;
}

void cpu_reset_peak() noexcept {
  std::lock_guard lock(cache().mutex);
  cache().stats.peak_allocated = cache().stats.allocated;
}

void cpu_set_memory_limit(int64_t bytes) noexcept {
  std::lock_guard lock(cache().mutex);
  cache().limit = bytes;
}

void set_reclaim_hook(ReclaimHook hook) noexcept { cache().reclaim = hook; }

bool reclaim_memory(int attempt) { return cache().reclaim && cache().reclaim(attempt); }

int64_t cpu_allocated_since_sweep() noexcept { return cache().since_sweep; }
const int64_t* cpu_sweep_counter() noexcept { return &cache().since_sweep; }
void cpu_mark_sweep(int64_t bytes) noexcept { cache().since_sweep = bytes; }
int64_t cpu_allocated() noexcept { return cache().stats.allocated; }

}  // namespace cresset
