// CPU kernels of the activations and of frexp.
#include "core/ops/activation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/cpu/parallel.h"
#include "core/tensor/distributions.h"

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

void rrelu_noise(const Tensor& x, double lower, double upper, const Tensor& noise) {
  visit_dtype(x.dtype(), [&]<class T>() {
    if constexpr (!std::is_integral_v<T> && requires(T v) { static_cast<float>(v); }) {
      const T* from = x.data<T>();
      T* to = noise.data<T>();
      const int64_t n = x.numel();
      auto drawn = [](T v) { return static_cast<float>(v) <= 0; };
      std::vector<double> draws(static_cast<size_t>(std::count_if(from, from + n, drawn)));
      fill_uniform(default_generator(), DType::Float64, draws.data(),
                   static_cast<int64_t>(draws.size()), lower, upper);
      const double* next = draws.data();
      for (int64_t i = 0; i < n; ++i)
        to[i] = drawn(from[i]) ? static_cast<T>(*next++) : static_cast<T>(1.0f);
    }
  });
}

}  // namespace

template <>
const ActivationKernels& cpu_kernels<ActivationKernels>() {
  static constexpr ActivationKernels table = {.frexp = frexp, .rrelu_noise = rrelu_noise};
  return table;
}

}  // namespace cresset
