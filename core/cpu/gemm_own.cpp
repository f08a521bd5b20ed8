// Own float and double matrix product: packed panels and SIMD register tiles for every target.
// The loop order is that of K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix
// Multiplication", ACM TOMS 34(3), 2008.
#include <algorithm>
#include <cstdint>

#include "core/cpu/gemm.h"
#include "core/cpu/gemm_piece.h"
#include "core/cpu/parallel.h"
#include "core/cpu/workspace.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/gemm_own.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Tile of kRows x kCols elements of C that lives in registers; two vectors wide.
template <class T>
struct TileShape {
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(hn::ScalableTag<T>()));
  static constexpr int kRows = HWY_MAX_BYTES >= 64 ? 12 : HWY_MAX_BYTES >= 32 ? 6 : 4;
  static constexpr int kVecs = 2;
  static constexpr int kCols = kVecs * kLanes;
};

/// Where a tile's result goes and how it is scaled.
template <class T>
struct TileOut {
  T* c;
  int64_t row_stride, col_stride;
  int rows, cols;
  T alpha, beta;
};

/// Stores a tile that is cut off or whose columns are not adjacent; `tile` is kCols wide.
template <class T>
void store_scattered(const T* HWY_RESTRICT tile, const TileOut<T>& out) {
  for (int i = 0; i < out.rows; ++i) {
    const T* from = tile + i * TileShape<T>::kCols;
    T* to = out.c + i * out.row_stride;
    for (int j = 0; j < out.cols; ++j) {
      T& c = to[j * out.col_stride];
      c = out.beta == T(0) ? out.alpha * from[j] : out.alpha * from[j] + out.beta * c;
    }
  }
}

/// out = alpha * A[kR x k] @ B[k x kV vectors] + beta * out. `b` must be readable for whole
/// vectors. Packed A is kR elements for each step of k, else its strides are (a_row, a_col).
template <int kR, int kV, bool kPacked, class T>
void tile(int64_t k, const T* HWY_RESTRICT a, int64_t a_row, int64_t a_col,
          const T* HWY_RESTRICT b, int64_t b_row, const TileOut<T>& out) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kLanes = TileShape<T>::kLanes;
  V acc[kR][kV];
  HWY_UNROLL(16)
  for (int i = 0; i < kR; ++i) {
    HWY_UNROLL(2)
    for (int v = 0; v < kV; ++v) acc[i][v] = hn::Zero(d);
  }
  for (int64_t p = 0; p < k; ++p) {
    V row[kV];
    HWY_UNROLL(2)
    for (int v = 0; v < kV; ++v) row[v] = hn::LoadU(d, b + v * kLanes);
    HWY_UNROLL(16)
    for (int i = 0; i < kR; ++i) {
      const V x = hn::Set(d, kPacked ? a[i] : a[i * a_row]);
      HWY_UNROLL(2)
      for (int v = 0; v < kV; ++v) acc[i][v] = hn::MulAdd(x, row[v], acc[i][v]);
    }
    a += kPacked ? kR : a_col;
    b += b_row;
  }
  if (out.col_stride != 1 || out.cols < kV * kLanes) {
    HWY_ALIGN T spill[kR * TileShape<T>::kCols];
    HWY_UNROLL(16)
    for (int i = 0; i < kR; ++i) {
      HWY_UNROLL(2)
      for (int v = 0; v < kV; ++v) {
        hn::StoreU(acc[i][v], d, spill + i * TileShape<T>::kCols + v * kLanes);
      }
    }
    store_scattered(spill, out);
    return;
  }
  const V alpha = hn::Set(d, out.alpha), beta = hn::Set(d, out.beta);
  HWY_UNROLL(16)
  for (int i = 0; i < kR; ++i) {
    HWY_UNROLL(2)
    for (int v = 0; v < kV; ++v) {
      T* to = out.c + i * out.row_stride + v * kLanes;
      V value = hn::Mul(acc[i][v], alpha);
      if (out.beta != T(0)) value = hn::MulAdd(hn::LoadU(d, to), beta, value);
      hn::StoreU(value, d, to);
    }
  }
}

template <class T>
using TileFn = void (*)(int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b,
                        int64_t b_row, const TileOut<T>& out);

/// The tile function of `rows` rows, found by halving down from the full height.
template <class T, int kV, bool kPacked, int kR = TileShape<T>::kRows>
TileFn<T> tile_of(int rows) {
  if constexpr (kR > 1) {
    if (rows < kR) return tile_of<T, kV, kPacked, kR - 1>(rows);
  }
  return &tile<kR, kV, kPacked, T>;
}

