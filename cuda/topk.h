// The first k elements of long rows without sorting the rows.
#pragma once

#include "core/tensor/tensor.h"

namespace cresset::cuda {

/// Whether selecting is faster than sorting whole rows.
bool selects_first(int64_t rows, int64_t n, int64_t k);
/// The first k of each row in sorted order, equal ones in the order of their places; arguments as
/// in SortKernels::topk.
void select_first(const Tensor& x, bool descending, const Tensor& values, const Tensor& indices);

}  // namespace cresset::cuda
