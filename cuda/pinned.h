// A cache of pinned memory of the CPU, which GPUs copy from and to by themselves.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "cuda/device_api.h"

namespace cresset::cuda {

/// Where pinned memory comes from.
class HostApi {
 public:
  virtual ~HostApi() = default;
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* data) = 0;
};

/// Blocks of a power of two of bytes. A block that copies still use when it is freed is reused
/// after they are done.
class PinnedCache {
 public:
  struct Block {
    char* data = nullptr;
    size_t size = 0;
    bool free = false;
    struct Use {
      DeviceApi* device;
      EventHandle event;
    };
    std::vector<Use> uses;
  };

  explicit PinnedCache(HostApi& host) : host_(host) {}

  /// Null when the system has no more.
  Block* allocate(size_t bytes);
  void release(Block* block) noexcept;
  /// The live block around an address, or null: the memory is not pinned by this cache.
  Block* find(const void* address);
  /// A copy in `stream` that was just queued uses the block.
  void record(Block* block, DeviceApi& device, StreamHandle stream);
  /// Waits until no queued copy uses the block: before the CPU reads or writes it.
  void wait(Block* block);
  void empty();

 private:
  bool settle(Block* block);

  std::mutex mutex_;
  HostApi& host_;
  std::map<const char*, Block> blocks_;
  std::vector<Block*> idle_[64], busy_;
};

}  // namespace cresset::cuda
