// CUDA kernels of the normalisations over rows and over channels.
#include "core/ops/normalization.h"

#include "cuda/columns.cuh"
#include "cuda/rows.cuh"

namespace cresset::cuda {
namespace {

__device__ __forceinline__ float reciprocal_root(float x) { return 1 / sqrtf(x); }
__device__ __forceinline__ double reciprocal_root(double x) { return 1 / sqrt(x); }

// ---- rows: means and deviations are kept in the accumulator's type

template <class T, int per>
__global__ void __launch_bounds__(32 * warps_per_block)
    layer_norm_warps(const T* __restrict__ x, const T* __restrict__ w, const T* __restrict__ b,
                     double eps, int64_t rows, int n, T* __restrict__ y, Acc<T>* mean,
                     Acc<T>* rstd) {
  using A = Acc<T>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * warps_per_block + threadIdx.y;
  if (row >= rows) return;
  A v[per], s = 0;
#pragma unroll
  for (int k = 0; k < per; ++k) {
    const int j = threadIdx.x + 32 * k;
    v[k] = j < n ? widen(x[row * n + j]) : A(0);
    s += v[k];
  }
  const A m = warp_fold(s, Plus()) / n;
  s = 0;
#pragma unroll
  for (int k = 0; k < per; ++k)
    if (threadIdx.x + 32 * k < n) s += (v[k] - m) * (v[k] - m);
  const A r = reciprocal_root(warp_fold(s, Plus()) / n + static_cast<A>(eps));
  if (threadIdx.x == 0) {
    mean[row] = m;
    rstd[row] = r;
  }
#pragma unroll
  for (int k = 0; k < per; ++k) {
    const int j = threadIdx.x + 32 * k;
    if (j >= n) break;
    A z = (v[k] - m) * r;
    if (w) z *= widen(w[j]);
    if (b) z += widen(b[j]);
    y[row * n + j] = narrow<T>(z);
  }
}

extern __shared__ __align__(16) char shared_rows[];

template <class T, int width>
__global__ void layer_norm_blocks(const T* __restrict__ x, const T* __restrict__ w,
                                  const T* __restrict__ b, double eps, int64_t n, bool keep,
                                  T* __restrict__ y, Acc<T>* mean, Acc<T>* rstd) {
  using A = Acc<T>;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * n;
  T* kept = reinterpret_cast<T*>(shared_rows);
  A s = 0;
  first_pass<width>(x + at, n, keep, kept, [&](A v, int64_t) { s += v; });
  const A m = block_fold(s, A(0), Plus()) / static_cast<A>(n);
  const T* again = keep ? kept : x + at;
  s = 0;
  first_pass<width>(again, n, false, kept, [&](A v, int64_t) { s += (v - m) * (v - m); });
  const A variance = block_fold(s, A(0), Plus()) / static_cast<A>(n);
  const A r = reciprocal_root(variance + static_cast<A>(eps));
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = m;
    rstd[blockIdx.x] = r;
  }
  last_pass<width>(again, n, y + at, [&](A v, int64_t j) {
    A z = (v - m) * r;
    if (w) z *= widen(w[j]);
    if (b) z += widen(b[j]);
    return z;
  });
}

// dx = (v - mean(v) - h mean(v h)) rstd with v = g w and h = (x - mean) rstd.
template <class T, int per>
__global__ void __launch_bounds__(32 * warps_per_block)
    layer_norm_backward_warps(const T* __restrict__ g, const T* __restrict__ x, const Acc<T>* mean,
                              const Acc<T>* rstd, const T* __restrict__ w, int64_t rows, int n,
                              T* __restrict__ dx) {
  using A = Acc<T>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * warps_per_block + threadIdx.y;
  if (row >= rows) return;
  const A m = mean[row], r = rstd[row];
  A v[per], h[per], sum = 0, dot = 0;
#pragma unroll
  for (int k = 0; k < per; ++k) {
    const int j = threadIdx.x + 32 * k;
    v[k] = j < n ? widen(g[row * n + j]) * (w ? widen(w[j]) : A(1)) : A(0);
    h[k] = j < n ? (widen(x[row * n + j]) - m) * r : A(0);
    sum += v[k];
    dot += v[k] * h[k];
  }
  sum = warp_fold(sum, Plus()) / n;
  dot = warp_fold(dot, Plus()) / n;
#pragma unroll
  for (int k = 0; k < per; ++k) {
    const int j = threadIdx.x + 32 * k;
    if (j < n) dx[row * n + j] = narrow<T>((v[k] - sum - h[k] * dot) * r);
  }
}

template <class T, int width>
__global__ void layer_norm_backward_blocks(const T* __restrict__ g, const T* __restrict__ x,
                                           const Acc<T>* mean, const Acc<T>* rstd,
                                           const T* __restrict__ w, int64_t n, bool keep,
                                           T* __restrict__ dx) {
  using A = Acc<T>;
  using P = Pack<T, width>;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * n, packs = n / width;
  const A m = mean[blockIdx.x], r = rstd[blockIdx.x];
  P* kept = reinterpret_cast<P*>(shared_rows);
  const P *pg = reinterpret_cast<const P*>(g + at), *px = reinterpret_cast<const P*>(x + at);
  auto factor = [&](int64_t j) { return w ? widen(w[j]) : A(1); };
  A sum = 0, dot = 0;
#pragma unroll 2
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const P a = pg[i], b = px[i];
    if (keep) {
      kept[i] = a;
      kept[packs + i] = b;
    }
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const A v = widen(a.v[k]) * factor(i * width + k);
      sum += v;
      dot += v * (widen(b.v[k]) - m) * r;
    }
  }
  sum = block_fold(sum, A(0), Plus()) / static_cast<A>(n);
  dot = block_fold(dot, A(0), Plus()) / static_cast<A>(n);
  P* out = reinterpret_cast<P*>(dx + at);
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    P a = keep ? kept[i] : pg[i];
    const P b = keep ? kept[packs + i] : px[i];
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const A v = widen(a.v[k]) * factor(i * width + k);
      a.v[k] = narrow<T>((v - sum - (widen(b.v[k]) - m) * r * dot) * r);
    }
    out[i] = a;
  }
}

