// Copies of a tensor in which a view has been overwritten, and matrices made of diagonals.
#include "core/dispatch/op.h"
#include "core/ops/copy_kernels.h"
#include "core/ops/shape.h"

namespace cresset::ops {
namespace {

// y = x with `part(y)` set to src. `part` maps a tensor of x's shape to a view of it.
template <class Part>
Tensor write_part(const char* op, const char* node, const Tensor& x, const Tensor& src,
                  const Part& part) {
  Tensor y;
  {
    GradMode off(false);
    y = clone(x, std::nullopt);
    Tensor target = part(y);
    CHECK(target.sizes() == src.sizes(), Shape, op, ": expected src of shape ", target.sizes(),
          ", got ", src.sizes());
    copy_raw(src, target);
  }
  if (wants_grad(x, src))
    record(node, y, inputs(x, src), [op, node, part, from = src.sizes()](Backward& b) {
      Options o = options_of(b.grad());
      if (b.needs(0)) b[0] = write_part(op, node, b.grad(), zeros(from, o), part);
      if (b.needs(1)) b[1] = part(b.grad());
    });
  return y;
}

}  // namespace

Tensor select_scatter(const Tensor& x, const Tensor& src, int64_t dim, int64_t index) {
  return write_part("select_scatter", "SelectScatterBackward0", x, src,
                    [=](const Tensor& t) { return select(t, dim, index); });
}

Tensor slice_scatter(const Tensor& x, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step) {
  return write_part("slice_scatter", "SliceScatterBackward0", x, src,
                    [=](const Tensor& t) { return slice(t, dim, start, end, step); });
}

namespace {

Tensor diagonal_scatter(const Tensor& x, const Tensor& src, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  return write_part("diagonal_scatter", "DiagonalScatterBackward0", x, src,
                    [=](const Tensor& t) { return diagonal(t, offset, dim1, dim2); });
}

// The strides count in x's memory, so the copy and its gradient are laid out like x.
Tensor as_strided_scatter(const Tensor& x, const Tensor& src, const Dims& size, const Dims& stride,
                          std::optional<int64_t> storage_offset) {
  CHECK(is_dense(x), NotImplemented,
        "as_strided_scatter: expected a tensor without gaps or "
        "overlap, got strides ",
        x.strides());
  int64_t start = storage_offset.value_or(x.offset()) - x.offset();
  CHECK(start >= 0, NotImplemented, "as_strided_scatter: an offset before the tensor's own");
  auto part = [size, stride, start, layout = x.strides()](const Tensor& t) {
    Tensor laid_out = t;
    if (!(t.strides() == layout) || t.offset() != 0) {
      laid_out = cresset::empty_strided(t.sizes(), layout, options_of(t));
      copy_(laid_out, t);
    }
    return as_strided(laid_out, size, stride, start);
  };
  Tensor y;
  {
    GradMode off(false);
    y = cresset::empty_strided(x.sizes(), x.strides(), options_of(x));
    copy_raw(x, y);
    Tensor target = part(y);
    CHECK(target.sizes() == src.sizes(), Shape, "as_strided_scatter: expected src of shape ",
          target.sizes(), ", got ", src.sizes());
    CHECK(!may_overlap_itself(target), Value,
          "as_strided_scatter: the written elements overlap each other");
    copy_raw(src, target);
  }
  if (wants_grad(x, src))
    record("AsStridedScatterBackward0", y, inputs(x, src), [=, layout = x.strides()](Backward& b) {
      Options o = options_of(b.grad());
      // PyTorch's gradient for self is that of the written elements, zero elsewhere (the
      // reverse of what the function's mathematics says); ported code sees its numbers.
      if (b.needs(0)) {
        Tensor nothing = cresset::empty_strided(b.grad().sizes(), layout, o);
        b[0] = as_strided_scatter(zero_(nothing), part(b.grad()), size, stride, start);
      }
      if (b.needs(1)) b[1] = part(b.grad());
    });
  return y;
}

}  // namespace

// ---- diagonals

Tensor diag_embed(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  CHECK(x.dim() >= 1, Shape, "diag_embed: expected a tensor of at least 1 dim, got a 0-d one");
  int64_t rank = x.dim() + 1;
  int64_t a = wrap_dim("diag_embed", dim1, rank), b = wrap_dim("diag_embed", dim2, rank);
  CHECK(a != b, Value, "diag_embed: dim1 and dim2 are both ", a);
  CHECK(offset > -(int64_t{1} << 40) && offset < (int64_t{1} << 40), Value, "diag_embed: offset ",
        offset, " is too large");
  int64_t n = x.size(-1) + std::abs(offset), next = 0;
  Dims shape;
  for (int64_t d = 0; d < rank; ++d) shape.push_back(d == a || d == b ? n : x.size(next++));
  Tensor y = zeros(shape, options_of(x));
  {
    GradMode off(false);
    copy_raw(x, diagonal(y, offset, a, b));
  }
  if (wants_grad(x))
    record("DiagEmbedBackward0", y, inputs(x),
           [offset, a, b](Backward& bw) { bw[0] = diagonal(bw.grad(), offset, a, b); });
  return y;
}

namespace {

Tensor diag(const Tensor& x, int64_t k) {
  CHECK(x.dim() == 1 || x.dim() == 2, Shape, "diag: expected a tensor of 1 or 2 dims, got shape ",
        x.sizes());
  return x.dim() == 1 ? diag_embed(x, k) : clone(diagonal(x, k), int64_t{0});
}

Tensor diagflat(const Tensor& x, int64_t offset) {
  return diag_embed(reshape(x, Dims{x.numel()}), offset);
}

}  // namespace

OP_TABLE(shape_scatter) = {
    op<select_scatter>("select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor",
                       "torch method", "A copy whose select(dim, index) is src."),
    op<slice_scatter>("slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, "
                      "int? end=None, int step=1) -> Tensor",
                      "torch method", "A copy whose slice is src."),
    op<diagonal_scatter>("diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, "
                         "int dim2=1) -> Tensor",
                         "torch method", "A copy whose diagonal is src."),
    op<as_strided_scatter>("as_strided_scatter(Tensor self, Tensor src, int[] size, "
                           "int[] stride, int? storage_offset=None) -> Tensor",
                           "torch method", "A copy whose as_strided view is src."),
    op<diag_embed>("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
                   "torch method", "Matrices with the last dim on a diagonal."),
    op<diag>("diag(Tensor self, int diagonal=0) -> Tensor", "torch method",
             "A matrix of a diagonal, or the diagonal of a matrix as a copy."),
    op<diagflat>("diagflat(Tensor self, int offset=0) -> Tensor", "torch method",
                 "A matrix with all elements on a diagonal."),
};
OP_TABLE_END(shape_scatter);

}  // namespace cresset::ops
