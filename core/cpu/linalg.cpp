// CPU kernels of small dense linear algebra: LU, Cholesky, QR, triangular systems.
#include "core/ops/linalg.h"

#include <cmath>
#include <numeric>

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

template <class F> void visit_linalg(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32: return f.template operator()<float>();
    case DType::Float64: return f.template operator()<double>();
    case DType::Complex64: return f.template operator()<std::complex<float>>();
    default: return f.template operator()<std::complex<double>>();
  }
}

template <class T> T conjugate(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x;
  else
    return std::conj(x);
}
template <class T> auto real_part(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x;
  else
    return x.real();
}

/// Calls f(i) for every matrix of the batch; `work` is roughly the operations of one.
template <class F> void for_each_matrix(int64_t batch, int64_t work, F&& f) {
  parallel_for(0, batch, std::max<int64_t>(1, 32768 / std::max<int64_t>(work, 1)),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t i = lo; i < hi; ++i) f(i);
               });
}

template <class T> int32_t lu_one(T* a, int64_t m, int64_t n, int32_t* pivots, bool exchange) {
  int32_t info = 0;
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    int64_t best = k;
    // LAPACK compares |re| + |im|.
    auto size = [&](int64_t i) {
      if constexpr (std::is_floating_point_v<T>)
        return std::abs(a[i * n + k]);
      else
        return std::abs(a[i * n + k].real()) + std::abs(a[i * n + k].imag());
    };
    for (int64_t i = k + 1; exchange && i < m; ++i)
      if (size(i) > size(best)) best = i;
    pivots[k] = static_cast<int32_t>(best + 1);
    if (best != k) std::swap_ranges(a + k * n, a + (k + 1) * n, a + best * n);
    if (a[k * n + k] == T(0)) {
      if (!info) info = static_cast<int32_t>(k + 1);
      continue;
    }
    for (int64_t i = k + 1; i < m; ++i) {
      const T factor = a[i * n + k] /= a[k * n + k];
      if (factor == T(0)) continue;
      for (int64_t j = k + 1; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
    }
  }
  return info;
}

template <class T> int32_t cholesky_one(T* a, int64_t n) {
  int32_t info = 0;
  for (int64_t j = 0; j < n; ++j) {
    auto d = real_part(a[j * n + j]);
    for (int64_t k = 0; k < j; ++k) d -= real_part(a[j * n + k] * conjugate(a[j * n + k]));
    if (!(d > 0) && !info) info = static_cast<int32_t>(j + 1);
    d = std::sqrt(d);
    a[j * n + j] = d;
    for (int64_t i = j + 1; i < n; ++i) {
      T s = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) s -= a[i * n + k] * conjugate(a[j * n + k]);
      a[i * n + j] = s / d;
    }
    std::fill(a + j * n + j + 1, a + (j + 1) * n, T(0));
  }
  return info;
}

template <class T> void solve_one(const T* a, T* b, int64_t n, int64_t k, bool upper, bool unit) {
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = upper ? n - 1 - step : step;
    T* row = b + i * k;
    for (int64_t j = upper ? i + 1 : 0; j < (upper ? n : i); ++j) {
      const T factor = a[i * n + j];
      for (int64_t c = 0; c < k; ++c) row[c] -= factor * b[j * k + c];
    }
    if (!unit)
      for (int64_t c = 0; c < k; ++c) row[c] /= a[i * n + i];
  }
}

/// Applies I - tau v v^H to columns [from, n) of rows [k, m); v = (1, a[k+1.., k]).
template <class T>
void apply_reflector(const T* a, int64_t lda, int64_t k, int64_t m, T tau, T* c, int64_t ldc,
                     int64_t from, int64_t to) {
  for (int64_t j = from; j < to; ++j) {
    T s = c[k * ldc + j];
    for (int64_t i = k + 1; i < m; ++i) s += conjugate(a[i * lda + k]) * c[i * ldc + j];
    s *= tau;
    c[k * ldc + j] -= s;
    for (int64_t i = k + 1; i < m; ++i) c[i * ldc + j] -= a[i * lda + k] * s;
  }
}

/// LAPACK's convention: H_k^H ... H_1^H A = R with H = I - tau v v^H.
template <class T> void qr_one(T* a, int64_t m, int64_t n, T* tau) {
  using R = decltype(real_part(T()));
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    const T alpha = a[k * n + k];
    R below = 0;
    for (int64_t i = k + 1; i < m; ++i) below = std::hypot(below, std::abs(a[i * n + k]));
    tau[k] = T(0);
    if (below == 0 && alpha == T(real_part(alpha))) continue;
    const R norm = std::hypot(std::abs(alpha), below);
    const R beta = real_part(alpha) >= 0 ? -norm : norm;
    tau[k] = (T(beta) - alpha) / beta;
    for (int64_t i = k + 1; i < m; ++i) a[i * n + k] /= alpha - T(beta);
    a[k * n + k] = beta;
    apply_reflector(a, n, k, m, conjugate(tau[k]), a, n, k + 1, n);
  }
}

