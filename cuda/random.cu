// Random numbers with PyTorch's counters: Philox4x32-10 by cuRAND's device functions.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <curand_kernel.h>

#include "core/ops/ops.h"
#include "core/ops/random.h"
#include "cuda/device.cuh"
#include "cuda/graph.h"
#include "cuda/launch.h"

namespace cresset::cuda {
namespace {

using State = curandStatePhilox4_32_10_t;

// Note [Order of draws]
// As PyTorch does it: blocks of 256 threads, ceil(n / 256) of them but no more than fit on the GPU
// at once. Thread t has stream t of the seed; a draw gives it 4 numbers (2 of 64 bits), for the
// elements t, t + threads, ... So the numbers depend on the GPU's size where n exceeds it. A launch
// moves the offset on by 4 for each draw of a thread.
constexpr unsigned block_threads = 256;

struct Shape {
  unsigned blocks;
  uint64_t draws;
};

Shape shape_of(int64_t n, int per_draw) {
  const int64_t most = int64_t{multiprocessors()} * (threads_per_multiprocessor() / block_threads);
  const int64_t blocks = std::min<int64_t>((n + block_threads - 1) / block_threads, most);
  return {static_cast<unsigned>(blocks),
          static_cast<uint64_t>((n - 1) / (block_threads * blocks * per_draw) + 1)};
}

// What a kernel knows of the distribution, in the type it computes in.
template <class A> struct Numbers {
  Distribution kind;
  A a, b;
};

template <class T, class A> __device__ T cast(A v) { return static_cast<T>(v); }
template <> __device__ __half cast<__half, float>(float v) { return __float2half(v); }
template <> __device__ __nv_bfloat16 cast<__nv_bfloat16, float>(float v) {
  return __float2bfloat16(v);
}
template <> __device__ bool cast<bool, float>(float v) { return v != 0; }
template <class T> __device__ float narrow(T v) { return static_cast<float>(v); }
__device__ double narrow(double v) { return v; }

// cuRAND's uniform numbers lie in (0, 1]; the upper end becomes the lower one.
template <class T, class A> __device__ T from_uniform(A u, const Numbers<A>& p, T low, T high) {
  switch (p.kind) {
    case Distribution::Uniform: {
      const T v = cast<T, A>(u * p.b + p.a);
      return v == high ? low : v;
    }
    case Distribution::Exponential: {
      constexpr A half_eps = sizeof(A) == 4 ? A(5.9604645e-08) : A(1.1102230246251565e-16);
      const A l = u >= A(1) - half_eps ? -half_eps : log(u);
      return cast<T, A>(A(-1) / p.a * l);
    }
    case Distribution::Cauchy: {
      // Away from 0 and 1, whose tangents are not finite.
      constexpr A eps = sizeof(A) == 4 ? A(1.1920929e-07) : A(2.220446049250313e-16);
      const A v = u > A(1) - eps ? A(1) - eps : u < eps ? eps : u;
      return cast<T, A>(p.a + p.b * tan(A(3.14159265358979323846) * (v - A(0.5))));
    }
    case Distribution::Geometric: return cast<T, A>(ceil(log(u) / log1p(-p.a)));
    default: return cast<T, A>(A(u < p.a));
  }
}

template <class T, class A> __device__ T from_normal(A z, const Numbers<A>& p) {
  const A v = z * p.b + p.a;
  return cast<T, A>(p.kind == Distribution::Normal ? v : exp(v));
}

template <class T>
__global__ void fill_real(T* out, int64_t n, PhiloxArgs args, Numbers<float> p, T low, T high) {
  const int64_t threads = int64_t{blockDim.x} * gridDim.x;
  int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  State state;
  curand_init(args.seed_now(), i, args.offset_now(), &state);
  const bool normal = p.kind == Distribution::Normal || p.kind == Distribution::LogNormal;
  for (; i < n; i += 4 * threads) {
    const float4 r = normal ? curand_normal4(&state) : curand_uniform4(&state);
    const float v[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (const int64_t at = i + k * threads; at < n)
        out[at] = normal ? from_normal<T>(v[k], p) : from_uniform<T>(v[k], p, low, high);
  }
}

__global__ void fill_double(double* out, int64_t n, PhiloxArgs args, Numbers<double> p, double low,
                            double high) {
  const int64_t threads = int64_t{blockDim.x} * gridDim.x;
  int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  State state;
  curand_init(args.seed_now(), i, args.offset_now(), &state);
  const bool normal = p.kind == Distribution::Normal || p.kind == Distribution::LogNormal;
  for (; i < n; i += 2 * threads) {
    const double2 r = normal ? curand_normal2_double(&state) : curand_uniform2_double(&state);
    const double v[2] = {r.x, r.y};
#pragma unroll
    for (int k = 0; k < 2; ++k)
      if (const int64_t at = i + k * threads; at < n)
        out[at] = normal ? from_normal<double>(v[k], p) : from_uniform<double>(v[k], p, low, high);
  }
}

// low + draw % range, by 32 bits or, for wide ranges, 64; a range of 0 means all 64 bits.
struct Integers {
  int64_t low;
  uint64_t range;
};

template <class T> __device__ T from_integer(uint64_t v, Integers p) {
  const auto drawn =
      static_cast<int64_t>((p.range ? v % p.range : v) + static_cast<uint64_t>(p.low));
  if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>)
    return cast<T, float>(static_cast<float>(drawn));
  else
    return static_cast<T>(drawn);
}

template <class T, bool wide>
__global__ void fill_integer(T* out, int64_t n, PhiloxArgs args, Integers p) {
  constexpr int per_draw = wide ? 2 : 4;
  const int64_t threads = int64_t{blockDim.x} * gridDim.x;
  int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  State state;
  curand_init(args.seed_now(), i, args.offset_now(), &state);
  for (; i < n; i += per_draw * threads) {
    const uint4 r = curand4(&state);
    const uint32_t v[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
    for (int k = 0; k < per_draw; ++k)
      if (const int64_t at = i + k * threads; at < n) {
        if constexpr (wide)
          out[at] = from_integer<T>(uint64_t{v[2 * k]} << 32 | v[2 * k + 1], p);
        else
          out[at] = from_integer<T>(v[k] % static_cast<uint32_t>(p.range), {p.low, 0});
      }
  }
}

// ---- kernels with a parameter per element

template <class T, class P>
__global__ void fill_by_chance(const P* chance, T* out, int64_t n, PhiloxArgs args) {
  const int64_t t = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (4 * t >= n) return;
  State state;
  curand_init(args.seed_now(), t, args.offset_now(), &state);
  const float4 r = curand_uniform4(&state);
  const float v[4] = {r.x, r.y, r.z, r.w};
  for (int k = 0; k < 4 && 4 * t + k < n; ++k)
    out[4 * t + k] = cast<T, float>(v[k] <= chance[4 * t + k]);
}

template <class T>
__global__ void fill_poisson(const T* rates, T* out, int64_t n, PhiloxArgs args) {
  const int64_t threads = int64_t{blockDim.x} * gridDim.x;
  int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  State state;
  curand_init(args.seed_now(), i, args.offset_now(), &state);
  for (; i < n; i += threads) {
    const double rate = static_cast<double>(narrow(rates[i]));
    out[i] = cast<T, float>(rate > 0 ? static_cast<float>(curand_poisson(&state, rate)) : 0.f);
  }
}

// A thread takes 4 neighbours at a time where n is a multiple of 4, else elements `threads` apart:
// PyTorch's two kernels.
template <class T>
__global__ void drop(const T* x, T* y, bool* mask, int64_t n, float keep, PhiloxArgs args) {
  const int64_t threads = int64_t{blockDim.x} * gridDim.x;
  const int64_t t = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const bool neighbours = n % 4 == 0;
  const int64_t step = neighbours ? 1 : threads;
  const float scale = 1.f / keep;
  State state;
  curand_init(args.seed_now(), t, args.offset_now(), &state);
  for (int64_t i = neighbours ? 4 * t : t; i < n; i += 4 * threads) {
    const float4 r = curand_uniform4(&state);
    const float v[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
    for (int k = 0; k < 4; ++k)
      if (const int64_t at = i + k * step; at < n) {
        const bool kept = v[k] < keep;
        mask[at] = kept;
        if constexpr (sizeof(T) == 8)
          y[at] = kept ? x[at] * (1.0 / static_cast<double>(keep)) : 0.0;
        else
          y[at] = cast<T, float>(kept ? narrow(x[at]) * scale : 0.f);
      }
  }
}

// ---- launching

// The numbers of a distribution; PyTorch rounds the bounds of uniform ones to the dtype first.
template <class T, class A> Numbers<A> numbers_of(const Draw& d, T* low, T* high) {
  *low = static_cast<T>(static_cast<float>(d.a));
  *high = static_cast<T>(static_cast<float>(d.b));
  if constexpr (std::is_same_v<T, double>) *low = d.a, *high = d.b;
  Numbers<A> p{d.kind, static_cast<A>(d.a), static_cast<A>(d.b)};
  if (d.kind == Distribution::Uniform) {
    p.a = static_cast<A>(*low);
    p.b = static_cast<A>(static_cast<T>(static_cast<A>(*high) - static_cast<A>(*low)));
  }
  return p;
}

template <class T> void fill_integers(T* out, int64_t n, const Draw& d, PhiloxGenerator& g) {
  Integers p{d.low, d.range};
  bool wide = d.kind == Distribution::AnyInteger;
  if (d.kind == Distribution::Natural) {
    constexpr bool integral = std::is_integral_v<T>;
    constexpr int digits = integral                    ? std::numeric_limits<T>::digits
                           : sizeof(T) == 8            ? 53
                           : sizeof(T) == 4            ? 24
                           : std::is_same_v<T, __half> ? 11
                                                       : 8;
    p = {0, (uint64_t{1} << digits) + (integral ? 0 : 1)};
    wide = sizeof(T) == 8;
  } else if (!wide) {
    wide = p.range == 0 || p.range >= uint64_t{1} << 28;
  }
  const Shape s = shape_of(n, wide ? 2 : 4);
  const PhiloxArgs args = draw_philox(g, 4 * s.draws);
  if (wide)
    start(fill_integer<T, true>, s.blocks, block_threads, 0, out, n, args, p);
  else
    start(fill_integer<T, false>, s.blocks, block_threads, 0, out, n, args, p);
}

template <class T> void fill_numbers(T* out, int64_t n, const Draw& d, PhiloxGenerator& g) {
  if (d.kind >= Distribution::Integer) return fill_integers(out, n, d, g);
  constexpr bool wide = std::is_same_v<T, double>;
  const Shape s = shape_of(n, wide ? 2 : 4);
  const PhiloxArgs args = draw_philox(g, 4 * s.draws);
  T low, high;
  if constexpr (wide) {
    const Numbers<double> p = numbers_of<T, double>(d, &low, &high);
    start(fill_double, s.blocks, block_threads, 0, out, n, args, p, low, high);
  } else {
    const Numbers<float> p = numbers_of<T, float>(d, &low, &high);
    start(fill_real<T>, s.blocks, block_threads, 0, out, n, args, p, low, high);
  }
}

// Complex numbers are pairs; a normal one has half of the variance in each part.
void fill(const Tensor& out, const Draw& draw, PhiloxGenerator& g) {
  if (!out.is_complex())
    return visit_real(out.dtype(),
                      [&]<class T>() { fill_numbers(data_of<T>(out), out.numel(), draw, g); });
  Draw parts = draw;
  if (parts.kind == Distribution::Normal) parts.b *= 0.70710678118654752440;
  if (out.dtype() == DType::Complex64)
    fill_numbers(data_of<float>(out), 2 * out.numel(), parts, g);
  else
    fill_numbers(data_of<double>(out), 2 * out.numel(), parts, g);
}

void bernoulli(const Tensor& p, const Tensor& out, PhiloxGenerator& g) {
  const int64_t n = out.numel();
  const PhiloxArgs args = draw_philox(g, 12);
  const Tensor chances = p.dtype() == DType::Float64 ? p : ops::to_dtype(p, DType::Float32);
  visit_real(out.dtype(), [&]<class T>() {
    const unsigned blocks = blocks_for(n, 4 * block_threads);
    if (chances.dtype() == DType::Float64)
      start(fill_by_chance<T, double>, blocks, block_threads, 0, data_of<double>(chances),
            data_of<T>(out), n, args);
    else
      start(fill_by_chance<T, float>, blocks, block_threads, 0, data_of<float>(chances),
            data_of<T>(out), n, args);
  });
}

void poisson(const Tensor& rates, const Tensor& out, PhiloxGenerator& g) {
  const int64_t n = out.numel();
  const Shape s = shape_of(n, 1);
  // Rejection draws as often as it must; this is more than it ever needs in practice.
  const PhiloxArgs args = draw_philox(g, 64 * s.draws);
  visit_floating(out.dtype(), [&]<class T>() {
    start(fill_poisson<T>, s.blocks, block_threads, 0, data_of<T>(rates), data_of<T>(out), n, args);
  });
}

void dropout(const Tensor& x, double keep, const Tensor& y, const Tensor& mask,
             PhiloxGenerator& g) {
  const int64_t n = x.numel();
  const Shape s = shape_of(n, 4);
  const PhiloxArgs args = draw_philox(g, 4 * s.draws);
  visit_floating(x.dtype(), [&]<class T>() {
    start(drop<T>, s.blocks, block_threads, 0, data_of<T>(x), data_of<T>(y), data_of<bool>(mask), n,
          static_cast<float>(keep), args);
  });
}

}  // namespace

template <> const RandomKernels& cuda_table<RandomKernels>() {
  static constexpr RandomKernels table = {
      .fill = fill, .bernoulli = bernoulli, .poisson = poisson, .dropout = dropout};
  return table;
}

}  // namespace cresset::cuda
