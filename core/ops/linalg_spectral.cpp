// Eigenvalues, eigenvectors and singular values, with their derivatives.
#include "core/dispatch/op.h"
#include "core/ops/linalg.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/spectral.h"

namespace cresset {

enum class Triangle : uint8_t { Lower, Upper };
template <> struct EnumNames<Triangle> { static constexpr const char* schema = "Triangle{L|U}"; };

/// LAPACK's algorithms by name, accepted for PyTorch's sake: there is one here.
enum class SvdDriver : uint8_t { None, Gesvd, Gesvdj, Gesvda };
template <> struct EnumNames<SvdDriver> {
  static constexpr const char* schema = "SvdDriver{None|gesvd|gesvdj|gesvda}";
};

namespace ops {
namespace {

// The batch dims as one, sharing memory; `dims` of each element stay.
Tensor flat(const Tensor& x, int64_t dims) {
  Dims sizes{1};
  const int64_t batch = x.dim() - dims;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d < batch)
      sizes[0] *= x.size(d);
    else
      sizes.push_back(x.size(d));
  return alias(x, sizes, contiguous_strides(sizes), x.offset());
}

DType double_of(DType dtype) { return is_complex(dtype) ? DType::Complex128 : DType::Float64; }

// The matrices as the kernels take them: contiguous, in double precision, finite.
Tensor prepared(const char* op, const Tensor& x, DType dtype) {
  if (!x.is_meta() && x.numel() > 0) {
    Tensor finite = on_host(all(row(Row::isfinite, {x}), std::nullopt, false));
    CHECK(*finite.data<bool>(), Value, op, ": expected finite numbers, got infinities or NaN");
  }
  return contiguous(to_dtype(x, dtype));
}

void check_matrices_of(const char* op, const Tensor& x) {
  CHECK(x.dim() >= 2, Shape, op, ": expected matrices, got shape ", x.sizes());
  check_linalg_dtype(op, x);
}

// X scaled by numbers per column, or per row.
Tensor scale_columns(const Tensor& x, const Tensor& s) { return mul(x, unsqueeze(s, -2)); }
Tensor scale_rows(const Tensor& x, const Tensor& s) { return mul(x, unsqueeze(s, -1)); }

// v_j - v_i at [i, j], 1 on the diagonal.
Tensor gaps(const Tensor& v) {
  Tensor d = sub(unsqueeze(v, -2), unsqueeze(v, -1));
  return add(d, identity_like(d));
}
Tensor without_diagonal(const Tensor& x) { return sub(x, diag_embed(diagonal(x, 0, -2, -1))); }

// ---- Hermitian matrices

using Pair = std::tuple<Tensor, Tensor>;

Pair eigh_values(const char* op, const Tensor& x, bool upper) {
  check_matrices_of(op, x);
  check_square(op, x);
  GradMode off(false);
  const DType wide = double_of(x.dtype());
  const int64_t n = x.size(-1);
  Tensor values = empty(with(batch_of(x), {n}), Options{DType::Float64, x.device()});
  Tensor vectors = empty(x.sizes(), Options{wide, x.device()});
  Tensor a = prepared(op, x, wide);
  if (x.numel() > 0)
    launch(op, x.device(), &SpectralKernels::eigh, flat(a, 2), upper, flat(values, 1),
           flat(vectors, 2));
  return {to_dtype(values, to_real(x.dtype())), to_dtype(vectors, x.dtype())};
}

// Giles, "An extended collection of matrix derivative results" (2008), 3.1.
Tensor eigh_gradient(Backward& b, const Tensor& values, const Tensor& v) {
  Tensor inner = b.has_grad(0) ? diag_embed(b.grad(0)) : Tensor();
  if (b.has_grad(1)) {
    Tensor turned = without_diagonal(div(matmul(adjoint(v), b.grad(1)), gaps(values)));
    inner = inner.defined() ? add(turned, inner) : turned;
  }
  return matmul(v, matmul(to_dtype(inner, v.dtype()), adjoint(v)));
}

Pair eigh_any(const char* op, const Tensor& x, bool upper) {
  auto [values, vectors] = eigh_values(op, x, upper);
  if (wants_grad(x)) {
    Tensor ys[] = {values, vectors};
    record("LinalgEighBackward0", std::span<const Tensor>(ys), inputs(x),
           [values = save_output(values, 0), v = save_output(vectors, 1)](Backward& b) {
             b[0] = eigh_gradient(b, b(values), b(v));
           });
  }
  return {values, vectors};
}

Pair linalg_eigh_named(const Tensor& x, Triangle uplo) {
  return eigh_any("linalg.eigh", x, uplo == Triangle::Upper);
}
Tensor linalg_eigvalsh(const Tensor& x, Triangle uplo) {
  return std::get<0>(eigh_any("linalg.eigvalsh", x, uplo == Triangle::Upper));
}

// ---- general matrices

Pair eig_any(const char* op, const Tensor& x) {
  check_matrices_of(op, x);
  check_square(op, x);
  const DType result = to_complex(to_real(x.dtype()));
  Tensor values, vectors;
  {
    GradMode off(false);
    Options wide{DType::Complex128, x.device()};
    values = empty(with(batch_of(x), {x.size(-1)}), wide);
    vectors = empty(x.sizes(), wide);
    Tensor info = zeros(batch_of(x), Options{DType::Int32, x.device()});
    Tensor a = prepared(op, x, DType::Complex128);
    if (x.numel() > 0)
      launch(op, x.device(), &SpectralKernels::eig, flat(a, 2), flat(values, 1), flat(vectors, 2),
             flat(info, 0));
    if (!x.is_meta()) check_info(op, info, "has eigenvalues that do not converge");
    values = to_dtype(values, result);
    vectors = to_dtype(vectors, result);
  }
  if (!wants_grad(x)) return {values, vectors};
  Tensor ys[] = {values, vectors};
  // As for Hermitian matrices, with V^-H for V, along unit vectors.
  record("LinalgEigBackward0", std::span<const Tensor>(ys), inputs(x),
         [values = save_output(values, 0), vectors = save_output(vectors, 1)](Backward& b) {
           Tensor v = b(vectors), vh = adjoint(v);
           Tensor inner = b.has_grad(0) ? diag_embed(b.grad(0)) : Tensor();
           if (b.has_grad(1)) {
             Tensor turned = matmul(vh, b.grad(1));
             Tensor along = real(diagonal(turned, 0, -2, -1));
             turned = sub(turned, matmul(vh, scale_columns(v, along)));
             turned = without_diagonal(div(turned, conj(gaps(b(values)))));
             inner = inner.defined() ? add(turned, inner) : turned;
           }
           b[0] = matmul(linalg_inv(vh), matmul(inner, vh));
         });
  return {values, vectors};
}

Pair linalg_eig(const Tensor& x) { return eig_any("linalg.eig", x); }
Tensor linalg_eigvals(const Tensor& x) { return std::get<0>(eig_any("linalg.eigvals", x)); }

// ---- singular values

using Triple = std::tuple<Tensor, Tensor, Tensor>;

Triple svd_values(const char* op, const Tensor& x, bool full) {
  check_matrices_of(op, x);
  GradMode off(false);
  const DType wide = double_of(x.dtype());
  const int64_t m = x.size(-2), n = x.size(-1), k = std::min(m, n);
  Options options{wide, x.device()};
  Tensor u = empty(with(batch_of(x), {m, full ? m : k}), options);
  Tensor s = empty(with(batch_of(x), {k}), Options{DType::Float64, x.device()});
  Tensor vh = empty(with(batch_of(x), {full ? n : k, n}), options);
  Tensor a = prepared(op, x, wide);
  if (u.numel() + vh.numel() > 0)
    launch(op, x.device(), &SpectralKernels::svd, flat(a, 2), flat(u, 2), flat(s, 1), flat(vh, 2));
  return {to_dtype(u, x.dtype()), to_dtype(s, to_real(x.dtype())), to_dtype(vh, x.dtype())};
}

Tensor skew(const Tensor& x) { return sub(x, adjoint(x)); }

// Giles (2008), 3.2; for complex numbers Wan and Zhang, "Automatic differentiation for complex
// valued SVD" (2019).
Tensor svd_gradient(const Tensor& gu, const Tensor& gs, const Tensor& gvh, const Tensor& u,
                    const Tensor& s, const Tensor& vh) {
  const int64_t m = u.size(-2), n = vh.size(-1), k = s.size(-1);
  if (!gu.defined() && !gvh.defined()) return matmul(scale_columns(u, to_dtype(gs, u.dtype())), vh);
  Tensor squares = mul(s, s), e = gaps(squares), inner;
  if (gu.defined()) {
    Tensor turned = skew(matmul(adjoint(u), gu));
    inner = scale_columns(div(turned, e), s);
    if (u.is_complex())
      inner =
          add(without_diagonal(inner), diag_embed(div(diagonal(turned, 0, -2, -1), mul(s, 2.0))));
    else
      inner = without_diagonal(inner);
  }
  if (gvh.defined()) {
    Tensor turned = without_diagonal(scale_rows(div(skew(matmul(vh, adjoint(gvh))), e), s));
    inner = inner.defined() ? add(inner, turned) : turned;
  }
  if (gs.defined()) inner = add(inner, diag_embed(gs));
  inner = to_dtype(inner, u.dtype());
  Tensor g = matmul(matmul(u, inner), vh);
  if (gu.defined() && m > k) {
    Tensor by_s = scale_columns(gu, div(1.0, s));
    g = add(g, matmul(sub(by_s, matmul(u, matmul(adjoint(u), by_s))), vh));
  }
  if (gvh.defined() && n > k) {
    Tensor by_s = scale_rows(gvh, div(1.0, s));
    g = add(g, matmul(u, sub(by_s, matmul(matmul(by_s, adjoint(vh)), vh))));
  }
  return g;
}

Triple svd_any(const char* op, const Tensor& x, bool full) {
  auto [u, s, vh] = svd_values(op, x, full);
  if (wants_grad(x)) {
    Tensor ys[] = {u, s, vh};
    record("LinalgSvdBackward0", std::span<const Tensor>(ys), inputs(x),
           [u = save_output(u, 0), s = save_output(s, 1), vh = save_output(vh, 2)](Backward& b) {
             // Vectors beyond the singular values are free: nothing flows through them.
             const int64_t k = b(s).size(-1);
             auto first = [&](size_t i, int64_t dim) {
               return b.has_grad(i) ? narrow(b.grad(i), dim, 0, k) : Tensor();
             };
             b[0] = svd_gradient(first(0, -1), b.has_grad(1) ? b.grad(1) : Tensor(), first(2, -2),
                                 narrow(b(u), -1, 0, k), b(s), narrow(b(vh), -2, 0, k));
           });
  }
  return {u, s, vh};
}

Triple linalg_svd_named(const Tensor& x, bool full_matrices, SvdDriver) {
  return svd_any("linalg.svd", x, full_matrices);
}
Tensor linalg_svdvals_named(const Tensor& x, SvdDriver) { return linalg_svdvals(x); }

// torch.svd gives V, not V^H.
Triple svd(const Tensor& x, bool some, bool compute_uv) {
  auto [u, s, vh] = svd_any("svd", x, !some);
  if (compute_uv) return {u, s, adjoint(vh)};
  Dims batch = batch_of(x);
  return {zeros(with(batch, {x.size(-2), x.size(-2)}), options_of(x)), s,
          zeros(with(batch, {x.size(-1), x.size(-1)}), options_of(x))};
}

}  // namespace

Triple linalg_svd(const Tensor& x, bool full_matrices) {
  return svd_any("linalg.svd", x, full_matrices);
}
Tensor linalg_svdvals(const Tensor& x) { return std::get<1>(svd_any("linalg.svdvals", x, false)); }
Pair linalg_eigh(const Tensor& x, bool upper) { return eigh_any("linalg.eigh", x, upper); }

OP_TABLE(linalg_spectral) = {
    op<linalg_eigh_named>("linalg_eigh(Tensor self, Triangle{L|U} UPLO='L') -> "
                          "(Tensor eigenvalues, Tensor eigenvectors)",
                          "linalg",
                          "Eigenvalues, ascending, and eigenvectors of Hermitian matrices."),
    op<linalg_eigvalsh>("linalg_eigvalsh(Tensor self, Triangle{L|U} UPLO='L') -> Tensor", "linalg",
                        "Eigenvalues of Hermitian matrices, ascending."),
    op<linalg_eig>("linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)", "linalg",
                   "Complex eigenvalues and unit eigenvectors of square matrices."),
    op<linalg_eigvals>("linalg_eigvals(Tensor self) -> Tensor", "linalg",
                       "Complex eigenvalues of square matrices."),
    op<linalg_svd_named>("linalg_svd(Tensor A, bool full_matrices=True, *, "
                         "SvdDriver{None|gesvd|gesvdj|gesvda} driver=None) -> (Tensor U, Tensor S, "
                         "Tensor Vh)",
                         "linalg", "U, S and V^H with U diag(S) V^H = A, S descending."),
    op<linalg_svdvals_named>("linalg_svdvals(Tensor A, *, SvdDriver{None|gesvd|gesvdj|gesvda} "
                             "driver=None) -> Tensor",
                             "linalg", "Singular values, descending."),
    op<svd>("svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, "
            "Tensor V)",
            "torch method", "U, S and V with U diag(S) V^H = self, S descending."),
};
OP_TABLE_END(linalg_spectral);

}  // namespace ops
}  // namespace cresset
