// The allocators of a CUDA device: PyTorch's caching one, and those that pass requests on.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "core/base/spin_lock.h"
#include "cuda/allocator_blocks.h"

namespace cresset::cuda {

/// A quantity over time: the names are those of torch.cuda.memory_stats.
struct Stat {
  int64_t current = 0, peak = 0, allocated = 0, freed = 0;
  void add(int64_t n) {
    current += n;
    if (current > peak) peak = current;
    (n > 0 ? allocated : freed) += n > 0 ? n : -n;
  }
};

/// What is counted, each for all pools, the small one and the large one.
enum Counted {
  Allocations,
  Segments,
  Active,
  InactiveSplit,
  AllocatedBytes,
  ReservedBytes,
  ActiveBytes,
  InactiveSplitBytes,
  RequestedBytes,
  counted_kinds
};

struct DeviceStats {
  std::array<std::array<Stat, 3>, counted_kinds> by_kind;  ///< [kind][all, small, large]
  Stat oversize_allocations, oversize_segments;
  int64_t alloc_retries = 0, ooms = 0, syncs = 0, device_allocs = 0, device_frees = 0;
  int64_t max_split_size = -1;

  void add(Counted kind, bool small, int64_t n) {
    by_kind[kind][0].add(n);
    by_kind[kind][small ? 1 : 2].add(n);
  }
  int64_t current(Counted kind) const { return by_kind[kind][0].current; }
};

struct BlockInfo {
  uintptr_t address = 0;
  size_t size = 0, requested = 0;
  const char* state = "";  ///< active_allocated, active_awaiting_free or inactive
};

struct SegmentInfo {
  uintptr_t address = 0;
  size_t total = 0, allocated = 0, active = 0, requested = 0;
  StreamHandle stream = nullptr;
  bool small = false, expandable = false;
  PoolId pool;
  std::vector<BlockInfo> blocks;
};

/// Frees what the host language no longer reaches: first a quick look, then (`attempt` 1) a full
/// one.
using Reclaim = bool (*)(int attempt);

/// Which requests go to a private pool: those of a capture, or of a thread.
struct Route {
  PoolId pool;
  uint64_t capture = 0;
  std::thread::id thread;
};

/// The memory of one device. All members may be called from any thread.
class DeviceAllocator {
 public:
  explicit DeviceAllocator(int device) : device_(device) {}
  virtual ~DeviceAllocator() = default;

  /// Memory for work of `stream`; `block` is what release() and record_stream() want back. Throws
  /// OutOfMemory. No bytes need no memory: null.
  virtual void* allocate(size_t bytes, StreamHandle stream, void** block) = 0;
  virtual void release(void* block) noexcept = 0;
  /// The block is also used by `stream`: it is not reused before that stream's work so far is done.
  virtual void record_stream(void* block, StreamHandle stream) = 0;

  virtual void empty_cache() = 0;
  virtual DeviceStats stats() = 0;
  virtual std::vector<SegmentInfo> snapshot() = 0;
  virtual void reset_peak() = 0;
  virtual void reset_accumulated() = 0;
  /// At most this part of the device's memory; the next request that goes beyond is an error.
  virtual void set_memory_fraction(double fraction) = 0;
  virtual void set_config(const AllocatorConfig& config) = 0;

  /// A private pool lives while somebody holds it; `source` replaces the driver for a new one.
  /// Graphs number theirs by `first`, MemPools by `second`.
  virtual void hold_pool(PoolId id, SegmentSource source) = 0;
  virtual void drop_pool(PoolId id) = 0;
  virtual void begin_route(const Route& route) = 0;
  virtual void end_route(PoolId id) = 0;

  int device() const { return device_; }

 private:
  int device_;
};

/// PyTorch's caching allocator: blocks of a stream are split, joined and reused without asking the
/// driver (behaviour after the documentation of torch.cuda memory management).
class CachingAllocator final : public DeviceAllocator {
 public:
  CachingAllocator(int device, DeviceApi& api, const AllocatorConfig& config, Reclaim reclaim);
  ~CachingAllocator() override;

  void* allocate(size_t bytes, StreamHandle stream, void** block) override;
  void release(void* block) noexcept override;
  void record_stream(void* block, StreamHandle stream) override;
  void empty_cache() override;
  DeviceStats stats() override;
  std::vector<SegmentInfo> snapshot() override;
  void reset_peak() override;
  void reset_accumulated() override;
  void set_memory_fraction(double fraction) override;
  void set_config(const AllocatorConfig& config) override;
  void hold_pool(PoolId id, SegmentSource source) override;
  void drop_pool(PoolId id) override;
  void begin_route(const Route& route) override;
  void end_route(PoolId id) override;

