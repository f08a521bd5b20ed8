// CUDA kernels of softmax and log-softmax: rows in registers or shared memory, columns online.
#include "core/ops/softmax.h"

#include "cuda/rows.cuh"

namespace cresset::cuda {
namespace {

__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }
__device__ __forceinline__ float logarithm_of(float x) { return logf(x); }
__device__ __forceinline__ double logarithm_of(double x) { return log(x); }

template <class A> constexpr A lowest = -std::numeric_limits<A>::infinity();

/// The last step: y = x - (m + log sum), or exp(x - m) / sum.
template <class A> struct Finish {
  bool logarithm;
  A m, shift, scale;
  __device__ Finish(bool log_form, A high, A sum)
      : logarithm(log_form),
        m(high),
        shift(log_form ? high + logarithm_of(sum) : A(0)),
        scale(log_form ? A(1) : 1 / sum) {}
  /// From x, or for a softmax from e = exp(x - m) where it was kept.
  __device__ A operator()(A x) const { return logarithm ? x - shift : exponential(x - m) * scale; }
  __device__ A kept(A x) const { return logarithm ? x - shift : x * scale; }
};
template <class A> __device__ __forceinline__ A gradient(bool logarithm, A g, A y, A total) {
  return logarithm ? g - exponential(y) * total : y * (g - total);
}

// ---- rows

/// The elements of a row that a warp's lane holds: packs of `width`, 32 packs apart, from `row`.
/// Calls f(element, its column) for those with a column below n; packs do not cross it.
template <int per, int width, class F> __device__ __forceinline__ void for_lane(int n, F f) {
#pragma unroll
  for (int k = 0; k < per / width; ++k) {
    const int j = (threadIdx.x + 32 * k) * width;
    if (j < n) f(k * width, j);
  }
}

template <class T, int per, int width>
__global__ void __launch_bounds__(32 * warps_per_block)
    forward_warps(bool logarithm, const T* __restrict__ x, int64_t rows, int n, T* __restrict__ y) {
  using A = Acc<T>;
  using P = Pack<T, width>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * warps_per_block + threadIdx.y;
  if (row >= rows) return;
  A v[per], m = lowest<A>, s = 0;
#pragma unroll
  for (int k = 0; k < per; ++k) v[k] = lowest<A>;
  for_lane<per, width>(n, [&](int at, int j) {
    const P p = *reinterpret_cast<const P*>(x + row * n + j);
#pragma unroll
    for (int e = 0; e < width; ++e) v[at + e] = widen(p.v[e]);
  });
#pragma unroll
  for (int k = 0; k < per; ++k) m = Larger()(v[k], m);
  m = warp_fold(m, Larger());
  for_lane<per, width>(n, [&](int at, int) {
#pragma unroll
    for (int e = 0; e < width; ++e) {
      const A exp_of = exponential(v[at + e] - m);
      s += exp_of;
      if (!logarithm) v[at + e] = exp_of;
    }
  });
  const Finish<A> finish(logarithm, m, warp_fold(s, Plus()));
  for_lane<per, width>(n, [&](int at, int j) {
    P p;
#pragma unroll
    for (int e = 0; e < width; ++e) p.v[e] = narrow<T>(finish.kept(v[at + e]));
    *reinterpret_cast<P*>(y + row * n + j) = p;
  });
}

template <class T, int per, int width>
__global__ void __launch_bounds__(32 * warps_per_block)
    backward_warps(bool logarithm, const T* __restrict__ g, const T* __restrict__ y, int64_t rows,
                   int n, T* __restrict__ dx) {
  using A = Acc<T>;
  using P = Pack<T, width>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * warps_per_block + threadIdx.y;
  if (row >= rows) return;
  A a[per], b[per], s = 0;
  for_lane<per, width>(n, [&](int at, int j) {
    const P pg = *reinterpret_cast<const P*>(g + row * n + j);
    const P py = *reinterpret_cast<const P*>(y + row * n + j);
#pragma unroll
    for (int e = 0; e < width; ++e) {
      a[at + e] = widen(pg.v[e]);
      b[at + e] = widen(py.v[e]);
    }
  });
  for_lane<per, width>(n, [&](int at, int) {
#pragma unroll
    for (int e = 0; e < width; ++e) s += logarithm ? a[at + e] : a[at + e] * b[at + e];
  });
  s = warp_fold(s, Plus());
  for_lane<per, width>(n, [&](int at, int j) {
    P p;
#pragma unroll
    for (int e = 0; e < width; ++e)
      p.v[e] = narrow<T>(gradient(logarithm, a[at + e], b[at + e], s));
    *reinterpret_cast<P*>(dx + row * n + j) = p;
  });
}

extern __shared__ __align__(16) char shared_rows[];

template <class T, int width>
__global__ void forward_blocks(bool logarithm, const T* __restrict__ x, int64_t n, bool keep,
                               T* __restrict__ y) {
  using A = Acc<T>;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * n;
  T* kept = reinterpret_cast<T*>(shared_rows);
  A m = lowest<A>;
  first_pass<width>(x + at, n, keep, kept, [&](A v, int64_t) { m = Larger()(v, m); });
  m = block_fold(m, lowest<A>, Larger());
  // Exponentials are kept in place of their arguments, where the type holds them unrounded.
  const bool keep_exponentials = keep && !logarithm && !is_half_type<T>;
  using P = Pack<T, width>;
  P* packs = reinterpret_cast<P*>(kept);
  const P* again = keep ? packs : reinterpret_cast<const P*>(x + at);
  A s = 0;
  for (int64_t i = threadIdx.x; i < n / width; i += blockDim.x) {
    P p = again[i];
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const A e = exponential(widen(p.v[k]) - m);
      s += e;
      p.v[k] = narrow<T>(e);
    }
    if (keep_exponentials) packs[i] = p;
  }
  const Finish<A> finish(logarithm, m, block_fold(s, A(0), Plus()));
  const T* row = reinterpret_cast<const T*>(again);
  if (keep_exponentials)
    last_pass<width>(row, n, y + at, [&](A v, int64_t) { return finish.kept(v); });
  else
    last_pass<width>(row, n, y + at, [&](A v, int64_t) { return finish(v); });
}

