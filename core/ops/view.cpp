// Views: the same storage under other sizes and strides.
#include <numeric>

#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/ops/view_helpers.h"

namespace cresset::ops {

Tensor detach(const Tensor& x) { return alias(x); }

// ---- as_strided

namespace {

// Calls f(element offset) for every index of a geometry, in row-major order.
template <class F>
void for_each_offset(const Dims& sizes, const Dims& strides, int64_t offset, F&& f) {
  int64_t n = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  Dims at(sizes.size());
  for (int64_t i = 0; i < n; ++i) {
    f(offset);
    for (size_t d = sizes.size(); d-- > 0;) {
      offset += strides[d];
      if (++at[d] < sizes[d]) break;
      offset -= sizes[d] * strides[d];
      at[d] = 0;
    }
  }
}

int64_t last_offset(const Dims& sizes, const Dims& strides, int64_t offset) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return offset;
    offset += (sizes[d] - 1) * strides[d];
  }
  return offset;
}

struct ScatterArgs {
  Dims base_sizes, base_strides, view_sizes, view_strides;
  int64_t base_offset, view_offset;
};

Tensor scatter_view(const Tensor& grad, const ScatterArgs& s) {
  int64_t length = 1 + std::max(last_offset(s.base_sizes, s.base_strides, s.base_offset),
                                last_offset(s.view_sizes, s.view_strides, s.view_offset));
  if (grad.is_meta()) return empty(s.base_sizes, options_of(grad));
  const Options host{grad.dtype(), {}};
  Tensor flat = zeros(Dims{length}, host);
  Tensor g = contiguous(on_host(grad));
  Tensor out = empty(s.base_sizes, host);
  visit_dtype(g.dtype(), [&]<class T>() {
    if constexpr (requires(T a) { a += a; } && !std::is_same_v<T, bool>) {
      const T* from = g.data<T>();
      T* to = flat.data<T>();
      for_each_offset(s.view_sizes, s.view_strides, s.view_offset,
                      [&](int64_t at) { to[at] += *from++; });
      // Elements that the base itself repeats share their gradient evenly.
      std::vector<int32_t> count(static_cast<size_t>(length), 0);
      for_each_offset(s.base_sizes, s.base_strides, s.base_offset,
                      [&](int64_t at) { ++count[static_cast<size_t>(at)]; });
      T* result = out.data<T>();
      for_each_offset(s.base_sizes, s.base_strides, s.base_offset, [&](int64_t at) {
        T n = static_cast<T>(static_cast<float>(count[static_cast<size_t>(at)]));
        *result++ = n == T(1.0f) ? to[at] : static_cast<T>(to[at] / n);
      });
    } else {
      fail(ErrorKind::NotImplemented, "as_strided: no derivative for dtype ", g.dtype());
    }
  });
  return on_device(out, grad.device());
}

}  // namespace

Tensor as_strided_backward(const Tensor& grad, const Dims& base_sizes, const Dims& base_strides,
                           int64_t base_offset, const Dims& view_sizes, const Dims& view_strides,
                           int64_t view_offset) {
  ScatterArgs s{base_sizes, base_strides, view_sizes, view_strides, base_offset, view_offset};
  Tensor out;
  {
    GradMode off(false);
    out = scatter_view(grad, s);
  }
  if (wants_grad(grad)) {
    record("AsStridedBackward0Backward0", out, inputs(grad), [s](Backward& b) {
      Tensor g = contiguous(b.grad());
      b[0] = as_strided(g, s.view_sizes, s.view_strides, s.view_offset - s.base_offset);
    });
  }
  return out;
}

Tensor as_strided(const Tensor& x, const Dims& sizes, const Dims& strides,
                  std::optional<int64_t> offset) {
  CHECK(sizes.size() == strides.size(), Shape,
        "as_strided: expected as many strides as sizes, got ", sizes, " and ", strides);
  int64_t n = checked_numel("as_strided", sizes);
  int64_t start = offset.value_or(x.offset());
  int64_t last = start;
  bool overflow = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    CHECK(strides[i] >= 0, Value, "as_strided: expected strides that are not negative, got ",
          strides);
    int64_t reach = 0;
    if (n) overflow |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &reach);
    overflow |= __builtin_add_overflow(last, reach, &last);
  }
  int64_t held = static_cast<int64_t>(x.storage().bytes() / itemsize(x.dtype()));
  CHECK(start >= 0 && !overflow && (n == 0 || last < held), Value, "as_strided: sizes ", sizes,
        ", strides ", strides, " and offset ", start, " reach beyond a storage of ", held,
        " elements");
  ScatterArgs s{x.sizes(), x.strides(), sizes, strides, x.offset(), start};
  return make_view("as_strided", "AsStridedBackward0", x, sizes, strides, start, [s](Backward& b) {
    b[0] = as_strided_backward(b.grad(), s.base_sizes, s.base_strides, s.base_offset, s.view_sizes,
                               s.view_strides, s.view_offset);
  });
}

