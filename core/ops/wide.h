// Which dtype a family's kernels compute 16-bit floats in.
#pragma once

#include "core/tensor/tensor.h"

namespace cresset::ops {

/// GPU kernels take 16-bit floats as they are; elsewhere they are widened to float32 first.
inline bool needs_widening(DType dtype, Device device) {
  return itemsize(dtype) == 2 && is_floating(dtype) && device.type != DeviceType::CUDA;
}
inline DType wide_dtype(DType dtype, Device device) {
  return needs_widening(dtype, device) ? DType::Float32 : dtype;
}
/// The dtype of statistics beside x: float32 for 16-bit floats everywhere.
inline DType statistics_dtype(const Tensor& x) {
  return itemsize(x.dtype()) == 2 && x.is_floating() ? DType::Float32 : x.dtype();
}

}  // namespace cresset::ops
