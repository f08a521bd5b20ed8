// What the core asks of CUDA devices, and the entry by which it opens this library.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "core/tensor/device_runtime.h"
#include "core/tensor/math_mode.h"
#include "cuda/check.h"
#include "cuda/device_error.h"
#include "cuda/driver.h"
#include "cuda/graph.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "cuda/sync.h"
#include "cuda/tables.h"

namespace cresset::cuda {
namespace {

void watch_launch() noexcept {
  ThreadState& t = thread_state;
  if (is_capturing() || t.pending) return;
  try {
    CUDA_CHECK(cudaDeviceSynchronize());
    throw_device_errors(t.device);
  } catch (const Error& e) {
    t.pending = new Error(e);
  }
}

// The next call that may throw does.
void throw_pending(ThreadState& t = thread_state) {
  if (!t.pending) [[likely]]
    return;
  const std::unique_ptr<Error> e(std::exchange(t.pending, nullptr));
  throw Error(*e);
}

class Runtime final : public DeviceRuntime {
 public:
  Runtime() { CUDA_CHECK(cudaGetDeviceCount(&count_)); }

  int device_count() override { return count_; }
  int current_device() override { return cuda::current_device(); }

  void* allocate(size_t bytes, Device device, void** context) override {
    return allocator(device.index).allocate(bytes, current_stream(device.index), context);
  }
  // Pinned memory is the CPU's.
  void free(void*, void* context, Device device) noexcept override {
    if (!context) return;
    if (device.is_cuda())
      used_allocator(device.index)->release(context);
    else
      pinned_cache().release(static_cast<PinnedCache::Block*>(context));
  }

  void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
            bool wait) override;
  void fill_bytes(void* to, Device device, int byte, size_t bytes) override {
    const DeviceScope scope(device.index);
    CUDA_CHECK(cudaMemsetAsync(to, byte, bytes, current_stream(device.index)));
  }
  void synchronize(Device device) override {
    throw_pending();
    refuse_in_capture("synchronize()", "waits for the device");
    const DeviceScope scope(device.index);
    CUDA_CHECK(cudaDeviceSynchronize());
    throw_device_errors(device.index);
  }

  void begin_launch(const char* op, Device device) override {
    ThreadState& t = thread_state;
    throw_pending(t);
    if (t.depth == most_launches) [[unlikely]]
      fail(ErrorKind::Internal, op, ": operators call each other too deep");
    t.launches[t.depth++] = {t.op, t.device};
    t.op = op;
    if (device.index != t.device) [[unlikely]]
      set_current_device(device.index);
  }
  void end_launch() noexcept override {
    if (switches_.launch_blocking) [[unlikely]]
      watch_launch();
    ThreadState& t = thread_state;
    const ThreadState::Launch before = t.launches[--t.depth];
    t.op = before.op;
    if (before.device != t.device) [[unlikely]]
      restore_device(before.device);
  }

  AllocatorStats stats(Device device) override {
    AllocatorStats out;
    DeviceAllocator* memory = used_allocator(device.index);
    if (!memory) return out;
    const DeviceStats s = memory->stats();
    out.allocated = s.current(AllocatedBytes);
    out.reserved = s.current(ReservedBytes);
    out.peak_allocated = s.by_kind[AllocatedBytes][0].peak;
    out.allocations = s.by_kind[Allocations][0].allocated;
    out.cache_hits = out.allocations - s.device_allocs;
    return out;
  }
  void empty_cache() override {
    for (int i = 0; i < count_; ++i)
      if (DeviceAllocator* memory = used_allocator(i)) memory->empty_cache();
    pinned_cache().empty();
  }
  void reset_peak(Device device) override {
    if (DeviceAllocator* memory = used_allocator(device.index)) memory->reset_peak();
  }

 private:
  int count_ = 0;
  const MathMode& switches_ = math_mode();
};

// Pageable memory is safe without waiting on the way to a device: the driver has read it when the
// call returns. On the way back only waiting makes it safe. Pinned memory is read and written
// later, so that its block remembers the copy.
void Runtime::copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                   bool wait) {
  throw_pending();
  const Device place = to_device.is_cuda() ? to_device : from_device;
  const DeviceScope scope(place.index);
  cudaStream_t stream = current_stream(place.index);
  if (to_device.is_cuda() && from_device.is_cuda()) {
    if (to_device == from_device)
      CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
    else
      copy_to_peer(to, to_device.index, from, from_device.index, bytes);
    return;
  }
  const bool down = !to_device.is_cuda();
  PinnedCache::Block* pinned = pinned_cache().find(down ? to : from);
  const bool waits = down && (wait || !pinned);
  if (waits) refuse_in_capture("a copy to the CPU (item(), data(), print)", "waits for the device");
  if (!pinned) refuse_in_capture("a copy of memory that is not pinned", "cannot be repeated");
  if (waits) warn_of_sync();
  CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  if (waits) {
    CUDA_CHECK(cudaStreamSynchronize(stream));
    throw_device_errors(place.index);
  } else if (pinned && !is_capturing()) {
    pinned_cache().record(pinned, driver(place.index), stream);
  }
}

}  // namespace

const char* launching_op() noexcept { return thread_state.op; }

// Errors of kernels that ran earlier surface in whatever call comes next.
static bool is_asynchronous(cudaError_t status) {
  return status == cudaErrorIllegalAddress || status == cudaErrorLaunchFailure ||
         status == cudaErrorAssert || status == cudaErrorMisalignedAddress ||
         status == cudaErrorIllegalInstruction || status == cudaErrorHardwareStackError ||
         status == cudaErrorInvalidAddressSpace || status == cudaErrorInvalidPc ||
         status == cudaErrorLaunchTimeout || status == cudaErrorECCUncorrectable;
}

void fail_cuda(cudaError_t status, const char* call) {
  cudaGetLastError();
  const ErrorKind kind =
      status == cudaErrorMemoryAllocation ? ErrorKind::OutOfMemory : ErrorKind::Internal;
  const bool later = is_asynchronous(status) && !math_mode().launch_blocking;
  fail(kind, thread_state.op, ": CUDA error ", static_cast<int>(status), " in ", call, ": ",
       cudaGetErrorString(status),
       later ? "; possibly from an earlier operator: CUDA_LAUNCH_BLOCKING=1 finds out which" : "");
}

void fail_library(const char* library, int status, const char* call) {
  fail(ErrorKind::Internal, thread_state.op, ": ", library, " error ", status, " in ", call);
}

// An attribute of the current device, asked once.
template <cudaDeviceAttr attribute> static int attribute_now() {
  static int known[max_cuda_devices] = {};
  int& value = known[current_device()];
  if (value == 0) CUDA_CHECK(cudaDeviceGetAttribute(&value, attribute, current_device()));
  return value;
}

int multiprocessors() { return attribute_now<cudaDevAttrMultiProcessorCount>(); }
int threads_per_multiprocessor() { return attribute_now<cudaDevAttrMaxThreadsPerMultiProcessor>(); }

}  // namespace cresset::cuda

extern "C" CRESSET_API cresset::DeviceRuntime* cresset_cuda_open() {
  static auto* runtime = new cresset::cuda::Runtime;
  cresset::cuda::register_tables();
  const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking && std::strcmp(blocking, "0") != 0) cresset::math_mode().launch_blocking = true;
  return runtime;
}
