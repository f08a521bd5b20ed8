// Chooses how a float or double matrix product is computed and splits it over the threads.
#include "core/cpu/gemm.h"

#include <algorithm>

#include "core/cpu/gemm_piece.h"
#include "core/cpu/parallel.h"
#include "core/cpu/workspace.h"

namespace cresset {
namespace {

/// Multiply-adds (about 80 µs) below which waking other threads may cost more than it gains.
constexpr int64_t kParallelWork = 8 << 20;
/// A piece packs its own part of A and B, which repays from this work on.
constexpr int64_t kPieceWork = 32 << 20;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

template <class T> MatrixView<T> transposed(MatrixView<T> x) {
  return {x.data, x.cols, x.rows, x.col_stride, x.row_stride};
}

template <class T> void scale(MatrixView<T> c, T beta) {
  for (int64_t i = 0; i < c.rows; ++i) {
    for (int64_t j = 0; j < c.cols; ++j) {
      T& x = c.data[i * c.row_stride + j * c.col_stride];
      x = beta == T(0) ? T(0) : beta * x;
    }
  }
}

/// How many pieces C is cut into along its rows and columns.
struct Grid {
  int64_t rows, cols;
};

/// The cut into at most `threads` pieces that packs least: every column of pieces packs A once
/// more, every row of pieces packs B once more.
Grid choose_grid(int64_t m, int64_t n, GemmTarget tile, int64_t threads) {
  Grid best{1, 1};
  int64_t best_pieces = 1, best_cost = m + n;
  for (int64_t rows = 1; rows <= threads; ++rows) {
    int64_t r = std::min(rows, ceil_div(m, tile.tile_rows));
    int64_t c = std::min(threads / rows, ceil_div(n, tile.tile_cols));
    int64_t cost = c * m + r * n;
    if (r * c > best_pieces || (r * c == best_pieces && cost < best_cost)) {
      best = {r, c};
      best_pieces = r * c;
      best_cost = cost;
    }
  }
  return best;
}

template <class T> GemmBlocks choose_blocks(int64_t m, int64_t n, int64_t k, GemmTarget tile) {
  constexpr int64_t kRows = 96, kColBytes = 4096, kPanelBytes = 16 << 10;
  const int64_t panel_row = tile.tile_cols * static_cast<int64_t>(sizeof(T));
  const int64_t depth = std::clamp<int64_t>(kPanelBytes / panel_row, 256, 512);
  int64_t cols = std::max<int64_t>(kColBytes / sizeof(T), tile.tile_cols);
  const int64_t rows = kRows / tile.tile_rows * tile.tile_rows;
  return {std::min(rows, m), std::min(round_up(n, tile.tile_cols), cols), std::min(depth, k)};
}

/// The product on the own kernels, with a bias per row of C unless null.
template <class T>
void run_own(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, T alpha, T beta,
             const T* row_bias) {
  const int64_t m = c.rows, n = c.cols, k = a.cols;
  const GemmTarget tile = gemm_target<T>();
  const int64_t work = m * n * k, most = work > kParallelWork ? balanced_pieces() : 1;
  const int64_t least = std::min<int64_t>(most, num_threads());
  const Grid grid = choose_grid(m, n, tile, std::clamp(work / kPieceWork, least, most));
  const int64_t row_tiles = ceil_div(m, tile.tile_rows), col_tiles = ceil_div(n, tile.tile_cols);
  const int64_t piece_m = ceil_div(row_tiles, grid.rows) * tile.tile_rows;
  const int64_t piece_n = ceil_div(col_tiles, grid.cols) * tile.tile_cols;
  // Packing pays once a panel is used several times.
  constexpr int64_t kFewUses = 4;
  const bool direct_a = piece_n <= kFewUses * tile.tile_cols;
  const bool direct_b = b.col_stride == 1 && piece_m <= kFewUses * tile.tile_rows;
  const GemmBlocks blocks = choose_blocks<T>(piece_m, piece_n, k, tile);
  const int64_t a_room = direct_a ? 0 : round_up(blocks.m * blocks.k, 64);
  const int64_t b_room = blocks.k * (direct_b ? tile.tile_cols : blocks.n);
  const int64_t room = round_up(a_room + b_room, 64);
  const int64_t pieces = grid.rows * grid.cols;
  Scratch scratch(static_cast<size_t>(pieces * room) * sizeof(T));
  T* buffer = scratch.as<T>();
  parallel_for(0, pieces, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) {
      const int64_t r = i / grid.cols, s = i % grid.cols;
      const int64_t m0 = r * row_tiles / grid.rows * tile.tile_rows;
      const int64_t m1 = std::min(m, (r + 1) * row_tiles / grid.rows * tile.tile_rows);
      const int64_t n0 = s * col_tiles / grid.cols * tile.tile_cols;
      const int64_t n1 = std::min(n, (s + 1) * col_tiles / grid.cols * tile.tile_cols);
      run_gemm_piece(GemmPiece<T>{a.data + m0 * a.row_stride,
                                  b.data + n0 * b.col_stride,
                                  c.data + m0 * c.row_stride + n0 * c.col_stride,
                                  m1 - m0,
                                  n1 - n0,
                                  k,
                                  a.row_stride,
                                  a.col_stride,
                                  b.row_stride,
                                  b.col_stride,
                                  c.row_stride,
                                  c.col_stride,
                                  alpha,
                                  beta,
                                  blocks,
                                  buffer + i * room,
                                  buffer + i * room + a_room,
                                  direct_a,
                                  direct_b,
                                  row_bias != nullptr ? row_bias + m0 : nullptr});
    }
  });
}

}  // namespace

