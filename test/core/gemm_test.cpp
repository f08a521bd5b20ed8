// Matrix products against a plain triple loop: layouts, scalings, edges, batches and all types.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

#include "core/cpu/gemm.h"
#include "core/cpu/parallel.h"

namespace cresset {
namespace {

template <class T> struct Wider { using type = double; };
template <> struct Wider<std::complex<float>> { using type = std::complex<double>; };
template <> struct Wider<std::complex<double>> { using type = std::complex<double>; };

/// A small whole number, so that sums are exact in every type; complex ones have both parts.
template <class T> T small(std::mt19937& random) {
  auto part = [&] { return static_cast<int>(random() % 9) - 4; };
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(part());
  } else {
    typename T::value_type re(part()), im(part());
    return T(re, im);
  }
}

template <class T> T not_a_number() {
  if constexpr (std::is_arithmetic_v<T>) {
    return std::numeric_limits<T>::quiet_NaN();
  } else {
    return T(std::numeric_limits<typename T::value_type>::quiet_NaN());
  }
}

enum class Layout { kRows, kColumns, kSliced, kExpanded };

/// A matrix with memory of its own in one of the layouts that callers hand over.
template <class T> struct Matrix {
  std::vector<T> data;
  int64_t rows, cols, row_stride, col_stride;

  Matrix(int64_t r, int64_t c, Layout layout, uint32_t seed) : rows(r), cols(c) {
    row_stride = layout == Layout::kColumns ? 1 : layout == Layout::kSliced ? 3 * c + 1 : c;
    col_stride = layout == Layout::kColumns ? r : layout == Layout::kSliced ? 2 : 1;
    if (layout == Layout::kExpanded) row_stride = 0;
    data.resize(static_cast<size_t>(r * (3 * c + 1) + 2 * c + 1));
    std::mt19937 random(seed);
    for (T& x : data) x = small<T>(random);
  }
  MatrixView<const T> in() const { return {data.data(), rows, cols, row_stride, col_stride}; }
  MatrixView<T> out() { return {data.data(), rows, cols, row_stride, col_stride}; }
  T& at(int64_t i, int64_t j) { return data[static_cast<size_t>(i * row_stride + j * col_stride)]; }
  T at(int64_t i, int64_t j) const {
    return data[static_cast<size_t>(i * row_stride + j * col_stride)];
  }
};

template <class T, class Gemm>
void check(int64_t m, int64_t n, int64_t k, Layout la, Layout lb, Layout lc, T alpha, T beta,
           Gemm&& gemm) {
  using W = typename Wider<T>::type;
  Matrix<T> a(m, k, la, 1), b(k, n, lb, 2), c(m, n, lc, 3);
  const Matrix<T> before = c;
  if (beta == T(0)) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) c.at(i, j) = not_a_number<T>();
    }
  }
  std::vector<T> around = c.data;
  gemm(a.in(), b.in(), c.out(), alpha, beta);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      W sum = W(0);
      for (int64_t p = 0; p < k; ++p) sum += W(a.at(i, p)) * W(b.at(p, j));
      W want = W(alpha) * sum;
      if (beta != T(0)) want += W(beta) * W(before.at(i, j));
      // Small integers: every sum is exact in every type.
      ASSERT_EQ(W(c.at(i, j)), want) << m << "x" << n << "x" << k << " at " << i << "," << j
                                     << " layouts " << int(la) << int(lb) << int(lc);
      around[static_cast<size_t>(i * c.row_stride + j * c.col_stride)] = c.at(i, j);
    }
  }
  for (size_t i = 0; i < around.size(); ++i) {
    bool same = around[i] == c.data[i] || (around[i] != around[i] && c.data[i] != c.data[i]);
    ASSERT_TRUE(same) << "wrote outside the matrix at " << i;
  }
}

