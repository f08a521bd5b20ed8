// How kernels report a bad index without writing out of range or stopping the device.
#pragma once

#include <cstdint>

namespace cresset::cuda {

/// One per device, in memory of the host that the device can write: the first report since the last
/// look stays. `state` is 0 empty, 1 being written, 2 complete.
struct ErrorRecord {
  int state;
  const char* op;  ///< static text of the host
  int64_t value, low, high;
};

/// Passed to a kernel by value; the kernel calls it for an index outside [low, high) and then skips
/// the element.
struct IndexReport {
  ErrorRecord* record;
  const char* op;

#if defined(__CUDACC__)
  __device__ void operator()(int64_t value, int64_t low, int64_t high) const {
    if (atomicCAS_system(&record->state, 0, 1) != 0) return;
    record->op = op;
    record->value = value;
    record->low = low;
    record->high = high;
    __threadfence_system();
    atomicExch_system(&record->state, 2);
  }
#endif
};

/// For a kernel that is about to be launched: names the current device and operator.
IndexReport index_report();

/// After a synchronisation with the device: throws IndexError if a kernel has reported.
void throw_device_errors(int device);

}  // namespace cresset::cuda
