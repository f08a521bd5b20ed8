// Matrix products: mm, bmm, matmul, linear and their kin.
#include "core/ops/matmul.h"

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/ops/wide.h"

namespace cresset::ops {

Tensor adjoint(const Tensor& x) { return conj(transpose(x, -2, -1)); }

Tensor right_gradient(const Tensor& a, const Tensor& g, const Tensor& b) {
  const bool by_columns = b.stride(-2) == 1 && b.stride(-1) >= b.size(-2) && b.size(-1) > 1;
  if (!by_columns) return mm(adjoint(a), g);
  return transpose(mm(transpose(g, 0, 1), conj(a)), 0, 1);
}

void check_matrices(const char* op, const Tensor& a, const Tensor& b) {
  CHECK(a.dtype() == b.dtype(), DType, op, ": expected both matrices to have the same dtype, got ",
        a.dtype(), " and ", b.dtype());
  CHECK(a.dtype() != DType::Bool, DType, op, ": bool matrices have no product");
  CHECK(a.device() == b.device(), Device, op, ": expected both matrices on one device, got ",
        a.device(), " and ", b.device());
}

void matrix_product(const char* op, const Tensor& a, const Tensor& b, const Tensor& c,
                    const Scalar& alpha, const Scalar& beta) {
  if (!needs_widening(c.dtype(), c.device())) {
    launch(op, c.device(), &MatmulKernels::bmm, a, b, c, alpha, beta);
    return;
  }
  Tensor wide = to_dtype(c, DType::Float32);
  launch(op, c.device(), &MatmulKernels::bmm, to_dtype(a, DType::Float32),
         to_dtype(b, DType::Float32), wide, alpha, beta);
  copy_raw(wide, c);
}

bool biased_product(const char* op, const Tensor& a, const Tensor& b, const Tensor& bias,
                    const Tensor& c) {
  if (c.device().type != DeviceType::CUDA || bias.dim() != 1 || bias.size(0) != c.size(1))
    return false;
  const MatmulKernels* table = cuda_kernels<MatmulKernels>;
  if (!table || !table->biased) return false;
  const LaunchScope scope(op, c.device());
  return table->biased(a, b, bias, c);
}

Tensor mm(const Tensor& a, const Tensor& b) {
  CHECK(a.dim() == 2 && b.dim() == 2, Shape, "mm: expected two matrices, got shapes ", a.sizes(),
        " and ", b.sizes());
  CHECK(a.size(1) == b.size(0), Shape, "mm: shapes ", a.sizes(), " and ", b.sizes(),
        " cannot be multiplied: ", a.size(1), " columns and ", b.size(0), " rows differ");
  check_matrices("mm", a, b);
  Tensor c = empty(Dims{a.size(0), b.size(1)}, options_of(a));
  matrix_product("mm", a, b, c, 1, 0);
  if (wants_grad(a, b))
    record("MmBackward0", c, inputs(a, b), [a = save(a), b = save(b)](Backward& bw) {
      if (bw.needs(0)) bw[0] = mm(bw.grad(), adjoint(bw(b)));
      if (bw.needs(1)) bw[1] = right_gradient(bw(a), bw.grad(), bw(b));
    });
  return c;
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  CHECK(a.dim() == 3 && b.dim() == 3, Shape, "bmm: expected two batches of matrices, got shapes ",
        a.sizes(), " and ", b.sizes());
  CHECK(a.size(0) == b.size(0) && a.size(2) == b.size(1), Shape, "bmm: shapes ", a.sizes(), " and ",
        b.sizes(), " cannot be multiplied");
  check_matrices("bmm", a, b);
  Tensor c = empty(Dims{a.size(0), a.size(1), b.size(2)}, options_of(a));
  matrix_product("bmm", a, b, c, 1, 0);
  if (wants_grad(a, b))
    record("BmmBackward0", c, inputs(a, b), [a = save(a), b = save(b)](Backward& bw) {
      if (bw.needs(0)) bw[0] = bmm(bw.grad(), adjoint(bw(b)));
      if (bw.needs(1)) bw[1] = bmm(adjoint(bw(a)), bw.grad());
    });
  return c;
}

namespace {

Tensor mv(const Tensor& self, const Tensor& vec) {
  CHECK(self.dim() == 2 && vec.dim() == 1 && self.size(1) == vec.size(0), Shape,
        "mv: expected a matrix and a vector that fits, got shapes ", self.sizes(), " and ",
        vec.sizes());
  return squeeze(mm(self, unsqueeze(vec, 1)), Dims{1});
}

Tensor dot(const Tensor& self, const Tensor& tensor) {
  CHECK(self.dim() == 1 && tensor.dim() == 1, Shape, "dot: expected two vectors, got shapes ",
        self.sizes(), " and ", tensor.sizes());
  CHECK(self.numel() == tensor.numel(), Shape, "dot: expected vectors of one length, got ",
        self.numel(), " and ", tensor.numel());
  CHECK(self.dtype() == tensor.dtype(), DType, "dot: expected vectors of one dtype, got ",
        self.dtype(), " and ", tensor.dtype());
  return reshape(mm(unsqueeze(self, 0), unsqueeze(tensor, 1)), Dims{});
}

Tensor vdot(const Tensor& self, const Tensor& other) { return dot(conj(self), other); }

Dims leading(const Tensor& x) {
  return Dims(std::span<const int64_t>(x.sizes().data(), x.sizes().size() - 2));
}

Tensor expand_batch(const Tensor& x, const Dims& batch) {
  Dims sizes = batch;
  sizes.push_back(x.size(-2));
  sizes.push_back(x.size(-1));
  return x.sizes() == sizes ? x : expand(x, sizes);
}

// Folds the leading dims of a batch times one matrix into rows.
Tensor fold_rows(const Tensor& a, const Tensor& b) {
  Dims sizes = a.sizes();
  Tensor y = mm(reshape(a, Dims{-1, a.size(-1)}), b);
  sizes.back() = b.size(1);
  return reshape(y, sizes);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  CHECK(a.dim() > 0 && b.dim() > 0, Shape,
        "matmul: expected tensors of at least one dim, got shapes ", a.sizes(), " and ", b.sizes());
  int64_t inner = b.dim() == 1 ? b.size(0) : b.size(-2);
  CHECK(a.size(-1) == inner, Shape, "matmul: shapes ", a.sizes(), " and ", b.sizes(),
        " cannot be multiplied: sizes ", a.size(-1), " and ", inner, " differ");
  if (a.dim() == 1 && b.dim() == 1) return dot(a, b);
  if (a.dim() == 2 && b.dim() == 1) return mv(a, b);
  if (a.dim() == 1) return squeeze(matmul(unsqueeze(a, 0), b), Dims{-2});
  if (b.dim() == 1) return squeeze(matmul(a, unsqueeze(b, 1)), Dims{-1});
  if (a.dim() == 2 && b.dim() == 2) return mm(a, b);
  if (b.dim() == 2 && a.numel() > 0) return fold_rows(a, b);
  Dims batch = broadcast_shapes("matmul", leading(a), leading(b));
  Tensor x = expand_batch(a, batch), y = expand_batch(b, batch);
  int64_t count = checked_numel("matmul", batch);
  Tensor c = bmm(reshape(x, Dims{count, x.size(-2), x.size(-1)}),
                 reshape(y, Dims{count, y.size(-2), y.size(-1)}));
  batch.push_back(a.size(-2));
  batch.push_back(b.size(-1));
  return reshape(c, batch);
}

Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  CHECK(weight.dim() == 2 || weight.dim() == 1, Shape,
        "linear: expected a weight of shape [out, in], got ", weight.sizes());
  CHECK(input.dim() > 0 && input.size(-1) == weight.size(-1), Shape, "linear: input of shape ",
        input.sizes(), " does not fit a weight of shape ", weight.sizes());
  if (weight.dim() == 1) {
    CHECK(!bias || bias->dim() == 0, Shape, "linear: expected a 0-d bias for a 1-d weight");
    Tensor y = matmul(input, weight);
    return bias ? add(y, *bias) : y;
  }
  Tensor w = transpose(weight, 0, 1);
  if (!bias) return matmul(input, w);
  bool fits = bias->dtype() == input.dtype() && bias->dim() == 1;
  if (input.dim() == 2 && fits) return addmm(*bias, input, w, 1, 1);
  if (input.dim() < 2 || !fits || input.numel() == 0) return add(matmul(input, w), *bias);
  Dims sizes = input.sizes();
  sizes.back() = weight.size(0);
  return reshape(addmm(*bias, reshape(input, Dims{-1, input.size(-1)}), w, 1, 1), sizes);
}

OP_TABLE(matmul) = {
    op<mm>("mm(Tensor self, Tensor mat2) -> Tensor", "torch method", "Product of two matrices."),
    op<bmm>("bmm(Tensor self, Tensor mat2) -> Tensor", "torch method",
            "Products of two batches of matrices [N, m, k] and [N, k, n]."),
    op<mv>("mv(Tensor self, Tensor vec) -> Tensor", "torch method",
           "Product of a matrix and a vector."),
    op<dot>("dot(Tensor self, Tensor tensor) -> Tensor", "torch method",
            "Sum of products of two vectors."),
    op<vdot>("vdot(Tensor self, Tensor other) -> Tensor", "torch method",
             "dot() with the first vector conjugated."),
    op<matmul>("matmul(Tensor self, Tensor other) -> Tensor", "torch method linalg",
               "Product over the last two dims, the leading ones broadcast."),
    op<linear>("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", "nn",
               "input @ weight.T + bias; weight [out, in]."),
};
OP_TABLE_END(matmul);

}  // namespace cresset::ops
