// CPU kernels of symmetric indefinite factors: Bunch and Kaufman, "Some stable methods for
// calculating inertia and solving symmetric linear systems" (1977), with LAPACK's pivots.
#include "core/ops/linalg_ldl.h"

#include <cmath>
#include <complex>

namespace cresset {
namespace {

template <class T> T conjugate_if(T x, bool yes) {
  if constexpr (std::is_floating_point_v<T>)
    return x;
  else
    return yes ? std::conj(x) : x;
}
/// |re| + |im|, by which LAPACK compares.
template <class T> auto size(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return std::abs(x);
  else
    return std::abs(x.real()) + std::abs(x.imag());
}

/// The lower triangle of one matrix, factored column by column.
template <class T> struct Ldl {
  T* a;
  int64_t n;
  bool hermitian;
  using Real = decltype(size(T()));

  T& at(int64_t i, int64_t j) const { return a[i * n + j]; }
  T turned(T x) const { return conjugate_if(x, hermitian); }
  void make_real(int64_t i) const {
    if constexpr (!std::is_floating_point_v<T>)
      if (hermitian) at(i, i) = at(i, i).real();
  }

  struct Pivot {
    int64_t row, width;
  };

  /// Which row comes to position k, and whether the block there is 1 x 1 or 2 x 2. A NaN stays
  /// where it is.
  Pivot choose(int64_t k) const {
    if (k + 1 == n) return {k, 1};
    const Real alpha = static_cast<Real>((1 + std::sqrt(17.0)) / 8);
    const Real here = size(at(k, k));
    int64_t largest = k + 1;
    for (int64_t i = k + 2; i < n; ++i)
      if (size(at(i, k)) > size(at(largest, k))) largest = i;
    const Real column = size(at(largest, k));
    if (!(here < alpha * column)) return {k, 1};
    Real row = 0;
    for (int64_t j = k; j < largest; ++j) row = std::max(row, size(at(largest, j)));
    for (int64_t i = largest + 1; i < n; ++i) row = std::max(row, size(at(i, largest)));
    if (here >= alpha * column * (column / row)) return {k, 1};
    if (size(at(largest, largest)) >= alpha * row) return {largest, 1};
    return {largest, 2};
  }

  void exchange(int64_t k, Pivot p) const {
    const int64_t to = k + p.width - 1;
    if (to == p.row) return;
    for (int64_t i = p.row + 1; i < n; ++i) std::swap(at(i, to), at(i, p.row));
    for (int64_t j = to + 1; j < p.row; ++j) {
      const T kept = turned(at(j, to));
      at(j, to) = turned(at(p.row, j));
      at(p.row, j) = kept;
    }
    at(p.row, to) = turned(at(p.row, to));
    std::swap(at(to, to), at(p.row, p.row));
    if (p.width == 2) std::swap(at(k + 1, k), at(p.row, k));
  }

  void eliminate_one(int64_t k) const {
    const T inverse = T(1) / at(k, k);
    for (int64_t j = k + 1; j < n; ++j) {
      const T factor = turned(at(j, k)) * turned(inverse);
      for (int64_t i = j; i < n; ++i) at(i, j) -= at(i, k) * factor;
      make_real(j);
    }
    for (int64_t i = k + 1; i < n; ++i) at(i, k) *= inverse;
  }

  /// By the inverse of the block [[p, c'], [c, q]], c' = turned(c).
  void eliminate_two(int64_t k) const {
    const T c = at(k + 1, k), scaled_q = at(k + 1, k + 1) / c, scaled_p = at(k, k) / turned(c);
    const T factor = T(1) / (scaled_p * scaled_q - T(1));
    for (int64_t j = k + 2; j < n; ++j) {
      const T x = at(j, k), y = at(j, k + 1);
      const T first = factor * (scaled_q * x - y) / turned(c);
      const T second = factor * (scaled_p * y - x) / c;
      for (int64_t i = j; i < n; ++i)
        at(i, j) -= at(i, k) * turned(first) + at(i, k + 1) * turned(second);
      at(j, k) = first;
      at(j, k + 1) = second;
      make_real(j);
    }
  }

  int32_t factor(int32_t* pivots) const {
    int32_t info = 0;
    for (int64_t k = 0; k < n;) {
      make_real(k);
      const Pivot p = choose(k);
      exchange(k, p);
      const auto row = static_cast<int32_t>(p.row + 1);
      pivots[k] = p.width == 1 ? row : -row;
      if (p.width == 2) {
        pivots[k + 1] = -row;
        eliminate_two(k);
      } else if (at(k, k) == T(0) || std::isnan(size(at(k, k)))) {
        if (info == 0) info = static_cast<int32_t>(k + 1);
      } else {
        eliminate_one(k);
      }
      k += p.width;
    }
    return info;
  }

  /// b [n, count] becomes A^-1 b.
  void solve(const int32_t* pivots, T* b, int64_t count) const {
    auto swap_rows = [&](int64_t i, int64_t j) {
      if (i != j && j >= 0 && j < n)
        std::swap_ranges(b + i * count, b + (i + 1) * count, b + j * count);
    };
    auto subtract = [&](int64_t i, int64_t j, T factor) {
      for (int64_t c = 0; c < count; ++c) b[i * count + c] -= factor * b[j * count + c];
    };
    auto width = [&](int64_t k) { return pivots[k] < 0 && k + 1 < n ? 2 : 1; };
    for (int64_t k = 0; k < n;) {
      const int64_t w = width(k), last = k + w - 1;
      swap_rows(last, std::abs(static_cast<int64_t>(pivots[k])) - 1);
      for (int64_t i = last + 1; i < n; ++i)
        for (int64_t j = k; j <= last; ++j) subtract(i, j, at(i, j));
      divide(b, count, k, w);
      k += w;
    }
    for (int64_t last = n - 1; last >= 0;) {
      const int64_t w = pivots[last] < 0 && last > 0 ? 2 : 1, k = last - w + 1;
      for (int64_t j = k; j <= last; ++j)
        for (int64_t i = last + 1; i < n; ++i) subtract(j, i, turned(at(i, j)));
      swap_rows(last, std::abs(static_cast<int64_t>(pivots[last])) - 1);
      last = k - 1;
    }
  }

  void divide(T* b, int64_t count, int64_t k, int64_t w) const {
    T *x = b + k * count, *y = x + count;
    if (w == 1) {
      for (int64_t c = 0; c < count; ++c) x[c] /= at(k, k);
      return;
    }
    const T c = at(k + 1, k), q = at(k + 1, k + 1) / c, p = at(k, k) / turned(c);
    const T factor = T(1) / (p * q - T(1));
    for (int64_t i = 0; i < count; ++i) {
      const T first = x[i] / turned(c), second = y[i] / c;
      x[i] = factor * (q * first - second);
      y[i] = factor * (p * second - first);
    }
  }
};

template <class F> void visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32: return f.template operator()<float>();
    case DType::Float64: return f.template operator()<double>();
    case DType::Complex64: return f.template operator()<std::complex<float>>();
    default: return f.template operator()<std::complex<double>>();
  }
}

void factor(const Tensor& a, const Tensor& pivots, const Tensor& info, bool hermitian) {
  const int64_t n = a.size(1);
  visit(a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < a.size(0); ++i)
      info.data<int32_t>()[i] =
          Ldl<T>{a.data<T>() + i * n * n, n, hermitian}.factor(pivots.data<int32_t>() + i * n);
  });
}

void solve(const Tensor& a, const Tensor& pivots, const Tensor& b, bool hermitian) {
  const int64_t n = a.size(1), count = b.size(2);
  visit(a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < a.size(0); ++i)
      Ldl<T>{a.data<T>() + i * n * n, n, hermitian}.solve(pivots.data<int32_t>() + i * n,
                                                          b.data<T>() + i * n * count, count);
  });
}

}  // namespace

template <> const LdlKernels& cpu_kernels<LdlKernels>() {
  static constexpr LdlKernels table = {.factor = factor, .solve = solve};
  return table;
}

}  // namespace cresset
