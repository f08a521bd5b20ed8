// CPU kernels of the operators that choose elements.
#include "core/ops/indexing.h"

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

void where(const Tensor& condition, const Tensor& a, const Tensor& b, const Tensor& out) {
  visit_dtype(out.dtype(), [&]<class T>() {
    const bool* c = condition.data<bool>();
    const T *x = a.data<T>(), *y = b.data<T>();
    T* to = out.data<T>();
    parallel_for(0, out.numel(), 32768, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) to[i] = c[i] ? x[i] : y[i];
    });
  });
}

}  // namespace

template <>
const IndexingKernels& cpu_kernels<IndexingKernels>() {
  static constexpr IndexingKernels table = {.where = where};
  return table;
}

}  // namespace cresset
