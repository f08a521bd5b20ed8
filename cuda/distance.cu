// CUDA kernels of the distances between all pairs of rows; gradients are gathered row by row.
#include "core/ops/distance.h"

#include "cuda/device.cuh"

namespace cresset::cuda {
namespace {

/// A DistanceCall as kernels take it.
template <class T> struct Call {
  double p;
  bool pairs;
  int64_t rows_a, rows_b, width;
  const T *a, *b, *y;

  explicit Call(const DistanceCall& c)
      : p(c.p),
        pairs(c.pairs),
        rows_a(c.rows_a),
        rows_b(c.rows_b),
        width(c.width),
        a(pointer<T>(*c.a)),
        b(pointer<T>(*c.b)),
        y(pointer<T>(*c.y)) {}
  /// Number of the distance of rows i < j among all pairs.
  __device__ int64_t pair(int64_t i, int64_t j) const {
    return i * rows_a - i * (i + 1) / 2 + j - i - 1;
  }
};

template <class T> __global__ void forward_kernel(Call<T> c, int64_t count, T* y) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * 8 + threadIdx.y;
  if (at >= count) return;
  const int64_t i = at / c.rows_b, n = i / c.rows_a, j = at % c.rows_b;
  if (c.pairs && j <= i) return;
  const T *a = c.a + i * c.width, *b = c.b + ((c.pairs ? 0 : n * c.rows_b) + j) * c.width;
  const bool infinite = isinf(c.p);
  double sum = 0;
  for (int64_t k = threadIdx.x; k < c.width; k += 32) {
    const double d = fabs(static_cast<double>(a[k]) - static_cast<double>(b[k]));
    if (c.p == 2)
      sum += d * d;
    else if (c.p == 1)
      sum += d;
    else if (c.p == 0)
      sum += d != 0;
    else if (infinite)
      sum = d > sum || d != d ? d : sum;
    else
      sum += pow(d, c.p);
  }
  for (int step = 16; step > 0; step >>= 1) {
    const double o = __shfl_xor_sync(0xffffffffu, sum, step);
    if (infinite)
      sum = o > sum || o != o ? o : sum;
    else
      sum += o;
  }
  if (threadIdx.x != 0) return;
  const double root = c.p == 2                           ? sqrt(sum)
                      : c.p == 1 || c.p == 0 || infinite ? sum
                                                         : pow(sum, 1 / c.p);
  y[c.pairs ? c.pair(i, j) : at] = static_cast<T>(root);
}

/// Derivative of the distance y by a component whose difference is d.
template <class T> __device__ double slope(double d, T y, double p) {
  if (y == 0 || p == 0) return 0;
  const double sign = d > 0 ? 1 : d < 0 ? -1 : 0;
  if (p == 1) return sign;
  if (p == 2) return d / y;
  if (isinf(p)) return static_cast<T>(fabs(d)) == y ? sign : 0;
  if (d == 0) return 0;
  return sign * pow(fabs(d) / y, p - 1);
}

template <class T> void forward_as(const DistanceCall& call) {
  const int64_t count = call.batch * call.rows_a * call.rows_b;
  if (count == 0 || call.y->numel() == 0) return;
  forward_kernel<T><<<blocks_for(count, 8), dim3(32, 8), 0, current_stream()>>>(
      Call<T>(call), count, pointer<T>(*call.y));
  check_launch();
}

void forward(const DistanceCall& c) {
  if (c.a->dtype() == DType::Float32)
    forward_as<float>(c);
  else
    forward_as<double>(c);
}

// One thread an element of da (or db): the sum over all rows of the other side.
template <class T>
void gather(const DistanceCall& call, const Tensor& grad, const Tensor& to, bool of_b) {
  const Call<T> c(call);
  const T* g = pointer<T>(grad);
  T* out = pointer<T>(to);
  for_each(to.numel(), [=] __device__(int64_t e) {
    const int64_t row = e / c.width, k = e - row * c.width;
    const int64_t own = of_b ? c.rows_b : c.rows_a, others = of_b ? c.rows_a : c.rows_b;
    const int64_t n = c.pairs ? 0 : row / own, r = c.pairs ? row : row - n * own;
    const T* mine = of_b ? c.b : c.a;
    const T* other = of_b ? c.a : c.b;
    double sum = 0;
    for (int64_t o = 0; o < others; ++o) {
      int64_t at;
      if (c.pairs) {
        if (o == r) continue;
        at = r < o ? c.pair(r, o) : c.pair(o, r);
      } else {
        at = of_b ? (n * c.rows_a + o) * c.rows_b + r : (n * c.rows_a + r) * c.rows_b + o;
      }
      const double d =
          static_cast<double>(mine[e]) - static_cast<double>(other[(n * others + o) * c.width + k]);
      sum += slope(d, c.y[at], c.p) * static_cast<double>(g[at]);
    }
    out[e] += static_cast<T>(sum);
  });
}

template <class T>
void backward_as(const DistanceCall& c, const Tensor& g, const Tensor& da, const Tensor& db) {
  gather<T>(c, g, da, false);
  if (!c.pairs && db.defined()) gather<T>(c, g, db, true);
}

void backward(const DistanceCall& c, const Tensor& g, const Tensor& da, const Tensor& db) {
  if (c.a->dtype() == DType::Float32)
    backward_as<float>(c, g, da, db);
  else
    backward_as<double>(c, g, da, db);
}

}  // namespace

template <> const DistanceKernels& cuda_table<DistanceKernels>() {
  static constexpr DistanceKernels table = {.forward = forward, .backward = backward};
  return table;
}

}  // namespace cresset::cuda
