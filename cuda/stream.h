// The calling thread's current device and streams, and the streams and events that users name.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/thread_state.h"

namespace cresset::cuda {

inline int current_device() noexcept { return thread_state.device; }
/// Makes a device current for the CUDA runtime too; cheap when it is already.
void set_current_device(int device);
/// The same where nothing may throw; the device was current before.
void restore_device(int device) noexcept;
/// The stream in which all threads' work for a device goes until they choose another: see
/// Note [Default stream].
cudaStream_t default_stream(int device);
/// The stream that this thread's work for a device goes to.
inline cudaStream_t current_stream(ThreadState& t, int device) {
  cudaStream_t& stream = t.streams[device];
  if (!stream) [[unlikely]]
    stream = default_stream(device);
  return stream;
}
inline cudaStream_t current_stream(int device) { return current_stream(thread_state, device); }
inline cudaStream_t current_stream() {
  ThreadState& t = thread_state;
  return current_stream(t, t.device);
}
void set_current_stream(int device, cudaStream_t stream) noexcept;

/// A stream of the device's pool; the 32 of a priority are given out in turn and live for ever.
cudaStream_t pooled_stream(int device, int priority);
/// A stream's address as the core knows it: 0 for the default stream.
int64_t stream_address(int device, cudaStream_t stream) noexcept;
/// The stream of an address; throws Value unless it is one of the device.
cudaStream_t checked_stream(const char* op, int device, int64_t address);

/// Events by number.
int64_t create_event(bool timing);
void destroy_event(int64_t event);
void record_event(int64_t event, int device, cudaStream_t stream);
void wait_event(int64_t event, int device, cudaStream_t stream);
/// These two also throw what kernels reported, once the event has passed.
bool is_event_done(int64_t event);
void synchronize_event(int64_t event);
/// Milliseconds between two recorded events with timing that have passed.
double elapsed_ms(int64_t from, int64_t to);

}  // namespace cresset::cuda
