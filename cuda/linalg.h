// Large matrices of the linear algebra family, by cuSOLVER and cuBLAS, one after another.
#pragma once

#include "core/tensor/tensor.h"

namespace cresset::cuda {

/// Whether matrices of this size are faster one by one in the libraries than together in blocks.
bool solve_by_library(int64_t batch, int64_t rows, int64_t cols);

// Arguments as in LinalgKernels; the leading dim is the batch.
void library_lu(const Tensor& a, const Tensor& pivots, const Tensor& info);
void library_cholesky(const Tensor& a, const Tensor& info);
void library_solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool unit);
void library_qr(const Tensor& a, const Tensor& tau);
/// q has at least as many columns as there are reflectors.
void library_reflect(const Tensor& a, const Tensor& tau, const Tensor& q);

}  // namespace cresset::cuda
