// What rests on singular values: pseudo-inverses, least squares, ranks, norms, low-rank factors.
#include <algorithm>
#include <limits>

#include "core/dispatch/op.h"
#include "core/ops/linalg.h"
#include "core/ops/matmul.h"
#include "core/ops/random.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/spectral.h"

namespace cresset {

enum class LstsqDriver : uint8_t { None, Gels, Gelsy, Gelsd, Gelss };
template <> struct EnumNames<LstsqDriver> {
  static constexpr const char* schema = "LstsqDriver{None|gels|gelsy|gelsd|gelss}";
};

namespace ops {
namespace {

using Tolerance = std::optional<Operand>;

double epsilon_of(const Tensor& x) {
  return to_real(x.dtype()) == DType::Float32 ? std::numeric_limits<float>::epsilon()
                                              : std::numeric_limits<double>::epsilon();
}

// A number, or one per matrix as a column beside its singular values.
Operand per_matrix(const Operand& x) {
  if (!x.is_tensor()) return x;
  return unsqueeze(x.tensor(), -1);
}

// The smallest singular value that counts, [..., 1]: the larger of atol and rtol times the largest
// one; rtol is the rounding error of the size where neither is given.
Tensor threshold(const Tensor& x, const Tensor& s, const Tolerance& atol, const Tolerance& rtol) {
  if (s.size(-1) == 0) {
    Dims sizes = s.sizes();
    sizes.back() = 1;
    return zeros(sizes, options_of(s));
  }
  const double usual = epsilon_of(x) * static_cast<double>(std::max(x.size(-2), x.size(-1)));
  Tensor largest = amax(s, Dims{-1}, true);
  Operand relative = rtol ? per_matrix(*rtol) : Operand(Scalar(usual));
  if (!rtol && atol) {
    Operand absolute = per_matrix(*atol);
    if (absolute.is_tensor())
      relative = where(row(Row::gt, {absolute, 0.0}), 0.0, usual);
    else if (absolute.scalar().to_double() > 0)
      relative = Operand(Scalar(0.0));
  }
  Tensor limit = mul(largest, relative);
  if (!atol) return limit;
  Operand absolute = per_matrix(*atol);
  Tensor other =
      absolute.is_tensor() ? absolute.tensor() : full(Dims{}, absolute.scalar(), options_of(s));
  return row(Row::maximum, {limit, other});
}

// ---- pseudo-inverse

// Golub and Pereyra, "The differentiation of pseudo-inverses" (1973).
Tensor pinv_gradient(const Tensor& g, const Tensor& a, const Tensor& pinv) {
  Tensor gh = adjoint(g), ph = adjoint(pinv);
  if (a.size(-2) <= a.size(-1)) {
    Tensor k = matmul(gh, pinv), kp = matmul(k, ph);
    Tensor y = sub(kp, adjoint(matmul(pinv, k)));
    y = sub(y, matmul(matmul(a, pinv), kp));
    return add(y, matmul(matmul(ph, pinv), sub(gh, matmul(k, a))));
  }
  Tensor k = matmul(pinv, gh), pk = matmul(ph, k);
  Tensor y = sub(matmul(matmul(sub(gh, matmul(a, k)), pinv), ph), adjoint(matmul(k, pinv)));
  return sub(add(y, pk), matmul(matmul(pk, pinv), a));
}

Tensor pinv_values(const Tensor& x, const Tolerance& atol, const Tolerance& rtol, bool hermitian) {
  GradMode off(false);
  if (hermitian) {
    auto [values, v] = linalg_eigh(x, false);
    Tensor s = row(Row::abs, {values});
    Tensor counts = row(Row::gt, {s, threshold(x, s, atol, rtol)});
    Tensor inverse = where(counts, row(Row::reciprocal, {values}), 0.0);
    return matmul(mul(v, unsqueeze(inverse, -2)), adjoint(v));
  }
  auto [u, s, vh] = linalg_svd(x, false);
  Tensor counts = row(Row::gt, {s, threshold(x, s, atol, rtol)});
  Tensor inverse = where(counts, row(Row::reciprocal, {s}), 0.0);
  return matmul(mul(adjoint(vh), unsqueeze(inverse, -2)), adjoint(u));
}

Tensor pinv_any(const char* op, const Tensor& x, const Tolerance& atol, const Tolerance& rtol,
                bool hermitian) {
  CHECK(x.dim() >= 2, Shape, op, ": expected matrices, got shape ", x.sizes());
  check_linalg_dtype(op, x);
  if (hermitian) check_square(op, x);
  Tensor y = pinv_values(x, atol, rtol, hermitian);
  if (wants_grad(x))
    record("LinalgPinvBackward0", y, inputs(x), [x = save(x), y = save_output(y)](Backward& b) {
      b[0] = pinv_gradient(b.grad(), b(x), b(y));
    });
  return y;
}

Tensor linalg_pinv(const Tensor& x, const Tolerance& rcond, bool hermitian, const Tolerance& atol,
                   const Tolerance& rtol) {
  CHECK(!rcond || !rtol, Value, "linalg.pinv: expected either rcond or rtol");
  return pinv_any("linalg.pinv", x, atol, rcond ? rcond : rtol, hermitian);
}
Tensor pinverse(const Tensor& x, double rcond) {
  return pinv_any("pinverse", x, std::nullopt, Operand(Scalar(rcond)), false);
}

// ---- rank

Tensor linalg_matrix_rank(const Tensor& x, const Tolerance& tol, bool hermitian,
                          const Tolerance& atol, const Tolerance& rtol) {
  const char* op = "linalg.matrix_rank";
  CHECK(x.dim() >= 2, Shape, op, ": expected matrices, got shape ", x.sizes());
  CHECK(!tol || (!atol && !rtol), Value, op, ": expected either tol or atol and rtol");
  GradMode off(false);
  Tensor s = hermitian ? row(Row::abs, {std::get<0>(linalg_eigh(x, false))}) : linalg_svdvals(x);
  const Tolerance none(Operand(Scalar(0.0)));
  Tensor limit = threshold(x, s, tol ? tol : atol, tol ? none : rtol);
  return sum(row(Row::gt, {s, limit}), Dims{-1}, false, DType::Int64);
}

// ---- least squares

using Solution = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Solution linalg_lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond,
                      LstsqDriver driver) {
  const char* op = "linalg.lstsq";
  CHECK(a.dim() >= 2, Shape, op, ": expected matrices, got shape ", a.sizes());
  check_linalg_dtype(op, a);
  CHECK(a.dtype() == b.dtype(), DType, op, ": expected A and B of one dtype, got ", a.dtype(),
        " and ", b.dtype());
  Dims rows(std::span<const int64_t>(a.sizes().data(), a.sizes().size() - 1));
  const bool vector = b.dim() == 1 || (b.dim() == a.dim() - 1 && b.sizes() == rows);
  Tensor right = vector ? unsqueeze(b, -1) : b;
  const int64_t m = a.size(-2), n = a.size(-1);
  CHECK(right.dim() >= 2 && right.size(-2) == m, Shape, op, ": A of shape ", a.sizes(),
        " and B of shape ", b.sizes(), " do not fit");
  if (driver == LstsqDriver::None) driver = LstsqDriver::Gelsy;
  const bool full_rank = driver == LstsqDriver::Gels;
  Tolerance rtol;
  if (rcond && !full_rank) rtol = Operand(Scalar(*rcond));
  Tensor x = matmul(pinv_any(op, a, std::nullopt, rtol, false), right);
  Tensor rank = empty(Dims{0}, Options{DType::Int64, a.device()});
  Tensor values = empty(Dims{0}, Options{to_real(a.dtype()), a.device()});
  // Nothing, but part of the graph, as the solution is.
  Tensor residuals = row(Row::abs, {narrow(flatten(x), 0, 0, 0)});
  if (!full_rank) {
    GradMode off(false);
    Tensor s = linalg_svdvals(a);
    rank =
        sum(row(Row::gt, {s, threshold(a, s, std::nullopt, rtol)}), Dims{-1}, false, DType::Int64);
    if (driver != LstsqDriver::Gelsy) values = s;
  }
  bool determined = m > n && driver != LstsqDriver::Gelsy && !a.is_meta();
  const Tensor ranks = determined ? on_host(rank) : rank;
  for (int64_t i = 0; determined && i < ranks.numel(); ++i)
    determined = ranks.data<int64_t>()[i] == n;
  if (determined) {
    Tensor off_by = row(Row::abs, {sub(matmul(a, x), right)});
    residuals = sum(mul(off_by, off_by), Dims{-2}, false, std::nullopt);
  }
  return {vector ? squeeze(x, Dims{-1}) : x, residuals, rank, values};
}

// ---- condition numbers

Tensor linalg_cond(const Tensor& x, NormKind kind, double p) {
  const char* op = "linalg.cond";
  CHECK(x.dim() >= 2, Shape, op, ": expected matrices, got shape ", x.sizes());
  check_linalg_dtype(op, x);
  Dims last{-2, -1};
  if (x.numel() == 0) return zeros(batch_of(x), Options{to_real(x.dtype()), x.device()});
  if (kind == NormKind::None || (kind == NormKind::Number && std::abs(p) == 2)) {
    Tensor s = linalg_svdvals(x);
    Tensor largest = select(s, -1, 0), smallest = select(s, -1, -1);
    return p < 0 ? div(smallest, largest) : div(largest, smallest);
  }
  check_square(op, x);
  auto [inverse, info] = linalg_inv_ex(x, false);
  Tensor product = mul(matrix_norm(x, kind, p, last, false, std::nullopt),
                       matrix_norm(inverse, kind, p, last, false, std::nullopt));
  return where(eq(info, 0.0), product, std::numeric_limits<double>::infinity());
}

// ---- low-rank factors

using Triple = std::tuple<Tensor, Tensor, Tensor>;

// Halko, Martinsson and Tropp, "Finding structure with randomness" (2009), 4.4.
Tensor approximate_basis(const Tensor& a, int64_t q, int64_t niter) {
  Tensor r = standard_normal(Dims{a.size(-1), q}, options_of(a));
  Tensor basis = orthonormal_columns(matmul(a, r));
  for (int64_t i = 0; i < niter; ++i)
    basis = orthonormal_columns(matmul(a, orthonormal_columns(matmul(adjoint(a), basis))));
  return basis;
}

// The basis converges in a few steps; a count beyond this is a mistake, and would seem to hang.
void check_niter(const char* op, int64_t niter) {
  constexpr int64_t most = 10'000;
  CHECK(niter >= 0 && niter <= most, Value, op, ": expected niter in [0, ", most, "], got ", niter);
}

Triple svd_lowrank(const Tensor& input, int64_t q, int64_t niter, const std::optional<Tensor>& m) {
  check_niter("svd_lowrank", niter);
  CHECK(input.dim() >= 2, Shape, "svd_lowrank: expected matrices, got shape ", input.sizes());
  Tensor a = m ? sub(input, *m) : input;
  const bool wide = a.size(-2) < a.size(-1);
  if (wide) a = adjoint(a);
  CHECK(q >= 0 && q <= a.size(-1), Value, "svd_lowrank: expected q in [0, ", a.size(-1), "], got ",
        q);
  Tensor basis = approximate_basis(a, q, niter);
  auto [u, s, vh] = linalg_svd(matmul(adjoint(basis), a), false);
  Tensor left = matmul(basis, u), right = adjoint(vh);
  if (wide) return {right, s, left};
  return {left, s, right};
}

Triple pca_lowrank(const Tensor& a, std::optional<int64_t> q, bool center, int64_t niter) {
  check_niter("pca_lowrank", niter);
  CHECK(a.dim() >= 2, Shape, "pca_lowrank: expected matrices, got shape ", a.sizes());
  const int64_t count = q.value_or(std::min<int64_t>({6, a.size(-2), a.size(-1)}));
  if (!center) return svd_lowrank(a, count, niter, std::nullopt);
  return svd_lowrank(sub(a, mean(a, Dims{-2}, true, std::nullopt)), count, niter, std::nullopt);
}

}  // namespace

Tensor singular_norm(const Tensor& x, NormKind kind, double ord, bool keepdim) {
  Tensor s = linalg_svdvals(x);
  Tensor y = kind == NormKind::Nuclear ? sum(s, Dims{-1}, keepdim, std::nullopt)
             : ord > 0                 ? amax(s, Dims{-1}, keepdim)
                                       : amin(s, Dims{-1}, keepdim);
  return keepdim ? unsqueeze(y, -1) : y;
}

OP_TABLE(linalg_rank) = {
    op<linalg_pinv>("linalg_pinv(Tensor self, Tensor|Scalar? rcond=None, bool hermitian=False, *, "
                    "Tensor|Scalar? atol=None, Tensor|Scalar? rtol=None) -> Tensor",
                    "linalg", "Pseudo-inverses; smaller singular values count as 0."),
    op<pinverse>("pinverse(Tensor self, float rcond=1e-15) -> Tensor", "torch method",
                 "Pseudo-inverses."),
    op<linalg_matrix_rank>("linalg_matrix_rank(Tensor self, Tensor|Scalar? tol=None, "
                           "bool hermitian=False, *, Tensor|Scalar? atol=None, "
                           "Tensor|Scalar? rtol=None) -> Tensor",
                           "linalg", "How many singular values are above a tolerance."),
    op<linalg_lstsq>("linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, "
                     "LstsqDriver{None|gels|gelsy|gelsd|gelss} driver=None) -> (Tensor solution, "
                     "Tensor residuals, Tensor rank, Tensor singular_values)",
                     "linalg", "X of least |A X - B|, the shortest where there are several."),
    op<linalg_cond>("_linalg_cond(Tensor self, NormKind{number|fro|nuc|none} kind, float p) -> "
                    "Tensor",
                    "private", "Condition numbers."),
    op<svd_lowrank>("svd_lowrank(Tensor A, int q=6, int niter=2, Tensor? M=None) -> (Tensor U, "
                    "Tensor S, Tensor V)",
                    "torch", "The largest q singular values and vectors, by random projections."),
    op<pca_lowrank>("pca_lowrank(Tensor A, int? q=None, bool center=True, int niter=2) -> "
                    "(Tensor U, Tensor S, Tensor V)",
                    "torch", "svd_lowrank of the deviations from the mean row."),
};
OP_TABLE_END(linalg_rank);

}  // namespace ops
}  // namespace cresset
