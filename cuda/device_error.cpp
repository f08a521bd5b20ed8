// The error records of the devices and the errors that are made of them.
#include "cuda/device_error.h"

#include <atomic>
#include <mutex>

#include "core/tensor/device_runtime.h"
#include "cuda/check.h"
#include "cuda/driver.h"
#include "cuda/scopes.h"
#include "cuda/stream.h"

namespace cresset::cuda {
namespace {

// Allocated once per device and never given back. The record is published last.
std::atomic<ErrorRecord*> records[max_cuda_devices];
int* claims[max_cuda_devices];

ErrorRecord* record_of(int device) {
  ErrorRecord* known = records[device].load(std::memory_order_acquire);
  if (known) return known;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (ErrorRecord* made = records[device]) return made;
  const RelaxedCapture relaxed;
  claims[device] = report_claim();
  void* memory = nullptr;
  CUDA_CHECK(
      cudaHostAlloc(&memory, sizeof(ErrorRecord), cudaHostAllocPortable | cudaHostAllocMapped));
  auto* made = new (memory) ErrorRecord{};
  records[device].store(made, std::memory_order_release);
  return made;
}

}  // namespace

IndexReport index_report() {
  const int device = current_device();
  ErrorRecord* record = record_of(device);
  return {record, claims[device], launching_op()};
}

void throw_device_errors(int device) {
  ErrorRecord* record = records[device].load(std::memory_order_acquire);
  if (!record) return;
  std::atomic_ref<int> complete(record->complete);
  if (complete.load(std::memory_order_acquire) == 0) return;
  const ErrorRecord found = *record;
  complete.store(0, std::memory_order_release);
  // In the order of the stream: what runs after this may report again.
  const DeviceScope scope(device);
  CUDA_CHECK(cudaMemsetAsync(claims[device], 0, sizeof(int), current_stream(device)));
  fail(ErrorKind::Index, found.op, ": expected an index in [", found.low, ", ", found.high - 1,
       "], got ", found.value, " (found on cuda:", device, ")");
}

}  // namespace cresset::cuda
