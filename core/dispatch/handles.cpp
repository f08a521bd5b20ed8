// Small-integer ids of the tensors that a host language holds, and the scopes that free them.
#include "core/dispatch/handles.h"

namespace cresset {

int64_t HandleTable::add(Tensor t) {
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
  entries_[slot].tensor = std::move(t);
  ++live_;
  if (!scopes_.empty()) link(slot, depth());
  return id_of(slot);
}

void HandleTable::remove(int64_t id) noexcept {
  if (!find(id)) return;
  uint32_t slot = slot_of(id);
  Entry& e = entries_[slot];
  Tensor dying = std::move(e.tensor);
  e.tensor = {};
  unlink(slot);
  --live_;
  if (e.generation == last_generation) return;
  ++e.generation;
  free_.push_back(slot);
}

void HandleTable::link(uint32_t slot, uint32_t depth) noexcept {
  uint32_t& head = scopes_[depth - 1];
  Entry& e = entries_[slot];
  e.depth = depth;
  e.newer = none;
  e.older = head;
  if (head != none) entries_[head].newer = slot;
  head = slot;
}

void HandleTable::unlink(uint32_t slot) noexcept {
  Entry& e = entries_[slot];
  if (e.depth == 0) return;
  (e.newer == none ? scopes_[e.depth - 1] : entries_[e.newer].older) = e.older;
  if (e.older != none) entries_[e.older].newer = e.newer;
  e.depth = 0;
}

uint32_t HandleTable::open_scope() {
  scopes_.push_back(none);
  return depth();
}

bool HandleTable::lift(int64_t id, uint32_t from) noexcept {
  uint32_t slot = slot_of(id);
  if (!find(id) || entries_[slot].depth < from || entries_[slot].depth == 0) return false;
  unlink(slot);
  if (from > 1) link(slot, from - 1);
  return true;
}

void HandleTable::close_scope(uint32_t depth) noexcept {
  while (this->depth() >= depth && !scopes_.empty()) {
    while (scopes_.back() != none) remove(id_of(scopes_.back()));
    scopes_.pop_back();
  }
}

std::vector<int64_t> HandleTable::scope_ids(uint32_t depth) const {
  std::vector<int64_t> ids;
  for (size_t s = depth - 1; s < scopes_.size(); ++s)
    for (uint32_t slot = scopes_[s]; slot != none; slot = entries_[slot].older)
      ids.push_back(id_of(slot));
  return ids;
}

}  // namespace cresset
