// Kernel table of sorting and selecting within rows, and what other families use of it.
#pragma once

#include "core/ops/launch.h"
#include "core/ops/operand.h"

namespace cresset {

/// The k-th smallest; the lower median, NaN where there is one; that of what is not NaN.
enum class Selection : uint8_t { Rank, Median, NanMedian };

/// Rows are the last dim of contiguous tensors; indices are int64. NaN is larger than all numbers.
struct SortKernels {
  void (*sort)(const Tensor& x, bool descending, bool stable, const Tensor& values,
               const Tensor& indices);
  /// The first k of each row in sorted order.
  void (*topk)(const Tensor& x, bool largest, const Tensor& values, const Tensor& indices);
  /// One element of each row; k, from 0, is for the rank alone.
  void (*select)(const Tensor& x, Selection rule, int64_t k, const Tensor& values,
                 const Tensor& indices);
  /// The most frequent element of each row, the smallest of equals, and its last place.
  void (*mode)(const Tensor& x, const Tensor& values, const Tensor& indices);
};

namespace ops {
std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending, bool stable);
}  // namespace ops

}  // namespace cresset
