// The caching allocator's dealings with the driver: segments, expandable ranges, giving memory
// back.
#include <algorithm>

#include "core/base/error.h"
#include "cuda/allocator.h"

namespace cresset::cuda {
namespace {

size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

size_t segment_size(size_t size) {
  if (size <= small_limit) return small_segment;
  return size < huge_request ? large_segment : round_up(size, huge_rounding);
}

}  // namespace

// ---- growing

Segment* CachingAllocator::add_segment(char* data, size_t size, size_t chunk, const Request& r) {
  auto owned = std::make_unique<Segment>();
  Segment* s = owned.get();
  s->data = data;
  s->size = size;
  s->chunk = chunk;
  s->stream = r.stream;
  s->pool = r.pool;
  s->first = new_block(s, data, size);
  segments_.emplace(data, std::move(owned));
  stats_.add(Segments, r.pool->small, 1);
  if (r.pool->owner) ++r.pool->owner->segments;
  return s;
}

Block* CachingAllocator::grow(const Request& r) {
  PrivatePool* owner = r.pool->owner;
  bool own_source = owner && owner->source.allocate;
  if (config_.expandable_segments && !own_source) return grow_expandable(r);
  size_t size = segment_size(r.size);
  if (over_limit(size)) return nullptr;
  void* data = own_source ? owner->source.allocate(size, device(), r.stream) : api_.allocate(size);
  if (!data) return nullptr;
  Segment* s = add_segment(static_cast<char*>(data), size, 0, r);
  ++stats_.device_allocs;
  stats_.add(ReservedBytes, r.pool->small, static_cast<int64_t>(size));
  if (size >= config_.max_split_size) stats_.oversize_segments.add(1);
  return s->first;
}

// ---- expandable segments: see Note [Expandable segments]

// An address range without memory, of which a run long enough for the request is still free.
Block* CachingAllocator::find_range(const Request& r) {
  for (auto& [address, s] : segments_) {
    if (!s->chunk || s->pool != r.pool || s->stream != r.stream) continue;
    for (Block* u = s->first; u; u = u->next) {
      if (u->mapped) continue;
      size_t run = is_free(u->prev) && u->prev->mapped ? u->prev->size : 0;
      for (Block* b = u; is_free(b) && run < r.size; b = b->next) run += b->size;
      if (run >= r.size) return u;
    }
  }
  return nullptr;
}

Block* CachingAllocator::new_range(const Request& r) {
  size_t free = 0, total = 0;
  api_.memory_info(&free, &total);
  size_t chunk = r.pool->small ? small_segment : large_segment;
  size_t size = round_up(std::max(total / 8 * 9, r.size), chunk);
  char* data = api_.reserve(size);
  if (!data) return nullptr;
  Block* b = add_segment(data, size, chunk, r)->first;
  b->mapped = false;
  return b;
}

// Puts memory behind the first bytes of an unmapped block, as far as there is some; the mapped part
// becomes a block of its own, in no list.
Block* CachingAllocator::map_front(Block* b, size_t bytes) {
  size_t chunk = b->segment->chunk, done = 0;
  while (done < bytes && !over_limit(chunk) && api_.map(b->data + done, chunk)) {
    done += chunk;
    stats_.add(ReservedBytes, b->pool->small, static_cast<int64_t>(chunk));
    ++stats_.device_allocs;
  }
  if (!done) return nullptr;
  if (done < b->size) cut(b, done);
  b->mapped = true;
  return b;
}

// Maps from the unmapped block b on until, with what is free around it, `size` bytes are together.
Block* CachingAllocator::map_run(Block* b, size_t size) {
  FreeBlocks& free = b->pool->of(b->stream);
  size_t have = is_free(b->prev) && b->prev->mapped ? b->prev->size : 0;
  while (true) {
    size_t wanted = std::min(round_up(size - have, b->segment->chunk), b->size);
    Block* mapped = map_front(b, wanted);
    if (!mapped) return nullptr;
    bool complete = mapped->size == wanted;
    mapped->freed_at = tick_;
    join_neighbours(mapped);
    if (mapped->size >= size) return mapped;
    free.insert(mapped);
    b = mapped->next;
    if (!complete || !b || b->mapped) return nullptr;
    have = mapped->size;
  }
}

Block* CachingAllocator::grow_expandable(const Request& r) {
  Block* b = find_range(r);
  if (!b) b = new_range(r);
  return b ? map_run(b, r.size) : nullptr;
}

// Takes the memory of all whole chunks in a free block away.
void CachingAllocator::unmap_block(Block* b) {
  Segment* s = b->segment;
  size_t begin = round_up(static_cast<size_t>(b->data - s->data), s->chunk);
  size_t end = static_cast<size_t>(b->data + b->size - s->data) / s->chunk * s->chunk;
  if (begin >= end) return;
  FreeBlocks& free = b->pool->of(b->stream);
  free.erase(b);
  if (Block* front = b; front->data < s->data + begin) {
    b = cut(front, static_cast<size_t>(s->data + begin - front->data));
    free.insert(front);
  }
  if (b->size > end - begin) free.insert(cut(b, end - begin));
  for (size_t at = begin; at < end; at += s->chunk) {
    api_.unmap(s->data + at, s->chunk);
    stats_.add(ReservedBytes, b->pool->small, -static_cast<int64_t>(s->chunk));
    ++stats_.device_frees;
  }
  b->mapped = false;
  if (Block* n = b->next; n && !n->mapped) {
    b->size += n->size;
    b->next = n->next;
    if (n->next) n->next->prev = b;
    delete_block(n);
  }
  if (Block* p = b->prev; p && !p->mapped) {
    p->size += b->size;
    p->next = b->next;
    if (b->next) b->next->prev = p;
    delete_block(std::exchange(b, p));
  }
  if (b->is_split()) return;
  api_.unreserve(s->data, s->size);
  remove_segment(s);
}

// ---- giving back

// Closes the books of a segment whose only block is free and in no list.
void CachingAllocator::remove_segment(Segment* s) {
  stats_.add(Segments, s->pool->small, -1);
  if (s->pool->owner) --s->pool->owner->segments;
  delete_block(s->first);
  segments_.erase(s->data);
}

void CachingAllocator::release_segment(Block* b) {
  Segment* s = b->segment;
  s->pool->of(s->stream).erase(b);
  PrivatePool* owner = s->pool->owner;
  if (owner && owner->source.release)
    owner->source.release(s->data, s->size, device(), s->stream);
  else
    api_.release(s->data);
  ++stats_.device_frees;
  stats_.add(ReservedBytes, s->pool->small, -static_cast<int64_t>(s->size));
  if (s->size >= config_.max_split_size) stats_.oversize_segments.add(-1);
  remove_segment(s);
}

void CachingAllocator::release_free(Pool& pool) {
  std::vector<Block*> whole, pieces;
  for (auto& [stream, free] : pool.streams)
    free->each([&](Block* b) {
      if (b->segment->chunk)
        pieces.push_back(b);
      else if (!b->is_split())
        whole.push_back(b);
    });
  for (Block* b : whole) release_segment(b);
  if (!pieces.empty()) api_.synchronize();
  for (Block* b : pieces) unmap_block(b);
}

// While a graph is captured the driver may neither wait nor free.
bool CachingAllocator::release_cached() {
  if (capturing()) return false;
  wait_for_events();
  ++stats_.syncs;
  release_free(small_);
  release_free(large_);
  for (size_t i = pools_.size(); i-- > 0;) {
    PrivatePool* pool = pools_[i].get();
    if (pool->users) continue;
    release_free(pool->small);
    release_free(pool->large);
    forget_pool_if_empty(pool);
  }
  return true;
}

void CachingAllocator::forget_pool_if_empty(PrivatePool* pool) {
  if (pool->segments == 0) std::erase_if(pools_, [&](const auto& p) { return p.get() == pool; });
}

void CachingAllocator::empty_cache() {
  std::lock_guard lock(mutex_);
  release_cached();
}

// Gives back blocks that are too large to be split, the smallest that make enough room first.
bool CachingAllocator::release_oversize(const Request& r) {
  if (config_.max_split_size == unlimited || capturing()) return false;
  size_t wanted = std::max(r.size, config_.max_split_size), released = 0;
  FreeBlocks& free = r.pool->of(r.stream);
  std::vector<Block*> candidates;
  free.each([&](Block* b) {
    if (b->size >= config_.max_split_size && !b->segment->chunk && !b->is_split())
      candidates.push_back(b);
  });
  std::sort(candidates.begin(), candidates.end(),
            [](const Block* a, const Block* b) { return a->size < b->size; });
  auto enough = std::find_if(candidates.begin(), candidates.end(),
                             [&](const Block* b) { return b->size >= wanted; });
  if (enough != candidates.end()) {
    release_segment(*enough);
    return true;
  }
  while (!candidates.empty() && released < wanted) {
    released += candidates.back()->size;
    release_segment(candidates.back());
    candidates.pop_back();
  }
  return released >= wanted;
}

// Above the threshold, gives back large blocks that have not been used for longer than the average.
void CachingAllocator::collect_garbage() {
  auto reserved = static_cast<size_t>(stats_.current(ReservedBytes));
  auto most =
      static_cast<size_t>(config_.garbage_collection_threshold * static_cast<double>(limit_));
  if (reserved <= most || capturing()) return;
  size_t wanted = reserved - most, released = 0;
  std::vector<Block*> candidates;
  uint64_t ages = 0;
  for (auto& [stream, free] : large_.streams)
    free->each([&](Block* b) {
      if (b->is_split() || b->segment->chunk) return;
      candidates.push_back(b);
      ages += tick_ - b->freed_at;
    });
  while (released < wanted && !candidates.empty()) {
    uint64_t average = ages / candidates.size();
    std::erase_if(candidates, [&](Block* b) {
      uint64_t age = tick_ - b->freed_at;
      if (released >= wanted || age < average) return false;
      ages -= age;
      released += b->size;
      release_segment(b);
      return true;
    });
  }
}

// Note [Expandable segments]
// Instead of one driver allocation per segment, a pool of a stream gets a range of addresses larger
// than the device's memory, and memory is mapped behind it in chunks of 2 or 20 MiB as it grows. A
// block at the end can then grow in place, and what is free in the middle can be given back, so
// that changing sizes do not leave holes that fit nothing. An unmapped block is in no list of free
// blocks.

}  // namespace cresset::cuda
