// CUDA graphs: capturing what a thread queues, and replaying it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/tensor/philox.h"

namespace cresset::cuda {

/// Where a kernel's random numbers start. In a capture the place is not known before the replay:
/// `captured` then points to seed and offset in memory of the device.
struct PhiloxArgs {
  const uint64_t* captured = nullptr;
  uint64_t seed = 0, offset = 0;

#if defined(__CUDACC__)
  __device__ uint64_t seed_now() const { return captured ? captured[0] : seed; }
  __device__ uint64_t offset_now() const { return captured ? captured[1] + offset : offset; }
#endif
};

/// Takes `count` numbers per thread (a multiple of 4) for a launch on the current stream.
PhiloxArgs draw_philox(PhiloxGenerator& generator, uint64_t count);

/// Starts to record what this thread queues in the current stream of the current device, which may
/// not be the default one; memory comes from a pool of the graph, or that of another graph.
int64_t begin_capture(int64_t share_pool_of);
void end_capture(int64_t graph, bool keep);
void replay_graph(int64_t graph);
void destroy_graph(int64_t graph);

/// Whether this thread records a graph.
bool is_capturing() noexcept;
/// Throws in a capture: "CUDA graph: <what> cannot be captured: it <why>".
void refuse_in_capture(const char* what, const char* why);

}  // namespace cresset::cuda
