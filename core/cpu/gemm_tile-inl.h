// Register tiles and panel packing of the own matrix product, compiled once for every target.
#include <cstdint>

#include <hwy/highway.h>

#if defined(CRESSET_CORE_CPU_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRESSET_CORE_CPU_GEMM_TILE_INL_H_
#undef CRESSET_CORE_CPU_GEMM_TILE_INL_H_
#else
#define CRESSET_CORE_CPU_GEMM_TILE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Tile of kRows x kCols elements of C that lives in registers; two vectors wide.
template <class T> struct TileShape {
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(hn::ScalableTag<T>()));
  // WebAssembly: five rows keep the units busy and leave V8 the registers that it needs beside.
  static constexpr int kRows = HWY_MAX_BYTES >= 64      ? 12
                               : HWY_MAX_BYTES >= 32    ? 6
                               : HWY_TARGET == HWY_WASM ? 5
                                                        : 4;
  static constexpr int kVecs = 2;
  static constexpr int kCols = kVecs * kLanes;
};

/// Where a tile's result goes and how it is scaled; `bias`, unless null, is one number per row.
template <class T> struct TileOut {
  T* c;
  int64_t row_stride, col_stride;
  int rows, cols;
  T alpha, beta;
  const T* bias = nullptr;
};

/// `at` less `count` elements, also where that lies before its array.
template <class T> const T* before(const T* at, int64_t count) {
  const auto bytes = static_cast<uintptr_t>(count) * sizeof(T);
  return reinterpret_cast<const T*>(reinterpret_cast<uintptr_t>(at) - bytes);
}

// Cursors over A and B. start() comes first, then for every pass over some steps along k next() for
// each step, with its number in the pass, and end_pass().

/// Rows of A that were packed: kR elements for each step along k.
template <class T, int kR> struct PackedRows {
  static constexpr bool kPacked = true;
  const T* at;
  void start() { at = before(at, kR); }
  void next() { at += kR; }
  T element(int i) const { return at[i]; }
};

/// Rows of A in place.
template <class T> struct StridedRows {
  static constexpr bool kPacked = false;
  const T* at;
  int64_t row, step;
  void start() { at = before(at, step); }
  void next() { at += step; }
  T element(int i) const { return at[i * row]; }
};

/// Rows of B that were packed: kCols elements for each step along k.
template <class T> struct PackedPanel {
  static constexpr int kCols = TileShape<T>::kCols;
  const T* at;
  void start(int skipped) { at = before(at, skipped * kCols); }
  const T* next(int step) const { return at + step * kCols; }
  void end_pass(int steps) { at += steps * kCols; }
};

/// Rows of B at equal distances.
template <class T> struct EvenPanel {
  const T* at;
  int64_t distance;
  void start(int) { at = before(at, distance); }
  const T* next(int) { return at += distance; }
  void end_pass(int) {}
};

/// Rows of B at any distances from one base: a convolution's view of its padded input.
template <class T> struct OffsetPanel {
  const T* base;
  const int64_t* offset;
  void start(int skipped) { offset = before(offset, skipped); }
  const T* next(int step) const { return base + offset[step]; }
  void end_pass(int steps) { offset += steps; }
};

/// Stores a tile whose columns are not adjacent; `tile` is kCols wide.
template <class T> void store_scattered(const T* HWY_RESTRICT tile, const TileOut<T>& out) {
  for (int i = 0; i < out.rows; ++i) {
    const T* from = tile + i * TileShape<T>::kCols;
    T* to = out.c + i * out.row_stride;
    const T bias = out.bias != nullptr ? out.bias[i] : T(0);
    for (int j = 0; j < out.cols; ++j) {
      T& c = to[j * out.col_stride];
      const T value = out.alpha * from[j] + bias;
      c = out.beta == T(0) ? value : value + out.beta * c;
    }
  }
}

/// Stores one vector of a tile, or only its first `count` lanes, and nothing beyond them: other
/// threads may be writing there.
template <class D, class V, class T>
HWY_INLINE void store_scaled(D d, V value, V beta, bool use_c, int count, T* to) {
  constexpr int kLanes = TileShape<T>::kLanes;
  if (count >= kLanes) {
    if (use_c) value = hn::MulAdd(hn::LoadU(d, to), beta, value);
    hn::StoreU(value, d, to);
    return;
  }
#if HWY_MAX_BYTES >= 32
  const auto mask = hn::FirstN(d, static_cast<size_t>(count < 0 ? 0 : count));
  if (use_c) value = hn::MulAdd(hn::MaskedLoad(mask, d, to), beta, value);
  hn::BlendedStore(value, mask, d, to);
#else
  // Without masked stores a blend would write its neighbours back.
  HWY_ALIGN T lanes[kLanes];
  hn::Store(value, d, lanes);
  const T scale = hn::GetLane(beta);
  for (int j = 0; j < count; ++j) to[j] = use_c ? lanes[j] + scale * to[j] : lanes[j];
#endif
}

/// acc += the next column of A times the next row of B.
template <int kR, int kV, class T, class V, class Rows, class Panel>
HWY_INLINE void accumulate_step(Rows& a, Panel& b, int step, V (&acc)[kR][kV]) {
  const hn::ScalableTag<T> d;
  a.next();
  const T* from = b.next(step);
  V row[kV];
  HWY_UNROLL(2)
  for (int v = 0; v < kV; ++v) row[v] = hn::LoadU(d, from + v * TileShape<T>::kLanes);
  HWY_UNROLL(16)
  for (int i = 0; i < kR; ++i) {
    const V x = hn::Set(d, a.element(i));
    HWY_UNROLL(2)
    for (int v = 0; v < kV; ++v) acc[i][v] = hn::MulAdd(x, row[v], acc[i][v]);
  }
}

