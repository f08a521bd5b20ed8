// Changes of CUDA's per-thread state that end with a scope.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/stream.h"

namespace cresset::cuda {

/// Makes a device current for the CUDA runtime, not for the calling code.
class DeviceScope {
 public:
  explicit DeviceScope(int device) : before_(current_device()), device_(device) {
    if (device_ != before_) cudaSetDevice(device_);
  }
  ~DeviceScope() {
    if (device_ != before_) cudaSetDevice(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_, device_;
};

/// Allows calls that a capture of this thread would forbid, such as cudaMalloc.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace cresset::cuda
