// Small-integer ids of the tensors that a host language holds.
#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace cresset {

/// Ids of one JavaScript environment: 22 bits of slot, 8 bits of generation, so that an id kept
/// beyond the life of its tensor is an error and not another tensor.
class HandleTable {
 public:
  static constexpr uint32_t slot_bits = 22;
  static constexpr uint32_t max_slots = 1u << slot_bits;

  uint32_t add(Tensor t);
  /// Frees a handle; harmless when it is already free.
  void remove(uint32_t id) noexcept;
  /// Null when the id is not (or no longer) valid.
  const Tensor* find(uint32_t id) const noexcept {
    uint32_t slot = id & (max_slots - 1);
    if (slot >= entries_.size()) return nullptr;
    const Entry& e = entries_[slot];
    return e.generation == (id >> slot_bits) && e.tensor.defined() ? &e.tensor : nullptr;
  }
  static uint32_t slot_of(uint32_t id) { return id & (max_slots - 1); }
  size_t live() const { return live_; }

 private:
  struct Entry {
    Tensor tensor;
    uint8_t generation = 0;
  };
  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  size_t live_ = 0;
};

}  // namespace cresset
