// CPU kernels of the distances between all pairs of rows.
#include "core/ops/distance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

template <class T> T distance(const T* a, const T* b, int64_t n, double p) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (p == 2)
      sum += d * d;
    else if (p == 1)
      sum += d;
    else if (p == 0)
      sum += d != 0;
    else if (std::isinf(p))
      sum = d > sum || d != d ? d : sum;
    else
      sum += std::pow(d, p);
  }
  if (p == 2) return static_cast<T>(std::sqrt(sum));
  if (p <= 1 && (p == 0 || p == 1)) return static_cast<T>(sum);
  return static_cast<T>(std::isinf(p) ? sum : std::pow(sum, 1 / p));
}

/// Derivative of the distance y by a component whose difference is d.
template <class T> double slope(double d, T y, double p) {
  if (y == 0 || p == 0) return 0;
  const double sign = d > 0 ? 1 : d < 0 ? -1 : 0;
  if (p == 1) return sign;
  if (p == 2) return d / y;
  if (std::isinf(p)) return static_cast<T>(std::abs(d)) == y ? sign : 0;
  if (d == 0) return 0;
  return sign * std::pow(std::abs(d) / y, p - 1);
}

/// Calls f(row of a, row of b, index of the distance) in order, over the given rows of a.
template <class F> void for_each_pair(const DistanceCall& c, int64_t lo, int64_t hi, F f) {
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t n = i / c.rows_a, row = i % c.rows_a;
    if (c.pairs) {
      int64_t at = row * c.rows_a - row * (row + 1) / 2;
      for (int64_t j = row + 1; j < c.rows_b; ++j) f(row, j, at++);
    } else {
      for (int64_t j = 0; j < c.rows_b; ++j) f(i, n * c.rows_b + j, i * c.rows_b + j);
    }
  }
}

template <class F> void by_dtype(const Tensor& t, F f) {
  if (t.dtype() == DType::Float32)
    f(float{});
  else
    f(double{});
}

void forward(const DistanceCall& c) {
  by_dtype(*c.a, [&](auto zero) {
    using T = decltype(zero);
    const T *a = c.a->data<T>(), *b = c.b->data<T>();
    T* y = c.y->data<T>();
    const int64_t work = std::max<int64_t>(1, c.rows_b * std::max<int64_t>(1, c.width));
    parallel_for(0, c.batch * c.rows_a, std::max<int64_t>(1, 16384 / work),
                 [&](int64_t lo, int64_t hi) {
                   for_each_pair(c, lo, hi, [&](int64_t i, int64_t j, int64_t at) {
                     y[at] = distance(a + i * c.width, b + j * c.width, c.width, c.p);
                   });
                 });
  });
}

// Rows of b are shared by all rows of a: one thread.
void backward(const DistanceCall& c, const Tensor& grad, const Tensor& da, const Tensor& db) {
  by_dtype(*c.a, [&](auto zero) {
    using T = decltype(zero);
    const T *a = c.a->data<T>(), *b = c.b->data<T>(), *y = c.y->data<T>(), *g = grad.data<T>();
    T* to_a = da.data<T>();
    T* to_b = db.defined() ? db.data<T>() : to_a;
    for_each_pair(c, 0, c.batch * c.rows_a, [&](int64_t i, int64_t j, int64_t at) {
      for (int64_t k = 0; k < c.width; ++k) {
        const double d = static_cast<double>(a[i * c.width + k]) - b[j * c.width + k];
        const T step = static_cast<T>(slope(d, y[at], c.p) * g[at]);
        to_a[i * c.width + k] += step;
        to_b[j * c.width + k] -= step;
      }
    });
  });
}

}  // namespace

template <> const DistanceKernels& cpu_kernels<DistanceKernels>() {
  static constexpr DistanceKernels table = {.forward = forward, .backward = backward};
  return table;
}

}  // namespace cresset