constexpr Layout kLayouts[] = {Layout::kRows, Layout::kColumns, Layout::kSliced, Layout::kExpanded};
constexpr int64_t kShapes[][3] = {{0, 0, 0},     {0, 3, 2},     {3, 0, 2},     {2, 3, 0},
                                  {1, 1, 1},     {1, 7, 5},     {7, 1, 5},     {5, 9, 1},
                                  {2, 2, 2},     {3, 4, 5},     {13, 17, 19},  {16, 16, 16},
                                  {31, 33, 7},   {1, 200, 64},  {200, 1, 64},  {1, 1, 300},
                                  {64, 10, 128}, {65, 70, 257}, {50, 30, 600}, {80, 100, 20}};

template <class T, class Gemm> void check_all(Gemm&& gemm) {
  for (const auto& [m, n, k] : kShapes) {
    // The plain loops of the reference are slow: large shapes are checked in one layout of C.
    const bool small = m * n * k < 20000;
    for (Layout la : kLayouts) {
      for (Layout lb : kLayouts) {
        if (small || la == Layout::kRows || la == lb) {
          check<T>(m, n, k, la, lb, Layout::kRows, T(1), T(0), gemm);
        }
        if (!small) continue;
        check<T>(m, n, k, la, lb, Layout::kColumns, T(1), T(0), gemm);
        check<T>(m, n, k, la, lb, Layout::kSliced, T(1), T(0), gemm);
      }
      if (!small) continue;
      check<T>(m, n, k, la, Layout::kRows, Layout::kRows, T(2), T(3), gemm);
      check<T>(m, n, k, Layout::kRows, la, Layout::kColumns, T(1), T(1), gemm);
      check<T>(m, n, k, la, la, Layout::kSliced, T(0), T(2), gemm);
    }
  }
  check<T>(130, 70, 300, Layout::kRows, Layout::kRows, Layout::kRows, T(2), T(3), gemm);
  check<T>(70, 130, 300, Layout::kRows, Layout::kColumns, Layout::kSliced, T(1), T(1), gemm);
}

TEST(Gemm, Float) { check_all<float>(gemm_f32); }
TEST(Gemm, Double) { check_all<double>(gemm_f64); }
TEST(Gemm, OwnFloat) { check_all<float>(gemm_own<float>); }
TEST(Gemm, ComplexFloat) { check_all<std::complex<float>>(gemm_any<std::complex<float>>); }
TEST(Gemm, ComplexDouble) { check_all<std::complex<double>>(gemm_any<std::complex<double>>); }
TEST(Gemm, Int16) { check_all<int16_t>(gemm_any<int16_t>); }
TEST(Gemm, Int32) { check_all<int32_t>(gemm_any<int32_t>); }
TEST(Gemm, Int64) { check_all<int64_t>(gemm_any<int64_t>); }

TEST(Gemm, OneThreadGivesTheSame) {
  const int threads = num_threads();
  set_num_threads(1);
  check<float>(130, 140, 150, Layout::kRows, Layout::kColumns, Layout::kRows, 1, 0, gemm_f32);
  check<double>(130, 140, 150, Layout::kColumns, Layout::kRows, Layout::kRows, 1, 0, gemm_f64);
  set_num_threads(7);
  check<float>(130, 140, 150, Layout::kRows, Layout::kColumns, Layout::kRows, 1, 0, gemm_f32);
  check<double>(3, 1400, 150, Layout::kColumns, Layout::kRows, Layout::kRows, 1, 0, gemm_f64);
  set_num_threads(threads);
}

TEST(Gemm, SmallIntegersWrapAround) {
  std::vector<int8_t> a(4, 100), b(4, 100);
  int8_t c = 1;
  gemm_any<int8_t>({a.data(), 1, 4, 4, 1}, {b.data(), 4, 1, 1, 1}, {&c, 1, 1, 1, 1}, 1, 0);
  EXPECT_EQ(c, int8_t(40000 % 256));
  uint8_t u[2] = {200, 200}, v[2] = {2, 3}, w = 0;
  gemm_any<uint8_t>({u, 1, 2, 2, 1}, {v, 2, 1, 1, 1}, {&w, 1, 1, 1, 1}, 1, 0);
  EXPECT_EQ(w, uint8_t(1000 % 256));
  int64_t x = int64_t{1} << 62, y = 4, z = 0;
  gemm_any<int64_t>({&x, 1, 1, 1, 1}, {&y, 1, 1, 1, 1}, {&z, 1, 1, 1, 1}, 1, 0);
  EXPECT_EQ(z, 0);
}

