// Small dense linear algebra: kernel table, and what its operators and other families share.
#pragma once

#include "core/ops/launch.h"
#include "core/ops/operand.h"

namespace cresset {

/// Matrices are contiguous batches [B, m, n] of float32, float64, complex64 or complex128;
/// `pivots` (int32, [B, min(m, n)], from 1) and `info` (int32, [B]) are LAPACK's.
struct LinalgKernels {
  /// P L U in place, with or without row exchanges; info = the first zero pivot, from 1, or 0.
  void (*lu)(const Tensor& a, const Tensor& pivots, const Tensor& info, bool exchange);
  /// The lower factor in place, zeros above; info = the first minor that is not positive.
  void (*cholesky)(const Tensor& a, const Tensor& info);
  /// b [B, n, k] becomes the solution of a x = b for a triangle of a [B, n, n].
  void (*solve_triangular)(const Tensor& a, const Tensor& b, bool upper, bool unit);
  /// The row order [B, m] (int64) that the exchanges of `pivots` lead to.
  void (*row_order)(const Tensor& pivots, const Tensor& order);
  /// Householder reflectors below R in place, tau [B, min(m, n)].
  void (*qr)(const Tensor& a, const Tensor& tau);
  /// q [B, m, k] = the first k columns of the product of the reflectors in a [B, m, n].
  void (*reflect)(const Tensor& a, const Tensor& tau, const Tensor& q);
  /// det [B], its sign [B] and log |det| [B] (real) from LU factors [B, n, n].
  void (*determinant)(const Tensor& lu, const Tensor& pivots, const Tensor& det, const Tensor& sign,
                      const Tensor& log_abs);
};

namespace ops {

/// The sizes before the last `drop` dims.
inline Dims batch_of(const Tensor& x, size_t drop = 2) {
  return Dims(std::span<const int64_t>(x.sizes().data(), x.sizes().size() - drop));
}
/// Sizes followed by more.
inline Dims with(Dims sizes, std::initializer_list<int64_t> more) {
  sizes.append(more.begin(), more.size());
  return sizes;
}

/// Throws Shape naming `op` unless x is a batch of square matrices.
void check_square(const char* op, const Tensor& x);
/// Throws DType naming `op` unless x is of float32, float64, complex64 or complex128.
void check_linalg_dtype(const char* op, const Tensor& x);
/// Identity matrices of x's shape.
Tensor identity_like(const Tensor& x);

/// Packed LU factors, pivots and info.
std::tuple<Tensor, Tensor, Tensor> lu_factor(const char* op, const Tensor& x, bool pivot);
/// X with A X = B (or A^H X = B, or X A = B) from A's LU factors.
Tensor linalg_lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left,
                       bool transposed);
Tensor linalg_solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left,
                               bool unitriangular);
Tensor linalg_inv(const Tensor& x);
/// Inverses, and a number that is not 0 where a matrix is singular.
std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& x, bool check_errors);
/// Q of the reduced QR factors.
Tensor orthonormal_columns(const Tensor& x);
/// Throws Value where a factorization failed: `info` names the first pivot of a matrix.
void check_info(const char* op, const Tensor& info, const char* what);

}  // namespace ops
}  // namespace cresset
