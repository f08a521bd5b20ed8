// CUDA kernel of resampling images: one thread a result, by rows of a sparse matrix.
#include "core/ops/vision.h"

#include "cuda/device.cuh"

namespace cresset::cuda {
namespace {

/// A sparse matrix by the rows of what is computed.
struct Rows {
  std::vector<int64_t> first, index;
  std::vector<double> weight;
};

Rows plain(const ResamplingMatrix& m) { return {m.first, m.index, m.weight}; }

// Taps keep the order of the outputs, so that sums are those of the CPU.
Rows transposed_rows(const ResamplingMatrix& m) {
  Rows r;
  r.first.assign(static_cast<size_t>(m.inputs) + 1, 0);
  for (int64_t i : m.index) ++r.first[static_cast<size_t>(i) + 1];
  for (size_t i = 1; i < r.first.size(); ++i) r.first[i] += r.first[i - 1];
  std::vector<int64_t> next(r.first.begin(), r.first.end() - 1);
  r.index.resize(m.index.size());
  r.weight.resize(m.index.size());
  for (int64_t o = 0; o < m.outputs; ++o)
    for (int64_t k = m.first[static_cast<size_t>(o)]; k < m.first[static_cast<size_t>(o) + 1];
         ++k) {
      const size_t from = static_cast<size_t>(k);
      const size_t at = static_cast<size_t>(next[static_cast<size_t>(m.index[from])]++);
      r.index[at] = o;
      r.weight[at] = m.weight[from];
    }
  return r;
}

template <class T, class S>
void resample_as(const Rows& rows, int64_t from, int64_t inner, const Tensor& x, const Tensor& y) {
  const Device device = y.device();
  const Tensor first = upload<int64_t>(rows.first, device);
  const Tensor index = upload<int64_t>(rows.index, device);
  const Tensor weight = upload<double>(rows.weight, device);
  const int64_t *pf = data_of<int64_t>(first), *pi = data_of<int64_t>(index);
  const double* pw = data_of<double>(weight);
  const int64_t to = static_cast<int64_t>(rows.first.size()) - 1;
  const T* in = pointer<T>(x);
  T* out = pointer<T>(y);
  for_each(y.numel(), [=] __device__(int64_t i) {
    const int64_t line = i / inner, c = i - line * inner, n = line / to, o = line - n * to;
    S sum = 0;
    for (int64_t k = pf[o]; k < pf[o + 1]; ++k)
      sum = static_cast<S>(sum + static_cast<S>(pw[k]) * in[(n * from + pi[k]) * inner + c]);
    out[i] = static_cast<T>(sum);
  });
}

void resample(const ResamplingMatrix& m, bool transposed, int64_t inner, const Tensor& x,
              const Tensor& y) {
  if (y.numel() == 0) return;
  const Rows rows = transposed ? transposed_rows(m) : plain(m);
  const int64_t from = transposed ? m.outputs : m.inputs;
  if (x.dtype() == DType::Float32)
    resample_as<float, float>(rows, from, inner, x, y);
  else if (x.dtype() == DType::Float64)
    resample_as<double, double>(rows, from, inner, x, y);
  else
    resample_as<uint8_t, uint8_t>(rows, from, inner, x, y);
}

}  // namespace

template <> const VisionKernels& cuda_table<VisionKernels>() {
  static constexpr VisionKernels table = {.resample = resample};
  return table;
}

}  // namespace cresset::cuda
