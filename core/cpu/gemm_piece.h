// The part of a matrix product that one thread computes, between the driver and the SIMD kernels.
#pragma once

#include <cstdint>

namespace cresset {

/// Height and width of a register tile on the processor at hand.
struct GemmTarget {
  int64_t tile_rows, tile_cols;
};

/// Cache blocks: `m` rows of A by `k` stay in the second-level cache, `k` by `n` of B beyond it.
struct GemmBlocks {
  int64_t m, n, k;
};

/// C = alpha * A @ B + beta * C for one rectangle of C, plus `row_bias[i]` in row i unless null;
/// then beta is 0. `packed_a` has room for blocks.m * blocks.k
/// elements and `packed_b` for blocks.k * blocks.n (rounded up to tiles), or one panel if direct.
template <class T> struct GemmPiece {
  const T* a;
  const T* b;
  T* c;
  int64_t m, n, k;
  int64_t a_row, a_col, b_row, b_col, c_row, c_col;
  T alpha, beta;
  GemmBlocks blocks;
  T* packed_a;
  T* packed_b;
  bool direct_a, direct_b;
  const T* row_bias;
};

template <class T> GemmTarget gemm_target();
template <> GemmTarget gemm_target<float>();
template <> GemmTarget gemm_target<double>();

void run_gemm_piece(const GemmPiece<float>& piece);
void run_gemm_piece(const GemmPiece<double>& piece);

/// y = alpha * A @ x + beta * y for adjacent x; one of A's strides is 1.
template <class T> struct GemvPiece {
  const T* a;
  const T* x;
  T* y;
  int64_t rows, k;
  int64_t a_row, a_col, y_stride;
  T alpha, beta;
};

void run_gemv_piece(const GemvPiece<float>& piece);
void run_gemv_piece(const GemvPiece<double>& piece);

}  // namespace cresset
