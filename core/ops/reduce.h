// Kernel table of the reductions.
#pragma once

#include "core/ops/launch.h"

namespace cresset {

struct ReduceKernels {
  /// y[i] = sum of row i; `rows` is contiguous, y.numel() rows of equal length.
  void (*sum_rows)(const Tensor& rows, const Tensor& y);
};

}  // namespace cresset
