// CPU kernel of the matrix exponential: Taylor's series of A / 2^s, squared s times; Higham, "The
// scaling and squaring method for the matrix exponential revisited" (2005).
#include "core/ops/matrix_exp.h"

#include <cmath>
#include <complex>
#include <vector>

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

/// c = a b for square matrices.
template <class W> void multiply(const W* a, const W* b, W* c, int64_t n) {
  std::fill_n(c, n * n, W(0));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < n; ++k) {
      const W factor = a[i * n + k];
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += factor * b[k * n + j];
    }
}

/// How often a matrix is halved until its largest row sum is at most 1/2.
template <class W> int halvings(const W* a, int64_t n) {
  double norm = 0;
  for (int64_t i = 0; i < n; ++i) {
    double row = 0;
    for (int64_t j = 0; j < n; ++j) row += std::abs(a[i * n + j]);
    norm = std::max(norm, row);
  }
  if (!std::isfinite(norm) || norm <= 0.5) return 0;
  return static_cast<int>(std::ceil(std::log2(norm))) + 1;
}

/// `work` holds three matrices.
template <class T, class W> void exp_one(const T* x, T* y, int64_t n, W* work) {
  const int64_t count = n * n;
  W *a = work, *sum = a + count, *next = sum + count;
  std::copy_n(x, count, a);
  const int squarings = halvings(a, n);
  for (int64_t i = 0; i < count; ++i) a[i] *= std::ldexp(1.0, -squarings);
  auto set_identity_plus = [n](W* m, double factor) {
    for (int64_t i = 0; i < n * n; ++i) m[i] = m[i] * factor + W(i % (n + 1) == 0 ? 1 : 0);
  };
  // Horner's scheme; the remainder after 18 terms is below 1e-22.
  constexpr int terms = 18;
  std::fill_n(sum, count, W(0));
  set_identity_plus(sum, 0);
  for (int k = terms; k > 0; --k) {
    multiply(a, sum, next, n);
    set_identity_plus(next, 1.0 / k);
    std::swap(sum, next);
  }
  for (int s = 0; s < squarings; ++s) {
    multiply(sum, sum, next, n);
    std::swap(sum, next);
  }
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<T>(sum[i]);
}

/// Works in double precision: `W` is double or std::complex<double>.
template <class T, class W> void exp_all(const Tensor& x, const Tensor& y) {
  const int64_t n = x.size(1), count = n * n;
  std::vector<W> work(3 * x.numel());
  parallel_for(0, x.size(0), 1, [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i)
      exp_one(x.data<T>() + i * count, y.data<T>() + i * count, n, work.data() + 3 * i * count);
  });
}

void matrix_exp(const Tensor& x, const Tensor& y) {
  using C = std::complex<double>;
  switch (x.dtype()) {
    case DType::Float32: return exp_all<float, double>(x, y);
    case DType::Float64: return exp_all<double, double>(x, y);
    case DType::Complex64: return exp_all<std::complex<float>, C>(x, y);
    default: return exp_all<C, C>(x, y);
  }
}

}  // namespace

template <> const MatrixExpKernels& cpu_kernels<MatrixExpKernels>() {
  static constexpr MatrixExpKernels table = {.matrix_exp = matrix_exp};
  return table;
}

}  // namespace cresset
