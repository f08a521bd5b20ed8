// Dropout in its variants: a random mask times the input, in one recorded product.
#include <cmath>

#include "core/dispatch/op.h"
#include "core/ops/random_fills.h"

namespace cresset::ops {
namespace {

void check_rate(const char* op, double p) {
  CHECK(p >= 0 && p <= 1, Value, op, ": expected a probability in [0, 1], got ", p);
}

// 1 with probability 1 - p, else 0, in x's dtype; one number per channel for feature dropout.
Tensor keep_mask(const char* op, const Tensor& x, double p, bool per_channel) {
  GradMode off(false);
  Tensor mask;
  if (per_channel) {
    CHECK(x.dim() >= 2, Shape, op, ": expected a tensor of at least 2 dims, got shape ", x.sizes());
    Dims sizes(x.sizes().size(), 1);
    sizes[0] = x.size(0);
    sizes[1] = x.size(1);
    mask = empty(sizes, options_of(x));
  } else {
    mask = empty_in_format(op, x, options_of(x), std::nullopt);
  }
  draw_into(mask, {}, {Distribution::Bernoulli, 1 - p},
            [&](Generator& g, void* out, int64_t n, bool) {
              fill_bernoulli(g, x.dtype(), out, n, 1 - p);
            });
  return mask;
}

// On a GPU mask and product are one kernel.
std::tuple<Tensor, Tensor> fused_dropout(const Tensor& x, double keep) {
  const Tensor from = is_dense(x) ? x : clone(detach(x), std::nullopt);
  Tensor y = empty_like(from), mask = empty_like(from, DType::Bool);
  launch("dropout", x.device(), &RandomKernels::dropout, from, keep, y, mask,
         *philox_of({}, x.device()));
  return {y, mask};
}

Tensor native_dropout_backward(const Tensor& grad, const Tensor& mask, double scale) {
  return mul(mul(grad, mask), Operand(Scalar(scale)));
}

Tensor dropout_on_gpu(const Tensor& x, double p) {
  auto [y, mask] = fused_dropout(x, 1 - p);
  if (wants_grad(x))
    record("NativeDropoutBackward0", y, inputs(x),
           [mask = save(mask), scale = 1 / (1 - p)](Backward& b) {
             b[0] = native_dropout_backward(b.grad(), b(mask), scale);
           });
  return y;
}

bool is_identity(const Tensor& x, double p, bool training) {
  return p == 0 || !training || x.numel() == 0;
}

Tensor plain_dropout(const char* op, const Tensor& x, double p, bool training, bool per_channel) {
  check_rate(op, p);
  if (is_identity(x, p, training)) return x;
  CHECK(x.is_floating() || x.is_complex(), DType, op, ": expected a floating dtype, got ",
        x.dtype());
  if (p == 1) return mul(x, zeros(Dims{}, options_of(x)));
  if (x.device().is_cuda() && !per_channel && x.is_floating()) return dropout_on_gpu(x, p);
  Tensor mask = keep_mask(op, x, p, per_channel);
  {
    GradMode off(false);
    mul_(mask, div(ones(Dims{}, options_of(x)), Operand(Scalar(1 - p))));
  }
  return mul(x, mask);
}

// Dropped values become the negative saturation of selu; a and b restore mean and variance.
Tensor alpha_dropout_of(const char* op, const Tensor& x, double p, bool training,
                        bool per_channel) {
  check_rate(op, p);
  if (is_identity(x, p, training)) return x;
  CHECK(x.is_floating(), DType, op, ": expected a floating dtype, got ", x.dtype());
  if (p == 1) return mul(x, zeros(Dims{}, options_of(x)));
  constexpr double alpha = 1.7580993408473766;
  double a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  Tensor mask = keep_mask(op, x, p, per_channel), shift;
  {
    GradMode off(false);
    shift = add(mul(add(mask, Operand(Scalar(int64_t{-1}))), Operand(Scalar(alpha * a))),
                Operand(Scalar(alpha * a * p)));
    mul_(mask, Operand(Scalar(a)));
  }
  return add(mul(x, mask), shift);
}

// With `inplace` the result is written into x, and x is returned.
Tensor finish(const Tensor& x, const Tensor& y, bool inplace) {
  if (!inplace || y.same(x)) return y;
  Tensor self = x;
  return copy_(self, y);
}

Tensor dropout(const Tensor& x, double p, bool training, bool inplace) {
  return finish(x, plain_dropout("dropout", x, p, training, false), inplace);
}
Tensor feature_dropout(const Tensor& x, double p, bool training, bool inplace) {
  return finish(x, plain_dropout("feature_dropout", x, p, training, true), inplace);
}
// A tensor without a batch dim gets one for the time being.
Tensor channel_dropout(const char* op, const Tensor& x, double p, bool training, bool inplace,
                       bool batched) {
  if (batched) return finish(x, plain_dropout(op, x, p, training, true), inplace);
  check_rate(op, p);
  if (is_identity(x, p, training)) return x;
  return finish(x, squeeze(plain_dropout(op, unsqueeze(x, 0), p, training, true), Dims{0}),
                inplace);
}
Tensor dropout1d(const Tensor& x, double p, bool training, bool inplace) {
  CHECK(x.dim() == 2 || x.dim() == 3, Shape,
        "dropout1d: expected a tensor of 2 or 3 dims, got shape ", x.sizes());
  return channel_dropout("dropout1d", x, p, training, inplace, x.dim() == 3);
}
Tensor dropout2d(const Tensor& x, double p, bool training, bool inplace) {
  return channel_dropout("dropout2d", x, p, training, inplace, true);
}
Tensor dropout3d(const Tensor& x, double p, bool training, bool inplace) {
  return channel_dropout("dropout3d", x, p, training, inplace, x.dim() != 4);
}
Tensor alpha_dropout(const Tensor& x, double p, bool training, bool inplace) {
  return finish(x, alpha_dropout_of("alpha_dropout", x, p, training, false), inplace);
}
Tensor feature_alpha_dropout(const Tensor& x, double p, bool training, bool inplace) {
  return finish(x, alpha_dropout_of("feature_alpha_dropout", x, p, training, true), inplace);
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& x, double p, std::optional<bool> train) {
  check_rate("native_dropout", p);
  if (!train.value_or(true) || x.numel() == 0)
    return {clone(x, std::nullopt), ones(x.sizes(), {DType::Bool, x.device()})};
  Tensor mask = empty_in_format("native_dropout", x, {DType::Bool, x.device()}, std::nullopt);
  draw_into(mask, {}, {Distribution::Bernoulli, 1 - p},
            [&](Generator& g, void* out, int64_t n, bool) {
              fill_bernoulli(g, DType::Bool, out, n, 1 - p);
            });
  return {mul(mul(x, mask), Operand(Scalar(p == 1 ? 0.0 : 1 / (1 - p)))), mask};
}

// ---- randomized leaky relu

// One slope per element: drawn where x is not positive, else 1.
Tensor draw_slopes(const Tensor& x, double lower, double upper) {
  Tensor slopes = empty(x.sizes(), options_of(x));
  if (x.is_meta()) return slopes;
  GradMode off(false);
  if (x.device().is_cuda()) {
    draw_into(slopes, {}, {Distribution::Uniform, lower, upper},
              [](Generator&, void*, int64_t, bool) {});
    const Operand zero(Scalar(0.0));
    return where(elementwise(Row::le, std::array{Operand(x), zero}, {}), slopes,
                 Operand(Scalar(1.0)));
  }
  Tensor values = contiguous(x);
  std::shared_ptr<Generator> g = generator_of({});
  std::lock_guard lock(g->mutex());
  visit_dtype(x.dtype(), [&]<class T>() {
    if constexpr (!std::is_integral_v<T> && !requires(T v) { v.imag(); }) {
      const T* p = values.data<T>();
      T* out = slopes.data<T>();
      for (int64_t i = 0; i < x.numel(); ++i)
        out[i] = p[i] <= T(0.0f) ? static_cast<T>(g->uniform_double() * (upper - lower) + lower)
                                 : T(1.0f);
    }
  });
  return slopes;
}

Tensor rrelu(const Tensor& x, double lower, double upper, bool training, bool inplace) {
  CHECK(lower <= upper, Value, "rrelu: expected lower at most upper, got ", lower, " and ", upper);
  CHECK(x.is_floating(), DType, "rrelu: expected a floating dtype, got ", x.dtype());
  if (training) return finish(x, mul(x, draw_slopes(x, lower, upper)), inplace);
  double slope = (lower + upper) / 2;
  const Operand in[] = {x};
  return finish(x, elementwise(Row::leaky_relu, in, {&slope, 1}), inplace);
}

}  // namespace

OP_TABLE(random_dropout) = {
    op<dropout>("dropout(Tensor input, float p=0.5, bool training=True, bool inplace=False) "
                "-> Tensor",
                "torch nn", "Zeroes elements with probability p, scales the rest by 1 / (1 - p)."),
    op<feature_dropout>("feature_dropout(Tensor input, float p=0.5, bool training=True, "
                        "bool inplace=False) -> Tensor",
                        "torch", "dropout of whole channels."),
    op<dropout1d>("dropout1d(Tensor input, float p=0.5, bool training=True, bool inplace=False) "
                  "-> Tensor",
                  "nn", "dropout of whole channels of [N, C, L] or [C, L]."),
    op<dropout2d>("dropout2d(Tensor input, float p=0.5, bool training=True, bool inplace=False) "
                  "-> Tensor",
                  "nn", "dropout of whole channels of [N, C, H, W]."),
    op<dropout3d>("dropout3d(Tensor input, float p=0.5, bool training=True, bool inplace=False) "
                  "-> Tensor",
                  "nn", "dropout of whole channels of [N, C, D, H, W] or [C, D, H, W]."),
    op<alpha_dropout>("alpha_dropout(Tensor input, float p=0.5, bool training=False, "
                      "bool inplace=False) -> Tensor",
                      "torch nn", "dropout that keeps mean and variance of selu outputs."),
    op<feature_alpha_dropout>("feature_alpha_dropout(Tensor input, float p=0.5, "
                              "bool training=False, bool inplace=False) -> Tensor",
                              "torch nn", "alpha_dropout of whole channels."),
    op<native_dropout>("native_dropout(Tensor input, float p, bool? train) "
                       "-> (Tensor result, Tensor mask)",
                       "torch", "dropout and the mask of what was kept."),
    op<native_dropout_backward>("native_dropout_backward(Tensor grad_output, Tensor mask, "
                                "float scale) -> Tensor",
                                "torch", "The gradient of native_dropout."),
    op<rrelu>("rrelu(Tensor input, float lower=0.125, float upper=0.3333333333333333, "
              "bool training=False, bool inplace=False) -> Tensor",
              "torch nn", "leaky_relu with slopes drawn from [lower, upper]."),
};
OP_TABLE_END(random_dropout);

}  // namespace cresset::ops
