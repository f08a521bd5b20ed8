// The calling thread's current device and streams, and the streams and events that users name.
#include "cuda/stream.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/tensor/device_runtime.h"
#include "cuda/check.h"
#include "cuda/device_error.h"
#include "cuda/driver.h"

namespace cresset::cuda {

constinit thread_local ThreadState thread_state;

namespace {

constexpr size_t streams_per_priority = 32;

struct Streams {
  std::mutex mutex;
  std::atomic<cudaStream_t> by_default[max_cuda_devices] = {};
  std::unordered_map<int, std::vector<cudaStream_t>> by_priority[max_cuda_devices];
  std::unordered_map<int, size_t> next[max_cuda_devices];
};
Streams& streams() {
  static auto* all = new Streams;
  return *all;
}

struct Event {
  bool timing = false;
  int device = -1;  // set by the first record
  cudaEvent_t event = nullptr;
};

struct Events {
  std::mutex mutex;
  std::unordered_map<int64_t, Event> by_number;
  int64_t next = 1;
};
Events& events() {
  static auto* all = new Events;
  return *all;
}

Event find_event(const char* op, int64_t number) {
  Events& all = events();
  std::lock_guard lock(all.mutex);
  auto found = all.by_number.find(number);
  CHECK(found != all.by_number.end(), Value, op, ": the event has been disposed");
  return found->second;
}

Event recorded_event(const char* op, int64_t number) {
  Event e = find_event(op, number);
  CHECK(e.event, Value, op, ": expected an event that has been recorded");
  return e;
}

}  // namespace

void set_current_device(int device) {
  if (device == current_device()) return;
  CUDA_CHECK(cudaSetDevice(device));
  thread_state.device = device;
}

void restore_device(int device) noexcept {
  cudaSetDevice(device);
  thread_state.device = device;
}

void set_current_stream(int device, cudaStream_t stream) noexcept {
  thread_state.streams[device] = stream;
}

// ---- streams

// Note [Default stream]
// A launch in CUDA's own default stream looks for work of the streams that it has to wait for, and
// every such stream would wait for it: a stream that waits for none takes a tenth of a microsecond
// less to launch in. All work goes through current_stream(), so nobody sees the difference.

cudaStream_t default_stream(int device) {
  std::atomic<cudaStream_t>& known = streams().by_default[device];
  if (cudaStream_t stream = known.load(std::memory_order_acquire)) [[likely]]
    return stream;
  std::lock_guard lock(streams().mutex);
  if (cudaStream_t made = known.load()) return made;
  const DeviceScope scope(device);
  const RelaxedCapture relaxed;
  cudaStream_t made = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  known.store(made, std::memory_order_release);
  return made;
}

int64_t stream_address(int device, cudaStream_t stream) noexcept {
  return stream == streams().by_default[device].load() ? 0 : reinterpret_cast<int64_t>(stream);
}

cudaStream_t pooled_stream(int device, int priority) {
  int least = 0, greatest = 0;
  const DeviceScope scope(device);
  CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  priority = std::clamp(priority, greatest, least);
  Streams& all = streams();
  std::lock_guard lock(all.mutex);
  std::vector<cudaStream_t>& made = all.by_priority[device][priority];
  const size_t turn = all.next[device][priority]++ % streams_per_priority;
  if (turn == made.size()) {
    cudaStream_t stream = nullptr;
    CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority));
    made.push_back(stream);
  }
  return made[turn];
}

cudaStream_t checked_stream(const char* op, int device, int64_t address) {
  if (address == 0) return default_stream(device);
  auto stream = reinterpret_cast<cudaStream_t>(address);
  Streams& all = streams();
  std::lock_guard lock(all.mutex);
  for (const auto& [priority, made] : all.by_priority[device])
    if (std::find(made.begin(), made.end(), stream) != made.end()) return stream;
  fail(ErrorKind::Value, op, ": expected a stream of cuda:", device);
}

// ---- events

int64_t create_event(bool timing) {
  Events& all = events();
  std::lock_guard lock(all.mutex);
  all.by_number[all.next] = {timing, -1, nullptr};
  return all.next++;
}

void destroy_event(int64_t number) {
  Events& all = events();
  std::lock_guard lock(all.mutex);
  auto found = all.by_number.find(number);
  if (found == all.by_number.end()) return;
  if (found->second.event) {
    const DeviceScope scope(found->second.device);
    cudaEventDestroy(found->second.event);
  }
  all.by_number.erase(found);
}

void record_event(int64_t number, int device, cudaStream_t stream) {
  Event e = find_event("record", number);
  const DeviceScope scope(device);
  if (!e.event) {
    const unsigned flags = e.timing ? cudaEventDefault : cudaEventDisableTiming;
    CUDA_CHECK(cudaEventCreateWithFlags(&e.event, flags));
    e.device = device;
    Events& all = events();
    std::lock_guard lock(all.mutex);
    all.by_number[number] = e;
  }
  CHECK(e.device == device, Value, "record: the event belongs to cuda:", e.device,
        ", the stream to cuda:", device);
  CUDA_CHECK(cudaEventRecord(e.event, stream));
}

// An event that was never recorded has passed already, as in CUDA.
void wait_event(int64_t number, int device, cudaStream_t stream) {
  const Event e = find_event("waitEvent", number);
  if (!e.event) return;
  const DeviceScope scope(device);
  CUDA_CHECK(cudaStreamWaitEvent(stream, e.event, 0));
}

bool is_event_done(int64_t number) {
  const Event e = find_event("query", number);
  if (!e.event) return true;
  const cudaError_t status = cudaEventQuery(e.event);
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  CUDA_CHECK(status);
  throw_device_errors(e.device);
  return true;
}

void synchronize_event(int64_t number) {
  const Event e = find_event("synchronize", number);
  if (!e.event) return;
  CUDA_CHECK(cudaEventSynchronize(e.event));
  throw_device_errors(e.device);
}

double elapsed_ms(int64_t from, int64_t to) {
  const Event a = recorded_event("elapsedTime", from), b = recorded_event("elapsedTime", to);
  CHECK(a.timing && b.timing, Value,
        "elapsedTime: expected events made with { enableTiming: true }");
  CHECK(a.device == b.device, Value, "elapsedTime: the events are of cuda:", a.device,
        " and cuda:", b.device);
  float ms = 0;
  const cudaError_t status = cudaEventElapsedTime(&ms, a.event, b.event);
  if (status == cudaErrorNotReady) cudaGetLastError();
  CHECK(status != cudaErrorNotReady, Value,
        "elapsedTime: the events have not passed yet; synchronize first");
  CUDA_CHECK(status);
  return ms;
}

}  // namespace cresset::cuda
