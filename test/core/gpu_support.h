// What the tests on a GPU share: skipping without one, random tensors, comparisons with the CPU.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>

#include "core/autograd/autograd.h"
#include "core/ops/ops.h"
#include "core/tensor/device_runtime.h"

namespace cresset::test {

inline constexpr Device gpu = {DeviceType::CUDA, 0};

/// Random values that every operator takes: numbers of moderate size, both signs.
inline Tensor random_tensor(const Dims& sizes, DType dtype, uint64_t seed, double low = -3,
                            double high = 3) {
  std::mt19937_64 engine(seed);
  std::uniform_real_distribution<double> draw(low, high);
  Tensor t = empty(sizes, {dtype, {}});
  visit_dtype(dtype, [&]<class T>() {
    T* p = t.data<T>();
    for (int64_t i = 0; i < t.numel(); ++i) {
      if constexpr (std::is_same_v<T, bool>)
        p[i] = draw(engine) > 0;
      else if constexpr (requires(T x) { x.imag(); })
        p[i] = T(static_cast<typename T::value_type>(draw(engine)),
                 static_cast<typename T::value_type>(draw(engine)));
      else if constexpr (std::is_unsigned_v<T>)
        p[i] = static_cast<T>(std::abs(draw(engine)));
      else
        p[i] = static_cast<T>(static_cast<float>(draw(engine)));
    }
  });
  return t;
}

inline std::vector<std::complex<double>> values_of(const Tensor& t) {
  Tensor here = ops::contiguous(ops::to_dtype(ops::on_host(t), DType::Complex128));
  const auto* p = here.data<std::complex<double>>();
  return {p, p + here.numel()};
}

inline bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  return std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

/// A float's tolerance is some units of its last place, since library functions differ.
inline double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::Float16: return 2e-3;
    case DType::BFloat16: return 1.6e-2;
    case DType::Float32:
    case DType::Complex64: return 2e-5;
    case DType::Float64:
    case DType::Complex128: return 1e-12;
    default: return 0;
  }
}

inline ::testing::AssertionResult same_values(const Tensor& got, const Tensor& want,
                                              double tolerance) {
  if (!(got.sizes() == want.sizes()) || got.dtype() != want.dtype())
    return ::testing::AssertionFailure() << "another shape or dtype";
  const auto a = values_of(got), b = values_of(want);
  for (size_t i = 0; i < a.size(); ++i)
    if (!close(a[i].real(), b[i].real(), tolerance) || !close(a[i].imag(), b[i].imag(), tolerance))
      return ::testing::AssertionFailure()
             << "element " << i << ": got " << a[i] << ", expected " << b[i];
  return ::testing::AssertionSuccess();
}

inline Tensor to_gpu(const Tensor& t) { return ops::on_device(t, gpu); }

/// A copy on the GPU with the strides of `t`, gaps and offset included.
inline Tensor strided_to_gpu(const Tensor& whole, const Tensor& view) {
  Tensor there = to_gpu(whole);
  return alias(there, view.sizes(), view.strides(), view.offset());
}

}  // namespace cresset::test
