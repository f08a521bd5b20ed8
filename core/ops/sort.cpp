// Sorting and selecting along a dim: sort, topk, kthvalue, median, mode.
#include "core/ops/sort.h"

#include "core/dispatch/op.h"
#include "core/ops/indexing.h"
#include "core/ops/write_in_place.h"

namespace cresset::ops {
namespace {

using Pair = std::tuple<Tensor, Tensor>;

// x with `dim` last, contiguous, at least 1-d.
Tensor rows_of(const char* op, const Tensor& x, int64_t d) {
  CHECK(!x.is_complex(), DType, op, ": expected a real dtype, got ", x.dtype());
  if (x.dim())
    CHECK(x.size(d) < int64_t{1} << 32, NotImplemented, op,
          ": more than 2^32 - 1 "
          "elements in dim ",
          d);
  GradMode off(false);
  return contiguous(x.dim() ? transpose(x, d, -1) : unsqueeze(x, 0));
}

// Puts the last dim of a result back into its place; 0-d inputs give 0-d results.
Tensor back(const Tensor& rows, const Tensor& x, int64_t d) {
  return x.dim() ? contiguous(transpose(rows, d, -1)) : reshape(rows, Dims{});
}

void record_choice(const char* node, const Tensor& x, int64_t d, const Tensor& values,
                   const Tensor& indices, bool keepdim) {
  if (!wants_grad(x)) return;
  record(node, values, inputs(x), [sizes = x.sizes(), d, keepdim, at = save(indices)](Backward& b) {
    Tensor g = b.grad(), i = b(at);
    if (!keepdim && !sizes.empty()) {
      g = unsqueeze(g, d);
      i = unsqueeze(i, d);
    }
    b[0] = scatter_add(zeros(sizes, options_of(g)), d, i, g);
  });
}

}  // namespace

Pair sort(const Tensor& self, int64_t dim, bool descending, bool stable) {
  int64_t d = wrap_dim("sort", dim, self.dim());
  Tensor values, indices;
  {
    GradMode off(false);
    Tensor x = rows_of("sort", self, d);
    values = empty_like(x);
    indices = empty_like(x, DType::Int64);
    launch("sort", self.device(), &SortKernels::sort, x, descending, stable, values, indices);
    values = back(values, self, d);
    indices = back(indices, self, d);
  }
  record_choice("SortBackward0", self, d, values, indices, true);
  return {values, indices};
}

namespace {

Tensor argsort(const Tensor& self, int64_t dim, bool descending, bool stable) {
  GradMode off(false);
  return std::get<1>(sort(self, dim, descending, stable));
}

Tensor msort(const Tensor& self) { return std::get<0>(sort(self, 0, false, true)); }

Pair topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  int64_t d = wrap_dim("topk", dim, self.dim()), n = self.dim() ? self.size(d) : 1;
  CHECK(k >= 0 && k <= n, Value, "topk: expected k in [0, ", n, "] for dim ", d, " of shape ",
        self.sizes(), ", got ", k);
  Tensor values, indices;
  {
    GradMode off(false);
    Tensor x = rows_of("topk", self, d);
    Dims sizes = x.sizes();
    sizes.back() = k;
    values = empty(sizes, options_of(x));
    indices = empty(sizes, {DType::Int64, x.device()});
    launch("topk", self.device(), &SortKernels::topk, x, largest, values, indices);
    if (self.dim() || k == 1) {
      values = back(values, self, d);
      indices = back(indices, self, d);
    }
  }
  record_choice("TopkBackward0", self, d, values, indices, true);
  return {values, indices};
}

// ---- one element of each row

struct RowResult {
  Tensor values, indices;
};

// Empty results of the shape that one element of each row gives.
RowResult row_results(const Tensor& self, int64_t d, bool keepdim) {
  Dims sizes = self.sizes();
  if (self.dim()) {
    if (keepdim)
      sizes[d] = 1;
    else
      sizes.erase(static_cast<size_t>(d));
  }
  return {empty(sizes, options_of(self)), empty(sizes, {DType::Int64, self.device()})};
}

void check_not_empty(const char* op, const Tensor& self, int64_t d) {
  CHECK(self.dim() == 0 || self.size(d) > 0, Index, op, ": expected dim ", d,
        " to have elements, got shape ", self.sizes());
}

// The rows in the order of the result: the reduced dim moved to the end, the others as they are.
Tensor reduced_rows(const char* op, const Tensor& self, int64_t d) {
  if (!self.dim()) return rows_of(op, self, d);
  GradMode off(false);
  Dims order;
  for (int64_t i = 0; i < self.dim(); ++i)
    if (i != d) order.push_back(i);
  order.push_back(d);
  return rows_of(op, permute(self, order), self.dim() - 1);
}

Pair choose(const char* op, const char* node, const Tensor& self, int64_t d, bool keepdim,
            Selection rule, int64_t k = 0) {
  check_not_empty(op, self, d);
  RowResult r = row_results(self, d, keepdim);
  launch(op, self.device(), &SortKernels::select, reduced_rows(op, self, d), rule, k, r.values,
         r.indices);
  record_choice(node, self, d, r.values, r.indices, keepdim);
  return {r.values, r.indices};
}

Pair kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  int64_t d = wrap_dim("kthvalue", dim, self.dim()), n = self.dim() ? self.size(d) : 1;
  check_not_empty("kthvalue", self, d);
  CHECK(k >= 1 && k <= n, Value, "kthvalue: expected k in [1, ", n, "] for dim ", d, " of shape ",
        self.sizes(), ", got ", k);
  return choose("kthvalue", "KthvalueBackward0", self, d, keepdim, Selection::Rank, k - 1);
}

