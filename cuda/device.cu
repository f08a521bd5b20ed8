// Moving small tables between host and device; the word that error reports take.
#include "cuda/device.cuh"
#include "cuda/device_error.h"

#include <cstring>

namespace cresset::cuda {
namespace {

__device__ int claimed_report = 0;

template <size_t N> struct Blob { alignas(16) char bytes[N]; };

template <size_t N> __global__ void store_blob(Blob<N> blob, char* to, unsigned count) {
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) to[i] = blob.bytes[i];
}

template <size_t N> void send(const char* from, char* to, size_t count) {
  Blob<N> blob;
  std::memcpy(blob.bytes, from, count);
  store_blob<<<1, 256, 0, current_stream()>>>(blob, to, static_cast<unsigned>(count));
  check_launch();
}

}  // namespace

int* report_claim() {
  void* address = nullptr;
  CUDA_CHECK(cudaGetSymbolAddress(&address, claimed_report));
  return static_cast<int*>(address);
}

Tensor upload(const void* bytes, size_t count, Device device) {
  // Kernel arguments are at most 32,764 bytes; large tables are cheaper as one copy.
  constexpr size_t few = 1024, many = 28 * 1024;
  Tensor t = scratch(count, device);
  const char* from = static_cast<const char*>(bytes);
  char* to = data_of<char>(t);
  if (count > 8 * many) {
    CUDA_CHECK(cudaMemcpyAsync(to, from, count, cudaMemcpyHostToDevice, current_stream()));
    return t;
  }
  for (size_t at = 0; at < count; at += many) {
    const size_t part = std::min(many, count - at);
    if (part <= few)
      send<few>(from + at, to + at, part);
    else
      send<many>(from + at, to + at, part);
  }
  return t;
}

void download(void* to, const void* from, size_t bytes) {
  CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, current_stream()));
  CUDA_CHECK(cudaStreamSynchronize(current_stream()));
  throw_device_errors(current_device());
}

}  // namespace cresset::cuda
