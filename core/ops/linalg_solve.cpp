// Linear systems, inverses and determinants by LU factors.
#include <limits>

#include "core/dispatch/op.h"
#include "core/ops/linalg.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"

namespace cresset::ops {
namespace {

using Pair = std::tuple<Tensor, Tensor>;

// X with A X = B, the batches broadcast, and info.
Pair solve_matrices(const char* op, const Tensor& a, const Tensor& b) {
  check_square(op, a);
  check_linalg_dtype(op, a);
  CHECK(a.dtype() == b.dtype(), DType, op, ": expected A and B of one dtype, got ", a.dtype(),
        " and ", b.dtype());
  CHECK(a.size(-1) == b.size(-2), Shape, op, ": A of shape ", a.sizes(), " and B of shape ",
        b.sizes(), " do not fit");
  Tensor x, failed;
  {
    GradMode off(false);
    auto [lu, pivots, info] = lu_factor(op, a, true);
    x = linalg_lu_solve(lu, pivots, b, true, false);
    failed = info;
  }
  if (wants_grad(a, b))
    record("LinalgSolveExBackward0", x, inputs(a, b),
           [op, a = save(a), x = save_output(x)](Backward& bw) {
             Tensor gb = std::get<0>(solve_matrices(op, adjoint(bw(a)), bw.grad()));
             if (bw.needs(0)) bw[0] = neg(matmul(gb, adjoint(bw(x))));
             if (bw.needs(1)) bw[1] = gb;
           });
  return {x, failed};
}

Pair solve_any(const char* op, const Tensor& a, const Tensor& b, bool left) {
  check_square(op, a);
  Dims vectors(std::span<const int64_t>(a.sizes().data(), a.sizes().size() - 1));
  if (b.dim() == 1 || b.sizes() == vectors) {
    CHECK(left, Value, op, ": expected matrices for B with left=False, got shape ", b.sizes());
    auto [x, info] = solve_matrices(op, a, unsqueeze(b, -1));
    return {squeeze(x, Dims{-1}), info};
  }
  CHECK(b.dim() >= 2, Shape, op, ": expected vectors or matrices for B, got shape ", b.sizes());
  if (left) return solve_matrices(op, a, b);
  auto [x, info] = solve_matrices(op, transpose(a, -2, -1), transpose(b, -2, -1));
  return {transpose(x, -2, -1), info};
}

Pair linalg_solve_ex(const Tensor& a, const Tensor& b, bool left, bool check_errors) {
  Pair r = solve_any("linalg.solve_ex", a, b, left);
  if (check_errors) check_info("linalg.solve_ex", std::get<1>(r), "is singular");
  return r;
}
Tensor linalg_solve(const Tensor& a, const Tensor& b, bool left) {
  auto [x, info] = solve_any("linalg.solve", a, b, left);
  if (!info.is_meta()) check_info("linalg.solve", info, "is singular");
  return x;
}

Tensor linalg_tensorinv(const Tensor& a, int64_t ind) {
  CHECK(ind > 0 && ind <= a.dim(), Value, "linalg.tensorinv: expected ind in [1, ", a.dim(),
        "], got ", ind);
  Dims sizes;
  int64_t rows = 1, columns = 1;
  for (int64_t d = 0; d < a.dim(); ++d) (d < ind ? rows : columns) *= a.size(d);
  CHECK(rows == columns, Shape, "linalg.tensorinv: the first ", ind, " and the other dims of ",
        a.sizes(), " have different numbers of elements");
  for (int64_t d = 0; d < a.dim(); ++d) sizes.push_back(a.size((d + ind) % a.dim()));
  return reshape(linalg_inv(reshape(a, Dims{rows, columns})), sizes);
}

Tensor linalg_tensorsolve(const Tensor& a, const Tensor& b, const std::optional<Dims>& dims) {
  Tensor m = a;
  if (dims) {
    Dims source, target;
    for (size_t i = 0; i < dims->size(); ++i) {
      source.push_back((*dims)[i]);
      target.push_back(static_cast<int64_t>(i) - static_cast<int64_t>(dims->size()));
    }
    m = movedim(a, source, target);
  }
  int64_t lead = b.dim();
  CHECK(m.dim() >= lead, Shape, "linalg.tensorsolve: A of shape ", a.sizes(),
        " has fewer dims than B of shape ", b.sizes());
  Dims sizes;
  int64_t unknowns = 1;
  for (int64_t d = lead; d < m.dim(); ++d) sizes.push_back(m.size(d)), unknowns *= m.size(d);
  CHECK(unknowns == b.numel() && m.numel() == unknowns * unknowns, Shape,
        "linalg.tensorsolve: A of shape ", a.sizes(), " and B of shape ", b.sizes(),
        " do not make a square system");
  return reshape(
      linalg_solve(reshape(m, Dims{unknowns, unknowns}), reshape(b, Dims{unknowns}), true), sizes);
}

// ---- determinants

struct Determinant {
  Tensor det, sign, log_abs;
};

Determinant determinant(const char* op, const Tensor& lu, const Tensor& pivots) {
  Dims batch = batch_of(lu);
  Options real{to_real(lu.dtype()), lu.device()};
  Determinant r{empty(batch, options_of(lu)), empty(batch, options_of(lu)), empty(batch, real)};
  int64_t n = lu.size(-1), count = r.det.numel();
  auto flat = [&](const Tensor& t, Dims sizes) {
    return alias(t, sizes, contiguous_strides(sizes), t.offset());
  };
  launch(op, lu.device(), &LinalgKernels::determinant, flat(lu, Dims{count, n, n}),
         flat(pivots, Dims{count, n}), flat(r.det, Dims{count}), flat(r.sign, Dims{count}),
         flat(r.log_abs, Dims{count}));
  return r;
}

// One number per matrix times each of its elements.
Tensor scale_matrices(const Tensor& numbers, const Tensor& m) {
  return mul(unsqueeze(unsqueeze(numbers, -1), -1), m);
}

// conj(det) A^-H: where a pivot is 0, of a matrix close by, which has nearly the same cofactors.
Tensor conjugate_cofactors(const Tensor& lu, const Tensor& pivots) {
  Tensor near = clone(lu, int64_t{0});
  Tensor pivot = diagonal(near, 0, -2, -1);
  double eps = to_real(lu.dtype()) == DType::Float32 ? std::numeric_limits<float>::epsilon()
                                                     : std::numeric_limits<double>::epsilon();
  copy_(pivot, where(eq(pivot, 0.0), eps, pivot));
  Tensor inverse = linalg_lu_solve(near, pivots, identity_like(near), true, true);
  return scale_matrices(conj(determinant("linalg.det", near, pivots).det), inverse);
}

Tensor linalg_det(const Tensor& a) {
  check_square("linalg.det", a);
  check_linalg_dtype("linalg.det", a);
  Tensor det, lu, pivots;
  {
    GradMode off(false);
    std::tie(lu, pivots, std::ignore) = lu_factor("linalg.det", a, true);
    det = determinant("linalg.det", lu, pivots).det;
  }
  if (wants_grad(a))
    record("LinalgDetBackward0", det, inputs(a), [a = save(a), lu, pivots](Backward& b) {
      if (b(a).numel() == 0) return;
      if (grad_enabled())
        b[0] = scale_matrices(mul(b.grad(), conj(linalg_det(b(a)))), adjoint(linalg_inv(b(a))));
      else
        b[0] = scale_matrices(b.grad(), conjugate_cofactors(lu, pivots));
    });
  return det;
}

Pair linalg_slogdet(const Tensor& a) {
  check_square("linalg.slogdet", a);
  check_linalg_dtype("linalg.slogdet", a);
  Determinant r;
  {
    GradMode off(false);
    auto [lu, pivots, info] = lu_factor("linalg.slogdet", a, true);
    r = determinant("linalg.slogdet", lu, pivots);
  }
  if (wants_grad(a)) {
    Tensor ys[] = {r.sign, r.log_abs};
    record("LinalgSlogdetBackward0", std::span<const Tensor>(ys), inputs(a),
           [a = save(a), sign = save_output(r.sign, 0)](Backward& b) {
             Tensor g = b.grad(1);
             if (b(a).is_complex()) g = make_complex(g, neg(imag(mul(conj(b.grad(0)), b(sign)))));
             b[0] = scale_matrices(g, adjoint(linalg_inv(b(a))));
           });
  }
  return {r.sign, r.log_abs};
}

Tensor logdet(const Tensor& a) {
  auto [sign, log_abs] = linalg_slogdet(a);
  if (a.is_complex()) return add(log(sign), log_abs);
  return where(eq(sign, -1.0), std::numeric_limits<double>::quiet_NaN(), log_abs);
}

}  // namespace

Tensor linalg_inv(const Tensor& a) {
  check_square("linalg.inv", a);
  auto [x, info] = solve_matrices("linalg.inv", a, identity_like(a));
  if (!info.is_meta()) check_info("linalg.inv", info, "is singular");
  return x;
}

Pair linalg_inv_ex(const Tensor& a, bool check_errors) {
  check_square("linalg.inv_ex", a);
  Pair r = solve_matrices("linalg.inv_ex", a, identity_like(a));
  if (check_errors) check_info("linalg.inv_ex", std::get<1>(r), "is singular");
  return r;
}

OP_TABLE(linalg_solve) = {
    op<linalg_solve>("linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor", "linalg",
                     "X with A X = B, or X A = B."),
    op<linalg_solve_ex>("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, "
                        "bool check_errors=False) -> (Tensor result, Tensor info)",
                        "linalg", "X with A X = B, and which matrices are singular."),
    op<linalg_inv>("linalg_inv(Tensor A) -> Tensor", "linalg", "Inverses of matrices."),
    op<linalg_inv>("inverse(Tensor self) -> Tensor", "torch method", "Inverses of matrices."),
    op<linalg_inv_ex>("linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, "
                      "Tensor info)",
                      "linalg", "Inverses, and which matrices are singular."),
    op<linalg_tensorinv>("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", "linalg",
                         "The inverse for tensordot over ind dims."),
    op<linalg_tensorsolve>("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> "
                           "Tensor",
                           "linalg", "X with tensordot(A, X) = B."),
    op<linalg_det>("linalg_det(Tensor A) -> Tensor", "linalg", "Determinants."),
    op<linalg_det>("det(Tensor self) -> Tensor", "torch method", "Determinants."),
    op<linalg_slogdet>("linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)", "linalg",
                       "Sign and log of the absolute value of determinants."),
    op<linalg_slogdet>("slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)", "torch method",
                       "Sign and log of the absolute value of determinants."),
    op<logdet>("logdet(Tensor self) -> Tensor", "torch method",
               "Logs of determinants; NaN where negative."),
};
OP_TABLE_END(linalg_solve);

}  // namespace cresset::ops
