// The allocator that passes requests on: cudaMallocAsync, or functions of the user.
#include <algorithm>

#include "core/base/error.h"
#include "cuda/allocator.h"

namespace cresset::cuda {

void* DirectAllocator::ask(size_t bytes, StreamHandle stream) {
  if (source_.allocate) return source_.allocate(bytes, device(), stream);
  return api_.allocate_in_order(bytes, stream);
}

void DirectAllocator::count(const Block& b, int sign) {
  auto bytes = sign * static_cast<int64_t>(b.size);
  auto add = [](Stat& s, int64_t n) { s.add(n); };
  for (Counted kind : {Allocations, Active}) add(stats_.by_kind[kind][0], sign);
  for (Counted kind : {AllocatedBytes, ActiveBytes, RequestedBytes, ReservedBytes})
    add(stats_.by_kind[kind][0], bytes);
}

void* DirectAllocator::allocate(size_t bytes, StreamHandle stream, void** block) {
  *block = nullptr;
  if (bytes == 0) return nullptr;
  for (int attempt = 0;; ++attempt) {
    {
      std::lock_guard lock(mutex_);
      auto held = static_cast<size_t>(stats_.current(AllocatedBytes));
      bool fits = bytes <= (size_t{1} << 52) && (!limit_ || held + bytes <= limit_);
      if (void* data = fits ? ask(bytes, stream) : nullptr) {
        Block* b = new Block;
        b->data = static_cast<char*>(data);
        b->size = b->requested = bytes;
        b->stream = stream;
        count(*b, 1);
        *block = b;
        return data;
      }
      if (attempt == 2) {
        ++stats_.ooms;
        fail_out_of_memory(device(), api_, bytes, stats_, limit_);
      }
    }
    if (reclaim_) reclaim_(attempt);
  }
}

// The driver's pool knows one stream only: that stream waits for the others before it frees.
void DirectAllocator::release(void* block) noexcept {
  if (!block) return;
  std::unique_ptr<Block> b(static_cast<Block*>(block));
  std::lock_guard lock(mutex_);
  for (StreamHandle other : b->used_by) {
    EventHandle event = api_.record(other);
    api_.wait_in_stream(b->stream, event);
    api_.recycle(event);
  }
  count(*b, -1);
  if (source_.release)
    source_.release(b->data, b->size, device(), b->stream);
  else
    api_.release_in_order(b->data, b->stream);
}

void DirectAllocator::record_stream(void* block, StreamHandle stream) {
  Block* b = static_cast<Block*>(block);
  if (!b || b->stream == stream) return;
  std::lock_guard lock(mutex_);
  if (std::find(b->used_by.begin(), b->used_by.end(), stream) == b->used_by.end())
    b->used_by.push_back(stream);
}

void DirectAllocator::empty_cache() {
  std::lock_guard lock(mutex_);
  if (!source_.allocate) api_.trim_in_order();
}

void DirectAllocator::set_memory_fraction(double fraction) {
  size_t free = 0, total = 0;
  api_.memory_info(&free, &total);
  std::lock_guard lock(mutex_);
  limit_ = static_cast<size_t>(fraction * static_cast<double>(total));
}

// A graph's memory comes from nodes of the graph itself, so that nothing is to be routed for it.
void DirectAllocator::hold_pool(PoolId id, SegmentSource) {
  CHECK(!id.second, NotImplemented, "MemPool: private pools need the native allocator backend");
}

}  // namespace cresset::cuda
