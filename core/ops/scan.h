// Running sums, products and extremes along a dim: kernel table, and what other families use.
#pragma once

#include "core/ops/launch.h"
#include "core/ops/operand.h"

namespace cresset {

enum class ScanOp : uint8_t { Sum, Prod, LogSumExp };

struct ScanKernels {
  /// y = running fold of x along dim, from the end when `reverse`; both contiguous, one dtype.
  void (*scan)(ScanOp op, const Tensor& x, int64_t dim, bool reverse, const Tensor& y);
  /// r_k = a_k + b_k r_{k-1} along dim (r_{k+1} when `reverse`); all contiguous, one dtype.
  void (*recurrence)(const Tensor& a, const Tensor& b, int64_t dim, bool reverse, const Tensor& r);
  /// Running extreme and the last position that reached it; all contiguous.
  void (*extreme)(const Tensor& x, int64_t dim, bool largest, const Tensor& values,
                  const Tensor& indices);
};

namespace ops {

Tensor cumsum(const Tensor& x, int64_t dim, std::optional<DType> dtype);
/// Running product along dim, from the end when `reverse`; differentiable any number of times.
Tensor cumprod_along(const Tensor& x, int64_t dim, bool reverse);
Tensor cumsum_along(const Tensor& x, int64_t dim, bool reverse);
/// r_k = a_k + b_k r_{k-1} along dim (r_{k+1} when `reverse`).
Tensor recurrence(const Tensor& a, const Tensor& b, int64_t dim, bool reverse);
/// y_k = x_{k - by} along dim for by = 1 or -1, with `fill` where there is no such element.
Tensor shifted(const Tensor& x, int64_t dim, int64_t by, double fill);

}  // namespace ops
}  // namespace cresset
