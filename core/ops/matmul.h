// Matrix products: kernel table, and the functions that other families use.
#pragma once

#include "core/ops/launch.h"
#include "core/ops/operand.h"

namespace cresset {

struct MatmulKernels {
  /// c = alpha a b + beta c for a [m, k], b [k, n], c [m, n], or batches of them with a leading dim
  /// each: any strides for a and b (0 repeats a matrix); all of c's dtype. c is dense by rows.
  void (*bmm)(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& alpha,
              const Scalar& beta);
  /// c = a b + bias [n] in one kernel, for devices that have one; false, with nothing done, for
  /// operands that it does not serve.
  bool (*biased)(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c) = nullptr;
};

/// How many matrices a matrix or a batch holds, and how far apart they lie.
inline int64_t batch_count(const Tensor& t) { return t.dim() == 3 ? t.size(0) : 1; }
inline int64_t batch_stride(const Tensor& t) { return t.dim() == 3 ? t.stride(0) : 0; }

namespace ops {
Tensor mm(const Tensor& a, const Tensor& b);
Tensor bmm(const Tensor& a, const Tensor& b);
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias);
/// beta * self + alpha * (a @ b)
Tensor addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
             const Scalar& alpha);
/// a and b contracted over pairs of dims.
Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& dims_a, const Dims& dims_b);
Tensor outer(const Tensor& a, const Tensor& b);
Tensor matrix_power(const Tensor& x, int64_t n);

/// The transpose of the last two dims, conjugated: what a gradient is multiplied by.
Tensor adjoint(const Tensor& x);
/// The gradient of a @ b by b, laid out by columns where b is: the weight of a linear layer then
/// receives a row-major gradient without a copy.
Tensor right_gradient(const Tensor& a, const Tensor& g, const Tensor& b);
/// Throws where dtype or device of two factors of `op` differ, or where they are bool.
void check_matrices(const char* op, const Tensor& a, const Tensor& b);
/// c = alpha a b + beta c for matrices or batches, unrecorded. The CPU widens half types to
/// float32.
void matrix_product(const char* op, const Tensor& a, const Tensor& b, const Tensor& c,
                    const Scalar& alpha, const Scalar& beta);
/// Whether c = a b + bias was done by one kernel; on false nothing was. Matrices, unrecorded.
bool biased_product(const char* op, const Tensor& a, const Tensor& b, const Tensor& bias,
                    const Tensor& c);
}  // namespace ops

}  // namespace cresset
