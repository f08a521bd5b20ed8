// Convolutions and transposed convolutions over one to three spatial dims.
#include "core/ops/conv.h"

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/ops/shape.h"
#include "core/ops/wide.h"

namespace cresset::ops {
namespace {

// ---- the calculus: y = conv(x, w), its transpose in x, its transpose in w

// The dtype that kernels exist for and that holds the values of t.
DType kernel_dtype(const Tensor& t) {
  if (is_integral(t.dtype(), true)) return DType::Int64;
  return wide_dtype(t.dtype(), t.device());
}

// The memory format of a convolution: channels last on a GPU where one of two operands has it.
int64_t layout_of(const Tensor& a, const Tensor& b) {
  const int64_t format = a.dim() == 4 ? 1 : a.dim() == 5 ? 2 : 0;
  if (format == 0 || a.device().type != DeviceType::CUDA || !a.is_floating()) return 0;
  auto last = [format](const Tensor& t) {
    return !t.is_contiguous() && t.strides() == format_strides("conv", t.sizes(), format);
  };
  return last(a) || last(b) ? format : 0;
}

Tensor ready(const Tensor& t, int64_t format) {
  if (!t.defined()) return t;
  Tensor x = to_dtype(t, kernel_dtype(t));
  if (format == 0) return contiguous(x);
  Dims strides = format_strides("conv", x.sizes(), format);
  if (x.strides() == strides) return x;
  Tensor y = empty_strided(x.sizes(), strides, options_of(x), "conv");
  copy_raw(x, y);
  return y;
}

// [lead0, lead1, ...extents] with as many extents as `like` has spatial dims.
Dims with_extents(int64_t lead0, int64_t lead1, const ConvNdShape::Extent& e, const Tensor& like) {
  Dims sizes{lead0, lead1};
  for (int64_t d = 5 - like.dim(); d < 3; ++d) sizes.push_back(e[static_cast<size_t>(d)]);
  return sizes;
}

// A result in the dtype that the kernel works in.
Tensor result(const Dims& sizes, const Tensor& like, int64_t format = 0) {
  const Options options{kernel_dtype(like), like.device()};
  if (format == 0) return empty(sizes, options, "conv");
  return empty_strided(sizes, format_strides("conv", sizes, format), options, "conv");
}

Tensor run_forward(const ConvNdShape& s, const Tensor& x, const Tensor& w, const Tensor& bias) {
  const int64_t format = layout_of(x, w);
  Tensor y = result(with_extents(s.n, s.c_out, s.out, x), x, format);
  launch("conv", y.device(), &ConvKernels::forward, s, ready(x, format), ready(w, format),
         ready(bias, 0), y);
  return to_dtype(y, x.dtype());
}

Tensor run_backward_input(const ConvNdShape& s, const Tensor& gy, const Tensor& w) {
  const int64_t format = layout_of(gy, w);
  Tensor gx = result(with_extents(s.n, s.c_in, s.in, gy), gy, format);
  launch("conv", gx.device(), &ConvKernels::backward_input, s, ready(gy, format), ready(w, format),
         gx);
  return to_dtype(gx, gy.dtype());
}

// `gb` is given where the bias's gradient is wanted too.
Tensor run_backward_weight(const ConvNdShape& s, const Tensor& x, const Tensor& gy, Tensor* gb) {
  const int64_t format = layout_of(x, gy);
  Tensor gw = result(with_extents(s.c_out, s.c_in / s.groups, s.kernel, x), x, format);
  Tensor sums = gb ? result(Dims{s.c_out}, gy) : Tensor();
  launch("conv", gw.device(), &ConvKernels::backward_weight, s, ready(x, format), ready(gy, format),
         gw, sums);
  if (gb) *gb = to_dtype(sums, gy.dtype());
  return to_dtype(gw, x.dtype());
}

// Sums over all dims but the channels.
Tensor sum_channels(const Tensor& g) {
  Dims dims{0};
  for (int64_t d = 2; d < g.dim(); ++d) dims.push_back(d);
  return sum(g, dims, false, std::nullopt);
}

}  // namespace

Tensor conv_apply(const ConvNdShape& s, const Tensor& x, const Tensor& w, const Tensor& bias) {
  Tensor y;
  {
    GradMode off(false);
    y = run_forward(s, x, w, bias);
  }
  if (wants_grad(x, w, bias))
    record("ConvolutionBackward0", y, inputs(x, w, bias),
           [s, x = save(x), w = save(w)](Backward& b) {
             Tensor g = b.grad();
             if (b.needs(0)) b[0] = conv_transposed(s, g, conj(b(w)), Tensor());
             if (b.needs(1) && b.needs(2) && !grad_enabled()) {
               b[1] = run_backward_weight(s, conj(b(x)), g, &b[2]);
               return;
             }
             if (b.needs(1)) b[1] = conv_weight_gradient(s, conj(b(x)), g);
             if (b.needs(2)) b[2] = sum_channels(g);
           });
  return y;
}

Tensor conv_transposed(const ConvNdShape& s, const Tensor& gy, const Tensor& w,
                       const Tensor& bias) {
  Tensor y;
  {
    GradMode off(false);
    y = run_backward_input(s, gy, w);
    if (bias.defined()) {
      Dims channels(static_cast<size_t>(y.dim()), 1);
      channels[1] = s.c_in;
      add_(y, reshape(bias, channels));
    }
  }
  if (wants_grad(gy, w, bias))
    record("ConvolutionBackward0", y, inputs(gy, w, bias),
           [s, gy = save(gy), w = save(w)](Backward& b) {
             Tensor g = b.grad();
             if (b.needs(0)) b[0] = conv_apply(s, g, conj(b(w)), Tensor());
             if (b.needs(1)) b[1] = conv_weight_gradient(s, g, conj(b(gy)));
             if (b.needs(2)) b[2] = sum_channels(g);
           });
  return y;
}

Tensor conv_weight_gradient(const ConvNdShape& s, const Tensor& x, const Tensor& gy) {
  Tensor gw;
  {
    GradMode off(false);
    gw = run_backward_weight(s, x, gy, nullptr);
  }
  if (wants_grad(x, gy))
    record("ConvolutionBackwardBackward0", gw, inputs(x, gy),
           [s, x = save(x), gy = save(gy)](Backward& b) {
             Tensor g = b.grad();
             if (b.needs(0)) b[0] = conv_transposed(s, conj(b(gy)), g, Tensor());
             if (b.needs(1)) b[1] = conv_apply(s, conj(b(x)), g, Tensor());
           });
  return gw;
}

namespace {

// ---- checks and shapes

constexpr int64_t largest_step = INT32_MAX;

// `values` as one number per spatial dim, each in [least, 2^31).
Dims per_dim(const char* op, const char* what, const Dims& values, size_t rank, int64_t least) {
  CHECK(values.size() == rank || values.size() == 1, Value, op, ": expected ", what, " of ", rank,
        " numbers, got ", values);
  for (int64_t v : values)
    CHECK(v >= least && v <= largest_step, Value, op, ": expected ", what, " of at least ", least,
          ", got ", values);
  return values.size() == rank ? values : Dims(rank, values[0]);
}

void check_operands(const char* op, const Tensor& x, const Tensor& w, const Tensor& bias,
                    int64_t rank, int64_t groups) {
  CHECK(x.dim() == rank + 1 || x.dim() == rank + 2, Shape, op, ": expected an input of ", rank + 1,
        " (unbatched) or ", rank + 2, " dims, got shape ", x.sizes());
  CHECK(w.dim() == rank + 2, Shape, op, ": expected a weight of ", rank + 2, " dims, got shape ",
        w.sizes());
  CHECK(x.dtype() != DType::Bool, DType, op, ": bool tensors have no convolution");
  CHECK(x.dtype() == w.dtype(), DType, op, ": expected input and weight of one dtype, got ",
        x.dtype(), " and ", w.dtype());
  CHECK(x.device() == w.device(), Device, op, ": expected input and weight on one device, got ",
        x.device(), " and ", w.device());
  if (bias.defined()) {
    CHECK(x.dtype() == bias.dtype(), DType, op, ": expected bias of dtype ", x.dtype(), ", got ",
          bias.dtype());
    CHECK(x.device() == bias.device(), Device, op, ": expected bias on device ", x.device(),
          ", got ", bias.device());
  }
  CHECK(groups > 0, Value, op, ": expected groups of at least 1, got ", groups);
  CHECK(w.size(0) > 0 && w.size(0) % groups == 0, Shape, op,
        ": expected a weight whose dim 0 is a "
        "multiple of groups ",
        groups, ", got shape ", w.sizes());
  for (int64_t d = 2; d < w.dim(); ++d)
    CHECK(w.size(d) > 0, Shape, op, ": expected a kernel with elements, got weight shape ",
          w.sizes());
}

void check_bias(const char* op, const Tensor& bias, int64_t channels) {
  if (bias.defined())
    CHECK(bias.dim() == 1 && bias.size(0) == channels, Shape, op, ": expected bias of shape [",
          channels, "], got ", bias.sizes());
}

int64_t reach(int64_t kernel, int64_t dilation) { return dilation * (kernel - 1) + 1; }

struct ConvArgs {
  Dims stride, pad_before, pad_after, dilation;
  int64_t groups;
};

ConvNdShape forward_shape(const char* op, const Tensor& x, const Tensor& w, const ConvArgs& a) {
  ConvNdShape s{.n = x.size(0),
                .c_in = x.size(1),
                .c_out = w.size(0),
                .groups = a.groups,
                .in = {1, 1, 1},
                .kernel = {1, 1, 1},
                .out = {1, 1, 1},
                .stride = {1, 1, 1},
                .pad_before = {0, 0, 0},
                .pad_after = {0, 0, 0},
                .dilation = {1, 1, 1}};
  CHECK(w.size(1) * a.groups == s.c_in, Shape, op, ": weight of shape ", w.sizes(), " and groups ",
        a.groups, " expect an input of ", w.size(1) * a.groups, " channels, got shape ", x.sizes());
  size_t rank = a.stride.size();
  for (size_t i = 0; i < rank; ++i) {
    size_t d = 3 - rank + i;
    int64_t axis = static_cast<int64_t>(i) + 2;
    s.in[d] = x.size(axis);
    s.kernel[d] = w.size(axis);
    s.stride[d] = a.stride[i];
    s.dilation[d] = a.dilation[i];
    s.pad_before[d] = a.pad_before[i];
    s.pad_after[d] = a.pad_after[i];
    int64_t room = s.in[d] + s.pad_before[d] + s.pad_after[d];
    int64_t span = reach(s.kernel[d], s.dilation[d]);
    CHECK(room >= span, Shape, op, ": the kernel reaches over ", span, " elements of spatial dim ",
          i, ", but the padded input has ", room);
    s.out[d] = (room - span) / s.stride[d] + 1;
  }
  return s;
}

Tensor optional_tensor(const std::optional<Tensor>& t) { return t ? *t : Tensor(); }

Tensor conv_batched(const char* op, const Tensor& x, const Tensor& w, const Tensor& bias,
                    const ConvArgs& a) {
  int64_t rank = static_cast<int64_t>(a.stride.size());
  if (x.dim() == rank + 2) return conv_apply(forward_shape(op, x, w, a), x, w, bias);
  Tensor batch = unsqueeze(x, 0);
  return squeeze(conv_apply(forward_shape(op, batch, w, a), batch, w, bias), Dims{0});
}

template <size_t rank>
Tensor conv(const char* op, const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias,
            const Dims& stride, const Dims& padding, const Dims& dilation, int64_t groups) {
  Tensor b = optional_tensor(bias);
  check_operands(op, x, w, b, rank, groups);
  check_bias(op, b, w.size(0));
  Dims pad = per_dim(op, "padding", padding, rank, 0);
  return conv_batched(op, x, w, b,
                      {per_dim(op, "stride", stride, rank, 1), pad, pad,
                       per_dim(op, "dilation", dilation, rank, 1), groups});
}

Tensor conv1d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              const Dims& stride, const Dims& padding, const Dims& dilation, int64_t groups) {
  return conv<1>("conv1d", input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              const Dims& stride, const Dims& padding, const Dims& dilation, int64_t groups) {
  return conv<3>("conv3d", input, weight, bias, stride, padding, dilation, groups);
}

// Padding by name; an odd total goes to the far side.
Tensor conv_padded(int64_t rank, const Tensor& x, const Tensor& w,
                   const std::optional<Tensor>& bias, const Dims& stride, ConvPadding padding,
                   const Dims& dilation, int64_t groups) {
  constexpr const char* names[] = {"conv1d", "conv2d", "conv3d"};
  CHECK(rank >= 1 && rank <= 3, Value, "conv: expected one to three spatial dims, got ", rank);
  const char* op = names[rank - 1];
  size_t count = static_cast<size_t>(rank);
  Tensor b = optional_tensor(bias);
  check_operands(op, x, w, b, rank, groups);
  check_bias(op, b, w.size(0));
  ConvArgs a{per_dim(op, "stride", stride, count, 1), Dims(count), Dims(count),
             per_dim(op, "dilation", dilation, count, 1), groups};
  if (padding == ConvPadding::same) {
    for (size_t i = 0; i < count; ++i) {
      CHECK(a.stride[i] == 1, Value, op, ": padding \"same\" expects stride 1, got ", stride);
      int64_t total = reach(w.size(static_cast<int64_t>(i) + 2), a.dilation[i]) - 1;
      a.pad_before[i] = total / 2;
      a.pad_after[i] = total - total / 2;
    }
  }
  return conv_batched(op, x, w, b, a);
}

// The convolution whose input gradient a transposed convolution is.
ConvNdShape transposed_shape(const char* op, const Tensor& x, const Tensor& w, const ConvArgs& a,
                             const Dims& extra) {
  ConvNdShape s{.n = x.size(0),
                .c_in = w.size(1) * a.groups,
                .c_out = w.size(0),
                .groups = a.groups,
                .in = {1, 1, 1},
                .kernel = {1, 1, 1},
                .out = {1, 1, 1},
                .stride = {1, 1, 1},
                .pad_before = {0, 0, 0},
                .pad_after = {0, 0, 0},
                .dilation = {1, 1, 1}};
  CHECK(x.size(1) == w.size(0), Shape, op, ": weight of shape ", w.sizes(), " expects an input of ",
        w.size(0), " channels, got shape ", x.sizes());
  size_t rank = a.stride.size();
  for (size_t i = 0; i < rank; ++i) {
    size_t d = 3 - rank + i;
    int64_t axis = static_cast<int64_t>(i) + 2;
    CHECK(extra[i] < std::max(a.stride[i], a.dilation[i]), Value, op,
          ": expected output_padding smaller than stride or dilation, got ", extra);
    CHECK(x.size(axis) > 0 && x.size(axis) <= largest_step, Shape, op,
          ": expected an input with elements in its spatial dims, got shape ", x.sizes());
    s.out[d] = x.size(axis);
    s.kernel[d] = w.size(axis);
    s.stride[d] = a.stride[i];
    s.dilation[d] = a.dilation[i];
    s.pad_before[d] = s.pad_after[d] = a.pad_before[i];
    s.in[d] = (s.out[d] - 1) * s.stride[d] - 2 * a.pad_before[i] +
              reach(s.kernel[d], s.dilation[d]) + extra[i];
    CHECK(s.in[d] > 0, Shape, op, ": the padding ", a.pad_before, " leaves nothing of spatial dim ",
          i, " (input shape ", x.sizes(), ")");
  }
  return s;
}

template <size_t rank>
Tensor conv_transpose(const char* op, const Tensor& x, const Tensor& w,
                      const std::optional<Tensor>& bias, const Dims& stride, const Dims& padding,
                      const Dims& output_padding, int64_t groups, const Dims& dilation) {
  Tensor b = optional_tensor(bias);
  check_operands(op, x, w, b, rank, groups);
  check_bias(op, b, w.size(1) * groups);
  Dims pad = per_dim(op, "padding", padding, rank, 0);
  Dims extra = per_dim(op, "output_padding", output_padding, rank, 0);
  ConvArgs a{per_dim(op, "stride", stride, rank, 1), pad, pad,
             per_dim(op, "dilation", dilation, rank, 1), groups};
  if (x.dim() == static_cast<int64_t>(rank) + 2)
    return conv_transposed(transposed_shape(op, x, w, a, extra), x, w, b);
  Tensor batch = unsqueeze(x, 0);
  return squeeze(conv_transposed(transposed_shape(op, batch, w, a, extra), batch, w, b), Dims{0});
}

Tensor conv_transpose1d(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, const Dims& stride, const Dims& padding,
                        const Dims& output_padding, int64_t groups, const Dims& dilation) {
  return conv_transpose<1>("conv_transpose1d", input, weight, bias, stride, padding, output_padding,
                           groups, dilation);
}
Tensor conv_transpose2d(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, const Dims& stride, const Dims& padding,
                        const Dims& output_padding, int64_t groups, const Dims& dilation) {
  return conv_transpose<2>("conv_transpose2d", input, weight, bias, stride, padding, output_padding,
                           groups, dilation);
}
Tensor conv_transpose3d(const Tensor& input, const Tensor& weight,
                        const std::optional<Tensor>& bias, const Dims& stride, const Dims& padding,
                        const Dims& output_padding, int64_t groups, const Dims& dilation) {
  return conv_transpose<3>("conv_transpose3d", input, weight, bias, stride, padding, output_padding,
                           groups, dilation);
}

}  // namespace

Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              const Dims& stride, const Dims& padding, const Dims& dilation, int64_t groups) {
  return conv<2>("conv2d", input, weight, bias, stride, padding, dilation, groups);
}

