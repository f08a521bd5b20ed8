// Small-integer ids of the tensors that a host language holds.
#include "core/dispatch/handles.h"

namespace cresset {

uint32_t HandleTable::add(Tensor t) {
  uint32_t slot;
  if (!free_.empty()) {
    slot = free_.back();
    free_.pop_back();
  } else {
    CHECK(entries_.size() < max_slots, OutOfMemory, "tensor: more than ", max_slots,
          " tensors are alive");
    slot = static_cast<uint32_t>(entries_.size());
    entries_.emplace_back();
  }
  Entry& e = entries_[slot];
  e.tensor = std::move(t);
  ++live_;
  return slot | uint32_t{e.generation} << slot_bits;
}

void HandleTable::remove(uint32_t id) noexcept {
  if (!find(id)) return;
  uint32_t slot = slot_of(id);
  Entry& e = entries_[slot];
  Tensor dying = std::move(e.tensor);
  e.tensor = {};
  ++e.generation;
  free_.push_back(slot);
  --live_;
}

}  // namespace cresset
