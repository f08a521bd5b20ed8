// The kernel that finds extremes along one dim.
#pragma once

#include "core/tensor/tensor.h"

namespace cresset::reduce_arg {

void extreme(const Tensor& x, int64_t dim, bool largest, const Tensor& values,
             const Tensor& indices);

}  // namespace cresset::reduce_arg
