// Elements chosen one by one along a dim: gather, scatter, scatter_reduce, index_reduce.
#include "core/ops/scatter.h"

#include <limits>

#include "core/dispatch/op.h"
#include "core/ops/indexing.h"
#include "core/ops/write_in_place.h"

namespace cresset::ops {
namespace {

// dim and int64 index, once the shapes fit: index <= x in every dim but `dim`, x 0-d counts as 1-d.
struct Place {
  int64_t dim;
  Tensor index;
};

int64_t size_or_1(const Tensor& t, int64_t d) { return t.dim() ? t.size(d) : 1; }

Place check_place(const char* op, const Tensor& x, int64_t dim, const Tensor& index) {
  int64_t d = wrap_dim(op, dim, x.dim());
  if (index.numel() == 0) return {d, checked_index(op, x, index, 0, false)};
  bool same = std::max<int64_t>(x.dim(), 1) == std::max<int64_t>(index.dim(), 1);
  CHECK(same, Shape, op, ": expected an index with as many dims as the tensor of shape ", x.sizes(),
        ", got shape ", index.sizes());
  for (int64_t i = 0; i < x.dim(); ++i)
    CHECK(i == d || size_or_1(index, i) <= x.size(i), Shape, op, ": an index of shape ",
          index.sizes(), " does not fit shape ", x.sizes(), " apart from dim ", d);
  return {d, checked_index(op, x, index, size_or_1(x, d), false)};
}

Tensor viewed_1d(const Tensor& t) { return t.dim() ? t : unsqueeze(t, 0); }

}  // namespace

// ---- gather

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index, bool sparse_grad) {
  CHECK(!sparse_grad, NotImplemented, "gather: sparse gradients are not implemented");
  Place p = check_place("gather", x, dim, index);
  Tensor y = empty(p.index.sizes(), options_of(x), "gather");
  if (y.numel()) {
    GradMode off(false);
    launch("gather", x.device(), &ScatterKernels::gather, viewed_1d(x), p.dim, viewed_1d(p.index),
           y);
  }
  if (wants_grad(x))
    record("GatherBackward0", y, inputs(x),
           [sizes = x.sizes(), d = p.dim, at = save(p.index)](Backward& b) {
             Tensor g = b.grad();
             b[0] = scatter_add(zeros(sizes, options_of(g)), d, b(at), g);
           });
  return y;
}

namespace {

Tensor take_along_dim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  if (!dim) return take_along_dim(reshape(self, Dims{-1}), reshape(indices, Dims{-1}), 0);
  CHECK(self.dim() == indices.dim(), Shape,
        "take_along_dim: expected indices with as many dims as shape ", self.sizes(),
        ", got shape ", indices.sizes());
  int64_t d = wrap_dim("take_along_dim", *dim, self.dim());
  Dims a = self.sizes(), b = indices.sizes();
  if (self.dim()) a[d] = b[d] = 1;
  Dims sizes = broadcast_shapes("take_along_dim", a, b);
  Dims index_sizes = sizes;
  if (self.dim()) {
    sizes[d] = self.size(d);
    index_sizes[d] = indices.size(d);
  }
  Tensor at = checked_index("take_along_dim", self, indices, size_or_1(self, d), true);
  return gather(expand(self, sizes), d, expand(at, index_sizes));
}

// ---- scatter

// The part of src that the index reads.
Tensor fitted_src(const char* op, const Tensor& self, const Place& p, const Tensor& src) {
  CHECK(src.dtype() == self.dtype(), DType, op, ": expected self and src of one dtype, got ",
        self.dtype(), " and ", src.dtype());
  same_device(op, self, src);
  if (p.index.numel() == 0) return src;
  bool fits = std::max<int64_t>(src.dim(), 1) == std::max<int64_t>(p.index.dim(), 1);
  for (int64_t i = 0; fits && i < p.index.dim(); ++i)
    fits = size_or_1(p.index, i) <= size_or_1(src, i);
  CHECK(fits, Shape, op, ": an index of shape ", p.index.sizes(), " does not fit a src of shape ",
        src.sizes());
  Tensor part = src;
  for (int64_t i = 0; i < p.index.dim() && src.dim(); ++i)
    if (part.size(i) != p.index.size(i)) part = narrow(part, i, 0, p.index.size(i));
  return part.dim() == p.index.dim() ? part : reshape(part, p.index.sizes());
}

