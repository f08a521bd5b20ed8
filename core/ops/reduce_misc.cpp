// Reductions made of others: log-sum-exp, integrals by trapezoids, traces, comparisons.
#include <cmath>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/ops/reduce.h"
#include "core/ops/scan.h"

namespace cresset::ops {
namespace {

Tensor to_floating(const Tensor& x) {
  return x.is_floating() || x.is_complex() ? x : to_dtype(x, default_dtype());
}

}  // namespace

Tensor logsumexp(const Tensor& input, const std::optional<Dims>& dims, bool keepdim) {
  Tensor x = to_floating(input);
  Dims over = reduction_dims("logsumexp", x, dims);
  Tensor y;
  {
    GradMode off(false);
    if (x.numel() == 0) {
      y = log(sum(exp(x), over, keepdim, std::nullopt));
    } else {
      Tensor high = amax(to_dtype(x, to_real(x.dtype())), over, true);
      // Infinite rows are left to exp and log.
      high = where(row(Row::isinf, {high}), 0.0, high);
      Tensor total = sum(exp(sub(x, high)), over, keepdim, std::nullopt);
      y = add(log(total), keepdim ? high : reshape(high, total.sizes()));
    }
  }
  if (wants_grad(x))
    record("LogsumexpBackward0", y, inputs(x),
           [x = save(x), y = save_output(y), over, keepdim](Backward& b) {
             Tensor in = b(x);
             Tensor wide = expand_reduced(b(y), in.sizes(), over, keepdim);
             Tensor g = expand_reduced(b.grad(), in.sizes(), over, keepdim);
             // Divided by their sum, the shares of equal elements are exactly equal.
             Tensor share = exp(sub(in, wide));
             b[0] = mul(g, conj(div(share, sum(share, over, true, std::nullopt))));
           });
  return y;
}

namespace {

Tensor logsumexp_op(const Tensor& x, const Dims& dim, bool keepdim) {
  return logsumexp(x, dim, keepdim);
}

// Distances between neighbours along dim, shaped to broadcast with y.
Tensor spacings(const char* op, const Tensor& x, const Tensor& y, int64_t dim) {
  if (x.dim() == 1) {
    CHECK(x.size(0) == y.size(dim), Shape, op, ": expected ", y.size(dim), " points x, got ",
          x.size(0));
    Tensor d = sub(slice(x, 0, 1, std::nullopt, 1), slice(x, 0, 0, -1, 1));
    Dims shape(static_cast<size_t>(y.dim()), 1);
    shape[dim] = d.size(0);
    return reshape(d, shape);
  }
  Tensor wide = x;
  while (wide.dim() < y.dim()) wide = unsqueeze(wide, 0);
  const int64_t d = dim + wide.dim() - y.dim();
  return sub(slice(wide, d, 1, std::nullopt, 1), slice(wide, d, 0, -1, 1));
}

Tensor neighbour_sums(const Tensor& y, int64_t dim) {
  return add(slice(y, dim, 1, std::nullopt, 1), slice(y, dim, 0, -1, 1));
}

int64_t check_trapezoid(const char* op, const Tensor& y, int64_t dim) {
  CHECK(y.dtype() != DType::Bool, DType, op, ": bool is not supported");
  CHECK(y.dim() > 0, Shape, op, ": expected at least 1 dim, got a 0-d tensor");
  return wrap_dim(op, dim, y.dim());
}

Tensor trapezoid(const Tensor& y, const std::optional<Tensor>& x, const Scalar& dx, int64_t dim) {
  const int64_t d = check_trapezoid("trapezoid", y, dim);
  if (y.size(d) == 0) return sum(to_floating(y), Dims{d}, false, std::nullopt);
  if (x) {
    Tensor areas = mul(neighbour_sums(y, d), spacings("trapezoid", *x, y, d));
    return div(sum(areas, Dims{d}, false, std::nullopt), 2.0);
  }
  Tensor ends = mul(add(select(y, d, 0), select(y, d, -1)), 0.5);
  return mul(sub(sum(y, Dims{d}, false, std::nullopt), ends), Operand(dx));
}

Tensor cumulative_trapezoid(const Tensor& y, const std::optional<Tensor>& x, const Scalar& dx,
                            int64_t dim) {
  const int64_t d = check_trapezoid("cumulative_trapezoid", y, dim);
  if (x) {
    Tensor areas = mul(neighbour_sums(y, d), spacings("cumulative_trapezoid", *x, y, d));
    return div(cumsum(areas, d - y.dim() + areas.dim(), std::nullopt), 2.0);
  }
  return mul(cumsum(neighbour_sums(y, d), d, std::nullopt),
             dx.is_complex() ? Operand(Scalar(dx.to_complex() / 2.0)) : dx.to_double() / 2);
}

Tensor trace(const Tensor& x) {
  CHECK(x.dim() == 2, Shape, "trace: expected a matrix, got shape ", x.sizes());
  const int64_t n = std::min(x.size(0), x.size(1));
  const Dims sizes{n}, strides{x.stride(0) + x.stride(1)};
  Tensor diagonal = alias(x, sizes, strides, x.offset());
  Tensor y = sum(diagonal, std::nullopt, false, std::nullopt);
  if (wants_grad(x))
    record("TraceBackward0", y, inputs(x), [shape = x.sizes(), n](Backward& b) {
      Tensor whole = zeros(shape, options_of(b.grad()));
      Tensor diagonal = as_strided(whole, Dims{n}, Dims{shape[1] + 1}, 0);
      copy_(diagonal, b.grad());
      b[0] = whole;
    });
  return y;
}

// ---- comparisons

bool is_true(const char* op, const Tensor& flag) {
  CHECK(!flag.is_meta(), Device, op, ": a meta tensor has no values");
  return *on_host(flag).data<bool>();
}

void check_same(const char* op, const Tensor& a, const Tensor& b) {
  CHECK(a.dtype() == b.dtype(), DType, op, ": expected tensors of one dtype, got ", a.dtype(),
        " and ", b.dtype());
  CHECK(a.device() == b.device(), Device, op, ": expected tensors on one device, got ", a.device(),
        " and ", b.device());
}

bool equal(const Tensor& a, const Tensor& b) {
  GradMode off(false);
  check_same("equal", a, b);
  if (!(a.sizes() == b.sizes())) return false;
  return is_true("equal", all(eq(a, b), std::nullopt, false));
}

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  GradMode off(false);
  check_same("isclose", a, b);
  CHECK(rtol >= 0, Value, "isclose: expected rtol >= 0, got ", rtol);
  CHECK(atol >= 0, Value, "isclose: expected atol >= 0, got ", atol);
  Tensor close = eq(a, b);
  if (equal_nan && (a.is_floating() || a.is_complex())) {
    Tensor both = row(Row::logical_and, {row(Row::isnan, {a}), row(Row::isnan, {b})});
    close = row(Row::logical_or, {close, both});
  }
  if (rtol == 0 && atol == 0) return close;
  Tensor x = to_floating(a), y = to_floating(b);
  Tensor allowed = add(row(Row::abs, {mul(y, rtol)}), atol);
  Tensor actual = row(Row::abs, {sub(x, y)});
  Tensor near =
      row(Row::logical_and, {row(Row::isfinite, {actual}), row(Row::le, {actual, allowed})});
  return row(Row::logical_or, {close, near});
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  GradMode off(false);
  return is_true("allclose", all(isclose(a, b, rtol, atol, equal_nan), std::nullopt, false));
}

}  // namespace