TEST(Gemm, BoolIsOrOfAnds) {
  bool a[6] = {true, false, false, false, false, true};
  bool b[6] = {true, false, true, true, false, true};
  bool c[4];
  gemm_any<bool>({a, 2, 3, 3, 1}, {b, 3, 2, 2, 1}, {c, 2, 2, 2, 1}, true, false);
  EXPECT_TRUE(c[0]);
  EXPECT_FALSE(c[1]);
  EXPECT_FALSE(c[2]);
  EXPECT_TRUE(c[3]);
}

TEST(Gemm, NanAndInfinityReachTheResult) {
  for (int64_t size : {1, 3, 40}) {
    std::vector<float> a(size * size, 0.0f), b(size * size, 1.0f), c(size * size);
    a[0] = std::numeric_limits<float>::quiet_NaN();
    b[0] = std::numeric_limits<float>::infinity();
    gemm_f32({a.data(), size, size, size, 1}, {b.data(), size, size, size, 1},
             {c.data(), size, size, size, 1}, 1, 0);
    EXPECT_TRUE(std::isnan(c[0]));
    // 0 * inf
    EXPECT_TRUE(std::isnan(c[static_cast<size_t>((size - 1) * size)]));
  }
}

template <class T>
void check_batched(int64_t batch, int64_t m, int64_t n, int64_t k, bool share_b,
                   void (*gemm)(const BatchedGemm<T>&)) {
  std::mt19937 random(7);
  std::vector<T> a(batch * m * k), b((share_b ? 1 : batch) * k * n), c(batch * m * n, T(1));
  for (T& x : a) x = small<T>(random);
  for (T& x : b) x = small<T>(random);
  BatchedGemm<T> p{a.data(), b.data(), c.data(), batch, m, n, k, m * k, 1, m, share_b ? 0 : k * n,
                   n,        1,        m * n,    n,     1};
  p.beta = T(2);
  gemm(p);
  // The reference of large products is slow: some rows stand for all.
  const int64_t row_step = std::max<int64_t>(1, m / 20);
  for (int64_t s = 0; s < batch; ++s) {
    for (int64_t i = 0; i < m; i += row_step) {
      for (int64_t j = 0; j < n; ++j) {
        T want = T(2);
        for (int64_t q = 0; q < k; ++q) {
          want += a[s * m * k + q * m + i] * b[(share_b ? 0 : s * k * n) + q * n + j];
        }
        ASSERT_EQ(c[s * m * n + i * n + j], want) << s << " " << i << " " << j;
      }
    }
  }
}

TEST(Gemm, Batched) {
  for (bool share : {false, true}) {
    check_batched<float>(0, 3, 4, 5, share, gemm_batched_f32);
    check_batched<float>(9, 3, 4, 5, share, gemm_batched_f32);
    check_batched<float>(3, 1, 64, 64, share, gemm_batched_f32);
    check_batched<float>(12, 64, 64, 32, share, gemm_batched_f32);
    check_batched<float>(2, 300, 700, 700, share, gemm_batched_f32);
    check_batched<double>(5, 33, 20, 70, share, gemm_batched_f64);
    check_batched<int64_t>(5, 13, 20, 7, share, gemm_batched_any<int64_t>);
    check_batched<std::complex<float>>(5, 13, 20, 7, share, gemm_batched_any<std::complex<float>>);
  }
}

TEST(ParallelFor, CoversTheRangeOnce) {
  for (int64_t size : {0, 1, 5, 1000}) {
    for (int64_t grain : {0, 1, 3, 400}) {
      std::vector<int> seen(size, 0);
      parallel_for(0, size, grain, [&](int64_t lo, int64_t hi) {
        for (int64_t i = lo; i < hi; ++i) ++seen[i];
        parallel_for(0, 2, 1, [&](int64_t, int64_t) {});
      });
      for (int count : seen) ASSERT_EQ(count, 1);
    }
  }
  EXPECT_FALSE(in_parallel_region());
}

}  // namespace
}  // namespace cresset
