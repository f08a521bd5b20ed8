// Reductions: the kernel table, and the operators that other families use.
#pragma once

#include "core/ops/launch.h"
#include "core/ops/operand.h"

namespace cresset {

enum class ReduceOp : uint8_t {
  Sum,
  NanSum,  // NaN counts as 0
  Prod,
  Max,
  Min,
  Nonzero,  // how many elements differ from 0
  Any,
  All,
  Norm,        // (sum of |x|^p)^(1/p), with p = 0, infinity and -infinity
  Deviations,  // sum of |x - center|^2
};

/// One reduction of `x` over the sorted dims `over` into the contiguous `y`. Sum, NanSum, Prod of
/// integers give int64; Nonzero gives int64; Any and All give bool or uint8; Norm and Deviations
/// give the real dtype; the others give the dtype of x.
struct ReduceCall {
  ReduceOp op;
  const Tensor* x;
  const Tensor* y;
  std::span<const int64_t> over;
  double p = 2;
  double divisor = 1;              ///< of Sum and Deviations of floating and complex dtypes
  const Tensor* center = nullptr;  ///< contiguous, one element per output
};

struct ReduceKernels {
  void (*reduce)(const ReduceCall& call);
  /// First position of the largest (or smallest) element along dim, NaN above all; `values` may
  /// be undefined.
  void (*extreme)(const Tensor& x, int64_t dim, bool largest, const Tensor& values,
                  const Tensor& indices);
};

namespace ops {

/// Wraps, checks and sorts dims; none means all. A 0-d tensor has nothing to reduce over.
Dims reduction_dims(const char* op, const Tensor& x, const std::optional<Dims>& dims);
/// The shape left after reducing sorted dims.
Dims reduced_sizes(const Tensor& x, const Dims& over, bool keepdim);
/// Product of the sizes of the reduced dims.
int64_t reduced_numel(const Tensor& x, const Dims& over);
/// A reduced tensor as a view of the unreduced shape.
Tensor expand_reduced(const Tensor& r, const Dims& sizes, const Dims& over, bool keepdim);
/// A reduction by its kind, the dtype of the result, and what ReduceCall has beside these.
struct ReduceSpec {
  ReduceOp kind;
  DType dtype;
  bool keepdim = false;
  double p = 2;
  double divisor = 1;
  const Tensor* center = nullptr;
};
/// Runs a reduction without recording.
Tensor reduce_raw(const char* op, const Tensor& x, const Dims& over, const ReduceSpec& spec);

Tensor mean(const Tensor& x, const std::optional<Dims>& dims, bool keepdim,
            std::optional<DType> dtype);
Tensor prod(const Tensor& x, std::optional<int64_t> dim, bool keepdim, std::optional<DType> dtype);
Tensor amax(const Tensor& x, const std::optional<Dims>& dims, bool keepdim);
Tensor amin(const Tensor& x, const std::optional<Dims>& dims, bool keepdim);
std::tuple<Tensor, Tensor> max_dim(const Tensor& x, int64_t dim, bool keepdim);
std::tuple<Tensor, Tensor> min_dim(const Tensor& x, int64_t dim, bool keepdim);
Tensor argmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim);
Tensor argmin(const Tensor& x, std::optional<int64_t> dim, bool keepdim);
Tensor any(const Tensor& x, const std::optional<Dims>& dims, bool keepdim);
Tensor all(const Tensor& x, const std::optional<Dims>& dims, bool keepdim);
Tensor logsumexp(const Tensor& x, const std::optional<Dims>& dims, bool keepdim);
/// Variance over dims; `correction` 1 when not given.
Tensor var(const Tensor& x, const std::optional<Dims>& dims,
           const std::optional<Scalar>& correction, bool keepdim);
Tensor std(const Tensor& x, const std::optional<Dims>& dims,
           const std::optional<Scalar>& correction, bool keepdim);
Tensor vector_norm(const Tensor& x, const Scalar& ord, const std::optional<Dims>& dims,
                   bool keepdim, std::optional<DType> dtype);

/// Zeros of `size` along dim to which g is added at `indices`.
Tensor spread_along(const Tensor& g, const Tensor& indices, int64_t dim, int64_t size);

}  // namespace ops
}  // namespace cresset
