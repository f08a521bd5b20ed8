// The allocator's view of a real device: CUDA's runtime and virtual memory interface.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <mutex>
#include <unordered_map>
#include <vector>

#include "cuda/device_api.h"
#include "cuda/scopes.h"

namespace cresset::cuda {

class Driver final : public DeviceApi {
 public:
  explicit Driver(int device) : device_(device) {}

  void* allocate(size_t bytes) override;
  void release(void* data) override;
  void memory_info(size_t* free, size_t* total) override;
  void* allocate_in_order(size_t bytes, StreamHandle stream) override;
  void release_in_order(void* data, StreamHandle stream) override;
  size_t reserved_in_order() override;
  void trim_in_order() override;
  void synchronize() override;
  EventHandle record(StreamHandle stream) override;
  bool is_done(EventHandle event) override;
  void wait(EventHandle event) override;
  void recycle(EventHandle event) override;
  void wait_in_stream(StreamHandle stream, EventHandle event) override;
  uint64_t capture_of(StreamHandle stream) override;
  char* reserve(size_t bytes) override;
  void unreserve(char* at, size_t bytes) override;
  bool map(char* at, size_t bytes) override;
  void unmap(char* at, size_t bytes) override;

 private:
  cudaMemPool_t pool();

  int device_;
  cudaMemPool_t pool_ = nullptr;
  std::mutex mutex_;  // of the idle events
  std::vector<cudaEvent_t> idle_;
  std::unordered_map<char*, CUmemGenericAllocationHandle> mapped_;
};

/// The device's Driver; lives as long as the process.
Driver& driver(int device);

/// The number of the capture that a stream takes part in, or 0.
uint64_t capture_number(cudaStream_t stream);

}  // namespace cresset::cuda
