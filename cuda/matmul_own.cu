// Matrix products without a library: integers, which cuBLAS has not, and products so small that
// its call costs more than the product; and scaling of a result.
#include "core/ops/matmul.h"
#include "cuda/device.cuh"
#include "cuda/matmul.h"

namespace cresset::cuda {
namespace {

/// A block computes side x side elements of c, `depth` terms of their sums at a time.
constexpr int side = 16, depth = 64, threads = side * side;

template <class T> struct SumOf { using Type = Acc<T>; };
template <class T>
requires std::is_integral_v<T>
struct SumOf<T> {
  using Type = uint64_t;
};
/// Sums of integers wrap as uint64_t does, and truncate to the dtype.
template <class T> using Sum = typename SumOf<T>::Type;

template <class T> __device__ __forceinline__ Sum<T> to_sum(T x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<uint64_t>(static_cast<int64_t>(x));
  else
    return widen(x);
}
template <class T> __device__ __forceinline__ T from_sum(Sum<T> x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(x);
  else
    return narrow<T>(x);
}

template <class T> Sum<T> sum_of(const Scalar& s) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<uint64_t>(s.to_int());
  else if constexpr (is_complex_type<T>)
    return Sum<T>(Complex<double>(s.to_complex().real(), s.to_complex().imag()));
  else
    return static_cast<Sum<T>>(s.to_double());
}

template <class T> struct Matrices {
  T* data;
  int64_t step, row_stride, col_stride;

  explicit Matrices(const Tensor& t)
      : data(data_of<T>(t)),
        step(batch_stride(t)),
        row_stride(t.stride(-2)),
        col_stride(t.stride(-1)) {}
  __device__ T& at(int64_t n, int64_t i, int64_t j) const {
    return data[n * step + i * row_stride + j * col_stride];
  }
};

template <class T> struct Product {
  Matrices<T> a, b, c;
  const T* bias;  ///< one per column, or null
  int64_t m, n, k;
  unsigned tiles, across;  ///< tiles of a matrix, and in a row of them
  Sum<T> alpha, beta;
};

// One block a tile. Threads that follow each other read along the dim whose elements do.
template <class T>
__global__ void __launch_bounds__(threads) product_kernel(const __grid_constant__ Product<T> p) {
  __shared__ Sum<T> sa[side][depth + 1], sb[depth][side + 1];
  const int x = threadIdx.x % side, y = threadIdx.x / side;
  const unsigned batch = blockIdx.x / p.tiles, tile = blockIdx.x % p.tiles;
  const int64_t top = int64_t{tile / p.across} * side, left = int64_t{tile % p.across} * side;
  const int64_t row = top + y, col = left + x;
  const bool along_a = p.a.col_stride == 1, along_b = p.b.row_stride == 1;
  Sum<T> sum = Sum<T>(0);
  for (int64_t from = 0; from < p.k; from += depth) {
#pragma unroll
    for (int i = threadIdx.x; i < side * depth; i += threads) {
      const int r = along_a ? i / depth : i % side, d = along_a ? i % depth : i / side;
      const bool inside = top + r < p.m && from + d < p.k;
      sa[r][d] = inside ? to_sum(p.a.at(batch, top + r, from + d)) : Sum<T>(0);
    }
#pragma unroll
    for (int i = threadIdx.x; i < side * depth; i += threads) {
      const int r = along_b ? i / depth : i % side, d = along_b ? i % depth : i / side;
      const bool inside = left + r < p.n && from + d < p.k;
      sb[d][r] = inside ? to_sum(p.b.at(batch, from + d, left + r)) : Sum<T>(0);
    }
    __syncthreads();
    const int terms = p.k - from < depth ? static_cast<int>(p.k - from) : depth;
#pragma unroll 8
    for (int d = 0; d < terms; ++d) sum = sum + sa[y][d] * sb[d][x];
    __syncthreads();
  }
  if (row >= p.m || col >= p.n) return;
  T& to = p.c.at(batch, row, col);
  sum = sum * p.alpha;
  if (p.beta != Sum<T>(0)) sum = sum + p.beta * to_sum(to);
  if (p.bias) sum = sum + to_sum(p.bias[col]);
  to = from_sum<T>(sum);
}

template <class A> void scale_as(const Tensor& c, A beta, bool zero) {
  const int64_t m = c.size(-2), n = c.size(-1);
  const int64_t step = batch_stride(c), row_stride = c.stride(-2), col_stride = c.stride(-1);
  const DType dtype = c.dtype();
  void* p = data_of(c);
  for_each(c.numel(), [=] __device__(int64_t i) {
    const int64_t at = i / (m * n) * step + i / n % m * row_stride + i % n * col_stride;
    store_as<A>(p, dtype, at, zero ? A(0) : load_as<A>(p, dtype, at) * beta);
  });
}

}  // namespace

void own_product(const Tensor& a, const Tensor& b, const Tensor* bias, const Tensor& c,
                 const Scalar& alpha, const Scalar& beta) {
  visit_device(c.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, bool>) {
      fail(ErrorKind::DType, "matmul: no kernel for dtype bool");
    } else {
      const int64_t m = c.size(-2), n = c.size(-1), across = (n + side - 1) / side;
      const int64_t tiles = (m + side - 1) / side * across;
      const Product<T> p = {.a = Matrices<T>(a),
                            .b = Matrices<T>(b),
                            .c = Matrices<T>(c),
                            .bias = bias ? data_of<T>(*bias) : nullptr,
                            .m = m,
                            .n = n,
                            .k = a.size(-1),
                            .tiles = static_cast<unsigned>(tiles),
                            .across = static_cast<unsigned>(across),
                            .alpha = sum_of<T>(alpha),
                            .beta = sum_of<T>(beta)};
      start(product_kernel<T>, static_cast<unsigned>(tiles * batch_count(c)), threads, 0, p);
    }
  });
}

void scale_matrices(const Tensor& c, const Scalar& beta) {
  const bool zero = beta.equals(0);
  if (c.is_complex())
    scale_as(c, Complex<double>(beta.to_complex().real(), beta.to_complex().imag()), zero);
  else if (is_integral(c.dtype(), true))
    scale_as(c, beta.to_int(), zero);
  else
    scale_as(c, beta.to_double(), zero);
}

}  // namespace cresset::cuda
