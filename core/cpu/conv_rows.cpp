// The SIMD kernel of the direct convolution: output rows as register tiles over offset input rows.
#include <algorithm>
#include <cstdint>

#include "core/cpu/conv_direct.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/conv_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/cpu/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int kR, int kV, class T>
void row_tile(int64_t depth, const T* weights, const OffsetPanel<T>& input, const TileOut<T>& out) {
  tile<kR, kV, T>(depth, PackedRows<T, kR>{weights}, input, out);
}

template <class T>
using RowTileFn = void (*)(int64_t depth, const T* weights, const OffsetPanel<T>& input,
                           const TileOut<T>& out);

template <class T, int kV, int kR = TileShape<T>::kRows> RowTileFn<T> row_tile_of(int rows) {
  if constexpr (kR > 1) {
    if (rows < kR) return row_tile_of<T, kV, kR - 1>(rows);
  }
  return &row_tile<kR, kV, T>;
}

template <class T> void run_band(const ConvBand<T>& band) {
  using Shape = TileShape<T>;
  const int64_t strips = (band.channels + Shape::kRows - 1) / Shape::kRows;
  for (int64_t s = 0; s < strips; ++s) {
    const int64_t lo = s * band.channels / strips, hi = (s + 1) * band.channels / strips;
    const int count = static_cast<int>(hi - lo);
    const RowTileFn<T> wide = row_tile_of<T, 2>(count), narrow = row_tile_of<T, 1>(count);
    TileOut<T> out{nullptr, band.channel_stride, 1, count, 0, T(1), T(0)};
    out.bias = band.bias != nullptr ? band.bias + lo : nullptr;
    for (int64_t r = 0; r < band.rows; ++r) {
      for (int64_t j = 0; j < band.width; j += Shape::kCols) {
        out.cols = static_cast<int>(std::min<int64_t>(Shape::kCols, band.width - j));
        out.c = band.y + lo * band.channel_stride + r * band.width + j;
        const OffsetPanel<T> input{band.padded + r * band.row_step + j, band.offsets};
        (out.cols > Shape::kLanes ? wide : narrow)(band.depth, band.weights + lo * band.depth,
                                                   input, out);
      }
    }
  }
}

template <class T> void pack_weights(const T* w, int64_t channels, int64_t depth, T* packed) {
  constexpr int kRows = TileShape<T>::kRows;
  const int64_t strips = (channels + kRows - 1) / kRows;
  for (int64_t s = 0; s < strips; ++s) {
    const int64_t lo = s * channels / strips, hi = (s + 1) * channels / strips;
    const int count = static_cast<int>(hi - lo);
    pack_panel(w + lo * depth, depth, int64_t{1}, count, depth, packed + lo * depth, count);
  }
}

void run_band_f32(const ConvBand<float>& band) { run_band(band); }
void run_band_f64(const ConvBand<double>& band) { run_band(band); }
void pack_weights_f32(const float* w, int64_t channels, int64_t depth, float* packed) {
  pack_weights(w, channels, depth, packed);
}
void pack_weights_f64(const double* w, int64_t channels, int64_t depth, double* packed) {
  pack_weights(w, channels, depth, packed);
}

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cresset {

HWY_EXPORT(run_band_f32);
HWY_EXPORT(run_band_f64);
HWY_EXPORT(pack_weights_f32);
HWY_EXPORT(pack_weights_f64);

void run_conv_band(const ConvBand<float>& band) { HWY_DYNAMIC_DISPATCH(run_band_f32)(band); }
void run_conv_band(const ConvBand<double>& band) { HWY_DYNAMIC_DISPATCH(run_band_f64)(band); }
void pack_conv_weights(const float* w, int64_t channels, int64_t depth, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_weights_f32)(w, channels, depth, packed);
}
void pack_conv_weights(const double* w, int64_t channels, int64_t depth, double* packed) {
  HWY_DYNAMIC_DISPATCH(pack_weights_f64)(w, channels, depth, packed);
}

}  // namespace cresset
#endif
