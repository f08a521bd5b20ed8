// The error records of the devices and the errors that are made of them.
#include "cuda/device_error.h"

#include <atomic>
#include <mutex>

#include "core/tensor/device_runtime.h"
#include "cuda/check.h"
#include "cuda/driver.h"
#include "cuda/stream.h"

namespace cresset::cuda {
namespace {

// Pinned once per device and never given back.
std::atomic<ErrorRecord*> records[max_cuda_devices];

ErrorRecord* record_of(int device) {
  ErrorRecord* known = records[device].load(std::memory_order_acquire);
  if (known) return known;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (ErrorRecord* made = records[device]) return made;
  const RelaxedCapture relaxed;
  void* memory = nullptr;
  CUDA_CHECK(
      cudaHostAlloc(&memory, sizeof(ErrorRecord), cudaHostAllocPortable | cudaHostAllocMapped));
  auto* made = new (memory) ErrorRecord{};
  records[device].store(made, std::memory_order_release);
  return made;
}

}  // namespace

IndexReport index_report() { return {record_of(current_device()), launching_op()}; }

void throw_device_errors(int device) {
  ErrorRecord* record = records[device].load(std::memory_order_acquire);
  if (!record) return;
  std::atomic_ref<int> state(record->state);
  if (state.load(std::memory_order_acquire) != 2) return;
  const ErrorRecord found = *record;
  state.store(0, std::memory_order_release);
  fail(ErrorKind::Index, found.op, ": expected an index in [", found.low, ", ", found.high - 1,
       "], got ", found.value, " (found on cuda:", device, ")");
}

}  // namespace cresset::cuda
