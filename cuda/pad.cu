// CUDA kernels of padding: every result looks up where it comes from, dim by dim.
#include "core/ops/pad.h"

#include <cstring>

#include "cuda/ordered.cuh"

namespace cresset::cuda {
namespace {

/// The tables of a PadPlan on the device, one after another, and the strides of the input.
struct Lookup {
  static constexpr int most = 16;
  int dims = 0;
  int64_t sizes[most], strides[most], start[most];
  const int64_t* source;

  /// Offset of the input element that lands at i, or -1.
  __device__ int64_t operator()(int64_t i) const {
    int64_t offset = 0;
    for (int d = dims - 1; d >= 0; --d) {
      const int64_t rest = i / sizes[d], at = source[start[d] + (i - rest * sizes[d])];
      if (at < 0) return -1;
      offset += at * strides[d];
      i = rest;
    }
    return offset;
  }
};

Lookup make_lookup(const PadPlan& plan, const Dims& sizes, const Dims& strides, Device device,
                   Tensor* memory) {
  CHECK(sizes.size() <= static_cast<size_t>(Lookup::most), NotImplemented, launching_op(),
        ": expected at most ", Lookup::most, " dims, got ", sizes.size());
  Lookup l;
  std::vector<int64_t> all;
  for (size_t d = 0; d < sizes.size(); ++d) {
    l.start[d] = static_cast<int64_t>(all.size());
    all.insert(all.end(), plan.source[d].begin(), plan.source[d].end());
    l.sizes[d] = sizes[d];
    l.strides[d] = strides[d];
  }
  l.dims = static_cast<int>(sizes.size());
  *memory = upload<int64_t>(all, device);
  l.source = data_of<int64_t>(*memory);
  return l;
}

template <class W>
void pad_words(const Tensor& x, const Tensor& y, const PadPlan& plan, const void* value) {
  Tensor memory;
  const Lookup from = make_lookup(plan, y.sizes(), x.strides(), x.device(), &memory);
  W fill;
  std::memcpy(&fill, value, sizeof(W));
  const W* in = static_cast<const W*>(data_of(x));
  W* out = static_cast<W*>(data_of(y));
  for_each(y.numel(), [=] __device__(int64_t i) {
    const int64_t at = from(i);
    out[i] = at < 0 ? fill : in[at];
  });
}

void pad(const Tensor& x, const Tensor& y, const PadPlan& plan, const void* value) {
  if (y.numel() == 0) return;
  visit_size(itemsize(y.dtype()), [&]<class W>() { pad_words<W>(x, y, plan, value); });
}

template <class T> void pad_backward_as(const Tensor& g, const Tensor& gx, const PadPlan& plan) {
  Tensor memory;
  const Lookup from = make_lookup(plan, g.sizes(), gx.strides(), g.device(), &memory);
  const T* in = pointer<T>(g);
  T* out = pointer<T>(gx);
  scattered_sums<T>(
      g.numel(), gx.numel(), g.device(), [=] __device__(int64_t i) { return from(i); },
      [=] __device__(int64_t i) { return in[i]; }, out);
}

void pad_backward(const Tensor& g, const Tensor& gx, const PadPlan& plan) {
  if (g.numel() == 0) return;
  if (g.dtype() == DType::Complex64) return pad_backward_as<Complex<float>>(g, gx, plan);
  if (g.dtype() == DType::Complex128) return pad_backward_as<Complex<double>>(g, gx, plan);
  visit_floating(g.dtype(), [&]<class T>() { pad_backward_as<T>(g, gx, plan); });
}

}  // namespace

template <> const PadKernels& cuda_table<PadKernels>() {
  static constexpr PadKernels table = {.pad = pad, .pad_backward = pad_backward};
  return table;
}

}  // namespace cresset::cuda