void lu(const Tensor& a, const Tensor& pivots, const Tensor& info, bool exchange) {
  const int64_t m = a.size(1), n = a.size(2), k = std::min(m, n);
  visit_linalg(a.dtype(), [&]<class T>() {
    for_each_matrix(a.size(0), m * n * k, [&](int64_t i) {
      info.data<int32_t>()[i] =
          lu_one(a.data<T>() + i * m * n, m, n, pivots.data<int32_t>() + i * k, exchange);
    });
  });
}

void cholesky(const Tensor& a, const Tensor& info) {
  const int64_t n = a.size(1);
  visit_linalg(a.dtype(), [&]<class T>() {
    for_each_matrix(a.size(0), n * n * n, [&](int64_t i) {
      info.data<int32_t>()[i] = cholesky_one(a.data<T>() + i * n * n, n);
    });
  });
}

void solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool unit) {
  const int64_t n = b.size(1), k = b.size(2);
  visit_linalg(a.dtype(), [&]<class T>() {
    for_each_matrix(b.size(0), n * n * k, [&](int64_t i) {
      solve_one<T>(a.data<T>() + i * n * n, b.data<T>() + i * n * k, n, k, upper, unit);
    });
  });
}

void row_order(const Tensor& pivots, const Tensor& order) {
  const int64_t m = order.size(1), k = pivots.size(1);
  for (int64_t i = 0; i < order.size(0); ++i) {
    int64_t* rows = order.data<int64_t>() + i * m;
    std::iota(rows, rows + m, int64_t{0});
    for (int64_t j = 0; j < k; ++j) {
      const int64_t other = pivots.data<int32_t>()[i * k + j] - 1;
      if (j < m && other >= 0 && other < m) std::swap(rows[j], rows[other]);
    }
  }
}

void qr(const Tensor& a, const Tensor& tau) {
  const int64_t m = a.size(1), n = a.size(2), k = std::min(m, n);
  visit_linalg(a.dtype(), [&]<class T>() {
    for_each_matrix(a.size(0), m * n * k, [&](int64_t i) {
      qr_one(a.data<T>() + i * m * n, m, n, tau.data<T>() + i * k);
    });
  });
}

void reflect(const Tensor& a, const Tensor& tau, const Tensor& q) {
  const int64_t m = a.size(1), n = a.size(2), count = tau.size(1), k = q.size(2);
  visit_linalg(a.dtype(), [&]<class T>() {
    for_each_matrix(a.size(0), m * k * count, [&](int64_t i) {
      T* out = q.data<T>() + i * m * k;
      std::fill_n(out, m * k, T(0));
      for (int64_t j = 0; j < std::min(m, k); ++j) out[j * k + j] = T(1);
      for (int64_t j = count - 1; j >= 0; --j)
        apply_reflector(a.data<T>() + i * m * n, n, j, m, tau.data<T>()[i * count + j], out, k,
                        int64_t{0}, k);
    });
  });
}

void determinant(const Tensor& lu, const Tensor& pivots, const Tensor& det, const Tensor& sign,
                 const Tensor& log_abs) {
  const int64_t n = lu.size(1);
  visit_linalg(lu.dtype(), [&]<class T>() {
    using R = decltype(real_part(T()));
    for (int64_t i = 0; i < lu.size(0); ++i) {
      T product(1), unit(1);
      R log_sum = 0;
      for (int64_t k = 0; k < n; ++k) {
        const T d = lu.data<T>()[(i * n + k) * n + k];
        const T turn = pivots.data<int32_t>()[i * n + k] == k + 1 ? T(1) : T(-1);
        const R size = std::abs(d);
        product *= d * turn;
        unit *= size == 0 ? T(0) : d / size * turn;
        log_sum += std::log(size);
      }
      det.data<T>()[i] = product;
      sign.data<T>()[i] = unit;
      log_abs.data<R>()[i] = log_sum;
    }
  });
}

}  // namespace

template <> const LinalgKernels& cpu_kernels<LinalgKernels>() {
  static constexpr LinalgKernels table = {.lu = lu,
                                          .cholesky = cholesky,
                                          .solve_triangular = solve_triangular,
                                          .row_order = row_order,
                                          .qr = qr,
                                          .reflect = reflect,
                                          .determinant = determinant};
  return table;
}

}  // namespace cresset
