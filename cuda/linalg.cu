// CUDA kernels of dense linear algebra: one block factors one small matrix of a batch.
#include "core/ops/linalg.h"

#include "cuda/device.cuh"
#include "cuda/linalg.h"

namespace cresset::cuda {
namespace {

template <class F> void visit_linalg(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32: return f.template operator()<float>();
    case DType::Float64: return f.template operator()<double>();
    case DType::Complex64: return f.template operator()<Complex<float>>();
    default: return f.template operator()<Complex<double>>();
  }
}

template <class T> struct RealOf { using Type = T; };
template <class R> struct RealOf<Complex<R>> { using Type = R; };
template <class T> using Real = typename RealOf<T>::Type;

template <class T> __device__ T conjugate(T x) {
  if constexpr (is_complex_type<T>)
    return {x.re, -x.im};
  else
    return x;
}
template <class T> __device__ Real<T> real_part(T x) {
  if constexpr (is_complex_type<T>)
    return x.re;
  else
    return x;
}
template <class T> __device__ Real<T> magnitude(T x) {
  if constexpr (is_complex_type<T>)
    return hypot(x.re, x.im);
  else
    return fabs(x);
}
/// What LAPACK compares pivots by: |re| + |im|.
template <class T> __device__ Real<T> pivot_size(T x) {
  if constexpr (is_complex_type<T>)
    return fabs(x.re) + fabs(x.im);
  else
    return fabs(x);
}

constexpr int linalg_threads = 256;

/// The block's first row with the largest value: a NaN counts as nothing.
template <class R> struct Best {
  R size;
  int64_t row;
  __device__ Best better(Best o) const {
    return o.size > size || (o.size == size && o.row < row) ? o : *this;
  }
};
template <class R> __device__ int64_t block_best(Best<R> own) {
  __shared__ Best<R> parts[linalg_threads];
  __syncthreads();
  parts[threadIdx.x] = own;
  for (int half = linalg_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      parts[threadIdx.x] = parts[threadIdx.x].better(parts[threadIdx.x + half]);
  }
  __syncthreads();
  return parts[0].row;
}

template <class T>
__global__ void __launch_bounds__(linalg_threads)
    lu_kernel(T* batch, int64_t m, int64_t n, int32_t* all_pivots, int32_t* all_info,
              bool exchange) {
  T* a = batch + blockIdx.x * m * n;
  const int64_t steps = m < n ? m : n;
  int32_t* pivots = all_pivots + blockIdx.x * steps;
  int32_t info = 0;
  for (int64_t k = 0; k < steps; ++k) {
    int64_t best = k;
    if (exchange) {
      Best<Real<T>> own{Real<T>(-1), m};
      for (int64_t i = k + threadIdx.x; i < m; i += linalg_threads)
        own = own.better({pivot_size(a[i * n + k]), i});
      best = block_best(own);
      if (best >= m) best = k;
    }
    if (threadIdx.x == 0) pivots[k] = static_cast<int32_t>(best + 1);
    if (best != k)
      for (int64_t j = threadIdx.x; j < n; j += linalg_threads) {
        const T t = a[k * n + j];
        a[k * n + j] = a[best * n + j];
        a[best * n + j] = t;
      }
    __syncthreads();
    const T pivot = a[k * n + k];
    if (pivot == T(0)) {
      if (!info) info = static_cast<int32_t>(k + 1);
      continue;
    }
    for (int64_t i = k + 1 + threadIdx.x; i < m; i += linalg_threads)
      a[i * n + k] = a[i * n + k] / pivot;
    __syncthreads();
    const int64_t width = n - k - 1;
    for (int64_t e = threadIdx.x; e < (m - k - 1) * width; e += linalg_threads) {
      const int64_t i = k + 1 + e / width, j = k + 1 + e % width;
      const T factor = a[i * n + k];
      if (factor != T(0)) a[i * n + j] = a[i * n + j] - factor * a[k * n + j];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) all_info[blockIdx.x] = info;
}

template <class T>
__global__ void __launch_bounds__(linalg_threads)
    cholesky_kernel(T* batch, int64_t n, int32_t* all_info) {
  T* a = batch + blockIdx.x * n * n;
  int32_t info = 0;
  for (int64_t j = 0; j < n; ++j) {
    const Real<T> d = real_part(a[j * n + j]);
    if (!(d > 0) && !info) info = static_cast<int32_t>(j + 1);
    const Real<T> root = sqrt(d);
    __syncthreads();
    for (int64_t i = j + threadIdx.x; i < n; i += linalg_threads)
      a[i * n + j] = i == j ? T(root) : a[i * n + j] / T(root);
    for (int64_t k = j + 1 + threadIdx.x; k < n; k += linalg_threads) a[j * n + k] = T(0);
    __syncthreads();
    const int64_t rest = n - j - 1;
    for (int64_t e = threadIdx.x; e < rest * rest; e += linalg_threads) {
      const int64_t i = j + 1 + e / rest, k = j + 1 + e % rest;
      if (k <= i) a[i * n + k] = a[i * n + k] - a[i * n + j] * conjugate(a[k * n + j]);
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) all_info[blockIdx.x] = info;
}

// Block (matrix, 32 columns of b): a solved row is taken from all rows that follow.
constexpr int solve_columns = 32, solve_rows = 8;

template <class T>
__global__ void solve_kernel(const T* all_a, T* all_b, int64_t n, int64_t k, bool upper,
                             bool unit) {
  const T* a = all_a + blockIdx.x * n * n;
  T* b = all_b + blockIdx.x * n * k;
  const int64_t c = blockIdx.y * solve_columns + threadIdx.x;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = upper ? n - 1 - step : step;
    if (!unit && threadIdx.y == 0 && c < k) b[i * k + c] = b[i * k + c] / a[i * n + i];
    __syncthreads();
    if (c < k) {
      const T solved = b[i * k + c];
      for (int64_t r = threadIdx.y; r < n - 1 - step; r += solve_rows) {
        const int64_t j = upper ? i - 1 - r : i + 1 + r;
        b[j * k + c] = b[j * k + c] - a[j * n + i] * solved;
      }
    }
    __syncthreads();
  }
}

/// Applies I - tau v v^H with v = (1, a[k+1.., k]) to columns [from, to) of c, one thread a column.
template <class T>
__device__ void apply_reflector(const T* a, int64_t lda, int64_t k, int64_t m, T tau, T* c,
                                int64_t ldc, int64_t from, int64_t to) {
  for (int64_t j = from + threadIdx.x; j < to; j += blockDim.x) {
    T s = c[k * ldc + j];
    for (int64_t i = k + 1; i < m; ++i) s = s + conjugate(a[i * lda + k]) * c[i * ldc + j];
    s = s * tau;
    c[k * ldc + j] = c[k * ldc + j] - s;
    for (int64_t i = k + 1; i < m; ++i) c[i * ldc + j] = c[i * ldc + j] - a[i * lda + k] * s;
  }
}

// LAPACK's convention: H_k^H ... H_1^H A = R with H = I - tau v v^H.
template <class T>
__global__ void __launch_bounds__(linalg_threads)
    qr_kernel(T* batch, int64_t m, int64_t n, T* all_tau) {
  using R = Real<T>;
  T* a = batch + blockIdx.x * m * n;
  const int64_t steps = m < n ? m : n;
  T* tau = all_tau + blockIdx.x * steps;
  for (int64_t k = 0; k < steps; ++k) {
    const T alpha = a[k * n + k];
    // Scaled, so that squares neither overflow nor vanish.
    R largest = 0;
    for (int64_t i = k + 1 + threadIdx.x; i < m; i += linalg_threads)
      largest = Larger()(magnitude(a[i * n + k]), largest);
    largest = block_fold(largest, R(0), Larger());
    R squares = 0;
    if (largest > 0)
      for (int64_t i = k + 1 + threadIdx.x; i < m; i += linalg_threads) {
        const R part = magnitude(a[i * n + k]) / largest;
        squares += part * part;
      }
    const R below = largest * sqrt(block_fold(squares, R(0), Plus()));
    __syncthreads();
    if (below == 0 && alpha == T(real_part(alpha))) {
      if (threadIdx.x == 0) tau[k] = T(0);
      continue;
    }
    const R norm = hypot(magnitude(alpha), below);
    const R beta = real_part(alpha) >= 0 ? -norm : norm;
    const T factor = (T(beta) - alpha) / T(beta);
    for (int64_t i = k + 1 + threadIdx.x; i < m; i += linalg_threads)
      a[i * n + k] = a[i * n + k] / (alpha - T(beta));
    __syncthreads();
    if (threadIdx.x == 0) {
      tau[k] = factor;
      a[k * n + k] = T(beta);
    }
    apply_reflector(a, n, k, m, conjugate(factor), a, n, k + 1, n);
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(linalg_threads)
    reflect_kernel(const T* all_a, const T* all_tau, T* all_q, int64_t m, int64_t n, int64_t count,
                   int64_t k) {
  const T* a = all_a + blockIdx.x * m * n;
  T* q = all_q + blockIdx.x * m * k;
  for (int64_t e = threadIdx.x; e < m * k; e += linalg_threads) q[e] = e / k == e % k ? T(1) : T(0);
  __syncthreads();
  // Columns do not meet: each thread applies all reflectors to its own.
  for (int64_t j = count - 1; j >= 0; --j)
    apply_reflector(a, n, j, m, all_tau[blockIdx.x * count + j], q, k, int64_t{0}, k);
}

template <class T>
void determinant_as(const Tensor& lu, const Tensor& pivots, const Tensor& det, const Tensor& sign,
                    const Tensor& log_abs) {
  const int64_t n = lu.size(1);
  const T* a = pointer<T>(lu);
  const int32_t* p = pointer<int32_t>(pivots);
  T *product = pointer<T>(det), *unit = pointer<T>(sign);
  Real<T>* logs = pointer<Real<T>>(log_abs);
  for_each(lu.size(0), [=] __device__(int64_t i) {
    T all = T(1), direction = T(1);
    Real<T> sum = 0;
    for (int64_t k = 0; k < n; ++k) {
      const T d = a[(i * n + k) * n + k];
      const T turn = p[i * n + k] == k + 1 ? T(1) : T(-1);
      const Real<T> size = magnitude(d);
      all = all * (d * turn);
      direction = direction * (size == 0 ? T(0) : d / T(size) * turn);
      sum += log(size);
    }
    product[i] = all;
    unit[i] = direction;
    logs[i] = sum;
  });
}

unsigned batch_of(const Tensor& a) { return static_cast<unsigned>(a.size(0)); }

bool by_library(const Tensor& a) { return solve_by_library(a.size(0), a.size(1), a.size(2)); }

// Without exchanges cuSOLVER leaves the pivots unwritten: those stay with the own kernel.
void lu(const Tensor& a, const Tensor& pivots, const Tensor& info, bool exchange) {
  if (a.size(0) == 0) return;
  if (exchange && by_library(a)) return library_lu(a, pivots, info);
  visit_linalg(a.dtype(), [&]<class T>() {
    lu_kernel<T><<<batch_of(a), linalg_threads, 0, current_stream()>>>(
        pointer<T>(a), a.size(1), a.size(2), pointer<int32_t>(pivots), pointer<int32_t>(info),
        exchange);
  });
  check_launch();
}

/// Zeros above the diagonals.
template <class T> void clear_above(const Tensor& a) {
  const int64_t n = a.size(1);
  T* p = pointer<T>(a);
  for_each(a.numel(), [=] __device__(int64_t i) {
    if (i % n > i / n % n) p[i] = T(0);
  });
}

void cholesky(const Tensor& a, const Tensor& info) {
  if (a.size(0) == 0) return;
  if (by_library(a)) {
    library_cholesky(a, info);
    return visit_linalg(a.dtype(), [&]<class T>() { clear_above<T>(a); });
  }
  visit_linalg(a.dtype(), [&]<class T>() {
    cholesky_kernel<T><<<batch_of(a), linalg_threads, 0, current_stream()>>>(
        pointer<T>(a), a.size(1), pointer<int32_t>(info));
  });
  check_launch();
}

void solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool unit) {
  if (b.numel() == 0) return;
  if (by_library(a)) return library_solve_triangular(a, b, upper, unit);
  const int64_t n = b.size(1), k = b.size(2);
  const dim3 grid(batch_of(b), blocks_for(k, solve_columns));
  visit_linalg(a.dtype(), [&]<class T>() {
    solve_kernel<T><<<grid, dim3(solve_columns, solve_rows), 0, current_stream()>>>(
        pointer<T>(a), pointer<T>(b), n, k, upper, unit);
  });
  check_launch();
}

void row_order(const Tensor& pivots, const Tensor& order) {
  const int64_t m = order.size(1), k = pivots.size(1);
  const int32_t* p = pointer<int32_t>(pivots);
  int64_t* out = pointer<int64_t>(order);
  for_each(order.size(0), [=] __device__(int64_t i) {
    int64_t* rows = out + i * m;
    for (int64_t j = 0; j < m; ++j) rows[j] = j;
    for (int64_t j = 0; j < k && j < m; ++j) {
      const int64_t other = p[i * k + j] - 1;
      if (other < 0 || other >= m) continue;
      const int64_t t = rows[j];
      rows[j] = rows[other];
      rows[other] = t;
    }
  });
}

void qr(const Tensor& a, const Tensor& tau) {
  if (a.numel() == 0) return;
  if (by_library(a)) return library_qr(a, tau);
  visit_linalg(a.dtype(), [&]<class T>() {
    qr_kernel<T><<<batch_of(a), linalg_threads, 0, current_stream()>>>(pointer<T>(a), a.size(1),
                                                                       a.size(2), pointer<T>(tau));
  });
  check_launch();
}

void reflect(const Tensor& a, const Tensor& tau, const Tensor& q) {
  if (q.numel() == 0) return;
  if (by_library(a) && q.size(2) >= tau.size(1)) return library_reflect(a, tau, q);
  visit_linalg(a.dtype(), [&]<class T>() {
    reflect_kernel<T><<<batch_of(a), linalg_threads, 0, current_stream()>>>(
        pointer<T>(a), pointer<T>(tau), pointer<T>(q), a.size(1), a.size(2), tau.size(1),
        q.size(2));
  });
  check_launch();
}

void determinant(const Tensor& lu, const Tensor& pivots, const Tensor& det, const Tensor& sign,
                 const Tensor& log_abs) {
  visit_linalg(lu.dtype(), [&]<class T>() { determinant_as<T>(lu, pivots, det, sign, log_abs); });
}

}  // namespace

template <> const LinalgKernels& cuda_table<LinalgKernels>() {
  static constexpr LinalgKernels table = {.lu = lu,
                                          .cholesky = cholesky,
                                          .solve_triangular = solve_triangular,
                                          .row_order = row_order,
                                          .qr = qr,
                                          .reflect = reflect,
                                          .determinant = determinant};
  return table;
}

}  // namespace cresset::cuda