// ---- reshaping

namespace {

// Fills in the -1 of a wanted shape.
Dims infer_size(const char* op, const Tensor& x, const Dims& sizes) {
  Dims out = sizes;
  int64_t known = 1, hole = -1;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == -1) {
      CHECK(hole < 0, Value, op, ": only one size may be -1, got ", sizes);
      hole = static_cast<int64_t>(i);
      continue;
    }
    CHECK(out[i] >= 0, Value, op, ": expected sizes of at least 0, or one -1, got ", sizes);
    CHECK(!__builtin_mul_overflow(known, out[i], &known), Value, op, ": size ", sizes,
          " has too many elements");
  }
  if (hole >= 0) {
    CHECK(known != 0 && x.numel() % known == 0, Shape, op, ": shape ", sizes,
          " is invalid for a tensor of ", x.numel(), " elements");
    out[static_cast<size_t>(hole)] = x.numel() / known;
  } else {
    CHECK(known == x.numel(), Shape, op, ": shape ", sizes, " is invalid for a tensor of ",
          x.numel(), " elements (shape ", x.sizes(), ")");
  }
  return out;
}

// Strides of x's memory under other sizes; nullopt where that needs a copy.
std::optional<Dims> viewed_strides(const Tensor& x, const Dims& sizes) {
  if (x.numel() == 0) return x.sizes() == sizes ? x.strides() : contiguous_strides(sizes);
  Dims strides(sizes.size());
  int64_t d = static_cast<int64_t>(sizes.size()) - 1;
  int64_t chunk_stride = x.dim() ? x.strides().back() : 1;
  int64_t wanted = 1, held = 1;
  for (int64_t i = x.dim() - 1; i >= 0; --i) {
    held *= x.size(i);
    bool chunk_ends = i == 0 || (x.size(i - 1) != 1 && x.stride(i - 1) != held * chunk_stride);
    if (!chunk_ends) continue;
    while (d >= 0 && (wanted < held || sizes[d] == 1)) {
      strides[d] = wanted * chunk_stride;
      wanted *= sizes[d];
      --d;
    }
    if (wanted != held) return std::nullopt;
    if (i > 0) {
      chunk_stride = x.stride(i - 1);
      wanted = held = 1;
    }
  }
  for (; d >= 0; --d) {
    if (sizes[d] != 1) return std::nullopt;
    strides[d] = 1;
  }
  return strides;
}

Tensor view_with(const char* op, const char* node, const Tensor& x, const Dims& sizes,
                 const Dims& strides) {
  return make_view(op, node, x, sizes, strides, x.offset(),
                   [from = x.sizes()](Backward& b) { b[0] = reshape(b.grad(), from); });
}

}  // namespace

Tensor view(const Tensor& x, const Dims& sizes) {
  Dims to = infer_size("view", x, sizes);
  std::optional<Dims> strides = viewed_strides(x, to);
  CHECK(strides, Shape, "view: shape ", to, " is not compatible with shape ", x.sizes(),
        " and strides ", x.strides(), " (a copy is needed: use reshape)");
  return view_with("view", "ViewBackward0", x, to, *strides);
}

Tensor reshape(const Tensor& x, const Dims& sizes) {
  Dims to = infer_size("reshape", x, sizes);
  if (std::optional<Dims> strides = viewed_strides(x, to))
    return view_with("reshape", "ViewBackward0", x, to, *strides);
  return view_with("reshape", "UnsafeViewBackward0", clone(x, int64_t{0}), to,
                   contiguous_strides(to));
}

