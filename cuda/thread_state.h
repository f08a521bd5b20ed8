// What the library keeps per thread: the current device and streams, and who launches.
#pragma once

#include <cuda_runtime_api.h>

#include "core/base/error.h"
#include "core/tensor/device_runtime.h"

namespace cresset::cuda {

/// Kernels may call operators that launch others, up to this deep.
constexpr int most_launches = 16;

/// One variable, so that a launch looks its address up once; without a destructor, so that nothing
/// has to be checked before.
struct ThreadState {
  /// What was before a launch that is under way.
  struct Launch {
    const char* op;
    int device;
  };
  int device = 0;            ///< the current one
  int bound = -1;            ///< the device whose context the driver's own calls find
  bool overlaps = false;     ///< the bound device takes overlapping launches
  bool capturing = false;    ///< this thread records a graph
  const char* op = "cuda";   ///< who launches, or launched last
  int depth = 0;             ///< of `launches`
  Error* pending = nullptr;  ///< with launch_blocking: what the last kernel did wrong
  cudaStream_t streams[max_cuda_devices] = {};  ///< of each device; null: not chosen yet
  Launch launches[most_launches] = {};
};
extern constinit thread_local ThreadState thread_state;

}  // namespace cresset::cuda
