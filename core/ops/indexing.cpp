// Advanced indexing: index, index_put and what finds indices (nonzero, argwhere).
#include "core/ops/indexing.h"
#include "core/dispatch/op.h"
#include "core/ops/write_in_place.h"

namespace cresset::ops {

// ---- nonzero

Tensor nonzero(const Tensor& x) {
  CHECK(!x.is_meta(), Device, "nonzero: the result depends on values, which meta tensors lack");
  GradMode off(false);
  Tensor c = contiguous(x);
  std::vector<int64_t> counts;
  launch("nonzero", x.device(), &IndexingKernels::count_nonzero, c, &counts);
  int64_t total = 0;
  for (int64_t n : counts) total += n;
  Tensor columns = empty(Dims{x.dim(), total}, {DType::Int64, x.device()}, "nonzero");
  launch("nonzero", x.device(), &IndexingKernels::nonzero, c, counts, columns);
  return transpose(columns, 0, 1);
}

namespace {

TensorList nonzero_tuple(const Tensor& x) {
  Tensor at = nonzero(x.dim() ? x : unsqueeze(detach(x), 0));
  TensorList out;
  for (int64_t d = 0; d < at.size(1); ++d) out.push_back(contiguous(select(at, 1, d)));
  return out;
}

Tensor nonzero_static(const Tensor& x, int64_t size, int64_t fill_value) {
  CHECK(size >= 0, Value, "nonzero_static: expected a size of at least 0, got ", size);
  Tensor y = full(Dims{size, x.dim()}, Scalar(fill_value), {DType::Int64, x.device()});
  Tensor found = nonzero(x);
  int64_t n = std::min(size, found.size(0));
  copy_raw(Operand(narrow(found, 0, 0, n)), narrow(y, 0, 0, n));
  return y;
}

// ---- index

// Note [Advanced indexing]
// Bool masks become the coordinates of their true elements. All indices broadcast to one shape S
// and are folded into one number per element, so that reading is index_select on a view in which
// the indexed dims are one, and writing is index_copy or index_add on it. Neighbouring indexed
// dims are replaced by S in place; otherwise the indexed dims are moved to the front first.
struct IndexPlan {
  Dims dims;           // the indexed dims, ascending
  Dims shape;          // S
  Tensor at;           // folded indices, 1-d
  bool moved = false;  // the indexed dims were moved to the front
  int64_t place = 0;   // where S stands
};

using Indices = std::vector<std::optional<Tensor>>;

void add_mask(const char* op, const Tensor& self, const Tensor& mask, int64_t dim,
              std::vector<std::pair<int64_t, Tensor>>& out) {
  for (int64_t i = 0; i < mask.dim(); ++i)
    CHECK(mask.size(i) == self.size(dim + i), Index, op, ": a mask of shape ", mask.sizes(),
          " does not fit shape ", self.sizes(), " at dim ", dim + i);
  Tensor at = nonzero(mask);
  for (int64_t i = 0; i < mask.dim(); ++i) out.emplace_back(dim + i, select(at, 1, i));
}

bool is_mask(const Tensor& t) { return t.dtype() == DType::Bool || t.dtype() == DType::UInt8; }

std::vector<std::pair<int64_t, Tensor>> by_dim(const char* op, const Tensor& self,
                                               const Indices& indices) {
  int64_t used = 0;
  for (const auto& i : indices) used += i && is_mask(*i) ? i->dim() : 1;
  CHECK(used <= self.dim(), Index, op, ": too many indices (", used, ") for shape ", self.sizes());
  std::vector<std::pair<int64_t, Tensor>> out;
  int64_t dim = 0;
  for (const auto& given : indices) {
    if (!given) {
      ++dim;
      continue;
    }
    // Indices that live on the CPU go to where self is, as in PyTorch.
    const bool move = given->device().is_cpu() && self.device().type == DeviceType::CUDA;
    std::optional<Tensor> i = move ? on_device(*given, self.device()) : *given;
    same_device(op, self, *i);
    if (is_mask(*i)) {
      add_mask(op, self, *i, dim, out);
      dim += i->dim();
      continue;
    }
    CHECK(i->dtype() == DType::Int64 || i->dtype() == DType::Int32, Index, op,
          ": tensors used as indices must be int64, int32, bool or uint8, got ", i->dtype(),
          " (long() truncates to integers)");
    out.emplace_back(dim, checked_index(op, self, *i, self.size(dim), true));
    ++dim;
  }
  return out;
}

IndexPlan plan_index(const char* op, const Tensor& self, const Indices& indices) {
  GradMode off(false);
  IndexPlan plan;
  Dims sizes;
  TensorList parts;
  auto found = by_dim(op, self, indices);
  for (auto& [dim, at] : found) plan.shape = broadcast_shapes(op, plan.shape, at.sizes());
  for (auto& [dim, at] : found) {
    plan.moved |= !plan.dims.empty() && plan.dims.back() != dim - 1;
    plan.dims.push_back(dim);
    sizes.push_back(self.size(dim));
    parts.push_back(contiguous(expand(at, plan.shape)));
  }
  if (parts.empty()) return plan;
  plan.place = plan.moved ? 0 : plan.dims[0];
  plan.at = reshape(parts[0], Dims{-1});
  if (parts.size() > 1) {
    plan.at = empty(plan.at.sizes(), options_of(parts[0]));
    launch(op, self.device(), &IndexingKernels::linear, parts, sizes, plan.at);
  }
  return plan;
}

// The order of dims with the indexed ones first.
Dims front_order(const IndexPlan& plan, int64_t ndim) {
  Dims order = plan.dims;
  for (int64_t d = 0; d < ndim; ++d)
    if (std::find(plan.dims.begin(), plan.dims.end(), d) == plan.dims.end()) order.push_back(d);
  return order;
}

// `sizes` with the `count` dims from `place` on replaced by `by`.
Dims replaced(const Dims& sizes, int64_t place, size_t count, const Dims& by) {
  Dims out;
  for (int64_t d = 0; d < place; ++d) out.push_back(sizes[d]);
  for (int64_t n : by) out.push_back(n);
  for (size_t d = static_cast<size_t>(place) + count; d < sizes.size(); ++d)
    out.push_back(sizes[d]);
  return out;
}

int64_t product(const Dims& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

// self with the indexed dims made one, at plan.place.
Tensor folded(const IndexPlan& plan, const Tensor& self) {
  Tensor t = plan.moved ? permute(self, front_order(plan, self.dim())) : self;
  if (plan.dims.size() == 1) return t;
  int64_t n = 1;
  for (int64_t d : plan.dims) n *= self.size(d);
  return reshape(t, replaced(t.sizes(), plan.place, plan.dims.size(), Dims{n}));
}

Dims indexed_shape(const IndexPlan& plan, const Dims& folded_sizes) {
  return replaced(folded_sizes, plan.place, 1, plan.shape);
}

}  // namespace

Tensor index(const Tensor& self, const Indices& indices) {
  IndexPlan plan = plan_index("index", self, indices);
  if (plan.dims.empty()) return view(self, self.sizes());
  Tensor from = folded(plan, self);
  Tensor y = select_rows(from, plan.place, plan.at);
  return plan.shape.size() == 1 ? y : reshape(y, indexed_shape(plan, from.sizes()));
}

namespace {

// `values` laid out as the rows that index_put writes.
Tensor value_rows(const char* op, const IndexPlan& plan, const Tensor& to, const Tensor& values) {
  CHECK(to.dtype() == values.dtype(), DType, op, ": expected values of dtype ", to.dtype(),
        ", got ", values.dtype());
  same_device(op, to, values);
  Dims shape = indexed_shape(plan, to.sizes());
  CHECK(values.dim() <= static_cast<int64_t>(shape.size()) &&
            broadcast_shapes(op, shape, values.sizes()) == shape,
        Shape, op, ": values of shape ", values.sizes(), " do not broadcast to the indexed shape ",
        shape);
  return reshape(expand(values, shape),
                 replaced(to.sizes(), plan.place, 1, Dims{product(plan.shape)}));
}

Tensor put_planned(const char* op, const IndexPlan& plan, const Tensor& self, const Tensor& values,
                   bool accumulate) {
  Tensor to = folded(plan, self);
  Tensor rows = value_rows(op, plan, to, values);
  Tensor y = accumulate ? add_rows(to, plan.place, plan.at, rows)
                        : copy_rows(to, plan.place, plan.at, rows);
  if (!plan.moved) return reshape(y, self.sizes());
  Dims order = front_order(plan, self.dim()), sizes, inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    sizes.push_back(self.size(order[i]));
    inverse[order[i]] = static_cast<int64_t>(i);
  }
  return permute(reshape(y, sizes), inverse);
}

Tensor put_everywhere(const Tensor& self, const Tensor& values, bool accumulate) {
  Tensor v = expand(values, self.sizes());
  return accumulate ? add(self, v) : clone(v, std::nullopt);
}

Tensor& index_put_(Tensor& self, const Indices& indices, const Tensor& values, bool accumulate) {
  bool recording = wants_grad(self, values);
  check_inplace("index_put_", self, recording);
  IndexPlan plan = plan_index("index_put_", self, indices);
  if (plan.dims.empty()) return copy_(self, put_everywhere(self, values, accumulate));
  Tensor from = apart_from(self, values);
  if (recording || plan.moved || !self.is_contiguous())
    return copy_(self, put_planned("index_put_", plan, self, from, accumulate));
  GradMode off(false);
  Tensor to = folded(plan, self);
  Tensor rows = contiguous(value_rows("index_put_", plan, to, from));
  plan.at = apart_from(self, plan.at);
  RowShape shape{1, to.size(plan.place), 1};
  for (int64_t d = 0; d < to.dim(); ++d)
    if (d != plan.place) (d < plan.place ? shape.outer : shape.inner) *= to.size(d);
  if (accumulate)
    launch("index_put_", self.device(), &IndexingKernels::add_rows, to, plan.at, rows,
           Scalar(int64_t{1}), shape);
  else
    launch("index_put_", self.device(), &IndexingKernels::write_rows, to, plan.at, rows, shape);
  self.bump_version();
  return self;
}

// ---- masked indexing, where indices under a false mask may be out of range

Indices clamped(const Tensor& self, const Indices& indices) {
  Indices out = indices;
  for (size_t d = 0; d < out.size() && static_cast<int64_t>(d) < self.dim(); ++d) {
    if (!out[d] || is_mask(*out[d])) continue;
    int64_t n = self.size(static_cast<int64_t>(d));
    out[d] = row(Row::clamp, {Operand(*out[d]), Operand(Scalar(-n)), Operand(Scalar(n - 1))});
  }
  return out;
}

Tensor unsafe_masked_index(const Tensor& self, const Tensor& mask, const Indices& indices,
                           const Scalar& fill) {
  return where_same(mask, index(self, clamped(self, indices)),
                    to_dtype(wrapped_number(fill), self.dtype()));
}

Tensor unsafe_masked_index_put_accumulate(const Tensor& self, const Tensor& mask,
                                          const Indices& indices, const Tensor& values) {
  Tensor kept = where_same(mask, values, zeros(Dims{}, options_of(values)));
  return index_put(self, clamped(self, indices), kept, true);
}

}  // namespace

Tensor index_put(const Tensor& self, const Indices& indices, const Tensor& values,
                 bool accumulate) {
  IndexPlan plan = plan_index("index_put", self, indices);
  if (plan.dims.empty()) return put_everywhere(self, values, accumulate);
  return put_planned("index_put", plan, self, values, accumulate);
}

OP_TABLE(indexing) = {
    op<index>("_index(Tensor self, Tensor?[] indices) -> Tensor", "private",
              "Reads by index tensors; see Tensor.index."),
    op<index_put>("index_put(Tensor self, Tensor?[] indices, Tensor values, "
                  "bool accumulate=False) -> Tensor",
                  "torch method", "A copy with `values` written at index tensors."),
    op<index_put_>("_index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, "
                   "bool accumulate=False) -> Tensor(a!)",
                   "private", "Writes at index tensors; see Tensor.indexPut_."),
    op<nonzero>("argwhere(Tensor self) -> Tensor", "torch method",
                "Coordinates of the elements that are not 0, [n, dims]."),
    op<nonzero_tuple>("_nonzero_tuple(Tensor self) -> Tensor[]", "private",
                      "Coordinates of the elements that are not 0, one tensor per dim."),
    op<nonzero_static>("nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor",
                       "torch method", "nonzero() cut or filled up to `size` rows."),
    op<unsafe_masked_index>("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, "
                            "Scalar fill) -> Tensor",
                            "torch", "index() where the mask holds, else `fill`."),
    op<unsafe_masked_index_put_accumulate>(
        "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, "
        "Tensor values) -> Tensor",
        "torch", "Adds values where the mask holds."),
};
OP_TABLE_END(indexing);

}  // namespace cresset::ops
