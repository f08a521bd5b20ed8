// Sums over the rows of a matrix, one per column, in a fixed order: gradients of weights and
// biases.
#pragma once

#include "cuda/device.cuh"

namespace cresset::cuda {

constexpr int column_rows = 8;  ///< threads along the rows; 32 along the columns

/// Sums part `blockIdx.y` of the rows: term(row, column, sums) adds to K sums, which go to
/// out[k] + part * cols.
template <int K, class A, class Term>
__global__ void __launch_bounds__(32 * column_rows)
    column_sums_kernel(int64_t rows, int64_t cols, int64_t rows_per_part, Term term, A* out) {
  __shared__ A parts[K][column_rows][33];
  const int64_t col = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  const int64_t first = blockIdx.y * rows_per_part;
  const int64_t last = first + rows_per_part < rows ? first + rows_per_part : rows;
  A sums[K] = {};
  if (col < cols) {
#pragma unroll 4
    for (int64_t r = first + threadIdx.y; r < last; r += column_rows) term(r, col, sums);
  }
  for (int k = 0; k < K; ++k) parts[k][threadIdx.y][threadIdx.x] = sums[k];
  __syncthreads();
  if (threadIdx.y >= K || col >= cols) return;
  A total = 0;
  for (int i = 0; i < column_rows; ++i) total += parts[threadIdx.y][i][threadIdx.x];
  out[(threadIdx.y * static_cast<int64_t>(gridDim.y) + blockIdx.y) * cols + col] = total;
}

/// Writes finish(k, column, sum) for K sums of every column, in one launch or two.
template <int K, class A, class Term, class Finish>
void column_sums(int64_t rows, int64_t cols, Device device, Term term, Finish finish) {
  if (cols == 0) return;
  const int64_t across = (cols + 31) / 32;
  const int64_t wanted = std::max<int64_t>(1, 4 * multiprocessors() / across);
  const int64_t parts = std::clamp<int64_t>((rows + 63) / 64, 1, wanted);
  const int64_t per_part = std::max<int64_t>(1, (rows + parts - 1) / parts);
  Tensor memory = scratch(sizeof(A) * static_cast<size_t>(K * parts * cols), device);
  A* partial = data_of<A>(memory);
  column_sums_kernel<K, A>
      <<<dim3(static_cast<unsigned>(across), static_cast<unsigned>(parts)), dim3(32, column_rows),
         0, current_stream()>>>(rows, cols, per_part, term, partial);
  check_launch();
  for_each(K * cols, [=] __device__(int64_t i) {
    const int64_t k = i / cols, col = i % cols;
    A total = 0;
    for (int64_t part = 0; part < parts; ++part) total += partial[(k * parts + part) * cols + col];
    finish(static_cast<int>(k), col, total);
  });
}

}  // namespace cresset::cuda
