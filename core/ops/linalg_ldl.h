// Factors of symmetric matrices that need not be definite: kernel table.
#pragma once

#include "core/ops/launch.h"

namespace cresset {

/// Contiguous batches [B, n, n] of float32, float64, complex64 or complex128, of which the lower
/// triangle counts; `pivots` (int32, [B, n]) are LAPACK's.
struct LdlKernels {
  /// A = P L D L^T P^T in place (L^H where `hermitian`), D of 1 x 1 and 2 x 2 blocks; info (int32,
  /// [B]) = the first block that is 0, from 1, or 0.
  void (*factor)(const Tensor& a, const Tensor& pivots, const Tensor& info, bool hermitian);
  /// b [B, n, k] becomes the solution of A x = b.
  void (*solve)(const Tensor& a, const Tensor& pivots, const Tensor& b, bool hermitian);
};

}  // namespace cresset