Tensor fill_src(const char* op, const Tensor& self, const Place& p, const Scalar& value) {
  CHECK(self.is_complex() || !value.is_complex(), DType, op,
        ": a complex value does not fit dtype ", self.dtype());
  return expand(full(Dims{}, value, options_of(self)), p.index.sizes());
}

void run_scatter(const char* op, const Tensor& to, const Place& p, const Tensor& src,
                 ScatterOp how) {
  if (p.index.numel() == 0) return;
  GradMode off(false);
  launch(op, to.device(), &ScatterKernels::scatter, viewed_1d(to), p.dim, viewed_1d(p.index),
         viewed_1d(src), how);
}

Tensor scattered(const char* op, const Tensor& self, const Place& p, const Tensor& src,
                 ScatterOp how) {
  GradMode off(false);
  Tensor y = clone(self, int64_t{0});
  run_scatter(op, y, p, src, how);
  return y;
}

Tensor assign(const Tensor& self, const Place& p, const Tensor& src) {
  Tensor y = scattered("scatter", self, p, src, ScatterOp::Assign);
  if (wants_grad(self, src))
    record("ScatterBackward0", y, inputs(self, src), [d = p.dim, at = save(p.index)](Backward& b) {
      Tensor g = b.grad();
      Place p{d, b(at)};
      if (b.needs(0)) b[0] = assign(g, p, fill_src("scatter", g, p, Scalar(int64_t{0})));
      if (b.needs(1) && p.index.numel()) b[1] = gather(g, d, p.index);
    });
  return y;
}

Tensor accumulate(const Tensor& self, const Place& p, const Tensor& src) {
  Tensor y = scattered("scatter_add", self, p, src, ScatterOp::Sum);
  if (wants_grad(self, src))
    record("ScatterAddBackward0", y, inputs(self, src),
           [d = p.dim, at = save(p.index)](Backward& b) {
             if (b.needs(0)) b[0] = b.grad();
             Tensor index = b(at);
             if (b.needs(1) && index.numel()) b[1] = gather(b.grad(), d, index);
           });
  return y;
}

Tensor reduce_places(const Tensor& self, const Place& p, const Tensor& src, ReduceMode mode,
                     bool include_self);

struct ScatterArgs {
  Place place;
  Tensor src;
  bool recording;
};

ScatterArgs scatter_args(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                         const Operand& src) {
  ScatterArgs a{check_place(op, self, dim, index), {}, false};
  bool is_number = !src.is_tensor();
  a.src = is_number ? fill_src(op, self, a.place, src.scalar())
                    : fitted_src(op, self, a.place, src.tensor());
  a.recording = wants_grad(self, a.src);
  return a;
}

Tensor scatter_with(const Tensor& self, const ScatterArgs& a, ScatterMode mode) {
  switch (mode) {
    case ScatterMode::add: return accumulate(self, a.place, a.src);
    case ScatterMode::multiply: return reduce_places(self, a.place, a.src, ReduceMode::prod, true);
    default: return assign(self, a.place, a.src);
  }
}

Tensor scatter(const Tensor& self, int64_t dim, const Tensor& index, const Operand& src,
               ScatterMode reduce) {
  return scatter_with(self, scatter_args("scatter", self, dim, index, src), reduce);
}

ScatterOp kernel_of(ScatterMode mode) {
  return mode == ScatterMode::none  ? ScatterOp::Assign
         : mode == ScatterMode::add ? ScatterOp::Sum
                                    : ScatterOp::Prod;
}

