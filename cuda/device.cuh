// What the CUDA kernels share: element types, launch shapes, reductions, strided walks.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <limits>
#include <span>

#include "core/cpu/strided.h"
#include "core/tensor/tensor.h"
#include "cuda/launch.h"

namespace cresset::cuda {

// ---- element types

/// A complex number on the device, laid out as std::complex.
template <class R> struct Complex {
  using value_type = R;
  R re, im;

  Complex() = default;
  __host__ __device__ constexpr Complex(R x, R y = R(0)) : re(x), im(y) {}
  template <class S>
  __host__ __device__ explicit constexpr Complex(const Complex<S>& z)
      : re(static_cast<R>(z.re)), im(static_cast<R>(z.im)) {}
  friend __host__ __device__ Complex operator+(Complex a, Complex b) {
    return {a.re + b.re, a.im + b.im};
  }
  friend __host__ __device__ Complex operator-(Complex a, Complex b) {
    return {a.re - b.re, a.im - b.im};
  }
  friend __host__ __device__ Complex operator*(Complex a, Complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  /// Smith's method: neither overflows nor underflows where the quotient does not.
  friend __host__ __device__ Complex operator/(Complex a, Complex b) {
    if (fabs(b.re) >= fabs(b.im)) {
      if (b.re == 0 && b.im == 0) return {a.re / b.re, a.im / b.re};
      const R r = b.im / b.re, d = 1 / (b.re + b.im * r);
      return {(a.re + a.im * r) * d, (a.im - a.re * r) * d};
    }
    const R r = b.re / b.im, d = 1 / (b.re * r + b.im);
    return {(a.re * r + a.im) * d, (a.im * r - a.re) * d};
  }
  friend __host__ __device__ bool operator==(Complex a, Complex b) {
    return a.re == b.re && a.im == b.im;
  }
  friend __host__ __device__ bool operator!=(Complex a, Complex b) { return !(a == b); }
};

template <class T> inline constexpr bool is_complex_type = requires { typename T::value_type; };
template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

template <class T> struct AccumulatorOf { using Type = T; };
template <> struct AccumulatorOf<__half> { using Type = float; };
template <> struct AccumulatorOf<__nv_bfloat16> { using Type = float; };
/// What kernels compute in: float for 16-bit floats, else the type itself.
template <class T> using Acc = typename AccumulatorOf<T>::Type;

template <class T> __device__ __forceinline__ Acc<T> widen(T x) {
  if constexpr (std::is_same_v<T, __half>)
    return __half2float(x);
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __bfloat162float(x);
  else
    return x;
}
template <class T> __device__ __forceinline__ T narrow(Acc<T> x) {
  if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(x);
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(x);
  else
    return x;
}

/// Calls f.operator()<T>() with the device's type of a floating dtype.
template <class F> void visit_floating(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32: return f.template operator()<float>();
    case DType::Float64: return f.template operator()<double>();
    case DType::Float16: return f.template operator()<__half>();
    case DType::BFloat16: return f.template operator()<__nv_bfloat16>();
    default: fail(ErrorKind::DType, launching_op(), ": expected a floating dtype, got ", dtype);
  }
}
/// The same for every dtype but complex ones.
template <class F> void visit_real(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Bool: return f.template operator()<bool>();
    case DType::UInt8: return f.template operator()<uint8_t>();
    case DType::Int8: return f.template operator()<int8_t>();
    case DType::Int16: return f.template operator()<int16_t>();
    case DType::Int32: return f.template operator()<int32_t>();
    case DType::Int64: return f.template operator()<int64_t>();
    case DType::Complex64:
    case DType::Complex128:
      fail(ErrorKind::DType, launching_op(), ": expected a real dtype, got ", dtype);
    default: return visit_floating(dtype, std::forward<F>(f));
  }
}
/// The same for every dtype.
template <class F> void visit_device(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Complex64: return f.template operator()<Complex<float>>();
    case DType::Complex128: return f.template operator()<Complex<double>>();
    default: return visit_real(dtype, std::forward<F>(f));
  }
}

/// Element i as A, whatever the dtype: kernels that are instantiated once for many dtypes.
template <class A> __device__ __forceinline__ A load_as(const void* p, DType dtype, int64_t i) {
  if constexpr (is_complex_type<A>) {
    if (dtype == DType::Complex64) return A(static_cast<const Complex<float>*>(p)[i]);
    return A(static_cast<const Complex<double>*>(p)[i]);
  } else {
    switch (dtype) {
      case DType::Bool: return static_cast<A>(static_cast<const bool*>(p)[i]);
      case DType::UInt8: return static_cast<A>(static_cast<const uint8_t*>(p)[i]);
      case DType::Int8: return static_cast<A>(static_cast<const int8_t*>(p)[i]);
      case DType::Int16: return static_cast<A>(static_cast<const int16_t*>(p)[i]);
      case DType::Int32: return static_cast<A>(static_cast<const int32_t*>(p)[i]);
      case DType::Int64: return static_cast<A>(static_cast<const int64_t*>(p)[i]);
      case DType::Float16: return static_cast<A>(__half2float(static_cast<const __half*>(p)[i]));
      case DType::BFloat16:
        return static_cast<A>(__bfloat162float(static_cast<const __nv_bfloat16*>(p)[i]));
      case DType::Float32: return static_cast<A>(static_cast<const float*>(p)[i]);
      default: return static_cast<A>(static_cast<const double*>(p)[i]);
    }
  }
}
template <class A> __device__ __forceinline__ void store_as(void* p, DType dtype, int64_t i, A x) {
  if constexpr (is_complex_type<A>) {
    if (dtype == DType::Complex64)
      static_cast<Complex<float>*>(p)[i] = Complex<float>(x);
    else
      static_cast<Complex<double>*>(p)[i] = Complex<double>(x);
  } else {
    switch (dtype) {
      case DType::Bool: static_cast<bool*>(p)[i] = x != A(0); break;
      case DType::UInt8: static_cast<uint8_t*>(p)[i] = static_cast<uint8_t>(x); break;
      case DType::Int8: static_cast<int8_t*>(p)[i] = static_cast<int8_t>(x); break;
      case DType::Int16: static_cast<int16_t*>(p)[i] = static_cast<int16_t>(x); break;
      case DType::Int32: static_cast<int32_t*>(p)[i] = static_cast<int32_t>(x); break;
      case DType::Int64: static_cast<int64_t*>(p)[i] = static_cast<int64_t>(x); break;
      case DType::Float16:
        static_cast<__half*>(p)[i] = __float2half_rn(static_cast<float>(x));
        break;
      case DType::BFloat16:
        static_cast<__nv_bfloat16*>(p)[i] = __float2bfloat16_rn(static_cast<float>(x));
        break;
      case DType::Float32: static_cast<float*>(p)[i] = static_cast<float>(x); break;
      default: static_cast<double*>(p)[i] = static_cast<double>(x);
    }
  }
}