/// dst[p * width + i] = src[i * src_row + p] for i < rows, p < k: packs lines that run along k.
template <class T>
void pack_transposed(const T* HWY_RESTRICT src, int64_t src_row, int rows, int64_t k,
                     T* HWY_RESTRICT dst, int64_t width) {
  int i = 0;
#if HWY_TARGET != HWY_SCALAR
  constexpr int kStep = 16 / sizeof(T);
  const hn::CappedTag<T, kStep> d;
  for (; i + kStep <= rows; i += kStep) {
    const T* from = src + i * src_row;
    T* to = dst + i;
    int64_t p = 0;
    for (; p + kStep <= k; p += kStep) {
      const auto r0 = hn::LoadU(d, from + p), r1 = hn::LoadU(d, from + src_row + p);
      if constexpr (kStep == 2) {
        hn::StoreU(hn::InterleaveLower(d, r0, r1), d, to + p * width);
        hn::StoreU(hn::InterleaveUpper(d, r0, r1), d, to + (p + 1) * width);
      } else {
        const auto r2 = hn::LoadU(d, from + 2 * src_row + p);
        const auto r3 = hn::LoadU(d, from + 3 * src_row + p);
        // Two rounds of interleaving are a 4x4 transpose.
        const auto t0 = hn::InterleaveLower(d, r0, r2), t1 = hn::InterleaveLower(d, r1, r3);
        const auto t2 = hn::InterleaveUpper(d, r0, r2), t3 = hn::InterleaveUpper(d, r1, r3);
        hn::StoreU(hn::InterleaveLower(d, t0, t1), d, to + p * width);
        hn::StoreU(hn::InterleaveUpper(d, t0, t1), d, to + (p + 1) * width);
        hn::StoreU(hn::InterleaveLower(d, t2, t3), d, to + (p + 2) * width);
        hn::StoreU(hn::InterleaveUpper(d, t2, t3), d, to + (p + 3) * width);
      }
    }
    for (; p < k; ++p) {
      for (int r = 0; r < kStep; ++r) to[p * width + r] = from[r * src_row + p];
    }
  }
#endif
  for (; i < rows; ++i) {
    for (int64_t p = 0; p < k; ++p) dst[p * width + i] = src[i * src_row + p];
  }
}