 private:
  struct Request {
    size_t asked, size;
    StreamHandle stream;
    Pool* pool;
  };

  /// A change of the free blocks that are part of a segment.
  struct Inactive {
    int64_t blocks = 0, bytes = 0;
  };

  // Allocation.
  Block* try_allocate(const Request& r);
  Pool& pool_for(size_t size, StreamHandle stream);
  Block* find_free(const Request& r);
  void hand_out(Block* b, const Request& r);
  Block* cut(Block* b, size_t size);
  Block* split(Block* b, size_t size);
  [[noreturn]] void out_of_memory(size_t asked);

  // Freeing.
  void free_block(Block* b);
  Inactive join_neighbours(Block* b);
  void insert_events(Block* b);
  void process_events();
  void wait_for_events();

  // Segments.
  Block* grow(const Request& r);
  Block* grow_expandable(const Request& r);
  Block* find_range(const Request& r);
  Block* new_range(const Request& r);
  Block* map_run(Block* b, size_t size);
  Block* map_front(Block* b, size_t bytes);
  Segment* add_segment(char* data, size_t size, size_t chunk, const Request& r);
  void remove_segment(Segment* segment);
  void release_segment(Block* b);
  void unmap_block(Block* b);
  bool release_oversize(const Request& r);
  bool release_cached();
  void collect_garbage();
  void release_free(Pool& pool);
  void forget_pool_if_empty(PrivatePool* pool);

  // Blocks and counters.
  Block* new_block(Segment* segment, char* data, size_t size);
  void delete_block(Block* b);
  void count_inactive(bool small, Inactive change);
  // Free blocks that are part of a segment are inactive splits; in expandable segments they are
  // not.
  static bool counts_splits(const Block* b) { return b->segment->chunk == 0; }
  bool is_free(const Block* b) const {
    return b && !b->allocated && !b->pending && b->used_by.empty();
  }
  bool capturing() const;
  bool over_limit(size_t more) const {
    return limit_ && static_cast<size_t>(stats_.current(ReservedBytes)) + more > limit_;
  }

  SpinLock mutex_;
  DeviceApi& api_;
  AllocatorConfig config_;
  Reclaim reclaim_;
  size_t limit_ = 0;
  uint64_t tick_ = 0;
  Pool small_{true, nullptr, {}}, large_{false, nullptr, {}};
  std::map<char*, std::unique_ptr<Segment>> segments_;
  std::vector<std::unique_ptr<PrivatePool>> pools_;
  std::vector<Route> routes_;
  std::vector<std::pair<StreamHandle, std::deque<std::pair<EventHandle, Block*>>>> events_;
  size_t waiting_ = 0;            ///< entries of events_
  std::vector<Block*> deferred_;  ///< freed during a capture, when no event may be recorded
  std::vector<Block*> spare_;
  DeviceStats stats_;
};

/// Passes every request on, without caching: to the driver's stream-ordered pool, or to functions
/// that the user supplies.
class DirectAllocator final : public DeviceAllocator {
 public:
  DirectAllocator(int device, DeviceApi& api, SegmentSource source, Reclaim reclaim)
      : DeviceAllocator(device), api_(api), source_(source), reclaim_(reclaim) {}

  void* allocate(size_t bytes, StreamHandle stream, void** block) override;
  void release(void* block) noexcept override;
  void record_stream(void* block, StreamHandle stream) override;
  void empty_cache() override;
  DeviceStats stats() override;
  std::vector<SegmentInfo> snapshot() override { return {}; }
  void reset_peak() override;
  void reset_accumulated() override;
  void set_memory_fraction(double fraction) override;
  void set_config(const AllocatorConfig&) override {}
  void hold_pool(PoolId, SegmentSource) override;
  void drop_pool(PoolId) override {}
  void begin_route(const Route&) override {}
  void end_route(PoolId) override {}

 private:
  void* ask(size_t bytes, StreamHandle stream);
  void count(const Block& b, int sign);

  std::mutex mutex_;
  DeviceApi& api_;
  SegmentSource source_;
  Reclaim reclaim_;
  size_t limit_ = 0;
  DeviceStats stats_;
};

/// Throws OutOfMemory: what was asked, what is allocated, reserved, free of the total.
[[noreturn]] void fail_out_of_memory(int device, DeviceApi& api, size_t asked, const DeviceStats& s,
                                     size_t limit);

/// torch.cuda.memory_stats and memory_snapshot as JSON.
std::string to_json(const DeviceStats& stats);
std::string to_json(int device, const std::vector<SegmentInfo>& segments);

}  // namespace cresset::cuda
