// Windows of the pooling operators from their arguments.
#include "core/ops/pool_windows.h"

namespace cresset::ops {
namespace {

Dims per_dim(const char* op, const char* what, const Dims& values, size_t rank, int64_t least) {
  CHECK(values.size() == rank || values.size() == 1, Value, op, ": expected ", what, " of ", rank,
        " numbers, got ", values);
  for (int64_t v : values)
    CHECK(v >= least && v <= INT32_MAX, Value, op, ": expected ", what, " of at least ", least,
          ", got ", values);
  return values.size() == rank ? values : Dims(rank, values[0]);
}

int64_t pooled_size(int64_t in, int64_t span, int64_t stride, int64_t pad, bool ceil_mode) {
  int64_t room = in + 2 * pad - span;
  if (room < 0 && !(ceil_mode && room + stride - 1 >= 0)) return 0;
  int64_t out = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  // The last window has to begin inside the input or its near padding.
  if (ceil_mode && (out - 1) * stride >= in + pad) --out;
  return out;
}

int64_t count_planes(const Tensor& x, size_t rank) {
  int64_t planes = 1;
  for (int64_t d = 0; d < x.dim() - static_cast<int64_t>(rank); ++d) planes *= x.size(d);
  return planes;
}

}  // namespace

PoolArgs pool_args(const char* op, size_t rank, const Dims& kernel,
                   const std::optional<Dims>& stride, const Dims& padding, const Dims& dilation,
                   bool ceil_mode) {
  PoolArgs a{.kernel = per_dim(op, "kernel_size", kernel, rank, 1),
             .stride = {},
             .padding = per_dim(op, "padding", padding, rank, 0),
             .dilation = per_dim(op, "dilation", dilation, rank, 1),
             .ceil_mode = ceil_mode};
  bool given = stride && !stride->empty();
  a.stride = given ? per_dim(op, "stride", *stride, rank, 1) : a.kernel;
  for (size_t i = 0; i < rank; ++i)
    CHECK(a.padding[i] <= (a.dilation[i] * (a.kernel[i] - 1) + 1) / 2, Value, op,
          ": expected padding of at most half the window, got padding ", a.padding,
          " for kernel_size ", a.kernel, " and dilation ", a.dilation);
  return a;
}

void check_pool_input(const char* op, const Tensor& x, size_t rank, bool leading_empty) {
  int64_t r = static_cast<int64_t>(rank);
  CHECK(x.dim() == r + 1 || x.dim() == r + 2, Shape, op, ": expected an input of ", r + 1,
        " (unbatched) or ", r + 2, " dims, got shape ", x.sizes());
  int64_t first = x.dim() == r + 2 || leading_empty ? 1 : 0;
  for (int64_t d = first; d < x.dim(); ++d)
    CHECK(x.size(d) > 0, Shape, op, ": expected elements in every dim but the batch, got shape ",
          x.sizes());
}

PoolWindows equal_windows(const char* op, const Tensor& x, const PoolArgs& a) {
  size_t rank = a.kernel.size();
  PoolWindows p;
  p.planes = count_planes(x, rank);
  p.divisor_override = a.divisor_override;
  for (size_t i = 0; i < rank; ++i) {
    size_t d = 3 - rank + i;
    p.in[d] = x.size(static_cast<int64_t>(i) - static_cast<int64_t>(rank));
    p.step[d] = a.dilation[i];
    int64_t span = a.dilation[i] * (a.kernel[i] - 1) + 1;
    p.out[d] = pooled_size(p.in[d], span, a.stride[i], a.padding[i], a.ceil_mode);
    CHECK(p.out[d] >= 1, Shape, op, ": the window of ", span, " elements does not fit into dim ",
          static_cast<int64_t>(i) - static_cast<int64_t>(rank), " of shape ", x.sizes(),
          " with padding ", a.padding);
  }
  p.regular = rank < 3;
  if (p.regular) {
    auto get = [&](const Dims& v, size_t d, int64_t other) {
      return rank + d >= 2 ? v[rank + d - 2] : other;
    };
    p.shape = {.planes = p.planes,
               .h = p.in[1],
               .w = p.in[2],
               .kh = get(a.kernel, 0, 1),
               .kw = get(a.kernel, 1, 1),
               .oh = p.out[1],
               .ow = p.out[2],
               .stride_h = get(a.stride, 0, 1),
               .stride_w = get(a.stride, 1, 1),
               .pad_h = get(a.padding, 0, 0),
               .pad_w = get(a.padding, 1, 0),
               .dil_h = get(a.dilation, 0, 1),
               .dil_w = get(a.dilation, 1, 1)};
    p.divisor = {a.count_include_pad, a.divisor_override};
    return p;
  }
  for (size_t d = 0; d < 3; ++d)
    p.axis[d] = {.in = p.in[d],
                 .out = p.out[d],
                 .kernel = a.kernel[d],
                 .stride = a.stride[d],
                 .pad = a.padding[d],
                 .dilation = a.dilation[d],
                 .count_include_pad = a.count_include_pad};
  return p;
}

PoolWindows adaptive_windows(const char* op, const Tensor& x, const Dims& out) {
  size_t rank = out.size();
  PoolWindows p;
  p.planes = count_planes(x, rank);
  bool even = rank < 3;
  for (size_t i = 0; i < rank; ++i) {
    size_t d = 3 - rank + i;
    p.in[d] = x.size(static_cast<int64_t>(i) - static_cast<int64_t>(rank));
    p.out[d] = out[i];
    CHECK(out[i] >= 0 && out[i] <= INT32_MAX, Value, op,
          ": expected output_size of at least 0, got ", out);
    even = even && out[i] > 0 && p.in[d] % out[i] == 0;
  }
  if (even) {
    int64_t kh = p.in[1] / p.out[1], kw = p.in[2] / p.out[2];
    p.regular = true;
    p.shape = {.planes = p.planes,
               .h = p.in[1],
               .w = p.in[2],
               .kh = kh,
               .kw = kw,
               .oh = p.out[1],
               .ow = p.out[2],
               .stride_h = kh,
               .stride_w = kw,
               .pad_h = 0,
               .pad_w = 0};
    return p;
  }
  for (size_t d = 0; d < 3; ++d) p.axis[d] = {.in = p.in[d], .out = p.out[d], .adaptive = true};
  return p;
}

Dims pooled_sizes(const Tensor& x, const PoolWindows& p, size_t rank) {
  Dims sizes = x.sizes();
  for (size_t i = 0; i < rank; ++i) sizes[sizes.size() - rank + i] = p.out[3 - rank + i];
  return sizes;
}

}  // namespace cresset::ops