template <class T, int width>
__global__ void backward_blocks(bool logarithm, const T* __restrict__ g, const T* __restrict__ y,
                                int64_t n, bool keep, T* __restrict__ dx) {
  using A = Acc<T>;
  using P = Pack<T, width>;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * n;
  P* kept = reinterpret_cast<P*>(shared_rows);
  const int64_t packs = n / width;
  const P *pg = reinterpret_cast<const P*>(g + at), *py = reinterpret_cast<const P*>(y + at);
  A s = 0;
#pragma unroll 2
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    const P a = pg[i], b = py[i];
    if (keep) {
      kept[i] = a;
      kept[packs + i] = b;
    }
#pragma unroll
    for (int k = 0; k < width; ++k) s += logarithm ? widen(a.v[k]) : widen(a.v[k]) * widen(b.v[k]);
  }
  s = block_fold(s, A(0), Plus());
  P* out = reinterpret_cast<P*>(dx + at);
  for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
    P a = keep ? kept[i] : pg[i];
    const P b = keep ? kept[packs + i] : py[i];
#pragma unroll
    for (int k = 0; k < width; ++k)
      a.v[k] = narrow<T>(gradient(logarithm, widen(a.v[k]), widen(b.v[k]), s));
    out[i] = a;
  }
}

// ---- columns: 32 neighbouring ones per block, 8 threads along each

constexpr int column_threads = 8;

template <class A> struct Online {
  A m, s;
  __device__ void add(A v) {
    const A high = Larger()(v, m);
    if (high == lowest<A> && v == v) {
      s += v == lowest<A> ? A(1) : A(0);  // as if every exp(-inf - -inf) were 1, until one is more
      return;
    }
    s = (m == lowest<A> ? A(0) : s * exponential(m - high)) + exponential(v - high);
    m = high;
  }
  __device__ void merge(const Online& o) {
    const A high = Larger()(m, o.m);
    auto part = [high](const Online& p) {
      return p.m == lowest<A> && p.s == p.s ? A(0) : p.s * exponential(p.m - high);
    };
    if (high == lowest<A>) {
      s += o.s;
      return;
    }
    s = part(*this) + part(o);
    m = high;
  }
};

template <class T>
__global__ void forward_columns(bool logarithm, const T* __restrict__ x, int64_t n, int64_t inner,
                                int64_t blocks, T* __restrict__ y) {
  using A = Acc<T>;
  __shared__ Online<A> parts[column_threads][32];
  const int64_t col = blockIdx.x % blocks * 32 + threadIdx.x;
  const int64_t at = blockIdx.x / blocks * n * inner + col;
  Online<A> own{lowest<A>, A(0)};
  if (col < inner)
    for (int64_t i = threadIdx.y; i < n; i += column_threads) own.add(widen(x[at + i * inner]));
  parts[threadIdx.y][threadIdx.x] = own;
  __syncthreads();
  if (col >= inner) return;
  Online<A> all{lowest<A>, A(0)};
  for (int k = 0; k < column_threads; ++k) all.merge(parts[k][threadIdx.x]);
  // A column of -inf alone has no softmax: -inf - -inf gives NaN below, as in PyTorch.
  const Finish<A> finish(logarithm, all.m, all.s);
  for (int64_t i = threadIdx.y; i < n; i += column_threads)
    y[at + i * inner] = narrow<T>(finish(widen(x[at + i * inner])));
}

