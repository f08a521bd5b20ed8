// What the CUDA allocator is made of: blocks, the lists of free ones, and pools.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "cuda/allocator_config.h"
#include "cuda/device_api.h"

namespace cresset::cuda {

struct Pool;
struct Segment;

/// A piece of a segment. The blocks of a segment are linked in the order of their addresses. Two
/// lines of the cache, the first with what every request reads.
struct alignas(64) Block {
  char* data = nullptr;
  size_t size = 0;
  size_t requested = 0;  ///< what the user asked for, before rounding
  StreamHandle stream = nullptr;
  Pool* pool = nullptr;
  Segment* segment = nullptr;
  Block *prev = nullptr, *next = nullptr;
  Block *free_prev = nullptr, *free_next = nullptr;  ///< links of FreeBlocks
  bool allocated = false;
  bool mapped = true;  ///< false: address space of an expandable segment without memory
  int pending = 0;     ///< events of other streams that must pass before it is free
  uint64_t freed_at = 0;
  std::vector<StreamHandle> used_by;  ///< other streams that read or write it

  bool is_split() const { return prev || next; }
};

/// One allocation of the driver, or a range of addresses that memory is mapped into piece by piece.
struct Segment {
  char* data = nullptr;
  size_t size = 0;   ///< for an expandable one: of the whole range
  size_t chunk = 0;  ///< bytes mapped at a time; 0 for an ordinary segment
  Block* first = nullptr;
  StreamHandle stream = nullptr;
  Pool* pool = nullptr;
};

/// The free blocks of one stream in one pool, by size. Sizes up to 2 MiB have a list each, found by
/// bitmap in constant time; larger ones lie in a tree.
class FreeBlocks {
 public:
  void insert(Block* b) {
    size_t i = b->size / min_block;
    if (i >= exact) {
      large_.insert(b);
      return;
    }
    if (heads_.empty()) heads_.resize(exact);
    b->free_prev = nullptr;
    b->free_next = heads_[i];
    if (heads_[i]) heads_[i]->free_prev = b;
    heads_[i] = b;
    words_[i / 64] |= uint64_t{1} << (i % 64);
    summary_ |= uint64_t{1} << (i / 64);
  }

  void erase(Block* b) {
    size_t i = b->size / min_block;
    if (i >= exact) {
      large_.erase(b);
      return;
    }
    if (b->free_next) b->free_next->free_prev = b->free_prev;
    (b->free_prev ? b->free_prev->free_next : heads_[i]) = b->free_next;
    if (heads_[i]) return;
    words_[i / 64] &= ~(uint64_t{1} << (i % 64));
    if (!words_[i / 64]) summary_ &= ~(uint64_t{1} << (i / 64));
  }

  /// The smallest block of at least `size` bytes, or null.
  Block* best_fit(size_t size) const {
    size_t i = size / min_block;
    if (i < exact && summary_) {
      uint64_t word = words_[i / 64] >> (i % 64) << (i % 64);
      if (word) return heads_[i / 64 * 64 + static_cast<size_t>(std::countr_zero(word))];
      uint64_t above = i / 64 == 63 ? 0 : summary_ >> (i / 64 + 1) << (i / 64 + 1);
      if (above) {
        size_t w = static_cast<size_t>(std::countr_zero(above));
        return heads_[w * 64 + static_cast<size_t>(std::countr_zero(words_[w]))];
      }
    }
    if (large_.empty()) return nullptr;
    Block least;
    least.size = size;
    auto found = large_.lower_bound(&least);
    return found == large_.end() ? nullptr : *found;
  }

  /// Calls f(block) for each; f may not insert or erase.
  template <class F> void each(F&& f) const {
    for (Block* head : heads_)
      for (Block* b = head; b; b = b->free_next) f(b);
    for (Block* b : large_) f(b);
  }

 private:
  static constexpr size_t exact = 4096;
  struct BySize {
    bool operator()(const Block* a, const Block* b) const {
      return a->size != b->size ? a->size < b->size : a->data < b->data;
    }
  };
  std::vector<Block*> heads_;
  uint64_t words_[exact / 64] = {};
  uint64_t summary_ = 0;
  std::set<Block*, BySize> large_;
};

/// Names a private pool; {0, 0} is the shared one.
struct PoolId {
  uint64_t first = 0, second = 0;
  bool operator==(const PoolId&) const = default;
  bool is_private() const { return first || second; }
};

struct PrivatePool;

/// Small or large blocks, shared or private.
struct Pool {
  bool small = false;
  PrivatePool* owner = nullptr;
  std::vector<std::pair<StreamHandle, std::unique_ptr<FreeBlocks>>> streams;

  FreeBlocks& of(StreamHandle stream) {
    for (auto& [key, blocks] : streams)
      if (key == stream) return *blocks;
    return *streams.emplace_back(stream, std::make_unique<FreeBlocks>()).second;
  }
};

/// Allocates and releases whole segments for a MemPool, in place of the driver.
struct SegmentSource {
  void* (*allocate)(size_t bytes, int device, StreamHandle stream) = nullptr;
  void (*release)(void* data, size_t bytes, int device, StreamHandle stream) = nullptr;
};

/// The blocks that only a graph, or the code that named a MemPool, may use.
struct PrivatePool {
  PoolId id;
  int users = 1;         ///< graphs and MemPool objects that hold it
  size_t segments = 0;   ///< held from the driver
  SegmentSource source;  ///< null functions: the driver itself
  Pool small{true, this, {}}, large{false, this, {}};
};

}  // namespace cresset::cuda
