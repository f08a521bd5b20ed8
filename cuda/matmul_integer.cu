// Matrix products of integers, which cuBLAS has not, and scaling of a result.
#include "core/ops/matmul.h"
#include "cuda/device.cuh"
#include "cuda/matmul.h"

namespace cresset::cuda {
namespace {

constexpr int tile = 16;

struct Matrices {
  const void* data;
  int64_t step, row_stride, col_stride;

  explicit Matrices(const Tensor& t)
      : data(data_of(t)),
        step(batch_stride(t)),
        row_stride(t.stride(-2)),
        col_stride(t.stride(-1)) {}
  __device__ int64_t at(int64_t n, int64_t i, int64_t j) const {
    return n * step + i * row_stride + j * col_stride;
  }
};

// One block a tile of c; sums wrap as uint64_t does, and truncate to the dtype.
__global__ void integer_kernel(DType dtype, Matrices a, Matrices b, Matrices c, int64_t m,
                               int64_t n, int64_t k, int64_t tiles, uint64_t alpha, uint64_t beta) {
  __shared__ uint64_t sa[tile][tile], sb[tile][tile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int64_t batch = blockIdx.x / tiles, at = blockIdx.x % tiles, across = (n + tile - 1) / tile;
  const int64_t row = at / across * tile + y, col = at % across * tile + x;
  uint64_t sum = 0;
  for (int64_t from = 0; from < k; from += tile) {
    sa[y][x] =
        row < m && from + x < k ? load_as<int64_t>(a.data, dtype, a.at(batch, row, from + x)) : 0;
    sb[y][x] =
        col < n && from + y < k ? load_as<int64_t>(b.data, dtype, b.at(batch, from + y, col)) : 0;
    __syncthreads();
    for (int i = 0; i < tile; ++i) sum += sa[y][i] * sb[i][x];
    __syncthreads();
  }
  if (row >= m || col >= n) return;
  void* to = const_cast<void*>(c.data);
  const int64_t place = c.at(batch, row, col);
  sum *= alpha;
  if (beta) sum += beta * static_cast<uint64_t>(load_as<int64_t>(to, dtype, place));
  store_as<int64_t>(to, dtype, place, static_cast<int64_t>(sum));
}

template <class A> void scale_as(const Tensor& c, A beta, bool zero) {
  const Matrices to(c);
  const DType dtype = c.dtype();
  const int64_t m = c.size(-2), n = c.size(-1);
  for_each(c.numel(), [=] __device__(int64_t i) {
    const int64_t at = to.at(i / (m * n), i / n % m, i % n);
    void* p = const_cast<void*>(to.data);
    store_as<A>(p, dtype, at, zero ? A(0) : load_as<A>(p, dtype, at) * beta);
  });
}

}  // namespace

void integer_product(const Tensor& a, const Tensor& b, const Tensor& c, int64_t alpha,
                     int64_t beta) {
  const int64_t m = c.size(-2), n = c.size(-1);
  const int64_t tiles = (m + tile - 1) / tile * ((n + tile - 1) / tile);
  integer_kernel<<<static_cast<unsigned>(tiles * batch_count(c)), dim3(tile, tile), 0,
                   current_stream()>>>(c.dtype(), Matrices(a), Matrices(b), Matrices(c), m, n,
                                       a.size(-1), tiles, static_cast<uint64_t>(alpha),
                                       static_cast<uint64_t>(beta));
  check_launch();
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
