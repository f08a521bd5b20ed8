// clamp, clamp_min and clamp_max, with number or tensor bounds.
#include "core/dispatch/op.h"
#include "core/ops/indexing.h"
#include "core/ops/write_in_place.h"

namespace cresset::ops {
namespace {

Tensor test(Row r, const Tensor& x, const Operand& bound) { return row(r, {Operand(x), bound}); }

// One bound. At a tie the gradient is self's, so this is not the row maximum or minimum itself.
Tensor clamp_one(const char* op, const char* node, const Tensor& self, const Operand& bound,
                 bool lower) {
  const Operand in[] = {Operand(self), bound};
  result_dtype(op, DTypeClass::real, in);
  Tensor y;
  {
    GradMode off(false);
    y = row(lower ? Row::maximum : Row::minimum, {Operand(self), bound});
  }
  Tensor b_tensor = bound.is_tensor() ? bound.tensor() : Tensor();
  if (!wants_grad(self, b_tensor)) return y;
  Tensor edge = bound.as_tensor();
  record(node, y, inputs(self, edge), [x = save(self), e = save(edge), lower](Backward& b) {
    Tensor g = b.grad(), zero = zeros(Dims{}, options_of(g));
    Tensor inside = test(lower ? Row::ge : Row::le, b(x), Operand(b(e)));
    if (b.needs(0)) b[0] = where_same(inside, g, zero);
    if (b.needs(1))
      b[1] = where_same(test(lower ? Row::lt : Row::gt, b(x), Operand(b(e))), g, zero);
  });
  return y;
}

Tensor clamp_min(const Tensor& self, const Operand& min) {
  return clamp_one("clamp_min", "ClampMinBackward0", self, min, true);
}
Tensor clamp_max(const Tensor& self, const Operand& max) {
  return clamp_one("clamp_max", "ClampMaxBackward0", self, max, false);
}

bool is_bool(const Operand& o) {
  return o.is_tensor() ? o.tensor().dtype() == DType::Bool
                       : o.scalar().kind() == Scalar::Kind::Bool;
}

Tensor clamp(const Tensor& self, const std::optional<Operand>& min,
             const std::optional<Operand>& max) {
  CHECK(min || max, Value, "clamp: expected min, max or both");
  CHECK(self.dtype() != DType::Bool || !((!min || is_bool(*min)) && (!max || is_bool(*max))), DType,
        "clamp: expected a real dtype other than bool, got bool");
  if (!max) return clamp_one("clamp", "ClampBackward0", self, *min, true);
  if (!min) return clamp_one("clamp", "ClampBackward0", self, *max, false);
  return row(Row::clamp, {Operand(self), *min, *max});
}

Tensor& copied(const char* op, Tensor& self, const Tensor& y) {
  auto category = [](DType t) { return is_complex(t) ? 2 : is_floating(t) ? 1 : 0; };
  CHECK(category(y.dtype()) <= category(self.dtype()), DType, op, ": a result of dtype ", y.dtype(),
        " cannot be written into a tensor of dtype ", self.dtype());
  CHECK(y.sizes() == self.sizes(), Shape, op, ": a result of shape ", y.sizes(),
        " cannot be written into a tensor of shape ", self.sizes());
  return copy_(self, y);
}

Tensor& clamp_(Tensor& self, const std::optional<Operand>& min, const std::optional<Operand>& max) {
  check_inplace("clamp_", self, wants_grad(self));
  return copied("clamp_", self, clamp(self, min, max));
}
Tensor& clamp_min_(Tensor& self, const Operand& min) {
  check_inplace("clamp_min_", self, wants_grad(self));
  return copied("clamp_min_", self, clamp_min(self, min));
}
Tensor& clamp_max_(Tensor& self, const Operand& max) {
  check_inplace("clamp_max_", self, wants_grad(self));
  return copied("clamp_max_", self, clamp_max(self, max));
}

}  // namespace

OP_TABLE(clamp) = {
    op<clamp>("clamp(Tensor self, Tensor|Scalar? min=None, Tensor|Scalar? max=None) -> Tensor",
              "torch method", "Limits values to [min, max]; max where min > max."),
    op<clamp_>("clamp_(Tensor(a!) self, Tensor|Scalar? min=None, Tensor|Scalar? max=None) "
               "-> Tensor(a!)",
               "method", "clamp() in place."),
    op<clamp>("clip(Tensor self, Tensor|Scalar? min=None, Tensor|Scalar? max=None) -> Tensor",
              "torch method", "clamp() by another name."),
    op<clamp_>("clip_(Tensor(a!) self, Tensor|Scalar? min=None, Tensor|Scalar? max=None) "
               "-> Tensor(a!)",
               "method", "clamp_() by another name."),
    op<clamp_min>("clamp_min(Tensor self, Tensor|Scalar min) -> Tensor", "torch method",
                  "The larger of self and min."),
    op<clamp_min_>("clamp_min_(Tensor(a!) self, Tensor|Scalar min) -> Tensor(a!)", "method",
                   "clamp_min() in place."),
    op<clamp_max>("clamp_max(Tensor self, Tensor|Scalar max) -> Tensor", "torch method",
                  "The smaller of self and max."),
    op<clamp_max_>("clamp_max_(Tensor(a!) self, Tensor|Scalar max) -> Tensor(a!)", "method",
                   "clamp_max() in place."),
};
OP_TABLE_END(clamp);

}  // namespace cresset::ops