template <class T>
void gemm_own(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, T alpha, T beta) {
  if (c.rows == 0 || c.cols == 0) return;
  if (a.cols == 0 || alpha == T(0)) return scale(c, beta);
  if (c.col_stride != 1 && c.row_stride == 1) {
    run_own<T>(transposed(b), transposed(a), transposed(c), alpha, beta, nullptr);
  } else {
    run_own<T>(a, b, c, alpha, beta, nullptr);
  }
}

template <class T>
void gemm_own_bias(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c,
                   const T* row_bias) {
  if (c.rows != 0 && c.cols != 0) run_own<T>(a, b, c, T(1), T(0), row_bias);
}

template void gemm_own_bias(MatrixView<const float>, MatrixView<const float>, MatrixView<float>,
                            const float*);
template void gemm_own_bias(MatrixView<const double>, MatrixView<const double>, MatrixView<double>,
                            const double*);
template void gemm_own(MatrixView<const float>, MatrixView<const float>, MatrixView<float>, float,
                       float);
template void gemm_own(MatrixView<const double>, MatrixView<const double>, MatrixView<double>,
                       double, double);

namespace {

/// C with one column as a matrix-vector product; false when neither stride of A is 1.
template <class T>
bool gemv(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, T alpha, T beta) {
  if ((a.col_stride != 1 && a.row_stride != 1) || a.cols == 0 || alpha == T(0)) return false;
  const bool copy_x = b.row_stride != 1;
  Scratch scratch(copy_x ? static_cast<size_t>(b.rows) * sizeof(T) : 0);
  const T* x = b.data;
  if (copy_x) {
    T* packed = scratch.template as<T>();
    for (int64_t p = 0; p < b.rows; ++p) packed[p] = b.data[p * b.row_stride];
    x = packed;
  }
  const int64_t grain = std::max<int64_t>(16, kParallelWork / a.cols);
  parallel_for(0, c.rows, grain, [&](int64_t lo, int64_t hi) {
    run_gemv_piece(GemvPiece<T>{a.data + lo * a.row_stride, x, c.data + lo * c.row_stride, hi - lo,
                                a.cols, a.row_stride, a.col_stride, c.row_stride, alpha, beta});
  });
  return true;
}

template <class T>
bool gemm_vector(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, T alpha, T beta) {
  if (c.cols == 1) return gemv(a, b, c, alpha, beta);
  if (c.rows == 1) return gemv(transposed(b), transposed(a), transposed(c), alpha, beta);
  return false;
}

#if CRESSET_ONEDNN
/// Where oneDNN is faster: measured on AVX-512, it needs work to repay its start, and packs a
/// transposed B (the weight of a linear layer) more slowly for few rows.
bool prefer_onednn(MatrixView<const float> b, MatrixView<float> c) {
  constexpr int64_t kFewRows = 128;
  if (c.rows * c.cols * b.rows <= kParallelWork) return false;
  return b.col_stride == 1 || c.rows > kFewRows;
}

/// Bands of rows of C, each by oneDNN on one thread: sharing them is left to the pool.
void gemm_onednn_bands(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c,
                       float alpha, float beta) {
  constexpr int64_t kBandRows = 32, kBandWork = 2 << 20;
  const int64_t work = c.rows * c.cols * a.cols;
  int64_t bands = 1;
  if (work > kParallelWork) {
    bands = std::min({balanced_pieces(), work / kBandWork, ceil_div(c.rows, kBandRows)});
  }
  parallel_for(0, bands, 1, [&](int64_t lo, int64_t hi) {
    const int64_t first = c.rows * lo / bands, rows = c.rows * hi / bands - first;
    MatrixView<const float> band_a = a;
    MatrixView<float> band_c = c;
    band_a.data += first * a.row_stride;
    band_c.data += first * c.row_stride;
    band_a.rows = band_c.rows = rows;
    if (!gemm_onednn(band_a, b, band_c, alpha, beta)) gemm_own(band_a, b, band_c, alpha, beta);
  });
}
#endif

}  // namespace