/// acc += A[kR x k] @ B[k x kV vectors].
template <int kR, int kV, class T, class V, class Rows, class Panel>
HWY_INLINE void accumulate(int64_t k, Rows a, Panel b, V (&acc)[kR][kV]) {
  a.start();
  if constexpr (HWY_TARGET == HWY_WASM && Rows::kPacked) {
    // Four steps a pass: a processor whose decoders serve two threads is short of them. The first
    // pass is entered in the middle, so that paths meet between any two steps: V8 keeps the order
    // of a block that ends where paths meet, while in one long block it would load ahead and spill.
    // Rows in place are left out: of float64 V8 spills an accumulator even so, at half the speed.
    auto entry = static_cast<int32_t>(k & 3);
    b.start(-entry & 3);
    for (auto passes = static_cast<int32_t>((k + 3) >> 2); passes != 0; --passes) {
      switch (entry) {
        default: accumulate_step<kR, kV, T>(a, b, 0, acc); [[fallthrough]];
        case 3: accumulate_step<kR, kV, T>(a, b, 1, acc); [[fallthrough]];
        case 2: accumulate_step<kR, kV, T>(a, b, 2, acc); [[fallthrough]];
        case 1: accumulate_step<kR, kV, T>(a, b, 3, acc);
      }
      b.end_pass(4);
      entry = 0;
      asm("" : "+r"(entry));  // Unknown to the compiler, which would take the first pass apart.
    }
  } else {
    b.start(0);
    for (int64_t p = 0; p < k; ++p) {
      accumulate_step<kR, kV, T>(a, b, 0, acc);
      b.end_pass(1);
    }
  }
}

/// out = alpha * A[kR x k] @ B[k x kV vectors] + bias + beta * out. Rows of B must be readable for
/// whole vectors.
template <int kR, int kV, class T, class Rows, class Panel>
void tile(int64_t k, Rows a, Panel b, const TileOut<T>& out) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int kLanes = TileShape<T>::kLanes;
  V acc[kR][kV];
  HWY_UNROLL(16)
  for (int i = 0; i < kR; ++i) {
    HWY_UNROLL(2)
    for (int v = 0; v < kV; ++v) acc[i][v] = hn::Zero(d);
  }
  accumulate<kR, kV, T>(k, a, b, acc);
  if (out.col_stride != 1) {
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
  const bool use_c = out.beta != T(0);
  if (out.cols == kV * kLanes && out.bias == nullptr) {
    HWY_UNROLL(16)
    for (int i = 0; i < kR; ++i) {
      HWY_UNROLL(2)
      for (int v = 0; v < kV; ++v) {
        T* to = out.c + i * out.row_stride + v * kLanes;
        store_scaled(d, hn::Mul(acc[i][v], alpha), beta, use_c, kLanes, to);
      }
    }
    return;
  }
  HWY_UNROLL(16)
  for (int i = 0; i < kR; ++i) {
    const V bias = hn::Set(d, out.bias != nullptr ? out.bias[i] : T(0));
    HWY_UNROLL(2)
    for (int v = 0; v < kV; ++v) {
      T* to = out.c + i * out.row_stride + v * kLanes;
      store_scaled(d, hn::MulAdd(acc[i][v], alpha, bias), beta, use_c, out.cols - v * kLanes, to);
    }
  }
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
    const T* from = src + i * src_row;
    T* to = dst + i;
    int64_t p = 0;
    for (; p + 4 <= k; p += 4, to += 4 * width) {
      const T x0 = from[p], x1 = from[p + 1], x2 = from[p + 2], x3 = from[p + 3];
      to[0] = x0;
      to[width] = x1;
      to[2 * width] = x2;
      to[3 * width] = x3;
    }
    for (; p < k; ++p, to += width) *to = from[p];
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
      // Two at once: a compiler would make a call of memcpy of single ones.
      for (; i + 2 * kLanes <= rows; i += 2 * kLanes) {
        const auto v0 = hn::LoadU(d, from + i), v1 = hn::LoadU(d, from + i + kLanes);
        hn::StoreU(v0, d, to + i);
        hn::StoreU(v1, d, to + i + kLanes);
      }
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

/// Packs kPanels neighbouring panels whose lines are adjacent at once: panels are narrower than the
/// memory that a read fetches (cache lines, and their neighbours).
template <int kPanels, class T>
void pack_panels(const T* HWY_RESTRICT src, int64_t k_stride, int64_t k, T* HWY_RESTRICT dst) {
  const hn::ScalableTag<T> d;
  constexpr int kLanes = TileShape<T>::kLanes, kCols = TileShape<T>::kCols;
  for (int64_t p = 0; p < k; ++p) {
    const T* from = src + p * k_stride;
    T* to = dst + p * kCols;
    HWY_UNROLL(8)
    for (int i = 0; i < kPanels; ++i) {
      const auto v0 = hn::LoadU(d, from + i * kCols), v1 = hn::LoadU(d, from + i * kCols + kLanes);
      hn::StoreU(v0, d, to + i * k * kCols);
      hn::StoreU(v1, d, to + i * k * kCols + kLanes);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#endif
