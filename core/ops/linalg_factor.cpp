// Factorizations and triangular systems: LU, Cholesky, QR, solve_triangular.
#include "core/dispatch/op.h"
#include "core/ops/linalg.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"

namespace cresset {

enum class QrMode : uint8_t { reduced, complete, r };
template <> struct EnumNames<QrMode> {
  static constexpr const char* schema = "QrMode{reduced|complete|r}";
};

namespace ops {

void check_linalg_dtype(const char* op, const Tensor& x) {
  bool fits = x.dtype() == DType::Float32 || x.dtype() == DType::Float64 || x.is_complex();
  CHECK(fits, DType, op, ": expected float32, float64, complex64 or complex128, got ", x.dtype());
}

void check_info(const char* op, const Tensor& info, const char* what) {
  CHECK(!info.is_meta(), Device, op, ": needs values, which meta tensors do not have");
  const Tensor codes = on_host(info);
  for (int64_t i = 0; i < codes.numel(); ++i) {
    int32_t at = codes.data<int32_t>()[i];
    CHECK(at == 0, Value, op, ": matrix ", i, " of the batch ", what, " (at ", at, ")");
  }
}

namespace {

void check_matrix(const char* op, const Tensor& x) {
  CHECK(x.dim() >= 2, Shape, op, ": expected matrices, got shape ", x.sizes());
  check_linalg_dtype(op, x);
}

int64_t count_of(const Dims& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

// The batch dims as one, sharing memory: x is contiguous.
Tensor flat_batch(const Tensor& x) {
  Dims sizes{count_of(batch_of(x)), x.size(-2), x.size(-1)};
  return alias(x, sizes, contiguous_strides(sizes), x.offset());
}
Tensor flat_rows(const Tensor& x) {
  Dims sizes{count_of(batch_of(x, 1)), x.size(-1)};
  return alias(x, sizes, contiguous_strides(sizes), x.offset());
}

Tensor own_copy(const Tensor& x) { return clone(x, int64_t{0}); }

}  // namespace

// ---- triangular systems

namespace {

Tensor triangle(const Tensor& x, bool upper, bool unit) {
  return upper ? triu(x, unit ? 1 : 0) : tril(x, unit ? -1 : 0);
}

// a and b have the same batch dims.
Tensor solve_triangular_left(const Tensor& a, const Tensor& b, bool upper, bool unit) {
  Tensor x;
  {
    GradMode off(false);
    x = own_copy(b);
    launch("linalg.solve_triangular", x.device(), &LinalgKernels::solve_triangular,
           flat_batch(contiguous(a)), flat_batch(x), upper, unit);
  }
  if (wants_grad(a, b))
    record("LinalgSolveTriangularBackward0", x, inputs(a, b),
           [a = save(a), x = save_output(x), upper, unit](Backward& bw) {
             Tensor gb = solve_triangular_left(adjoint(bw(a)), bw.grad(), !upper, unit);
             if (bw.needs(0)) bw[0] = triangle(neg(matmul(gb, adjoint(bw(x)))), upper, unit);
             if (bw.needs(1)) bw[1] = gb;
           });
  return x;
}

}  // namespace

Tensor linalg_solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left,
                               bool unitriangular) {
  const char* op = "linalg.solve_triangular";
  check_matrix(op, a);
  check_square(op, a);
  CHECK(b.dim() >= 2 && b.dtype() == a.dtype(), DType, op, ": expected matrices of dtype ",
        a.dtype(), " for B, got ", b.dtype(), " of shape ", b.sizes());
  CHECK(b.size(left ? -2 : -1) == a.size(-1), Shape, op, ": A of shape ", a.sizes(),
        " and B of shape ", b.sizes(), " do not fit");
  if (!left)
    return transpose(linalg_solve_triangular(transpose(a, -2, -1), transpose(b, -2, -1), !upper,
                                             true, unitriangular),
                     -2, -1);
  Dims batch = broadcast_shapes(op, batch_of(a), batch_of(b));
  return solve_triangular_left(expand(a, with(batch, {a.size(-2), a.size(-1)})),
                               expand(b, with(batch, {b.size(-2), b.size(-1)})), upper,
                               unitriangular);
}

namespace {

std::tuple<Tensor, Tensor> triangular_solve(const Tensor& b, const Tensor& a, bool upper,
                                            bool transposed, bool unitriangular) {
  Tensor m = transposed ? transpose(a, -2, -1) : a;
  Tensor x = linalg_solve_triangular(m, b, upper != transposed, true, unitriangular);
  Dims batch = batch_of(x);
  return {x, clone(expand(a, with(batch, {a.size(-2), a.size(-1)})), int64_t{0})};
}

// ---- LU

// The permutation matrices of pivots: P with P L U = A, in the given dtype.
Tensor permutation(const Tensor& pivots, int64_t m, DType dtype) {
  GradMode off(false);
  Dims batch = batch_of(pivots, 1);
  Tensor order = empty(with(batch, {m}), Options{DType::Int64, pivots.device()});
  launch("lu_unpack", order.device(), &LinalgKernels::row_order,
         flat_rows(contiguous(to_dtype(pivots, DType::Int32))), flat_rows(order));
  Tensor columns = empty(Dims{m}, {DType::Int64, {}});
  for (int64_t i = 0; i < m; ++i) columns.data<int64_t>()[i] = i;
  columns = on_device(columns, order.device());
  // P[i, j] = 1 where row i of A is row j of L U.
  return to_dtype(eq(unsqueeze(order, -2), unsqueeze(columns, 1)), dtype);
}

std::pair<Tensor, Tensor> split_lu(const Tensor& lu) {
  int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  Tensor lower = tril(narrow(lu, -1, 0, k), -1);
  return {add(lower, identity_like(lower)), triu(narrow(lu, -2, 0, k))};
}

// gA from the gradient of the packed factors: A1 = L1 U1 fixes the square part, and what lies
// beside or below it is a triangular system.
Tensor lu_gradient(const Tensor& g, const Tensor& lu, const Tensor& pivots) {
  int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  auto [l, u] = split_lu(lu);
  Tensor l1 = narrow(l, -2, 0, k), u1 = narrow(u, -1, 0, k);
  Tensor g1 = narrow(narrow(g, -2, 0, k), -1, 0, k);
  Tensor below = matmul(adjoint(l1), tril(g1, -1)), above = matmul(triu(g1), adjoint(u1));
  auto left = [&](const Tensor& t) {
    return linalg_solve_triangular(adjoint(l1), t, true, true, true);
  };
  auto right = [&](const Tensor& t) {
    return linalg_solve_triangular(adjoint(u1), t, false, false, false);
  };
  Tensor extra;
  if (n > k) {
    Tensor g2 = narrow(g, -1, k, n - k);
    below = sub(below, matmul(g2, adjoint(narrow(u, -1, k, n - k))));
    extra = left(g2);
  } else if (m > k) {
    Tensor g2 = narrow(g, -2, k, m - k);
    above = sub(above, matmul(adjoint(narrow(l, -2, k, m - k)), g2));
    extra = right(g2);
  }
  Tensor y = right(left(add(tril(below, -1), triu(above))));
  if (extra.defined()) y = cat({y, extra}, n > k ? -1 : -2);
  return matmul(permutation(pivots, m, g.dtype()), y);
}

using Triple = std::tuple<Tensor, Tensor, Tensor>;

}  // namespace

Triple lu_factor(const char* op, const Tensor& x, bool pivot) {
  check_matrix(op, x);
  Dims batch = batch_of(x);
  Tensor lu, pivots, info;
  {
    GradMode off(false);
    lu = own_copy(x);
    Options ints{DType::Int32, x.device()};
    pivots = empty(with(batch, {std::min(x.size(-2), x.size(-1))}), ints);
    info = empty(batch, ints);
    Tensor flat_info = alias(info, Dims{count_of(batch)}, Dims{1}, info.offset());
    launch(op, x.device(), &LinalgKernels::lu, flat_batch(lu), flat_rows(pivots), flat_info, pivot);
  }
  if (wants_grad(x))
    record("LinalgLuFactorExBackward0", lu, inputs(x),
           [lu = save_output(lu), pivots = save(pivots)](Backward& b) {
             b[0] = lu_gradient(b.grad(), b(lu), b(pivots));
           });
  return {lu, pivots, info};
}

namespace {

Triple linalg_lu_factor_ex(const Tensor& x, bool pivot, bool check_errors) {
  Triple r = lu_factor("linalg.lu_factor_ex", x, pivot);
  if (check_errors) check_info("linalg.lu_factor_ex", std::get<2>(r), "is singular");
  return r;
}
std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& x, bool pivot) {
  auto [lu, pivots, info] = lu_factor("linalg.lu_factor", x, pivot);
  return {lu, pivots};
}

Triple lu_unpack(const Tensor& data, const Tensor& pivots, bool unpack_data, bool unpack_pivots) {
  check_matrix("lu_unpack", data);
  Dims expected = with(batch_of(data), {std::min(data.size(-2), data.size(-1))});
  CHECK(pivots.sizes() == expected, Shape, "lu_unpack: expected pivots of shape ", expected,
        ", got ", pivots.sizes());
  Tensor none = empty(Dims{0}, options_of(data));
  Tensor p = unpack_pivots ? permutation(pivots, data.size(-2), data.dtype()) : none;
  if (!unpack_data) return {p, none, none};
  auto [l, u] = split_lu(data);
  return {p, l, u};
}
Triple linalg_lu(const Tensor& x, bool pivot) {
  auto [lu, pivots, info] = lu_factor("linalg.lu", x, pivot);
  auto [p, l, u] = lu_unpack(lu, pivots, true, pivot);
  return {p, l, u};
}

}  // namespace

Tensor linalg_lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left,
                       bool transposed) {
  const char* op = "linalg.lu_solve";
  check_matrix(op, lu);
  check_square(op, lu);
  CHECK(pivots.sizes() == batch_of(lu, 1), Shape, op, ": expected pivots of shape ",
        batch_of(lu, 1), ", got ", pivots.sizes());
  if (!left) return adjoint(linalg_lu_solve(lu, pivots, adjoint(b), true, !transposed));
  Tensor p = permutation(pivots, lu.size(-2), lu.dtype());
  if (!transposed) {
    Tensor y = linalg_solve_triangular(lu, matmul(transpose(p, -2, -1), b), false, true, true);
    return linalg_solve_triangular(lu, y, true, true, false);
  }
  Tensor h = adjoint(lu);
  Tensor y = linalg_solve_triangular(h, b, false, true, false);
  return matmul(p, linalg_solve_triangular(h, y, true, true, true));
}
namespace {

Tensor lu_solve(const Tensor& b, const Tensor& lu, const Tensor& pivots) {
  return linalg_lu_solve(lu, pivots, b, true, false);
}

// ---- Cholesky

std::tuple<Tensor, Tensor> cholesky_any(const char* op, const Tensor& x, bool upper) {
  check_matrix(op, x);
  check_square(op, x);
  Dims batch = batch_of(x);
  Tensor l, info;
  {
    GradMode off(false);
    l = own_copy(upper ? adjoint(x) : x);
    info = empty(batch, Options{DType::Int32, x.device()});
    Tensor flat_info = alias(info, Dims{count_of(batch)}, Dims{1}, info.offset());
    launch(op, x.device(), &LinalgKernels::cholesky, flat_batch(l), flat_info);
  }
  // Murray, "Differentiation of the Cholesky decomposition" (2016).
  if (wants_grad(x))
    record("LinalgCholeskyExBackward0", l, inputs(x), [l = save_output(l)](Backward& b) {
      Tensor f = b(l), lh = adjoint(f);
      Tensor phi = tril(matmul(lh, b.grad()));
      phi = mul(add(phi, adjoint(tril(phi, -1))), 0.5);
      Tensor y = linalg_solve_triangular(lh, phi, true, true, false);
      b[0] = linalg_solve_triangular(f, y, false, false, false);
    });
  return {upper ? adjoint(l) : l, info};
}

std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& x, bool upper, bool check_errors) {
  auto r = cholesky_any("linalg.cholesky_ex", x, upper);
  if (check_errors) check_info("linalg.cholesky_ex", std::get<1>(r), "is not positive definite");
  return r;
}
Tensor linalg_cholesky(const Tensor& x, bool upper) {
  auto [l, info] = cholesky_any("linalg.cholesky", x, upper);
  if (!info.is_meta()) check_info("linalg.cholesky", info, "is not positive definite");
  return l;
}

