// CPU kernels of the losses, for every SIMD target.
#include "core/ops/losses.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/losses.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/cpu/vec.h"

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {

constexpr int64_t loss_chunk = 4096;  // elements per piece of work, and per partial sum

/// `count` elements from p, the rest of the vector filled with `padding`.
template <class T> HWY_INLINE Vec<T> load_part(const T* p, int64_t count, T padding) {
  constexpr int width = Vec<T>::width;
  if (count >= width) return Vec<T>::load(p);
  T part[width];
  for (int i = 0; i < width; ++i) part[i] = i < count ? p[i] : padding;
  return Vec<T>::load(part);
}
template <class T> HWY_INLINE void store_part(Vec<T> v, T* p, int64_t count) {
  constexpr int width = Vec<T>::width;
  if (count >= width) {
    store(v, p);
    return;
  }
  T part[width];
  store(v, part);
  std::copy_n(part, count, p);
}
template <class T> HWY_INLINE T lane_sum(Vec<T> v) {
  return hn::GetLane(hn::SumOfLanes(typename Vec<T>::D(), v.v));
}

// ---- rows of scores

/// log sum exp of n neighbouring scores.
template <class T> T row_log_sum_exp(const T* x, int64_t n) {
  using V = Vec<T>;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  V most = lowest;
  for (int64_t i = 0; i < n; i += V::width) most = maximum(most, load_part(x + i, n - i, lowest));
  T lanes[V::width], m = lowest;
  store(most, lanes);
  for (T lane : lanes) m = lane > m || lane != lane ? lane : m;
  if (m == lowest) return lowest;
  if (m == -lowest) return m;
  V sum = 0, shift = static_cast<double>(m);
  for (int64_t i = 0; i < n; i += V::width)
    sum = sum + exp(load_part(x + i, n - i, lowest) - shift);
  return m + std::log(lane_sum(sum));
}

/// log sum exp over c of x[c * stride + lane] for `count` neighbouring lanes.
template <class T>
void column_log_sum_exp(const T* x, int64_t classes, int64_t stride, int64_t count, T* out) {
  using V = Vec<T>;
  const V lowest = -std::numeric_limits<double>::infinity();
  V most = lowest;
  for (int64_t c = 0; c < classes; ++c)
    most = maximum(most, load_part(x + c * stride, count, T(0)));
  const V shift = select(isinf(most), V(0), most);
  V sum = 0;
  for (int64_t c = 0; c < classes; ++c)
    sum = sum + exp(load_part(x + c * stride, count, T(0)) - shift);
  store_part(shift + log(sum), out, count);
}

/// Calls f(n, s, count) on pieces of rows: single rows when inner is 1, else one vector of them.
template <class T, class F> void for_each_rows(const ClassLoss& in, F f) {
  const int64_t width = in.inner == 1 ? 1 : Vec<T>::width;
  const int64_t pieces = (in.inner + width - 1) / width;
  const int64_t grain = std::max<int64_t>(1, loss_chunk / std::max<int64_t>(1, in.classes * width));
  parallel_for(0, in.n * pieces, grain, [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) {
      const int64_t s = i % pieces * width;
      f(i / pieces, s, std::min(width, in.inner - s));
    }
  });
}

template <class T> void log_sum_exp_rows(const ClassLoss& in, T* lse) {
  const T* x = in.scores.data<T>();
  for_each_rows<T>(in, [&](int64_t n, int64_t s, int64_t count) HWY_ATTR {
    const T* first = x + n * in.classes * in.inner + s;
    if (in.inner == 1)
      lse[n] = row_log_sum_exp(first, in.classes);
    else
      column_log_sum_exp(first, in.classes, in.inner, count, lse + n * in.inner + s);
  });
}

/// The weights of a loss: of each class, and their sum.
template <class T> struct ClassWeights {
  const T* w;
  T sum;
  explicit ClassWeights(const ClassLoss& in) : w(nullptr), sum(static_cast<T>(in.classes)) {
    if (!in.weight.defined()) return;
    w = in.weight.data<T>();
    double total = 0;
    for (int64_t c = 0; c < in.classes; ++c) total += static_cast<double>(w[c]);
    sum = static_cast<T>(total);
  }
  T of(int64_t c) const { return w ? w[c] : T(1); }
};