Tensor& scatter_in_place(const char* op, Tensor& self, const ScatterArgs& a, ScatterMode mode) {
  return write_in_place(
      op, self, a.recording,
      [&](const Tensor& to) {
        Place p{a.place.dim, apart_from(to, a.place.index)};
        run_scatter(op, to, p, apart_from(to, a.src), kernel_of(mode));
      },
      [&] { return scatter_with(self, a, mode); });
}

Tensor& scatter_(Tensor& self, int64_t dim, const Tensor& index, const Operand& src,
                 ScatterMode reduce) {
  return scatter_in_place("scatter_", self, scatter_args("scatter_", self, dim, index, src),
                          reduce);
}

Tensor& scatter_add_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  ScatterArgs a = scatter_args("scatter_add_", self, dim, index, Operand(src));
  return scatter_in_place("scatter_add_", self, a, ScatterMode::add);
}

// ---- scatter_reduce

ScatterOp kernel_of(ReduceMode mode) {
  switch (mode) {
    case ReduceMode::prod: return ScatterOp::Prod;
    case ReduceMode::amax: return ScatterOp::Amax;
    case ReduceMode::amin: return ScatterOp::Amin;
    default: return ScatterOp::Sum;
  }
}

// The value that a reduction starts from when self does not take part.
Tensor neutral(const Tensor& self, ReduceMode mode) {
  Options o = options_of(self);
  if (mode == ReduceMode::sum || mode == ReduceMode::mean) return zeros(Dims{}, o);
  if (mode == ReduceMode::prod) return ones(Dims{}, o);
  bool lowest = mode == ReduceMode::amax;
  if (self.is_floating()) return full(Dims{}, Scalar(lowest ? -HUGE_VAL : HUGE_VAL), o);
  int64_t bound = 0;
  visit_dtype(self.dtype(), [&]<class T>() {
    if constexpr (std::is_integral_v<T>)
      bound = static_cast<int64_t>(lowest ? std::numeric_limits<T>::lowest()
                                          : std::numeric_limits<T>::max());
  });
  return full(Dims{}, Scalar(bound), o);
}

Tensor ones_at(const Tensor& like, const Place& p) {
  return expand(ones(Dims{}, options_of(like)), p.index.sizes());
}

// How many values each element of the mean has; 1 where none.
Tensor mean_counts(const Tensor& self, const Place& p, bool include_self) {
  GradMode off(false);
  Tensor start = full(self.sizes(), Scalar(int64_t{include_self}), options_of(self));
  Tensor n = scattered("scatter_reduce", start, p, ones_at(self, p), ScatterOp::Sum);
  return include_self ? n : masked_fill(n, eq(n, Operand(0)), Operand(1));
}

// Gradients of amax and amin go in equal parts to every value that equals the result.
void share_gradient(Backward& b, const Place& p, const Tensor& self, const Tensor& src,
                    const Tensor& result, bool include_self) {
  Tensor g = b.grad();
  Tensor self_hit = to_dtype(eq(self, result), g.dtype());
  Tensor src_hit = to_dtype(eq(src, gather(result, p.dim, p.index)), g.dtype());
  Tensor part = div(g, accumulate(self_hit, p, src_hit));
  if (b.needs(0)) {
    Tensor own = mul(self_hit, part);
    b[0] = include_self ? own : assign(own, p, fill_src("scatter", own, p, Scalar(int64_t{0})));
  }
  if (b.needs(1)) b[1] = mul(src_hit, gather(part, p.dim, p.index));
}

