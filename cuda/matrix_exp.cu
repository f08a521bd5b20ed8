// CUDA kernel of the matrix exponential: Taylor's series of A / 2^s, squared s times; Higham, "The
// scaling and squaring method for the matrix exponential revisited" (2005). One block a matrix.
#include "core/ops/matrix_exp.h"

#include "cuda/device.cuh"

namespace cresset::cuda {
namespace {

__device__ double magnitude(double x) { return fabs(x); }
__device__ double magnitude(Complex<double> z) { return hypot(z.re, z.im); }

/// c = a b factor + (identity, where wanted), for square matrices.
template <class W>
__device__ void multiply(const W* a, const W* b, W* c, int64_t n, double factor, bool identity) {
  for (int64_t e = threadIdx.x; e < n * n; e += blockDim.x) {
    const int64_t i = e / n, j = e - i * n;
    W sum = W(0);
    for (int64_t k = 0; k < n; ++k) sum = sum + a[i * n + k] * b[k * n + j];
    c[e] = sum * W(factor) + W(identity && i == j ? 1 : 0);
  }
  __syncthreads();
}

/// `work` holds three matrices for every one of the batch.
template <class W>
__global__ void exp_kernel(const void* x, void* y, DType dtype, int64_t n, W* work) {
  const int64_t count = n * n, at = blockIdx.x * count;
  W *a = work + 3 * at, *sum = a + count, *next = sum + count;
  double norm = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    double row = 0;
    for (int64_t j = 0; j < n; ++j) row += magnitude(load_as<W>(x, dtype, at + i * n + j));
    norm = row > norm || row != row ? row : norm;
  }
  // A NaN gives no halving, as an infinite norm does.
  const bool bad = __syncthreads_or(!isfinite(norm));
  norm = block_fold(norm, 0.0, Larger());
  const int squarings = bad || norm <= 0.5 ? 0 : static_cast<int>(ceil(log2(norm))) + 1;
  const W scale = W(ldexp(1.0, -squarings));
  for (int64_t e = threadIdx.x; e < count; e += blockDim.x) {
    a[e] = load_as<W>(x, dtype, at + e) * scale;
    sum[e] = W(e % (n + 1) == 0 ? 1 : 0);
  }
  __syncthreads();
  // Horner's scheme; the remainder after 18 terms is below 1e-22.
  for (int k = 18; k > 0; --k) {
    multiply(a, sum, next, n, 1.0 / k, true);
    W* t = sum;
    sum = next;
    next = t;
  }
  for (int s = 0; s < squarings; ++s) {
    multiply(sum, sum, next, n, 1.0, false);
    W* t = sum;
    sum = next;
    next = t;
  }
  for (int64_t e = threadIdx.x; e < count; e += blockDim.x) store_as<W>(y, dtype, at + e, sum[e]);
}

template <class W> void run(const Tensor& x, const Tensor& y) {
  Tensor work = scratch(3 * sizeof(W) * static_cast<size_t>(x.numel()), x.device());
  exp_kernel<W><<<static_cast<unsigned>(x.size(0)), 256, 0, current_stream()>>>(
      data_of(x), data_of(y), x.dtype(), x.size(1), data_of<W>(work));
  check_launch();
}

void matrix_exp(const Tensor& x, const Tensor& y) {
  if (x.numel() == 0) return;
  if (x.is_complex())
    run<Complex<double>>(x, y);
  else
    run<double>(x, y);
}

}  // namespace

template <> const MatrixExpKernels& cuda_table<MatrixExpKernels>() {
  static constexpr MatrixExpKernels table = {.matrix_exp = matrix_exp};
  return table;
}

}  // namespace cresset::cuda
