// CUDA kernels of sampling images at given positions: every mode is a product of taps per dim.
#include "core/ops/grid_sample.h"

#include "core/tensor/math_mode.h"
#include "cuda/atomic.cuh"

namespace cresset::cuda {
namespace {

constexpr int max_dims = 3, max_taps = 4;

/// A GridCall as kernels take it; `sizes` are the spatial ones.
template <class T> struct Grid {
  GridMode mode;
  GridPadding padding;
  bool align_corners;
  int dims;
  int64_t sizes[max_dims], channels, plane = 1, positions = 1;
  const T *x, *grid;

  explicit Grid(const GridCall& c)
      : mode(c.mode),
        padding(c.padding),
        align_corners(c.align_corners),
        dims(static_cast<int>(c.x->dim()) - 2),
        channels(c.x->size(1)),
        x(pointer<T>(*c.x)),
        grid(pointer<T>(*c.grid)) {
    for (int d = 0; d < dims; ++d) {
      sizes[d] = c.x->size(d + 2);
      plane *= sizes[d];
      positions *= c.grid->size(d + 1);
    }
  }
};

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

__device__ Coordinate clipped(Coordinate c, int64_t size) {
  const double most = static_cast<double>(size - 1);
  if (!(c.at > 0)) return {0, 0};
  if (c.at >= most) return {most, 0};
  return c;
}

__device__ Coordinate reflected(Coordinate c, double low, double span) {
  if (span == 0 || !isfinite(c.at)) return {0, 0};
  double x = c.at - low;
  if (x < 0) {
    x = -x;
    c.slope = -c.slope;
  }
  const double rest = fmod(x, span);
  const bool back = fmod(floor(x / span), 2.0) != 0;
  return back ? Coordinate{span - rest + low, -c.slope} : Coordinate{rest + low, c.slope};
}

template <class T> __device__ Coordinate padded(Coordinate c, int64_t size, const Grid<T>& call) {
  const double n = static_cast<double>(size);
  if (call.padding == GridPadding::border) return clipped(c, size);
  if (call.padding == GridPadding::reflection)
    return clipped(call.align_corners ? reflected(c, 0, n - 1) : reflected(c, -0.5, n), size);
  // What cannot be an index is outside.
  return fabs(c.at) < 1e9 ? c : Coordinate{-100, 0};
}

__device__ int64_t inside(double i, int64_t size) {
  return i >= 0 && i < static_cast<double>(size) ? static_cast<int64_t>(i) : -1;
}

// Weights of cubic convolution with a = -0.75 and their derivatives, at distance x.
__device__ double cubic(double x) {
  constexpr double a = -0.75;
  x = fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}
__device__ double cubic_slope(double x) {
  constexpr double a = -0.75;
  const double s = x < 0 ? -1 : 1;
  x = fabs(x);
  if (x <= 1) return s * (3 * (a + 2) * x - 2 * (a + 3)) * x;
  return s * ((3 * a * x - 10 * a) * x + 8 * a);
}

template <class T> __device__ Taps taps_of(double g, int64_t size, const Grid<T>& call) {
  const double n = static_cast<double>(size);
  Coordinate c = call.align_corners ? Coordinate{(g + 1) / 2 * (n - 1), (n - 1) / 2}
                                    : Coordinate{((g + 1) * n - 1) / 2, n / 2};
  Taps t;
  if (call.mode == GridMode::bicubic) {
    if (!(fabs(c.at) < 1e9)) c = {-100, 0};
    const double first = floor(c.at), part = c.at - first;
    t.count = 4;
    for (int k = 0; k < 4; ++k) {
      const double distance = part - (k - 1);
      t.index[k] = inside(nearbyint(padded({first + k - 1, 1}, size, call).at), size);
      t.weight[k] = cubic(distance);
      t.slope[k] = cubic_slope(distance) * c.slope;
    }
    return t;
  }
  c = padded(c, size, call);
  if (call.mode == GridMode::nearest) {
    t.count = 1;
    t.index[0] = inside(nearbyint(c.at), size);
    t.weight[0] = 1;
    t.slope[0] = 0;
    return t;
  }
  const double first = floor(c.at), part = c.at - first;
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
struct Position {
  Taps taps[max_dims];
  int64_t strides[max_dims] = {};

  template <class T> __device__ Position(const Grid<T>& call, const T* at) {
    int64_t stride = 1;
    for (int d = call.dims - 1; d >= 0; --d) {
      taps[d] = taps_of(static_cast<double>(at[call.dims - 1 - d]), call.sizes[d], call);
      strides[d] = stride;
      stride *= call.sizes[d];
    }
    for (int d = call.dims; d < max_dims; ++d) {
      taps[d].count = 1;
      taps[d].index[0] = 0;
      taps[d].weight[0] = 1;
      taps[d].slope[0] = 0;
    }
  }

  /// Calls f(offset, i, j, k) for every tap inside the image.
  template <class F> __device__ void each(F f) const {
    for (int i = 0; i < taps[0].count; ++i)
      for (int j = 0; j < taps[1].count; ++j)
        for (int k = 0; k < taps[2].count; ++k) {
          const int64_t a = taps[0].index[i], b = taps[1].index[j], c = taps[2].index[k];
          if (a >= 0 && b >= 0 && c >= 0)
            f(a * strides[0] + b * strides[1] + c * strides[2], i, j, k);
        }
  }
  __device__ double weight(int i, int j, int k) const {
    return taps[0].weight[i] * taps[1].weight[j] * taps[2].weight[k];
  }
  __device__ double slope(int d, int i, int j, int k) const {
    const int at[max_dims] = {i, j, k};
    double s = 1;
    for (int e = 0; e < max_dims; ++e) s *= e == d ? taps[e].slope[at[e]] : taps[e].weight[at[e]];
    return s;
  }
};

template <class T> void forward_as(const GridCall& call, const Tensor& out) {
  const Grid<T> c(call);
  T* y = pointer<T>(out);
  for_each(call.x->size(0) * c.positions, [=] __device__(int64_t p) {
    const int64_t n = p / c.positions, at = p - n * c.positions;
    const Position position(c, c.grid + p * c.dims);
    for (int64_t ch = 0; ch < c.channels; ++ch) {
      const T* image = c.x + (n * c.channels + ch) * c.plane;
      double sum = 0;
      position.each([&](int64_t offset, int i, int j, int k) {
        sum += position.weight(i, j, k) * static_cast<double>(image[offset]);
      });
      y[(n * c.channels + ch) * c.positions + at] = static_cast<T>(sum);
    }
  });
}

// Gradients of pixels meet in atomics, as PyTorch's do: their order varies.
template <class T>
void backward_as(const GridCall& call, const Tensor& grad, const Tensor& dx, const Tensor& dgrid) {
  const Grid<T> c(call);
  const T* g = pointer<T>(grad);
  T *to_x = pointer<T>(dx), *to_grid = pointer<T>(dgrid);
  for_each(call.x->size(0) * c.positions, [=] __device__(int64_t p) {
    const int64_t n = p / c.positions, at = p - n * c.positions;
    const Position position(c, c.grid + p * c.dims);
    double slopes[max_dims] = {};
    for (int64_t ch = 0; ch < c.channels; ++ch) {
      const int64_t plane = (n * c.channels + ch) * c.plane;
      const double into = static_cast<double>(g[(n * c.channels + ch) * c.positions + at]);
      position.each([&](int64_t offset, int i, int j, int k) {
        atomic_plus(to_x + plane + offset, static_cast<T>(position.weight(i, j, k) * into));
        const double value = static_cast<double>(c.x[plane + offset]) * into;
        for (int d = 0; d < c.dims; ++d) slopes[d] += position.slope(d, i, j, k) * value;
      });
    }
    for (int d = 0; d < c.dims; ++d)
      to_grid[p * c.dims + c.dims - 1 - d] = static_cast<T>(slopes[d]);
  });
}

void forward(const GridCall& call, const Tensor& y) {
  if (y.dtype() == DType::Float32)
    forward_as<float>(call, y);
  else
    forward_as<double>(call, y);
}
void backward(const GridCall& call, const Tensor& g, const Tensor& dx, const Tensor& dgrid) {
  CHECK(!math_mode().deterministic, NotImplemented, launching_op(),
        ": the gradient on cuda has no deterministic form");
  if (g.dtype() == DType::Float32)
    backward_as<float>(call, g, dx, dgrid);
  else
    backward_as<double>(call, g, dx, dgrid);
}

}  // namespace

template <> const GridKernels& cuda_table<GridKernels>() {
  static constexpr GridKernels table = {.forward = forward, .backward = backward};
  return table;
}

}  // namespace cresset::cuda
