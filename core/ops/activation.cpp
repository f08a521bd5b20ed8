// Activations that are more than one elementwise row, and checks that rows do not make.
#include "core/ops/activation.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"

namespace cresset::ops {

Tensor gelu(const Tensor& x, Approximate approximate) {
  return row(approximate == Approximate::tanh ? Row::gelu_tanh : Row::gelu, {x});
}

Tensor glu(const Tensor& x, int64_t dim) {
  CHECK(x.dim() > 0, Shape, "glu: expected a tensor of at least 1 dim, got a 0-d one");
  int64_t d = wrap_dim("glu", dim, x.dim()), n = x.size(d);
  CHECK(n % 2 == 0, Shape, "glu: expected an even size of dim ", d, ", got shape ", x.sizes());
  return mul(narrow(x, d, 0, n / 2), row(Row::sigmoid, {narrow(x, d, n / 2, n / 2)}));
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  CHECK(weight.dim() <= 1, Shape, "prelu: expected a weight of 0 or 1 dims, got shape ",
        weight.sizes());
  CHECK(x.dtype() == weight.dtype(), DType, "prelu: expected a weight of dtype ", x.dtype(),
        ", got ", weight.dtype());
  if (weight.numel() == 1) {
    // A weight of shape [1] must not give a 0-d input a dim.
    return row(Row::prelu, {x, weight.dim() ? reshape(weight, {}) : weight});
  }
  int64_t channels = x.dim() < 2 ? 1 : x.size(1);
  CHECK(weight.numel() == channels, Shape, "prelu: expected a weight of 1 or ", channels,
        " elements for shape ", x.sizes(), ", got ", weight.numel());
  if (x.dim() == 2) return row(Row::prelu, {x, weight});
  Dims shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = channels;
  return row(Row::prelu, {x, reshape(weight, shape)});
}

Tensor positive_part(const Tensor& x) {
  return row(Row::clamp, {x, Operand(0), Operand(std::numeric_limits<double>::infinity())});
}

static void check_bounds(const char* op, double lo, double hi) {
  CHECK(lo <= hi, Value, op, ": expected min_val <= max_val, got ", lo, " and ", hi);
}
// Bounds of an integer tensor lose their fractions.
static std::array<double, 2> bounds_for(const Tensor& x, double lo, double hi) {
  if (is_integral(x.dtype(), true)) return {std::trunc(lo), std::trunc(hi)};
  return {lo, hi};
}
static Tensor hardtanh(const Tensor& x, double min_val, double max_val) {
  check_bounds("hardtanh", min_val, max_val);
  const Operand in[] = {x};
  return elementwise(Row::hardtanh, in, bounds_for(x, min_val, max_val));
}
static Tensor& hardtanh_(Tensor& x, double min_val, double max_val) {
  check_bounds("hardtanh_", min_val, max_val);
  elementwise_(Row::hardtanh, x, {}, bounds_for(x, min_val, max_val));
  return x;
}

static Tensor softshrink(const Tensor& x, double lambd) {
  CHECK(lambd >= 0, Value, "softshrink: expected lambd of at least 0, got ", lambd);
  const Operand in[] = {x};
  return elementwise(Row::softshrink, in, {&lambd, 1});
}

OP_TABLE(activation) = {
    op<gelu>("gelu(Tensor input, *, Approximate{none|tanh} approximate='none') -> Tensor", "nn",
             "x times the normal distribution function"),
    op<glu>("glu(Tensor input, int dim=-1) -> Tensor", "nn",
            "The first half of a dim times the sigmoid of the second."),
    op<prelu>("prelu(Tensor input, Tensor weight) -> Tensor", "torch nn method",
              "x where positive, else weight x; one weight, or one per channel (dim 1)."),
    op<hardtanh>("hardtanh(Tensor input, float min_val=-1, float max_val=1) -> Tensor", "private",
                 "x clamped to [min_val, max_val]"),
    op<hardtanh_>("hardtanh_(Tensor(a!) input, float min_val=-1, float max_val=1) -> Tensor(a!)",
                  "method", "hardtanh, in place"),
    op<softshrink>("softshrink(Tensor input, float lambd=0.5) -> Tensor", "nn",
                   "x moved towards 0 by lambd"),
    op<positive_part>("_positive_part(Tensor input) -> Tensor", "private", "max(0, x)"),
};
OP_TABLE_END(activation);

}  // namespace cresset::ops
