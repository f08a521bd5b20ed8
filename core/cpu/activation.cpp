// CPU kernels of the activations and of frexp.
#include "core/ops/activation.h"

#include <cmath>

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

void frexp(const Tensor& x, const Tensor& mantissa, const Tensor& exponent) {
  visit_dtype(x.dtype(), [&]<class T>() {
    if constexpr (!std::is_integral_v<T> && requires(T v) { static_cast<float>(v); }) {
      using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
      const T* from = x.data<T>();
      T* m = mantissa.data<T>();
      int32_t* e = exponent.data<int32_t>();
      parallel_for(0, x.numel(), 16384, [&](int64_t lo, int64_t hi) {
        for (int64_t i = lo; i < hi; ++i) {
          int power = 0;
          m[i] = static_cast<T>(std::frexp(static_cast<C>(from[i]), &power));
          e[i] = power;
        }
      });
    }
  });
}

}  // namespace

template <> const ActivationKernels& cpu_kernels<ActivationKernels>() {
  static constexpr ActivationKernels table = {.frexp = frexp};
  return table;
}

}  // namespace cresset
