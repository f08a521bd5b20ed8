// Views made of other geometry: diagonals, windows, moved dims, and changes of geometry in place.
#include <numeric>

#include "core/dispatch/op.h"
#include "core/ops/shape.h"
#include "core/ops/view_helpers.h"

namespace cresset::ops {

// ---- order of dims

Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination) {
  CHECK(source.size() == destination.size(), Value,
        "movedim: expected as many source as destination dims, got ", source, " and ", destination);
  int64_t n = x.dim();
  Dims order(static_cast<size_t>(n), -1), taken(static_cast<size_t>(n));
  for (size_t i = 0; i < source.size(); ++i) {
    int64_t from = wrap_dim("movedim", source[i], n), to = wrap_dim("movedim", destination[i], n);
    if (n == 0) continue;
    CHECK(!taken[from], Value, "movedim: a source dim appears twice in ", source);
    CHECK(order[to] < 0, Value, "movedim: a destination dim appears twice in ", destination);
    taken[from] = 1;
    order[to] = from;
  }
  int64_t next = 0;
  for (int64_t& o : order) {
    if (o >= 0) continue;
    while (taken[next]) ++next;
    o = next++;
  }
  return permute(x, order);
}

namespace {

Tensor t(const Tensor& x) {
  CHECK(x.dim() <= 2, Shape, "t: expected a tensor of at most 2 dims, got shape ", x.sizes());
  return transpose(x, 0, x.dim() < 2 ? 0 : 1);
}

Tensor t_copy(const Tensor& x) { return clone(t(x), int64_t{0}); }

Tensor numpy_t(const Tensor& x) {
  Dims order(static_cast<size_t>(x.dim()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = x.dim() - 1 - static_cast<int64_t>(i);
  return permute(x, order);
}

Tensor matrix_t(const Tensor& x) {
  CHECK(x.dim() >= 2, Shape, "mT: expected a tensor of at least 2 dims, got shape ", x.sizes());
  return transpose(x, -2, -1);
}

Tensor hermitian(const Tensor& x) {
  CHECK(x.dim() <= 2, Shape, "H: expected a tensor of at most 2 dims, got shape ", x.sizes());
  return conj(x.dim() == 2 ? transpose(x, 0, 1) : x);
}

}  // namespace

Tensor matrix_h(const Tensor& x) {
  CHECK(x.dim() >= 2, Shape, "mH: expected a tensor of at least 2 dims, got shape ", x.sizes());
  return conj(transpose(x, -2, -1));
}

// ---- shapes

Tensor flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  int64_t n = x.dim();
  int64_t first = wrap_dim("flatten", start_dim, n), last = wrap_dim("flatten", end_dim, n);
  CHECK(first <= last, Value, "flatten: expected start_dim at most end_dim, got ", start_dim,
        " and ", end_dim);
  if (n == 0) return reshape(x, Dims{1});
  if (first == last) return x;
  Dims sizes;
  int64_t joined = 1;
  for (int64_t d = 0; d < n; ++d) {
    if (d < first || d > last) {
      sizes.push_back(x.size(d));
    } else {
      joined *= x.size(d);
      if (d == last) sizes.push_back(joined);
    }
  }
  return reshape(x, sizes);
}

Tensor unflatten(const Tensor& x, int64_t dim, const Dims& sizes) {
  CHECK(x.dim() > 0, Shape, "unflatten: a 0-d tensor has no dim to unflatten");
  int64_t d = wrap_dim("unflatten", dim, x.dim());
  CHECK(!sizes.empty(), Value, "unflatten: expected at least one size");
  int64_t known = 1, hole = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      CHECK(hole < 0, Value, "unflatten: only one size may be -1, got ", sizes);
      hole = static_cast<int64_t>(i);
      continue;
    }
    CHECK(sizes[i] >= 0 && !__builtin_mul_overflow(known, sizes[i], &known), Value,
          "unflatten: expected sizes of at least 0, or one -1, got ", sizes);
  }
  bool fits = hole < 0 ? known == x.size(d) : known > 0 && x.size(d) % known == 0;
  CHECK(fits, Shape, "unflatten: sizes ", sizes, " do not multiply to size ", x.size(d), " of dim ",
        d);
  Dims to;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (i != d) {
      to.push_back(x.size(i));
      continue;
    }
    for (int64_t s : sizes) to.push_back(s == -1 ? x.size(d) / known : s);
  }
  return view(x, to);
}

