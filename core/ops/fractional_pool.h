// Fractional max pooling: kernel table.
#pragma once

#include "core/ops/launch.h"

namespace cresset {

/// Where window i of `count` windows of `kernel` elements begins in `size` elements, for a draw
/// from [0, 1): steps of random size, the last window at the end. Other draws, of callers' own
/// samples, count as 0: their windows would lie outside.
template <class T>
constexpr int64_t window_start(T sample, int64_t i, int64_t size, int64_t count, int64_t kernel) {
  if (i + 1 >= count) return size - kernel;
  if (!(sample >= T(0) && sample <= T(1))) sample = T(0);
  const T alpha = static_cast<T>(size - kernel) / static_cast<T>(count - 1);
  return static_cast<int64_t>((static_cast<T>(i) + sample) * alpha) -
         static_cast<int64_t>(sample * alpha);
}

struct FractionalPoolKernels {
  /// Planes x [P, D, H, W] to y [P, d, h, w], contiguous float32 or float64, and the places of the
  /// maxima within their plane; `samples` [P, 3] of x's dtype holds a draw for each dim.
  void (*max_pool)(const Tensor& x, const Tensor& samples, std::span<const int64_t> kernel,
                   const Tensor& y, const Tensor& indices);
};

}  // namespace cresset
