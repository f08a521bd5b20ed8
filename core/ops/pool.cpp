// Max and average pooling, adaptive pooling, and max unpooling.
#include "core/ops/pool.h"

#include <memory>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/indexing.h"
#include "core/ops/ops.h"
#include "core/ops/pool_windows.h"
#include "core/ops/wide.h"

namespace cresset::ops {
namespace {

using OptDims = std::optional<Dims>;
using WindowsRef = std::shared_ptr<const PoolWindows>;

// The dtype that kernels exist for and that holds the values of t.
DType kernel_dtype(const Tensor& t) {
  if (is_integral(t.dtype(), true)) return DType::Int64;
  return wide_dtype(t.dtype(), t.device());
}
Tensor ready(const Tensor& t) { return contiguous(to_dtype(t, kernel_dtype(t))); }
Tensor result(const Dims& sizes, const Tensor& like) {
  return empty(sizes, Options{kernel_dtype(like), like.device()}, "pool");
}

// The spatial dims as one.
Tensor flatten_planes(const Tensor& t, int64_t rank) {
  Dims sizes(std::span<const int64_t>(t.sizes().data(), t.sizes().size() - rank));
  int64_t volume = 1;
  for (int64_t d = t.dim() - rank; d < t.dim(); ++d) volume *= t.size(d);
  sizes.push_back(volume);
  return reshape(t, sizes);
}

Tensor gather_planes(const Tensor& x, const Tensor& indices, int64_t rank) {
  return reshape(gather(flatten_planes(x, rank), -1, flatten_planes(indices, rank)),
                 indices.sizes());
}

// Adds g up at the indices of planes of self's sizes: the gradient of picking them. It depends on
// self through the indices alone, so that self's own gradient is zero.
Tensor scatter_planes(const char* op, const Tensor& g, const Tensor& indices, const Dims& sizes,
                      int64_t rank, const Tensor& self = Tensor()) {
  Tensor out;
  {
    GradMode off(false);
    out = result(sizes, g);
    int64_t planes = 1;
    for (size_t d = 0; d < sizes.size() - static_cast<size_t>(rank); ++d) planes *= sizes[d];
    launch(op, out.device(), &PoolKernels::scatter, planes, ready(g), indices, out);
    out = to_dtype(out, g.dtype());
  }
  if (wants_grad(g, self))
    record("MaxPoolBackwardBackward0", out, inputs(g, self),
           [at = save(indices), rank](Backward& b) {
             if (b.needs(0)) b[0] = gather_planes(b.grad(), b(at), rank);
             if (b.needs(1)) b[1] = zeros_like(b.grad());
           });
  return out;
}

// ---- max

using Pair = std::tuple<Tensor, Tensor>;

void check_max_dtype(const char* op, const Tensor& x) {
  CHECK(x.dtype() != DType::Bool && !x.is_complex(), DType, op,
        ": expected a real dtype other than bool, got ", x.dtype());
}

Pair max_over(const char* op, const Tensor& x, const PoolWindows& p, size_t rank) {
  check_max_dtype(op, x);
  Dims sizes = pooled_sizes(x, p, rank);
  Tensor y, indices;
  {
    GradMode off(false);
    y = result(sizes, x);
    indices = empty(sizes, Options{DType::Int64, x.device()}, op);
    if (y.numel() > 0) launch(op, y.device(), &PoolKernels::max, p, ready(x), y, indices);
    y = to_dtype(y, x.dtype());
  }
  if (wants_grad(x))
    record("MaxPoolWithIndicesBackward0", y, inputs(x),
           [op, indices = save(indices), sizes = x.sizes(), rank](Backward& b) {
             b[0] = scatter_planes(op, b.grad(), b(indices), sizes, static_cast<int64_t>(rank));
           });
  return {y, indices};
}

template <size_t rank>
Pair max_pool(const char* op, const Tensor& x, const Dims& kernel, const OptDims& stride,
              const Dims& padding, const Dims& dilation, bool ceil_mode) {
  PoolArgs a = pool_args(op, rank, kernel, stride, padding, dilation, ceil_mode);
  check_pool_input(op, x, rank, false);
  return max_over(op, x, equal_windows(op, x, a), rank);
}

Pair max_pool1d_with_indices(const Tensor& x, const Dims& kernel_size, const OptDims& stride,
                             const Dims& padding, const Dims& dilation, bool ceil_mode) {
  return max_pool<1>("max_pool1d", x, kernel_size, stride, padding, dilation, ceil_mode);
}
Pair max_pool3d_with_indices(const Tensor& x, const Dims& kernel_size, const OptDims& stride,
                             const Dims& padding, const Dims& dilation, bool ceil_mode) {
  return max_pool<3>("max_pool3d", x, kernel_size, stride, padding, dilation, ceil_mode);
}

Tensor max_pool2d_with_indices_backward(const Tensor& grad_output, const Tensor& self,
                                        const Dims& kernel_size, const OptDims& stride,
                                        const Dims& padding, const Dims& dilation, bool ceil_mode,
                                        const Tensor& indices) {
  const char* op = "max_pool2d_with_indices_backward";
  PoolArgs a = pool_args(op, 2, kernel_size, stride, padding, dilation, ceil_mode);
  check_pool_input(op, self, 2, false);
  Dims sizes = pooled_sizes(self, equal_windows(op, self, a), 2);
  CHECK(grad_output.sizes() == sizes && indices.sizes() == sizes, Shape, op,
        ": expected grad_output and indices of shape ", sizes, ", got ", grad_output.sizes(),
        " and ", indices.sizes());
  CHECK(grad_output.dtype() == self.dtype(), DType, op, ": expected grad_output of dtype ",
        self.dtype(), ", got ", grad_output.dtype());
  check_max_dtype(op, self);
  Tensor flat = reshape(indices, Dims{-1});
  Tensor checked = checked_index(op, flat, flat, self.size(-1) * self.size(-2), false);
  Tensor at = contiguous(reshape(checked, sizes));
  return scatter_planes(op, grad_output, at, self.sizes(), 2, self);
}

// ---- averages

Tensor avg_spread(const char* op, const Tensor& g, const WindowsRef& p, const Dims& sizes);

Tensor avg_over(const char* op, const Tensor& x, const WindowsRef& p, const Dims& sizes) {
  Tensor y;
  {
    GradMode off(false);
    y = result(sizes, x);
    if (y.numel() > 0) launch(op, y.device(), &PoolKernels::avg, *p, ready(x), y);
    y = to_dtype(y, x.dtype());
  }
  if (wants_grad(x))
    record("AvgPoolBackward0", y, inputs(x),
           [op, p, from = x.sizes()](Backward& b) { b[0] = avg_spread(op, b.grad(), p, from); });
  return y;
}

Tensor avg_spread(const char* op, const Tensor& g, const WindowsRef& p, const Dims& sizes) {
  Tensor x;
  {
    GradMode off(false);
    x = result(sizes, g);
    if (g.numel() > 0)
      launch(op, x.device(), &PoolKernels::avg_backward, *p, ready(g), x);
    else
      zero_(x);
    x = to_dtype(x, g.dtype());
  }
  if (wants_grad(g))
    record("AvgPoolBackwardBackward0", x, inputs(g),
           [op, p, from = g.sizes()](Backward& b) { b[0] = avg_over(op, b.grad(), p, from); });
  return x;
}

void check_avg_dtype(const char* op, const Tensor& x, bool integers) {
  CHECK(x.is_floating() || (integers && x.dtype() == DType::Int64), DType, op,
        ": expected a floating dtype", integers ? " or int64" : "", ", got ", x.dtype());
}

template <size_t rank>
Tensor avg_pool(const char* op, const Tensor& x, const Dims& kernel, const OptDims& stride,
                const Dims& padding, bool ceil_mode, bool count_include_pad,
                std::optional<int64_t> divisor_override) {
  PoolArgs a = pool_args(op, rank, kernel, stride, padding, Dims{1}, ceil_mode);
  check_pool_input(op, x, rank, rank == 1);
  check_avg_dtype(op, x, true);
  CHECK(!divisor_override || *divisor_override != 0, Value, op,
        ": expected divisor_override other than 0");
  a.count_include_pad = count_include_pad;
  a.divisor_override = divisor_override.value_or(0);
  auto p = std::make_shared<const PoolWindows>(equal_windows(op, x, a));
  return avg_over(op, x, p, pooled_sizes(x, *p, rank));
}

Tensor avg_pool1d(const Tensor& x, const Dims& kernel_size, const OptDims& stride,
                  const Dims& padding, bool ceil_mode, bool count_include_pad) {
  return avg_pool<1>("avg_pool1d", x, kernel_size, stride, padding, ceil_mode, count_include_pad,
                     std::nullopt);
}
Tensor avg_pool3d(const Tensor& x, const Dims& kernel_size, const OptDims& stride,
                  const Dims& padding, bool ceil_mode, bool count_include_pad,
                  std::optional<int64_t> divisor_override) {
  return avg_pool<3>("avg_pool3d", x, kernel_size, stride, padding, ceil_mode, count_include_pad,
                     divisor_override);
}

// ---- adaptive

Dims adaptive_size(const char* op, const Tensor& x, const Dims& output_size, size_t rank) {
  check_pool_input(op, x, rank, true);
  CHECK(output_size.size() == rank, Value, op, ": expected output_size of ", rank, " numbers, got ",
        output_size);
  return output_size;
}

template <size_t rank>
Tensor adaptive_avg(const char* op, const Tensor& x, const Dims& output_size) {
  check_avg_dtype(op, x, false);
  Dims out = adaptive_size(op, x, output_size, rank);
  auto p = std::make_shared<const PoolWindows>(adaptive_windows(op, x, out));
  return avg_over(op, x, p, pooled_sizes(x, *p, rank));
}
template <size_t rank> Pair adaptive_max(const char* op, const Tensor& x, const Dims& output_size) {
  Dims out = adaptive_size(op, x, output_size, rank);
  return max_over(op, x, adaptive_windows(op, x, out), rank);
}

Tensor adaptive_avg_pool1d(const Tensor& x, const Dims& output_size) {
  return adaptive_avg<1>("adaptive_avg_pool1d", x, output_size);
}
Tensor adaptive_avg_pool2d(const Tensor& x, const Dims& output_size) {
  return adaptive_avg<2>("adaptive_avg_pool2d", x, output_size);
}
Tensor adaptive_avg_pool3d(const Tensor& x, const Dims& output_size) {
  return adaptive_avg<3>("adaptive_avg_pool3d", x, output_size);
}
Pair adaptive_max_pool1d(const Tensor& x, const Dims& output_size) {
  return adaptive_max<1>("adaptive_max_pool1d", x, output_size);
}
Pair adaptive_max_pool2d(const Tensor& x, const Dims& output_size) {
  return adaptive_max<2>("adaptive_max_pool2d", x, output_size);
}
Pair adaptive_max_pool3d(const Tensor& x, const Dims& output_size) {
  return adaptive_max<3>("adaptive_max_pool3d", x, output_size);
}

// ---- max unpooling

template <size_t rank>
Tensor max_unpool(const char* op, const Tensor& x, const Tensor& indices, const Dims& kernel_size,
                  const OptDims& stride, const Dims& padding, const OptDims& output_size) {
  PoolArgs a = pool_args(op, rank, kernel_size, stride, padding, Dims{1}, false);
  check_pool_input(op, x, rank, false);
  check_max_dtype(op, x);
  CHECK(indices.sizes() == x.sizes(), Shape, op, ": expected indices of shape ", x.sizes(),
        ", got ", indices.sizes());
  CHECK(indices.dtype() == DType::Int64, DType, op, ": expected indices of int64, got ",
        indices.dtype());
  CHECK(!output_size || output_size->size() == rank ||
            static_cast<int64_t>(output_size->size()) == x.dim(),
        Value, op, ": expected output_size of ", rank, " or ", x.dim(), " numbers");
  Dims sizes = x.sizes();
  int64_t volume = 1;
  for (size_t i = 0; i < rank; ++i) {
    int64_t& size = sizes[sizes.size() - rank + i];
    int64_t usual = (size - 1) * a.stride[i] - 2 * a.padding[i] + a.kernel[i];
    size = output_size ? (*output_size)[output_size->size() - rank + i] : usual;
    CHECK(size > usual - a.stride[i] && size < usual + a.stride[i], Value, op,
          ": expected output_size between ", usual - a.stride[i] + 1, " and ",
          usual + a.stride[i] - 1, " in spatial dim ", i, ", got ", size);
    volume *= size;
  }
  Tensor flat = reshape(indices, Dims{-1});
  Tensor at = reshape(checked_index(op, flat, flat, volume, false), indices.sizes());
  Tensor y;
  {
    GradMode off(false);
    y = result(sizes, x);
    zero_(y);
    int64_t planes = x.size(0) * (x.dim() == static_cast<int64_t>(rank) + 2 ? x.size(1) : 1);
    launch(op, y.device(), &PoolKernels::place, planes, ready(x), contiguous(at), y);
    y = to_dtype(y, x.dtype());
  }
  if (wants_grad(x))
    record("MaxUnpoolBackward0", y, inputs(x), [at = save(at)](Backward& b) {
      b[0] = gather_planes(b.grad(), b(at), static_cast<int64_t>(rank));
    });
  return y;
}

Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const Dims& kernel_size,
                    const OptDims& stride, const Dims& padding, const OptDims& output_size) {
  return max_unpool<1>("max_unpool1d", x, indices, kernel_size, stride, padding, output_size);
}
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const Dims& kernel_size,
                    const OptDims& stride, const Dims& padding, const OptDims& output_size) {
  return max_unpool<2>("max_unpool2d", x, indices, kernel_size, stride, padding, output_size);
}
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const Dims& kernel_size,
                    const OptDims& stride, const Dims& padding, const OptDims& output_size) {
  return max_unpool<3>("max_unpool3d", x, indices, kernel_size, stride, padding, output_size);
}

}  // namespace