namespace {

Tensor ravel(const Tensor& x) { return reshape(contiguous(x), Dims{-1}); }
Tensor expand_as(const Tensor& x, const Tensor& other) { return expand(x, other.sizes()); }
Tensor view_as(const Tensor& x, const Tensor& other) { return view(x, other.sizes()); }
Tensor reshape_as(const Tensor& x, const Tensor& other) { return reshape(x, other.sizes()); }

Tensor atleast_1d(const Tensor& x) { return x.dim() == 0 ? reshape(x, Dims{1}) : x; }
Tensor atleast_2d(const Tensor& x) {
  if (x.dim() == 0) return reshape(x, Dims{1, 1});
  return x.dim() == 1 ? unsqueeze(x, 0) : x;
}
Tensor atleast_3d(const Tensor& x) {
  if (x.dim() == 0) return reshape(x, Dims{1, 1, 1});
  if (x.dim() == 1) return unsqueeze(unsqueeze(x, 0), -1);
  return x.dim() == 2 ? unsqueeze(x, -1) : x;
}

}  // namespace

// ---- diagonals and windows

Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  CHECK(x.dim() >= 2, Shape, "diagonal: expected a tensor of at least 2 dims, got shape ",
        x.sizes());
  int64_t a = wrap_dim("diagonal", dim1, x.dim()), b = wrap_dim("diagonal", dim2, x.dim());
  CHECK(a != b, Value, "diagonal: dim1 and dim2 are both ", a);
  int64_t rows = x.size(a), columns = x.size(b);
  // Written so that no offset overflows.
  bool inside = offset >= 0 ? offset < columns : -(offset + 1) < rows - 1;
  int64_t length = 0, start = x.offset();
  if (inside) {
    length = offset >= 0 ? std::min(rows, columns - offset) : std::min(rows + offset, columns);
    if (length > 0) start += offset >= 0 ? offset * x.stride(b) : -offset * x.stride(a);
  }
  Dims sizes, strides;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d == a || d == b) continue;
    sizes.push_back(x.size(d));
    strides.push_back(x.stride(d));
  }
  sizes.push_back(length);
  strides.push_back(x.stride(a) + x.stride(b));
  return make_view("diagonal", "DiagonalBackward0", x, sizes, strides, start,
                   [from = x.sizes(), offset, a, b](Backward& bw) {
                     Tensor whole = zeros(from, options_of(bw.grad()));
                     Tensor part = diagonal(whole, offset, a, b);
                     copy_(part, bw.grad());
                     bw[0] = whole;
                   });
}

Tensor unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step) {
  int64_t d = wrap_dim("unfold", dimension, x.dim());
  int64_t n = x.dim() ? x.size(d) : 1;
  CHECK(size >= 0 && size <= n, Value, "unfold: expected a size in [0, ", n, "] for dim ", d,
        ", got ", size);
  CHECK(step > 0, Value, "unfold: expected a step greater than 0, got ", step);
  Dims sizes = x.sizes(), strides = x.strides();
  strides.push_back(x.dim() ? x.stride(d) : 1);
  sizes.push_back(size);
  if (x.dim()) {
    sizes[d] = (n - size) / step + 1;
    strides[d] = sizes[d] > 1 ? step * x.stride(d) : x.stride(d);
  }
  return make_view("unfold", "UnfoldBackward0", x, sizes, strides, x.offset(),
                   [from = x.sizes(), sizes, d, step](Backward& b) {
                     Dims base = contiguous_strides(from), window = base;
                     window.push_back(from.empty() ? 1 : base[d]);
                     if (!from.empty() && sizes[d] > 1) window[d] *= step;
                     b[0] = as_strided_backward(b.grad(), from, base, 0, sizes, window, 0);
                   });
}