Tensor expand(const Tensor& x, const Dims& sizes, bool) {
  CHECK(static_cast<int64_t>(sizes.size()) >= x.dim(), Shape, "expand: shape ", sizes,
        " has fewer dims than the tensor's shape ", x.sizes());
  Dims to = sizes, strides(sizes.size());
  int64_t lead = static_cast<int64_t>(sizes.size()) - x.dim();
  for (int64_t i = 0; i < static_cast<int64_t>(to.size()); ++i) {
    if (i < lead) {
      CHECK(to[i] >= 0, Value, "expand: size -1 is not allowed in a leading new dim, got ", sizes);
      continue;
    }
    int64_t own = x.size(i - lead);
    if (to[i] == -1) to[i] = own;
    CHECK(to[i] == own || (own == 1 && to[i] >= 0), Shape, "expand: shape ", x.sizes(),
          " does not expand to ", sizes, " at dim ", i);
    strides[i] = to[i] == own && (own != 1 || to[i] == 1) ? x.stride(i - lead) : 0;
  }
  checked_numel("expand", to);
  return make_view("expand", "ExpandBackward0", x, to, strides, x.offset(),
                   [from = x.sizes()](Backward& b) { b[0] = sum_to_size(b.grad(), from); });
}

Tensor permute(const Tensor& x, const Dims& dims) {
  CHECK(static_cast<int64_t>(dims.size()) == x.dim(), Shape, "permute: expected ", x.dim(),
        " dims for shape ", x.sizes(), ", got ", dims);
  Dims sizes(dims.size()), strides(dims.size()), inverse(dims.size(), -1);
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = wrap_dim("permute", dims[i], x.dim());
    CHECK(inverse[d] < 0, Value, "permute: dim ", d, " appears twice in ", dims);
    inverse[d] = static_cast<int64_t>(i);
    sizes[i] = x.size(d);
    strides[i] = x.stride(d);
  }
  return make_view("permute", "PermuteBackward0", x, sizes, strides, x.offset(),
                   [inverse](Backward& b) { b[0] = permute(b.grad(), inverse); });
}

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  int64_t i = wrap_dim("transpose", dim0, x.dim()), j = wrap_dim("transpose", dim1, x.dim());
  Dims sizes = x.sizes(), strides = x.strides();
  if (x.dim()) {
    std::swap(sizes[i], sizes[j]);
    std::swap(strides[i], strides[j]);
  }
  return make_view("transpose", "TransposeBackward0", x, sizes, strides, x.offset(),
                   [i, j](Backward& b) { b[0] = transpose(b.grad(), i, j); });
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  int64_t d = wrap_dim("unsqueeze", dim, x.dim() + 1);
  Dims sizes = x.sizes(), strides = x.strides();
  int64_t stride = d < x.dim() ? x.size(d) * x.stride(d) : 1;
  sizes.insert(static_cast<size_t>(d), 1);
  strides.insert(static_cast<size_t>(d), stride);
  return make_view("unsqueeze", "UnsqueezeBackward0", x, sizes, strides, x.offset(),
                   [d](Backward& b) { b[0] = squeeze(b.grad(), Dims{d}); });
}

Tensor squeeze(const Tensor& x, const Dims& dims) {
  Dims chosen = wrap_dims("squeeze", dims, x.dim(), false);
  Dims sizes, strides;
  for (int64_t i = 0; i < x.dim(); ++i) {
    bool drop = x.size(i) == 1 && std::find(chosen.begin(), chosen.end(), i) != chosen.end();
    if (drop) continue;
    sizes.push_back(x.size(i));
    strides.push_back(x.stride(i));
  }
  return make_view("squeeze", "SqueezeBackward1", x, sizes, strides, x.offset(),
                   [from = x.sizes()](Backward& b) { b[0] = reshape(b.grad(), from); });
}

// ---- parts

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  CHECK(x.dim() > 0, Index, "select: cannot index a 0-d tensor");
  int64_t d = wrap_dim("select", dim, x.dim()), n = x.size(d);
  CHECK(index >= -n && index < n, Index, "select: expected index in [", -n, ", ", n - 1,
        "] for dim ", d, " of shape ", x.sizes(), ", got ", index);
  int64_t i = index < 0 ? index + n : index;
  Dims sizes = x.sizes(), strides = x.strides();
  int64_t offset = x.offset() + i * x.stride(d);
  sizes.erase(static_cast<size_t>(d));
  strides.erase(static_cast<size_t>(d));
  return make_view("select", "SelectBackward0", x, sizes, strides, offset,
                   [from = x.sizes(), d, i](Backward& b) {
                     Tensor whole = zeros(from, options_of(b.grad()));
                     Tensor part = select(whole, d, i);
                     copy_(part, b.grad());
                     b[0] = whole;
                   });
}