/// Packs `rows` lines of `src` (strides: line, along k) so that step p holds `width` neighbours;
/// lines beyond `rows` are zero.
template <class T>
void pack_panel(const T* HWY_RESTRICT src, int64_t line_stride, int64_t k_stride, int rows,
                int64_t k, T* HWY_RESTRICT dst, int width) {
  if (k_stride == 1 && line_stride != 1) {
    pack_transposed(src, line_stride, rows, k, dst, width);
  } else if (line_stride == 1) {
    const hn::ScalableTag<T> d;
    constexpr int kLanes = TileShape<T>::kLanes;
    for (int64_t p = 0; p < k; ++p) {
      const T* from = src + p * k_stride;
      T* to = dst + p * width;
      int i = 0;
      for (; i + kLanes <= rows; i += kLanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
      for (; i < rows; ++i) to[i] = from[i];
    }
  } else {
    for (int64_t p = 0; p < k; ++p) {
      for (int i = 0; i < rows; ++i) dst[p * width + i] = src[i * line_stride + p * k_stride];
    }
  }
  if (rows == width) return;
  for (int64_t p = 0; p < k; ++p) {
    for (int i = rows; i < width; ++i) dst[p * width + i] = T(0);
  }
}

/// One block [rows x k] @ [k x cols] of a piece, with A and B each packed or used in place.
template <class T>
struct Block {
  const T* a;
  const T* b;
  T* c;
  int64_t rows, cols, k;
  T beta;
};

/// Runs over one packed or direct panel of B with all row strips of the block.
template <class T>
void panel_times_strips(const GemmPiece<T>& g, const Block<T>& block, const T* b, int64_t b_row,
                        int cols, const T* packed_a) {
  using Shape = TileShape<T>;
  const int64_t strips = (block.rows + Shape::kRows - 1) / Shape::kRows;
  TileOut<T> out{nullptr, g.c_row, g.c_col, 0, cols, g.alpha, block.beta};
  for (int64_t s = 0; s < strips; ++s) {
    const int64_t lo = s * block.rows / strips, hi = (s + 1) * block.rows / strips;
    const int rows = static_cast<int>(hi - lo);
    out.c = block.c + lo * g.c_row;
    out.rows = rows;
    const bool narrow = cols <= Shape::kLanes;
    if (packed_a != nullptr) {
      TileFn<T> fn = narrow ? tile_of<T, 1, true>(rows) : tile_of<T, 2, true>(rows);
      fn(block.k, packed_a + lo * block.k, 1, rows, b, b_row, out);
    } else {
      TileFn<T> fn = narrow ? tile_of<T, 1, false>(rows) : tile_of<T, 2, false>(rows);
      fn(block.k, block.a + lo * g.a_row, g.a_row, g.a_col, b, b_row, out);
    }
  }
}

template <class T>
void pack_a_block(const GemmPiece<T>& g, const T* a, int64_t rows, int64_t k, T* packed) {
  constexpr int kRows = TileShape<T>::kRows;
  const int64_t strips = (rows + kRows - 1) / kRows;
  for (int64_t s = 0; s < strips; ++s) {
    const int64_t lo = s * rows / strips, hi = (s + 1) * rows / strips;
    const int count = static_cast<int>(hi - lo);
    pack_panel(a + lo * g.a_row, g.a_row, g.a_col, count, k, packed + lo * k, count);
  }
}

/// Computes the whole piece with the calling thread.
template <class T>
void run_piece(const GemmPiece<T>& g) {
  using Shape = TileShape<T>;
  const GemmBlocks blocks = g.blocks;
  const int64_t k_blocks = (g.k + blocks.k - 1) / blocks.k;
  for (int64_t jc = 0; jc < g.n; jc += blocks.n) {
    const int64_t cols = std::min(blocks.n, g.n - jc);
    for (int64_t kb = 0; kb < k_blocks; ++kb) {
      const int64_t p0 = kb * g.k / k_blocks, k = (kb + 1) * g.k / k_blocks - p0;
      const T* b = g.b + p0 * g.b_row + jc * g.b_col;
      if (!g.direct_b) {
        for (int64_t j = 0; j < cols; j += Shape::kCols) {
          const int width = static_cast<int>(std::min<int64_t>(Shape::kCols, cols - j));
          pack_panel(b + j * g.b_col, g.b_col, g.b_row, width, k, g.packed_b + j * k,
                     Shape::kCols);
        }
      }
      for (int64_t ic = 0; ic < g.m; ic += blocks.m) {
        const int64_t rows = std::min(blocks.m, g.m - ic);
        const Block<T> block{g.a + ic * g.a_row + p0 * g.a_col, b,
                             g.c + ic * g.c_row + jc * g.c_col, rows, cols, k,
                             kb == 0 ? g.beta : T(1)};
        if (!g.direct_a) pack_a_block(g, block.a, rows, k, g.packed_a);
        const T* packed_a = g.direct_a ? nullptr : g.packed_a;
        for (int64_t j = 0; j < cols; j += Shape::kCols) {
          const int width = static_cast<int>(std::min<int64_t>(Shape::kCols, cols - j));
          Block<T> part = block;
          part.c += j * g.c_col;
          if (!g.direct_b) {
            panel_times_strips(g, part, g.packed_b + j * k, Shape::kCols, width, packed_a);
          } else if (width == Shape::kCols || width == Shape::kLanes) {
            panel_times_strips(g, part, b + j, g.b_row, width, packed_a);
          } else {
            // Whole vectors of the last columns would read past the rows of B.
            pack_panel(b + j, 1, g.b_row, width, k, g.packed_b, Shape::kCols);
            panel_times_strips(g, part, g.packed_b, Shape::kCols, width, packed_a);
          }
        }
      }
    }
  }
}

void run_piece_f32(const GemmPiece<float>& g) { run_piece(g); }
void run_piece_f64(const GemmPiece<double>& g) { run_piece(g); }

template <class T>
GemmTarget target_of() {
  return {TileShape<T>::kRows, TileShape<T>::kCols};
}
GemmTarget target_f32() { return target_of<float>(); }
GemmTarget target_f64() { return target_of<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cresset {

HWY_EXPORT(run_piece_f32);
HWY_EXPORT(run_piece_f64);
HWY_EXPORT(target_f32);
HWY_EXPORT(target_f64);

template <>
GemmTarget gemm_target<float>() {
  static const GemmTarget target = HWY_DYNAMIC_DISPATCH(target_f32)();
  return target;
}
template <>
GemmTarget gemm_target<double>() {
  static const GemmTarget target = HWY_DYNAMIC_DISPATCH(target_f64)();
  return target;
}
void run_gemm_piece(const GemmPiece<float>& piece) { HWY_DYNAMIC_DISPATCH(run_piece_f32)(piece); }
void run_gemm_piece(const GemmPiece<double>& piece) {
  HWY_DYNAMIC_DISPATCH(run_piece_f64)(piece);
}

}  // namespace cresset
#endif
