// Convolutions: by cuDNN where it has an engine, with bias and uneven padding around it.
#include "cuda/conv.h"

#include "core/ops/elementwise.h"
#include "core/ops/ops.h"
#include "core/ops/reduce.h"
#include "cuda/conv_plan.h"
#include "cuda/launch.h"

namespace cresset::cuda {
namespace {

/// Whether channels lie last: then all operands do, though with one channel it does not show.
bool lies_last(const Tensor& a, const Tensor& b, const Tensor& c) {
  return !a.is_contiguous() || !b.is_contiguous() || !c.is_contiguous();
}

void refuse_layout(bool channels_last) {
  CHECK(!channels_last, NotImplemented, launching_op(),
        ": cuDNN has no such convolution with channels last; make the operands contiguous");
}

// y += bias, one value per channel.
void add_bias(const Tensor& bias, const Tensor& y) {
  Dims sizes(static_cast<size_t>(y.dim() - 1), 1), strides(sizes.size(), 0);
  sizes[0] = y.size(1);
  strides[0] = bias.stride(0);
  const Operand sum(y), term(alias(bias, sizes, strides, bias.offset()));
  const Operand* in[] = {&sum, &term};
  const double factor = 1;
  cuda_table<ElementwiseKernels>().row({.row = Row::add,
                                        .compute = ops::compute_for(y.dtype()),
                                        .params = &factor,
                                        .in = in,
                                        .out = &y});
}

// sums[c] = the sum of g over everything else.
void sum_channels(const Tensor& g, const Tensor& sums) {
  Dims over{0};
  for (int64_t d = 2; d < g.dim(); ++d) over.push_back(d);
  cuda_table<ReduceKernels>().reduce({.op = ReduceOp::Sum, .x = &g, .y = &sums, .over = over});
}

// cuDNN's engines first; plain loops serve what it has none for.

void run_forward(const ConvNdShape& s, const Tensor& x, const Tensor& w, const Tensor& bias,
                 const Tensor& y) {
  const bool last = lies_last(x, w, y);
  if (!run_conv_plan(s, ConvDirection::Forward, y, last, {data_of(x), data_of(w), data_of(y)})) {
    refuse_layout(last);
    return direct_forward(s, x, w, bias, y);
  }
  if (bias.defined()) add_bias(bias, y);
}

void run_backward_input(const ConvNdShape& s, const Tensor& gy, const Tensor& w, const Tensor& gx) {
  const bool last = lies_last(gy, w, gx);
  if (run_conv_plan(s, ConvDirection::Input, gx, last, {data_of(gx), data_of(w), data_of(gy)}))
    return;
  refuse_layout(last);
  direct_backward_input(s, gy, w, gx);
}

void run_backward_weight(const ConvNdShape& s, const Tensor& x, const Tensor& gy,
                         const Tensor& gw) {
  const bool last = lies_last(x, gy, gw);
  if (run_conv_plan(s, ConvDirection::Weight, gw, last, {data_of(x), data_of(gw), data_of(gy)}))
    return;
  refuse_layout(last);
  direct_backward_weight(s, x, gy, gw);
}

// ---- uneven padding: cuDNN pads both sides alike and computes every result that fits

/// The extents that exactly the wanted results read, without padding.
ConvNdShape fitted(const ConvNdShape& s) {
  ConvNdShape f = s;
  for (size_t d = 0; d < 3; ++d) {
    f.in[d] = (s.out[d] - 1) * s.stride[d] + s.dilation[d] * (s.kernel[d] - 1) + 1;
    f.pad_before[d] = f.pad_after[d] = 0;
  }
  return f;
}

bool fits(const ConvNdShape& s) {
  for (size_t d = 0; d < 3; ++d) {
    const int64_t span = s.dilation[d] * (s.kernel[d] - 1) + 1;
    const int64_t room = s.in[d] + 2 * s.pad_before[d] - span;
    if (room < 0 || room / s.stride[d] + 1 != s.out[d]) return false;
  }
  return true;
}

/// An uninitialised tensor like `t` with the fitted extents, in t's memory order.
Tensor like_with_extents(const Tensor& t, const ConvNdShape::Extent& e) {
  Dims sizes = t.sizes();
  for (int64_t d = 2; d < t.dim(); ++d)
    sizes[static_cast<size_t>(d)] = e[static_cast<size_t>(3 - t.dim() + d)];
  if (t.is_contiguous()) return empty(sizes, options_of(t));
  Dims strides(sizes.size());
  int64_t step = sizes[1];
  for (size_t d = sizes.size(); d-- > 2;) {
    strides[d] = step;
    step *= sizes[d];
  }
  strides[1] = 1;
  strides[0] = step;
  return empty_strided(sizes, strides, options_of(t));
}

void shift(const Tensor& from, const Tensor& to, const ConvNdShape& s,
           const ConvNdShape::Extent& from_extent, const ConvNdShape::Extent& to_extent,
           int64_t sign) {
  const bool last = !from.is_contiguous();
  ConvNdShape::Extent by;
  for (size_t d = 0; d < 3; ++d) by[d] = sign * s.pad_before[d];
  shift_volumes(from, to, last ? s.n : s.n * s.c_in, last ? s.c_in : 1, from_extent, to_extent, by);
}

bool by_loops(DType dtype) { return dtype == DType::Int64 || is_complex(dtype); }

void zero(const Tensor& t) {
  CUDA_CHECK(cudaMemsetAsync(data_of(t), 0, itemsize(t.dtype()) * static_cast<size_t>(t.numel()),
                             current_stream()));
}

int64_t inner_work(const ConvNdShape& s) {
  return s.n * s.c_in * s.c_out * s.in[0] * s.in[1] * s.in[2] * s.out[0] * s.out[1] * s.out[2];
}

void forward(const ConvNdShape& s, const Tensor& x, const Tensor& w, const Tensor& bias,
             const Tensor& y) {
  if (y.numel() == 0) return;
  if (by_loops(y.dtype()) || s.c_in == 0) return direct_forward(s, x, w, bias, y);
  if (fits(s)) return run_forward(s, x, w, bias, y);
  const ConvNdShape f = fitted(s);
  const Tensor moved = like_with_extents(x, f.in);
  shift(x, moved, s, s.in, f.in, 1);
  run_forward(f, moved, w, bias, y);
}

void backward_input(const ConvNdShape& s, const Tensor& gy, const Tensor& w, const Tensor& gx) {
  if (gx.numel() == 0) return;
  if (inner_work(s) == 0) return zero(gx);
  if (by_loops(gx.dtype())) return direct_backward_input(s, gy, w, gx);
  if (fits(s)) return run_backward_input(s, gy, w, gx);
  const ConvNdShape f = fitted(s);
  const Tensor moved = like_with_extents(gx, f.in);
  run_backward_input(f, gy, w, moved);
  shift(moved, gx, s, f.in, s.in, -1);
}

void backward_weight(const ConvNdShape& s, const Tensor& x, const Tensor& gy, const Tensor& gw,
                     const Tensor& gb) {
  if (gb.defined() && gb.numel()) sum_channels(gy, gb);
  if (gw.numel() == 0) return;
  if (inner_work(s) == 0) return zero(gw);
  if (by_loops(gw.dtype())) return direct_backward_weight(s, x, gy, gw);
  if (fits(s)) return run_backward_weight(s, x, gy, gw);
  const ConvNdShape f = fitted(s);
  const Tensor moved = like_with_extents(x, f.in);
  shift(x, moved, s, s.in, f.in, 1);
  run_backward_weight(f, moved, gy, gw);
}

}  // namespace

template <> const ConvKernels& cuda_table<ConvKernels>() {
  static constexpr ConvKernels table = {
      .forward = forward, .backward_input = backward_input, .backward_weight = backward_weight};
  return table;
}

}  // namespace cresset::cuda
