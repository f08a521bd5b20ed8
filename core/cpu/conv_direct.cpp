// Drives the direct convolution: pads bands of the input and hands them to the SIMD kernel.
#include "core/cpu/conv_direct.h"

#include <algorithm>

#include "core/cpu/gemm_piece.h"
#include "core/cpu/parallel.h"
#include "core/cpu/workspace.h"

namespace cresset {
namespace {

using Extent = ConvNdShape::Extent;

/// Bytes of padded input per band, so that it stays in the second-level cache.
constexpr int64_t kBandBytes = 384 * 1024;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
int64_t volume(const Extent& e) { return e[0] * e[1] * e[2]; }

/// Input extent that `outputs` neighbouring outputs read along axis `d`.
int64_t reach(const ConvNdShape& s, int d, int64_t outputs) {
  return (outputs - 1) * s.stride[d] + (s.kernel[d] - 1) * s.dilation[d] + 1;
}

/// How the output of one image is cut: bands of slices along `axis` (depth if there is any, else
/// height), each with its padded input of `padded` extents.
struct Bands {
  int axis;
  int64_t slices, count;
  Extent padded;

  Bands(const ConvNdShape& s, int64_t lanes, int64_t element_bytes, int64_t wanted)
      : axis(s.out[0] > 1 || s.kernel[0] > 1 ? 0 : 1) {
    const int64_t width = reach(s, 2, round_up(s.out[2], lanes));
    padded = {reach(s, 0, 1), axis == 0 ? reach(s, 1, s.out[1]) : reach(s, 1, 1), width};
    const int64_t channels = s.c_in / s.groups;
    const int64_t slice_bytes =
        channels * volume(padded) / padded[axis] * s.stride[axis] * element_bytes;
    slices = std::clamp<int64_t>(kBandBytes / slice_bytes, 1, s.out[axis]);
    slices = std::clamp<int64_t>(ceil_div(s.out[axis], wanted), 1, slices);
    count = ceil_div(s.out[axis], slices);
    slices = ceil_div(s.out[axis], count);
    padded[axis] = reach(s, axis, slices);
  }
};

/// Copies the input under the band that begins at slice `first` and writes zeros around it.
template <class T>
void pad_band(const ConvNdShape& s, const Bands& bands, int64_t first, const T* x, T* to) {
  Extent start{-s.pad_before[0], -s.pad_before[1], -s.pad_before[2]};
  start[bands.axis] += first * s.stride[bands.axis];
  const Extent& size = bands.padded;
  const int64_t lo = std::clamp<int64_t>(-start[2], 0, size[2]);
  const int64_t hi = std::clamp<int64_t>(s.in[2] - start[2], lo, size[2]);
  for (int64_t c = 0; c < s.c_in / s.groups; ++c) {
    const T* plane = x + c * volume(s.in);
    for (int64_t z = start[0]; z < start[0] + size[0]; ++z) {
      for (int64_t y = start[1]; y < start[1] + size[1]; ++y, to += size[2]) {
        if (z < 0 || z >= s.in[0] || y < 0 || y >= s.in[1]) {
          std::fill_n(to, size[2], T(0));
          continue;
        }
        const T* row = plane + (z * s.in[1] + y) * s.in[2] + start[2];
        std::fill_n(to, lo, T(0));
        std::copy(row + lo, row + hi, to + lo);
        std::fill(to + hi, to + size[2], T(0));
      }
    }
  }
}

/// Where (channel, tap) in the order of the weights lies in a padded band.
void fill_offsets(const ConvNdShape& s, const Extent& padded, int64_t* offsets) {
  for (int64_t c = 0; c < s.c_in / s.groups; ++c) {
    for (int64_t z = 0; z < s.kernel[0]; ++z) {
      for (int64_t y = 0; y < s.kernel[1]; ++y) {
        for (int64_t x = 0; x < s.kernel[2]; ++x) {
          const int64_t row = (c * padded[0] + z * s.dilation[0]) * padded[1] + y * s.dilation[1];
          *offsets++ = row * padded[2] + x * s.dilation[2];
        }
      }
    }
  }
}

/// The convolution that gives gx from gy with the flipped weights.
ConvNdShape backward_shape(const ConvNdShape& s) {
  ConvNdShape b = s;
  std::swap(b.c_in, b.c_out);
  std::swap(b.in, b.out);
  for (int d = 0; d < 3; ++d) {
    b.pad_before[d] = s.dilation[d] * (s.kernel[d] - 1) - s.pad_before[d];
    b.pad_after[d] = s.dilation[d] * (s.kernel[d] - 1) - s.pad_after[d];
  }
  return b;
}

}  // namespace

template <class T> bool conv_direct_fits(const ConvNdShape& s) {
  if (s.stride[2] != 1 || s.n == 0 || s.c_in == 0 || s.c_out == 0) return false;
  if (volume(s.in) == 0 || volume(s.out) == 0) return false;
  const int64_t lanes = gemm_target<T>().tile_cols / 2;
  const int64_t channels = s.c_in / s.groups;
  const int64_t smallest = channels * reach(s, 0, 1) * reach(s, 2, round_up(s.out[2], lanes)) *
                           (s.kernel[0] > 1 ? reach(s, 1, s.out[1]) : reach(s, 1, 1));
  // Idle lanes in short rows, or a band beyond the cache, cost more than unrolling.
  return 5 * s.out[2] >= 3 * round_up(s.out[2], lanes) &&
         smallest * static_cast<int64_t>(sizeof(T)) <= 4 * kBandBytes;
}

template <class T>
void conv_direct_forward(const ConvNdShape& s, const T* x, const T* w, const T* bias, T* y) {
  const int64_t ci = s.c_in / s.groups, co = s.c_out / s.groups;
  const int64_t depth = ci * volume(s.kernel), images = s.n * s.groups;
  const int64_t lanes = gemm_target<T>().tile_cols / 2;
  const Bands bands(s, lanes, sizeof(T), ceil_div(num_threads(), images));
  const int64_t room = round_up(ci * volume(bands.padded), 64);
  const bool small = s.n * s.c_out * volume(s.out) * depth < 32768;
  const int64_t tasks = images * bands.count;
  const int64_t pieces = small ? 1 : std::min(balanced_pieces(), tasks);

  const Scratch offsets_memory(static_cast<size_t>(depth) * sizeof(int64_t));
  const Scratch memory(static_cast<size_t>(round_up(s.c_out * depth, 64) + pieces * room) *
                       sizeof(T));
  int64_t* offsets = offsets_memory.as<int64_t>();
  T* weights = memory.as<T>();
  T* padded = weights + round_up(s.c_out * depth, 64);
  fill_offsets(s, bands.padded, offsets);
  for (int64_t g = 0; g < s.groups; ++g) {
    pack_conv_weights(w + g * co * depth, co, depth, weights + g * co * depth);
  }
  parallel_for(0, pieces, 1, [&](int64_t piece, int64_t last) {
    for (; piece < last; ++piece) {
      T* own = padded + piece * room;
      for (int64_t t = piece * tasks / pieces; t < (piece + 1) * tasks / pieces; ++t) {
        const int64_t image = t / bands.count, group = image % s.groups;
        const int64_t first = t % bands.count * bands.slices;
        const int64_t slices = std::min(bands.slices, s.out[bands.axis] - first);
        if (slices <= 0) continue;
        pad_band(s, bands, first, x + image * ci * volume(s.in), own);
        const int64_t plane = s.out[1] * s.out[2];
        ConvBand<T> band{
            own,
            offsets,
            weights + group * co * depth,
            bias != nullptr ? bias + group * co : nullptr,
            y + image * co * volume(s.out) + first * (bands.axis == 0 ? plane : s.out[2]),
            depth,
            co,
            volume(s.out),
            bands.axis == 0 ? s.out[1] : slices,
            s.out[2],
            s.stride[1] * bands.padded[2]};
        for (int64_t z = 0; z < (bands.axis == 0 ? slices : 1); ++z) {
          run_conv_band(band);
          band.y += plane;
          band.padded += s.stride[0] * bands.padded[1] * bands.padded[2];
        }
      }
    }
  });
}

template <class T> bool conv_direct_backward_fits(const ConvNdShape& s) {
  // One or two results per position leave the multipliers waiting for each other.
  if (s.stride != Extent{1, 1, 1} || s.c_in / s.groups < 3) return false;
  const ConvNdShape b = backward_shape(s);
  const bool padded_enough = b.pad_before[0] >= 0 && b.pad_before[1] >= 0 && b.pad_before[2] >= 0;
  return padded_enough && conv_direct_fits<T>(b);
}

template <class T>
void conv_direct_backward_input(const ConvNdShape& s, const T* gy, const T* w, T* gx) {
  const int64_t ci = s.c_in / s.groups, co = s.c_out / s.groups, taps = volume(s.kernel);
  const Scratch memory(static_cast<size_t>(s.c_out * ci * taps) * sizeof(T));
  T* flipped = memory.as<T>();
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t o = 0; o < co; ++o) {
      for (int64_t i = 0; i < ci; ++i) {
        const T* from = w + ((g * co + o) * ci + i) * taps;
        std::reverse_copy(from, from + taps, flipped + ((g * ci + i) * co + o) * taps);
      }
    }
  }
  conv_direct_forward<T>(backward_shape(s), gy, flipped, nullptr, gx);
}

#define CRESSET_CONV_DIRECT(T)                                                             \
  template bool conv_direct_fits<T>(const ConvNdShape&);                                   \
  template void conv_direct_forward(const ConvNdShape&, const T*, const T*, const T*, T*); \
  template bool conv_direct_backward_fits<T>(const ConvNdShape&);                          \
  template void conv_direct_backward_input(const ConvNdShape&, const T*, const T*, T*);
CRESSET_CONV_DIRECT(float)
CRESSET_CONV_DIRECT(double)
#undef CRESSET_CONV_DIRECT

}  // namespace cresset
