// CUDA kernel of fractional max pooling: one thread per window.
#include "core/ops/fractional_pool.h"

#include "cuda/device.cuh"

namespace cresset::cuda {
namespace {

struct Sizes {
  int64_t d, h, w;
};

Sizes sizes_of(const Tensor& t) { return {t.size(1), t.size(2), t.size(3)}; }

/// The largest element of a window and its place; NaN is largest, the last one of them.
template <class T>
__device__ int64_t largest(const T* x, Sizes in, int64_t d, int64_t h, int64_t w, Sizes kernel) {
  int64_t place = (d * in.h + h) * in.w + w;
  for (int64_t i = d; i < d + kernel.d; ++i)
    for (int64_t j = h; j < h + kernel.h; ++j)
      for (int64_t k = w; k < w + kernel.w; ++k) {
        const int64_t at = (i * in.h + j) * in.w + k;
        if (x[at] > x[place] || x[at] != x[at]) place = at;
      }
  return place;
}

template <class T>
void pool_as(const Tensor& x, const Tensor& samples, Sizes kernel, const Tensor& y,
             const Tensor& indices) {
  const Sizes in = sizes_of(x), out = sizes_of(y);
  const T *from = pointer<T>(x), *draws = pointer<T>(samples);
  T* to = pointer<T>(y);
  int64_t* places = pointer<int64_t>(indices);
  for_each(y.numel(), [=] __device__(int64_t item) {
    const int64_t w = item % out.w, h = item / out.w % out.h, d = item / out.w / out.h % out.d;
    const int64_t plane = item / out.w / out.h / out.d;
    const T *image = from + plane * in.d * in.h * in.w, *draw = draws + plane * 3;
    const int64_t place = largest(image, in, window_start(draw[0], d, in.d, out.d, kernel.d),
                                  window_start(draw[1], h, in.h, out.h, kernel.h),
                                  window_start(draw[2], w, in.w, out.w, kernel.w), kernel);
    places[item] = place;
    to[item] = image[place];
  });
}

void max_pool(const Tensor& x, const Tensor& samples, std::span<const int64_t> kernel,
              const Tensor& y, const Tensor& indices) {
  const Sizes window = {kernel[0], kernel[1], kernel[2]};
  if (x.dtype() == DType::Float32) return pool_as<float>(x, samples, window, y, indices);
  pool_as<double>(x, samples, window, y, indices);
}

}  // namespace

template <> const FractionalPoolKernels& cuda_table<FractionalPoolKernels>() {
  static constexpr FractionalPoolKernels table = {.max_pool = max_pool};
  return table;
}

}  // namespace cresset::cuda