void gemm_f32(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c,
              float alpha, float beta) {
  if (gemm_vector(a, b, c, alpha, beta)) return;
#if CRESSET_ONEDNN
  if (c.col_stride != 1 && c.row_stride == 1) {
    return gemm_f32(transposed(b), transposed(a), transposed(c), alpha, beta);
  }
  if (prefer_onednn(b, c)) return gemm_onednn_bands(a, b, c, alpha, beta);
#endif
  gemm_own(a, b, c, alpha, beta);
}

void gemm_f64(MatrixView<const double> a, MatrixView<const double> b, MatrixView<double> c,
              double alpha, double beta) {
  if (gemm_vector(a, b, c, alpha, beta)) return;
  gemm_own(a, b, c, alpha, beta);
}

namespace {

/// One product of a batch as views.
template <class T, class Run> void run_batched(const BatchedGemm<T>& p, Run&& run) {
  auto one = [&](int64_t i) {
    run(MatrixView<const T>{p.a + i * p.a_batch_stride, p.m, p.k, p.a_row_stride, p.a_col_stride},
        MatrixView<const T>{p.b + i * p.b_batch_stride, p.k, p.n, p.b_row_stride, p.b_col_stride},
        MatrixView<T>{p.c + i * p.c_batch_stride, p.m, p.n, p.c_row_stride, p.c_col_stride});
  };
  // Large matrices are split themselves; small ones run whole, each on one thread.
  constexpr int64_t kLargeWork = int64_t{512} * 512 * 512;
  const int64_t work = std::max<int64_t>(1, p.m * p.n * p.k);
  if (work >= kLargeWork && p.batch < 4 * num_threads()) {
    for (int64_t i = 0; i < p.batch; ++i) one(i);
    return;
  }
  parallel_for(0, p.batch, std::max<int64_t>(1, kParallelWork / work), [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) one(i);
  });
}

}  // namespace

void gemm_batched_f32(const BatchedGemm<float>& p) {
  run_batched(p, [&](auto a, auto b, auto c) { gemm_f32(a, b, c, p.alpha, p.beta); });
}

void gemm_batched_f64(const BatchedGemm<double>& p) {
  run_batched(p, [&](auto a, auto b, auto c) { gemm_f64(a, b, c, p.alpha, p.beta); });
}

}  // namespace cresset