/// Sixteen bytes, moved as one.
struct alignas(16) Word16 {
  uint64_t half[2];
};
/// Calls f.operator()<T>() with a plain type of `bytes` bytes.
template <class F> void visit_size(size_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    case 8: return f.template operator()<uint64_t>();
    default: return f.template operator()<Word16>();
  }
}

/// The tensor's elements on the current device, or null where it is undefined.
template <class T = void> T* pointer(const Tensor& t) {
  return t.defined() ? data_of<T>(t) : nullptr;
}

// ---- launches

constexpr int block_threads = 256;

/// Throws where the last launch was refused.
inline void check_launch() { CUDA_CHECK(cudaGetLastError()); }

template <class F>
__global__ void __launch_bounds__(block_threads) for_each_kernel(int64_t n, F f) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    f(i);
}

/// Calls f(i) on the device for i in [0, n), one thread each.
template <class F> void for_each(int64_t n, F f) {
  if (n <= 0) return;
  for_each_kernel<<<blocks_for(std::min(n, int64_t{1} << 37), block_threads), block_threads, 0,
                    current_stream()>>>(n, f);
  check_launch();
}

/// Lets a kernel use up to `bytes` of shared memory beyond the 48 KB that every kernel may.
template <class Kernel> void allow_shared(Kernel* kernel, size_t bytes) {
  if (bytes > 48 * 1024)
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)));
}

/// Uninitialised device memory of the current stream's order, given back at the end of its scope.
inline Tensor scratch(size_t bytes, Device device) {
  return empty(Dims{static_cast<int64_t>(std::max<size_t>(bytes, 16))}, {DType::UInt8, device},
               "workspace");
}

// ---- reductions

struct Plus {
  template <class T> __device__ T operator()(T a, T b) const { return a + b; }
};
/// The larger one; a NaN is passed over.
struct Larger {
  template <class T> __device__ T operator()(T a, T b) const { return a < b || a != a ? b : a; }
};
struct Smaller {
  template <class T> __device__ T operator()(T a, T b) const { return b < a || a != a ? b : a; }
};

/// The fold of a warp's values, known to all its lanes.
template <class T, class Op> __device__ __forceinline__ T warp_fold(T v, Op op) {
  for (int d = 16; d > 0; d >>= 1) v = op(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

/// The fold of a block's values (a multiple of 32 threads), known to all its threads.
template <class T, class Op> __device__ T block_fold(T v, T identity, Op op) {
  __shared__ T parts[32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  v = warp_fold(v, op);
  __syncthreads();
  if (lane == 0) parts[warp] = v;
  __syncthreads();
  v = lane < warps ? parts[lane] : identity;
  return warp_fold(v, op);
}

// ---- strided walks

/// A shape and K sets of strides, small enough to be a kernel argument.
template <int K> struct Walks {
  static constexpr int most = 16;
  int dims = 0;
  int64_t sizes[most], strides[K][most];

  /// Offsets, in elements, of row-major element i.
  __device__ __forceinline__ void offsets(int64_t i, int64_t (&at)[K]) const {
    for (int k = 0; k < K; ++k) at[k] = 0;
    for (int d = dims - 1; d > 0; --d) {
      const int64_t rest = i / sizes[d], c = i - rest * sizes[d];
      for (int k = 0; k < K; ++k) at[k] += c * strides[k][d];
      i = rest;
    }
    for (int k = 0; k < K; ++k) at[k] += i * strides[k][0];
  }
};

template <int K> Walks<K> make_walks(const Strided<K>& s) {
  const Strided<K> c = coalesced<K>(s);
  CHECK(c.sizes.size() <= static_cast<size_t>(Walks<K>::most), NotImplemented, launching_op(),
        ": expected tensors of at most 16 dims that cannot be merged, got ", c.sizes.size());
  Walks<K> w;
  w.dims = static_cast<int>(c.sizes.size());
  for (int d = 0; d < w.dims; ++d) {
    w.sizes[d] = c.sizes[d];
    for (int k = 0; k < K; ++k) w.strides[k][d] = c.strides[k][d];
  }
  return w;
}

// ---- small tables from the host

/// Copies bytes to the device by kernel arguments: in stream order, also while a graph is captured.
Tensor upload(const void* bytes, size_t count, Device device);

template <class T> Tensor upload(std::span<const T> values, Device device) {
  return upload(values.data(), values.size_bytes(), device);
}

/// Copies device bytes to the host and waits for them.
void download(void* to, const void* from, size_t bytes);

}  // namespace cresset::cuda
