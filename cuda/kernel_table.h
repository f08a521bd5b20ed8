// The kernels that a thread has used, by a 64-bit key: one probe in a flat table per launch.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/nvrtc.h"
#include "cuda/stream.h"

namespace cresset::cuda {

/// Open addressing over a power of two of slots; keys are never removed. Key 0 means empty.
class KernelTable {
 public:
  CUfunction find(uint64_t key) const {
    if (slots_.empty()) return nullptr;
    for (size_t at = place(key);; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return slots_[at].kernel;
      if (slots_[at].key == 0) return nullptr;
    }
  }
  void add(uint64_t key, CUfunction kernel) {
    if (count_ * 2 >= slots_.size()) grow();
    size_t at = place(key);
    while (slots_[at].key != 0) at = (at + 1) & mask_;
    slots_[at] = {key, kernel};
    ++count_;
  }

 private:
  struct Slot {
    uint64_t key = 0;
    CUfunction kernel = nullptr;
  };
  size_t place(uint64_t key) const { return (key * 0x9e3779b97f4a7c15ull >> 32) & mask_; }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 256 : old.size() * 2, {});
    mask_ = slots_.size() - 1;
    for (const Slot& s : old) {
      if (s.key == 0) continue;
      size_t at = place(s.key);
      while (slots_[at].key != 0) at = (at + 1) & mask_;
      slots_[at] = s;
    }
  }
  std::vector<Slot> slots_;
  size_t mask_ = 0, count_ = 0;
};

/// The kernel of a key for the current device; `source` writes its program where it is new. The
/// six highest bits of a key are free for the device, the one below tells families apart.
template <class Source> CUfunction kernel_of(uint64_t key, const char* entry, Source&& source) {
  thread_local KernelTable table;
  key |= static_cast<uint64_t>(current_device() + 1) << 58;
  if (const CUfunction known = table.find(key)) [[likely]]
    return known;
  const CUfunction kernel = load_kernel(source(), entry);
  table.add(key, kernel);
  return kernel;
}

}  // namespace cresset::cuda
