// CPU kernels of the normalisations with SIMD, for every Highway target.
#include "core/ops/normalization.h"

#include <vector>

#include "core/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/normalization.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/cpu/fold_vec.h"

#ifndef CRESSET_CPU_NORMALIZATION_TYPES
#define CRESSET_CPU_NORMALIZATION_TYPES
namespace cresset {
/// Loops over n contiguous elements; weights, biases and wanted gradients may be null.
template <class T> struct NormalizationLoops {
  void (*moments)(const T* x, int64_t n, double eps, T* mean, T* rstd);
  /// y = (x - mean) rstd w + b.
  void (*apply)(const T* x, int64_t n, T mean, T rstd, const T* w, const T* b, T* y);
  /// dx of one row, and its share of dw and db.
  void (*backward)(const T* g, const T* x, int64_t n, T mean, T rstd, const T* w, T* dx, T* dw,
                   T* db);
  /// y = (x - mean) a + b.
  void (*affine)(const T* x, int64_t n, T mean, T a, T b, T* y);
  /// y = g a + (x - mean) b + d.
  void (*affine2)(const T* g, const T* x, int64_t n, const T* mean, const T* a, const T* b,
                  const T* d, T* y);
  /// Adds the sum of g and of g (x - mean).
  void (*sums)(const T* g, const T* x, int64_t n, T mean, double* sum, double* dot);
  /// The last three for one element of each of n channels.
  void (*affine_each)(const T* x, int64_t n, const T* mean, const T* a, const T* b, T* y);
  void (*affine2_each)(const T* g, const T* x, int64_t n, const T* mean, const T* a, const T* b,
                       const T* d, T* y);
  void (*sums_each)(const T* g, const T* x, int64_t n, const T* mean, double* sum, double* dot);
};
}  // namespace cresset
#endif

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {

/// body(vector type tag, index) over whole vectors, then over single elements.
template <class T, class Body> HWY_INLINE void each_element(int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + Vec<T>::width <= n; i += Vec<T>::width) body(Vec<T>(0), i);
  for (; i < n; ++i) body(Num<T>(0), i);
}

// A scalar of either vector type.
template <class V, class T> HWY_INLINE V splat(T x) { return V(static_cast<double>(x)); }

template <class T> void moments(const T* x, int64_t n, double eps, T* mean, T* rstd) {
  *mean = static_cast<T>(fold_row<T, Fold::Sum>(x, n, T(0)) / static_cast<double>(n));
  const double squares = fold_row<T, Fold::SumDeviations>(x, n, *mean);
  *rstd = static_cast<T>(1 / std::sqrt(squares / static_cast<double>(n) + eps));
}

template <class T> void apply(const T* x, int64_t n, T mean, T rstd, const T* w, const T* b, T* y) {
  each_element<T>(n, [&]<class V>(V, int64_t i) HWY_ATTR {
    V v = (V::load(x + i) - splat<V>(mean)) * splat<V>(rstd);
    if (w) v = v * V::load(w + i);
    if (b) v = v + V::load(b + i);
    store(v, y + i);
  });
}

template <class T>
void backward(const T* g, const T* x, int64_t n, T mean, T rstd, const T* w, T* dx, T* dw, T* db) {
  using V = Vec<T>;
  constexpr int64_t w_ = V::width, block = 128 * w_;
  double sum = 0, dot = 0;
  for (int64_t from = 0; from < n; from += block) {
    V s = 0, d = 0;
    Num<T> s1 = 0, d1 = 0;
    const int64_t m = std::min(block, n - from);
    each_element<T>(m, [&]<class U>(U, int64_t k) HWY_ATTR {
      const int64_t i = from + k;
      const U h = (U::load(x + i) - splat<U>(mean)) * splat<U>(rstd);
      U v = U::load(g + i);
      if (dw) store(U::load(dw + i) + v * h, dw + i);
      if (db) store(U::load(db + i) + v, db + i);
      if (w) v = v * U::load(w + i);
      if constexpr (U::width == 1) {
        s1 = s1 + v;
        d1 = d1 + v * h;
      } else {
        s = s + v;
        d = d + v * h;
      }
    });
    T lanes[2 * w_];
    store(s, lanes);
    store(d, lanes + w_);
    for (int64_t k = 0; k < w_; ++k) {
      sum += static_cast<double>(lanes[k]);
      dot += static_cast<double>(lanes[w_ + k]);
    }
    sum += static_cast<double>(s1.v);
    dot += static_cast<double>(d1.v);
  }
  if (!dx) return;
  const T a = static_cast<T>(sum / static_cast<double>(n));
  const T c = static_cast<T>(dot / static_cast<double>(n));
  each_element<T>(n, [&]<class U>(U, int64_t i) HWY_ATTR {
    const U r = splat<U>(rstd), h = (U::load(x + i) - splat<U>(mean)) * r;
    U v = U::load(g + i);
    if (w) v = v * U::load(w + i);
    store((v - splat<U>(a) - h * splat<U>(c)) * r, dx + i);
  });
}

