// torch.cuda beside tensors: streams, events, memory, graphs and switches for the core's operators.
#include "core/tensor/cuda_services.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <unordered_map>

#include "cuda/check.h"
#include "cuda/device_error.h"
#include "cuda/driver.h"
#include "cuda/graph.h"
#include "cuda/memory.h"
#include "cuda/properties.h"
#include "cuda/stream.h"

namespace cresset::cuda {
namespace {

PoolId pool_id(int64_t pool) { return {0, static_cast<uint64_t>(pool)}; }

class Services final : public CudaServices {
 public:
  // ---- devices
  void set_device(int device) override { set_current_device(device); }
  std::string properties(int device) override { return properties_json(device); }
  bool can_access_peer(int device, int peer) override {
    int can = 0;
    CUDA_CHECK(cudaDeviceCanAccessPeer(&can, device, peer));
    return can != 0;
  }
  void memory_info(int device, size_t* free, size_t* total) override {
    driver(device).memory_info(free, total);
  }

  // ---- streams
  int64_t stream(int device, int priority) override {
    return reinterpret_cast<int64_t>(pooled_stream(device, priority));
  }
  int64_t current_stream(int device) override {
    return stream_address(device, thread_state.streams[device]);
  }
  void set_stream(int device, int64_t stream) override {
    set_current_stream(device, checked_stream("setStream", device, stream));
  }
  bool is_stream_done(int device, int64_t stream) override {
    const DeviceScope scope(device);
    const cudaError_t status = cudaStreamQuery(checked_stream("query", device, stream));
    if (status == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    CUDA_CHECK(status);
    return true;
  }
  void synchronize_stream(int device, int64_t stream) override {
    refuse_in_capture("synchronize()", "waits for the device");
    const DeviceScope scope(device);
    CUDA_CHECK(cudaStreamSynchronize(checked_stream("synchronize", device, stream)));
    throw_device_errors(device);
  }

  // ---- events
  int64_t create_event(bool timing) override { return cuda::create_event(timing); }
  void destroy_event(int64_t event) override { cuda::destroy_event(event); }
  void record_event(int64_t event, int device, int64_t stream) override {
    cuda::record_event(event, device, checked_stream("recordEvent", device, stream));
  }
  void wait_event(int64_t event, int device, int64_t stream) override {
    cuda::wait_event(event, device, checked_stream("waitEvent", device, stream));
  }
  bool is_event_done(int64_t event) override { return cuda::is_event_done(event); }
  void synchronize_event(int64_t event) override {
    refuse_in_capture("synchronize()", "waits for the device");
    cuda::synchronize_event(event);
  }
  double elapsed_ms(int64_t from, int64_t to) override { return cuda::elapsed_ms(from, to); }

  // ---- memory
  std::string memory_stats(int device) override {
    DeviceAllocator* memory = used_allocator(device);
    return to_json(memory ? memory->stats() : DeviceStats());
  }
  std::string memory_snapshot() override {
    std::string all = "[";
    for (int device = 0; device < max_cuda_devices; ++device) {
      DeviceAllocator* memory = used_allocator(device);
      if (!memory) continue;
      std::vector<SegmentInfo> segments = memory->snapshot();
      for (SegmentInfo& s : segments)
        s.stream = reinterpret_cast<StreamHandle>(
            stream_address(device, static_cast<cudaStream_t>(s.stream)));
      const std::string list = to_json(device, segments);
      if (all.size() > 1 && list.size() > 2) all += ',';
      all += list.substr(1, list.size() - 2);
    }
    return all + "]";
  }
  void reset_memory_stats(int device, bool peaks) override {
    DeviceAllocator* memory = used_allocator(device);
    if (!memory) return;
    if (peaks)
      memory->reset_peak();
    else
      memory->reset_accumulated();
  }
  void set_memory_fraction(int device, double fraction) override {
    allocator(device).set_memory_fraction(fraction);
  }
  void set_allocator_options(const std::string& options) override {
    cuda::set_allocator_options(options);
  }
  std::string allocator_backend() override { return cuda::allocator_backend(); }
  void use_allocator(const std::string& path, const std::string& allocate,
                     const std::string& release) override {
    use_source(load_source(path, allocate, release));
  }
  int64_t create_pool(const std::string& path, const std::string& allocate,
                      const std::string& release) override {
    const int64_t pool = next_pool_++;
    std::lock_guard lock(mutex_);
    pools_[pool] = {path.empty() ? SegmentSource() : load_source(path, allocate, release), {}};
    return pool;
  }
  void destroy_pool(int64_t pool) override {
    std::lock_guard lock(mutex_);
    auto found = pools_.find(pool);
    if (found == pools_.end()) return;
    for (const int device : found->second.devices) allocator(device).drop_pool(pool_id(pool));
    pools_.erase(found);
  }
  void begin_pool(int64_t pool, int device) override {
    std::lock_guard lock(mutex_);
    auto found = pools_.find(pool);
    CHECK(found != pools_.end(), Value, "useMemPool: the pool has been disposed");
    std::vector<int>& devices = found->second.devices;
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
      allocator(device).hold_pool(pool_id(pool), found->second.source);
      devices.push_back(device);
    }
    allocator(device).begin_route({pool_id(pool), 0, std::this_thread::get_id()});
  }
  void end_pool(int64_t pool, int device) override { allocator(device).end_route(pool_id(pool)); }
  void record_stream(Storage& storage, int64_t stream) override {
    const int device = storage.device().index;
    cudaStream_t s = checked_stream("recordStream", device, stream);
    allocator(device).record_stream(storage.context(), s);
  }

  // ---- pinned memory
  void* allocate_pinned(size_t bytes, void** context) override {
    PinnedCache::Block* block = nullptr;
    for (int attempt = 0; !block; ++attempt) {
      block = pinned_cache().allocate(bytes);
      CHECK(block || attempt < 2, OutOfMemory, "pinMemory: tried to pin ", bytes,
            " bytes, which the system refused");
      if (!block) reclaim_memory(attempt);
    }
    *context = block;
    return block->data;
  }
  void wait_for_copies(void* context) override {
    pinned_cache().wait(static_cast<PinnedCache::Block*>(context));
  }

  // ---- graphs
  int64_t begin_capture(int64_t share) override { return cuda::begin_capture(share); }
  void end_capture(int64_t graph, bool keep) override { cuda::end_capture(graph, keep); }
  void replay(int64_t graph) override { replay_graph(graph); }
  void destroy_graph(int64_t graph) override { cuda::destroy_graph(graph); }
  bool is_capturing() override { return cuda::is_capturing(); }

 private:
  struct Pool {
    SegmentSource source;
    std::vector<int> devices;
  };
  std::mutex mutex_;
  std::unordered_map<int64_t, Pool> pools_;
  std::atomic<int64_t> next_pool_ = 1;
};

}  // namespace
}  // namespace cresset::cuda

extern "C" CRESSET_API cresset::CudaServices* cresset_cuda_services() {
  static auto* services = new cresset::cuda::Services;
  return services;
}