// The gradient is that of L L^H (or U^H U): elements beyond the triangle get theirs too, as in
// PyTorch.
Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper) {
  check_matrix("cholesky_solve", factor);
  Tensor x;
  {
    GradMode off(false);
    Tensor h = adjoint(factor);
    Tensor y = linalg_solve_triangular(upper ? h : factor, b, false, true, false);
    x = linalg_solve_triangular(upper ? factor : h, y, true, true, false);
  }
  if (wants_grad(b, factor))
    record("CholeskySolveBackward0", x, inputs(b, factor),
           [f = save(factor), x = save_output(x), upper](Backward& bw) {
             Tensor l = bw(f), gb = cholesky_solve(bw.grad(), l, upper);
             if (bw.needs(0)) bw[0] = gb;
             if (!bw.needs(1)) return;
             Tensor common = matmul(gb, adjoint(bw(x)));
             common = neg(add(common, adjoint(common)));
             bw[1] = upper ? matmul(l, common) : matmul(common, l);
           });
  return x;
}
Tensor cholesky_inverse(const Tensor& factor, bool upper) {
  check_square("cholesky_inverse", factor);
  return cholesky_solve(identity_like(factor), factor, upper);
}

// ---- QR

// X + X^H with the diagonal once.
Tensor hermitian_from_upper(const Tensor& x) {
  Tensor strict = triu(x, 1);
  Tensor diagonal_part = sub(triu(x), strict);
  Tensor real_diagonal = mul(add(diagonal_part, adjoint(diagonal_part)), 0.5);
  return add(add(strict, adjoint(strict)), real_diagonal);
}

