// Handles of NVIDIA's libraries, one of each per thread and device, bound to the current stream.
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>
#include <cusolverDn.h>

#include "cuda/check.h"
#include "cuda/stream.h"

namespace cresset::cuda {

/// Handles of the current device and stream.
cublasLtHandle_t blas_lt();
cublasHandle_t blas();
cusolverDnHandle_t solver();
cudnnHandle_t dnn();

}  // namespace cresset::cuda