// Zeros need care: a product with one zero has a gradient there alone.
void product_gradient(Backward& b, const Place& p, const Tensor& self, const Tensor& src,
                      const Tensor& result, bool include_self) {
  Tensor g = b.grad();
  auto product = [&](const Tensor& x, const Tensor& s) {
    return reduce_places(x, p, s, ReduceMode::prod, include_self);
  };
  if (b.needs(0)) {
    Tensor safe = masked_fill(self, eq(self, Operand(0)), Operand(1));
    Tensor own = div(mul(g, product(safe, src)), safe);
    b[0] = include_self ? own : assign(own, p, fill_src("scatter", own, p, Scalar(int64_t{0})));
  }
  if (!b.needs(1)) return;
  Tensor zero = eq(src, Operand(0));
  Tensor zeros_there =
      gather(accumulate(zeros(self.sizes(), options_of(self)), p, to_dtype(zero, self.dtype())),
             p.dim, p.index);
  Tensor single = row(Row::logical_and, {Operand(zero), Operand(eq(zeros_there, Operand(1)))});
  Tensor others = product(self, masked_fill(src, single, Operand(1)));
  b[1] =
      where_same(single, gather(mul(g, others), p.dim, p.index),
                 div(gather(mul(g, result), p.dim, p.index), masked_fill(src, zero, Operand(1))));
}

Tensor reduced_values(const Tensor& self, const Place& p, const Tensor& src, ReduceMode mode,
                      bool include_self) {
  GradMode off(false);
  Tensor y = clone(self, int64_t{0});
  if (!include_self)
    run_scatter("scatter_reduce", y, p, expand(neutral(self, mode), p.index.sizes()),
                ScatterOp::Assign);
  run_scatter("scatter_reduce", y, p, src, kernel_of(mode));
  if (mode != ReduceMode::mean) return y;
  Tensor n = mean_counts(self, p, include_self);
  if (is_integral(self.dtype(), true)) return row(Row::floor_divide, {Operand(y), Operand(n)});
  return div(y, n);
}

Tensor reduce_places(const Tensor& self, const Place& p, const Tensor& src, ReduceMode mode,
                     bool include_self) {
  CHECK(mode != ReduceMode::amax && mode != ReduceMode::amin ? true : !self.is_complex(), DType,
        "scatter_reduce: expected a real dtype, got ", self.dtype());
  Tensor y = reduced_values(self, p, src, mode, include_self);
  if (!wants_grad(self, src)) return y;
  bool sums = mode == ReduceMode::sum || mode == ReduceMode::mean;
  SavedTensor self_saved = sums ? SavedTensor() : save(self);
  SavedTensor src_saved = sums ? SavedTensor() : save(src);
  SavedTensor result = sums ? SavedTensor() : save_output(y);
  record(
      "ScatterReduceBackward0", y, inputs(self, src),
      [d = p.dim, at = save(p.index), mode, include_self, self_saved, src_saved, result,
       n = mode == ReduceMode::mean ? mean_counts(self, p, include_self) : Tensor()](Backward& b) {
        Place p{d, b(at)};
        if (mode == ReduceMode::amax || mode == ReduceMode::amin)
          return share_gradient(b, p, b(self_saved), b(src_saved), b(result), include_self);
        if (mode == ReduceMode::prod)
          return product_gradient(b, p, b(self_saved), b(src_saved), b(result), include_self);
        Tensor g = n.defined() ? div(b.grad(), n) : b.grad();
        if (b.needs(0))
          b[0] = include_self ? g : assign(g, p, fill_src("scatter", g, p, Scalar(int64_t{0})));
        if (b.needs(1)) b[1] = gather(g, d, p.index);
      });
  return y;
}

Tensor scatter_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                      ReduceMode reduce, bool include_self) {
  ScatterArgs a = scatter_args("scatter_reduce", self, dim, index, Operand(src));
  if (a.place.index.numel() == 0) return clone(self, std::nullopt);
  return reduce_places(self, a.place, a.src, reduce, include_self);
}

Tensor& scatter_reduce_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                        ReduceMode reduce, bool include_self) {
  check_inplace("scatter_reduce_", self, wants_grad(self, src));
  return copy_(self, scatter_reduce(self, dim, index, src, reduce, include_self));
}

