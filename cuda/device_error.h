// How kernels report a bad index without writing out of range or stopping the device.
#pragma once

#include <cstdint>

namespace cresset::cuda {

/// One per device, in memory of the host that the device can write: the first report since the last
/// look stays.
struct ErrorRecord {
  int complete;
  const char* op;  ///< static text of the host
  int64_t value, low, high;
};

/// Passed to a kernel by value; the kernel calls it for an index outside [low, high) and then skips
/// the element.
struct IndexReport {
  ErrorRecord* record;
  int* claimed;  ///< in the device's memory: it may have no atomics on the host's
  const char* op;

#if defined(__CUDACC__)
  __device__ void operator()(int64_t value, int64_t low, int64_t high) const {
    if (atomicCAS(claimed, 0, 1) != 0) return;
    record->op = op;
    record->value = value;
    record->low = low;
    record->high = high;
    __threadfence_system();
    *const_cast<volatile int*>(&record->complete) = 1;
  }
#endif
};

/// The word of the current device that the first report takes.
int* report_claim();
/// For a kernel that is about to be launched: names the current device and operator.
IndexReport index_report();

/// After a synchronisation with the device: throws IndexError if a kernel has reported.
void throw_device_errors(int device);

}  // namespace cresset::cuda
