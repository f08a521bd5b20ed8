// What torch.cuda asks of devices, streams and events.
#include "core/dispatch/op.h"
#include "core/ops/cuda_report.h"
#include "core/tensor/cuda_services.h"
#include "core/tensor/math_mode.h"

namespace cresset {

CudaServices& cuda_services() {
  cuda_runtime();
  using Get = CudaServices* (*)();
  static auto* services = [] {
    void* get = cuda_symbol("cresset_cuda_services");
    ASSERT(get);
    return reinterpret_cast<Get>(get)();
  }();
  return *services;
}

namespace ops {
namespace {

// Every device number from outside passes here; -1 is the current device.
int checked(int64_t device) {
  CHECK(device >= -1 && device < max_cuda_devices, Value,
        "device: expected the number of a CUDA device, got ", device);
  return resolve_device({DeviceType::CUDA, static_cast<int8_t>(device)}).index;
}

int64_t status() { return static_cast<int64_t>(probe_cuda().status); }
Tensor why() { return text_tensor(probe_cuda().why); }
int64_t device_count() { return probe_cuda().device_count; }
int64_t current_device() { return cuda_runtime().current_device(); }
void set_device(int64_t device) { cuda_services().set_device(checked(device)); }
Tensor properties(int64_t device) {
  return text_tensor(cuda_services().properties(checked(device)));
}
bool can_access_peer(int64_t device, int64_t peer) {
  return cuda_services().can_access_peer(checked(device), checked(peer));
}
void synchronize(int64_t device) {
  cuda_runtime().synchronize({DeviceType::CUDA, static_cast<int8_t>(checked(device))});
}

// ---- streams

int64_t stream(int64_t device, int64_t priority) {
  const auto p = static_cast<int>(std::clamp<int64_t>(priority, -64, 64));
  return cuda_services().stream(checked(device), p);
}
int64_t current_stream(int64_t device) { return cuda_services().current_stream(checked(device)); }
void set_stream(int64_t device, int64_t stream) {
  cuda_services().set_stream(checked(device), stream);
}
bool stream_done(int64_t device, int64_t stream) {
  return cuda_services().is_stream_done(checked(device), stream);
}
void stream_synchronize(int64_t device, int64_t stream) {
  cuda_services().synchronize_stream(checked(device), stream);
}

// ---- events

int64_t event_create(bool timing) { return cuda_services().create_event(timing); }
void event_destroy(int64_t event) { cuda_services().destroy_event(event); }
void event_record(int64_t event, int64_t device, int64_t stream) {
  cuda_services().record_event(event, checked(device), stream);
}
void event_wait(int64_t event, int64_t device, int64_t stream) {
  cuda_services().wait_event(event, checked(device), stream);
}
bool event_done(int64_t event) { return cuda_services().is_event_done(event); }
void event_synchronize(int64_t event) { cuda_services().synchronize_event(event); }
double event_elapsed(int64_t from, int64_t to) { return cuda_services().elapsed_ms(from, to); }

// ---- switches: they can be set where there is no CUDA

int64_t read_switch(const std::string& name) { return get_switch(name); }
void write_switch(const std::string& name, int64_t value) {
  set_switch(name, static_cast<int>(std::clamp<int64_t>(value, 0, 2)));
}

}  // namespace

OP_TABLE(cuda_streams) = {
    op<status>("_cuda_status() -> int", "private", "0 when CUDA can be used, else why not."),
    op<why>("_cuda_why() -> Tensor", "private", "The sentence that says why CUDA cannot be used."),
    op<device_count>("_cuda_device_count() -> int", "private", "Number of CUDA devices."),
    op<current_device>("_cuda_current_device() -> int", "private", "The current device."),
    op<set_device>("_cuda_set_device(int device) -> ()", "private", "Changes the current device."),
    op<properties>("_cuda_properties(int device) -> Tensor", "private",
                   "What the device is, as JSON."),
    op<can_access_peer>("_cuda_can_access_peer(int device, int peer) -> bool", "private",
                        "Whether kernels of one device can read the memory of another."),
    op<synchronize>("_cuda_synchronize(int device) -> ()", "private",
                    "Waits for all work of a device."),
    op<stream>("_cuda_stream(int device, int priority) -> int", "private", "A stream."),
    op<current_stream>("_cuda_current_stream(int device) -> int", "private",
                       "The stream that work goes to."),
    op<set_stream>("_cuda_set_stream(int device, int stream) -> ()", "private",
                   "Changes the stream that work goes to."),
    op<stream_done>("_cuda_stream_done(int device, int stream) -> bool", "private",
                    "Whether a stream has no work left."),
    op<stream_synchronize>("_cuda_stream_synchronize(int device, int stream) -> ()", "private",
                           "Waits for a stream."),
    op<event_create>("_cuda_event_create(bool timing) -> int", "private", "An event."),
    op<event_destroy>("_cuda_event_destroy(int event) -> ()", "private", "Frees an event."),
    op<event_record>("_cuda_event_record(int event, int device, int stream) -> ()", "private",
                     "Puts an event behind the work of a stream."),
    op<event_wait>("_cuda_event_wait(int event, int device, int stream) -> ()", "private",
                   "Lets a stream wait for an event."),
    op<event_done>("_cuda_event_done(int event) -> bool", "private",
                   "Whether an event has passed."),
    op<event_synchronize>("_cuda_event_synchronize(int event) -> ()", "private",
                          "Waits for an event."),
    op<event_elapsed>("_cuda_event_elapsed(int from, int to) -> float", "private",
                      "Milliseconds between two events."),
    op<read_switch>("_cuda_get_switch(str name) -> int", "private", "Reads a switch."),
    op<write_switch>("_cuda_set_switch(str name, int value) -> ()", "private", "Sets a switch."),
};
OP_TABLE_END(cuda_streams);

}  // namespace ops
}  // namespace cresset
