// Matrix products: kernel table, and the functions that other families use.
#pragma once

#include "core/ops/launch.h"
#include "core/ops/operand.h"

namespace cresset {

struct MatmulKernels {
  /// c = alpha a b + beta c, batched over a leading dim: a [N, m, k], b [N, k, n], c [N, m, n] with
  /// any strides for a and b (0 repeats a matrix); all of c's dtype. c is dense by rows.
  void (*bmm)(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& alpha,
              const Scalar& beta);
};

namespace ops {
Tensor mm(const Tensor& a, const Tensor& b);
Tensor bmm(const Tensor& a, const Tensor& b);
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias);
/// beta * self + alpha * (a @ b)
Tensor addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
             const Scalar& alpha);
}  // namespace ops

}  // namespace cresset
