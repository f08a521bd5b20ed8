// Runs kernels on both devices and compares; shared by the tests of the CUDA families.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "core/autograd/autograd.h"
#include "core/ops/launch.h"
#include "core/ops/ops.h"

namespace cresset {

inline constexpr Device gpu{DeviceType::CUDA, 0};
inline constexpr Options f64{DType::Float64, {}}, i64{DType::Int64, {}};

inline std::mt19937_64& engine() {
  static std::mt19937_64 e(12345);
  return e;
}

/// Normal numbers on the CPU, rounded to the dtype.
inline Tensor random(const Dims& sizes, DType dtype = DType::Float32) {
  Tensor t = empty(sizes, f64);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = normal(engine());
  if (is_complex(dtype)) {
    Tensor z = empty(sizes, {DType::Complex128, {}});
    for (int64_t i = 0; i < z.numel(); ++i)
      z.data<std::complex<double>>()[i] = {normal(engine()), normal(engine())};
    return ops::to_dtype(z, dtype);
  }
  return is_integral(dtype, true) ? ops::to_dtype(ops::mul(t, 3), dtype) : ops::to_dtype(t, dtype);
}
inline Tensor integers(const Dims& sizes, int64_t lo, int64_t hi) {
  Tensor t = empty(sizes, i64);
  std::uniform_int_distribution<int64_t> draw(lo, hi - 1);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<int64_t>()[i] = draw(engine());
  return t;
}

inline void expect_close(const Tensor& want, const Tensor& got, double tolerance,
                         const std::string& name) {
  ASSERT_EQ(want.sizes(), got.sizes()) << name;
  ASSERT_EQ(want.dtype(), got.dtype()) << name;
  const DType wide = want.is_complex() ? DType::Complex128 : DType::Float64;
  Tensor a = ops::contiguous(ops::to_dtype(want, wide));
  Tensor b = ops::contiguous(ops::to_dtype(ops::on_host(got), wide));
  const int64_t n = a.numel() * (want.is_complex() ? 2 : 1);
  const double *x = static_cast<const double*>(a.data<void>()),
               *y = static_cast<const double*>(b.data<void>());
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    ASSERT_NEAR(x[i], y[i], tolerance * (1 + std::abs(x[i]))) << name << " at " << i;
  }
}

/// Runs `body` on both devices, which moves its inputs with `to` and returns what to compare.
using Move = std::function<Tensor(const Tensor&)>;
inline void compare(const std::string& name, double tolerance,
                    const std::function<TensorList(const Move& to, Device device)>& body) {
  GradMode off(false);
  const TensorList want = body([](const Tensor& t) { return t; }, Device{});
  const TensorList got =
      body([](const Tensor& t) { return t.defined() ? ops::on_device(t, gpu) : t; }, gpu);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i)
    expect_close(want[i], got[i], tolerance, name + " result " + std::to_string(i));
}

inline double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::Float16: return 2e-3;
    case DType::BFloat16: return 2e-2;
    case DType::Float64:
    case DType::Complex128: return 1e-11;
    default: return 2e-5;
  }
}

inline Tensor like(const Tensor& t, Device device) { return empty(t.sizes(), {t.dtype(), device}); }

/// Identity matrices [n, n].
inline Tensor identity(int64_t n, Options o) {
  Tensor t = ops::zeros(Dims{n, n}, {DType::Float64, {}});
  for (int64_t i = 0; i < n; ++i) t.data<double>()[i * n + i] = 1;
  return ops::on_device(ops::to_dtype(t, o.dtype), o.device);
}

inline constexpr DType float_types[] = {DType::Float32, DType::Float64};

}  // namespace cresset