using Factors = std::tuple<Tensor, Tensor>;

// Reflectors and tau, unrecorded.
Factors reflectors(const char* op, const Tensor& x) {
  GradMode off(false);
  Tensor a = own_copy(x);
  Tensor tau = empty(with(batch_of(x), {std::min(x.size(-2), x.size(-1))}), options_of(x));
  launch(op, x.device(), &LinalgKernels::qr, flat_batch(a), flat_rows(tau));
  return {a, tau};
}

// Q [m, columns] and R [columns, n].
Factors qr_values(const Tensor& x, int64_t columns) {
  GradMode off(false);
  auto [a, tau] = reflectors("linalg.qr", x);
  Tensor q = empty(with(batch_of(x), {x.size(-2), columns}), options_of(x));
  launch("linalg.qr", x.device(), &LinalgKernels::reflect, flat_batch(a), flat_rows(tau),
         flat_batch(q));
  return {q, triu(narrow(a, -2, 0, columns))};
}

Factors qr_tall(const Tensor& x) {
  auto [q, r] = qr_values(x, x.size(-1));
  if (wants_grad(x)) {
    Tensor ys[] = {q, r};
    record("LinalgQrBackward0", std::span<const Tensor>(ys), inputs(x),
           [q = save_output(q, 0), r = save_output(r, 1)](Backward& b) {
             Tensor qv = b(q), rv = b(r);
             Tensor m = sub(matmul(b.grad(1), adjoint(rv)), matmul(adjoint(qv), b.grad(0)));
             Tensor y = add(matmul(qv, hermitian_from_upper(m)), b.grad(0));
             b[0] = linalg_solve_triangular(adjoint(rv), y, false, false, false);
           });
  }
  return {q, r};
}

