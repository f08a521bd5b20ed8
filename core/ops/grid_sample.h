// Kernel table of sampling images at given positions.
#pragma once

#include "core/dispatch/decode.h"
#include "core/ops/launch.h"

namespace cresset {

/// How a value between pixels is found, and what lies outside the image.
enum class GridMode { bilinear, nearest, bicubic };
enum class GridPadding { zeros, border, reflection };

template <> struct EnumNames<GridMode> {
  static constexpr const char* schema = "GridMode{bilinear|nearest|bicubic}";
};
template <> struct EnumNames<GridPadding> {
  static constexpr const char* schema = "GridPadding{zeros|border|reflection}";
};

/// x [N, C, spatial...], grid [N, positions..., D] with coordinates in [-1, 1], the last spatial
/// dim's first; contiguous, float32 or float64.
struct GridCall {
  GridMode mode = GridMode::bilinear;
  GridPadding padding = GridPadding::zeros;
  bool align_corners = false;
  const Tensor *x = nullptr, *grid = nullptr;
};

struct GridKernels {
  void (*forward)(const GridCall& call, const Tensor& y);
  /// dx += and dgrid = gradients for g of y's shape.
  void (*backward)(const GridCall& call, const Tensor& g, const Tensor& dx, const Tensor& dgrid);
};

}  // namespace cresset
