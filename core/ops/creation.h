// What the operators that make tensors share: their options.
#pragma once

#include "core/ops/launch.h"
#include "core/ops/ops.h"

namespace cresset {

/// Contiguous one-dim tensors of a real dtype.
struct RangeKernels {
  /// y[i] = start + i step: of integers modulo 2^64 and then narrowed, of floats in double.
  void (*arange)(const Tensor& y, const Scalar& start, const Scalar& step);
  /// Evenly spaced numbers, counted from the nearer end as in PyTorch; powers of a given base.
  void (*spaced)(const Tensor& y, double from, double to, std::optional<double> base);
};

/// What evenly spaced numbers of T are computed in.
template <class T>
using SpacedStep =
    std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, double>, double, float>;

}  // namespace cresset

namespace cresset::ops {

/// The options of a new tensor, with the default dtype on the CPU where none are given.
Options resolve(std::optional<DType> dtype, std::optional<Device> device);
/// The same, with those of `x` where none are given.
Options resolve(const Tensor& x, std::optional<DType> dtype, std::optional<Device> device);
Tensor with_grad(Tensor t, bool requires_grad);

}  // namespace cresset::ops
