// The elementwise engine: one entry for every row, forward, in place and backward.
#pragma once

#include "core/cpu/loops.h"
#include "core/ops/launch.h"
#include "core/ops/operand.h"

namespace cresset {

/// One run of a row's loop over broadcast operands.
struct RowCall {
  Row row;
  int derivative = -1;  ///< which derivative, or -1 for the forward formula
  Compute compute = Compute::F32;
  const double* params = nullptr;
  std::span<const Operand* const> in;  ///< in the loop's order; null where not read
  const Tensor* out = nullptr;
  /// Inputs and output are row-major tensors of one shape and of the compute type.
  bool uniform = false;
};

struct ElementwiseKernels {
  void (*row)(const RowCall& call);
  /// Copies `src`, broadcast and cast, into `dst`.
  void (*copy)(const Operand& src, const Tensor& dst);
};

namespace ops {

/// Runs a row out of place. `params` are its members, in order.
Tensor elementwise(Row row, const Operands& in, std::span<const double> params);
/// Runs a row into `self`, which is also its first input.
void elementwise_(Row row, const Tensor& self, std::span<const Operand> rest,
                  std::span<const double> params);

/// The dtype that a row computes its result in, by the row's class and PyTorch's promotion.
CRESSET_API DType result_dtype(const char* op, DTypeClass cls, const Operands& in);
CRESSET_API Compute compute_for(DType dtype);

}  // namespace ops

/// Shape of the broadcast of two shapes. Throws Shape naming `op`.
CRESSET_API Dims broadcast_shapes(const char* op, std::span<const int64_t> a,
                                  std::span<const int64_t> b);

}  // namespace cresset
