// The kernels that the process has used, by a 64-bit key: one probe in a flat table per launch.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "cuda/nvrtc.h"
#include "cuda/stream.h"

namespace cresset::cuda {

/// Open addressing over a power of two of slots, read without a lock. Keys are never removed, and
/// tables that have become too small are kept for those who still read them. Key 0 means empty.
class KernelTable {
 public:
  CUfunction find(uint64_t key) const {
    const Slots* s = slots_.load(std::memory_order_acquire);
    if (!s) return nullptr;
    for (size_t at = s->place(key);; at = (at + 1) & s->mask) {
      const uint64_t found = s->list[at].key.load(std::memory_order_acquire);
      if (found == key) return s->list[at].kernel;
      if (found == 0) return nullptr;
    }
  }
  void add(uint64_t key, CUfunction kernel) {
    std::lock_guard lock(mutex_);
    if (find(key)) return;
    if (!slots_ || count_ * 2 >= slots_.load()->list.size()) grow();
    put(*slots_, key, kernel);
    ++count_;
  }

 private:
  struct Slot {
    std::atomic<uint64_t> key = 0;  ///< written last
    CUfunction kernel = nullptr;
  };
  struct Slots {
    explicit Slots(size_t n) : list(n), mask(n - 1) {}
    size_t place(uint64_t key) const { return (key * 0x9e3779b97f4a7c15ull >> 32) & mask; }
    std::vector<Slot> list;
    size_t mask;
  };

  static void put(Slots& s, uint64_t key, CUfunction kernel) {
    size_t at = s.place(key);
    while (s.list[at].key != 0) at = (at + 1) & s.mask;
    s.list[at].kernel = kernel;
    s.list[at].key.store(key, std::memory_order_release);
  }
  void grow() {
    const Slots* old = slots_;
    auto* grown = new Slots(old ? old->list.size() * 2 : 1024);
    if (old)
      for (const Slot& s : old->list)
        if (s.key != 0) put(*grown, s.key, s.kernel);
    slots_.store(grown, std::memory_order_release);
  }

  std::atomic<Slots*> slots_ = nullptr;
  std::mutex mutex_;
  size_t count_ = 0;
};

inline constinit KernelTable kernel_table;

/// The kernel of a key for the current device; `source` writes its program where it is new. The
/// six highest bits of a key are free for the device, the one below tells families apart.
template <class Source> CUfunction kernel_of(uint64_t key, const char* entry, Source&& source) {
  key |= static_cast<uint64_t>(current_device() + 1) << 58;
  if (const CUfunction known = kernel_table.find(key)) [[likely]]
    return known;
  const CUfunction kernel = load_kernel(source(), entry);
  kernel_table.add(key, kernel);
  return kernel;
}

}  // namespace cresset::cuda
