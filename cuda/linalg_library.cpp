// Large matrices of the linear algebra family, by cuSOLVER and cuBLAS, one after another.
#include <cuComplex.h>

#include "core/ops/ops.h"
#include "cuda/launch.h"
#include "cuda/libraries.h"
#include "cuda/linalg.h"

namespace cresset::cuda {
namespace {

// The libraries' functions for one element type, as members of one name.
template <class T> struct Library;
#define LIBRARY_OF(T, X, ORGQR)                                           \
  template <> struct Library<T> {                                         \
    static constexpr auto getrf_size = cusolverDn##X##getrf_bufferSize;   \
    static constexpr auto getrf = cusolverDn##X##getrf;                   \
    static constexpr auto potrf_size = cusolverDn##X##potrf_bufferSize;   \
    static constexpr auto potrf = cusolverDn##X##potrf;                   \
    static constexpr auto geqrf_size = cusolverDn##X##geqrf_bufferSize;   \
    static constexpr auto geqrf = cusolverDn##X##geqrf;                   \
    static constexpr auto orgqr_size = cusolverDn##X##ORGQR##_bufferSize; \
    static constexpr auto orgqr = cusolverDn##X##ORGQR;                   \
    static constexpr auto trsm = cublas##X##trsm;                         \
  };
LIBRARY_OF(float, S, orgqr)
LIBRARY_OF(double, D, orgqr)
LIBRARY_OF(cuComplex, C, ungqr)
LIBRARY_OF(cuDoubleComplex, Z, ungqr)
#undef LIBRARY_OF

template <class F> void visit_library(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32: return f.template operator()<float>();
    case DType::Float64: return f.template operator()<double>();
    case DType::Complex64: return f.template operator()<cuComplex>();
    default: return f.template operator()<cuDoubleComplex>();
  }
}

template <class T> T one();
template <> float one() { return 1; }
template <> double one() { return 1; }
template <> cuComplex one() { return make_cuComplex(1, 0); }
template <> cuDoubleComplex one() { return make_cuDoubleComplex(1, 0); }

int narrow_size(int64_t n) {
  CHECK(n <= INT32_MAX, NotImplemented, launching_op(), ": expected matrix sizes below 2^31, got ",
        n);
  return static_cast<int>(n);
}

/// A batch with each matrix by columns, and back.
Tensor by_columns(const Tensor& a) { return ops::contiguous(ops::transpose(a, 1, 2)); }
void from_columns(const Tensor& columns, const Tensor& a) {
  ops::copy_raw(ops::transpose(columns, 1, 2), a);
}

template <class T> Tensor workspace(int count, const Tensor& like) {
  const int64_t bytes = static_cast<int64_t>(sizeof(T)) * std::max(count, 1);
  return empty(Dims{bytes}, {DType::UInt8, like.device()});
}

Tensor int_on_device(const Tensor& like) { return empty(Dims{1}, {DType::Int32, like.device()}); }

}  // namespace

bool solve_by_library(int64_t batch, int64_t rows, int64_t cols) {
  const int64_t n = std::min(rows, cols);
  return n >= 512 || (n >= 128 && batch <= 16);
}

void library_lu(const Tensor& a, const Tensor& pivots, const Tensor& info) {
  const int m = narrow_size(a.size(1)), n = narrow_size(a.size(2));
  Tensor columns = by_columns(a);
  visit_library(a.dtype(), [&]<class T>() {
    T* p = data_of<T>(columns);
    int* at = data_of<int>(pivots);
    int size = 0;
    LIBRARY_CHECK("cuSOLVER", Library<T>::getrf_size(solver(), m, n, p, m, &size));
    Tensor work = workspace<T>(size, a);
    for (int64_t i = 0; i < a.size(0); ++i)
      LIBRARY_CHECK(
          "cuSOLVER",
          Library<T>::getrf(solver(), m, n, p + i * static_cast<int64_t>(m) * n, m,
                            data_of<T>(work), at + i * std::min(m, n), data_of<int>(info) + i));
  });
  from_columns(columns, a);
}

