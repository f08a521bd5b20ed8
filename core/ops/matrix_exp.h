// The matrix exponential: kernel table.
#pragma once

#include "core/ops/launch.h"

namespace cresset {

/// Contiguous batches of square matrices [B, n, n] of float32, float64, complex64 or complex128.
struct MatrixExpKernels {
  void (*matrix_exp)(const Tensor& x, const Tensor& y);
};

}  // namespace cresset
