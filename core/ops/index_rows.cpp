// Rows by an index along a dim: index_select, index_add, index_copy, index_fill, take, put.
#include "core/dispatch/op.h"
#include "core/ops/indexing.h"
#include "core/ops/write_in_place.h"

namespace cresset::ops {
namespace {

RowShape row_shape(const Tensor& t, int64_t dim) {
  RowShape s;
  for (int64_t i = 0; i < t.dim(); ++i) (i < dim ? s.outer : i == dim ? s.n : s.inner) *= t.size(i);
  return s;
}

// The values of an index without the repetitions that expand() made.
Tensor unexpanded(const Tensor& index) {
  Dims sizes = index.sizes();
  for (int64_t i = 0; i < index.dim(); ++i)
    if (index.stride(i) == 0 && sizes[i] > 1) sizes[i] = 1;
  return contiguous(alias(index, sizes, index.strides(), index.offset()));
}

// The host does not see the values: the device checks and wraps them, and what is out of range is
// an error at the next synchronisation.
Tensor checked_on_device(const char* op, const Tensor& index, int64_t n, bool negative) {
  Tensor from = unexpanded(index);
  Tensor at = empty(from.sizes(), {DType::Int64, index.device()});
  launch(op, index.device(), &IndexingKernels::check, from, n, negative, at);
  return at.sizes() == index.sizes() ? at : expand(at, index.sizes());
}

}  // namespace

void same_device(const char* op, const Tensor& self, const Tensor& other) {
  CHECK(self.device() == other.device(), Device, op, ": expected all tensors on one device, got ",
        self.device(), " and ", other.device());
}

Tensor checked_index(const char* op, const Tensor& self, const Tensor& index, int64_t n,
                     bool negative) {
  same_device(op, self, index);
  bool ok = index.dtype() == DType::Int64 || index.dtype() == DType::Int32 ||
            (index.numel() == 0 && is_integral(index.dtype(), false));
  CHECK(ok, DType, op, ": expected an index of dtype int64 or int32, got ", index.dtype(),
        is_integral(index.dtype(), true) ? "" : " (long() truncates to integers)");
  GradMode off(false);
  if (index.numel() > 0 && index.device().type == DeviceType::CUDA)
    return checked_on_device(op, index, n, negative);
  Tensor at = to_dtype(index, DType::Int64);
  if (at.is_meta() || at.numel() == 0) return at;
  int64_t lo = 0, hi = 0;
  launch(op, at.device(), &IndexingKernels::range, unexpanded(at), &lo, &hi);
  CHECK(hi < n && lo >= (negative ? -n : 0), Index, op, ": expected indices in [",
        negative ? -n : 0, ", ", n - 1, "] for a dim of size ", n, ", got ", hi >= n ? hi : lo);
  if (lo >= 0) return at;
  Tensor wrapped = clone(at, int64_t{0});
  launch(op, at.device(), &IndexingKernels::wrap, wrapped, n);
  return wrapped;
}

// ---- rows

Tensor select_rows(const Tensor& x, int64_t dim, const Tensor& index) {
  Dims sizes = x.sizes();
  if (x.dim()) sizes[dim] = index.numel();
  Tensor y = empty(sizes, options_of(x), "index_select");
  {
    GradMode off(false);
    launch("index_select", x.device(), &IndexingKernels::select_rows, contiguous(x),
           contiguous(index), y, row_shape(x, dim));
  }
  if (wants_grad(x))
    record("IndexSelectBackward0", y, inputs(x),
           [from = x.sizes(), dim, at = save(index)](Backward& b) {
             b[0] = spread_rows(b.grad(), dim, b(at), from.empty() ? 1 : from[dim]);
           });
  return y;
}

Tensor spread_rows(const Tensor& src, int64_t dim, const Tensor& index, int64_t n) {
  Dims sizes = src.sizes();
  if (src.dim()) sizes[dim] = n;
  Tensor y = zeros(sizes, options_of(src));
  {
    GradMode off(false);
    launch("index_add", src.device(), &IndexingKernels::add_rows, y, contiguous(index),
           contiguous(src), Scalar(int64_t{1}), row_shape(y, dim));
  }
  if (wants_grad(src))
    record("IndexAddBackward0", y, inputs(src),
           [dim, at = save(index)](Backward& b) { b[0] = select_rows(b.grad(), dim, b(at)); });
  return y;
}

Tensor copy_rows(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  Tensor y;
  {
    GradMode off(false);
    y = clone(self, int64_t{0});
    launch("index_copy", y.device(), &IndexingKernels::write_rows, y, contiguous(index),
           contiguous(src), row_shape(y, dim));
  }
  if (wants_grad(self, src))
    record("IndexCopyBackward0", y, inputs(self, src),
           [dim, at = save(index), sizes = src.sizes()](Backward& b) {
             Tensor g = b.grad(), i = b(at);
             if (b.needs(0)) b[0] = copy_rows(g, dim, i, zeros(sizes, options_of(g)));
             if (b.needs(1)) b[1] = reshape(select_rows(g, dim, i), sizes);
           });
  return y;
}

Tensor add_rows(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                const Scalar& alpha) {
  Tensor y;
  {
    GradMode off(false);
    y = clone(self, int64_t{0});
    launch("index_add", y.device(), &IndexingKernels::add_rows, y, contiguous(index),
           contiguous(src), alpha, row_shape(y, dim));
  }
  if (wants_grad(self, src))
    record("IndexAddBackward0", y, inputs(self, src),
           [dim, alpha, at = save(index), sizes = src.sizes()](Backward& b) {
             if (b.needs(0)) b[0] = b.grad();
             if (!b.needs(1)) return;
             Tensor g = reshape(select_rows(b.grad(), dim, b(at)), sizes);
             b[1] = alpha.equals(1) ? g : mul(g, Operand(alpha));
           });
  return y;
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  int64_t d = wrap_dim("index_select", dim, x.dim());
  CHECK(index.dim() <= 1, Index, "index_select: expected a 1-d index, got shape ", index.sizes());
  CHECK(x.dim() > 0 || index.numel() == 1, Index,
        "index_select: expected one index for a 0-d tensor, got ", index.numel());
  int64_t n = x.dim() ? x.size(d) : 1;
  return select_rows(x, d, checked_index("index_select", x, index, n, false));
}

// ---- index_add, index_copy, index_fill

namespace {

struct RowWrite {
  int64_t dim;
  Tensor index;
};

// Checks self, index and source of index_add and index_copy against each other.
RowWrite check_rows(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                    const Tensor& source) {
  int64_t d = wrap_dim(op, dim, self.dim()), n = self.dim() ? self.size(d) : 1;
  CHECK(index.dim() <= 1, Index, op, ": expected a 1-d index, got shape ", index.sizes());
  CHECK(self.dtype() == source.dtype(), DType, op, ": expected self and source of one dtype, got ",
        self.dtype(), " and ", source.dtype());
  same_device(op, self, source);
  int64_t rows = source.dim() ? source.size(std::min(d, source.dim() - 1)) : 1;
  bool fits = source.dim() == self.dim() || (self.dim() <= 1 && source.dim() <= 1);
  for (int64_t i = 0; fits && i < self.dim() && source.dim() == self.dim(); ++i)
    fits = i == d || source.size(i) == self.size(i);
  CHECK(fits, Shape, op, ": a source of shape ", source.sizes(), " does not fit shape ",
        self.sizes(), " along dim ", d);
  CHECK(rows == index.numel(), Index, op, ": expected as many indices as the source has in dim ", d,
        " (", rows, "), got ", index.numel());
  return {d, checked_index(op, self, index, n, false)};
}

Tensor index_copy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  RowWrite w = check_rows("index_copy", self, dim, index, source);
  return copy_rows(self, w.dim, w.index, source);
}

Tensor& index_add_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                   const Scalar& alpha) {
  RowWrite w = check_rows("index_add_", self, dim, index, source);
  return write_in_place(
      "index_add_", self, wants_grad(self, source),
      [&](const Tensor& to) {
        launch("index_add_", to.device(), &IndexingKernels::add_rows, to,
               contiguous(apart_from(to, w.index)), contiguous(apart_from(to, source)), alpha,
               row_shape(to, w.dim));
      },
      [&] { return add_rows(self, w.dim, w.index, source, alpha); });
}

