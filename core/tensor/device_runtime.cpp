// The memory policy's counters of CUDA devices, and the naming of devices.
#include "core/tensor/device_runtime.h"

#include <algorithm>
#include <atomic>

#include "core/base/error.h"

namespace cresset {

DeviceRuntime* opened_cuda_runtime = nullptr;
bool cuda_wants_sweep = false;

namespace {

struct Budget {
  std::atomic<int64_t> live = 0, since_sweep = 0, budget = cuda_budget_floor;
};
Budget budgets[max_cuda_devices];

}  // namespace

void cuda_count_bytes(Device device, int64_t bytes) noexcept {
  Budget& b = budgets[device.index];
  b.live.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes <= 0) return;
  const int64_t since = b.since_sweep.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (since >= b.budget.load(std::memory_order_relaxed)) cuda_wants_sweep = true;
}

int64_t cuda_live_bytes() noexcept {
  int64_t sum = 0;
  if (opened_cuda_runtime)
    for (const Budget& b : budgets) sum += b.live.load(std::memory_order_relaxed);
  return sum;
}

void cuda_mark_sweep() noexcept {
  if (!opened_cuda_runtime) return;
  for (Budget& b : budgets) {
    b.since_sweep = 0;
    b.budget = std::max(cuda_budget_floor, 2 * b.live.load(std::memory_order_relaxed));
  }
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
  DeviceRuntime& runtime = cuda_runtime();
  const int count = runtime.device_count();
  if (device.index < 0) device.index = static_cast<int8_t>(runtime.current_device());
  CHECK(device.index < count, Device, "device: ", device, " was asked for, but there ",
        count == 1 ? "is " : "are ", count, " CUDA device", count == 1 ? "" : "s");
  return device;
}

}  // namespace cresset
