// Handles of NVIDIA's libraries, one of each per thread and device, bound to the current stream.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cusolverDn.h>
#if CRESSET_CUDNN
#include <cudnn.h>
#endif

#include "cuda/check.h"
#include "cuda/stream.h"

namespace cresset::cuda {

/// Handles of the current device and stream.
cublasLtHandle_t blas_lt();
cublasHandle_t blas();
cusolverDnHandle_t solver();
#if CRESSET_CUDNN
cudnnHandle_t dnn();
#endif

}  // namespace cresset::cuda