Tensor slice(const Tensor& x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
             int64_t step) {
  CHECK(x.dim() > 0, Index, "slice: cannot slice a 0-d tensor");
  int64_t d = wrap_dim("slice", dim, x.dim()), n = x.size(d);
  CHECK(step > 0, Value, "slice: expected a step greater than 0, got ", step);
  auto clamp = [n](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + n : v, 0, n); };
  int64_t lo = clamp(start.value_or(0)), hi = std::max(lo, clamp(end.value_or(n)));
  Dims sizes = x.sizes(), strides = x.strides();
  sizes[d] = (hi - lo + step - 1) / step;
  if (sizes[d] > 1 || step < (1 << 20)) strides[d] *= step;
  int64_t offset = x.offset() + lo * x.stride(d);
  return make_view("slice", "SliceBackward0", x, sizes, strides, offset,
                   [from = x.sizes(), d, lo, hi, step](Backward& b) {
                     Tensor whole = zeros(from, options_of(b.grad()));
                     Tensor part = slice(whole, d, lo, hi, step);
                     copy_(part, b.grad());
                     b[0] = whole;
                   });
}

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  CHECK(x.dim() > 0, Shape, "narrow: cannot be applied to a 0-d tensor");
  int64_t d = wrap_dim("narrow", dim, x.dim()), n = x.size(d);
  CHECK(start >= -n && start <= n, Index, "narrow: expected start in [", -n, ", ", n, "] for dim ",
        d, " of shape ", x.sizes(), ", got ", start);
  int64_t from = start < 0 ? start + n : start;
  CHECK(length >= 0 && from <= n - length, Value, "narrow: start ", start, " and length ", length,
        " reach beyond size ", n, " of dim ", d);
  return slice(x, d, from, from + length, 1);
}

namespace {

Tensor squeeze_op(const Tensor& x, const std::optional<Dims>& dim) {
  if (dim) return squeeze(x, *dim);
  Dims all(static_cast<size_t>(x.dim()));
  std::iota(all.begin(), all.end(), 0);
  return squeeze(x, all);
}

int64_t start_of(const Operand& start) {
  if (!start.is_tensor()) {
    CHECK(start.scalar().kind() == Scalar::Kind::Int, Type,
          "narrow: expected an integer start, got ", start.scalar());
    return start.scalar().to_int();
  }
  const Tensor& t = start.tensor();
  CHECK(t.dim() == 0 && is_integral(t.dtype(), false), Value,
        "narrow: expected a 0-d integer tensor for start, got ", t.dtype(), " of shape ",
        t.sizes());
  CHECK(!t.is_meta(), Device, "narrow: a meta tensor has no value to start from");
  return *on_host(to_dtype(t, DType::Int64)).data<int64_t>();
}

Tensor narrow_op(const Tensor& x, int64_t dim, const Operand& start, int64_t length) {
  return narrow(x, dim, start_of(start), length);
}
Tensor narrow_copy(const Tensor& x, int64_t dim, const Operand& start, int64_t length) {
  return clone(narrow(x, dim, start_of(start), length), int64_t{0});
}

// The *_copy operators: the view's values in fresh row-major memory.
Tensor fresh(const Tensor& v) { return clone(v, int64_t{0}); }
Tensor alias_copy(const Tensor& x) { return clone(x, std::nullopt); }
Tensor as_strided_copy(const Tensor& x, const Dims& size, const Dims& stride,
                       std::optional<int64_t> offset) {
  return fresh(as_strided(x, size, stride, offset));
}
Tensor view_copy(const Tensor& x, const Dims& size) { return fresh(view(x, size)); }
Tensor expand_copy(const Tensor& x, const Dims& size, bool implicit) {
  return fresh(expand(x, size, implicit));
}
Tensor permute_copy(const Tensor& x, const Dims& dims) { return fresh(permute(x, dims)); }
Tensor transpose_copy(const Tensor& x, int64_t a, int64_t b) { return fresh(transpose(x, a, b)); }
Tensor unsqueeze_copy(const Tensor& x, int64_t dim) { return fresh(unsqueeze(x, dim)); }
Tensor squeeze_copy(const Tensor& x, const std::optional<Dims>& dim) {
  return fresh(squeeze_op(x, dim));
}
Tensor select_copy(const Tensor& x, int64_t dim, int64_t index) {
  return fresh(select(x, dim, index));
}
Tensor slice_copy(const Tensor& x, int64_t dim, std::optional<int64_t> start,
                  std::optional<int64_t> end, int64_t step) {
  return fresh(slice(x, dim, start, end, step));
}
Tensor detach_copy(const Tensor& x) { return clone(detach(x), std::nullopt); }

}  // namespace

