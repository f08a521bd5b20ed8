// CPU kernel of fractional max pooling.
#include "core/ops/fractional_pool.h"

#include <cmath>
#include <vector>

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

struct Sizes {
  int64_t d, h, w;
};

Sizes sizes_of(const Tensor& t) { return {t.size(1), t.size(2), t.size(3)}; }

/// The largest element of a window and its place; NaN is largest.
template <class T>
int64_t largest(const T* x, Sizes in, int64_t d, int64_t h, int64_t w,
                std::span<const int64_t> kernel) {
  int64_t place = (d * in.h + h) * in.w + w;
  for (int64_t i = d; i < d + kernel[0]; ++i)
    for (int64_t j = h; j < h + kernel[1]; ++j)
      for (int64_t k = w; k < w + kernel[2]; ++k) {
        const int64_t at = (i * in.h + j) * in.w + k;
        if (x[at] > x[place] || std::isnan(x[at])) place = at;
      }
  return place;
}

/// The starts of a plane's windows in every dim, first dim first.
template <class T>
void fill_starts(const T* draws, Sizes in, Sizes out, std::span<const int64_t> kernel,
                 int64_t* starts) {
  const int64_t sizes[] = {in.d, in.h, in.w}, counts[] = {out.d, out.h, out.w};
  for (size_t d = 0; d < 3; ++d)
    for (int64_t i = 0; i < counts[d]; ++i)
      *starts++ = window_start(draws[d], i, sizes[d], counts[d], kernel[d]);
}

template <class T>
void pool_plane(const T* x, Sizes in, const int64_t* starts, std::span<const int64_t> kernel, T* y,
                int64_t* indices, Sizes out) {
  const int64_t *down = starts + out.d, *across = down + out.h;
  for (int64_t i = 0; i < out.d; ++i)
    for (int64_t j = 0; j < out.h; ++j)
      for (int64_t k = 0; k < out.w; ++k) {
        const int64_t place = largest(x, in, starts[i], down[j], across[k], kernel);
        *indices++ = place;
        *y++ = x[place];
      }
}

template <class T>
void pool_planes(const Tensor& x, const Tensor& samples, std::span<const int64_t> kernel,
                 const Tensor& y, const Tensor& indices) {
  const Sizes in = sizes_of(x), out = sizes_of(y);
  const int64_t from = in.d * in.h * in.w, to = out.d * out.h * out.w;
  const int64_t total = out.d + out.h + out.w;
  std::vector<int64_t> starts(static_cast<size_t>(x.size(0) * total));
  for (int64_t p = 0; p < x.size(0); ++p)
    fill_starts(samples.data<T>() + p * 3, in, out, kernel, starts.data() + p * total);
  parallel_for(0, x.size(0), 1 + 16384 / (to + 1), [&](int64_t lo, int64_t hi) {
    for (int64_t p = lo; p < hi; ++p)
      pool_plane(x.data<T>() + p * from, in, starts.data() + p * total, kernel,
                 y.data<T>() + p * to, indices.data<int64_t>() + p * to, out);
  });
}

void max_pool(const Tensor& x, const Tensor& samples, std::span<const int64_t> kernel,
              const Tensor& y, const Tensor& indices) {
  if (x.dtype() == DType::Float32) return pool_planes<float>(x, samples, kernel, y, indices);
  pool_planes<double>(x, samples, kernel, y, indices);
}

}  // namespace

template <> const FractionalPoolKernels& cpu_kernels<FractionalPoolKernels>() {
  static constexpr FractionalPoolKernels table = {.max_pool = max_pool};
  return table;
}

}  // namespace cresset
