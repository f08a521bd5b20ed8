// What the allocator asks of a GPU's driver, abstract so that its logic runs on a fake device too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cresset::cuda {

/// A stream as the driver names it; null is the default stream.
using StreamHandle = void*;
using EventHandle = void*;

/// The driver of one device. Nothing here throws: a failed allocation is null or false.
class DeviceApi {
 public:
  virtual ~DeviceApi() = default;

  virtual void* allocate(size_t bytes) = 0;
  /// Waits for the queued work, then frees.
  virtual void release(void* data) = 0;
  virtual void memory_info(size_t* free, size_t* total) = 0;

  /// The driver's own pool (cudaMallocAsync): memory that belongs to the order of a stream.
  virtual void* allocate_in_order(size_t bytes, StreamHandle stream) = 0;
  virtual void release_in_order(void* data, StreamHandle stream) = 0;
  virtual size_t reserved_in_order() = 0;
  virtual void trim_in_order() = 0;

  virtual void synchronize() = 0;

  /// A new event behind the work queued in `stream` so far.
  virtual EventHandle record(StreamHandle stream) = 0;
  virtual bool is_done(EventHandle event) = 0;
  virtual void wait(EventHandle event) = 0;
  /// Takes the event back; it may be given out again.
  virtual void recycle(EventHandle event) = 0;
  /// Makes later work of `stream` wait for the event.
  virtual void wait_in_stream(StreamHandle stream, EventHandle event) = 0;
  /// The number of the capture that `stream` takes part in, or 0.
  virtual uint64_t capture_of(StreamHandle stream) = 0;

  /// Address space without memory; null when the device has no virtual memory interface.
  virtual char* reserve(size_t bytes) = 0;
  virtual void unreserve(char* at, size_t bytes) = 0;
  /// Puts memory behind [at, at + bytes), part of a reserved range.
  virtual bool map(char* at, size_t bytes) = 0;
  /// Takes away the memory of a range that was mapped in one call; nothing may use it any more.
  virtual void unmap(char* at, size_t bytes) = 0;
};

}  // namespace cresset::cuda