// ---- index_reduce: the index names whole rows

Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                    ReduceMode reduce, bool include_self) {
  CHECK(
      reduce != ReduceMode::sum, Value,
      "index_reduce: expected reduce to be \"prod\", \"mean\", \"amax\" or \"amin\", got \"sum\"");
  int64_t d = wrap_dim("index_reduce", dim, self.dim());
  CHECK(index.dim() <= 1, Index, "index_reduce: expected a 1-d index, got shape ", index.sizes());
  CHECK(source.dim() == self.dim(), Shape, "index_reduce: a source of shape ", source.sizes(),
        " does not fit shape ", self.sizes());
  for (int64_t i = 0; i < self.dim(); ++i)
    CHECK(source.size(i) == (i == d ? index.numel() : self.size(i)), Shape,
          "index_reduce: a source of shape ", source.sizes(), " does not fit shape ", self.sizes(),
          " with ", index.numel(), " indices along dim ", d);
  CHECK(self.dim() || index.numel() == 1, Index,
        "index_reduce: expected one index for a 0-d tensor, got ", index.numel());
  Dims lined(static_cast<size_t>(self.dim()), 1);
  if (self.dim()) lined[d] = index.numel();
  Tensor everywhere = expand(reshape(detach(index), lined), source.sizes());
  return scatter_reduce(self, d, everywhere, source, reduce, include_self);
}

Tensor& index_reduce_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                      ReduceMode reduce, bool include_self) {
  check_inplace("index_reduce_", self, wants_grad(self, source));
  return copy_(self, index_reduce(self, dim, index, source, reduce, include_self));
}

}  // namespace

Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  ScatterArgs a = scatter_args("scatter_add", self, dim, index, Operand(src));
  return accumulate(self, a.place, a.src);
}

OP_TABLE(scatter) = {
    op<gather>("gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
               "torch method", "One element along a dim for every element of the index."),
    op<take_along_dim>("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor",
                       "torch method", "gather() with broadcasting; flat without a dim."),
    op<scatter>("scatter(Tensor self, int dim, Tensor index, Tensor|Scalar src, *, "
                "ScatterMode{none|add|multiply} reduce='none') -> Tensor",
                "torch method", "Writes elements of `src`, or one number, along a dim."),
    op<scatter_>("scatter_(Tensor(a!) self, int dim, Tensor index, Tensor|Scalar src, *, "
                 "ScatterMode{none|add|multiply} reduce='none') -> Tensor(a!)",
                 "method", "scatter() in place."),
    op<scatter_add>("scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
                    "torch method", "Adds elements of `src` along a dim."),
    op<scatter_add_>("scatter_add_(Tensor(a!) self, int dim, Tensor index, Tensor src) "
                     "-> Tensor(a!)",
                     "method", "scatter_add() in place."),
    op<scatter_reduce>("scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, "
                       "ReduceMode{sum|prod|mean|amax|amin} reduce, bool include_self=True) "
                       "-> Tensor",
                       "torch method", "Reduces elements of `src` into a dim."),
    op<scatter_reduce_>("scatter_reduce_(Tensor(a!) self, int dim, Tensor index, Tensor src, "
                        "ReduceMode{sum|prod|mean|amax|amin} reduce, bool include_self=True) "
                        "-> Tensor(a!)",
                        "method", "scatter_reduce() in place."),
    op<index_reduce>("index_reduce(Tensor self, int dim, Tensor index, Tensor source, "
                     "ReduceMode{sum|prod|mean|amax|amin} reduce, bool include_self=True) "
                     "-> Tensor",
                     "torch method", "Reduces rows of `source` into the indexed rows."),
    op<index_reduce_>("index_reduce_(Tensor(a!) self, int dim, Tensor index, Tensor source, "
                      "ReduceMode{sum|prod|mean|amax|amin} reduce, bool include_self=True) "
                      "-> Tensor(a!)",
                      "method", "index_reduce() in place."),
};
OP_TABLE_END(scatter);

}  // namespace cresset::ops