Factors linalg_qr(const Tensor& x, QrMode mode) {
  check_matrix("linalg.qr", x);
  int64_t m = x.size(-2), n = x.size(-1);
  if (mode == QrMode::r) {
    auto [a, tau] = reflectors("linalg.qr", x);
    CHECK(!wants_grad(x), NotImplemented, "linalg.qr: mode \"r\" has no derivative");
    return {empty(Dims{0}, options_of(x)), triu(narrow(a, -2, 0, std::min(m, n)))};
  }
  if (mode == QrMode::complete && m > n) {
    CHECK(!wants_grad(x), NotImplemented,
          "linalg.qr: mode \"complete\" has no derivative for more rows than columns");
    return qr_values(x, m);
  }
  if (m >= n) return qr_tall(x);
  // The first m columns fix Q; the others are projections on it.
  auto [q, r] = qr_tall(narrow(x, -1, 0, m));
  return {q, cat({r, matmul(adjoint(q), narrow(x, -1, m, n - m))}, -1)};
}
Factors qr(const Tensor& x, bool some) {
  return linalg_qr(x, some ? QrMode::reduced : QrMode::complete);
}

// Q C or Q^H C for the product Q of the reflectors I - tau v v^H below the diagonal of a.
Tensor apply_reflectors(const Tensor& a, const Tensor& tau, const Tensor& c, bool transposed) {
  Tensor strict = tril(a, -1);
  Tensor v = add(strict, identity_like(strict));
  int64_t count = tau.size(-1);
  Tensor y = c;
  for (int64_t step = 0; step < count; ++step) {
    int64_t j = transposed ? step : count - 1 - step;
    Tensor column = narrow(v, -1, j, 1);
    Tensor t = unsqueeze(narrow(tau, -1, j, 1), -1);
    y = sub(y, mul(transposed ? conj(t) : t, matmul(column, matmul(adjoint(column), y))));
  }
  return y;
}

