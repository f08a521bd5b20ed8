// CPU kernels of softmax and log-softmax with SIMD, for every Highway target.
#include "core/ops/softmax.h"

#include "core/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/cpu/fold_vec.h"

#ifndef CRESSET_CPU_SOFTMAX_TYPES
#define CRESSET_CPU_SOFTMAX_TYPES
namespace cresset {
/// Loops over one lane (n contiguous elements) or over `cols` neighbouring lanes, n steps of
/// `stride` elements each.
template <class T> struct SoftmaxLoops {
  void (*forward_row)(bool logarithm, const T* x, int64_t n, T* y);
  void (*backward_row)(bool logarithm, const T* g, const T* y, int64_t n, T* dx);
  void (*forward_columns)(bool logarithm, const T* x, int64_t n, int64_t stride, int64_t cols,
                          T* y);
  void (*backward_columns)(bool logarithm, const T* g, const T* y, int64_t n, int64_t stride,
                           int64_t cols, T* dx);
};
}  // namespace cresset
#endif

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {

/// The first k elements, the rest `fill`.
template <class T> HWY_INLINE Vec<T> load_some(const T* p, int64_t k, T fill) {
  using V = Vec<T>;
  if (k >= V::width) return V::load(p);
  T lanes[V::width];
  for (int64_t i = 0; i < V::width; ++i) lanes[i] = i < k ? p[i] : fill;
  return V::load(lanes);
}
template <class T> HWY_INLINE void store_some(Vec<T> x, T* p, int64_t k) {
  if (k >= Vec<T>::width) return store(x, p);
  T lanes[Vec<T>::width];
  store(x, lanes);
  for (int64_t i = 0; i < k; ++i) p[i] = lanes[i];
}
template <class T> HWY_INLINE T lane_sum(Vec<T> x) {
  T lanes[Vec<T>::width], total = 0;
  store(x, lanes);
  for (T v : lanes) total += v;
  return total;
}

// Vectors that are added in T before the sum moves on to double.
constexpr int64_t sum_block = 128;

/// Sum of exp(x - m), each stored to y unless y is null.
template <class T> HWY_INLINE double exponentials(const T* x, int64_t n, Vec<T> m, T* y) {
  using V = Vec<T>;
  constexpr int64_t w = V::width;
  double total = 0;
  for (int64_t i = 0; i < n;) {
    V s0 = 0, s1 = 0;
    const int64_t end = std::min(n, i + sum_block * w);
    for (; i + 2 * w <= end; i += 2 * w) {
      const V a = exp(V::load(x + i) - m), b = exp(V::load(x + i + w) - m);
      if (y) {
        store(a, y + i);
        store(b, y + i + w);
      }
      s0 = s0 + a;
      s1 = s1 + b;
    }
    for (; i < end; i += w) {
      const V a = exp(load_some(x + i, n - i, -std::numeric_limits<T>::infinity()) - m);
      if (y) store_some(a, y + i, n - i);
      s0 = s0 + a;
    }
    total += static_cast<double>(lane_sum(s0 + s1));
  }
  return total;
}

template <class T> void forward_row(bool logarithm, const T* x, int64_t n, T* y) {
  using V = Vec<T>;
  constexpr int64_t w = V::width;
  const double high = fold_row<T, Fold::Max>(x, n, T(0));
  const double total = exponentials<T>(x, n, V(high), logarithm ? nullptr : y);
  if (logarithm) {
    const V shift = V(high + std::log(total));
    for (int64_t i = 0; i < n; i += w)
      store_some(load_some(x + i, n - i, T(0)) - shift, y + i, n - i);
  } else {
    const V scale = V(1 / total);
    for (int64_t i = 0; i < n; i += w) {
      const T* from = y + i;
      store_some(load_some(from, n - i, T(0)) * scale, y + i, n - i);
    }
  }
}

template <class T>
HWY_INLINE Vec<T> input_gradient(bool logarithm, Vec<T> g, Vec<T> y, Vec<T> total) {
  return logarithm ? g - exp(y) * total : y * (g - total);
}

template <class T> void backward_row(bool logarithm, const T* g, const T* y, int64_t n, T* dx) {
  using V = Vec<T>;
  constexpr int64_t w = V::width;
  double sum = 0;
  for (int64_t i = 0; i < n;) {
    V s0 = 0, s1 = 0;
    const int64_t end = std::min(n, i + sum_block * w);
    for (; i + 2 * w <= end; i += 2 * w) {
      const V a = V::load(g + i), b = V::load(g + i + w);
      s0 = s0 + (logarithm ? a : a * V::load(y + i));
      s1 = s1 + (logarithm ? b : b * V::load(y + i + w));
    }
    for (; i < end; i += w) {
      const V a = load_some(g + i, n - i, T(0));
      s0 = s0 + (logarithm ? a : a * load_some(y + i, n - i, T(0)));
    }
    sum += static_cast<double>(lane_sum(s0 + s1));
  }
  const V total = V(sum);
  for (int64_t i = 0; i < n; i += w) {
    const V a = load_some(g + i, n - i, T(0)), b = load_some(y + i, n - i, T(0));
    store_some(input_gradient(logarithm, a, b, total), dx + i, n - i);
  }
}

/// The sum of term(i) over i < n, in blocks so that rounding errors stay small.
template <class V, class Term> HWY_INLINE V blocked_sum(int64_t n, const Term& term) {
  V total = 0;
  for (int64_t i = 0; i < n;) {
    V part = 0;
    for (const int64_t end = std::min(n, i + sum_block); i < end; ++i) part = part + term(i);
    total = total + part;
  }
  return total;
}

template <class T>
void forward_columns(bool logarithm, const T* x, int64_t n, int64_t stride, int64_t cols, T* y) {
  using V = Vec<T>;
  for (int64_t j = 0; j < cols; j += V::width) {
    const int64_t k = cols - j;
    const T* from = x + j;
    V m = -HUGE_VAL;
    for (int64_t i = 0; i < n; ++i) m = maximum(m, load_some(from + i * stride, k, T(0)));
    const V s = blocked_sum<V>(n, [&](int64_t i) HWY_ATTR {
      const V e = exp(load_some(from + i * stride, k, T(0)) - m);
      if (!logarithm) store_some(e, y + j + i * stride, k);
      return e;
    });
    const V last = logarithm ? m + log(s) : 1 / s;
    for (int64_t i = 0; i < n; ++i) {
      T* to = y + j + i * stride;
      const V v = logarithm ? load_some(from + i * stride, k, T(0)) - last
                            : load_some(static_cast<const T*>(to), k, T(0)) * last;
      store_some(v, to, k);
    }
  }
}

template <class T>
void backward_columns(bool logarithm, const T* g, const T* y, int64_t n, int64_t stride,
                      int64_t cols, T* dx) {
  using V = Vec<T>;
  for (int64_t j = 0; j < cols; j += V::width) {
    const int64_t k = cols - j;
    const V total = blocked_sum<V>(n, [&](int64_t i) HWY_ATTR {
      const V a = load_some(g + j + i * stride, k, T(0));
      return logarithm ? a : a * load_some(y + j + i * stride, k, T(0));
    });
    for (int64_t i = 0; i < n; ++i) {
      const V a = load_some(g + j + i * stride, k, T(0));
      const V b = load_some(y + j + i * stride, k, T(0));
      store_some(input_gradient(logarithm, a, b, total), dx + j + i * stride, k);
    }
  }
}

template <class T> static const SoftmaxLoops<T>* softmax_table() {
  static constexpr SoftmaxLoops<T> table = {
      .forward_row = forward_row<T>,
      .backward_row = backward_row<T>,
      .forward_columns = forward_columns<T>,
      .backward_columns = backward_columns<T>,
  };
  return &table;
}
static const SoftmaxLoops<float>* softmax_f32() { return softmax_table<float>(); }
static const SoftmaxLoops<double>* softmax_f64() { return softmax_table<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cresset {
namespace {

HWY_EXPORT(softmax_f32);
HWY_EXPORT(softmax_f64);

// Calls row(offset) for every lane, or columns(offset, cols) for blocks of neighbouring lanes.
template <class RowBody, class ColumnBody>
void each_lane(const Tensor& x, int64_t dim, RowBody&& row, ColumnBody&& columns) {
  constexpr int64_t block = 128;
  int64_t outer = 1, inner = 1;
  const int64_t n = x.dim() ? x.size(dim) : 1;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != dim) (d < dim ? outer : inner) *= x.size(d);
  if (outer == 0 || inner == 0 || n == 0) return;
  const int64_t blocks = (inner + block - 1) / block;
  const int64_t work = n * std::min(inner, block);
  parallel_for(0, outer * blocks, 1 + 8192 / work, [&](int64_t lo, int64_t hi) {
    for (int64_t t = lo; t < hi; ++t) {
      if (inner == 1) {
        row(t * n, n);
      } else {
        const int64_t from = t % blocks * block;
        columns(t / blocks * n * inner + from, n, inner, std::min(block, inner - from));
      }
    }
  });
}

template <class T>
void run_forward(const SoftmaxLoops<T>& loops, bool logarithm, const Tensor& x, int64_t dim,
                 const Tensor& y) {
  const T* in = x.data<T>();
  T* out = y.data<T>();
  each_lane(
      x, dim, [&](int64_t at, int64_t n) { loops.forward_row(logarithm, in + at, n, out + at); },
      [&](int64_t at, int64_t n, int64_t stride, int64_t cols) {
        loops.forward_columns(logarithm, in + at, n, stride, cols, out + at);
      });
}

template <class T>
void run_backward(const SoftmaxLoops<T>& loops, bool logarithm, const Tensor& g, const Tensor& y,
                  int64_t dim, const Tensor& dx) {
  const T *pg = g.data<T>(), *py = y.data<T>();
  T* out = dx.data<T>();
  each_lane(
      y, dim,
      [&](int64_t at, int64_t n) { loops.backward_row(logarithm, pg + at, py + at, n, out + at); },
      [&](int64_t at, int64_t n, int64_t stride, int64_t cols) {
        loops.backward_columns(logarithm, pg + at, py + at, n, stride, cols, out + at);
      });
}

void forward(bool logarithm, const Tensor& x, int64_t dim, const Tensor& y) {
  if (x.dtype() == DType::Float32)
    run_forward(*HWY_DYNAMIC_DISPATCH(softmax_f32)(), logarithm, x, dim, y);
  else
    run_forward(*HWY_DYNAMIC_DISPATCH(softmax_f64)(), logarithm, x, dim, y);
}

void backward(bool logarithm, const Tensor& g, const Tensor& y, int64_t dim, const Tensor& dx) {
  if (y.dtype() == DType::Float32)
    run_backward(*HWY_DYNAMIC_DISPATCH(softmax_f32)(), logarithm, g, y, dim, dx);
  else
    run_backward(*HWY_DYNAMIC_DISPATCH(softmax_f64)(), logarithm, g, y, dim, dx);
}

}  // namespace

template <> const SoftmaxKernels& cpu_kernels<SoftmaxKernels>() {
  static constexpr SoftmaxKernels table = {.forward = forward, .backward = backward};
  return table;
}

}  // namespace cresset
#endif
