// Watching over what makes the host wait, and copies between devices.
#include "cuda/sync.h"

#include <cuda_runtime_api.h>

#include <cstdio>

#include "core/tensor/math_mode.h"
#include "cuda/check.h"
#include "cuda/driver.h"
#include "cuda/stream.h"

namespace cresset::cuda {

void warn_of_sync() {
  const int mode = math_mode().sync_debug_mode;
  if (mode == 0) [[likely]]
    return;
  CHECK(mode == 1, Value,
        "cuda: a copy to the CPU (item(), data(), print) makes the host wait for "
        "the device, which setSyncDebugMode(\"error\") forbids");
  std::fputs("cresset: a copy to the CPU makes the host wait for the device\n", stderr);
}

void copy_to_peer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  cudaStream_t source = current_stream(from_device), target = current_stream(to_device);
  Driver &source_driver = driver(from_device), &target_driver = driver(to_device);
  EventHandle ready = target_driver.record(target);
  source_driver.wait_in_stream(source, ready);
  target_driver.recycle(ready);
  {
    const DeviceScope scope(from_device);
    CUDA_CHECK(cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, source));
  }
  EventHandle done = source_driver.record(source);
  target_driver.wait_in_stream(target, done);
  source_driver.recycle(done);
}

}  // namespace cresset::cuda
