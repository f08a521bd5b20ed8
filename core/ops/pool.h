// Pooling: kernel table, and the windows that its operators are described by.
#pragma once

#include <algorithm>
#include <array>

#include "core/cpu/pool_raw.h"
#include "core/dispatch/decode.h"
#include "core/ops/launch.h"

namespace cresset {

/// The elements [lo, hi) that one result takes along an axis; `count` is what it divides by.
struct PoolWindow {
  int64_t lo, hi, count;
};

/// How the windows lie along one axis.
struct PoolAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, pad = 0, dilation = 1;
  bool adaptive = false;  ///< windows split the input as evenly as possible
  bool count_include_pad = true;

  PoolWindow window(int64_t at) const {
    if (adaptive) {
      int64_t lo = at * in / out, hi = ((at + 1) * in + out - 1) / out;
      return {lo, hi, hi - lo};
    }
    int64_t begin = at * stride - pad, end = begin + dilation * (kernel - 1) + 1;
    int64_t lo = begin < 0 ? begin + (-begin + dilation - 1) / dilation * dilation : begin;
    int64_t hi = std::max(lo, std::min(end, in));
    return {lo, hi, count_include_pad ? std::min(end, in + pad) - begin : hi - lo};
  }
};

/// Pooling of `planes` volumes [in] to [out] with any windows; lower ranks have leading ones.
struct PoolWindows {
  int64_t planes = 0;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1};
  std::array<int64_t, 3> step{1, 1, 1};  ///< between the elements of a window
  std::array<PoolAxis, 3> axis;
  int64_t divisor_override = 0;  ///< instead of the product of the counts, if not 0
  /// The same as a two-dimensional pooling with equal windows, for which there are fast kernels.
  bool regular = false;
  PoolShape shape{};
  AvgPoolDivisor divisor{};
};

/// Tensors are contiguous, of float32, float64 or int64; indices count within a plane.
struct PoolKernels {
  void (*max)(const PoolWindows& p, const Tensor& x, const Tensor& y, const Tensor& indices);
  void (*avg)(const PoolWindows& p, const Tensor& x, const Tensor& y);
  void (*avg_backward)(const PoolWindows& p, const Tensor& gy, const Tensor& gx);
  /// gx [planes, in] = gy [planes, out] added up at the indices.
  void (*scatter)(int64_t planes, const Tensor& gy, const Tensor& indices, const Tensor& gx);
  /// y [planes, out], zeroed, takes x [planes, in] at the indices; the last of equal ones stays.
  void (*place)(int64_t planes, const Tensor& x, const Tensor& indices, const Tensor& y);
};

namespace ops {

std::tuple<Tensor, Tensor> max_pool2d_with_indices(const Tensor& x, const Dims& kernel_size,
                                                   const std::optional<Dims>& stride,
                                                   const Dims& padding, const Dims& dilation,
                                                   bool ceil_mode);
Tensor avg_pool2d(const Tensor& x, const Dims& kernel_size, const std::optional<Dims>& stride,
                  const Dims& padding, bool ceil_mode, bool count_include_pad,
                  std::optional<int64_t> divisor_override);

}  // namespace ops
}  // namespace cresset