// A row-major Hermitian matrix is its own conjugate by columns: the upper factor there is, read by
// rows, the lower one wanted.
void library_cholesky(const Tensor& a, const Tensor& info) {
  const int n = narrow_size(a.size(1));
  visit_library(a.dtype(), [&]<class T>() {
    T* p = data_of<T>(a);
    int size = 0;
    LIBRARY_CHECK("cuSOLVER",
                  Library<T>::potrf_size(solver(), CUBLAS_FILL_MODE_UPPER, n, p, n, &size));
    Tensor work = workspace<T>(size, a);
    for (int64_t i = 0; i < a.size(0); ++i)
      LIBRARY_CHECK("cuSOLVER", Library<T>::potrf(solver(), CUBLAS_FILL_MODE_UPPER, n,
                                                  p + i * static_cast<int64_t>(n) * n, n,
                                                  data_of<T>(work), size, data_of<int>(info) + i));
  });
}

// By columns both matrices appear transposed: x^T a^T = b^T.
void library_solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool unit) {
  const int n = narrow_size(b.size(1)), k = narrow_size(b.size(2));
  visit_library(a.dtype(), [&]<class T>() {
    const T factor = one<T>();
    const int64_t a_step = static_cast<int64_t>(n) * n, b_step = static_cast<int64_t>(n) * k;
    for (int64_t i = 0; i < b.size(0); ++i)
      LIBRARY_CHECK(
          "cuBLAS",
          Library<T>::trsm(blas(), CUBLAS_SIDE_RIGHT,
                           upper ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N,
                           unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT, k, n, &factor,
                           data_of<T>(a) + i * a_step, n, data_of<T>(b) + i * b_step, k));
  });
}

void library_qr(const Tensor& a, const Tensor& tau) {
  const int m = narrow_size(a.size(1)), n = narrow_size(a.size(2));
  Tensor columns = by_columns(a), info = int_on_device(a);
  visit_library(a.dtype(), [&]<class T>() {
    T* p = data_of<T>(columns);
    int size = 0;
    LIBRARY_CHECK("cuSOLVER", Library<T>::geqrf_size(solver(), m, n, p, m, &size));
    Tensor work = workspace<T>(size, a);
    for (int64_t i = 0; i < a.size(0); ++i)
      LIBRARY_CHECK("cuSOLVER",
                    Library<T>::geqrf(solver(), m, n, p + i * static_cast<int64_t>(m) * n, m,
                                      data_of<T>(tau) + i * std::min(m, n), data_of<T>(work), size,
                                      data_of<int>(info)));
  });
  from_columns(columns, a);
}

void library_reflect(const Tensor& a, const Tensor& tau, const Tensor& q) {
  const int m = narrow_size(a.size(1)), k = narrow_size(q.size(2));
  const int count = narrow_size(tau.size(1));
  Tensor columns = empty(Dims{q.size(0), k, m}, options_of(q)), info = int_on_device(a);
  ops::copy_raw(ops::transpose(ops::narrow(a, 2, 0, count), 1, 2),
                ops::narrow(columns, 1, 0, count));
  visit_library(a.dtype(), [&]<class T>() {
    T* p = data_of<T>(columns);
    int size = 0;
    LIBRARY_CHECK("cuSOLVER",
                  Library<T>::orgqr_size(solver(), m, k, count, p, m, data_of<T>(tau), &size));
    Tensor work = workspace<T>(size, a);
    for (int64_t i = 0; i < q.size(0); ++i)
      LIBRARY_CHECK("cuSOLVER",
                    Library<T>::orgqr(solver(), m, k, count, p + i * static_cast<int64_t>(m) * k, m,
                                      data_of<T>(tau) + i * count, data_of<T>(work), size,
                                      data_of<int>(info)));
  });
  from_columns(columns, q);
}

}  // namespace cresset::cuda