Pair max_pool2d_with_indices(const Tensor& x, const Dims& kernel_size, const OptDims& stride,
                             const Dims& padding, const Dims& dilation, bool ceil_mode) {
  return max_pool<2>("max_pool2d", x, kernel_size, stride, padding, dilation, ceil_mode);
}
Tensor avg_pool2d(const Tensor& x, const Dims& kernel_size, const OptDims& stride,
                  const Dims& padding, bool ceil_mode, bool count_include_pad,
                  std::optional<int64_t> divisor_override) {
  return avg_pool<2>("avg_pool2d", x, kernel_size, stride, padding, ceil_mode, count_include_pad,
                     divisor_override);
}

OP_TABLE(pool) = {
    op<max_pool1d_with_indices>(
        "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1]? stride=None, "
        "int[1] padding=0, int[1] dilation=1, bool ceil_mode=False) -> (Tensor output, "
        "Tensor indices)",
        "torch", "Maxima of windows of [N, C, L], and where they are."),
    op<max_pool2d_with_indices>(
        "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2]? stride=None, "
        "int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor output, "
        "Tensor indices)",
        "torch", "Maxima of windows of [N, C, H, W], and where they are."),
    op<max_pool3d_with_indices>(
        "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3]? stride=None, "
        "int[3] padding=0, int[3] dilation=1, bool ceil_mode=False) -> (Tensor output, "
        "Tensor indices)",
        "torch", "Maxima of windows of [N, C, D, H, W], and where they are."),
    op<max_pool2d_with_indices_backward>(
        "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, "
        "int[2]? stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> "
        "Tensor",
        "torch", "The gradient of max_pool2d."),
    op<avg_pool1d>("avg_pool1d(Tensor self, int[1] kernel_size, int[1]? stride=None, int[1] "
                   "padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
                   "torch nn", "Means of windows of [N, C, L]."),
    op<avg_pool2d>("avg_pool2d(Tensor self, int[2] kernel_size, int[2]? stride=None, int[2] "
                   "padding=0, bool ceil_mode=False, bool count_include_pad=True, int? "
                   "divisor_override=None) -> Tensor",
                   "nn", "Means of windows of [N, C, H, W]."),
    op<avg_pool3d>("avg_pool3d(Tensor self, int[3] kernel_size, int[3]? stride=None, int[3] "
                   "padding=0, bool ceil_mode=False, bool count_include_pad=True, int? "
                   "divisor_override=None) -> Tensor",
                   "nn", "Means of windows of [N, C, D, H, W]."),
    op<adaptive_avg_pool1d>("_adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
                            "private", "Means of output_size parts of [N, C, L]."),
    op<adaptive_avg_pool2d>("_adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor",
                            "private", "Means of output_size parts of [N, C, H, W]."),
    op<adaptive_avg_pool3d>("_adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor",
                            "private", "Means of output_size parts of [N, C, D, H, W]."),
    op<adaptive_max_pool1d>("_adaptive_max_pool1d(Tensor self, int[1] output_size) -> "
                            "(Tensor output, Tensor indices)",
                            "private", "Maxima of output_size parts, and where they are."),
    op<adaptive_max_pool2d>("_adaptive_max_pool2d(Tensor self, int[2] output_size) -> "
                            "(Tensor output, Tensor indices)",
                            "private", "Maxima of output_size parts, and where they are."),
    op<adaptive_max_pool3d>("_adaptive_max_pool3d(Tensor self, int[3] output_size) -> "
                            "(Tensor output, Tensor indices)",
                            "private", "Maxima of output_size parts, and where they are."),
    op<max_unpool1d>("max_unpool1d(Tensor self, Tensor indices, int[1] kernel_size, int[1]? "
                     "stride=None, int[1] padding=0, int[1]? output_size=None) -> Tensor",
                     "nn", "Maxima of [N, C, L] put back, zeros between."),
    op<max_unpool2d>("max_unpool2d(Tensor self, Tensor indices, int[2] kernel_size, int[2]? "
                     "stride=None, int[2] padding=0, int[2]? output_size=None) -> Tensor",
                     "nn", "Maxima of [N, C, H, W] put back, zeros between."),
    op<max_unpool3d>("max_unpool3d(Tensor self, Tensor indices, int[3] kernel_size, int[3]? "
                     "stride=None, int[3] padding=0, int[3]? output_size=None) -> Tensor",
                     "nn", "Maxima of [N, C, D, H, W] put back, zeros between."),
};
OP_TABLE_END(pool);

}  // namespace cresset::ops