template <class T>
__global__ void backward_columns(bool logarithm, const T* __restrict__ g, const T* __restrict__ y,
                                 int64_t n, int64_t inner, int64_t blocks, T* __restrict__ dx) {
  using A = Acc<T>;
  __shared__ A parts[column_threads][32];
  const int64_t col = blockIdx.x % blocks * 32 + threadIdx.x;
  const int64_t at = blockIdx.x / blocks * n * inner + col;
  A s = 0;
  if (col < inner)
    for (int64_t i = threadIdx.y; i < n; i += column_threads) {
      const A a = widen(g[at + i * inner]);
      s += logarithm ? a : a * widen(y[at + i * inner]);
    }
  parts[threadIdx.y][threadIdx.x] = s;
  __syncthreads();
  if (col >= inner) return;
  s = 0;
  for (int k = 0; k < column_threads; ++k) s += parts[k][threadIdx.x];
  for (int64_t i = threadIdx.y; i < n; i += column_threads) {
    const int64_t p = at + i * inner;
    dx[p] = narrow<T>(gradient(logarithm, widen(g[p]), widen(y[p]), s));
  }
}

// ---- launches

/// Dispatches a warp kernel: f.operator()<elements per lane, elements moved as one>().
template <class T, class F> void visit_lanes(int64_t n, bool aligned, F&& f) {
  if (n <= 64)
    f.template operator()<2, 1>();
  else if (n <= 256)
    f.template operator()<8, 1>();
  else if (aligned)
    f.template operator()<32, pack_width<T>>();
  else
    f.template operator()<32, 1>();
}

struct Lanes {
  int64_t outer = 1, n = 1, inner = 1;
  Lanes(const Tensor& t, int64_t dim) {
    for (int64_t d = 0; d < t.dim(); ++d) (d < dim ? outer : d > dim ? inner : n) *= t.size(d);
  }
};

template <class T>
void forward_as(bool logarithm, const Tensor& x, const Lanes& l, const Tensor& y) {
  const T* in = pointer<T>(x);
  T* out = pointer<T>(y);
  cudaStream_t stream = current_stream();
  if (l.inner > 1) {
    const int64_t blocks = (l.inner + 31) / 32;
    forward_columns<T>
        <<<static_cast<unsigned>(l.outer * blocks), dim3(32, column_threads), 0, stream>>>(
            logarithm, in, l.n, l.inner, blocks, out);
  } else if (l.n <= most_warp_row) {
    visit_lanes<T>(l.n, rows_aligned<T>(l.n, {in, out}), [&]<int per, int width>() {
      forward_warps<T, per, width><<<warp_rows_grid(l.outer), warp_rows_block(), 0, stream>>>(
          logarithm, in, l.outer, static_cast<int>(l.n), out);
    });
  } else {
    visit_width<T>(rows_aligned<T>(l.n, {in, out}), [&]<int width>() {
      const RowLaunch r = row_launch<T>(l.n, width, 1);
      allow_shared(forward_blocks<T, width>, r.shared);
      forward_blocks<T, width><<<static_cast<unsigned>(l.outer), r.threads, r.shared, stream>>>(
          logarithm, in, l.n, r.fits, out);
    });
  }
  check_launch();
}

template <class T>
void backward_as(bool logarithm, const Tensor& g, const Tensor& y, const Lanes& l,
                 const Tensor& dx) {
  const T *pg = pointer<T>(g), *py = pointer<T>(y);
  T* out = pointer<T>(dx);
  cudaStream_t stream = current_stream();
  if (l.inner > 1) {
    const int64_t blocks = (l.inner + 31) / 32;
    backward_columns<T>
        <<<static_cast<unsigned>(l.outer * blocks), dim3(32, column_threads), 0, stream>>>(
            logarithm, pg, py, l.n, l.inner, blocks, out);
  } else if (l.n <= most_warp_row) {
    visit_lanes<T>(l.n, rows_aligned<T>(l.n, {pg, py, out}), [&]<int per, int width>() {
      backward_warps<T, per, width><<<warp_rows_grid(l.outer), warp_rows_block(), 0, stream>>>(
          logarithm, pg, py, l.outer, static_cast<int>(l.n), out);
    });
  } else {
    visit_width<T>(rows_aligned<T>(l.n, {pg, py, out}), [&]<int width>() {
      const RowLaunch r = row_launch<T>(l.n, width, 2);
      allow_shared(backward_blocks<T, width>, r.shared);
      backward_blocks<T, width><<<static_cast<unsigned>(l.outer), r.threads, r.shared, stream>>>(
          logarithm, pg, py, l.n, r.fits, out);
    });
  }
  check_launch();
}

void forward(bool logarithm, const Tensor& x, int64_t dim, const Tensor& y) {
  if (x.numel() == 0) return;
  visit_floating(x.dtype(), [&]<class T>() { forward_as<T>(logarithm, x, Lanes(x, dim), y); });
}

void backward(bool logarithm, const Tensor& g, const Tensor& y, int64_t dim, const Tensor& dx) {
  if (y.numel() == 0) return;
  visit_floating(y.dtype(), [&]<class T>() { backward_as<T>(logarithm, g, y, Lanes(y, dim), dx); });
}

}  // namespace

template <> const SoftmaxKernels& cuda_table<SoftmaxKernels>() {
  static constexpr SoftmaxKernels table = {.forward = forward, .backward = backward};
  return table;
}

}  // namespace cresset::cuda
