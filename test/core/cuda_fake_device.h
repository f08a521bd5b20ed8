// A GPU made of numbers: addresses, streams and events whose work ends when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cuda/device_api.h"

namespace cresset::cuda {

class FakeDevice final : public DeviceApi {
 public:
  struct Stream {
    uint64_t queued = 0, done = 0;
  };

  explicit FakeDevice(size_t total) : total_(total) {}

  void* allocate(size_t bytes) override {
    if (used_ + bytes > total_) return nullptr;
    used_ += bytes;
    ++allocations;
    return address(segments_, bytes);
  }
  void release(void* data) override {
    finish_all();
    drop(segments_, data);
  }
  void* allocate_in_order(size_t bytes, StreamHandle) override {
    if (used_ + bytes > total_) return nullptr;
    used_ += bytes;
    return address(ordered_, bytes);
  }
  void release_in_order(void* data, StreamHandle) override { drop(ordered_, data); }
  size_t reserved_in_order() override { return used_; }
  void trim_in_order() override { ++trims; }
  void memory_info(size_t* free, size_t* total) override {
    *free = total_ - used_;
    *total = total_;
  }
  void synchronize() override { finish_all(); }

  EventHandle record(StreamHandle stream) override {
    EXPECT_EQ(capture, 0u) << "an event was recorded during a capture";
    size_t slot = free_events_.empty() ? events_.size() : free_events_.back();
    if (slot == events_.size())
      events_.emplace_back();
    else
      free_events_.pop_back();
    events_[slot] = {stream, ++streams[stream].queued};
    return reinterpret_cast<EventHandle>(slot + 1);
  }
  bool is_done(EventHandle event) override {
    auto [stream, ticket] = at(event);
    return streams[stream].done >= ticket;
  }
  void wait(EventHandle event) override {
    auto [stream, ticket] = at(event);
    streams[stream].done = std::max(streams[stream].done, ticket);
  }
  void recycle(EventHandle event) override {
    free_events_.push_back(reinterpret_cast<size_t>(event) - 1);
  }
  void wait_in_stream(StreamHandle stream, EventHandle) override { ++streams[stream].queued; }
  uint64_t capture_of(StreamHandle stream) override { return stream == captured ? capture : 0; }

  char* reserve(size_t bytes) override { return static_cast<char*>(address(ranges_, bytes)); }
  void unreserve(char* at, size_t bytes) override {
    auto found = ranges_.find(at);
    ASSERT_TRUE(found != ranges_.end() && found->second == bytes);
    ranges_.erase(found);
  }
  bool map(char* at, size_t bytes) override {
    if (used_ + bytes > total_) return false;
    EXPECT_TRUE(mapped_.emplace(at, bytes).second);
    used_ += bytes;
    return true;
  }
  void unmap(char* at, size_t bytes) override {
    auto found = mapped_.find(at);
    ASSERT_TRUE(found != mapped_.end() && found->second == bytes);
    mapped_.erase(found);
    used_ -= bytes;
  }

  /// Whether all of [data, data + bytes) has memory behind it.
  bool backed(char* data, size_t bytes) const {
    for (const auto* all : {&segments_, &ordered_}) {
      auto after = all->upper_bound(data);
      if (after == all->begin()) continue;
      auto [start, size] = *std::prev(after);
      if (data + bytes <= start + size) return true;
    }
    for (char* end = data + bytes; data < end;) {
      auto after = mapped_.upper_bound(data);
      if (after == mapped_.begin()) return false;
      auto [start, size] = *std::prev(after);
      if (data >= start + size) return false;
      data = start + size;
    }
    return true;
  }
  void finish_all() {
    for (auto& [name, stream] : streams) stream.done = stream.queued;
  }
  size_t used() const { return used_; }

  std::map<StreamHandle, Stream> streams;
  StreamHandle captured = nullptr;
  uint64_t capture = 0;
  int allocations = 0, trims = 0;

 private:
  using Ranges = std::map<char*, size_t>;
  std::pair<StreamHandle, uint64_t> at(EventHandle event) {
    return events_.at(reinterpret_cast<size_t>(event) - 1);
  }
  // A gap after each, so that neighbours are never taken for one segment.
  void* address(Ranges& ranges, size_t bytes) {
    char* data = next_;
    next_ += (bytes + (size_t{4} << 20)) >> 21 << 21;
    ranges.emplace(data, bytes);
    return data;
  }
  void drop(Ranges& ranges, void* data) {
    auto found = ranges.find(static_cast<char*>(data));
    ASSERT_TRUE(found != ranges.end());
    used_ -= found->second;
    ranges.erase(found);
  }

  size_t total_, used_ = 0;
  char* next_ = reinterpret_cast<char*>(uintptr_t{1} << 40);
  Ranges segments_, ordered_, ranges_, mapped_;
  std::vector<std::pair<StreamHandle, uint64_t>> events_;
  std::vector<size_t> free_events_;
};

}  // namespace cresset::cuda