template <class T> void affine(const T* x, int64_t n, T mean, T a, T b, T* y) {
  each_element<T>(n, [&]<class V>(V, int64_t i) HWY_ATTR {
    store((V::load(x + i) - splat<V>(mean)) * splat<V>(a) + splat<V>(b), y + i);
  });
}

template <class T>
void affine2(const T* g, const T* x, int64_t n, const T* mean, const T* a, const T* b, const T* d,
             T* y) {
  each_element<T>(n, [&]<class V>(V, int64_t i) HWY_ATTR {
    const V h = V::load(x + i) - splat<V>(*mean);
    store(V::load(g + i) * splat<V>(*a) + h * splat<V>(*b) + splat<V>(*d), y + i);
  });
}

template <class T> void sums(const T* g, const T* x, int64_t n, T mean, double* sum, double* dot) {
  using V = Vec<T>;
  constexpr int64_t w = V::width, block = 128 * w;
  const V c = splat<V>(mean);
  int64_t i = 0;
  while (n - i >= w) {
    V s = 0, d = 0, s1 = 0, d1 = 0;
    const int64_t end = i + std::min(n - i, block) / w * w;
    for (; i + 2 * w <= end; i += 2 * w) {
      const V a = V::load(g + i), b = V::load(g + i + w);
      s = s + a;
      d = d + a * (V::load(x + i) - c);
      s1 = s1 + b;
      d1 = d1 + b * (V::load(x + i + w) - c);
    }
    for (; i < end; i += w) {
      const V a = V::load(g + i);
      s = s + a;
      d = d + a * (V::load(x + i) - c);
    }
    T lanes[2 * w];
    store(s + s1, lanes);
    store(d + d1, lanes + w);
    for (int64_t k = 0; k < w; ++k) {
      *sum += static_cast<double>(lanes[k]);
      *dot += static_cast<double>(lanes[w + k]);
    }
  }
  for (; i < n; ++i) {
    *sum += static_cast<double>(g[i]);
    *dot += static_cast<double>(g[i]) * static_cast<double>(x[i] - mean);
  }
}

template <class T>
void affine_each(const T* x, int64_t n, const T* mean, const T* a, const T* b, T* y) {
  each_element<T>(n, [&]<class V>(V, int64_t i) HWY_ATTR {
    store((V::load(x + i) - V::load(mean + i)) * V::load(a + i) + V::load(b + i), y + i);
  });
}

template <class T>
void affine2_each(const T* g, const T* x, int64_t n, const T* mean, const T* a, const T* b,
                  const T* d, T* y) {
  each_element<T>(n, [&]<class V>(V, int64_t i) HWY_ATTR {
    const V h = V::load(x + i) - V::load(mean + i);
    store(V::load(g + i) * V::load(a + i) + h * V::load(b + i) + V::load(d + i), y + i);
  });
}

template <class T>
void sums_each(const T* g, const T* x, int64_t n, const T* mean, double* sum, double* dot) {
  for (int64_t i = 0; i < n; ++i) {
    sum[i] += static_cast<double>(g[i]);
    dot[i] += static_cast<double>(g[i]) * static_cast<double>(x[i] - mean[i]);
  }
}

