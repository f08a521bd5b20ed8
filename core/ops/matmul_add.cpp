// Matrix products added to a tensor: addmm, baddbmm, addbmm, addmv, addr, and in place.
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/matmul.h"
#include "core/ops/ops.h"
#include "core/ops/write_in_place.h"

namespace cresset::ops {
namespace {

// The gradient's share of a factor.
Tensor scaled(const Tensor& g, const Scalar& s) {
  if (s.equals(1)) return g;
  return mul(g, s.is_complex() ? Scalar(std::conj(s.to_complex())) : s);
}

// Checks that `self` takes part in a sum of shape `sizes` with factors of a's dtype.
void check_addend(const char* op, const Tensor& self, const Tensor& a, const Dims& sizes,
                  const Scalar& beta, const Scalar& alpha) {
  CHECK(self.dtype() == a.dtype(), DType, op, ": expected self of dtype ", a.dtype(), ", got ",
        self.dtype());
  CHECK(self.device() == a.device(), Device, op, ": expected self on device ", a.device(), ", got ",
        self.device());
  CHECK(self.dim() <= static_cast<int64_t>(sizes.size()) &&
            broadcast_shapes(op, self.sizes(), sizes) == sizes,
        Shape, op, ": self of shape ", self.sizes(), " does not broadcast to ", sizes);
  CHECK(a.is_complex() || (!beta.is_complex() && !alpha.is_complex()), DType, op,
        ": expected real beta and alpha for ", a.dtype(), ", got ", beta, " and ", alpha);
}

void check_addmm(const char* op, const Tensor& self, const Tensor& a, const Tensor& b,
                 const Scalar& beta, const Scalar& alpha) {
  CHECK(a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0), Shape, op,
        ": expected two matrices that can be multiplied, got shapes ", a.sizes(), " and ",
        b.sizes());
  check_matrices(op, a, b);
  check_addend(op, self, a, Dims{a.size(0), b.size(1)}, beta, alpha);
}

void check_baddbmm(const char* op, const Tensor& self, const Tensor& a, const Tensor& b,
                   const Scalar& beta, const Scalar& alpha) {
  CHECK(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1), Shape, op,
        ": expected two batches of matrices that can be multiplied, got shapes ", a.sizes(),
        " and ", b.sizes());
  check_matrices(op, a, b);
  check_addend(op, self, a, Dims{a.size(0), a.size(1), b.size(2)}, beta, alpha);
}

Tensor& in_place(const char* op, Tensor& self, const Tensor& result) {
  CHECK(result.sizes() == self.sizes(), Shape, op, ": expected self of shape ", result.sizes(),
        ", got ", self.sizes());
  check_inplace(op, self, wants_grad(self, result));
  check_no_self_overlap(op, self);
  return copy_(self, result);
}

Tensor baddbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
               const Scalar& alpha) {
  check_baddbmm("baddbmm", self, a, b, beta, alpha);
  Tensor c = empty(Dims{a.size(0), a.size(1), b.size(2)}, options_of(a));
  if (!beta.equals(0)) copy_raw(self, c);
  matrix_product("baddbmm", a, b, c, alpha, beta);
  if (wants_grad(self, a, b))
    record("BaddbmmBackward0", c, inputs(self, a, b),
           [a = save(a), b = save(b), beta, alpha](Backward& bw) {
             Tensor g = bw.grad();
             if (bw.needs(0)) bw[0] = scaled(g, beta);
             if (bw.needs(1)) bw[1] = scaled(bmm(g, adjoint(bw(b))), alpha);
             if (bw.needs(2)) bw[2] = scaled(bmm(adjoint(bw(a)), g), alpha);
           });
  return c;
}

// One product of [m, N k] by [N k, n].
Tensor addbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
              const Scalar& alpha) {
  CHECK(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1), Shape,
        "addbmm: expected two batches of matrices that can be multiplied, got shapes ", a.sizes(),
        " and ", b.sizes());
  int64_t terms = a.size(0) * a.size(2);
  return addmm(self, reshape(permute(a, Dims{1, 0, 2}), Dims{a.size(1), terms}),
               reshape(b, Dims{terms, b.size(2)}), beta, alpha);
}

Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
             const Scalar& alpha) {
  CHECK(mat.dim() == 2 && vec.dim() == 1 && mat.size(1) == vec.size(0), Shape,
        "addmv: expected a matrix and a vector that fits, got shapes ", mat.sizes(), " and ",
        vec.sizes());
  Dims sizes{mat.size(0)};
  check_addend("addmv", self, mat, sizes, beta, alpha);
  Tensor column = unsqueeze(expand(self, sizes), 1);
  return squeeze(addmm(column, mat, unsqueeze(vec, 1), beta, alpha), Dims{1});
}

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  CHECK(vec1.dim() == 1 && vec2.dim() == 1, Shape, "addr: expected two vectors, got shapes ",
        vec1.sizes(), " and ", vec2.sizes());
  Dims sizes{vec1.size(0), vec2.size(0)};
  CHECK(self.dim() <= 2 && broadcast_shapes("addr", self.sizes(), sizes) == sizes, Shape,
        "addr: self of shape ", self.sizes(), " does not broadcast to ", sizes);
  DType dtype = promote_types(self.dtype(), promote_types(vec1.dtype(), vec2.dtype()));
  CHECK(!is_integral(dtype, true) || (beta.is_integral() && alpha.is_integral()), Value,
        "addr: expected integer beta and alpha for ", dtype, ", got ", beta, " and ", alpha);
  auto times = [dtype](const Tensor& t, const Scalar& s) {
    if (s.equals(1)) return t;
    return mul(t, dtype == DType::Bool ? Scalar(s.to_bool()) : s);
  };
  Tensor product = to_dtype(times(outer(vec1, vec2), alpha), dtype);
  if (beta.equals(0)) return product;
  return add(to_dtype(times(self, beta), dtype), product);
}

