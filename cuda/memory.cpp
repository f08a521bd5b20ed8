// The allocators in use: one per device, chosen by the settings, and the pinned memory of the host.
#include "cuda/memory.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

#include "core/base/error.h"
#include "core/tensor/device_runtime.h"
#include "cuda/driver.h"

namespace cresset::cuda {
namespace {

bool reclaim(int attempt) { return reclaim_memory(attempt); }

struct Memory {
  std::mutex mutex;
  std::atomic<DeviceAllocator*> by_device[max_cuda_devices] = {};
  AllocatorConfig config;
  bool configured = false, used = false;
  SegmentSource source;

  // CRESSET_ALLOC_CONF counts until options are set by a call.
  const AllocatorConfig& settings() {
    if (!configured) {
      const char* text = std::getenv("CRESSET_ALLOC_CONF");
      config = parse_allocator_config("CRESSET_ALLOC_CONF", text ? text : "");
      configured = true;
    }
    return config;
  }
};

// Never destroyed: tensors may be freed by static destructors of the host.
Memory& memory() {
  static auto* m = new Memory;
  return *m;
}

class PinnedHost final : public HostApi {
 public:
  void* allocate(size_t bytes) override {
    const RelaxedCapture relaxed;
    void* data = nullptr;
    if (cudaHostAlloc(&data, bytes, cudaHostAllocPortable) == cudaSuccess) return data;
    cudaGetLastError();
    return nullptr;
  }
  void release(void* data) override { cudaFreeHost(data); }
};

}  // namespace

DeviceAllocator* used_allocator(int device) noexcept {
  return memory().by_device[device].load(std::memory_order_acquire);
}

DeviceAllocator& allocator(int device) {
  if (DeviceAllocator* known = used_allocator(device)) [[likely]]
    return *known;
  Memory& m = memory();
  std::lock_guard lock(m.mutex);
  if (DeviceAllocator* made = m.by_device[device]) return *made;
  const AllocatorConfig& config = m.settings();
  DeviceAllocator* made;
  if (m.source.allocate || config.backend == AllocatorBackend::Async)
    made = new DirectAllocator(device, driver(device), m.source, reclaim);
  else
    made = new CachingAllocator(device, driver(device), config, reclaim);
  m.used = true;
  m.by_device[device].store(made, std::memory_order_release);
  return *made;
}

PinnedCache& pinned_cache() {
  static auto* host = new PinnedHost;
  static auto* cache = new PinnedCache(*host);
  return *cache;
}

void set_allocator_options(const std::string& options) {
  const AllocatorConfig config = parse_allocator_config("setAllocatorOptions", options);
  Memory& m = memory();
  std::lock_guard lock(m.mutex);
  CHECK(!m.used || config.backend == m.config.backend, Value,
        "setAllocatorOptions: the backend can be chosen only before the first use of CUDA memory");
  m.config = config;
  m.configured = true;
  for (auto& slot : m.by_device)
    if (DeviceAllocator* a = slot) a->set_config(config);
}

std::string allocator_backend() {
  Memory& m = memory();
  std::lock_guard lock(m.mutex);
  if (m.source.allocate) return "pluggable";
  return m.settings().backend == AllocatorBackend::Async ? "cudaMallocAsync" : "native";
}

SegmentSource load_source(const std::string& path, const std::string& allocate,
                          const std::string& release) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  CHECK(library, Value, "CUDAPluggableAllocator: ", dlerror());
  auto find = [&](const std::string& name) {
    void* symbol = dlsym(library, name.c_str());
    CHECK(symbol, Value, "CUDAPluggableAllocator: ", path, " has no function \"", name, "\"");
    return symbol;
  };
  SegmentSource source;
  source.allocate = reinterpret_cast<decltype(source.allocate)>(find(allocate));
  source.release = reinterpret_cast<decltype(source.release)>(find(release));
  return source;
}

void use_source(SegmentSource source) {
  Memory& m = memory();
  std::lock_guard lock(m.mutex);
  CHECK(!m.used, Value,
        "changeCurrentAllocator: the allocator can be changed only before the first use of CUDA "
        "memory");
  m.source = source;
}

}  // namespace cresset::cuda
