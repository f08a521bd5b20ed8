// How kernels of .cu files get at tensors and are started.
#pragma once

#include "core/ops/launch.h"
#include "cuda/check.h"
#include "cuda/stream.h"

namespace cresset::cuda {

/// The GPU's table of a family: specialised at the end of cuda/<family>.cu, listed in tables.def.
template <class Kernels> const Kernels& cuda_table();

/// A tensor's first element on the current device. Refuses tensors of other devices: a kernel must
/// never follow a pointer of the CPU.
template <class T = void> T* data_of(const Tensor& t) {
  if (!t.device().is_cuda() || t.device().index != current_device()) [[unlikely]]
    fail(ErrorKind::Device, launching_op(), ": expected a tensor on cuda:", current_device(),
         ", got one on ", t.device());
  return t.device_data<T>();
}

/// Blocks for n items, `per_block` each; at least 1.
constexpr unsigned blocks_for(int64_t n, int64_t per_block) {
  const int64_t blocks = (n + per_block - 1) / per_block;
  return blocks < 1 ? 1u : static_cast<unsigned>(blocks);
}

/// Starts a kernel on the current stream; the arguments take the kernel's parameter types.
template <class... P, class... A>
void start(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, A&&... args) {
  [&](P... values) {
    void* list[] = {static_cast<void*>(&values)..., nullptr};
    CUDA_CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block, list,
                                shared_bytes, current_stream()));
  }(static_cast<P>(std::forward<A>(args))...);
}

/// Multiprocessors of the current device.
int multiprocessors();
/// Threads that a multiprocessor of the current device holds at once.
int threads_per_multiprocessor();

}  // namespace cresset::cuda
