// Softmax, log-softmax and softmin along a dim.
#include "core/ops/softmax.h"

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/ops/wide.h"

namespace cresset::ops {
namespace {

Tensor softmax_backward(bool logarithm, const Tensor& g, const Tensor& y, int64_t dim) {
  if (!grad_enabled()) {
    Tensor dx = empty(y.sizes(), options_of(y));
    launch(logarithm ? "log_softmax" : "softmax", y.device(), &SoftmaxKernels::backward, logarithm,
           contiguous(g), contiguous(y), dim, dx);
    return dx;
  }
  const Dims over{dim};
  if (logarithm) return sub(g, mul(exp(y), sum(g, over, true, std::nullopt)));
  return mul(y, sub(g, sum(mul(g, y), over, true, std::nullopt)));
}

Tensor normalized(const char* op, const char* node, bool logarithm, const Tensor& input,
                  int64_t dim, std::optional<DType> dtype) {
  Tensor x = dtype ? to_dtype(input, *dtype) : input;
  CHECK(x.is_floating(), DType, op, ": expected a floating dtype, got ", x.dtype());
  const int64_t d = wrap_dim(op, dim, x.dim());
  if (needs_widening(x.dtype(), x.device()))
    return to_dtype(normalized(op, node, logarithm, to_dtype(x, DType::Float32), d, std::nullopt),
                    x.dtype());
  Tensor y = empty(x.sizes(), options_of(x));
  {
    GradMode off(false);
    launch(op, x.device(), &SoftmaxKernels::forward, logarithm, contiguous(x), d, y);
  }
  if (wants_grad(x))
    record(node, y, inputs(x), [y = save_output(y), logarithm, d](Backward& b) {
      Tensor out = b(y);
      b[0] = softmax_backward(logarithm, b.grad(), out, d);
    });
  return y;
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return normalized("softmax", "SoftmaxBackward0", false, x, dim, dtype);
}

Tensor log_softmax(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return normalized("log_softmax", "LogSoftmaxBackward0", true, x, dim, dtype);
}

namespace {

Tensor softmin(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return softmax(neg(dtype ? to_dtype(x, *dtype) : x), dim, std::nullopt);
}

}  // namespace

OP_TABLE(softmax) = {
    op<softmax>("softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
                "torch method nn special", "Exponentials divided by their sum along a dim."),
    op<log_softmax>("log_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
                    "torch method nn special", "Logarithm of the softmax along a dim."),
    op<softmin>("softmin(Tensor input, int dim, ScalarType? dtype=None) -> Tensor", "nn",
                "Softmax of the negative along a dim."),
};
OP_TABLE_END(softmax);

}  // namespace cresset::ops