OP_TABLE(view) = {
    op<detach>("detach(Tensor self) -> Tensor", "method torch",
               "The same memory, outside the graph."),
    op<as_strided>("as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) "
                   "-> Tensor",
                   "torch method", "A view with given sizes, strides and offset (in elements)."),
    op<view>("_view(Tensor self, int[] size) -> Tensor", "private",
             "The same memory under another shape; one size may be -1."),
    op<reshape>("reshape(Tensor self, int[] shape) -> Tensor", "torch method",
                "Another shape: a view where strides allow it, else a copy."),
    op<expand>("expand(Tensor self, int[] size, *, bool implicit=False) -> Tensor", "method",
               "Repeats dims of size 1 without copying; -1 keeps a size."),
    op<permute>("permute(Tensor self, int[] dims) -> Tensor", "torch method",
                "The dims in another order."),
    op<transpose>("transpose(Tensor self, int dim0, int dim1) -> Tensor", "torch method",
                  "Two dims swapped."),
    op<unsqueeze>("unsqueeze(Tensor self, int dim) -> Tensor", "torch method",
                  "A new dim of size 1 at `dim`."),
    op<select>("select(Tensor self, int dim, int index) -> Tensor", "torch method",
               "One index of a dim; the dim disappears."),
    op<slice>("slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
              "method", "Every step-th index of a dim from start to end."),
    op<narrow_op>("narrow(Tensor self, int dim, Tensor|Scalar start, int length) -> Tensor",
                  "torch method", "`length` indices of a dim from `start`."),
    op<squeeze_op>("squeeze(Tensor self, int[]? dim=None) -> Tensor", "torch method",
                   "Without the dims of size 1 (all of them, or those given)."),
    op<expand>("broadcast_to(Tensor self, int[] size, *, bool implicit=False) -> Tensor",
               "torch method", "The tensor broadcast to a shape, as expand."),
    op<narrow_copy>("narrow_copy(Tensor self, int dim, Tensor|Scalar start, int length) -> Tensor",
                    "torch method", "narrow as a copy."),
    op<alias_copy>("alias_copy(Tensor self) -> Tensor", "torch", "A copy of the tensor."),
    op<detach_copy>("detach_copy(Tensor self) -> Tensor", "torch", "detach as a copy."),
    op<as_strided_copy>("as_strided_copy(Tensor self, int[] size, int[] stride, "
                        "int? storage_offset=None) -> Tensor",
                        "torch", "as_strided as a copy."),
    op<view_copy>("view_copy(Tensor self, int[] size) -> Tensor", "torch", "view as a copy."),
    op<expand_copy>("expand_copy(Tensor self, int[] size, *, bool implicit=False) -> Tensor",
                    "torch", "expand as a copy."),
    op<permute_copy>("permute_copy(Tensor self, int[] dims) -> Tensor", "torch",
                     "permute as a copy."),
    op<transpose_copy>("transpose_copy(Tensor self, int dim0, int dim1) -> Tensor", "torch",
                       "transpose as a copy."),
    op<unsqueeze_copy>("unsqueeze_copy(Tensor self, int dim) -> Tensor", "torch",
                       "unsqueeze as a copy."),
    op<squeeze_copy>("squeeze_copy(Tensor self, int[]? dim=None) -> Tensor", "torch",
                     "squeeze as a copy."),
    op<select_copy>("select_copy(Tensor self, int dim, int index) -> Tensor", "torch",
                    "select as a copy."),
    op<slice_copy>("slice_copy(Tensor self, int dim=0, int? start=None, int? end=None, "
                   "int step=1) -> Tensor",
                   "torch", "slice as a copy."),
};
OP_TABLE_END(view);

}  // namespace cresset::ops
