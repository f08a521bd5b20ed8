// CPU kernels of sampling images at given positions: every mode is a product of taps per dim.
#include "core/ops/grid_sample.h"

#include <algorithm>
#include <cmath>

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

constexpr int max_dims = 3, max_taps = 4;

/// The pixels of one dim that a position reads: index (-1 outside), weight, and the weight's
/// derivative by the coordinate.
struct Taps {
  int count = 0;
  int64_t index[max_taps];
  double weight[max_taps], slope[max_taps];
};

struct Coordinate {
  double at, slope;
};

Coordinate clipped(Coordinate c, int64_t size) {
  const double most = static_cast<double>(size - 1);
  if (!(c.at > 0)) return {0, 0};
  if (c.at >= most) return {most, 0};
  return c;
}

Coordinate reflected(Coordinate c, double low, double span) {
  if (span == 0 || !std::isfinite(c.at)) return {0, 0};
  double x = c.at - low;
  if (x < 0) {
    x = -x;
    c.slope = -c.slope;
  }
  const double rest = std::fmod(x, span);
  const bool back = std::fmod(std::floor(x / span), 2) != 0;
  return back ? Coordinate{span - rest + low, -c.slope} : Coordinate{rest + low, c.slope};
}

Coordinate padded(Coordinate c, int64_t size, const GridCall& call) {
  const double n = static_cast<double>(size);
  if (call.padding == GridPadding::border) return clipped(c, size);
  if (call.padding == GridPadding::reflection)
    return clipped(call.align_corners ? reflected(c, 0, n - 1) : reflected(c, -0.5, n), size);
  // What cannot be an index is outside.
  return std::abs(c.at) < 1e9 ? c : Coordinate{-100, 0};
}

int64_t inside(double i, int64_t size) {
  return i >= 0 && i < static_cast<double>(size) ? static_cast<int64_t>(i) : -1;
}

// Weights of cubic convolution with a = -0.75 and their derivatives, at distance x.
double cubic(double x) {
  constexpr double a = -0.75;
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}
double cubic_slope(double x) {
  constexpr double a = -0.75;
  const double s = x < 0 ? -1 : 1;
  x = std::abs(x);
  if (x <= 1) return s * (3 * (a + 2) * x - 2 * (a + 3)) * x;
  return s * ((3 * a * x - 10 * a) * x + 8 * a);
}

Taps taps_of(double g, int64_t size, const GridCall& call) {
  const double n = static_cast<double>(size);
  Coordinate c = call.align_corners ? Coordinate{(g + 1) / 2 * (n - 1), (n - 1) / 2}
                                    : Coordinate{((g + 1) * n - 1) / 2, n / 2};
  Taps t;
  if (call.mode == GridMode::bicubic) {
    if (!(std::abs(c.at) < 1e9)) c = {-100, 0};
    const double first = std::floor(c.at), part = c.at - first;
    t.count = 4;
    for (int k = 0; k < 4; ++k) {
      const double distance = part - (k - 1);
      const double at = std::nearbyint(padded({first + k - 1, 1}, size, call).at);
      t.index[k] = inside(at, size);
      t.weight[k] = cubic(distance);
      t.slope[k] = cubic_slope(distance) * c.slope;
    }
    return t;
  }
  c = padded(c, size, call);
  if (call.mode == GridMode::nearest) {
    t.count = 1;
    t.index[0] = inside(std::nearbyint(c.at), size);
    t.weight[0] = 1;
    t.slope[0] = 0;
    return t;
  }
  const double first = std::floor(c.at), part = c.at - first;
  t.count = 2;
  t.index[0] = inside(first, size);
  t.index[1] = inside(first + 1, size);
  t.weight[0] = 1 - part;
  t.weight[1] = part;
  t.slope[0] = -c.slope;
  t.slope[1] = c.slope;
  return t;
}

