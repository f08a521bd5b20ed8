// Small dense linear algebra: what its operators and other families share.
#pragma once

#include "core/ops/launch.h"
#include "core/ops/operand.h"

namespace cresset::ops {

/// Throws Shape naming `op` unless x is a batch of square matrices.
void check_square(const char* op, const Tensor& x);
/// Identity matrices of x's shape.
Tensor identity_like(const Tensor& x);
Tensor linalg_inv(const Tensor& x);

}  // namespace cresset::ops
