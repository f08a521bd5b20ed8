// Turns failures of CUDA's libraries into errors that name the operator.
#pragma once

#include <cuda_runtime_api.h>

#include "core/base/error.h"

namespace cresset::cuda {

/// The operator whose kernel this thread launches (or last launched); "cuda" outside.
const char* launching_op() noexcept;

/// Throws OutOfMemory or Internal: "softmax: CUDA error 700 in cudaMemcpyAsync: ...".
[[noreturn]] void fail_cuda(cudaError_t status, const char* call);
/// The same for a status number of another library.
[[noreturn]] void fail_library(const char* library, int status, const char* call);

}  // namespace cresset::cuda

#define CUDA_CHECK(call)                               \
  do {                                                 \
    const cudaError_t cuda_status_ = (call);           \
    if (cuda_status_ != cudaSuccess) [[unlikely]]      \
      ::cresset::cuda::fail_cuda(cuda_status_, #call); \
  } while (false)

/// For cuBLAS, cuDNN, cuSOLVER, cuFFT, NVRTC and the driver, whose success is 0.
#define LIBRARY_CHECK(library, call)                                  \
  do {                                                                \
    const int library_status_ = static_cast<int>(call);               \
    if (library_status_ != 0) [[unlikely]]                            \
      ::cresset::cuda::fail_library(library, library_status_, #call); \
  } while (false)
