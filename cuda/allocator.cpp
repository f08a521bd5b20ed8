// The caching allocator of a CUDA device: handing out, splitting, joining, delayed reuse.
#include "cuda/allocator.h"

#include <algorithm>

#include "core/base/error.h"

namespace cresset::cuda {

CachingAllocator::CachingAllocator(int device, DeviceApi& api, const AllocatorConfig& config,
                                   Reclaim reclaim)
    : DeviceAllocator(device), api_(api), config_(config), reclaim_(reclaim) {}

// The driver frees the segments when the process ends; here only our own books are closed.
CachingAllocator::~CachingAllocator() {
  for (auto& [address, segment] : segments_)
    for (Block* b = segment->first; b;) delete std::exchange(b, b->next);
  for (Block* b : spare_) delete b;
}

// ---- blocks and counters

Block* CachingAllocator::new_block(Segment* segment, char* data, size_t size) {
  Block* b;
  if (spare_.empty()) {
    b = new Block;
  } else {
    b = spare_.back();
    spare_.pop_back();
    b->requested = 0;
    b->prev = b->next = nullptr;
    b->allocated = false;
    b->mapped = true;
    b->pending = 0;
    b->freed_at = 0;
  }
  b->data = data;
  b->size = size;
  b->segment = segment;
  b->stream = segment->stream;
  b->pool = segment->pool;
  return b;
}

void CachingAllocator::delete_block(Block* b) { spare_.push_back(b); }

void CachingAllocator::count_inactive(bool small, Inactive change) {
  if (change.blocks) stats_.add(InactiveSplit, small, change.blocks);
  if (change.bytes) stats_.add(InactiveSplitBytes, small, change.bytes);
}

bool CachingAllocator::capturing() const {
  return std::any_of(routes_.begin(), routes_.end(), [](const Route& r) { return r.capture != 0; });
}

// ---- allocation

Pool& CachingAllocator::pool_for(size_t size, StreamHandle stream) {
  bool small = size <= small_limit;
  if (!routes_.empty()) [[unlikely]] {
    uint64_t capture = api_.capture_of(stream);
    for (size_t i = routes_.size(); i-- > 0;) {
      const Route& route = routes_[i];
      bool taken = route.capture ? route.capture == capture
                                 : !capture && route.thread == std::this_thread::get_id();
      if (!taken) continue;
      for (auto& pool : pools_)
        if (pool->id == route.pool) return small ? pool->small : pool->large;
    }
  }
  return small ? small_ : large_;
}

Block* CachingAllocator::find_free(const Request& r) {
  FreeBlocks& free = r.pool->of(r.stream);
  Block* b = free.best_fit(r.size);
  if (!b) return nullptr;
  // Large blocks are kept for large requests, which may waste a limited rest.
  size_t most = config_.max_split_size;
  if (r.size < most && b->size >= most) return nullptr;
  if (r.size >= most && b->size >= r.size + config_.max_non_split_rounding) return nullptr;
  free.erase(b);
  return b;
}

// Ends b after `size` bytes; the rest becomes a block of its own, in no list.
Block* CachingAllocator::cut(Block* b, size_t size) {
  Block* tail = new_block(b->segment, b->data + size, b->size - size);
  tail->prev = b;
  tail->next = b->next;
  tail->mapped = b->mapped;
  tail->freed_at = b->freed_at;
  if (b->next) b->next->prev = tail;
  b->next = tail;
  b->size = size;
  return tail;
}

// Cuts off what is not asked for, where that is worth a block; null where it is not.
Block* CachingAllocator::split(Block* b, size_t size) {
  size_t rest = b->size - size;
  bool wanted = b->pool->small || b->segment->chunk
                    ? rest >= min_block
                    : size < config_.max_split_size && rest > small_limit;
  if (!wanted) return nullptr;
  Block* tail = cut(b, size);
  b->pool->of(b->stream).insert(tail);
  return tail;
}

void CachingAllocator::hand_out(Block* b, const Request& r) {
  const bool was_split = b->is_split();
  const Block* tail = split(b, r.size);
  b->allocated = true;
  b->requested = r.asked;
  bool small = b->pool->small;
  int64_t size = static_cast<int64_t>(b->size);
  if (counts_splits(b)) {
    if (was_split)
      count_inactive(small, {tail ? 0 : -1, -size});
    else if (tail)
      count_inactive(small, {1, static_cast<int64_t>(tail->size)});
  }
  stats_.add(Allocations, small, 1);
  stats_.add(AllocatedBytes, small, size);
  stats_.add(Active, small, 1);
  stats_.add(ActiveBytes, small, size);
  stats_.add(RequestedBytes, small, static_cast<int64_t>(r.asked));
  if (b->size >= config_.max_split_size) stats_.oversize_allocations.add(1);
}

Block* CachingAllocator::try_allocate(const Request& r) {
  if (waiting_ && !capturing()) process_events();
  ++tick_;
  if (Block* b = find_free(r)) return b;
  if (limit_ && config_.garbage_collection_threshold > 0) collect_garbage();
  if (Block* b = grow(r)) return b;
  return release_oversize(r) ? grow(r) : nullptr;
}

void* CachingAllocator::allocate(size_t bytes, StreamHandle stream, void** block) {
  *block = nullptr;
  if (bytes == 0) return nullptr;
  if (bytes > (size_t{1} << 52)) {
    std::lock_guard lock(mutex_);
    out_of_memory(bytes);
  }
  size_t size = config_.round(bytes);
  for (int attempt = 0;; ++attempt) {
    {
      std::lock_guard lock(mutex_);
      Request r{bytes, size, stream, &pool_for(size, stream)};
      Block* b = try_allocate(r);
      if (!b && attempt == 2 && release_cached()) {
        ++stats_.alloc_retries;
        b = find_free(r);
        if (!b) b = grow(r);
      }
      if (b) {
        hand_out(b, r);
        *block = b;
        return b->data;
      }
      if (attempt == 2) out_of_memory(bytes);
    }
    // Without the lock: what the host finds dead is released through this allocator.
    if (reclaim_) reclaim_(attempt);
  }
}

void CachingAllocator::out_of_memory(size_t asked) {
  ++stats_.ooms;
  fail_out_of_memory(device(), api_, asked, stats_, limit_);
}

// ---- freeing

void CachingAllocator::release(void* block) noexcept {
  Block* b = static_cast<Block*>(block);
  if (!b) return;
  std::lock_guard lock(mutex_);
  b->allocated = false;
  bool small = b->pool->small;
  stats_.add(Allocations, small, -1);
  stats_.add(AllocatedBytes, small, -static_cast<int64_t>(b->size));
  if (b->size >= config_.max_split_size) stats_.oversize_allocations.add(-1);
  if (b->used_by.empty())
    free_block(b);
  else if (capturing())
    deferred_.push_back(b);
  else
    insert_events(b);
}

CachingAllocator::Inactive CachingAllocator::join_neighbours(Block* b) {
  FreeBlocks& free = b->pool->of(b->stream);
  Inactive change;
  auto absorb = [&](Block* gone) {
    free.erase(gone);
    change.blocks -= 1;
    change.bytes -= static_cast<int64_t>(gone->size);
    b->size += gone->size;
  };
  if (Block* p = b->prev; is_free(p) && p->mapped) {
    absorb(p);
    b->data = p->data;
    b->prev = p->prev;
    if (p->prev) p->prev->next = b;
    if (b->segment->first == p) b->segment->first = b;
    delete_block(p);
  }
  if (Block* n = b->next; is_free(n) && n->mapped) {
    absorb(n);
    b->next = n->next;
    if (n->next) n->next->prev = b;
    delete_block(n);
  }
  return change;
}

void CachingAllocator::free_block(Block* b) {
  bool small = b->pool->small;
  stats_.add(Active, small, -1);
  stats_.add(ActiveBytes, small, -static_cast<int64_t>(b->size));
  stats_.add(RequestedBytes, small, -static_cast<int64_t>(b->requested));
  b->requested = 0;
  b->freed_at = tick_;
  Inactive change = join_neighbours(b);
  b->pool->of(b->stream).insert(b);
  if (!counts_splits(b)) return;
  if (b->is_split()) {
    change.blocks += 1;
    change.bytes += static_cast<int64_t>(b->size);
  }
  count_inactive(small, change);
}

// ---- reuse after other streams

void CachingAllocator::record_stream(void* block, StreamHandle stream) {
  Block* b = static_cast<Block*>(block);
  if (!b || b->stream == stream) return;
  std::lock_guard lock(mutex_);
  if (std::find(b->used_by.begin(), b->used_by.end(), stream) == b->used_by.end())
    b->used_by.push_back(stream);
}

void CachingAllocator::insert_events(Block* b) {
  for (StreamHandle stream : b->used_by) {
    auto queue = std::find_if(events_.begin(), events_.end(),
                              [&](const auto& entry) { return entry.first == stream; });
    if (queue == events_.end()) queue = events_.insert(events_.end(), {stream, {}});
    queue->second.emplace_back(api_.record(stream), b);
    ++b->pending;
    ++waiting_;
  }
  b->used_by.clear();
}

void CachingAllocator::process_events() {
  for (auto& [stream, queue] : events_)
    while (!queue.empty() && api_.is_done(queue.front().first)) {
      auto [event, block] = queue.front();
      queue.pop_front();
      --waiting_;
      api_.recycle(event);
      if (--block->pending == 0) free_block(block);
    }
}

void CachingAllocator::wait_for_events() {
  for (auto& [stream, queue] : events_)
    if (!queue.empty()) api_.wait(queue.back().first);
  process_events();
}

// ---- settings and private pools

void CachingAllocator::set_config(const AllocatorConfig& config) {
  std::lock_guard lock(mutex_);
  config_ = config;
}

void CachingAllocator::set_memory_fraction(double fraction) {
  size_t free = 0, total = 0;
  api_.memory_info(&free, &total);
  std::lock_guard lock(mutex_);
  limit_ = static_cast<size_t>(fraction * static_cast<double>(total));
}

void CachingAllocator::hold_pool(PoolId id, SegmentSource source) {
  std::lock_guard lock(mutex_);
  for (auto& pool : pools_)
    if (pool->id == id) {
      ++pool->users;
      return;
    }
  auto pool = std::make_unique<PrivatePool>();
  pool->id = id;
  pool->source = source;
  pools_.push_back(std::move(pool));
}

void CachingAllocator::drop_pool(PoolId id) {
  std::lock_guard lock(mutex_);
  for (auto& pool : pools_)
    if (pool->id == id) {
      if (--pool->users == 0) forget_pool_if_empty(pool.get());
      return;
    }
}

void CachingAllocator::begin_route(const Route& route) {
  std::lock_guard lock(mutex_);
  routes_.push_back(route);
}

void CachingAllocator::end_route(PoolId id) {
  std::lock_guard lock(mutex_);
  auto last = std::find_if(routes_.rbegin(), routes_.rend(), [&](const Route& r) {
    return r.pool == id && (r.capture || r.thread == std::this_thread::get_id());
  });
  if (last != routes_.rend()) routes_.erase(std::next(last).base());
  if (capturing()) return;
  for (Block* b : deferred_) insert_events(b);
  deferred_.clear();
}

}  // namespace cresset::cuda
