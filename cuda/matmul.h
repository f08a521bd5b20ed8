// Products without a library: integers, small ones, and an empty inner dimension.
#pragma once

#include "core/tensor/tensor.h"

namespace cresset::cuda {

/// c = alpha a b + beta c + bias for any dtype but bool, integers wrapping; arguments as those of
/// MatmulKernels, bias may be null.
void own_product(const Tensor& a, const Tensor& b, const Tensor* bias, const Tensor& c,
                 const Scalar& alpha, const Scalar& beta);
/// c = beta c for any dtype; beta = 0 does not read c.
void scale_matrices(const Tensor& c, const Scalar& beta);

}  // namespace cresset::cuda