namespace {

Tensor diagonal_copy(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  return clone(diagonal(x, offset, dim1, dim2), int64_t{0});
}
Tensor unfold_copy(const Tensor& x, int64_t dimension, int64_t size, int64_t step) {
  return clone(unfold(x, dimension, size, step), int64_t{0});
}

// ---- geometry in place

// Gives `self` the geometry that `make` gives to a view of it.
template <class F> Tensor& restride_(const char* op, Tensor& self, F&& make) {
  check_inplace(op, self, wants_grad(self));
  Tensor before = alias(self);
  if (self.impl()->autograd) {
    Edge e = gradient_edge(self);
    AutogradMeta& m = autograd_meta(before);
    m.grad_fn = e.node;
    m.output = e.input;
  }
  Tensor y = make(before);
  TensorImpl* impl = self.impl();
  impl->sizes = y.sizes();
  impl->strides = y.strides();
  impl->offset = y.offset();
  impl->refresh();
  if (before.requires_grad() && grad_enabled()) {
    AutogradMeta& m = autograd_meta(self);
    m.grad_fn = grad_fn(y);
    m.output = autograd_meta(y).output;
  }
  return self;
}

Tensor& transpose_(Tensor& self, int64_t dim0, int64_t dim1) {
  return restride_("transpose_", self, [&](const Tensor& x) { return transpose(x, dim0, dim1); });
}
Tensor& t_(Tensor& self) {
  return restride_("t_", self, [](const Tensor& x) { return t(x); });
}
Tensor& unsqueeze_(Tensor& self, int64_t dim) {
  return restride_("unsqueeze_", self, [&](const Tensor& x) { return unsqueeze(x, dim); });
}
Tensor& squeeze_(Tensor& self, const std::optional<Dims>& dim) {
  return restride_("squeeze_", self, [&](const Tensor& x) {
    Dims all(static_cast<size_t>(x.dim()));
    std::iota(all.begin(), all.end(), 0);
    return squeeze(x, dim.value_or(all));
  });
}
Tensor& as_strided_(Tensor& self, const Dims& size, const Dims& stride,
                    std::optional<int64_t> offset) {
  return restride_("as_strided_", self,
                   [&](const Tensor& x) { return as_strided(x, size, stride, offset); });
}

// ---- size of the storage

Tensor& resize_(Tensor& self, const Dims& size, std::optional<int64_t> memory_format) {
  CHECK(!self.requires_grad(), Autograd, "resize_: cannot resize a tensor that requires grad");
  int64_t n = checked_numel("resize_", size), format = memory_format.value_or(0);
  CHECK(format != 3, Value, "resize_: expected a memory format other than preserveFormat");
  if (self.sizes() == size && !memory_format) return self;
  Dims strides = format_strides("resize_", size, format);
  int64_t bytes = (self.offset() + n) * static_cast<int64_t>(itemsize(self.dtype()));
  CHECK(static_cast<uint64_t>(bytes) <= SIZE_MAX, OutOfMemory, "resize_: tried to allocate ", bytes,
        " bytes, more than can be addressed");
  TensorImpl* impl = self.impl();
  impl->storage->resize(static_cast<size_t>(bytes));
  impl->sizes = size;
  impl->strides = strides;
  impl->refresh();
  return self;
}

Tensor& resize_as_(Tensor& self, const Tensor& other, std::optional<int64_t> memory_format) {
  return resize_(self, other.sizes(), memory_format);
}

}  // namespace