void check_reflectors(const char* op, const Tensor& a, const Tensor& tau) {
  check_matrix(op, a);
  CHECK(a.dtype() == tau.dtype(), DType, op, ": expected tau of dtype ", a.dtype(), ", got ",
        tau.dtype());
  CHECK(tau.dim() == a.dim() - 1 && batch_of(tau, 1) == batch_of(a), Shape, op,
        ": expected tau of shape ", batch_of(a), " and one number per reflector, got ",
        tau.sizes());
  CHECK(tau.size(-1) <= std::min(a.size(-2), a.size(-1)), Shape, op, ": ", tau.size(-1),
        " reflectors do not fit into shape ", a.sizes());
}

Tensor householder_product(const Tensor& a, const Tensor& tau) {
  const char* op = "linalg.householder_product";
  check_reflectors(op, a, tau);
  CHECK(a.size(-2) >= a.size(-1), Shape, op, ": expected at least as many rows as columns, got ",
        a.sizes());
  bool empty_product = a.numel() == 0 || tau.numel() == 0;
  if (wants_grad(a, tau) && !empty_product)
    return apply_reflectors(a, tau, identity_like(a), false);
  Tensor q = empty(a.sizes(), options_of(a));
  launch(op, a.device(), &LinalgKernels::reflect, flat_batch(contiguous(a)),
         flat_rows(contiguous(tau)), flat_batch(q));
  // Nothing of the inputs reaches an empty product.
  if (wants_grad(a, tau))
    record("LinalgHouseholderProductBackward0", q, inputs(a, tau), [](Backward&) {});
  return q;
}

