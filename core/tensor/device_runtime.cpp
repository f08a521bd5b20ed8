// The memory policy's counters of CUDA devices, and the naming of devices.
#include "core/tensor/device_runtime.h"

#include <algorithm>
#include <atomic>

#include "core/base/error.h"

namespace cresset {

DeviceRuntime* opened_cuda_runtime = nullptr;
bool cuda_wants_sweep = false;

namespace {

/// Bytes taken and given back so far; `limit` is what may be taken before the next sweep.
struct Budget {
  std::atomic<int64_t> taken = 0, given_back = 0, limit = cuda_budget_floor;

  int64_t live() const {
    const int64_t back = given_back.load(std::memory_order_relaxed);
    return taken.load(std::memory_order_relaxed) - back;
  }
};
Budget budgets[max_cuda_devices];

/// Devices that the runtime has; 0 before it was opened.
std::atomic<int> known_devices = 0;

}  // namespace

void cuda_count_bytes(Device device, int64_t bytes) noexcept {
  Budget& b = budgets[device.index];
  if (bytes <= 0) {
    b.given_back.fetch_sub(bytes, std::memory_order_relaxed);
    return;
  }
  const int64_t taken = b.taken.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (taken >= b.limit.load(std::memory_order_relaxed)) cuda_wants_sweep = true;
}

int64_t cuda_live_bytes() noexcept {
  int64_t sum = 0;
  if (opened_cuda_runtime)
    for (const Budget& b : budgets) sum += b.live();
  return sum;
}

void cuda_mark_sweep() noexcept {
  if (!opened_cuda_runtime) return;
  for (Budget& b : budgets) b.limit = b.taken + std::max(cuda_budget_floor, 2 * b.live());
  cuda_wants_sweep = false;
}

DeviceRuntime& cuda_runtime() {
  if (!opened_cuda_runtime) {
    const CudaProbe& probe = probe_cuda();
    CHECK(opened_cuda_runtime, Device, "device: CUDA is not available: ", probe.why);
  }
  return *opened_cuda_runtime;
}

Device resolve_device(Device device) {
  if (!device.is_cuda()) return device;
  if (device.index >= 0 && device.index < known_devices.load(std::memory_order_relaxed)) [[likely]]
    return device;
  DeviceRuntime& runtime = cuda_runtime();
  const int count = runtime.device_count();
  known_devices.store(count, std::memory_order_relaxed);
  if (device.index < 0) device.index = static_cast<int8_t>(runtime.current_device());
  CHECK(device.index < count, Device, "device: ", device, " was asked for, but there ",
        count == 1 ? "is " : "are ", count, " CUDA device", count == 1 ? "" : "s");
  return device;
}

}  // namespace cresset