/// The taps of all dims of a position (first spatial dim first), unused dims with one tap.
template <class T> struct Position {
  Taps taps[max_dims];
  int64_t strides[max_dims] = {};

  Position(const GridCall& call, const T* grid) {
    const int64_t dims = call.x->dim() - 2;
    int64_t stride = 1;
    for (int64_t d = dims - 1; d >= 0; --d) {
      const int64_t size = call.x->size(d + 2);
      taps[d] = taps_of(static_cast<double>(grid[dims - 1 - d]), size, call);
      strides[d] = stride;
      stride *= size;
    }
    for (int64_t d = dims; d < max_dims; ++d) {
      taps[d].count = 1;
      taps[d].index[0] = 0;
      taps[d].weight[0] = 1;
      taps[d].slope[0] = 0;
    }
  }

  /// Calls f(offset, i, j, k) for every tap inside the image.
  template <class F> void each(F f) const {
    for (int i = 0; i < taps[0].count; ++i)
      for (int j = 0; j < taps[1].count; ++j)
        for (int k = 0; k < taps[2].count; ++k) {
          const int64_t a = taps[0].index[i], b = taps[1].index[j], c = taps[2].index[k];
          if (a >= 0 && b >= 0 && c >= 0)
            f(a * strides[0] + b * strides[1] + c * strides[2], i, j, k);
        }
  }
  double weight(int i, int j, int k) const {
    return taps[0].weight[i] * taps[1].weight[j] * taps[2].weight[k];
  }
  double slope(int64_t d, int i, int j, int k) const {
    const int at[max_dims] = {i, j, k};
    double s = 1;
    for (int64_t e = 0; e < max_dims; ++e)
      s *= e == d ? taps[e].slope[at[e]] : taps[e].weight[at[e]];
    return s;
  }
};

struct Sizes {
  int64_t channels, plane, positions, dims;
  explicit Sizes(const GridCall& c)
      : channels(c.x->size(1)), plane(1), positions(1), dims(c.x->dim() - 2) {
    for (int64_t d = 0; d < dims; ++d) plane *= c.x->size(d + 2);
    for (int64_t d = 0; d < dims; ++d) positions *= c.grid->size(d + 1);
  }
};

template <class T> void forward_of(const GridCall& call, const Tensor& out) {
  const Sizes s(call);
  const T *x = call.x->data<T>(), *grid = call.grid->data<T>();
  T* y = out.data<T>();
  parallel_for(0, call.x->size(0) * s.positions, 256, [&](int64_t lo, int64_t hi) {
    for (int64_t p = lo; p < hi; ++p) {
      const int64_t n = p / s.positions, at = p % s.positions;
      const Position<T> position(call, grid + p * s.dims);
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* image = x + (n * s.channels + c) * s.plane;
        double sum = 0;
        position.each([&](int64_t offset, int i, int j, int k) {
          sum += position.weight(i, j, k) * static_cast<double>(image[offset]);
        });
        y[(n * s.channels + c) * s.positions + at] = static_cast<T>(sum);
      }
    }
  });
}

template <class T>
void backward_of(const GridCall& call, const Tensor& grad, const Tensor& dx, const Tensor& dgrid) {
  const Sizes s(call);
  const T *x = call.x->data<T>(), *grid = call.grid->data<T>(), *g = grad.data<T>();
  T *to_x = dx.data<T>(), *to_grid = dgrid.data<T>();
  parallel_for(0, call.x->size(0), 1, [&](int64_t lo, int64_t hi) {
    for (int64_t p = lo * s.positions; p < hi * s.positions; ++p) {
      const int64_t n = p / s.positions, at = p % s.positions;
      const Position<T> position(call, grid + p * s.dims);
      double slopes[max_dims] = {};
      for (int64_t c = 0; c < s.channels; ++c) {
        const int64_t plane = (n * s.channels + c) * s.plane;
        const double into = static_cast<double>(g[(n * s.channels + c) * s.positions + at]);
        position.each([&](int64_t offset, int i, int j, int k) {
          to_x[plane + offset] += static_cast<T>(position.weight(i, j, k) * into);
          const double value = static_cast<double>(x[plane + offset]) * into;
          for (int64_t d = 0; d < s.dims; ++d) slopes[d] += position.slope(d, i, j, k) * value;
        });
      }
      for (int64_t d = 0; d < s.dims; ++d)
        to_grid[p * s.dims + s.dims - 1 - d] = static_cast<T>(slopes[d]);
    }
  });
}

void forward(const GridCall& call, const Tensor& y) {
  if (y.dtype() == DType::Float32)
    forward_of<float>(call, y);
  else
    forward_of<double>(call, y);
}
void backward(const GridCall& call, const Tensor& g, const Tensor& dx, const Tensor& dgrid) {
  if (g.dtype() == DType::Float32)
    backward_of<float>(call, g, dx, dgrid);
  else
    backward_of<double>(call, g, dx, dgrid);
}

}  // namespace

template <> const GridKernels& cpu_kernels<GridKernels>() {
  static constexpr GridKernels table = {.forward = forward, .backward = backward};
  return table;
}

}  // namespace cresset
