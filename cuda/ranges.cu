// CUDA kernels of ranges and evenly spaced numbers.
#include "core/ops/creation.h"
#include "cuda/device.cuh"

namespace cresset::cuda {
namespace {

// Rounded after the product, as on the CPU: no fused multiply-add.
__device__ inline double stepped(double from, double by, double times) {
  return __dadd_rn(from, __dmul_rn(by, times));
}
__device__ inline float stepped(float from, float by, float times) {
  return __fadd_rn(from, __fmul_rn(by, times));
}

void arange(const Tensor& y, const Scalar& start, const Scalar& step) {
  void* to = data_of(y);
  const DType dtype = y.dtype();
  if (is_integral(dtype, true)) {
    const uint64_t from = static_cast<uint64_t>(start.to_int());
    const uint64_t by = static_cast<uint64_t>(step.to_int());
    return for_each(y.numel(), [=] __device__(int64_t i) {
      store_as<int64_t>(to, dtype, i, static_cast<int64_t>(from + by * static_cast<uint64_t>(i)));
    });
  }
  const double from = start.to_double(), by = step.to_double();
  for_each(y.numel(), [=] __device__(int64_t i) {
    store_as<double>(to, dtype, i, stepped(from, by, static_cast<double>(i)));
  });
}

/// An end point as the dtype holds it: the steps lead from one such number to the other.
double rounded_to(DType dtype, double x) {
  return visit_dtype(dtype, [&]<class T>() {
    if constexpr (requires(T z) { z.imag(); })
      return x;
    else
      return static_cast<double>(static_cast<T>(x));
  });
}

template <class Step>
void spaced_as(const Tensor& y, Step from, Step to, std::optional<double> base) {
  void* out = data_of(y);
  const DType dtype = y.dtype();
  const int64_t n = y.numel();
  const Step by = n > 1 ? (to - from) / static_cast<Step>(n - 1) : Step(0);
  const bool powers = base.has_value();
  const Step b = static_cast<Step>(base.value_or(0));
  for_each(n, [=] __device__(int64_t i) {
    const Step x = i < n / 2 || n == 1 ? stepped(from, by, static_cast<Step>(i))
                                       : stepped(to, -by, static_cast<Step>(n - i - 1));
    store_as<Step>(out, dtype, i, powers ? pow(b, x) : x);
  });
}

void spaced(const Tensor& y, double start, double end, std::optional<double> base) {
  const double from = rounded_to(y.dtype(), start), to = rounded_to(y.dtype(), end);
  if (is_integral(y.dtype(), true) || y.dtype() == DType::Float64)
    return spaced_as<double>(y, from, to, base);
  spaced_as<float>(y, static_cast<float>(from), static_cast<float>(to), base);
}

}  // namespace

template <> const RangeKernels& cuda_table<RangeKernels>() {
  static constexpr RangeKernels table = {.arange = arange, .spaced = spaced};
  return table;
}

}  // namespace cresset::cuda
