// The allocator's view of a real device: CUDA's runtime and virtual memory interface.
#include "cuda/driver.h"

#include <array>
#include <memory>

#include "core/tensor/device_runtime.h"
#include "cuda/check.h"
#include "cuda/stream.h"

namespace cresset::cuda {
namespace {

cudaStream_t stream_of(StreamHandle s) { return static_cast<cudaStream_t>(s); }
cudaEvent_t event_of(EventHandle e) { return static_cast<cudaEvent_t>(e); }

// A failed call that is handled must not be found by the next check.
bool succeeded(cudaError_t status) {
  if (status == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

// The driver's virtual memory functions, found through the runtime: libcuda.so is never linked.
struct VirtualMemory {
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) unreserve = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;

  template <class F> static void find(const char* name, F& function) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    succeeded(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result));
    function = reinterpret_cast<F>(found);
  }
  VirtualMemory() {
    find("cuMemAddressReserve", reserve);
    find("cuMemAddressFree", unreserve);
    find("cuMemCreate", create);
    find("cuMemRelease", release);
    find("cuMemMap", map);
    find("cuMemUnmap", unmap);
    find("cuMemSetAccess", set_access);
  }
  bool complete() const {
    return reserve && unreserve && create && release && map && unmap && set_access;
  }
};
const VirtualMemory& virtual_memory() {
  static const auto* functions = new VirtualMemory;
  return *functions;
}

CUmemAllocationProp memory_on(int device) {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  return prop;
}

}  // namespace

uint64_t capture_number(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  if (!succeeded(
          cudaStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr)))
    return 0;
  return status == cudaStreamCaptureStatusActive ? id : 0;
}

// ---- memory

void* Driver::allocate(size_t bytes) {
  DeviceScope scope(device_);
  RelaxedCapture relaxed;
  void* data = nullptr;
  return succeeded(cudaMalloc(&data, bytes)) ? data : nullptr;
}

void Driver::release(void* data) {
  DeviceScope scope(device_);
  RelaxedCapture relaxed;
  succeeded(cudaFree(data));
}

void Driver::memory_info(size_t* free, size_t* total) {
  DeviceScope scope(device_);
  RelaxedCapture relaxed;
  if (!succeeded(cudaMemGetInfo(free, total))) *free = *total = 0;
}

// The pool keeps what it has: giving memory back at every synchronisation is slow.
cudaMemPool_t Driver::pool() {
  if (!pool_ && succeeded(cudaDeviceGetDefaultMemPool(&pool_, device_))) {
    uint64_t keep = UINT64_MAX;
    succeeded(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep));
  }
  return pool_;
}

void* Driver::allocate_in_order(size_t bytes, StreamHandle stream) {
  DeviceScope scope(device_);
  void* data = nullptr;
  if (!pool() || !succeeded(cudaMallocAsync(&data, bytes, stream_of(stream)))) return nullptr;
  return data;
}

void Driver::release_in_order(void* data, StreamHandle stream) {
  DeviceScope scope(device_);
  succeeded(cudaFreeAsync(data, stream_of(stream)));
}

size_t Driver::reserved_in_order() {
  uint64_t bytes = 0;
  if (pool()) succeeded(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &bytes));
  return bytes;
}

void Driver::trim_in_order() {
  if (!pool()) return;
  synchronize();
  succeeded(cudaMemPoolTrimTo(pool_, 0));
}

void Driver::synchronize() {
  DeviceScope scope(device_);
  succeeded(cudaDeviceSynchronize());
}

// ---- order

EventHandle Driver::record(StreamHandle stream) {
  DeviceScope scope(device_);
  cudaEvent_t event = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      event = idle_.back();
      idle_.pop_back();
    }
  }
  if (!event) succeeded(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  if (event) succeeded(cudaEventRecord(event, stream_of(stream)));
  return event;
}

// After a fatal error of the device nothing runs any more: what is queued counts as done.
bool Driver::is_done(EventHandle event) {
  RelaxedCapture relaxed;
  const cudaError_t status = event ? cudaEventQuery(event_of(event)) : cudaSuccess;
  if (status != cudaSuccess) cudaGetLastError();
  return status != cudaErrorNotReady;
}

void Driver::wait(EventHandle event) {
  RelaxedCapture relaxed;
  if (event) succeeded(cudaEventSynchronize(event_of(event)));
}

void Driver::recycle(EventHandle event) {
  if (!event) return;
  std::lock_guard lock(mutex_);
  idle_.push_back(event_of(event));
}

void Driver::wait_in_stream(StreamHandle stream, EventHandle event) {
  DeviceScope scope(device_);
  if (event) succeeded(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0));
}

uint64_t Driver::capture_of(StreamHandle stream) { return capture_number(stream_of(stream)); }

// ---- virtual memory

char* Driver::reserve(size_t bytes) {
  DeviceScope scope(device_);
  succeeded(cudaFree(nullptr));  // makes the context that the driver's calls work in
  CUdeviceptr at = 0;
  const VirtualMemory& vm = virtual_memory();
  if (!vm.complete() || vm.reserve(&at, bytes, 0, 0, 0) != CUDA_SUCCESS) return nullptr;
  return reinterpret_cast<char*>(at);
}

void Driver::unreserve(char* at, size_t bytes) {
  virtual_memory().unreserve(reinterpret_cast<CUdeviceptr>(at), bytes);
}

bool Driver::map(char* at, size_t bytes) {
  DeviceScope scope(device_);
  RelaxedCapture relaxed;
  const VirtualMemory& vm = virtual_memory();
  const CUmemAllocationProp prop = memory_on(device_);
  const auto address = reinterpret_cast<CUdeviceptr>(at);
  CUmemGenericAllocationHandle memory = 0;
  if (vm.create(&memory, bytes, &prop, 0) != CUDA_SUCCESS) return false;
  const CUmemAccessDesc access = {.location = prop.location,
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const bool mapped = vm.map(address, bytes, 0, memory, 0) == CUDA_SUCCESS;
  if (mapped && vm.set_access(address, bytes, &access, 1) == CUDA_SUCCESS) {
    mapped_[at] = memory;
    return true;
  }
  if (mapped) vm.unmap(address, bytes);
  vm.release(memory);
  return false;
}

void Driver::unmap(char* at, size_t bytes) {
  auto found = mapped_.find(at);
  if (found == mapped_.end()) return;
  virtual_memory().unmap(reinterpret_cast<CUdeviceptr>(at), bytes);
  virtual_memory().release(found->second);
  mapped_.erase(found);
}

Driver& driver(int device) {
  static std::mutex mutex;
  static auto* all = new std::array<std::unique_ptr<Driver>, max_cuda_devices>;
  std::lock_guard lock(mutex);
  auto& slot = (*all)[static_cast<size_t>(device)];
  if (!slot) slot = std::make_unique<Driver>(device);
  return *slot;
}

}  // namespace cresset::cuda
