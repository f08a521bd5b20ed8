// Fractional max pooling: Graham, "Fractional max-pooling" (2014), with pseudo-random windows.
#include "core/ops/fractional_pool.h"

#include "core/dispatch/op.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

namespace cresset::ops {
namespace {

using Pair = std::tuple<Tensor, Tensor>;

// A draw per plane and dim, first dim first. PyTorch draws for the width first in two dims, for the
// depth first in three; a 2-d image is one slice, whose draw makes no difference.
Tensor draws_of(const Tensor& samples) {
  const int64_t rank = samples.size(2);
  Tensor draws = reshape(samples, Dims{samples.size(0) * samples.size(1), rank});
  if (rank == 2) draws = constant_pad_nd(flip(draws, Dims{1}), Dims{1, 0}, Scalar(0.0));
  return contiguous(draws);
}

void check_pool(const char* op, const Tensor& x, int64_t rank, const Dims& kernel, const Dims& out,
                const Tensor& samples) {
  CHECK(x.dim() == rank + 1 || x.dim() == rank + 2, Shape, op, ": expected ", rank + 1, " or ",
        rank + 2, " dims, got shape ", x.sizes());
  CHECK(x.dtype() == DType::Float32 || x.dtype() == DType::Float64, DType, op,
        ": expected float32 or float64, got ", x.dtype());
  for (int64_t d = -rank - 1; d < 0; ++d)
    CHECK(x.size(d) > 0, Shape, op, ": expected elements in every dim but the batch, got shape ",
          x.sizes());
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t size = x.size(d - rank), k = kernel[static_cast<size_t>(d)];
    const int64_t n = out[static_cast<size_t>(d)];
    CHECK(k > 0 && n > 0 && n <= size && k <= size && n + k - 1 <= size, Value, op, ": ", n,
          " windows of ", k, " elements do not fit into ", size);
  }
  // One image takes the first samples of several.
  const int64_t batch = x.dim() == rank + 2 ? x.size(0) : 1;
  const bool fits = samples.dim() == 3 && samples.size(0) >= batch &&
                    samples.size(1) == x.size(-rank - 1) && samples.size(2) == rank;
  CHECK(fits && samples.dtype() == x.dtype(), Shape, op, ": expected random samples of ", x.dtype(),
        " and shape ", Dims{batch, x.size(-rank - 1), rank}, ", got ", samples.dtype(), " and ",
        samples.sizes());
}

Pair pool(const char* op, const char* node, const Tensor& x, int64_t rank, const Dims& kernel_size,
          const Dims& output_size, const Tensor& random) {
  check_pool(op, x, rank, kernel_size, output_size, random);
  Tensor samples = narrow(detach(random), 0, 0, x.dim() == rank + 2 ? x.size(0) : 1);
  Dims sizes = x.sizes(), spatial, kernel, out;
  if (rank == 2) spatial.push_back(1), kernel.push_back(1), out.push_back(1);
  for (int64_t d = 0; d < rank; ++d) {
    spatial.push_back(x.size(d - rank));
    kernel.push_back(kernel_size[static_cast<size_t>(d)]);
    out.push_back(output_size[static_cast<size_t>(d)]);
    sizes[static_cast<size_t>(x.dim() - rank + d)] = output_size[static_cast<size_t>(d)];
  }
  const int64_t planes = samples.size(0) * samples.size(1);
  Tensor y = empty(sizes, options_of(x));
  Tensor indices = empty(sizes, Options{DType::Int64, x.device()});
  {
    GradMode off(false);
    auto as_planes = [&](const Tensor& t, const Dims& s) {
      return reshape(t, Dims{planes, s[0], s[1], s[2]});
    };
    if (y.numel() > 0)
      launch(op, x.device(), &FractionalPoolKernels::max_pool, as_planes(contiguous(x), spatial),
             draws_of(samples), std::span<const int64_t>(kernel), as_planes(y, out),
             as_planes(indices, out));
  }
  if (wants_grad(x))
    record(node, y, inputs(x), [shape = x.sizes(), at = save(indices), rank](Backward& b) {
      const int64_t first = static_cast<int64_t>(shape.size()) - rank;
      int64_t size = 1;
      for (int64_t d = 0; d < rank; ++d) size *= shape[static_cast<size_t>(first + d)];
      b[0] = reshape(spread_along(flatten(b.grad(), first), flatten(b(at), first), first, size),
                     shape);
    });
  return {y, indices};
}

Pair fractional_max_pool2d(const Tensor& x, const Dims& kernel_size, const Dims& output_size,
                           const Tensor& samples) {
  return pool("fractional_max_pool2d", "FractionalMaxPool2DBackward0", x, 2, kernel_size,
              output_size, samples);
}
Pair fractional_max_pool3d(const Tensor& x, const Dims& kernel_size, const Dims& output_size,
                           const Tensor& samples) {
  return pool("fractional_max_pool3d", "FractionalMaxPool3DBackward0", x, 3, kernel_size,
              output_size, samples);
}

}  // namespace

OP_TABLE(fractional_pool) = {
    op<fractional_max_pool2d>("_fractional_max_pool2d(Tensor self, int[2] kernel_size, "
                              "int[2] output_size, Tensor random_samples) -> (Tensor output, "
                              "Tensor indices)",
                              "private", "Maxima of windows of random steps over [N, C, H, W]."),
    op<fractional_max_pool3d>("_fractional_max_pool3d(Tensor self, int[3] kernel_size, "
                              "int[3] output_size, Tensor random_samples) -> (Tensor output, "
                              "Tensor indices)",
                              "private", "Maxima of windows of random steps over [N, C, D, H, W]."),
};
OP_TABLE_END(fractional_pool);

}  // namespace cresset::ops
