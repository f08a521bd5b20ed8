// CPU kernels of the reductions.
#include "core/ops/reduce.h"

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

// Pairwise summation: the error grows with the logarithm of the length.
template <class T, class Acc>
Acc pairwise(const T* x, int64_t n) {
  if (n <= 128) {
    Acc s{};
    for (int64_t i = 0; i < n; ++i) s += static_cast<Acc>(x[i]);
    return s;
  }
  int64_t half = n / 2;
  return pairwise<T, Acc>(x, half) + pairwise<T, Acc>(x + half, n - half);
}

void sum_rows(const Tensor& rows, const Tensor& y) {
  int64_t count = y.numel(), length = count ? rows.numel() / count : 0;
  visit_dtype(y.dtype(), [&]<class T>() {
    using Acc = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
                std::conditional_t<std::is_integral_v<T>, int64_t, T>>;
    const T* x = rows.data<T>();
    T* out = y.data<T>();
    parallel_for(0, count, std::max<int64_t>(1, 32768 / std::max<int64_t>(length, 1)),
                 [&](int64_t lo, int64_t hi) {
                   for (int64_t i = lo; i < hi; ++i)
                     out[i] = static_cast<T>(pairwise<T, Acc>(x + i * length, length));
                 });
  });
}

}  // namespace

template <>
const ReduceKernels& cpu_kernels<ReduceKernels>() {
  static constexpr ReduceKernels table = {.sum_rows = sum_rows};
  return table;
}

}  // namespace cresset
