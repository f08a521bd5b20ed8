// Running sums, products and extremes along a dim.
#include "core/ops/scan.h"

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/ops/reduce.h"

namespace cresset::ops {
namespace {

Tensor scan_raw(const char* op, ScanOp kind, const Tensor& x, int64_t dim, bool reverse) {
  GradMode off(false);
  Tensor y = empty(x.sizes(), options_of(x));
  launch(op, x.device(), &ScanKernels::scan, kind, contiguous(x), dim, reverse, y);
  return y;
}

// The wrapped dim, and the input in the dtype that the result has.
Tensor prepare(const char* op, const Tensor& x, int64_t& dim, std::optional<DType> dtype) {
  dim = wrap_dim(op, dim, x.dim());
  if (dtype) return to_dtype(x, *dtype);
  return is_integral(x.dtype(), true) ? to_dtype(x, DType::Int64) : x;
}

}  // namespace

Tensor cumsum_along(const Tensor& x, int64_t dim, bool reverse) {
  if (x.dim() == 0) return clone(x, std::nullopt);
  Tensor y = scan_raw("cumsum", ScanOp::Sum, x, dim, reverse);
  if (wants_grad(x))
    record("CumsumBackward0", y, inputs(x),
           [dim, reverse](Backward& b) { b[0] = cumsum_along(b.grad(), dim, !reverse); });
  return y;
}

Tensor shifted(const Tensor& x, int64_t dim, int64_t by, double fill) {
  Tensor y = full(x.sizes(), Scalar(fill), options_of(x));
  const int64_t n = x.size(dim);
  if (n < 2) return y;
  Tensor to = slice(y, dim, by > 0 ? 1 : 0, by > 0 ? n : n - 1, 1);
  copy_(to, slice(x, dim, by > 0 ? 0 : 1, by > 0 ? n - 1 : n, 1));
  return y;
}

Tensor recurrence(const Tensor& a, const Tensor& b, int64_t dim, bool reverse) {
  Tensor r = empty(a.sizes(), options_of(a));
  {
    GradMode off(false);
    launch("recurrence", a.device(), &ScanKernels::recurrence, contiguous(a), contiguous(b), dim,
           reverse, r);
  }
  if (wants_grad(a, b))
    record("RecurrenceBackward0", r, inputs(a, b),
           [factors = save(b), r = save_output(r), dim, reverse](Backward& b) {
             const int64_t step = reverse ? -1 : 1;
             Tensor next = conj(shifted(b(factors), dim, -step, 0));
             Tensor s = recurrence(b.grad(), next, dim, !reverse);
             b[0] = s;
             if (b.needs(1)) b[1] = mul(s, conj(shifted(b(r), dim, step, 0)));
           });
  return r;
}

// With S_k = g_k + x_{k+1} S_{k+1}, the gradient is S_k times the product of what precedes x_k: no
// division, so zeros do no harm.
Tensor cumprod_along(const Tensor& x, int64_t dim, bool reverse) {
  if (x.dim() == 0) return clone(x, std::nullopt);
  Tensor y = scan_raw("cumprod", ScanOp::Prod, x, dim, reverse);
  if (wants_grad(x))
    record("CumprodBackward0", y, inputs(x),
           [x = save(x), y = save_output(y), dim, reverse](Backward& b) {
             const int64_t step = reverse ? -1 : 1;
             Tensor next = conj(shifted(b(x), dim, -step, 0));
             Tensor s = recurrence(b.grad(), next, dim, !reverse);
             b[0] = mul(s, conj(shifted(b(y), dim, step, 1)));
           });
  return y;
}

Tensor cumsum(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  Tensor in = prepare("cumsum", x, dim, dtype);
  return cumsum_along(in, dim, false);
}

namespace {

Tensor cumprod(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  Tensor in = prepare("cumprod", x, dim, dtype);
  return cumprod_along(in, dim, false);
}

Tensor& cumsum_(Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return copy_(self, cumsum(self, dim, dtype));
}

Tensor& cumprod_(Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return copy_(self, cumprod(self, dim, dtype));
}

// dx_k = sum over i >= k of g_i exp(x_k - y_i). The sum is a recurrence whose factors
// exp(y_k - y_{k+1}) are at most 1, as y grows.
Tensor logcumsumexp_backward(const Tensor& g, const Tensor& x, const Tensor& y, int64_t dim) {
  auto difference = [](const Tensor& a, const Tensor& b) {
    return where(eq(a, b), 0.0, sub(a, b));
  };
  Tensor next = shifted(y, dim, -1, 0);
  Tensor s = recurrence(g, conj(exp(difference(y, next))), dim, true);
  return mul(s, conj(exp(difference(x, y))));
}

Tensor logcumsumexp(const Tensor& x, int64_t dim) {
  const int64_t d = wrap_dim("logcumsumexp", dim, x.dim());
  CHECK(x.is_floating() || x.is_complex(), DType,
        "logcumsumexp: expected a floating or complex dtype, got ", x.dtype());
  if (x.dim() == 0) return clone(x, std::nullopt);
  Tensor y = scan_raw("logcumsumexp", ScanOp::LogSumExp, x, d, false);
  if (wants_grad(x))
    record("LogcumsumexpBackward0", y, inputs(x),
           [x = save(x), y = save_output(y), d](Backward& b) {
             b[0] = logcumsumexp_backward(b.grad(), b(x), b(y), d);
           });
  return y;
}

std::tuple<Tensor, Tensor> running_extreme(const char* op, const char* node, bool largest,
                                           const Tensor& x, int64_t dim) {
  const int64_t d = wrap_dim(op, dim, x.dim());
  CHECK(!x.is_complex(), DType, op, ": complex numbers have no order, got dtype ", x.dtype());
  Tensor values = empty(x.sizes(), options_of(x));
  Tensor at = empty(x.sizes(), {DType::Int64, x.device()});
  {
    GradMode off(false);
    launch(op, x.device(), &ScanKernels::extreme, contiguous(x), d, largest, values, at);
  }
  if (wants_grad(x)) {
    auto backward = [at = save(at), d](Backward& b) {
      Tensor g = b.grad();
      b[0] = g.dim() ? spread_along(g, b(at), d, g.size(d)) : g;
    };
    record(node, values, inputs(x), backward);
  }
  return {values, at};
}

std::tuple<Tensor, Tensor> cummax(const Tensor& x, int64_t dim) {
  return running_extreme("cummax", "CummaxBackward0", true, x, dim);
}
std::tuple<Tensor, Tensor> cummin(const Tensor& x, int64_t dim) {
  return running_extreme("cummin", "CumminBackward0", false, x, dim);
}

}  // namespace

OP_TABLE(scan) = {
    op<cumsum>("cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor", "torch method",
               "Running sum along a dim."),
    op<cumsum_>("cumsum_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)",
                "method", "Running sum along a dim, in place."),
    op<cumprod>("cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
                "torch method", "Running product along a dim."),
    op<cumprod_>("cumprod_(Tensor(a!) self, int dim, *, ScalarType? dtype=None) -> Tensor(a!)",
                 "method", "Running product along a dim, in place."),
    op<logcumsumexp>("logcumsumexp(Tensor self, int dim) -> Tensor", "torch method",
                     "Logarithm of the running sum of exponentials along a dim."),
    op<cummax>("cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)", "torch method",
               "Running maximum along a dim, and where it is."),
    op<cummin>("cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)", "torch method",
               "Running minimum along a dim, and where it is."),
};
OP_TABLE_END(scan);

}  // namespace cresset::ops