template <class T> static const NormalizationLoops<T>* normalization_table() {
  static constexpr NormalizationLoops<T> table = {
      .moments = moments<T>,
      .apply = apply<T>,
      .backward = backward<T>,
      .affine = affine<T>,
      .affine2 = affine2<T>,
      .sums = sums<T>,
      .affine_each = affine_each<T>,
      .affine2_each = affine2_each<T>,
      .sums_each = sums_each<T>,
  };
  return &table;
}
static const NormalizationLoops<float>* norm_f32() { return normalization_table<float>(); }
static const NormalizationLoops<double>* norm_f64() { return normalization_table<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cresset {
namespace {

HWY_EXPORT(norm_f32);
HWY_EXPORT(norm_f64);

template <class T> const NormalizationLoops<T>& loops() {
  if constexpr (sizeof(T) == 4)
    return *HWY_DYNAMIC_DISPATCH(norm_f32)();
  else
    return *HWY_DYNAMIC_DISPATCH(norm_f64)();
}

template <class F> void visit_float(const Tensor& t, F&& f) {
  if (t.dtype() == DType::Float32)
    f.template operator()<float>();
  else
    f.template operator()<double>();
}

template <class T> T* data_or_null(const Tensor& t) { return t.defined() ? t.data<T>() : nullptr; }

int64_t rows_grain(int64_t n) { return 1 + 16384 / (n + 1); }

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                const Tensor& y, const Tensor& mean, const Tensor& rstd) {
  const int64_t rows = mean.numel(), n = rows ? x.numel() / rows : 0;
  visit_float(x, [&]<class T>() {
    const auto& f = loops<T>();
    const T *in = x.data<T>(), *w = data_or_null<T>(weight), *b = data_or_null<T>(bias);
    T *out = y.data<T>(), *m = mean.data<T>(), *r = rstd.data<T>();
    parallel_for(0, rows, rows_grain(n), [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) {
        f.moments(in + i * n, n, eps, m + i, r + i);
        f.apply(in + i * n, n, m[i], r[i], w, b, out + i * n);
      }
    });
  });
}

// Weight gradients of a stretch of rows are added up in T for 64 rows, then in double.
template <class T> class WeightSums {
 public:
  WeightSums(int64_t n, bool wanted) : part_(wanted ? n : 0), total_(wanted ? n : 0) {}
  T* part() { return part_.empty() ? nullptr : part_.data(); }
  void flush() {
    for (size_t i = 0; i < part_.size(); ++i) {
      total_[i] += static_cast<double>(part_[i]);
      part_[i] = 0;
    }
  }
  void add_to(std::vector<double>& sum) const {
    for (size_t i = 0; i < total_.size(); ++i) sum[i] += total_[i];
  }

 private:
  std::vector<T> part_;
  std::vector<double> total_;
};

void layer_norm_backward(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                         const Tensor& weight, const Tensor& dx, const Tensor& dweight,
                         const Tensor& dbias) {
  const int64_t rows = mean.numel(), n = rows ? x.numel() / rows : 0;
  const int64_t parts = std::clamp<int64_t>(rows / rows_grain(n), 1, num_threads());
  visit_float(x, [&]<class T>() {
    const auto& f = loops<T>();
    const T *pg = g.data<T>(), *px = x.data<T>(), *w = data_or_null<T>(weight);
    const T *m = mean.data<T>(), *r = rstd.data<T>();
    T* out = data_or_null<T>(dx);
    std::vector<WeightSums<T>> dw(parts, {n, dweight.defined()}), db(parts, {n, dbias.defined()});
    parallel_for(0, parts, 1, [&](int64_t lo, int64_t hi) {
      for (int64_t p = lo; p < hi; ++p) {
        const int64_t first = rows * p / parts, last = rows * (p + 1) / parts;
        for (int64_t i = first; i < last; ++i) {
          f.backward(pg + i * n, px + i * n, n, m[i], r[i], w, out ? out + i * n : nullptr,
                     dw[p].part(), db[p].part());
          if (i % 64 == 63 || i + 1 == last) {
            dw[p].flush();
            db[p].flush();
          }
        }
      }
    });
    auto collect = [&](const std::vector<WeightSums<T>>& sums, const Tensor& to) {
      if (!to.defined()) return;
      std::vector<double> sum(static_cast<size_t>(to.numel()));
      for (const auto& s : sums) s.add_to(sum);
      T* p = to.data<T>();
      for (size_t i = 0; i < sum.size(); ++i) p[i] = static_cast<T>(sum[i]);
    };
    collect(dw, dweight);
    collect(db, dbias);
  });
}

// x as [N, C, L].
struct Channels {
  int64_t c, n, l;
  Channels(const Tensor& x, const Tensor& per_channel) : c(per_channel.numel()) {
    n = x.dim() > 1 ? x.size(0) : 1;
    l = c && n ? x.numel() / (c * n) : 0;
  }
  // segment(offset, channel) for L > 1, else row(offset of C neighbouring channels).
  template <class Segment, class Row> void each(Segment&& segment, Row&& row) const {
    if (l == 0) return;
    if (l == 1) {
      parallel_for(0, n, 1 + 16384 / c, [&](int64_t lo, int64_t hi) {
        for (int64_t i = lo; i < hi; ++i) row(i * c);
      });
    } else {
      parallel_for(0, n * c, 1 + 16384 / l, [&](int64_t lo, int64_t hi) {
        for (int64_t i = lo; i < hi; ++i) segment(i * l, i % c);
      });
    }
  }
};

void channel_affine(const Tensor& x, const Tensor& mean, const Tensor& a, const Tensor& b,
                    const Tensor& y) {
  const Channels shape(x, a);
  visit_float(x, [&]<class T>() {
    const auto& f = loops<T>();
    const T *in = x.data<T>(), *pm = mean.data<T>(), *pa = a.data<T>(), *pb = b.data<T>();
    T* out = y.data<T>();
    shape.each(
        [&](int64_t at, int64_t c) { f.affine(in + at, shape.l, pm[c], pa[c], pb[c], out + at); },
        [&](int64_t at) { f.affine_each(in + at, shape.c, pm, pa, pb, out + at); });
  });
}

void channel_affine2(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& a,
                     const Tensor& b, const Tensor& d, const Tensor& dx) {
  const Channels shape(x, a);
  visit_float(x, [&]<class T>() {
    const auto& f = loops<T>();
    const T *pg = g.data<T>(), *in = x.data<T>(), *pm = mean.data<T>();
    const T *pa = a.data<T>(), *pb = b.data<T>(), *pd = d.data<T>();
    T* out = dx.data<T>();
    shape.each(
        [&](int64_t at, int64_t c) {
          f.affine2(pg + at, in + at, shape.l, pm + c, pa + c, pb + c, pd + c, out + at);
        },
        [&](int64_t at) { f.affine2_each(pg + at, in + at, shape.c, pm, pa, pb, pd, out + at); });
  });
}

void channel_sums(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& sums,
                  const Tensor& dots) {
  const Channels s(x, mean);
  visit_float(x, [&]<class T>() {
    const auto& f = loops<T>();
    const T *pg = g.data<T>(), *in = x.data<T>(), *m = mean.data<T>();
    T *out = sums.data<T>(), *dot = dots.data<T>();
    std::vector<double> total(static_cast<size_t>(2 * s.c));
    double *sum = total.data(), *product = sum + s.c;
    if (s.l == 1) {
      for (int64_t i = 0; i < s.n; ++i)
        f.sums_each(pg + i * s.c, in + i * s.c, s.c, m, sum, product);
    } else {
      parallel_for(0, s.c, 1 + 16384 / (s.n * s.l + 1), [&](int64_t lo, int64_t hi) {
        for (int64_t c = lo; c < hi; ++c)
          for (int64_t i = 0; i < s.n; ++i) {
            const int64_t at = (i * s.c + c) * s.l;
            f.sums(pg + at, in + at, s.l, m[c], sum + c, product + c);
          }
      });
    }
    for (int64_t c = 0; c < s.c; ++c) {
      out[c] = static_cast<T>(sum[c]);
      dot[c] = static_cast<T>(product[c]);
    }
  });
}

}  // namespace

template <> const NormalizationKernels& cpu_kernels<NormalizationKernels>() {
  static constexpr NormalizationKernels table = {
      .layer_norm = layer_norm,
      .layer_norm_backward = layer_norm_backward,
      .channel_affine = channel_affine,
      .channel_affine2 = channel_affine2,
      .channel_sums = channel_sums,
  };
  return table;
}

}  // namespace cresset
#endif
