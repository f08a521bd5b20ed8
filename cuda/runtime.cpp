// What the core asks of CUDA devices, and the entry by which it opens this library.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <mutex>
#include <vector>

#include "core/tensor/device_runtime.h"
#include "cuda/check.h"
#include "cuda/launch.h"
#include "cuda/stream.h"
#include "cuda/tables.h"

namespace cresset::cuda {
namespace {

thread_local const char* op_now = "cuda";
thread_local int device_before = 0;

class Runtime final : public DeviceRuntime {
 public:
  Runtime() { CUDA_CHECK(cudaGetDeviceCount(&count_)); }

  int device_count() override { return count_; }
  int current_device() override { return cuda::current_device(); }

  void* allocate(size_t bytes, Device device, void** context) override {
    *context = nullptr;
    if (bytes == 0) return nullptr;
    set_current_device(device.index);
    void* data = nullptr;
    for (int attempt = 0;; ++attempt) {
      const cudaError_t status = cudaMalloc(&data, bytes);
      if (status == cudaSuccess) break;
      cudaGetLastError();
      if (status != cudaErrorMemoryAllocation || !reclaim_memory(attempt))
        fail_cuda(status, "cudaMalloc");
    }
    std::lock_guard lock(mutex_);
    stats_.allocated += static_cast<int64_t>(bytes);
    stats_.reserved = stats_.allocated;
    stats_.peak_allocated = std::max(stats_.peak_allocated, stats_.allocated);
    ++stats_.allocations;
    return data;
  }
  void free(void* data, void*, Device device) noexcept override {
    if (!data) return;
    if (device.index != cuda::current_device()) cudaSetDevice(device.index);
    cudaFree(data);
    if (device.index != cuda::current_device()) cudaSetDevice(cuda::current_device());
  }

  void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
            bool wait) override {
    const Device place = to_device.is_cuda() ? to_device : from_device;
    set_current_device(place.index);
    cudaStream_t stream = current_stream(place.index);
    if (to_device.is_cuda() && from_device.is_cuda() && !(to_device == from_device)) {
      CUDA_CHECK(cudaMemcpyPeerAsync(to, to_device.index, from, from_device.index, bytes, stream));
    } else {
      CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
    }
    if (wait && !(to_device.is_cuda() && from_device.is_cuda()))
      CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  void fill_bytes(void* to, Device device, int byte, size_t bytes) override {
    set_current_device(device.index);
    CUDA_CHECK(cudaMemsetAsync(to, byte, bytes, current_stream(device.index)));
  }
  void synchronize(Device device) override {
    set_current_device(device.index);
    CUDA_CHECK(cudaDeviceSynchronize());
  }

  void begin_launch(const char* op, Device device) override {
    op_now = op;
    device_before = cuda::current_device();
    if (device.index != device_before) [[unlikely]]
      set_current_device(device.index);
  }
  void end_launch() noexcept override {
    if (device_before != cuda::current_device()) [[unlikely]]
      set_current_device(device_before);
  }

  AllocatorStats stats(Device) override { return stats_; }
  void empty_cache() override {}
  void reset_peak(Device) override { stats_.peak_allocated = stats_.allocated; }

 private:
  int count_ = 0;
  std::mutex mutex_;
  AllocatorStats stats_;
};

}  // namespace

const char* launching_op() noexcept { return op_now; }

void fail_cuda(cudaError_t status, const char* call) {
  const ErrorKind kind =
      status == cudaErrorMemoryAllocation ? ErrorKind::OutOfMemory : ErrorKind::Internal;
  fail(kind, op_now, ": CUDA error ", static_cast<int>(status), " in ", call, ": ",
       cudaGetErrorString(status));
}

void fail_library(const char* library, int status, const char* call) {
  fail(ErrorKind::Internal, op_now, ": ", library, " error ", status, " in ", call);
}

int multiprocessors() {
  static int counts[max_cuda_devices] = {};
  int& count = counts[current_device()];
  if (count == 0)
    CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, current_device()));
  return count;
}

}  // namespace cresset::cuda

extern "C" CRESSET_API cresset::DeviceRuntime* cresset_cuda_open() {
  static auto* runtime = new cresset::cuda::Runtime;
  cresset::cuda::register_tables();
  return runtime;
}
