// Quantiles along a dim, with PyTorch's five interpolations.
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/indexing.h"
#include "core/ops/ops.h"
#include "core/ops/sort.h"

namespace cresset {

enum class Interpolation : uint8_t { linear, lower, higher, midpoint, nearest };
template <> struct EnumNames<Interpolation> {
  static constexpr const char* schema = "Interpolation{linear|lower|higher|midpoint|nearest}";
};

namespace ops {
namespace {

Tensor checked_q(const char* op, const Tensor& self, const Operand& q) {
  CHECK(self.dtype() == DType::Float32 || self.dtype() == DType::Float64, DType, op,
        ": expected dtype float32 or float64, got ", self.dtype());
  CHECK(self.numel() > 0, Value, op, ": expected elements, got shape ", self.sizes());
  Tensor t = q.is_tensor() ? q.tensor() : full(Dims{}, q.scalar(), options_of(self));
  CHECK(t.dim() <= 1, Shape, op, ": expected q to be a number or 1-d, got shape ", t.sizes());
  CHECK(t.dtype() == self.dtype(), DType, op, ": expected q of dtype ", self.dtype(), ", got ",
        t.dtype());
  same_device(op, self, t);
  if (t.is_meta()) return t;
  GradMode off(false);
  Tensor list = contiguous(on_host(to_dtype(t, DType::Float64)));
  for (int64_t i = 0; i < list.numel(); ++i) {
    double v = list.data<double>()[i];
    CHECK(v >= 0 && v <= 1, Value, op, ": expected q in [0, 1], got ", v);
  }
  return t;
}

// Where in its sorted row each quantile lies: [..., Q].
Tensor ranks_in(const Tensor& sorted, const Tensor& q, bool ignore_nan) {
  int64_t n = sorted.size(-1);
  Tensor nan = row(Row::isnan, {Operand(detach(sorted))});
  if (ignore_nan) {
    Tensor count = sub(Operand(Scalar(n - 1)), sum(nan, Dims{-1}, true, std::nullopt));
    Tensor last = row(Row::maximum, {Operand(to_dtype(count, q.dtype())), Operand(0)});
    return mul(q, last);
  }
  // A NaN is sorted last; where there is one, it is the result.
  Tensor any = narrow(nan, nan.dim() - 1, n - 1, 1);
  Tensor last = full(Dims{}, Scalar(n - 1), options_of(q));
  return where_same(any, last, mul(q, Operand(Scalar(n - 1))));
}

Tensor values_at(const Tensor& sorted, const Tensor& ranks) {
  return gather(sorted, sorted.dim() - 1, to_dtype(ranks, DType::Int64));
}

Tensor interpolated(const Tensor& sorted, const Tensor& ranks, Interpolation how) {
  Tensor below = row(Row::floor, {Operand(ranks)}), above = row(Row::ceil, {Operand(ranks)});
  switch (how) {
    case Interpolation::lower: return values_at(sorted, below);
    case Interpolation::higher: return values_at(sorted, above);
    case Interpolation::nearest: return values_at(sorted, row(Row::round, {Operand(ranks)}));
    default: break;
  }
  Tensor weight = how == Interpolation::midpoint ? full(Dims{}, Scalar(0.5), options_of(ranks))
                                                 : sub(ranks, below);
  return row(Row::lerp, {Operand(values_at(sorted, below)), Operand(values_at(sorted, above)),
                         Operand(weight)});
}

Tensor quantile_as(const char* op, const Tensor& self, const Operand& q_given,
                   std::optional<int64_t> dim, bool keepdim, Interpolation how, bool ignore_nan) {
  Tensor q = checked_q(op, self, q_given);
  int64_t d = dim ? wrap_dim(op, *dim, self.dim()) : 0;
  Tensor rows = !dim         ? reshape(self, Dims{-1})
                : self.dim() ? transpose(self, d, -1)
                             : unsqueeze(self, 0);
  Tensor sorted = std::get<0>(sort(rows, -1, false, false));
  Tensor flat_q = q.dim() ? q : unsqueeze(q, 0);
  Tensor ranks = ranks_in(sorted, flat_q, ignore_nan);
  Dims shape = sorted.sizes();
  shape.back() = flat_q.numel();
  Tensor y = interpolated(sorted, expand(ranks, shape), how);
  // [..., Q] to [Q, ...], or without Q for a single quantile.
  Dims order{y.dim() - 1};
  for (int64_t i = 0; i + 1 < y.dim(); ++i) order.push_back(i);
  if (dim && self.dim() && d != self.dim() - 1) {
    // transpose() put the last dim in the place of d.
    order.erase(static_cast<size_t>(d) + 1);
    order.push_back(d);
  }
  y = permute(y, order);
  if (keepdim) {
    if (!dim)
      for (int64_t i = 0; i < self.dim(); ++i) y = unsqueeze(y, 1);
    else if (self.dim())
      y = unsqueeze(y, d + 1);
  }
  return q.dim() ? y : select(y, 0, 0);
}

Tensor quantile(const Tensor& self, const Operand& q, std::optional<int64_t> dim, bool keepdim,
                Interpolation interpolation) {
  return quantile_as("quantile", self, q, dim, keepdim, interpolation, false);
}

Tensor nanquantile(const Tensor& self, const Operand& q, std::optional<int64_t> dim, bool keepdim,
                   Interpolation interpolation) {
  return quantile_as("nanquantile", self, q, dim, keepdim, interpolation, true);
}

}  // namespace

OP_TABLE(quantile) = {
    op<quantile>("quantile(Tensor self, Tensor|Scalar q, int? dim=None, bool keepdim=False, *, "
                 "Interpolation{linear|lower|higher|midpoint|nearest} interpolation='linear') "
                 "-> Tensor",
                 "torch method", "The q-th quantiles of a dim, or of all elements."),
    op<nanquantile>("nanquantile(Tensor self, Tensor|Scalar q, int? dim=None, "
                    "bool keepdim=False, *, "
                    "Interpolation{linear|lower|higher|midpoint|nearest} interpolation='linear') "
                    "-> Tensor",
                    "torch method", "quantile() with NaN left out."),
};
OP_TABLE_END(quantile);

}  // namespace ops
}  // namespace cresset