Tensor ormqr(const Tensor& a, const Tensor& tau, const Tensor& other, bool left, bool transposed) {
  check_reflectors("ormqr", a, tau);
  CHECK(other.dim() == a.dim() && other.dtype() == a.dtype(), Shape,
        "ormqr: expected other with the dims and dtype of input, got ", other.dtype(), " of shape ",
        other.sizes());
  CHECK(other.size(left ? -2 : -1) == a.size(-2), Shape, "ormqr: reflectors of shape ", a.sizes(),
        " do not fit other of shape ", other.sizes());
  if (a.numel() == 0 || tau.numel() == 0) return clone(other, int64_t{0});
  if (left) return apply_reflectors(a, tau, other, transposed);
  return adjoint(apply_reflectors(a, tau, adjoint(other), !transposed));
}

Factors geqrf(const Tensor& x) {
  check_matrix("geqrf", x);
  CHECK(!wants_grad(x), NotImplemented, "geqrf: no derivative");
  return reflectors("geqrf", x);
}

}  // namespace

Tensor orthonormal_columns(const Tensor& x) { return std::get<0>(linalg_qr(x, QrMode::reduced)); }

OP_TABLE(linalg_factor) = {
    op<linalg_solve_triangular>(
        "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, "
        "bool unitriangular=False) -> Tensor",
        "linalg", "X with A X = B (or X A = B) for triangular A."),
    op<triangular_solve>("triangular_solve(Tensor self, Tensor A, bool upper=True, "
                         "bool transpose=False, bool unitriangular=False) -> (Tensor solution, "
                         "Tensor cloned_coefficient)",
                         "torch method", "X with A X = self for triangular A."),
    op<linalg_lu_factor_ex>("linalg_lu_factor_ex(Tensor A, *, bool pivot=True, "
                            "bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)",
                            "linalg", "Packed LU factors, pivots, and whether it failed."),
    op<linalg_lu_factor>("linalg_lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, "
                         "Tensor pivots)",
                         "linalg", "Packed LU factors and pivots."),
    op<linalg_lu>("linalg_lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
                  "linalg", "P, L and U with P L U = A."),
    op<lu_unpack>("lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, "
                  "bool unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
                  "torch", "P, L and U from packed factors."),
    op<linalg_lu_solve>("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, "
                        "bool adjoint=False) -> Tensor",
                        "linalg", "X with A X = B from A's LU factors."),
    op<lu_solve>("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
                 "torch method", "X with A X = self from A's LU factors."),
    op<linalg_cholesky_ex>("linalg_cholesky_ex(Tensor self, *, bool upper=False, "
                           "bool check_errors=False) -> (Tensor L, Tensor info)",
                           "linalg", "The Cholesky factor, and whether it failed."),
    op<linalg_cholesky>("linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor", "linalg",
                        "L with L L^H = A."),
    op<linalg_cholesky>("cholesky(Tensor self, bool upper=False) -> Tensor", "torch method",
                        "L with L L^H = A."),
    op<cholesky_solve>("cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
                       "torch method", "X with A X = self from A's Cholesky factor."),
    op<cholesky_inverse>("cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
                         "torch method", "The inverse of A from its Cholesky factor."),
    op<linalg_qr>("linalg_qr(Tensor A, QrMode{reduced|complete|r} mode=reduced) -> (Tensor Q, "
                  "Tensor R)",
                  "linalg", "Q with orthonormal columns and triangular R, Q R = A."),
    op<qr>("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", "torch method",
           "linalg.qr(), reduced or complete."),
    op<geqrf>("geqrf(Tensor self) -> (Tensor a, Tensor tau)", "torch method",
              "QR as Householder reflectors."),
    op<householder_product>("linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
                            "linalg", "The first columns of a product of reflectors."),
    op<householder_product>("orgqr(Tensor self, Tensor input2) -> Tensor", "torch method",
                            "linalg.householder_product()."),
    op<ormqr>("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, "
              "bool transpose=False) -> Tensor",
              "torch method", "A product of reflectors times a matrix."),
};
OP_TABLE_END(linalg_factor);

}  // namespace ops
}  // namespace cresset
