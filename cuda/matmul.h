// The products that no library has: integers, and an empty inner dimension.
#pragma once

#include "core/tensor/tensor.h"

namespace cresset::cuda {

/// c = alpha a b + beta c for integer dtypes, wrapping; arguments as MatmulKernels::bmm.
void integer_product(const Tensor& a, const Tensor& b, const Tensor& c, int64_t alpha,
                     int64_t beta);
/// c = beta c for any dtype; beta = 0 does not read c.
void scale_matrices(const Tensor& c, const Scalar& beta);

}  // namespace cresset::cuda
