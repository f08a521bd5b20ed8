// Norms of vectors and matrices, and what is scaled by them.
#include "core/ops/norms.h"

#include <cmath>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/spectral.h"

namespace cresset::ops {
namespace {

// a / b, 0 where b is 0; both branches stay finite for higher derivatives.
Tensor safe_div(const Tensor& a, const Tensor& b) {
  Tensor zero = eq(b, 0);
  return where(zero, 0.0, div(a, where(zero, 1.0, b)));
}

Tensor power(const Tensor& x, double p) { return row(Row::pow, {x, p}); }

// |x|^p, 0 where x is 0.
Tensor safe_power(const Tensor& x, double p) {
  Tensor zero = eq(x, 0);
  Tensor away = where(zero, 1.0, row(Row::abs, {x}));
  return where(zero, 0.0, power(away, p));
}

// The gradient at a norm of exactly 0 is 0; ties of an infinity norm share it.
Tensor norm_backward(const Tensor& g, const Tensor& x, const Tensor& norm, double p,
                     const Dims& over, bool keepdim) {
  if (p == 0) return {};
  Tensor wide = expand_reduced(g, x.sizes(), over, keepdim);
  if (p == 1) return mul(row(Row::sgn, {x}), wide);
  Tensor n = expand_reduced(norm, x.sizes(), over, keepdim);
  if (p == 2) return mul(x, safe_div(wide, n));
  if (std::isinf(p)) {
    Tensor size = row(Row::abs, {x});
    Tensor mask = row(Row::logical_or, {eq(size, n), row(Row::isnan, {size})});
    Tensor count = sum(mask, over, true, std::nullopt);
    return mul(row(Row::sgn, {x}), mul(div(wide, count), mask));
  }
  if (p < 1) return mul(mul(row(Row::sgn, {x}), safe_power(x, p - 1)), mul(wide, power(n, 1 - p)));
  Tensor scale = mul(wide, safe_power(n, 1 - p));
  if (p < 2) return mul(mul(row(Row::sgn, {x}), safe_power(x, p - 1)), scale);
  return mul(mul(x, power(row(Row::abs, {x}), p - 2)), scale);
}

Tensor norm_of(const char* op, const Tensor& input, double p, const std::optional<Dims>& dims,
               bool keepdim, std::optional<DType> dtype) {
  CHECK(input.is_floating() || input.is_complex(), DType, op,
        ": expected a floating or complex dtype, got ", input.dtype());
  if (dtype)
    CHECK(is_complex(*dtype) == input.is_complex() && (is_floating(*dtype) || is_complex(*dtype)),
          DType, op, ": expected a ", input.is_complex() ? "complex" : "floating",
          " dtype for input of dtype ", input.dtype(), ", got ", *dtype);
  Tensor x = dtype ? to_dtype(input, *dtype) : input;
  Dims over = reduction_dims(op, x, dims);
  if (x.numel() == 0 && (p < 0 || std::isinf(p))) {
    CHECK(static_cast<int64_t>(over.size()) < x.dim(), Shape, op, ": the norm of order ", p,
          " of no elements is not defined, got shape ", x.sizes());
    for (int64_t d : over)
      CHECK(x.size(d) > 0, Shape, op, ": the norm of order ", p,
            " of no elements is not defined, got shape ", x.sizes());
  }
  Tensor y = reduce_raw(op, x, over, {ReduceOp::Norm, to_real(x.dtype()), keepdim, p});
  if (wants_grad(x))
    record("LinalgVectorNormBackward0", y, inputs(x),
           [x = save(x), y = save_output(y), p, over, keepdim](Backward& b) {
             b[0] = norm_backward(b.grad(), b(x), b(y), p, over, keepdim);
           });
  return y;
}

}  // namespace

Tensor matrix_norm(const Tensor& x, NormKind kind, double ord, const Dims& dim, bool keepdim,
                   std::optional<DType> dtype) {
  const char* op = "linalg.matrix_norm";
  CHECK(x.dim() >= 2, Shape, op, ": expected at least 2 dims, got shape ", x.sizes());
  CHECK(dim.size() == 2, Value, op, ": expected 2 dims to reduce, got ", dim);
  const int64_t rows = wrap_dim(op, dim[0], x.dim()), cols = wrap_dim(op, dim[1], x.dim());
  CHECK(rows != cols, Value, op, ": expected two different dims, got ", dim);
  if (kind == NormKind::Frobenius) return norm_of(op, x, 2, dim, keepdim, dtype);
  const double size = std::abs(ord);
  CHECK(kind == NormKind::Nuclear || size == 1 || size == 2 || std::isinf(size), Value, op,
        ": expected ord 1, -1, 2, -2, inf, -inf, \"fro\" or \"nuc\", got ", ord);
  if (kind == NormKind::Nuclear || size == 2) {
    Tensor last = movedim(dtype ? to_dtype(x, *dtype) : x, Dims{rows, cols}, Dims{-2, -1});
    Tensor y = singular_norm(last, kind, ord, keepdim);
    return keepdim ? movedim(y, Dims{-2, -1}, Dims{rows, cols}) : y;
  }
  const int64_t inner = size == 1 ? rows : cols, outer = size == 1 ? cols : rows;
  Tensor sums = norm_of(op, x, 1, Dims{inner}, true, dtype);
  Tensor y = ord > 0 ? amax(sums, Dims{outer}, true) : amin(sums, Dims{outer}, true);
  return keepdim ? y : squeeze(y, Dims{rows, cols});
}

namespace {

// torch.linalg.norm: of a matrix for two dims, else of a vector.
Tensor linalg_norm(const Tensor& x, NormKind kind, double ord, const std::optional<Dims>& dim,
                   bool keepdim, std::optional<DType> dtype) {
  const char* op = "linalg.norm";
  if (kind == NormKind::None) return norm_of(op, x, 2, dim, keepdim, dtype);
  if (dim)
    CHECK(dim->size() == 1 || dim->size() == 2, Value, op, ": expected 1 or 2 dims with ord, got ",
          *dim);
  else
    CHECK(x.dim() == 1 || x.dim() == 2, Shape, op,
          ": expected 1 or 2 dims for ord without dim, got shape ", x.sizes());
  const size_t count = dim ? dim->size() : static_cast<size_t>(x.dim());
  if (count == 2) return matrix_norm(x, kind, ord, dim.value_or(Dims{0, 1}), keepdim, dtype);
  CHECK(kind == NormKind::Number, Value, op, ": expected 2 dims for a matrix norm, got shape ",
        x.sizes());
  return norm_of(op, x, ord, dim, keepdim, dtype);
}

// torch.norm: the Frobenius norm is the 2-norm over any dims.
Tensor norm(const Tensor& x, NormKind kind, double p, const std::optional<Dims>& dim, bool keepdim,
            std::optional<DType> dtype) {
  if (kind == NormKind::Nuclear)
    return matrix_norm(x, kind, 0, dim.value_or(Dims{-2, -1}), keepdim, dtype);
  return norm_of("norm", x, kind == NormKind::Number ? p : 2, dim, keepdim, dtype);
}

Tensor dist(const Tensor& a, const Tensor& b, const Scalar& p) {
  return norm_of("dist", sub(a, b), p.to_double(), std::nullopt, false, std::nullopt);
}

Tensor renorm(const Tensor& x, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  CHECK(x.dim() > 1, Shape, "renorm: expected at least 2 dims, got shape ", x.sizes());
  CHECK(p.to_double() > 0, Value, "renorm: expected p > 0, got ", p);
  CHECK(maxnorm.to_double() >= 0, Value, "renorm: expected maxnorm >= 0, got ", maxnorm);
  const int64_t kept = wrap_dim("renorm", dim, x.dim());
  Dims over;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != kept) over.push_back(d);
  const double limit = maxnorm.to_double();
  Tensor size = norm_of("renorm", x, p.to_double(), over, true, std::nullopt);
  Tensor scale = div(limit, add(size, 1e-7));
  return mul(x, where(row(Row::gt, {size, limit}), scale, 1.0));
}

Tensor& renorm_(Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  return copy_(self, renorm(self, p, dim, maxnorm));
}

Tensor normalize(const Tensor& input, double p, const std::optional<Dims>& dim, double eps) {
  Tensor size = norm_of("normalize", input, p, dim, true, std::nullopt);
  return div(input, row(Row::maximum, {size, eps}));
}

}  // namespace

