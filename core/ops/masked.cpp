// Choosing by a bool mask: where, masked_fill, masked_select, masked_scatter.
#include "core/dispatch/op.h"
#include "core/ops/indexing.h"
#include "core/ops/write_in_place.h"

namespace cresset::ops {

Tensor where_same(const Tensor& condition, const Tensor& a, const Tensor& b) {
  CHECK(condition.dtype() == DType::Bool || condition.dtype() == DType::UInt8, DType,
        "where: expected a bool condition, got ", condition.dtype());
  ASSERT(a.dtype() == b.dtype());
  Dims sizes =
      broadcast_shapes("where", broadcast_shapes("where", condition.sizes(), a.sizes()), b.sizes());
  Tensor out = empty(sizes, {a.dtype(), condition.device()});
  launch("where", condition.device(), &IndexingKernels::where, condition, a, b, out);
  if (wants_grad(a, b))
    record("WhereBackward0", out, inputs(a, b), [c = save(condition)](Backward& bw) {
      Tensor g = bw.grad(), zero = zeros(Dims{}, options_of(g));
      if (bw.needs(0)) bw[0] = where_same(bw(c), g, zero);
      if (bw.needs(1)) bw[1] = where_same(bw(c), zero, g);
    });
  return out;
}

namespace {

// A plain number or 0-d CPU tensor may accompany tensors of another device.
Tensor on_device(const char* op, const Tensor& t, Device device) {
  if (t.device() == device) return t;
  CHECK(t.dim() == 0 && t.device().is_cpu(), Device, op,
        ": expected all tensors on one device, got ", device, " and ", t.device());
  // GPU kernels take a number as an argument.
  if (device.type == DeviceType::CUDA && !t.requires_grad()) return t;
  Tensor moved = empty(t.sizes(), {t.dtype(), device});
  copy_raw(Operand(t), moved);
  return moved;
}

Tensor to_bool(const Tensor& mask) {
  return mask.dtype() == DType::UInt8 ? to_dtype(mask, DType::Bool) : mask;
}

}  // namespace

Tensor where(const Tensor& condition, const Operand& a, const Operand& b) {
  const Operand pair[] = {a, b};
  DType dtype = result_dtype("where", DTypeClass::number, pair);
  Device device = condition.device();
  return where_same(to_bool(condition), on_device("where", to_dtype(a.as_tensor(), dtype), device),
                    on_device("where", to_dtype(b.as_tensor(), dtype), device));
}

// ---- masked_fill

namespace {

Tensor fill_value(const char* op, const Tensor& self, const Tensor& mask, const Operand& value) {
  CHECK(mask.dtype() == DType::Bool, DType, op, ": expected a bool mask, got ", mask.dtype());
  CHECK(!value.is_tensor() || value.tensor().dim() == 0, Shape, op,
        ": expected a number or a 0-d tensor as value, got shape ", value.tensor().sizes());
  same_device(op, self, mask);
  Tensor v = value.as_tensor();
  CHECK(self.is_complex() || !v.is_complex(), DType, op, ": a complex value does not fit dtype ",
        self.dtype());
  return on_device(op, to_dtype(v, self.dtype()), self.device());
}

void check_mask_fits(const char* op, const Tensor& self, const Tensor& mask) {
  CHECK(broadcast_shapes(op, self.sizes(), mask.sizes()) == self.sizes(), Shape, op,
        ": a mask of shape ", mask.sizes(), " does not broadcast to shape ", self.sizes());
}

Tensor& masked_fill_(Tensor& self, const Tensor& mask, const Operand& value) {
  Tensor v = fill_value("masked_fill_", self, mask, value);
  check_mask_fits("masked_fill_", self, mask);
  return write_in_place(
      "masked_fill_", self, wants_grad(self, v),
      [&](const Tensor& to) {
        launch("masked_fill_", to.device(), &IndexingKernels::where, apart_from(to, mask),
               apart_from(to, v), to, to);
      },
      [&] { return where_same(mask, v, self); });
}

// ---- masked_select, masked_scatter

// Numbers of the true elements of a mask broadcast to `sizes`.
Tensor true_elements(const Tensor& mask, const Dims& sizes) {
  GradMode off(false);
  Tensor flat = reshape(expand(mask, sizes), Dims{-1});
  return reshape(nonzero(flat), Dims{-1});
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  CHECK(mask.dtype() == DType::Bool, DType, "masked_select: expected a bool mask, got ",
        mask.dtype());
  same_device("masked_select", self, mask);
  Dims sizes = broadcast_shapes("masked_select", self.sizes(), mask.sizes());
  return select_rows(reshape(expand(self, sizes), Dims{-1}), 0, true_elements(mask, sizes));
}

Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  CHECK(mask.dtype() == DType::Bool, DType, "masked_scatter: expected a bool mask, got ",
        mask.dtype());
  CHECK(self.dtype() == source.dtype(), DType,
        "masked_scatter: expected self and source of one dtype, got ", self.dtype(), " and ",
        source.dtype());
  same_device("masked_scatter", self, mask);
  same_device("masked_scatter", self, source);
  Dims sizes = broadcast_shapes("masked_scatter", self.sizes(), mask.sizes());
  Tensor at = true_elements(mask, sizes);
  CHECK(source.numel() >= at.numel(), Shape, "masked_scatter: the mask has ", at.numel(),
        " true elements, but the source only ", source.numel());
  Tensor from = narrow(reshape(source, Dims{-1}), 0, 0, at.numel());
  return reshape(copy_rows(reshape(expand(self, sizes), Dims{-1}), 0, at, from), sizes);
}

Tensor& masked_scatter_(Tensor& self, const Tensor& mask, const Tensor& source) {
  check_inplace("masked_scatter_", self, wants_grad(self, source));
  check_mask_fits("masked_scatter_", self, mask);
  return copy_(self, masked_scatter(self, mask, source));
}

}  // namespace

Tensor masked_fill(const Tensor& self, const Tensor& mask, const Operand& value) {
  return where_same(mask, fill_value("masked_fill", self, mask, value), self);
}

OP_TABLE(masked) = {
    op<where>("_where(Tensor condition, Tensor|Scalar input, Tensor|Scalar other) -> Tensor",
              "private", "input where the condition holds, else other."),
    op<masked_fill>("masked_fill(Tensor self, Tensor mask, Tensor|Scalar value) -> Tensor",
                    "torch method", "`value` where the mask holds, else the tensor."),
    op<masked_fill_>("masked_fill_(Tensor(a!) self, Tensor mask, Tensor|Scalar value) "
                     "-> Tensor(a!)",
                     "method", "masked_fill() in place."),
    op<masked_select>("masked_select(Tensor self, Tensor mask) -> Tensor", "torch method",
                      "The elements where the mask holds, 1-d."),
    op<masked_scatter>("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
                       "torch method", "Elements of `source`, in order, where the mask holds."),
    op<masked_scatter_>("masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) "
                        "-> Tensor(a!)",
                        "method", "masked_scatter() in place."),
};
OP_TABLE_END(masked);

}  // namespace cresset::ops
