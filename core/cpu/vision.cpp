// CPU kernels of resampling images.
#include "core/ops/vision.h"

#include <algorithm>

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

template <class T>
void resample_planes(const ResamplingMatrix& m, bool transposed, int64_t inner, const T* x, T* y,
                     int64_t outer) {
  const int64_t from = transposed ? m.outputs : m.inputs, to = transposed ? m.inputs : m.outputs;
  const int64_t plane = std::max<int64_t>(1, to * inner);
  parallel_for(0, outer, std::max<int64_t>(1, 16384 / plane), [&](int64_t lo, int64_t hi) {
    for (int64_t n = lo; n < hi; ++n) {
      const T* in = x + n * from * inner;
      T* out = y + n * to * inner;
      std::fill_n(out, to * inner, T(0));
      for (int64_t o = 0; o < m.outputs; ++o)
        for (int64_t k = m.first[o]; k < m.first[o + 1]; ++k) {
          const int64_t i = m.index[k];
          const T w = static_cast<T>(m.weight[k]);
          const T* source = in + (transposed ? o : i) * inner;
          T* sink = out + (transposed ? i : o) * inner;
          for (int64_t c = 0; c < inner; ++c) sink[c] += w * source[c];
        }
    }
  });
}

void resample(const ResamplingMatrix& m, bool transposed, int64_t inner, const Tensor& x,
              const Tensor& y) {
  const int64_t line = inner * (transposed ? m.inputs : m.outputs);
  const int64_t outer = line ? y.numel() / line : 0;
  if (x.dtype() == DType::Float32)
    resample_planes(m, transposed, inner, x.data<float>(), y.data<float>(), outer);
  else if (x.dtype() == DType::Float64)
    resample_planes(m, transposed, inner, x.data<double>(), y.data<double>(), outer);
  else
    resample_planes(m, transposed, inner, x.data<uint8_t>(), y.data<uint8_t>(), outer);
}

}  // namespace

template <> const VisionKernels& cpu_kernels<VisionKernels>() {
  static constexpr VisionKernels table = {.resample = resample};
  return table;
}

}  // namespace cresset