Tensor& addmm_(Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
               const Scalar& alpha) {
  check_addmm("addmm_", self, a, b, beta, alpha);
  CHECK((self.sizes() == Dims{a.size(0), b.size(1)}), Shape, "addmm_: expected self of shape [",
        a.size(0), ", ", b.size(1), "], got ", self.sizes());
  auto direct = [&](const Tensor& out) {
    matrix_product("addmm_", apart_from(out, a), apart_from(out, b), out, alpha, beta);
  };
  return write_in_place("addmm_", self, wants_grad(self, a, b), direct,
                        [&] { return addmm(self, a, b, beta, alpha); });
}

Tensor& baddbmm_(Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                 const Scalar& alpha) {
  check_baddbmm("baddbmm_", self, a, b, beta, alpha);
  CHECK((self.sizes() == Dims{a.size(0), a.size(1), b.size(2)}), Shape,
        "baddbmm_: expected self of the product's shape, got ", self.sizes());
  auto direct = [&](const Tensor& out) {
    matrix_product("baddbmm_", apart_from(out, a), apart_from(out, b), out, alpha, beta);
  };
  return write_in_place("baddbmm_", self, wants_grad(self, a, b), direct,
                        [&] { return baddbmm(self, a, b, beta, alpha); });
}

Tensor& addbmm_(Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
                const Scalar& alpha) {
  return in_place("addbmm_", self, addbmm(self, a, b, beta, alpha));
}
Tensor& addmv_(Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
               const Scalar& alpha) {
  return in_place("addmv_", self, addmv(self, mat, vec, beta, alpha));
}
Tensor& addr_(Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
              const Scalar& alpha) {
  Tensor result = addr(self, vec1, vec2, beta, alpha);
  CHECK(result.dtype() == self.dtype(), DType, "addr_: the result's dtype ", result.dtype(),
        " cannot be written into ", self.dtype());
  return in_place("addr_", self, result);
}

}  // namespace

Tensor addmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta,
             const Scalar& alpha) {
  check_addmm("addmm", self, a, b, beta, alpha);
  Tensor c = empty(Dims{a.size(0), b.size(1)}, options_of(a));
  const bool plain = beta.equals(1) && alpha.equals(1);
  if (!plain || !biased_product("addmm", a, b, self, c)) {
    if (!beta.equals(0)) copy_raw(self, c);
    matrix_product("addmm", a, b, c, alpha, beta);
  }
  if (wants_grad(self, a, b))
    record("AddmmBackward0", c, inputs(self, a, b),
           [a = save(a), b = save(b), beta, alpha](Backward& bw) {
             Tensor g = bw.grad();
             if (bw.needs(0)) bw[0] = scaled(g, beta);
             if (bw.needs(1)) bw[1] = scaled(mm(g, adjoint(bw(b))), alpha);
             if (bw.needs(2)) bw[2] = scaled(right_gradient(bw(a), g, bw(b)), alpha);
           });
  return c;
}

OP_TABLE(matmul_add) = {
    op<addmm>("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
              "Tensor",
              "torch method", "beta self + alpha (mat1 @ mat2)."),
    op<baddbmm>("baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar "
                "alpha=1) -> Tensor",
                "torch method", "beta self + alpha (batch1 @ batch2) of batches of matrices."),
    op<addbmm>("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar "
               "alpha=1) -> Tensor",
               "torch method", "beta self + alpha times the sum of batch1 @ batch2."),
    op<addmv>("addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> "
              "Tensor",
              "torch method", "beta self + alpha (mat @ vec)."),
    op<addr>("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> "
             "Tensor",
             "torch method", "beta self + alpha times the outer product of two vectors."),
    op<addmm_>("addmm_(Tensor(a!) self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar "
               "alpha=1) -> Tensor(a!)",
               "method", "addmm() in place."),
    op<baddbmm_>("baddbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar "
                 "alpha=1) -> Tensor(a!)",
                 "method", "baddbmm() in place."),
    op<addbmm_>("addbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar "
                "alpha=1) -> Tensor(a!)",
                "method", "addbmm() in place."),
    op<addmv_>("addmv_(Tensor(a!) self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) "
               "-> Tensor(a!)",
               "method", "addmv() in place."),
    op<addr_>("addr_(Tensor(a!) self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar "
              "alpha=1) -> Tensor(a!)",
              "method", "addr() in place."),
};
OP_TABLE_END(matmul_add);

}  // namespace cresset::ops
