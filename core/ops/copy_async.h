// Copies between the CPU's pinned memory and GPUs that return before they are done.
#pragma once

#include "core/ops/ops.h"

namespace cresset::ops {

/// As on_device(); on the CPU the values arrive later, in pinned memory.
Tensor on_device_async(const Tensor& x, Device device);
/// As copy_raw(), later if one side is pinned and the other on a GPU.
void copy_raw_async(const Tensor& src, const Tensor& dst);

}  // namespace cresset::ops
