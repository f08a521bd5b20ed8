// Fourier transforms by cuFFT, with plans kept per thread and device.
#include "core/ops/fft.h"

#include <cufftXt.h>

#include <list>
#include <vector>

#include "cuda/check.h"
#include "cuda/device.cuh"
#include "cuda/scopes.h"

namespace cresset::cuda {
namespace {

/// One kind of transform: `batch` contiguous lines of n complex numbers.
struct PlanKey {
  int64_t n, batch;
  DType dtype;

  bool operator==(const PlanKey&) const = default;
};

struct Plan {
  PlanKey key;
  cufftHandle handle;
  size_t work_bytes;
};

Plan make_plan(const PlanKey& key) {
  const RelaxedCapture relaxed;
  Plan plan{key, 0, 0};
  LIBRARY_CHECK("cuFFT", cufftCreate(&plan.handle));
  const cudaDataType type = key.dtype == DType::Complex64 ? CUDA_C_32F : CUDA_C_64F;
  long long n = key.n;
  // The work area comes from the caching allocator, in the order of the stream.
  cufftResult status = cufftSetAutoAllocation(plan.handle, 0);
  if (status == CUFFT_SUCCESS)
    status = cufftXtMakePlanMany(plan.handle, 1, &n, nullptr, 1, n, type, nullptr, 1, n, type,
                                 key.batch, &plan.work_bytes, type);
  if (status != CUFFT_SUCCESS) cufftDestroy(plan.handle);
  LIBRARY_CHECK("cuFFT", status);
  return plan;
}

/// The last used plans of a device, newest first. Never destroyed: the driver may be gone when
/// threads are torn down.
Plan& plan_for(const PlanKey& key) {
  constexpr size_t most = 64;
  thread_local auto* by_device = new std::vector<std::list<Plan>>;
  const size_t at = static_cast<size_t>(current_device());
  if (at >= by_device->size()) by_device->resize(at + 1);
  std::list<Plan>& plans = (*by_device)[at];
  for (auto p = plans.begin(); p != plans.end(); ++p)
    if (p->key == key) {
      plans.splice(plans.begin(), plans, p);
      return plans.front();
    }
  plans.push_front(make_plan(key));
  if (plans.size() > most) {
    const RelaxedCapture relaxed;
    cufftDestroy(plans.back().handle);
    plans.pop_back();
  }
  return plans.front();
}

template <class R> void multiply(const Tensor& y, double factor) {
  R* p = static_cast<R*>(data_of(y));
  const R by = static_cast<R>(factor);
  for_each(y.numel() * 2, [=] __device__(int64_t i) { p[i] *= by; });
}

void transform(const Tensor& x, const Tensor& y, bool inverse, double scale) {
  Plan& plan = plan_for({x.size(1), x.size(0), x.dtype()});
  Tensor work = scratch(plan.work_bytes, x.device());
  LIBRARY_CHECK("cuFFT", cufftSetStream(plan.handle, current_stream()));
  LIBRARY_CHECK("cuFFT", cufftSetWorkArea(plan.handle, data_of(work)));
  LIBRARY_CHECK("cuFFT", cufftXtExec(plan.handle, data_of(x), data_of(y),
                                     inverse ? CUFFT_INVERSE : CUFFT_FORWARD));
  if (scale == 1) return;
  if (x.dtype() == DType::Complex64)
    multiply<float>(y, scale);
  else
    multiply<double>(y, scale);
}

}  // namespace

template <> const FftKernels& cuda_table<FftKernels>() {
  static constexpr FftKernels table = {.transform = transform};
  return table;
}

}  // namespace cresset::cuda