template <class T> void class_loss_of(const ClassLoss& in, const ClassLossOut& out) {
  const ClassWeights<T> weights(in);
  const T* x = in.scores.data<T>();
  const int64_t* target = in.target.data<int64_t>();
  T* lse = in.logits ? out.lse.data<T>() : nullptr;
  if (lse) log_sum_exp_rows(in, lse);
  const T keep = static_cast<T>(1 - in.smoothing);
  const T share = static_cast<T>(in.smoothing / static_cast<double>(in.classes));
  auto row_loss = [&](int64_t n, int64_t s) {
    const int64_t at = n * in.inner + s, t = target[at];
    if (t == in.ignore_index) return T(0);
    const T* first = x + n * in.classes * in.inner + s;
    const T z = lse ? lse[at] : T(0);
    T loss = keep * weights.of(t) * (z - first[t * in.inner]);
    if (share != 0) {
      T smooth = 0;
      for (int64_t c = 0; c < in.classes; ++c) smooth += weights.of(c) * (z - first[c * in.inner]);
      loss += share * smooth;
    }
    return loss;
  };
  T* loss = out.loss.data<T>();
  double sum = 0, total = 0;
  for (int64_t n = 0; n < in.n; ++n)
    for (int64_t s = 0; s < in.inner; ++s) {
      const T value = row_loss(n, s);
      const int64_t at = n * in.inner + s;
      if (out.reduction == Reduction::none) loss[at] = value;
      sum += static_cast<double>(value);
      if (target[at] != in.ignore_index) total += static_cast<double>(weights.of(target[at]));
    }
  if (out.reduction == Reduction::none) return;
  *loss = static_cast<T>(out.reduction == Reduction::mean ? sum / total : sum);
  if (out.total.defined()) *out.total.data<T>() = static_cast<T>(total);
}

template <class T>
void class_loss_backward_of(const ClassLoss& in, const ClassLossOut& saved, const Tensor& grad,
                            const Tensor& dx) {
  using V = Vec<T>;
  const ClassWeights<T> weights(in);
  const T* x = in.scores.data<T>();
  const T* lse = in.logits ? saved.lse.data<T>() : nullptr;
  const T* g = grad.data<T>();
  const T total = saved.reduction == Reduction::mean ? *saved.total.data<T>() : T(1);
  const int64_t* target = in.target.data<int64_t>();
  T* out = dx.data<T>();
  const T keep = static_cast<T>(1 - in.smoothing);
  const T share = static_cast<T>(in.smoothing / static_cast<double>(in.classes));
  for_each_rows<T>(in, [&](int64_t n, int64_t s, int64_t count) HWY_ATTR {
    // Of each row: the factor of softmax, and that of the weights.
    T of_softmax[V::width], of_weights[V::width], of_target[V::width], z[V::width];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = n * in.inner + s + i, t = target[at];
      const bool kept = t != in.ignore_index;
      const T scale = kept ? (saved.reduction == Reduction::none ? g[at] : *g) / total : T(0);
      of_target[i] = kept ? scale * keep * weights.of(t) : T(0);
      of_weights[i] = scale * share;
      of_softmax[i] = of_target[i] + of_weights[i] * weights.sum;
      z[i] = lse ? lse[at] : T(0);
    }
    const int64_t first = n * in.classes * in.inner + s;
    const int64_t run = in.inner == 1 ? in.classes : count;
    const V a = in.inner == 1 ? V(of_softmax[0]) : load_part(of_softmax, count, T(0));
    const V b = in.inner == 1 ? V(of_weights[0]) : load_part(of_weights, count, T(0));
    const V shift = in.inner == 1 ? V(z[0]) : load_part(z, count, T(0));
    auto gradient = [&](V v, V w) HWY_ATTR {
      // An ignored row is exactly 0 even where its scores are not finite.
      const V soft = lse ? select(a == 0, V(0), a * exp(v - shift)) : V(0);
      return soft - b * w;
    };
    if (in.inner == 1) {
      for (int64_t c = 0; c < run; c += V::width) {
        const V w = weights.w ? load_part(weights.w + c, run - c, T(0)) : V(1);
        store_part(gradient(load_part(x + first + c, run - c, T(0)), w), out + first + c, run - c);
      }
    } else {
      for (int64_t c = 0; c < in.classes; ++c) {
        const int64_t at = first + c * in.inner;
        store_part(gradient(load_part(x + at, run, T(0)), V(weights.of(c))), out + at, run);
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t t = target[n * in.inner + s + i];
      if (t != in.ignore_index) out[first + t * in.inner + i] -= of_target[i];
    }
  });
}

// ---- losses of a difference

template <class V> HWY_INLINE V difference_loss(Difference kind, V d, double p) {
  switch (kind) {
    case Difference::squared: return d * d;
    case Difference::absolute: return abs(d);
    case Difference::smooth_l1: return select(abs(d) < p, d * d * (0.5 / p), abs(d) - 0.5 * p);
    default: return select(abs(d) <= p, 0.5 * d * d, p * (abs(d) - 0.5 * p));
  }
}
template <class V> HWY_INLINE V difference_slope(Difference kind, V d, double p) {
  switch (kind) {
    case Difference::squared: return d + d;
    case Difference::absolute: return sign(d);
    case Difference::smooth_l1: return select(abs(d) < p, d / p, sign(d));
    default: return select(abs(d) <= p, d, p * sign(d));
  }
}

