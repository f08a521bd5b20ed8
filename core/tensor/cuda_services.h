// What torch.cuda offers beside tensors, as the core asks the CUDA library for it.
#pragma once

#include <string>

#include "core/tensor/device_runtime.h"
#include "core/tensor/tensor.h"

namespace cresset {

/// Implemented by the CUDA library. Streams are named by their address (0 is the default stream of
/// its device), events, graphs and pools by numbers; an unknown one is a Value error.
class CudaServices {
 public:
  virtual ~CudaServices() = default;

  // Devices.
  virtual void set_device(int device) = 0;
  /// JSON: name, major, minor, totalMemory, multiProcessorCount, ...
  virtual std::string properties(int device) = 0;
  virtual bool can_access_peer(int device, int peer) = 0;
  virtual void memory_info(int device, size_t* free, size_t* total) = 0;

  // Streams.
  /// A stream of the pool of its priority (0, or below for more urgent ones); they are reused in
  /// turn.
  virtual int64_t stream(int device, int priority) = 0;
  virtual int64_t current_stream(int device) = 0;
  virtual void set_stream(int device, int64_t stream) = 0;
  virtual bool is_stream_done(int device, int64_t stream) = 0;
  virtual void synchronize_stream(int device, int64_t stream) = 0;

  // Events.
  virtual int64_t create_event(bool timing) = 0;
  virtual void destroy_event(int64_t event) = 0;
  virtual void record_event(int64_t event, int device, int64_t stream) = 0;
  virtual void wait_event(int64_t event, int device, int64_t stream) = 0;
  virtual bool is_event_done(int64_t event) = 0;
  virtual void synchronize_event(int64_t event) = 0;
  virtual double elapsed_ms(int64_t from, int64_t to) = 0;

  // Memory.
  virtual std::string memory_stats(int device) = 0;
  virtual std::string memory_snapshot() = 0;
  virtual void reset_memory_stats(int device, bool peaks) = 0;
  virtual void set_memory_fraction(int device, double fraction) = 0;
  virtual void set_allocator_options(const std::string& options) = 0;
  virtual std::string allocator_backend() = 0;
  /// Functions of a shared library take the allocator's place, before it has been used.
  virtual void use_allocator(const std::string& path, const std::string& allocate,
                             const std::string& release) = 0;
  /// A private pool; with a library, that provides its memory.
  virtual int64_t create_pool(const std::string& path, const std::string& allocate,
                              const std::string& release) = 0;
  virtual void destroy_pool(int64_t pool) = 0;
  /// Requests of this thread go to the pool until end_pool.
  virtual void begin_pool(int64_t pool, int device) = 0;
  virtual void end_pool(int64_t pool, int device) = 0;
  virtual void record_stream(Storage& storage, int64_t stream) = 0;

  // Pinned memory of the CPU.
  virtual void* allocate_pinned(size_t bytes, void** context) = 0;
  virtual void wait_for_copies(void* context) = 0;

  // Graphs.
  virtual int64_t begin_capture(int64_t share_pool_of) = 0;
  /// Makes the graph ready for replay; without `keep` drops what was captured.
  virtual void end_capture(int64_t graph, bool keep) = 0;
  virtual void replay(int64_t graph) = 0;
  virtual void destroy_graph(int64_t graph) = 0;
  virtual bool is_capturing() = 0;
};

/// Throws Device, saying why, where CUDA cannot be used.
CudaServices& cuda_services();

/// As the device of a new storage: the CPU, in pinned memory. The storage's device is the CPU then.
constexpr Device pinned_cpu{DeviceType::CPU, 1};

inline bool is_pinned(const Storage& s) { return s.device().is_cpu() && s.context(); }
/// Before code of the CPU touches what may be pinned memory: waits for copies that use it.
inline void wait_for_copies(const Storage& s) {
  if (is_pinned(s)) [[unlikely]]
    cuda_services().wait_for_copies(s.context());
}

}  // namespace cresset