Pair median_dim(const Tensor& self, int64_t dim, bool keepdim) {
  int64_t d = wrap_dim("median", dim, self.dim());
  return choose("median", "MedianBackward1", self, d, keepdim, Selection::Median);
}

Pair nanmedian_dim(const Tensor& self, int64_t dim, bool keepdim) {
  int64_t d = wrap_dim("nanmedian", dim, self.dim());
  return choose("nanmedian", "NanmedianBackward1", self, d, keepdim, Selection::NanMedian);
}

// The gradient goes in equal parts to all elements that equal the median.
Tensor median_of_all(const char* op, const char* node, const Tensor& self, bool ignore_nan) {
  CHECK(!self.is_complex(), DType, op, ": expected a real dtype, got ", self.dtype());
  Tensor y;
  {
    GradMode off(false);
    Tensor flat = reshape(self, Dims{-1});
    if (flat.numel() == 0) {
      CHECK(self.is_floating(), Index, op, ": expected elements, got shape ", self.sizes());
      y = full(Dims{}, Scalar(std::nan("")), options_of(self));
    } else {
      y = std::get<0>(ignore_nan ? nanmedian_dim(flat, 0, false) : median_dim(flat, 0, false));
    }
  }
  if (wants_grad(self))
    record(node, y, inputs(self), [x = save(self), out = save_output(y)](Backward& b) {
      Tensor self = b(x), y = b(out);
      Tensor hit = row(Row::logical_or,
                       {Operand(eq(self, y)),
                        Operand(row(Row::logical_and, {Operand(row(Row::isnan, {Operand(self)})),
                                                       Operand(row(Row::isnan, {Operand(y)}))}))});
      Tensor weight = to_dtype(hit, self.dtype());
      b[0] = mul(weight, div(b.grad(), sum(weight, std::nullopt, false, std::nullopt)));
    });
  return y;
}

Tensor median(const Tensor& self) {
  return median_of_all("median", "MedianBackward0", self, false);
}
Tensor nanmedian(const Tensor& self) {
  return median_of_all("nanmedian", "NanmedianBackward0", self, true);
}

Pair mode(const Tensor& self, int64_t dim, bool keepdim) {
  int64_t d = wrap_dim("mode", dim, self.dim());
  check_not_empty("mode", self, d);
  RowResult r = row_results(self, d, keepdim);
  launch("mode", self.device(), &SortKernels::mode, reduced_rows("mode", self, d), r.values,
         r.indices);
  record_choice("ModeBackward0", self, d, r.values, r.indices, keepdim);
  return {r.values, r.indices};
}

}  // namespace

OP_TABLE(sort) = {
    op<sort>("sort(Tensor self, int dim=-1, bool descending=False, bool stable=False) "
             "-> (Tensor values, Tensor indices)",
             "torch method", "Sorted values along a dim and where they came from; NaN is largest."),
    op<argsort>("argsort(Tensor self, int dim=-1, bool descending=False, bool stable=False) "
                "-> Tensor",
                "torch method", "The indices that sort a dim."),
    op<msort>("msort(Tensor self) -> Tensor", "torch method", "Sorted along the first dim."),
    op<topk>("topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) "
             "-> (Tensor values, Tensor indices)",
             "torch method", "The k largest or smallest elements of a dim, in order."),
    op<kthvalue>("kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) "
                 "-> (Tensor values, Tensor indices)",
                 "torch method", "The k-th smallest element of a dim; k counts from 1."),
    op<median>("_median(Tensor self) -> Tensor", "private", "Lower median of all elements."),
    op<median_dim>("_median_dim(Tensor self, int dim=-1, bool keepdim=False) "
                   "-> (Tensor values, Tensor indices)",
                   "private", "Lower median along a dim."),
    op<nanmedian>("_nanmedian(Tensor self) -> Tensor", "private",
                  "Lower median of all elements that are not NaN."),
    op<nanmedian_dim>("_nanmedian_dim(Tensor self, int dim=-1, bool keepdim=False) "
                      "-> (Tensor values, Tensor indices)",
                      "private", "Lower median along a dim, NaN left out."),
    op<mode>("mode(Tensor self, int dim=-1, bool keepdim=False) "
             "-> (Tensor values, Tensor indices)",
             "torch method", "The most frequent element of a dim, the smallest of equals."),
};
OP_TABLE_END(sort);

}  // namespace cresset::ops
