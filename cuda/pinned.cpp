// A cache of pinned memory of the CPU, which GPUs copy from and to by themselves.
#include "cuda/pinned.h"

#include <algorithm>
#include <bit>

namespace cresset::cuda {
namespace {
constexpr size_t least = 512;
size_t class_of(size_t bytes) { return static_cast<size_t>(std::bit_width(bytes - 1)); }
}  // namespace

// Forgets the uses that have ended; whether none is left.
bool PinnedCache::settle(Block* block) {
  std::erase_if(block->uses, [](const Block::Use& use) {
    if (!use.device->is_done(use.event)) return false;
    use.device->recycle(use.event);
    return true;
  });
  return block->uses.empty();
}

PinnedCache::Block* PinnedCache::allocate(size_t bytes) {
  if (bytes > (size_t{1} << 52)) return nullptr;
  const size_t index = class_of(std::max(bytes, least));
  std::lock_guard lock(mutex_);
  std::erase_if(busy_, [&](Block* b) {
    if (!settle(b)) return false;
    idle_[class_of(b->size)].push_back(b);
    return true;
  });
  if (!idle_[index].empty()) {
    Block* b = idle_[index].back();
    idle_[index].pop_back();
    b->free = false;
    return b;
  }
  const size_t size = size_t{1} << index;
  auto* data = static_cast<char*>(host_.allocate(size));
  if (!data) return nullptr;
  Block& b = blocks_[data];
  b.data = data;
  b.size = size;
  return &b;
}

void PinnedCache::release(Block* block) noexcept {
  std::lock_guard lock(mutex_);
  block->free = true;
  (settle(block) ? idle_[class_of(block->size)] : busy_).push_back(block);
}

PinnedCache::Block* PinnedCache::find(const void* address) {
  const char* at = static_cast<const char*>(address);
  std::lock_guard lock(mutex_);
  auto after = blocks_.upper_bound(at);
  if (after == blocks_.begin()) return nullptr;
  Block& b = std::prev(after)->second;
  return !b.free && at < b.data + b.size ? &b : nullptr;
}

void PinnedCache::record(Block* block, DeviceApi& device, StreamHandle stream) {
  std::lock_guard lock(mutex_);
  block->uses.push_back({&device, device.record(stream)});
}

void PinnedCache::wait(Block* block) {
  std::lock_guard lock(mutex_);
  for (const Block::Use& use : block->uses) use.device->wait(use.event);
  settle(block);
}

void PinnedCache::empty() {
  std::lock_guard lock(mutex_);
  for (auto& list : idle_) {
    for (Block* b : list) {
      host_.release(b->data);
      blocks_.erase(b->data);
    }
    list.clear();
  }
}

}  // namespace cresset::cuda
