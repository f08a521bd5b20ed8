// Sums, products, means, counts and truth over dims.
#include "core/ops/reduce.h"

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/ops/scan.h"
#include "core/ops/view_helpers.h"

namespace cresset::ops {

Dims reduction_dims(const char* op, const Tensor& x, const std::optional<Dims>& dims) {
  // PyTorch's limit.
  CHECK(!dims || x.dim() <= 64, Shape, op, ": expected at most 64 dims, got ", x.dim());
  if (x.dim() > 0) return wrap_dims(op, dims.value_or(Dims{}), x.dim(), true);
  if (dims) wrap_dims(op, *dims, 0, true);
  return {};
}

Dims reduced_sizes(const Tensor& x, const Dims& over, bool keepdim) {
  Dims out;
  if (!keepdim && static_cast<int64_t>(over.size()) == x.dim()) return out;
  size_t next = 0;
  for (int64_t d = 0; d < x.dim(); ++d) {
    const bool reduced = next < over.size() && over[next] == d;
    if (reduced) ++next;
    if (!reduced)
      out.push_back(x.size(d));
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

int64_t reduced_numel(const Tensor& x, const Dims& over) {
  int64_t n = 1;
  for (int64_t d : over) n *= x.size(d);
  return n;
}

Tensor expand_reduced(const Tensor& r, const Dims& sizes, const Dims& over, bool keepdim) {
  if (r.sizes() == sizes) return r;
  Dims strides(sizes.size());
  size_t next = 0;
  int64_t from = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool reduced = next < over.size() && over[next] == static_cast<int64_t>(d);
    if (reduced) ++next;
    if (!reduced) strides[d] = r.stride(from);
    if (!reduced || keepdim) ++from;
  }
  return make_view(
      "expand", "ExpandBackward0", r, sizes, strides, r.offset(),
      [over, keepdim](Backward& b) { b[0] = sum(b.grad(), over, keepdim, std::nullopt); });
}

Tensor reduce_raw(const char* op, const Tensor& x, const Dims& over, const ReduceSpec& spec) {
  Tensor y = empty(reduced_sizes(x, over, spec.keepdim), {spec.dtype, x.device()}, op);
  launch(op, x.device(), &ReduceKernels::reduce,
         ReduceCall{.op = spec.kind,
                    .x = &x,
                    .y = &y,
                    .over = over,
                    .p = spec.p,
                    .divisor = spec.divisor,
                    .center = spec.center});
  return y;
}

namespace {

// What sums and products of a dtype come in.
DType sum_dtype(DType dtype) { return is_integral(dtype, true) ? DType::Int64 : dtype; }

Tensor without_recording(const Tensor& y, DType dtype) {
  GradMode off(false);
  return to_dtype(y, dtype);
}

bool any_zero(const Tensor& x) {
  GradMode off(false);
  if (x.is_meta()) return true;
  Dims over = reduction_dims("prod", x, std::nullopt);
  return !*on_host(reduce_raw("prod", x, over, {ReduceOp::All, DType::Bool})).data<bool>();
}

// g times the product of the other elements along dim, without a division.
Tensor times_others(const Tensor& g, const Tensor& x, int64_t dim) {
  Tensor before = shifted(cumprod_along(x, dim, false), dim, 1, 1);
  Tensor after = shifted(cumprod_along(x, dim, true), dim, -1, 1);
  return mul(g, conj(mul(before, after)));
}

Tensor prod_backward(const Tensor& g, const Tensor& x, const Tensor& y, std::optional<int64_t> dim,
                     bool keepdim) {
  Dims over = reduction_dims("prod", x, dim ? std::optional<Dims>(Dims{*dim}) : std::nullopt);
  Tensor wide = expand_reduced(g, x.sizes(), over, keepdim);
  if (x.dim() == 0) return wide;
  if (!any_zero(x)) return mul(wide, conj(div(expand_reduced(y, x.sizes(), over, keepdim), x)));
  if (dim) return times_others(wide, x, over[0]);
  Tensor flat = times_others(reshape(wide, Dims{-1}), reshape(x, Dims{-1}), 0);
  return reshape(flat, x.sizes());
}

}  // namespace

Tensor sum(const Tensor& x, const std::optional<Dims>& dims, bool keepdim,
           std::optional<DType> dtype) {
  Dims over = reduction_dims("sum", x, dims);
  Tensor in = dtype ? to_dtype(x, *dtype) : x;
  const DType natural = sum_dtype(in.dtype());
  Tensor y = reduce_raw("sum", in, over, {ReduceOp::Sum, natural, keepdim});
  if (dtype && *dtype != natural) y = without_recording(y, *dtype);
  if (wants_grad(in))
    record(dims ? "SumBackward1" : "SumBackward0", y, inputs(in),
           [sizes = x.sizes(), over, keepdim](Backward& b) {
             b[0] = expand_reduced(b.grad(), sizes, over, keepdim);
           });
  return y;
}

Tensor mean(const Tensor& x, const std::optional<Dims>& dims, bool keepdim,
            std::optional<DType> dtype) {
  Tensor in = dtype ? to_dtype(x, *dtype) : x;
  CHECK(in.is_floating() || in.is_complex(), DType,
        "mean: expected a floating or complex dtype, got ", in.dtype());
  Dims over = reduction_dims("mean", x, dims);
  const double n = static_cast<double>(reduced_numel(x, over));
  Tensor y =
      reduce_raw("mean", in, over,
                 {.kind = ReduceOp::Sum, .dtype = in.dtype(), .keepdim = keepdim, .divisor = n});
  if (wants_grad(in))
    record(dims ? "MeanBackward1" : "MeanBackward0", y, inputs(in),
           [sizes = x.sizes(), over, keepdim, n](Backward& b) {
             b[0] = expand_reduced(div(b.grad(), n), sizes, over, keepdim);
           });
  return y;
}

Tensor prod(const Tensor& x, std::optional<int64_t> dim, bool keepdim, std::optional<DType> dtype) {
  std::optional<Dims> dims;
  if (dim) dims = Dims{*dim};
  Dims over = reduction_dims("prod", x, dims);
  Tensor in = dtype ? to_dtype(x, *dtype) : x;
  const DType natural = sum_dtype(in.dtype());
  Tensor y = reduce_raw("prod", in, over, {ReduceOp::Prod, natural, keepdim});
  if (dtype && *dtype != natural) y = without_recording(y, *dtype);
  if (wants_grad(in))
    record(dim ? "ProdBackward1" : "ProdBackward0", y, inputs(in),
           [x = save(in), r = save_output(y), dim, keepdim](Backward& b) {
             b[0] = prod_backward(b.grad(), b(x), b(r), dim, keepdim);
           });
  return y;
}

Tensor nansum(const Tensor& x, const std::optional<Dims>& dims, bool keepdim,
              std::optional<DType> dtype) {
  CHECK(!x.is_complex(), DType, "nansum: complex dtypes are not supported, got ", x.dtype());
  if (!x.is_floating()) return sum(x, dims, keepdim, dtype);
  Dims over = reduction_dims("nansum", x, dims);
  Tensor in = dtype ? to_dtype(x, *dtype) : x;
  if (!in.is_floating()) return sum(in, dims, keepdim, dtype);
  Tensor y = reduce_raw("nansum", in, over, {ReduceOp::NanSum, in.dtype(), keepdim});
  if (wants_grad(in))
    record("NansumBackward0", y, inputs(in), [x = save(in), over, keepdim](Backward& b) {
      Tensor in = b(x), g = expand_reduced(b.grad(), in.sizes(), over, keepdim);
      b[0] = where(row(Row::isnan, {in}), 0.0, g);
    });
  return y;
}

Tensor nanmean(const Tensor& x, const std::optional<Dims>& dims, bool keepdim,
               std::optional<DType> dtype) {
  CHECK(x.is_floating(), DType, "nanmean: expected a floating dtype, got ", x.dtype());
  Tensor valid = row(Row::logical_not, {row(Row::isnan, {x})});
  return div(nansum(x, dims, keepdim, dtype), sum(valid, dims, keepdim, std::nullopt));
}

namespace {

Tensor truth(const char* op, ReduceOp kind, const Tensor& x, const std::optional<Dims>& dims,
             bool keepdim) {
  const DType out = x.dtype() == DType::UInt8 ? DType::UInt8 : DType::Bool;
  // An empty list of dims reduces nothing here.
  if (dims && dims->empty() && x.dim() > 0) {
    GradMode off(false);
    return to_dtype(row(Row::ne, {x, 0}), out);
  }
  return reduce_raw(op, x, reduction_dims(op, x, dims), {kind, out, keepdim});
}

Tensor count_nonzero(const Tensor& x, const std::optional<Dims>& dims) {
  Dims over = reduction_dims("count_nonzero", x, dims);
  return reduce_raw("count_nonzero", x, over, {ReduceOp::Nonzero, DType::Int64});
}

Tensor sum_to_size_op(const Tensor& x, const Dims& size) {
  const int64_t lead = x.dim() - static_cast<int64_t>(size.size());
  bool fits = lead >= 0;
  for (size_t i = 0; fits && i < size.size(); ++i)
    fits = size[i] == 1 || size[i] == x.size(lead + static_cast<int64_t>(i));
  CHECK(fits, Shape, "sum_to_size: expected a size that broadcasts to shape ", x.sizes(), ", got ",
        size);
  return size.empty() ? sum(x, std::nullopt, false, std::nullopt) : sum_to_size(x, size);
}

}  // namespace

Tensor any(const Tensor& x, const std::optional<Dims>& dims, bool keepdim) {
  return truth("any", ReduceOp::Any, x, dims, keepdim);
}

Tensor all(const Tensor& x, const std::optional<Dims>& dims, bool keepdim) {
  return truth("all", ReduceOp::All, x, dims, keepdim);
}

Tensor sum_to_size(const Tensor& x, const Dims& sizes) {
  Dims over;
  int64_t lead = x.dim() - static_cast<int64_t>(sizes.size());
  ASSERT(lead >= 0);
  for (int64_t i = 0; i < x.dim(); ++i)
    if (i < lead || (sizes[i - lead] == 1 && x.size(i) != 1)) over.push_back(i);
  Tensor y = over.empty() ? x : sum(x, over, true, std::nullopt);
  return y.sizes() == sizes ? y : reshape(y, sizes);
}

OP_TABLE(reduce) = {
    op<sum>("sum(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
            "-> Tensor",
            "torch method", "Sum over dims, or of everything."),
    op<mean>("mean(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
             "-> Tensor",
             "torch method", "Mean over dims, or of everything."),
    op<prod>("prod(Tensor self, int? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
             "-> Tensor",
             "torch method", "Product over a dim, or of everything."),
    op<nansum>("nansum(Tensor self, int[]? dim=None, bool keepdim=False, *, "
               "ScalarType? dtype=None) -> Tensor",
               "torch method", "Sum that counts NaN as 0."),
    op<nanmean>("nanmean(Tensor self, int[]? dim=None, bool keepdim=False, *, "
                "ScalarType? dtype=None) -> Tensor",
                "torch method", "Mean of what is not NaN."),
    op<any>("any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", "torch method",
            "Whether any element is nonzero."),
    op<all>("all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", "torch method",
            "Whether all elements are nonzero."),
    op<count_nonzero>("count_nonzero(Tensor self, int[]? dim=None) -> Tensor", "torch method",
                      "Number of nonzero elements."),
    op<sum_to_size_op>("sum_to_size(Tensor self, int[] size) -> Tensor", "method",
                       "Sum over the dims that broadcasting from `size` would make."),
};
OP_TABLE_END(reduce);

}  // namespace cresset::ops