OP_TABLE(conv) = {
    op<conv1d>("conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
               "int[1] padding=0, int[1] dilation=1, int groups=1) -> Tensor",
               "torch nn", "Convolution of [N, C, L] by a weight [out, C / groups, k]."),
    op<conv2d>("conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
               "int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor",
               "torch nn", "Convolution of [N, C, H, W] by a weight [out, C / groups, kh, kw]."),
    op<conv3d>("conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, "
               "int[3] padding=0, int[3] dilation=1, int groups=1) -> Tensor",
               "torch nn", "Convolution of [N, C, D, H, W]."),
    op<conv_padded>("_conv_padded(int rank, Tensor input, Tensor weight, Tensor? bias, "
                    "int[] stride, ConvPadding{valid|same} padding, int[] dilation, int groups) "
                    "-> Tensor",
                    "private", "Convolution with padding given by name."),
    op<conv_transpose1d>("conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, "
                         "int[1] stride=1, int[1] padding=0, int[1] output_padding=0, "
                         "int groups=1, int[1] dilation=1) -> Tensor",
                         "torch nn", "The gradient of conv1d as an operator."),
    op<conv_transpose2d>("conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, "
                         "int[2] stride=1, int[2] padding=0, int[2] output_padding=0, "
                         "int groups=1, int[2] dilation=1) -> Tensor",
                         "torch nn", "The gradient of conv2d as an operator."),
    op<conv_transpose3d>("conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, "
                         "int[3] stride=1, int[3] padding=0, int[3] output_padding=0, "
                         "int groups=1, int[3] dilation=1) -> Tensor",
                         "torch nn", "The gradient of conv3d as an operator."),
};
OP_TABLE_END(conv);

}  // namespace cresset::ops
