// Small-integer ids of the tensors that a host language holds, and the scopes that free them.
#pragma once

#include <bit>
#include <vector>

#include "core/tensor/tensor.h"

namespace cresset {

/// Ids of one JavaScript environment: 22 bits of slot, 30 bits of generation, exact as a double. A
/// slot is not used again once its generations are used up, so that an id kept beyond the life of
/// its tensor is an error for ever and never another tensor.
class HandleTable {
 public:
  static constexpr uint32_t slot_bits = 22;
  static constexpr uint32_t max_slots = 1u << slot_bits;
  static constexpr uint32_t last_generation = (1u << 30) - 1;

  /// The id that a host's number of at least 0 stands for.
  static int64_t id_from(double number) {
#ifdef __wasm__
    // WebAssembly's conversion saturates, which takes longer than an addition that moves an
    // integer below 2^52 into the lowest bits.
    return std::bit_cast<int64_t>(number + 0x1p52) & ((int64_t{1} << 52) - 1);
#else
    return static_cast<int64_t>(number);
#endif
  }

  int64_t add(Tensor t);
  /// Frees a handle; harmless when it is already free.
  void remove(int64_t id) noexcept;
  /// Null when the id is not (or no longer) valid.
  const Tensor* find(int64_t id) const noexcept {
    uint32_t slot = slot_of(id);
    if (slot >= entries_.size()) return nullptr;
    const Entry& e = entries_[slot];
    return e.generation == id >> slot_bits && e.tensor.defined() ? &e.tensor : nullptr;
  }
  size_t live() const { return live_; }
  /// Calls f(id, tensor, scope depth) for every live handle.
  template <class F> void each(F&& f) const {
    for (uint32_t slot = 0; slot < entries_.size(); ++slot)
      if (entries_[slot].tensor.defined())
        f(id_of(slot), entries_[slot].tensor, entries_[slot].depth);
  }

  // ---- scopes: see Note [Scopes]

  /// Opens a scope and returns its depth, 1 for the outermost.
  uint32_t open_scope();
  /// Depth of the scope that frees the handle: 0 for none, -1 for a handle that is free.
  int32_t scope_of(int64_t id) const noexcept {
    return find(id) ? static_cast<int32_t>(entries_[slot_of(id)].depth) : -1;
  }
  /// Number of open scopes.
  uint32_t depth() const { return static_cast<uint32_t>(scopes_.size()); }
  /// Moves a handle of scope `from` or of one inside it to the scope around `from`; whether it was.
  bool lift(int64_t id, uint32_t from) noexcept;
  /// Frees the handles of this scope and of the scopes inside it.
  void close_scope(uint32_t depth) noexcept;
  /// The handles of this scope and of the scopes inside it.
  std::vector<int64_t> scope_ids(uint32_t depth) const;

 private:
  static constexpr uint32_t none = ~0u;
  struct Entry {
    Tensor tensor;
    uint32_t generation = 0;
    uint32_t depth = 0;                   ///< of its scope, 0 for none
    uint32_t newer = none, older = none;  ///< neighbours in the list of its scope
  };

  static uint32_t slot_of(int64_t id) { return static_cast<uint32_t>(id) & (max_slots - 1); }
  int64_t id_of(uint32_t slot) const {
    return slot | int64_t{entries_[slot].generation} << slot_bits;
  }
  void link(uint32_t slot, uint32_t depth) noexcept;
  void unlink(uint32_t slot) noexcept;

  std::vector<Entry> entries_;
  std::vector<uint32_t> free_;
  std::vector<uint32_t> scopes_;  ///< the newest handle of each open scope
  size_t live_ = 0;
};

// Note [Scopes]
// Every handle made while a scope is open is linked into the list of the innermost one, so that
// the end of a scope frees what was made in it and nothing else, and a handle that is freed or
// lifted earlier leaves the list at once. Tensors that only C++ holds (gradients, what the graph
// saved) have no handle and are not touched.

}  // namespace cresset