template <class T>
void layer_norm_as(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                   const Tensor& y, const Tensor& mean, const Tensor& rstd) {
  const int64_t rows = mean.numel(), n = rows ? x.numel() / rows : 0;
  if (rows == 0) return;
  const T *in = pointer<T>(x), *w = pointer<T>(weight), *b = pointer<T>(bias);
  T* out = pointer<T>(y);
  Acc<T>*m = pointer<Acc<T>>(mean), *r = pointer<Acc<T>>(rstd);
  cudaStream_t stream = current_stream();
  if (n <= most_warp_row) {
    visit_lane_count(n, [&]<int per>() {
      layer_norm_warps<T, per><<<warp_rows_grid(rows), warp_rows_block(), 0, stream>>>(
          in, w, b, eps, rows, static_cast<int>(n), out, m, r);
    });
  } else {
    visit_width<T>(rows_aligned<T>(n, {in, out}), [&]<int width>() {
      const RowLaunch l = row_launch<T>(n, width, 1);
      allow_shared(layer_norm_blocks<T, width>, l.shared);
      layer_norm_blocks<T, width><<<static_cast<unsigned>(rows), l.threads, l.shared, stream>>>(
          in, w, b, eps, n, l.fits, out, m, r);
    });
  }
  check_launch();
}

template <class T>
void layer_norm_input_gradient(const Tensor& g, const Tensor& x, const Tensor& mean,
                               const Tensor& rstd, const Tensor& weight, const Tensor& dx) {
  const int64_t rows = mean.numel(), n = x.numel() / rows;
  const T *pg = pointer<T>(g), *px = pointer<T>(x), *w = pointer<T>(weight);
  const Acc<T>*m = pointer<Acc<T>>(mean), *r = pointer<Acc<T>>(rstd);
  T* out = pointer<T>(dx);
  cudaStream_t stream = current_stream();
  if (n <= most_warp_row) {
    visit_lane_count(n, [&]<int per>() {
      layer_norm_backward_warps<T, per><<<warp_rows_grid(rows), warp_rows_block(), 0, stream>>>(
          pg, px, m, r, w, rows, static_cast<int>(n), out);
    });
  } else {
    visit_width<T>(rows_aligned<T>(n, {pg, px, out}), [&]<int width>() {
      const RowLaunch l = row_launch<T>(n, width, 2);
      allow_shared(layer_norm_backward_blocks<T, width>, l.shared);
      layer_norm_backward_blocks<T, width>
          <<<static_cast<unsigned>(rows), l.threads, l.shared, stream>>>(pg, px, m, r, w, n, l.fits,
                                                                         out);
    });
  }
  check_launch();
}

