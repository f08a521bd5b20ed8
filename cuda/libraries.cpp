// Creates the libraries' handles when they are first asked for.
#include "cuda/libraries.h"

#include <memory>
#include <vector>

namespace cresset::cuda {

namespace {

/// Handles stay open until the process ends: the driver may be gone when threads are torn down.
struct Handles {
  cublasLtHandle_t lt = nullptr;
  cublasHandle_t blas = nullptr;
  cusolverDnHandle_t solver = nullptr;
  cudaStream_t blas_stream = nullptr, solver_stream = nullptr;
#if CRESSET_CUDNN
  cudnnHandle_t dnn = nullptr;
  cudaStream_t dnn_stream = nullptr;
#endif
};

Handles& handles() {
  thread_local std::vector<std::unique_ptr<Handles>> by_device;
  const size_t at = static_cast<size_t>(current_device());
  if (at >= by_device.size()) by_device.resize(at + 1);
  if (!by_device[at]) by_device[at] = std::make_unique<Handles>();
  return *by_device[at];
}

// Creates the handle when it is missing and tells it the current stream when that has changed.
template <class Handle, class Create, class Bind>
Handle ready(Handle& handle, cudaStream_t& bound, Create create, Bind bind) {
  cudaStream_t stream = current_stream();
  const bool fresh = !handle;
  if (fresh) create(&handle);
  if (fresh || bound != stream) bind(handle, stream);
  bound = stream;
  return handle;
}

}  // namespace

cublasLtHandle_t blas_lt() {
  Handles& h = handles();
  if (!h.lt) LIBRARY_CHECK("cuBLASLt", cublasLtCreate(&h.lt));
  return h.lt;
}

cublasHandle_t blas() {
  Handles& h = handles();
  return ready(
      h.blas, h.blas_stream, [](cublasHandle_t* p) { LIBRARY_CHECK("cuBLAS", cublasCreate(p)); },
      [](cublasHandle_t p, cudaStream_t s) { LIBRARY_CHECK("cuBLAS", cublasSetStream(p, s)); });
}

cusolverDnHandle_t solver() {
  Handles& h = handles();
  return ready(
      h.solver, h.solver_stream,
      [](cusolverDnHandle_t* p) { LIBRARY_CHECK("cuSOLVER", cusolverDnCreate(p)); },
      [](cusolverDnHandle_t p, cudaStream_t s) {
        LIBRARY_CHECK("cuSOLVER", cusolverDnSetStream(p, s));
      });
}

#if CRESSET_CUDNN
cudnnHandle_t dnn() {
  Handles& h = handles();
  return ready(
      h.dnn, h.dnn_stream, [](cudnnHandle_t* p) { LIBRARY_CHECK("cuDNN", cudnnCreate(p)); },
      [](cudnnHandle_t p, cudaStream_t s) { LIBRARY_CHECK("cuDNN", cudnnSetStream(p, s)); });
}
#endif

}  // namespace cresset::cuda
