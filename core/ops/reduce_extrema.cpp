// Largest and smallest elements, and where they are.
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/indexing.h"
#include "core/ops/ops.h"
#include "core/ops/reduce.h"

namespace cresset::ops {
namespace {

void check_extreme(const char* op, const Tensor& x, const Dims& over) {
  CHECK(!x.is_complex(), DType, op, ": complex numbers have no order, got dtype ", x.dtype());
  if (x.numel() > 0) return;
  CHECK(static_cast<int64_t>(over.size()) < x.dim(), Shape, op,
        ": expected at least one element, got shape ", x.sizes());
  for (int64_t d : over)
    CHECK(x.size(d) > 0, Index, op, ": expected dim ", d, " to have elements, got shape ",
          x.sizes());
}

// The gradient goes to all elements that equal the extreme, in equal shares.
Tensor share_among_ties(const Tensor& g, const Tensor& x, const Tensor& y, const Dims& over,
                        bool keepdim) {
  Tensor wide = expand_reduced(y, x.sizes(), over, keepdim);
  Tensor mask = eq(x, wide);
  if (x.is_floating()) {
    Tensor both_nan = row(Row::logical_and, {row(Row::isnan, {x}), row(Row::isnan, {wide})});
    mask = row(Row::logical_or, {mask, both_nan});
  }
  Tensor count = sum(mask, over, keepdim, std::nullopt);
  return mul(expand_reduced(div(g, count), x.sizes(), over, keepdim), mask);
}

Tensor extreme_of(const char* op, const char* node, bool largest, const Tensor& x,
                  const std::optional<Dims>& dims, bool keepdim) {
  Dims over = reduction_dims(op, x, dims);
  check_extreme(op, x, over);
  Tensor y = reduce_raw(op, x, over, {largest ? ReduceOp::Max : ReduceOp::Min, x.dtype(), keepdim});
  if (wants_grad(x))
    record(node, y, inputs(x), [x = save(x), y = save_output(y), over, keepdim](Backward& b) {
      b[0] = share_among_ties(b.grad(), b(x), b(y), over, keepdim);
    });
  return y;
}

// Values and positions along one dim; the gradient goes to the positions.
std::tuple<Tensor, Tensor> extreme_along(const char* op, const char* node, bool largest,
                                         const Tensor& x, int64_t dim, bool keepdim) {
  Dims over = reduction_dims(op, x, Dims{dim});
  check_extreme(op, x, over);
  Dims sizes = reduced_sizes(x, over, keepdim);
  Tensor values = empty(sizes, options_of(x)), at = empty(sizes, {DType::Int64, x.device()});
  const int64_t d = over.empty() ? 0 : over[0];
  launch(op, x.device(), &ReduceKernels::extreme, x, d, largest, values, at);
  if (wants_grad(x)) {
    auto backward = [at = save(at), d, keepdim, rank = x.dim(),
                     n = x.dim() ? x.size(d) : 1](Backward& b) {
      Tensor g = b.grad(), where = b(at);
      if (rank > 0 && !keepdim) {
        g = unsqueeze(g, d);
        where = unsqueeze(where, d);
      }
      b[0] = rank > 0 ? spread_along(g, where, d, n) : g;
    };
    record(node, values, inputs(x), backward);
  }
  return {values, at};
}

Tensor position(const char* op, bool largest, const Tensor& x, std::optional<int64_t> dim,
                bool keepdim) {
  GradMode off(false);
  const Tensor in = dim ? x : reshape(x, Dims{-1});
  Dims over = reduction_dims(op, in, Dims{dim.value_or(0)});
  check_extreme(op, in, over);
  Tensor at = empty(dim ? reduced_sizes(x, over, keepdim) : Dims{}, {DType::Int64, x.device()});
  launch(op, x.device(), &ReduceKernels::extreme, in, over.empty() ? int64_t{0} : over[0], largest,
         Tensor(), at);
  if (dim || !keepdim) return at;
  return reshape(at, Dims(static_cast<size_t>(x.dim()), 1));
}

}  // namespace

Tensor spread_along(const Tensor& g, const Tensor& indices, int64_t dim, int64_t size) {
  Dims sizes = g.sizes();
  sizes[dim] = size;
  return scatter_add(zeros(sizes, options_of(g)), dim, indices, g);
}

Tensor amax(const Tensor& x, const std::optional<Dims>& dims, bool keepdim) {
  return extreme_of("amax", "AmaxBackward0", true, x, dims, keepdim);
}
Tensor amin(const Tensor& x, const std::optional<Dims>& dims, bool keepdim) {
  return extreme_of("amin", "AminBackward0", false, x, dims, keepdim);
}
std::tuple<Tensor, Tensor> max_dim(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_along("max", "MaxBackward0", true, x, dim, keepdim);
}
std::tuple<Tensor, Tensor> min_dim(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_along("min", "MinBackward0", false, x, dim, keepdim);
}
Tensor argmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return position("argmax", true, x, dim, keepdim);
}
Tensor argmin(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return position("argmin", false, x, dim, keepdim);
}

namespace {

Tensor max_all(const Tensor& x) {
  return extreme_of("max", "MaxBackward1", true, x, std::nullopt, false);
}
Tensor min_all(const Tensor& x) {
  return extreme_of("min", "MinBackward1", false, x, std::nullopt, false);
}

std::tuple<Tensor, Tensor> aminmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  std::optional<Dims> dims;
  if (dim) dims = Dims{*dim};
  return {extreme_of("aminmax", "AminmaxBackward0", false, x, dims, keepdim),
          extreme_of("aminmax", "AminmaxBackward0", true, x, dims, keepdim)};
}

}  // namespace

OP_TABLE(reduce_extrema) = {
    op<amax>("amax(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", "torch method",
             "Largest element over dims; ties share the gradient."),
    op<amin>("amin(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", "torch method",
             "Smallest element over dims; ties share the gradient."),
    op<aminmax>("aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> "
                "(Tensor min, Tensor max)",
                "torch method", "Smallest and largest element over a dim, or of everything."),
    op<max_all>("_max_all(Tensor self) -> Tensor", "private", "The largest element."),
    op<min_all>("_min_all(Tensor self) -> Tensor", "private", "The smallest element."),
    op<max_dim>("_max_dim(Tensor self, int dim, bool keepdim=False) -> "
                "(Tensor values, Tensor indices)",
                "private", "Largest elements along a dim, and where they are."),
    op<min_dim>("_min_dim(Tensor self, int dim, bool keepdim=False) -> "
                "(Tensor values, Tensor indices)",
                "private", "Smallest elements along a dim, and where they are."),
    op<argmax>("argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", "torch method",
               "Position of the largest element along a dim, or of the flattened tensor."),
    op<argmin>("argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", "torch method",
               "Position of the smallest element along a dim, or of the flattened tensor."),
};
OP_TABLE_END(reduce_extrema);

}  // namespace cresset::ops
