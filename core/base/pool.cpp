// Free lists for small objects that come and go with every operator: tensors, storages, nodes.
#include "core/base/pool.h"

#include <cstdint>
#include <new>

namespace cresset {
namespace {

constexpr size_t step = 32;
constexpr size_t classes = pool_max / step;

struct Block {
  Block* next;
};

/// One thread's free blocks by size class. Without a destructor of its own, so that reaching it
/// takes no check whether it exists yet.
struct Lists {
  Block* heads[classes];
  enum class Phase : uint8_t { New, Alive, Dead } phase;
};
constinit thread_local Lists lists = {};

/// Gives what is left at the end of a thread back to the system.
struct Cleaner {
  bool known = false;
  ~Cleaner() {
    lists.phase = Lists::Phase::Dead;
    for (Block*& head : lists.heads)
      while (head) {
        Block* b = head;
        head = b->next;
        ::operator delete(b);
      }
  }
};
thread_local Cleaner cleaner;

/// Whether this thread keeps free blocks: not while it ends.
[[gnu::noinline]] bool open_lists() noexcept {
  if (lists.phase == Lists::Phase::Dead) return false;
  cleaner.known = true;
  lists.phase = Lists::Phase::Alive;
  return true;
}

size_t class_of(size_t bytes) { return (bytes - 1) / step; }

}  // namespace

void* pool_allocate(size_t bytes) {
  if (bytes > pool_max) return ::operator new(bytes);
  size_t c = class_of(bytes);
  if (Block* b = lists.heads[c]) {
    lists.heads[c] = b->next;
    return b;
  }
  return ::operator new((c + 1) * step);
}

void pool_free(void* block, size_t bytes) noexcept {
  bool keep = lists.phase == Lists::Phase::Alive || open_lists();
  if (bytes > pool_max || !keep) {
    ::operator delete(block);
    return;
  }
  Block* b = static_cast<Block*>(block);
  size_t c = class_of(bytes);
  b->next = lists.heads[c];
  lists.heads[c] = b;
}

}  // namespace cresset
