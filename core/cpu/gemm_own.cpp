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

#include "core/cpu/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// One block [rows x k] @ [k x cols] of a piece, with A and B each packed or used in place.
template <class T> struct Block {
  const T* a;
  const T* b;
  T* c;
  int64_t rows, cols, k;
  T beta;
  const T* bias;
};

/// A strip of kR rows of A times a panel of B; the strip is packed or has A's own strides.
template <int kR, int kV, class T>
void strip_tile(int64_t k, const StridedRows<T>& a, bool packed, const EvenPanel<T>& b,
                const TileOut<T>& out) {
  if (packed && b.distance == TileShape<T>::kCols) {
    tile<kR, kV, T>(k, PackedRows<T, kR>{a.at}, PackedPanel<T>{b.at}, out);
  } else if (packed) {
    tile<kR, kV, T>(k, PackedRows<T, kR>{a.at}, b, out);
  } else {
    tile<kR, kV, T>(k, a, b, out);
  }
}

template <class T>
using TileFn = void (*)(int64_t k, const StridedRows<T>& a, bool packed, const EvenPanel<T>& b,
                        const TileOut<T>& out);

/// The tile function of `rows` rows.
template <class T, int kV, int kR = TileShape<T>::kRows> TileFn<T> tile_of(int rows) {
  if constexpr (kR > 1) {
    if (rows < kR) return tile_of<T, kV, kR - 1>(rows);
  }
  return &strip_tile<kR, kV, T>;
}

/// Calls f(first row, rows) for the strips of a block: as few as tiles allow, of almost equal
/// height.
template <class T, class F> HWY_INLINE void for_strips(int64_t rows, F&& f) {
  constexpr int kRows = TileShape<T>::kRows;
  const int64_t strips = (rows + kRows - 1) / kRows, height = rows / strips, higher = rows % strips;
  int64_t lo = 0;
  for (int64_t s = 0; s < strips; ++s) {
    const int64_t count = height + (s < higher ? 1 : 0);
    f(lo, static_cast<int>(count));
    lo += count;
  }
}

/// Runs over one packed or direct panel of B with all row strips of the block.
template <class T>
void panel_times_strips(const GemmPiece<T>& g, const Block<T>& block, const T* b, int64_t b_row,
                        int cols, const T* packed_a) {
  using Shape = TileShape<T>;
  TileOut<T> out{nullptr, g.c_row, g.c_col, 0, cols, g.alpha, block.beta};
  const bool packed = packed_a != nullptr;
  for_strips<T>(block.rows, [&](int64_t lo, int rows) HWY_ATTR {
    out.c = block.c + lo * g.c_row;
    out.rows = rows;
    out.bias = block.bias != nullptr ? block.bias + lo : nullptr;
    const T* strip = packed ? packed_a + lo * block.k : block.a + lo * g.a_row;
    TileFn<T> fn = cols <= Shape::kLanes ? tile_of<T, 1>(rows) : tile_of<T, 2>(rows);
    fn(block.k, {strip, g.a_row, g.a_col}, packed, {b, b_row}, out);
  });
}

template <class T>
void pack_a_block(const GemmPiece<T>& g, const T* a, int64_t rows, int64_t k, T* packed) {
  for_strips<T>(rows, [&](int64_t lo, int count) HWY_ATTR {
    pack_panel(a + lo * g.a_row, g.a_row, g.a_col, count, k, packed + lo * k, count);
  });
}

template <class T>
void pack_b_block(const GemmPiece<T>& g, const T* b, int64_t cols, int64_t k, T* packed) {
  constexpr int kCols = TileShape<T>::kCols, kPanels = 4;
  int64_t j = 0;
  if (g.b_col == 1) {
    for (; j + kPanels * kCols <= cols; j += kPanels * kCols) {
      pack_panels<kPanels>(b + j, g.b_row, k, packed + j * k);
    }
  }
  for (; j < cols; j += kCols) {
    const int width = static_cast<int>(std::min<int64_t>(kCols, cols - j));
    pack_panel(b + j * g.b_col, g.b_col, g.b_row, width, k, packed + j * k, kCols);
  }
}

/// Computes the whole piece with the calling thread.
template <class T> void run_piece(const GemmPiece<T>& g) {
  using Shape = TileShape<T>;
  const GemmBlocks blocks = g.blocks;
  const int64_t k_blocks = (g.k + blocks.k - 1) / blocks.k;
  for (int64_t jc = 0; jc < g.n; jc += blocks.n) {
    const int64_t cols = std::min(blocks.n, g.n - jc);
    for (int64_t kb = 0; kb < k_blocks; ++kb) {
      const int64_t p0 = kb * g.k / k_blocks, k = (kb + 1) * g.k / k_blocks - p0;
      const T* b = g.b + p0 * g.b_row + jc * g.b_col;
      if (!g.direct_b) pack_b_block(g, b, cols, k, g.packed_b);
      for (int64_t ic = 0; ic < g.m; ic += blocks.m) {
        const int64_t rows = std::min(blocks.m, g.m - ic);
        const T* bias = kb == 0 && g.row_bias != nullptr ? g.row_bias + ic : nullptr;
        const Block<T> block{g.a + ic * g.a_row + p0 * g.a_col,
                             b,
                             g.c + ic * g.c_row + jc * g.c_col,
                             rows,
                             cols,
                             k,
                             kb == 0 ? g.beta : T(1),
                             bias};
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

template <class T> GemmTarget target_of() { return {TileShape<T>::kRows, TileShape<T>::kCols}; }
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

template <> GemmTarget gemm_target<float>() {
  static const GemmTarget target = HWY_DYNAMIC_DISPATCH(target_f32)();
  return target;
}
template <> GemmTarget gemm_target<double>() {
  static const GemmTarget target = HWY_DYNAMIC_DISPATCH(target_f64)();
  return target;
}
void run_gemm_piece(const GemmPiece<float>& piece) { HWY_DYNAMIC_DISPATCH(run_piece_f32)(piece); }
void run_gemm_piece(const GemmPiece<double>& piece) { HWY_DYNAMIC_DISPATCH(run_piece_f64)(piece); }

}  // namespace cresset
#endif
