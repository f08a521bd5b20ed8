// What the operators that make tensors share: their options.
#pragma once

#include "core/ops/ops.h"

namespace cresset::ops {

/// The options of a new tensor, with the default dtype on the CPU where none are given.
Options resolve(std::optional<DType> dtype, std::optional<Device> device);
/// The same, with those of `x` where none are given.
Options resolve(const Tensor& x, std::optional<DType> dtype, std::optional<Device> device);
Tensor with_grad(Tensor t, bool requires_grad);

}  // namespace cresset::ops