Tensor& index_copy_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  RowWrite w = check_rows("index_copy_", self, dim, index, source);
  return write_in_place(
      "index_copy_", self, wants_grad(self, source),
      [&](const Tensor& to) {
        launch("index_copy_", to.device(), &IndexingKernels::write_rows, to,
               contiguous(apart_from(to, w.index)), contiguous(apart_from(to, source)),
               row_shape(to, w.dim));
      },
      [&] { return copy_rows(self, w.dim, w.index, source); });
}

// Where index_fill writes, and what.
struct RowFill {
  Tensor mask, value;
};

RowFill check_fill(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                   const Operand& value) {
  int64_t d = wrap_dim(op, dim, self.dim()), n = self.dim() ? self.size(d) : 1;
  CHECK(index.dim() <= 1, Index, op, ": expected a 1-d index, got shape ", index.sizes());
  CHECK(!value.is_tensor() || value.tensor().dim() == 0, Shape, op,
        ": expected a number or a 0-d tensor as value, got shape ", value.tensor().sizes());
  Tensor v = value.as_tensor();
  CHECK(self.is_complex() || !v.is_complex(), DType, op, ": a complex value does not fit dtype ",
        self.dtype());
  GradMode off(false);
  Tensor at = checked_index(op, self, index, n, true);
  Dims sizes;
  if (self.dim()) {
    sizes.assign(static_cast<size_t>(self.dim() - d), 1);
    sizes[0] = n;
  }
  Options o{DType::Bool, self.device()};
  Tensor mask = copy_rows(zeros(Dims{n}, o), 0, at, ones(Dims{at.numel()}, o));
  return {reshape(mask, sizes), to_dtype(v, self.dtype())};
}

