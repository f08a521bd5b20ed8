// CPU kernels of ranges and evenly spaced numbers.
#include <cmath>

#include "core/ops/creation.h"

namespace cresset {
namespace {

template <class T>
concept ComplexElement = requires(T x) {
  x.imag();
};

// Calls f with the storage type of a real dtype.
template <class F> void visit_real(DType dtype, F&& f) {
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (!ComplexElement<T>) f.template operator()<T>();
  });
}

void arange(const Tensor& y, const Scalar& start, const Scalar& step) {
  visit_real(y.dtype(), [&]<class T>() {
    T* out = y.data<T>();
    const int64_t n = y.numel();
    if constexpr (std::is_integral_v<T>) {
      // Unsigned arithmetic wraps where a narrow dtype cannot hold a value.
      uint64_t value = static_cast<uint64_t>(start.to_int());
      const uint64_t by = static_cast<uint64_t>(step.to_int());
      for (int64_t i = 0; i < n; ++i, value += by) out[i] = static_cast<T>(value);
    } else {
      const double from = start.to_double(), by = step.to_double();
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(from + static_cast<double>(i) * by);
    }
  });
}

void spaced(const Tensor& y, double start, double end, std::optional<double> base) {
  visit_real(y.dtype(), [&]<class T>() {
    using Step = SpacedStep<T>;
    T* out = y.data<T>();
    const int64_t n = y.numel();
    const Step from = static_cast<Step>(static_cast<T>(start));
    const Step to = static_cast<Step>(static_cast<T>(end));
    const Step by = n > 1 ? (to - from) / static_cast<Step>(n - 1) : Step(0);
    for (int64_t i = 0; i < n; ++i) {
      Step x = i < n / 2 || n == 1 ? from + by * static_cast<Step>(i)
                                   : to - by * static_cast<Step>(n - i - 1);
      if (base) x = std::pow(static_cast<Step>(*base), x);
      out[i] = static_cast<T>(x);
    }
  });
}

}  // namespace

template <> const RangeKernels& cpu_kernels<RangeKernels>() {
  static constexpr RangeKernels table = {.arange = arange, .spaced = spaced};
  return table;
}

}  // namespace cresset