template <class T>
void difference_of(Difference kind, double p, Reduction reduction, const Tensor& x, const Tensor& t,
                   const Tensor& out) {
  using V = Vec<T>;
  const T *a = x.data<T>(), *b = t.data<T>();
  T* to = out.data<T>();
  const int64_t n = x.numel(), chunks = (n + loss_chunk - 1) / loss_chunk;
  double few[8];
  std::vector<double> many(chunks > 8 ? static_cast<size_t>(chunks) : 0);
  double* partial = chunks > 8 ? many.data() : few;
  parallel_for(0, chunks, 8, [&](int64_t lo, int64_t hi) HWY_ATTR {
    for (int64_t chunk = lo; chunk < hi; ++chunk) {
      const int64_t end = std::min(n, (chunk + 1) * loss_chunk);
      V sum = 0;
      for (int64_t i = chunk * loss_chunk; i < end; i += V::width) {
        const V d = load_part(a + i, end - i, T(0)) - load_part(b + i, end - i, T(0));
        const V loss = difference_loss(kind, d, p);
        if (reduction == Reduction::none)
          store_part(loss, to + i, end - i);
        else
          sum = sum + loss;
      }
      partial[chunk] = static_cast<double>(lane_sum(sum));
    }
  });
  if (reduction == Reduction::none) return;
  double sum = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += partial[chunk];
  *to = static_cast<T>(reduction == Reduction::mean ? sum / static_cast<double>(n) : sum);
}

template <class T>
void difference_backward_of(Difference kind, double p, Reduction reduction, const Tensor& x,
                            const Tensor& t, const Tensor& grad, const Tensor& dx) {
  using V = Vec<T>;
  const T *a = x.data<T>(), *b = t.data<T>(), *g = grad.data<T>();
  T* to = dx.data<T>();
  const int64_t n = x.numel();
  const bool whole = reduction != Reduction::none;
  const double scale = !whole || n == 0 ? 1
                       : reduction == Reduction::mean
                           ? static_cast<double>(*g) / static_cast<double>(n)
                           : static_cast<double>(*g);
  parallel_for(0, (n + loss_chunk - 1) / loss_chunk, 8, [&](int64_t lo, int64_t hi) HWY_ATTR {
    const int64_t end = std::min(n, hi * loss_chunk);
    for (int64_t i = lo * loss_chunk; i < end; i += V::width) {
      const V d = load_part(a + i, end - i, T(0)) - load_part(b + i, end - i, T(0));
      const V factor = whole ? V(scale) : load_part(g + i, end - i, T(0));
      store_part(factor * difference_slope(kind, d, p), to + i, end - i);
    }
  });
}

// ---- by dtype

template <class F> void by_dtype(const Tensor& t, F f) {
  if (t.dtype() == DType::Float32)
    f(float{});
  else
    f(double{});
}

void log_sum_exp(const ClassLoss& in, const Tensor& lse) {
  by_dtype(in.scores, [&](auto zero) { log_sum_exp_rows(in, lse.data<decltype(zero)>()); });
}
void class_loss(const ClassLoss& in, const ClassLossOut& out) {
  by_dtype(in.scores, [&](auto zero) { class_loss_of<decltype(zero)>(in, out); });
}
void class_loss_backward(const ClassLoss& in, const ClassLossOut& saved, const Tensor& g,
                         const Tensor& dx) {
  by_dtype(in.scores, [&](auto zero) { class_loss_backward_of<decltype(zero)>(in, saved, g, dx); });
}
void difference(Difference kind, double param, Reduction reduction, const Tensor& x,
                const Tensor& t, const Tensor& out) {
  by_dtype(x, [&](auto zero) { difference_of<decltype(zero)>(kind, param, reduction, x, t, out); });
}
void difference_backward(Difference kind, double param, Reduction reduction, const Tensor& x,
                         const Tensor& t, const Tensor& g, const Tensor& dx) {
  by_dtype(x, [&](auto zero) {
    difference_backward_of<decltype(zero)>(kind, param, reduction, x, t, g, dx);
  });
}

static const LossKernels* loss_table() {
  static constexpr LossKernels table = {.log_sum_exp = log_sum_exp,
                                        .class_loss = class_loss,
                                        .class_loss_backward = class_loss_backward,
                                        .difference = difference,
                                        .difference_backward = difference_backward};
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cresset {

HWY_EXPORT(loss_table);

template <> const LossKernels& cpu_kernels<LossKernels>() {
  static const LossKernels* table = HWY_DYNAMIC_DISPATCH(loss_table)();
  return *table;
}

}  // namespace cresset
#endif