OP_TABLE(reduce_misc) = {
    op<logsumexp_op>("logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
                     "torch method special", "Logarithm of the sum of exponentials over dims."),
    op<trapezoid>("trapezoid(Tensor y, Tensor? x=None, *, Scalar dx=1, int dim=-1) -> Tensor",
                  "torch", "Integral along a dim by the trapezoidal rule."),
    op<trapezoid>("trapz(Tensor y, Tensor? x=None, *, Scalar dx=1, int dim=-1) -> Tensor", "torch",
                  "Integral along a dim by the trapezoidal rule."),
    op<cumulative_trapezoid>("cumulative_trapezoid(Tensor y, Tensor? x=None, *, Scalar dx=1, "
                             "int dim=-1) -> Tensor",
                             "torch", "Running integral along a dim by the trapezoidal rule."),
    op<trace>("trace(Tensor self) -> Tensor", "torch method", "Sum of the diagonal of a matrix."),
    op<equal>("equal(Tensor self, Tensor other) -> bool", "torch method",
              "Whether two tensors have the same shape and elements."),
    op<isclose>("isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
                "bool equal_nan=False) -> Tensor",
                "torch method", "Where |a - b| <= atol + rtol |b|."),
    op<allclose>("allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
                 "bool equal_nan=False) -> bool",
                 "torch method", "Whether |a - b| <= atol + rtol |b| everywhere."),
};
OP_TABLE_END(reduce_misc);

}  // namespace cresset::ops
