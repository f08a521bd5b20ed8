// Copies, casts and fills.
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/ops/overlap.h"

namespace cresset::ops {

void copy_raw(const Operand& src, const Tensor& dst) {
  launch("copy_", dst.device(), &ElementwiseKernels::copy, src, dst);
}

Tensor clone(const Tensor& x, std::optional<int64_t> memory_format) {
  bool preserve = memory_format.value_or(3) == 3;
  Tensor y = preserve ? empty_like(x) : empty(x.sizes(), options_of(x));
  copy_raw(x, y);
  if (wants_grad(x))
    record("CloneBackward0", y, inputs(x), [](Backward& b) { b[0] = b.grad(); });
  return y;
}

Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : clone(x, int64_t{0}); }

Tensor to_dtype(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor y = empty_like(x, dtype);
  copy_raw(x, y);
  if ((is_floating(dtype) || is_complex(dtype)) && wants_grad(x))
    record("ToCopyBackward0", y, inputs(x), [](Backward& b) { b[0] = b.grad(); });
  return y;
}

Tensor& copy_(Tensor& self, const Tensor& src) {
  bool recording = wants_grad(self, src) && (self.is_floating() || self.is_complex());
  check_inplace("copy_", self, recording);
  check_no_self_overlap("copy_", self);
  CHECK(broadcast_shapes("copy_", self.sizes(), src.sizes()) == self.sizes(), Shape,
        "copy_: a source of shape ", src.sizes(), " does not broadcast to shape ", self.sizes());
  Ref<Node> node;
  if (recording) {
    auto backward = [sizes = src.sizes()](Backward& b) {
      if (b.needs(0)) b[0] = zeros_like(b.grad());
      if (b.needs(1)) b[1] = sum_to_size(b.grad(), sizes);
    };
    node = Ref<Node>(new FunctionNode<decltype(backward)>("CopyBackwards", std::move(backward)));
    link_inputs(*node, inputs(self, src));
  }
  Tensor from = src;
  if (partial_overlap(self, src)) {
    GradMode off(false);
    from = clone(src, std::nullopt);
  }
  copy_raw(from, self);
  self.bump_version();
  if (node) rebase_history(self, node);
  return self;
}

Tensor& fill_(Tensor& self, const Operand& value) {
  CHECK(!value.is_tensor() || value.tensor().dim() == 0, Shape,
        "fill_: expected a number or a 0-d tensor, got shape ", value.tensor().sizes());
  if (value.is_tensor()) return copy_(self, value.tensor());
  CHECK(!value.scalar().is_complex() || self.is_complex(), DType,
        "fill_: a complex value does not fit dtype ", self.dtype());
  bool recording = wants_grad(self);
  check_inplace("fill_", self, recording);
  check_no_self_overlap("fill_", self);
  Ref<Node> node;
  if (recording) {
    auto backward = [](Backward& b) { b[0] = zeros_like(b.grad()); };
    node = Ref<Node>(new FunctionNode<decltype(backward)>("FillBackward0", backward));
    link_inputs(*node, inputs(self));
  }
  copy_raw(value, self);
  self.bump_version();
  if (node) rebase_history(self, node);
  return self;
}

Tensor& zero_(Tensor& self) { return fill_(self, Operand(Scalar(int64_t{0}))); }

OP_TABLE(copy) = {
    op<clone>("clone(Tensor self, *, int? memory_format=None) -> Tensor", "torch method",
              "A copy of the values."),
    op<contiguous>("contiguous(Tensor self) -> Tensor", "method",
                   "The tensor itself when row-major, else a row-major copy."),
    op<to_dtype>("_to_dtype(Tensor self, ScalarType dtype) -> Tensor", "private",
                 "The values cast to a dtype; the tensor itself when it has that dtype."),
    op<copy_>("copy_(Tensor(a!) self, Tensor src) -> Tensor(a!)", "method",
              "Writes the values of `src`, broadcast and cast, into the tensor."),
    op<fill_>("fill_(Tensor(a!) self, Tensor|Scalar value) -> Tensor(a!)", "method",
              "Writes one value into every element."),
    op<zero_>("zero_(Tensor(a!) self) -> Tensor(a!)", "method", "Writes zeros."),
};
OP_TABLE_END(copy);

}  // namespace cresset::ops
