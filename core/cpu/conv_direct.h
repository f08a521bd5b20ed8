// Convolution straight from the padded input, without unrolling it, where rows advance by one.
#pragma once

#include <cstdint>

#include "core/cpu/conv_raw.h"

namespace cresset {

/// True for shapes that the kernel takes and serves better than unrolling: stride 1 along the
/// width, and rows long enough to fill SIMD vectors.
template <class T> bool conv_direct_fits(const ConvNdShape& s);

/// y = conv(x, w) + bias for float and double; `bias` may be null.
template <class T>
void conv_direct_forward(const ConvNdShape& s, const T* x, const T* w, const T* bias, T* y);

/// The shape of the convolution of gy with the flipped kernel that gives gx; valid when
/// `conv_direct_backward_fits`.
template <class T> bool conv_direct_backward_fits(const ConvNdShape& s);
template <class T>
void conv_direct_backward_input(const ConvNdShape& s, const T* gy, const T* w, T* gx);

/// One thread's share: some output rows of one image and group, whose input lies in `padded`.
template <class T> struct ConvBand {
  const T* padded;
  const int64_t* offsets;  // where each (channel, tap) finds output column 0, per row of weight
  const T* weights;        // packed strips of tile_rows output channels
  const T* bias;
  T* y;  // first output row of the band, first channel of the group
  int64_t depth, channels, channel_stride;
  int64_t rows, width, row_step;  // row_step: padded elements between successive output rows
};

void run_conv_band(const ConvBand<float>& band);
void run_conv_band(const ConvBand<double>& band);

/// Packs weights [channels, depth] into the strips that run_conv_band reads.
void pack_conv_weights(const float* w, int64_t channels, int64_t depth, float* packed);
void pack_conv_weights(const double* w, int64_t channels, int64_t depth, double* packed);

}  // namespace cresset
