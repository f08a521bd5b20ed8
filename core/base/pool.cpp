// Free lists for small objects that come and go with every operator: tensors, storages, nodes.
#include "core/base/pool.h"

#include <new>

namespace cresset {
namespace {

constexpr size_t step = 32;
constexpr size_t classes = pool_max / step;

struct Block {
  Block* next;
};

/// One thread's free blocks by size class. Whatever is left at thread end goes back to the system.
struct Lists {
  Block* heads[classes] = {};
  bool alive = true;
  ~Lists() {
    alive = false;
    for (Block*& head : heads)
      while (head) {
        Block* b = head;
        head = b->next;
        ::operator delete(b);
      }
  }
};
thread_local Lists lists;

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
  if (bytes > pool_max || !lists.alive) {
    ::operator delete(block);
    return;
  }
  Block* b = static_cast<Block*>(block);
  size_t c = class_of(bytes);
  b->next = lists.heads[c];
  lists.heads[c] = b;
}

}  // namespace cresset
