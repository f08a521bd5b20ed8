// Windows of the pooling operators from their arguments.
#pragma once

#include "core/ops/pool.h"

namespace cresset::ops {

/// Arguments of a pooling with equal windows, one number per spatial dim.
struct PoolArgs {
  Dims kernel, stride, padding, dilation;
  bool ceil_mode = false;
  bool count_include_pad = true;
  int64_t divisor_override = 0;
};

/// Checks the arguments and brings them to `rank` numbers; an empty stride is the kernel's size.
PoolArgs pool_args(const char* op, size_t rank, const Dims& kernel,
                   const std::optional<Dims>& stride, const Dims& padding, const Dims& dilation,
                   bool ceil_mode);

/// Checks that x has `rank` spatial dims after one or two leading ones, and elements in each but
/// the batch (and, with `leading_empty`, the channels of an unbatched input).
void check_pool_input(const char* op, const Tensor& x, size_t rank, bool leading_empty);

PoolWindows equal_windows(const char* op, const Tensor& x, const PoolArgs& a);
/// Windows that split the input into `out` parts as evenly as possible.
PoolWindows adaptive_windows(const char* op, const Tensor& x, const Dims& out);

/// x's leading dims followed by the pooled extents.
Dims pooled_sizes(const Tensor& x, const PoolWindows& p, size_t rank);

}  // namespace cresset::ops