OP_TABLE(shape_views) = {
    op<movedim>("movedim(Tensor self, int[1] source, int[1] destination) -> Tensor", "torch method",
                "Dims moved to other places, the rest in order."),
    op<movedim>("moveaxis(Tensor self, int[1] source, int[1] destination) -> Tensor",
                "torch method", "Another name of movedim."),
    op<transpose>("swapaxes(Tensor self, int axis0, int axis1) -> Tensor", "torch method",
                  "Another name of transpose."),
    op<transpose>("swapdims(Tensor self, int dim0, int dim1) -> Tensor", "torch method",
                  "Another name of transpose."),
    op<t>("t(Tensor self) -> Tensor", "torch method", "A matrix with its two dims swapped."),
    op<t_copy>("t_copy(Tensor self) -> Tensor", "torch", "t as a copy."),
    op<numpy_t>("_numpy_t(Tensor self) -> Tensor", "private", "All dims in reverse order."),
    op<matrix_t>("_matrix_t(Tensor self) -> Tensor", "private", "The two last dims swapped."),
    op<hermitian>("_hermitian(Tensor self) -> Tensor", "private",
                  "A matrix transposed and conjugated."),
    op<matrix_h>("adjoint(Tensor self) -> Tensor", "torch method",
                 "The two last dims swapped, conjugated."),
    op<flatten>("flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor", "torch method",
                "A range of dims joined into one."),
    op<unflatten>("unflatten(Tensor self, int dim, int[] sizes) -> Tensor", "torch method",
                  "One dim split into several; one size may be -1."),
    op<ravel>("ravel(Tensor self) -> Tensor", "torch method", "All elements in one dim."),
    op<expand_as>("expand_as(Tensor self, Tensor other) -> Tensor", "method",
                  "expand to the shape of other."),
    op<view_as>("view_as(Tensor self, Tensor other) -> Tensor", "method",
                "view with the shape of other."),
    op<reshape_as>("reshape_as(Tensor self, Tensor other) -> Tensor", "method",
                   "reshape to the shape of other."),
    op<atleast_1d>("_atleast_1d(Tensor self) -> Tensor", "private", "A 0-d tensor as 1-d."),
    op<atleast_2d>("_atleast_2d(Tensor self) -> Tensor", "private", "With at least 2 dims."),
    op<atleast_3d>("_atleast_3d(Tensor self) -> Tensor", "private", "With at least 3 dims."),
    op<diagonal>("diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
                 "torch method", "The diagonal of two dims, as the last dim."),
    op<diagonal>("linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
                 "linalg", "The diagonal of matrices."),
    op<diagonal_copy>("diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
                      "torch", "diagonal as a copy."),
    op<unfold>("unfold(Tensor self, int dimension, int size, int step) -> Tensor", "method",
               "Windows of a dim, every `step` elements, as the last dim."),
    op<unfold_copy>("unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
                    "torch", "unfold as a copy."),
    op<transpose_>("transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", "method",
                   "Swaps two dims of this tensor object."),
    op<transpose_>("swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)", "method",
                   "Another name of transpose_."),
    op<transpose_>("swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", "method",
                   "Another name of transpose_."),
    op<t_>("t_(Tensor(a!) self) -> Tensor(a!)", "method", "Swaps the dims of this matrix."),
    op<unsqueeze_>("unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", "method",
                   "Gives this tensor object a new dim of size 1."),
    op<squeeze_>("squeeze_(Tensor(a!) self, int[]? dim=None) -> Tensor(a!)", "method",
                 "Takes dims of size 1 from this tensor object."),
    op<as_strided_>("as_strided_(Tensor(a!) self, int[] size, int[] stride, "
                    "int? storage_offset=None) -> Tensor(a!)",
                    "method", "Gives this tensor object other sizes, strides and offset."),
    op<resize_>("resize_(Tensor(a!) self, int[] size, *, int? memory_format=None) -> Tensor(a!)",
                "method", "Another size over the same storage, which grows where needed."),
    op<resize_as_>("resize_as_(Tensor(a!) self, Tensor the_template, *, "
                   "int? memory_format=None) -> Tensor(a!)",
                   "method", "resize_ to the size of another tensor."),
};
OP_TABLE_END(shape_views);

}  // namespace cresset::ops
