// The calling thread's current device, and its current stream on each device.
#include "cuda/stream.h"

#include "cuda/check.h"

namespace cresset::cuda {
namespace {
thread_local int device_now = 0;
}

int current_device() noexcept { return device_now; }

void set_current_device(int device) {
  if (device == device_now) return;
  CUDA_CHECK(cudaSetDevice(device));
  device_now = device;
}

cudaStream_t current_stream(int) noexcept { return nullptr; }

}  // namespace cresset::cuda
