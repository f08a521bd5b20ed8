// What a device other than the CPU does for the core: memory, copies, the frame of a launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/api.h"
#include "core/tensor/allocator.h"
#include "core/tensor/device.h"

namespace cresset {

/// Implemented by the CUDA library. Work goes to the calling thread's current stream of a device.
/// Except for `free`, failures throw Error.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;
  virtual int device_count() = 0;
  /// The device that plain "cuda" means on this thread.
  virtual int current_device() = 0;

  /// At least `bytes` (may be 0) for use on the current stream; `context` comes back in `free`.
  virtual void* allocate(size_t bytes, Device device, void** context) = 0;
  virtual void free(void* data, void* context, Device device) noexcept = 0;

  /// Copies between any two devices, one of which may be the CPU, after the work enqueued so far.
  /// With `wait` (always towards pageable memory of the CPU) the bytes are there on return.
  virtual void copy(void* to, Device to_device, const void* from, Device from_device, size_t bytes,
                    bool wait) = 0;
  virtual void fill_bytes(void* to, Device device, int byte, size_t bytes) = 0;
  virtual void synchronize(Device device) = 0;

  /// Around every kernel: makes `device` current and remembers who launches, for messages.
  virtual void begin_launch(const char* op, Device device) = 0;
  virtual void end_launch() noexcept = 0;

  virtual AllocatorStats stats(Device device) = 0;
  virtual void empty_cache() = 0;
  virtual void reset_peak(Device device) = 0;
};

/// Why CUDA cannot be used; each has its own sentence.
enum class CudaStatus : uint8_t {
  Ok,
  NotBuilt,
  NoDriver,
  OldDriver,
  NoGpu,
  MissingLibrary,
  Failed
};

struct CudaProbe {
  CudaStatus status = CudaStatus::NotBuilt;
  const char* why = "";  ///< empty when Ok; lives as long as the process
  int device_count = 0;
};

/// Opens the driver and the CUDA library once, and says what was found. Never throws.
const CudaProbe& probe_cuda() noexcept;
/// Where libcresset_cuda.so lies, when it is not beside the object that holds the core; to be
/// called before the first use.
void set_cuda_library(const char* path);
/// A symbol of the opened CUDA library; null when CUDA is not usable or lacks it.
void* cuda_symbol(const char* name) noexcept;

/// The runtime; throws Device, saying why, where CUDA cannot be used.
DeviceRuntime& cuda_runtime();
/// The runtime if a CUDA device was used before, else null: for statistics and polling.
CRESSET_API extern DeviceRuntime* opened_cuda_runtime;

/// "cuda" alone becomes the current device; the index is checked against what is there.
Device resolve_device(Device device);

/// Keeps a device current while its kernel is launched.
class LaunchScope {
 public:
  LaunchScope(const char* op, Device device) { opened_cuda_runtime->begin_launch(op, device); }
  ~LaunchScope() { opened_cuda_runtime->end_launch(); }
  LaunchScope(const LaunchScope&) = delete;
  LaunchScope& operator=(const LaunchScope&) = delete;
};

// ---- the memory policy's view of all CUDA devices: one budget per device

constexpr int max_cuda_devices = 64;

/// Set when some device has handed out its budget since the last sweep.
extern bool cuda_wants_sweep;
/// Bytes in live storages of all CUDA devices.
int64_t cuda_live_bytes() noexcept;
/// After a sweep: budgets become twice the live bytes, at least `cuda_budget_floor`.
void cuda_mark_sweep() noexcept;
constexpr int64_t cuda_budget_floor = int64_t{512} << 20;

/// Called by Storage.
void cuda_count_bytes(Device device, int64_t bytes) noexcept;

/// Frees what the host's collector finds dead, harder with each attempt (0, 1); false when there is
/// nothing left to free. For allocators, when memory has run out.
CRESSET_API bool reclaim_memory(int attempt);

}  // namespace cresset
