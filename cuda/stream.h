// The calling thread's current device, and its current stream on each device.
#pragma once

#include <cuda_runtime_api.h>

namespace cresset::cuda {

int current_device() noexcept;
/// Makes a device current for the CUDA runtime too; cheap when it is already.
void set_current_device(int device);
/// The stream that work for a device goes to; the legacy default stream until another is chosen.
cudaStream_t current_stream(int device) noexcept;
inline cudaStream_t current_stream() noexcept { return current_stream(current_device()); }

}  // namespace cresset::cuda
