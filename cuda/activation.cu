// CUDA kernel of frexp; the other activations are rows of the elementwise engine.
#include "core/ops/activation.h"

#include "cuda/device.cuh"

namespace cresset::cuda {
namespace {

__device__ float split(float x, int* e) { return frexpf(x, e); }
__device__ double split(double x, int* e) { return frexp(x, e); }

template <class T> void frexp_as(const Tensor& x, const Tensor& mantissa, const Tensor& exponent) {
  const T* from = pointer<T>(x);
  T* m = pointer<T>(mantissa);
  int32_t* e = pointer<int32_t>(exponent);
  for_each(x.numel(), [=] __device__(int64_t i) {
    const Acc<T> v = widen(from[i]);
    int power = 0;
    const Acc<T> part = split(v, &power);
    m[i] = narrow<T>(part);
    e[i] = v - v == 0 ? power : 0;
  });
}

void frexp(const Tensor& x, const Tensor& mantissa, const Tensor& exponent) {
  visit_floating(x.dtype(), [&]<class T>() { frexp_as<T>(x, mantissa, exponent); });
}

}  // namespace

template <> const ActivationKernels& cuda_table<ActivationKernels>() {
  static constexpr ActivationKernels table = {.frexp = frexp};
  return table;
}

}  // namespace cresset::cuda
