// Matrix products of integers, booleans and complex numbers in plain blocked loops.
#include <algorithm>
#include <complex>
#include <type_traits>
#include <vector>

#include "core/cpu/gemm.h"
#include "core/cpu/parallel.h"

namespace cresset {
namespace {

template <class T> struct IsComplex : std::false_type {};
template <class R> struct IsComplex<std::complex<R>> : std::true_type {};

/// acc + x * y with wrap-around for integers and without the NaN repair of complex products.
template <class T> T multiply_add(T acc, T x, T y) {
  if constexpr (std::is_same_v<T, bool>) {
    return acc || (x && y);
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    // uint64_t holds every product; smaller types would promote to a signed int that overflows.
    return static_cast<T>(static_cast<U>(uint64_t(U(acc)) + uint64_t(U(x)) * uint64_t(U(y))));
  } else if constexpr (IsComplex<T>::value) {
    return {acc.real() + x.real() * y.real() - x.imag() * y.imag(),
            acc.imag() + x.real() * y.imag() + x.imag() * y.real()};
  } else {
    return acc + x * y;
  }
}

/// A row of C: sums[j] += sum over p of a[p] * b[p, j] for the columns [0, cols).
template <class T> void add_row(const T* a, int64_t a_step, MatrixView<const T> b, T* sums) {
  for (int64_t p = 0; p < b.rows; ++p) {
    const T x = a[p * a_step];
    const T* row = b.data + p * b.row_stride;
    if (b.col_stride == 1) {
      for (int64_t j = 0; j < b.cols; ++j) sums[j] = multiply_add(sums[j], x, row[j]);
    } else {
      for (int64_t j = 0; j < b.cols; ++j) {
        sums[j] = multiply_add(sums[j], x, row[j * b.col_stride]);
      }
    }
  }
}

template <class T>
void store_row(const T* sums, int64_t cols, T* c, int64_t step, T alpha, T beta) {
  for (int64_t j = 0; j < cols; ++j) {
    T& to = c[j * step];
    const T scaled = alpha == T(1) ? sums[j] : multiply_add(T(0), alpha, sums[j]);
    to = beta == T(0) ? scaled : multiply_add(scaled, beta, to);
  }
}

}  // namespace

template <class T>
void gemm_any(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, T alpha, T beta) {
  // Columns of a block of C and of B's rows that stay in the first-level cache.
  constexpr int64_t kCols = 2048 / sizeof(T);
  const int64_t blocks = (c.cols + kCols - 1) / kCols;
  const int64_t work = std::max<int64_t>(1, a.cols * std::min(c.cols, kCols));
  const int64_t grain = std::max<int64_t>(1, 16384 / work);
  parallel_for(0, c.rows * blocks, grain, [&](int64_t lo, int64_t hi) {
    T sums[kCols];
    for (int64_t i = lo; i < hi; ++i) {
      const int64_t block = i / c.rows, row = i % c.rows;
      const int64_t j0 = block * kCols, cols = std::min(kCols, c.cols - j0);
      std::fill_n(sums, cols, T(0));
      MatrixView<const T> part{b.data + j0 * b.col_stride, b.rows, cols, b.row_stride,
                               b.col_stride};
      add_row(a.data + row * a.row_stride, a.col_stride, part, sums);
      store_row(sums, cols, c.data + row * c.row_stride + j0 * c.col_stride, c.col_stride, alpha,
                beta);
    }
  });
}

template <class T> void gemm_batched_any(const BatchedGemm<T>& p) {
  const int64_t work = std::max<int64_t>(1, p.m * p.n * p.k);
  const bool split_batch = p.batch >= num_threads() || work < 16384;
  auto run = [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) {
      gemm_any<T>({p.a + i * p.a_batch_stride, p.m, p.k, p.a_row_stride, p.a_col_stride},
                  {p.b + i * p.b_batch_stride, p.k, p.n, p.b_row_stride, p.b_col_stride},
                  {p.c + i * p.c_batch_stride, p.m, p.n, p.c_row_stride, p.c_col_stride}, p.alpha,
                  p.beta);
    }
  };
  if (!split_batch) return run(0, p.batch);
  parallel_for(0, p.batch, std::max<int64_t>(1, 16384 / work), run);
}

#define CRESSET_GEMM_ANY(T)                                                              \
  template void gemm_any(MatrixView<const T>, MatrixView<const T>, MatrixView<T>, T, T); \
  template void gemm_batched_any(const BatchedGemm<T>&);
CRESSET_GEMM_ANY(bool)
CRESSET_GEMM_ANY(uint8_t)
CRESSET_GEMM_ANY(int8_t)
CRESSET_GEMM_ANY(int16_t)
CRESSET_GEMM_ANY(int32_t)
CRESSET_GEMM_ANY(int64_t)
CRESSET_GEMM_ANY(std::complex<float>)
CRESSET_GEMM_ANY(std::complex<double>)
#undef CRESSET_GEMM_ANY

}  // namespace cresset