Tensor index_fill(const Tensor& self, int64_t dim, const Tensor& index, const Operand& value) {
  RowFill f = check_fill("index_fill", self, dim, index, value);
  return masked_fill(self, f.mask, value);
}

Tensor& index_fill_(Tensor& self, int64_t dim, const Tensor& index, const Operand& value) {
  RowFill f = check_fill("index_fill_", self, dim, index, value);
  bool recording = wants_grad(self) || (value.is_tensor() && wants_grad(value.tensor()));
  return write_in_place(
      "index_fill_", self, recording,
      [&](const Tensor& to) {
        launch("index_fill_", to.device(), &IndexingKernels::where, f.mask, apart_from(to, f.value),
               to, to);
      },
      [&] { return masked_fill(self, f.mask, value); });
}

// ---- take, put: the tensor as a flat list

Tensor flat(const Tensor& x) { return reshape(x, Dims{-1}); }

Tensor flat_index(const char* op, const Tensor& self, const Tensor& index) {
  return flat(checked_index(op, self, index, self.numel(), true));
}

Tensor take(const Tensor& self, const Tensor& index) {
  CHECK(self.numel() > 0 || index.numel() == 0, Index,
        "take: cannot take from a tensor without elements");
  Tensor at = flat_index("take", self, index);
  return reshape(select_rows(flat(self), 0, at), index.sizes());
}

void check_put(const char* op, const Tensor& self, const Tensor& index, const Tensor& source) {
  CHECK(index.numel() == source.numel(), Shape, op, ": expected as many source elements as ",
        index.numel(), " indices, got ", source.numel());
  CHECK(self.dtype() == source.dtype(), DType, op, ": expected self and source of one dtype, got ",
        self.dtype(), " and ", source.dtype());
  same_device(op, self, source);
  CHECK(self.numel() > 0 || index.numel() == 0, Index, op,
        ": cannot put into a tensor without elements");
}

Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  check_put("put", self, index, source);
  Tensor at = flat_index("put", self, index), from = flat(source);
  Tensor y = accumulate ? add_rows(flat(self), 0, at, from) : copy_rows(flat(self), 0, at, from);
  return reshape(y, self.sizes());
}

Tensor& put_(Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  check_inplace("put_", self, wants_grad(self, source));
  check_put("put_", self, index, source);
  return copy_(self, put(self, index, source, accumulate));
}

}  // namespace

Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha) {
  RowWrite w = check_rows("index_add", self, dim, index, source);
  return add_rows(self, w.dim, w.index, source, alpha);
}

OP_TABLE(index_rows) = {
    op<index_select>("index_select(Tensor self, int dim, Tensor index) -> Tensor", "torch method",
                     "The rows of a dim that a 1-d index names."),
    op<index_add>("index_add(Tensor self, int dim, Tensor index, Tensor source, *, "
                  "Scalar alpha=1) -> Tensor",
                  "torch method", "Adds alpha times the rows of `source` to the indexed rows."),
    op<index_add_>("index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, "
                   "Scalar alpha=1) -> Tensor(a!)",
                   "method", "index_add() in place."),
    op<index_copy>("index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
                   "torch method", "Writes the rows of `source` over the indexed rows."),
    op<index_copy_>("index_copy_(Tensor(a!) self, int dim, Tensor index, Tensor source) "
                    "-> Tensor(a!)",
                    "method", "index_copy() in place."),
    op<index_fill>("index_fill(Tensor self, int dim, Tensor index, Tensor|Scalar value) -> Tensor",
                   "torch method", "Writes one value over the indexed rows."),
    op<index_fill_>("index_fill_(Tensor(a!) self, int dim, Tensor index, Tensor|Scalar value) "
                    "-> Tensor(a!)",
                    "method", "index_fill() in place."),
    op<take>("take(Tensor self, Tensor index) -> Tensor", "torch method",
             "Elements by their number in row-major order."),
    op<put>("put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
            "torch method", "Writes elements by their number in row-major order."),
    op<put_>("put_(Tensor(a!) self, Tensor index, Tensor source, bool accumulate=False) "
             "-> Tensor(a!)",
             "method", "put() in place."),
};
OP_TABLE_END(index_rows);

}  // namespace cresset::ops
