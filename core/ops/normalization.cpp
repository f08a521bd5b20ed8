// Normalisations along the last dims, and over neighbouring channels.
#include "core/ops/normalization.h"

#include <limits>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/ops/reduce.h"
#include "core/ops/wide.h"

namespace cresset::ops {
namespace {

SavedTensor save_if_defined(const Tensor& t) { return t.defined() ? save(t) : SavedTensor(); }

void check_trailing(const char* op, const Tensor& x, const Dims& shape,
                    const std::optional<Tensor>& weight, const std::optional<Tensor>& bias) {
  CHECK(!shape.empty(), Value, op, ": expected normalized_shape with at least 1 dim");
  const int64_t lead = x.dim() - static_cast<int64_t>(shape.size());
  CHECK(lead >= 0 && std::equal(shape.begin(), shape.end(), x.sizes().begin() + lead), Shape, op,
        ": expected an input whose last dims are ", shape, ", got shape ", x.sizes());
  for (const auto* t : {&weight, &bias})
    CHECK(!*t || (*t)->sizes() == shape, Shape, op, ": expected ", t == &weight ? "weight" : "bias",
          " of shape ", shape, ", got ", (*t)->sizes());
}

Dims last_dims(const Tensor& x, size_t count) {
  Dims out;
  for (int64_t d = x.dim() - static_cast<int64_t>(count); d < x.dim(); ++d) out.push_back(d);
  return out;
}
Dims first_dims(const Tensor& x, size_t count) {
  Dims out;
  for (int64_t d = 0; d < x.dim() - static_cast<int64_t>(count); ++d) out.push_back(d);
  return out;
}

struct RowNorm {
  Tensor y, mean, rstd;
};

// The gradients of layer_norm with operators, from the input alone.
void layer_norm_formula(Backward& b, const Tensor& x, const Tensor& weight, size_t count,
                        double eps) {
  const Dims over = last_dims(x, count), rows = first_dims(x, count);
  auto average = [&](const Tensor& t) { return mean(t, over, true, std::nullopt); };
  Tensor centered = sub(x, average(x));
  Tensor rstd = row(Row::rsqrt, {add(average(mul(centered, centered)), eps)});
  Tensor h = mul(centered, rstd), g = b.grad();
  auto over_rows = [&](const Tensor& t) {
    return rows.empty() ? t : sum(t, rows, false, std::nullopt);
  };
  if (b.needs(1)) b[1] = over_rows(mul(g, h));
  if (b.needs(2)) b[2] = over_rows(g);
  if (!b.needs(0)) return;
  Tensor v = weight.defined() ? mul(g, weight) : g;
  b[0] = mul(rstd, sub(sub(v, average(v)), mul(h, average(mul(v, h)))));
}

// All of one dtype: float or double, or what else the device has kernels for.
RowNorm layer_norm_of(const Tensor& input, const Tensor& weight, const Tensor& bias, size_t count,
                      double eps) {
  Dims kept = input.sizes();
  for (size_t i = kept.size() - count; i < kept.size(); ++i) kept[i] = 1;
  const Options statistics{statistics_dtype(input), input.device()};
  RowNorm r{empty(input.sizes(), options_of(input)), empty(kept, statistics),
            empty(kept, statistics)};
  Tensor x, w, b;
  {
    GradMode off(false);
    x = contiguous(input);
    if (weight.defined()) w = contiguous(weight);
    if (bias.defined()) b = contiguous(bias);
    launch("layer_norm", x.device(), &NormalizationKernels::layer_norm, x, w, b, eps, r.y, r.mean,
           r.rstd);
  }
  if (!wants_grad(input, weight, bias)) return r;
  auto backward = [in = save(input), weight = save_if_defined(weight), mean = r.mean, rstd = r.rstd,
                   count, eps](Backward& b) {
    Tensor x = b(in), w = weight.defined() ? b(weight) : Tensor();
    if (grad_enabled()) return layer_norm_formula(b, x, w, count, eps);
    x = contiguous(x);
    if (w.defined()) w = contiguous(w);
    Dims shape;
    for (int64_t d : last_dims(x, count)) shape.push_back(x.size(d));
    Tensor dx, dw, db;
    if (b.needs(0)) dx = empty(x.sizes(), options_of(x));
    if (b.needs(1)) dw = empty(shape, options_of(x));
    if (b.needs(2)) db = empty(shape, options_of(x));
    launch("layer_norm", x.device(), &NormalizationKernels::layer_norm_backward,
           contiguous(b.grad()), x, mean, rstd, w, dx, dw, db);
    b[0] = dx;
    b[1] = dw;
    b[2] = db;
  };
  record("NativeLayerNormBackward0", r.y, inputs(input, weight, bias), backward);
  return r;
}

RowNorm checked_layer_norm(const char* op, const Tensor& input, const Dims& shape,
                           const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                           double eps) {
  CHECK(input.is_floating(), DType, op, ": expected a floating dtype, got ", input.dtype());
  check_trailing(op, input, shape, weight, bias);
  const bool half = needs_widening(input.dtype(), input.device());
  const DType dtype = wide_dtype(input.dtype(), input.device());
  auto cast = [&](const std::optional<Tensor>& t) { return t ? to_dtype(*t, dtype) : Tensor(); };
  RowNorm r = layer_norm_of(to_dtype(input, dtype), cast(weight), cast(bias), shape.size(), eps);
  if (half) r.y = to_dtype(r.y, input.dtype());
  return r;
}

}  // namespace

Tensor layer_norm(const Tensor& input, const Dims& shape, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, double eps) {
  return checked_layer_norm("layer_norm", input, shape, weight, bias, eps).y;
}

namespace {

std::tuple<Tensor, Tensor, Tensor> native_layer_norm(const Tensor& input, const Dims& shape,
                                                     const std::optional<Tensor>& weight,
                                                     const std::optional<Tensor>& bias,
                                                     double eps) {
  RowNorm r = checked_layer_norm("native_layer_norm", input, shape, weight, bias, eps);
  return {r.y, r.mean, r.rstd};
}

double epsilon_of(DType dtype) {
  if (dtype == DType::Float16) return 0x1p-10;
  if (dtype == DType::BFloat16) return 0x1p-7;
  return to_real(dtype) == DType::Float64 ? std::numeric_limits<double>::epsilon()
                                          : std::numeric_limits<float>::epsilon();
}

Tensor rms_norm(const Tensor& input, const Dims& shape, const std::optional<Tensor>& weight,
                std::optional<double> eps) {
  CHECK(input.is_floating() || input.is_complex(), DType,
        "rms_norm: expected a floating or complex dtype, got ", input.dtype());
  check_trailing("rms_norm", input, shape, weight, std::nullopt);
  const bool half = itemsize(input.dtype()) == 2;
  Tensor x = half ? to_dtype(input, DType::Float32) : input;
  Tensor squares = mean(mul(x, x), last_dims(x, shape.size()), true, std::nullopt);
  Tensor y = mul(x, row(Row::rsqrt, {add(squares, eps.value_or(epsilon_of(x.dtype())))}));
  if (half) y = to_dtype(y, input.dtype());
  return weight ? mul(y, *weight) : y;
}

// Each value over (k + alpha mean of the squares in a window of `size` channels)^beta.
Tensor local_response_norm(const Tensor& input, int64_t size, double alpha, double beta, double k) {
  const char* op = "local_response_norm";
  CHECK(input.dim() >= 3, Shape, op, ": expected at least 3 dims, got shape ", input.sizes());
  CHECK(size > 0, Value, op, ": expected size > 0, got ", size);
  if (input.numel() == 0) return input;
  // A window reaches no further than the channels do.
  const int64_t channels = input.size(1), before = std::min(size / 2, channels - 1);
  const int64_t after = std::min(size - 1 - size / 2, channels - 1);
  Dims padded = input.sizes();
  padded[1] += before + after;
  Tensor squares = zeros(padded, options_of(input));
  Tensor middle = narrow(squares, 1, before, channels);
  copy_(middle, mul(input, input));
  Tensor total = narrow(squares, 1, 0, channels);
  for (int64_t i = 1; i <= before + after; ++i) total = add(total, narrow(squares, 1, i, channels));
  // Integers are averaged as integers, as PyTorch's pooling does.
  Tensor average = input.is_floating() ? div(total, static_cast<double>(size))
                                       : row(Row::trunc_divide, {total, Scalar(size)});
  return div(input, row(Row::pow, {add(mul(average, alpha), k), beta}));
}

}  // namespace

OP_TABLE(normalization) = {
    op<layer_norm>("layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, "
                   "Tensor? bias=None, float eps=1e-05) -> Tensor",
                   "torch nn", "Mean 0 and variance 1 over the last dims, then weight and bias."),
    op<native_layer_norm>("native_layer_norm(Tensor input, int[] normalized_shape, "
                          "Tensor? weight, Tensor? bias, float eps) -> "
                          "(Tensor out, Tensor mean, Tensor rstd)",
                          "torch", "layer_norm with its means and reciprocal deviations."),
    op<rms_norm>("rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, "
                 "float? eps=None) -> Tensor",
                 "torch nn", "Root mean square 1 over the last dims, then weight."),
    op<local_response_norm>("local_response_norm(Tensor input, int size, float alpha=0.0001, "
                            "float beta=0.75, float k=1.0) -> Tensor",
                            "nn", "Divides by the activity of neighbouring channels."),
};
OP_TABLE_END(normalization);

}  // namespace cresset::ops
