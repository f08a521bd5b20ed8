// Choosing elements: where.
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/ops/indexing.h"

namespace cresset::ops {

Tensor where(const Tensor& condition, const Operand& a, const Operand& b) {
  CHECK(condition.dtype() == DType::Bool, DType, "where: expected a bool condition, got ",
        condition.dtype());
  const Operand pair[] = {a, b};
  DType dtype = a.is_tensor() || b.is_tensor()
                    ? result_dtype("where", DTypeClass::number, pair)
                    : result_dtype("where", DTypeClass::number, pair);
  Tensor x = to_dtype(a.as_tensor(), dtype), y = to_dtype(b.as_tensor(), dtype);
  Dims sizes = broadcast_shapes("where", broadcast_shapes("where", x.sizes(), y.sizes()),
                                condition.sizes());
  Tensor out = empty(sizes, {dtype, condition.device()});
  {
    GradMode off(false);
    launch("where", condition.device(), &IndexingKernels::where,
           contiguous(expand(condition, sizes)), contiguous(expand(x, sizes)),
           contiguous(expand(y, sizes)), out);
  }
  if (wants_grad(x, y))
    record("WhereBackward0", out, inputs(x, y), [condition](Backward& bw) {
      Operand zero{Scalar(int64_t{0})};
      if (bw.needs(0)) bw[0] = where(condition, bw.grad(), zero);
      if (bw.needs(1)) bw[1] = where(condition, zero, bw.grad());
    });
  return out;
}

OP_TABLE(indexing) = {
    op<where>("where(Tensor condition, Tensor|Scalar input, Tensor|Scalar other) -> Tensor",
              "torch", "input where the condition holds, else other."),
};
OP_TABLE_END(indexing);

}  // namespace cresset::ops
