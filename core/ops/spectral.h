// Eigenvalues and singular values: kernel table, and what other families use.
#pragma once

#include "core/ops/launch.h"
#include "core/ops/norms.h"

namespace cresset {

/// Contiguous batches of finite matrices of float64 or complex128; values are float64.
struct SpectralKernels {
  /// Hermitian a [B, n, n], of which one triangle is read: values [B, n] ascending and unit vectors
  /// [B, n, n] as columns.
  void (*eigh)(const Tensor& a, bool upper, const Tensor& values, const Tensor& vectors);
  /// a [B, m, n] = u [B, m, .] diag(s [B, min(m, n)], descending) vh [B, ., n]; . is min(m, n) or
  /// the other size, for which the columns of u (rows of vh) are completed to a basis.
  void (*svd)(const Tensor& a, const Tensor& u, const Tensor& s, const Tensor& vh);
  /// a, values [B, n] and unit vectors [B, n, n] as columns, all complex128; info (int32, [B]) is 1
  /// where the iteration did not converge.
  void (*eig)(const Tensor& a, const Tensor& values, const Tensor& vectors, const Tensor& info);
};

namespace ops {

/// U, S, V^H with min(m, n) singular values.
std::tuple<Tensor, Tensor, Tensor> linalg_svd(const Tensor& x, bool full_matrices);
Tensor linalg_svdvals(const Tensor& x);
/// Eigenvalues and eigenvectors of Hermitian matrices, of which one triangle is read.
std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& x, bool upper);
/// Norms of the last two dims by their singular values: nuclear, 2 or -2.
Tensor singular_norm(const Tensor& x, NormKind kind, double ord, bool keepdim);

}  // namespace ops
}  // namespace cresset
