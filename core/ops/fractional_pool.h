// Fractional max pooling: kernel table.
#pragma once

#include "core/ops/launch.h"

namespace cresset {

struct FractionalPoolKernels {
  /// Planes x [P, D, H, W] to y [P, d, h, w], contiguous float32 or float64, and the places of the
  /// maxima within their plane. `starts` [P, d + h + w] (int64) holds where the windows begin.
  void (*max_pool)(const Tensor& x, const Tensor& starts, std::span<const int64_t> kernel,
                   const Tensor& y, const Tensor& indices);
};

}  // namespace cresset
