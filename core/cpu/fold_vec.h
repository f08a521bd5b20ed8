// Folds of contiguous floats and doubles with SIMD: sums, extremes and products of mapped values.
// Included once per Highway target, as vec.h; see the top of that file.

#if defined(CRESSET_CPU_FOLD_VEC_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRESSET_CPU_FOLD_VEC_H_
#undef CRESSET_CPU_FOLD_VEC_H_
#else
#define CRESSET_CPU_FOLD_VEC_H_
#endif

#include <algorithm>
#include <cmath>

#include "core/cpu/fold.h"
#include "core/cpu/vec.h"

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {

/// What fold `f` does with one element, for a vector or a scalar; `c` is the centre.
template <Fold f, class V> HWY_INLINE V fold_map(V x, V c) {
  if constexpr (f == Fold::SumAbs || f == Fold::MaxAbs || f == Fold::MinAbs)
    return abs(x);
  else if constexpr (f == Fold::SumSquares)
    return x * x;
  else if constexpr (f == Fold::SumDeviations)
    return (x - c) * (x - c);
  else if constexpr (f == Fold::NanSum)
    return select(x == x, x, V(0));
  else
    return x;
}

template <Fold f, class V> HWY_INLINE V fold_join(V a, V b) {
  if constexpr (f == Fold::Prod)
    return a * b;
  else if constexpr (fold_is_max(f))
    return maximum(a, b);
  else if constexpr (fold_is_min(f))
    return minimum(a, b);
  else
    return a + b;
}

/// Folds the lanes of a vector in double, as a tree: a chain would wait for every addition.
template <class T, Fold f> HWY_INLINE double fold_lanes(const T* lanes) {
  constexpr int64_t w = Vec<T>::width;
  double parts[w];
  for (int64_t k = 0; k < w; ++k) parts[k] = static_cast<double>(lanes[k]);
  for (int64_t half = w / 2; half > 0; half /= 2)
    for (int64_t k = 0; k < half; ++k) parts[k] = fold_merge(f, parts[k], parts[k + half]);
  return parts[0];
}

/// Joins four accumulators into one double.
template <class T, Fold f, class V> HWY_INLINE double fold_four(V a0, V a1, V a2, V a3) {
  T lanes[V::width];
  store(fold_join<f>(fold_join<f>(a0, a1), fold_join<f>(a2, a3)), lanes);
  return fold_lanes<T, f>(lanes);
}

/// Folds 4 * n contiguous elements, n a multiple of 32 vectors, as four runs side by side: each run
/// is a stream of its own to the hardware's prefetchers, so more cache lines are on their way
/// (measured on 40 MB with two threads: 0.30 ms; two runs 0.35, one 0.39).
template <class T, Fold f, class V> HWY_NOINLINE double fold_streams(const T* x, int64_t n, V c) {
  constexpr int64_t w = V::width, block = 32 * w;
  const V first = V(fold_identity(f));
  double total = fold_identity(f);
  for (int64_t i = 0; i < n;) {
    V a0 = first, a1 = first, a2 = first, a3 = first;
    for (const int64_t end = i + block; i < end; i += w) {
      a0 = fold_join<f>(a0, fold_map<f>(V::load(x + i), c));
      a1 = fold_join<f>(a1, fold_map<f>(V::load(x + n + i), c));
      a2 = fold_join<f>(a2, fold_map<f>(V::load(x + 2 * n + i), c));
      a3 = fold_join<f>(a3, fold_map<f>(V::load(x + 3 * n + i), c));
    }
    total = fold_merge(f, total, fold_four<T, f>(a0, a1, a2, a3));
  }
  return total;
}

/// Folds n contiguous elements. No lane adds more than 32 numbers in T; what lies above is double.
template <class T, Fold f> HWY_INLINE double fold_row(const T* x, int64_t n, T center) {
  using V = Vec<T>;
  constexpr int64_t w = V::width, block = 32 * 4 * w;
  constexpr int64_t size = sizeof(T), least_stream = (64 << 10) / size, stream = (320 << 10) / size;
  const V c = V(static_cast<double>(center)), first = V(fold_identity(f));
  double total = fold_identity(f);
  int64_t i = 0;
  while (n - i >= 4 * least_stream) {
    const int64_t run = std::min((n - i) / 4, stream) / (32 * w) * (32 * w);
    total = fold_merge(f, total, fold_streams<T, f>(x + i, run, c));
    i += 4 * run;
  }
  while (n - i >= w) {
    const int64_t end = i + std::min(n - i, block) / w * w;
    V a0 = first, a1 = first, a2 = first, a3 = first;
    for (; i + 4 * w <= end; i += 4 * w) {
      a0 = fold_join<f>(a0, fold_map<f>(V::load(x + i), c));
      a1 = fold_join<f>(a1, fold_map<f>(V::load(x + i + w), c));
      a2 = fold_join<f>(a2, fold_map<f>(V::load(x + i + 2 * w), c));
      a3 = fold_join<f>(a3, fold_map<f>(V::load(x + i + 3 * w), c));
    }
    for (; i < end; i += w) a0 = fold_join<f>(a0, fold_map<f>(V::load(x + i), c));
    total = fold_merge(f, total, fold_four<T, f>(a0, a1, a2, a3));
  }
  // Four chains, so that short rows do not wait for each addition.
  const auto mapped = [&](int64_t at) HWY_ATTR {
    return fold_map_scalar(f, static_cast<double>(x[at]), static_cast<double>(center));
  };
  double p0 = total, p1 = fold_identity(f), p2 = p1, p3 = p1;
  for (; i + 4 <= n; i += 4) {
    p0 = fold_merge(f, p0, mapped(i));
    p1 = fold_merge(f, p1, mapped(i + 1));
    p2 = fold_merge(f, p2, mapped(i + 2));
    p3 = fold_merge(f, p3, mapped(i + 3));
  }
  for (; i < n; ++i) p0 = fold_merge(f, p0, mapped(i));
  return fold_merge(f, fold_merge(f, p0, p1), fold_merge(f, p2, p3));
}

/// acc[j] joins the fold over i < rows of x[i * stride + j], for j < cols; `center` may be null.
template <class T, Fold f>
HWY_INLINE void fold_columns(const T* x, int64_t rows, int64_t stride, int64_t cols,
                             const T* center, double* acc) {
  using V = Vec<T>;
  constexpr int64_t w = V::width, block = 64;
  const V first = V(fold_identity(f));
  T lanes[4 * w];
  for (int64_t r = 0; r < rows; r += block) {
    const int64_t m = std::min(block, rows - r);
    const T* base = x + r * stride;
    int64_t j = 0;
    for (; j + 4 * w <= cols; j += 4 * w) {
      V c[4], a[4];
      for (int k = 0; k < 4; ++k) {
        a[k] = first;
        c[k] = center ? V::load(center + j + k * w) : V(0);
      }
      for (int64_t i = 0; i < m; ++i) {
        const T* p = base + i * stride + j;
        a[0] = fold_join<f>(a[0], fold_map<f>(V::load(p), c[0]));
        a[1] = fold_join<f>(a[1], fold_map<f>(V::load(p + w), c[1]));
        a[2] = fold_join<f>(a[2], fold_map<f>(V::load(p + 2 * w), c[2]));
        a[3] = fold_join<f>(a[3], fold_map<f>(V::load(p + 3 * w), c[3]));
      }
      for (int k = 0; k < 4; ++k) store(a[k], lanes + k * w);
      for (int64_t k = 0; k < 4 * w; ++k)
        acc[j + k] = fold_merge(f, acc[j + k], static_cast<double>(lanes[k]));
    }
    for (; j + w <= cols; j += w) {
      const V c = center ? V::load(center + j) : V(0);
      V a = first;
      for (int64_t i = 0; i < m; ++i)
        a = fold_join<f>(a, fold_map<f>(V::load(base + i * stride + j), c));
      store(a, lanes);
      for (int64_t k = 0; k < w; ++k)
        acc[j + k] = fold_merge(f, acc[j + k], static_cast<double>(lanes[k]));
    }
    for (int64_t i = 0; j < cols && i < m; ++i)
      for (int64_t k = j; k < cols; ++k)
        acc[k] = fold_merge(f, acc[k],
                            fold_map_scalar(f, static_cast<double>(base[i * stride + k]),
                                            center ? static_cast<double>(center[k]) : 0));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#endif  // include guard per target