template <class T>
void layer_norm_weight_gradients(const Tensor& g, const Tensor& x, const Tensor& mean,
                                 const Tensor& rstd, const Tensor& dweight, const Tensor& dbias) {
  using A = Acc<T>;
  const int64_t rows = mean.numel();
  const int64_t n = (dweight.defined() ? dweight : dbias).numel();
  const T *pg = pointer<T>(g), *px = pointer<T>(x);
  const A *m = pointer<A>(mean), *r = pointer<A>(rstd);
  T *dw = pointer<T>(dweight), *db = pointer<T>(dbias);
  column_sums<2, A>(
      rows, n, x.device(),
      [=] __device__(int64_t row, int64_t col, A * sums) {
        const A v = widen(pg[row * n + col]);
        sums[0] += v * (widen(px[row * n + col]) - m[row]) * r[row];
        sums[1] += v;
      },
      [=] __device__(int k, int64_t col, A total) {
        T* to = k == 0 ? dw : db;
        if (to) to[col] = narrow<T>(total);
      });
}

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                const Tensor& y, const Tensor& mean, const Tensor& rstd) {
  visit_floating(x.dtype(),
                 [&]<class T>() { layer_norm_as<T>(x, weight, bias, eps, y, mean, rstd); });
}

void layer_norm_backward(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd,
                         const Tensor& weight, const Tensor& dx, const Tensor& dweight,
                         const Tensor& dbias) {
  visit_floating(x.dtype(), [&]<class T>() {
    if (dx.defined() && x.numel()) layer_norm_input_gradient<T>(g, x, mean, rstd, weight, dx);
    if (dweight.defined() || dbias.defined())
      layer_norm_weight_gradients<T>(g, x, mean, rstd, dweight, dbias);
  });
}

// ---- channels: x is [N, C, L]; parameters per channel are in the accumulator's type

struct Channels {
  int64_t n, c, l;
  bool packs;  ///< whole packs of 4 elements lie in one channel
  Channels(const Tensor& x, const Tensor& per_channel) : c(per_channel.numel()) {
    n = x.dim() > 1 ? x.size(0) : 1;
    l = c && n ? x.numel() / (c * n) : 0;
    packs = l % 4 == 0;
  }
};

template <class T, int width> struct Affine {
  const T* x;
  const Acc<T>*mean, *a, *b;
  T* y;
  int64_t c, l;
  __device__ void operator()(int64_t i) const {
    using P = Pack<T, width>;
    const int64_t k = i * width / l % c;
    P p = reinterpret_cast<const P*>(x)[i];
#pragma unroll
    for (int j = 0; j < width; ++j) p.v[j] = narrow<T>((widen(p.v[j]) - mean[k]) * a[k] + b[k]);
    reinterpret_cast<P*>(y)[i] = p;
  }
};

template <class T, int width> struct Affine2 {
  const T *g, *x;
  const Acc<T>*mean, *a, *b, *d;
  T* dx;
  int64_t c, l;
  __device__ void operator()(int64_t i) const {
    using P = Pack<T, width>;
    const int64_t k = i * width / l % c;
    P p = reinterpret_cast<const P*>(x)[i];
    const P q = reinterpret_cast<const P*>(g)[i];
#pragma unroll
    for (int j = 0; j < width; ++j)
      p.v[j] = narrow<T>(widen(q.v[j]) * a[k] + (widen(p.v[j]) - mean[k]) * b[k] + d[k]);
    reinterpret_cast<P*>(dx)[i] = p;
  }
};

template <class T> bool packed(const Channels& s, std::initializer_list<const void*> pointers) {
  bool ok = s.packs;
  for (const void* p : pointers) ok = ok && reinterpret_cast<uintptr_t>(p) % (4 * sizeof(T)) == 0;
  return ok;
}

