// The matrix exponential.
#include "core/ops/matrix_exp.h"

#include "core/dispatch/op.h"
#include "core/ops/linalg.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"

namespace cresset::ops {
namespace {

Tensor matrix_exp(const Tensor& x) {
  const char* op = "linalg.matrix_exp";
  check_square(op, x);
  check_linalg_dtype(op, x);
  const int64_t n = x.size(-1);
  Tensor y = empty(x.sizes(), options_of(x));
  {
    GradMode off(false);
    Dims flat{-1, n, n};
    if (x.numel() > 0)
      launch(op, x.device(), &MatrixExpKernels::matrix_exp, reshape(contiguous(x), flat),
             view(y, flat));
  }
  // Najfeld and Havel, "Derivatives of the matrix exponential" (1995): the derivative at A^H in
  // the direction G is the corner block of exp([A^H G; 0 A^H]).
  if (wants_grad(x))
    record("LinalgMatrixExpBackward0", y, inputs(x), [x = save(x), n](Backward& b) {
      Tensor a = adjoint(b(x));
      Tensor upper = cat({a, b.grad()}, -1), lower = cat({zeros_like(a), a}, -1);
      b[0] = narrow(narrow(matrix_exp(cat({upper, lower}, -2)), -2, 0, n), -1, n, n);
    });
  return y;
}

}  // namespace

OP_TABLE(matrix_exp) = {
    op<matrix_exp>("matrix_exp(Tensor self) -> Tensor", "torch method",
                   "The sum of the powers A^k / k! of square matrices."),
    op<matrix_exp>("linalg_matrix_exp(Tensor A) -> Tensor", "linalg",
                   "The sum of the powers A^k / k! of square matrices."),
};
OP_TABLE_END(matrix_exp);

}  // namespace cresset::ops
