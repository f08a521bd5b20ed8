// The CPU caching allocator and its statistics.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cresset {

/// Counters in bytes, as torch.memory_stats gives them.
struct AllocatorStats {
  int64_t allocated = 0;       ///< bytes in live blocks
  int64_t reserved = 0;        ///< bytes held from the system: live blocks and cached ones
  int64_t peak_allocated = 0;  ///< highest `allocated` since the last reset
  int64_t allocations = 0;     ///< blocks handed out
  int64_t cache_hits = 0;      ///< of these, reused without asking the system
};

/// Gives blocks of at least `bytes`, 64-byte aligned, with readable padding up to a multiple of 64.
/// Freed blocks are kept by size class and reused; thread-safe. Throws OutOfMemory.
void* cpu_allocate(size_t bytes);
void cpu_free(void* block, size_t bytes) noexcept;

/// Returns every cached block to the system.
void cpu_empty_cache() noexcept;
AllocatorStats cpu_allocator_stats() noexcept;
void cpu_reset_peak() noexcept;

/// Refuses to hold more than this many bytes (0 = no limit); for tests and small machines.
void cpu_set_memory_limit(int64_t bytes) noexcept;

/// Called on allocation failure with `attempt` 0, 1, ..; returns whether it freed something.
using ReclaimHook = bool (*)(int attempt);
void set_reclaim_hook(ReclaimHook hook) noexcept;

/// Bytes allocated since the last call of `take`; the memory policy polls it.
int64_t cpu_allocated_since_sweep() noexcept;
/// Where that number is kept.
const int64_t* cpu_sweep_counter() noexcept;
/// Starts to count from `bytes`.
void cpu_mark_sweep(int64_t bytes = 0) noexcept;
/// `allocated` of the statistics, without taking the lock.
int64_t cpu_allocated() noexcept;

}  // namespace cresset