void channel_affine(const Tensor& x, const Tensor& mean, const Tensor& a, const Tensor& b,
                    const Tensor& y) {
  const Channels s(x, a);
  if (s.l == 0) return;
  visit_floating(x.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const T* in = pointer<T>(x);
    T* out = pointer<T>(y);
    const A *pm = pointer<A>(mean), *pa = pointer<A>(a), *pb = pointer<A>(b);
    if (packed<T>(s, {in, out}))
      for_each(x.numel() / 4, Affine<T, 4>{in, pm, pa, pb, out, s.c, s.l});
    else
      for_each(x.numel(), Affine<T, 1>{in, pm, pa, pb, out, s.c, s.l});
  });
}

void channel_affine2(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& a,
                     const Tensor& b, const Tensor& d, const Tensor& dx) {
  const Channels s(x, a);
  if (s.l == 0) return;
  visit_floating(x.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const T *pg = pointer<T>(g), *in = pointer<T>(x);
    T* out = pointer<T>(dx);
    const A *pm = pointer<A>(mean), *pa = pointer<A>(a), *pb = pointer<A>(b), *pd = pointer<A>(d);
    if (packed<T>(s, {pg, in, out}))
      for_each(x.numel() / 4, Affine2<T, 4>{pg, in, pm, pa, pb, pd, out, s.c, s.l});
    else
      for_each(x.numel(), Affine2<T, 1>{pg, in, pm, pa, pb, pd, out, s.c, s.l});
  });
}

// Block (channel, part): the planes n = part, part + parts, ... of one channel.
template <class T>
__global__ void channel_sums_kernel(const T* __restrict__ g, const T* __restrict__ x,
                                    const Acc<T>* mean, int64_t n, int64_t c, int64_t l,
                                    Acc<T>* partial) {
  using A = Acc<T>;
  const int64_t channel = blockIdx.x, parts = gridDim.y;
  const A m = mean[channel];
  A sum = 0, dot = 0;
  // All (plane, element) pairs of this part as one range, so that short planes fill the block.
  const int64_t planes = (n - blockIdx.y + parts - 1) / parts;
  for (int64_t i = threadIdx.x; i < planes * l; i += blockDim.x) {
    const int64_t plane = i / l;
    const int64_t at = ((blockIdx.y + plane * parts) * c + channel) * l + (i - plane * l);
    const A v = widen(g[at]);
    sum += v;
    dot += v * (widen(x[at]) - m);
  }
  sum = block_fold(sum, A(0), Plus());
  dot = block_fold(dot, A(0), Plus());
  if (threadIdx.x == 0) {
    partial[blockIdx.y * c + channel] = sum;
    partial[(parts + blockIdx.y) * c + channel] = dot;
  }
}

template <class T>
void channel_sums_as(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& sums,
                     const Tensor& dots) {
  using A = Acc<T>;
  const Channels s(x, mean);
  const int64_t n = s.n, c = s.c, l = s.l;
  const T *pg = pointer<T>(g), *px = pointer<T>(x);
  const A* m = pointer<A>(mean);
  A *out = pointer<A>(sums), *dot = pointer<A>(dots);
  if (l == 1) {
    column_sums<2, A>(
        n, c, x.device(),
        [=] __device__(int64_t row, int64_t col, A * total) {
          const A v = widen(pg[row * c + col]);
          total[0] += v;
          total[1] += v * (widen(px[row * c + col]) - m[col]);
        },
        [=] __device__(int k, int64_t col, A total) { (k == 0 ? out : dot)[col] = total; });
    return;
  }
  const int64_t wanted = std::max<int64_t>(1, 8 * multiprocessors() / std::max<int64_t>(c, 1));
  const int64_t useful = std::max<int64_t>(1, n * l / 2048);
  const int64_t parts = std::max<int64_t>(1, std::min({n, wanted, useful}));
  Tensor memory = scratch(sizeof(A) * static_cast<size_t>(2 * parts * c), x.device());
  A* partial = data_of<A>(memory);
  if (c == 0) return;
  channel_sums_kernel<T>
      <<<dim3(static_cast<unsigned>(c), static_cast<unsigned>(parts)), 256, 0, current_stream()>>>(
          pg, px, m, n, c, l, partial);
  check_launch();
  for_each(2 * c, [=] __device__(int64_t i) {
    const int64_t k = i / c, channel = i % c;
    A total = 0;
    for (int64_t p = 0; p < parts; ++p) total += partial[(k * parts + p) * c + channel];
    (k == 0 ? out : dot)[channel] = total;
  });
}

