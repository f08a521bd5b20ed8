// Softmax and log-softmax: kernel table, and what other families use.
#pragma once

#include "core/ops/launch.h"

namespace cresset {

/// All tensors contiguous float or double of one shape; `dim` is the normalised dim.
struct SoftmaxKernels {
  void (*forward)(bool logarithm, const Tensor& x, int64_t dim, const Tensor& y);
  /// dx from the gradient of y and y itself.
  void (*backward)(bool logarithm, const Tensor& g, const Tensor& y, int64_t dim, const Tensor& dx);
};

namespace ops {
Tensor softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype);
Tensor log_softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype);
}  // namespace ops

}  // namespace cresset