Tensor vector_norm(const Tensor& x, const Scalar& ord, const std::optional<Dims>& dims,
                   bool keepdim, std::optional<DType> dtype) {
  return norm_of("linalg.vector_norm", x, ord.to_double(), dims, keepdim, dtype);
}

OP_TABLE(norms) = {
    op<vector_norm>("linalg_vector_norm(Tensor self, Scalar ord=2, int[]? dim=None, "
                    "bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
                    "linalg", "Norm (sum of |x|^ord)^(1/ord) over dims."),
    op<matrix_norm>("_matrix_norm(Tensor self, NormKind{number|fro|nuc|none} kind, float ord, "
                    "int[2] dim, bool keepdim, ScalarType? dtype) -> Tensor",
                    "private", "Norm of matrices."),
    op<linalg_norm>("_linalg_norm(Tensor self, NormKind{number|fro|nuc|none} kind, float ord, "
                    "int[]? dim, bool keepdim, ScalarType? dtype) -> Tensor",
                    "private", "Norm of vectors or matrices."),
    op<norm>("_norm(Tensor self, NormKind{number|fro|nuc|none} kind, float p, int[]? dim, "
             "bool keepdim, ScalarType? dtype) -> Tensor",
             "private", "Norm over dims, or of everything."),
    op<dist>("dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", "torch method",
             "Norm of the difference."),
    op<renorm>("renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", "torch method",
               "Scales the slices along a dim down to a largest norm."),
    op<renorm_>("renorm_(Tensor(a!) self, Scalar p, int dim, Scalar maxnorm) -> Tensor(a!)",
                "method", "Scales the slices along a dim down to a largest norm, in place."),
    op<normalize>("normalize(Tensor input, float p=2.0, int[]? dim=1, float eps=1e-12) -> Tensor",
                  "nn", "x divided by its norm over dims, by eps where that is smaller."),
};
OP_TABLE_END(norms);

}  // namespace cresset::ops