void channel_sums(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& sums,
                  const Tensor& dots) {
  visit_floating(x.dtype(), [&]<class T>() { channel_sums_as<T>(g, x, mean, sums, dots); });
}

// ---- values per channel of a batch norm

template <class T>
void batch_factors_as(const BatchStatistics& s, const Tensor& rstd, const Tensor& a,
                      const Tensor& b) {
  const T *mean = pointer<T>(s.mean), *variance = pointer<T>(s.variance);
  const T *weight = pointer<T>(s.weight), *bias = pointer<T>(s.bias);
  T *running_mean = pointer<T>(s.running_mean), *running_var = pointer<T>(s.running_var);
  T *pr = pointer<T>(rstd), *pa = pointer<T>(a), *pb = pointer<T>(b);
  const T eps = static_cast<T>(s.eps), momentum = static_cast<T>(s.momentum);
  const T unbiased =
      static_cast<T>(static_cast<double>(s.count) / static_cast<double>(s.count - 1));
  for_each(s.mean.numel(), [=] __device__(int64_t i) {
    const T r = reciprocal_root(variance[i] + eps);
    pr[i] = r;
    pa[i] = weight ? r * weight[i] : r;
    pb[i] = bias ? bias[i] : T(0);
    if (running_mean) running_mean[i] = running_mean[i] * (1 - momentum) + mean[i] * momentum;
    if (running_var)
      running_var[i] = running_var[i] * (1 - momentum) + variance[i] * unbiased * momentum;
  });
}

template <class T>
void batch_slopes_as(const Tensor& rstd, const Tensor& weight, const Tensor& sums,
                     const Tensor& dots, int64_t count, const Tensor& a, const Tensor& slope,
                     const Tensor& shift, const Tensor& dweight) {
  const T *pr = pointer<T>(rstd), *w = pointer<T>(weight), *ps = pointer<T>(sums);
  const T* pd = pointer<T>(dots);
  T *pa = pointer<T>(a), *slopes = pointer<T>(slope), *shifts = pointer<T>(shift);
  T* dw = pointer<T>(dweight);
  const T n = static_cast<T>(count);
  for_each(sums.numel(), [=] __device__(int64_t i) {
    const T r = pr[i], factor = w ? r * w[i] : r;
    pa[i] = factor;
    slopes[i] = -factor * r * r * pd[i] / n;
    shifts[i] = -factor * ps[i] / n;
    dw[i] = pd[i] * r;
  });
}

void batch_factors(const BatchStatistics& s, const Tensor& rstd, const Tensor& a, const Tensor& b) {
  if (rstd.dtype() == DType::Float32)
    batch_factors_as<float>(s, rstd, a, b);
  else
    batch_factors_as<double>(s, rstd, a, b);
}

void batch_slopes(const Tensor& rstd, const Tensor& weight, const Tensor& sums, const Tensor& dots,
                  int64_t count, const Tensor& a, const Tensor& slope, const Tensor& shift,
                  const Tensor& dweight) {
  if (rstd.dtype() == DType::Float32)
    batch_slopes_as<float>(rstd, weight, sums, dots, count, a, slope, shift, dweight);
  else
    batch_slopes_as<double>(rstd, weight, sums, dots, count, a, slope, shift, dweight);
}

}  // namespace

template <> const NormalizationKernels& cuda_table<NormalizationKernels>() {
  static constexpr NormalizationKernels table = {
      .layer_norm = layer_norm,
      .layer_norm_backward = layer_norm_backward,
      .channel_affine = channel_affine,
      .channel_affine2 = channel_affine2,
      .channel_sums = channel_sums,
      .batch_factors = batch_factors,
      .batch_slopes = batch_slopes,
  };
  return table;
}

}  // namespace cresset::cuda
