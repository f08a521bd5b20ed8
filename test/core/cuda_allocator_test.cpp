// The CUDA allocators on a fake device: PyTorch's rounding, splitting, pools, counters and errors.
#include "cuda/allocator.h"

#include <random>

#include "core/base/error.h"
#include "test/core/cuda_fake_device.h"

namespace cresset::cuda {
namespace {

constexpr size_t kib = 1024, mib = kib * kib, gib = kib * mib;
const StreamHandle side = reinterpret_cast<StreamHandle>(uintptr_t{1});

AllocatorConfig config(const char* text) { return parse_allocator_config("test", text); }

std::string error_of(const char* text) {
  try {
    config(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind, ErrorKind::Value);
    return e.message;
  }
  return "";
}

struct Rig {
  explicit Rig(const char* settings = "", size_t total = gib, Reclaim reclaim = nullptr)
      : device(total), memory(0, device, config(settings), reclaim) {}

  char* get(size_t bytes, StreamHandle stream = nullptr) {
    void* block;
    char* data = static_cast<char*>(memory.allocate(bytes, stream, &block));
    blocks[data] = block;
    return data;
  }
  void put(char* data) {
    memory.release(blocks.at(data));
    blocks.erase(data);
  }
  int64_t now(Counted kind) { return memory.stats().current(kind); }

  FakeDevice device;
  CachingAllocator memory;
  std::map<char*, void*> blocks;
};

// ---- settings

TEST(CudaAllocatorConfig, ReadsPyTorchsGrammar) {
  AllocatorConfig c = config(
      "max_split_size_mb:128, garbage_collection_threshold:0.8,expandable_segments:True,"
      "roundup_power2_divisions:[256:1,512:2,1024:4,>:8],backend:cudaMallocAsync");
  EXPECT_EQ(c.max_split_size, 128 * mib);
  EXPECT_DOUBLE_EQ(c.garbage_collection_threshold, 0.8);
  EXPECT_TRUE(c.expandable_segments);
  EXPECT_EQ(c.backend, AllocatorBackend::Async);
  EXPECT_EQ(c.round(200 * mib + 1), 200 * mib + 512);
  EXPECT_EQ(c.round(600 * mib), 768 * mib);
  EXPECT_EQ(c.round(1100 * mib), 1280 * mib);
  EXPECT_EQ(c.round(2 * gib + 1), 2 * gib + 256 * mib);
  EXPECT_EQ(config("roundup_power2_divisions:4").round(1200), 1536u);
  EXPECT_EQ(config("roundup_power2_divisions:4").round(5 * kib), 5 * kib);
  EXPECT_EQ(config("roundup_power2_divisions:4").round(5 * kib + 1), 6 * kib);
  EXPECT_EQ(config("").round(1), 512u);
  EXPECT_EQ(config("").round(513), 1024u);
}

TEST(CudaAllocatorConfig, NamesWhatIsWrong) {
  EXPECT_NE(error_of("max_splt_size_mb:1").find("unknown option \"max_splt_size_mb\""),
            std::string::npos);
  EXPECT_NE(error_of("max_split_size_mb:20").find("more than 20"), std::string::npos);
  EXPECT_NE(error_of("garbage_collection_threshold:1.5").find("between 0 and 1"),
            std::string::npos);
  EXPECT_NE(error_of("roundup_power2_divisions:3").find("power of two"), std::string::npos);
  EXPECT_NE(error_of("roundup_power2_divisions:[256:2").find("\"]\""), std::string::npos);
  EXPECT_NE(error_of("expandable_segments:maybe").find("True or False"), std::string::npos);
  EXPECT_NE(error_of("backend:own").find("cudaMallocAsync"), std::string::npos);
  EXPECT_NE(error_of("expandable_segments").find("expandable_segments:value"), std::string::npos);
  EXPECT_NE(error_of("max_split_size_mb:64 backend:native").find("comma"), std::string::npos);
}

// ---- blocks

TEST(CudaAllocator, SmallRequestsShareASegmentOf2MiB) {
  Rig s;
  char *a = s.get(1), *b = s.get(600), *c = s.get(mib);
  EXPECT_EQ(b, a + 512);
  EXPECT_EQ(c, a + 512 + 1024);
  EXPECT_EQ(s.device.used(), 2 * mib);
  EXPECT_EQ(s.now(AllocatedBytes), static_cast<int64_t>(512 + 1024 + mib));
  EXPECT_EQ(s.now(RequestedBytes), static_cast<int64_t>(1 + 600 + mib));
  EXPECT_EQ(s.now(ReservedBytes), static_cast<int64_t>(2 * mib));
  EXPECT_EQ(s.now(InactiveSplit), 1);
  s.put(b);
  EXPECT_EQ(s.now(InactiveSplit), 2);
  EXPECT_EQ(s.get(1024), b);
  for (char* p : {a, b, c}) s.put(p);
  EXPECT_EQ(s.now(InactiveSplit), 0);
  EXPECT_EQ(s.memory.snapshot().at(0).blocks.size(), 1u);
  EXPECT_EQ(s.memory.stats().by_kind[AllocatedBytes][1].peak,
            static_cast<int64_t>(512 + 1024 + mib));
}

TEST(CudaAllocator, LargeRequestsTake20MiBOrTheirOwnSegment) {
  Rig s;
  char* a = s.get(2 * mib);
  EXPECT_EQ(s.device.used(), 20 * mib);
  EXPECT_EQ(s.get(8 * mib), a + 2 * mib);
  s.get(11 * mib + 1);
  EXPECT_EQ(s.device.used(), 32 * mib);
  EXPECT_EQ(s.now(Segments), 2);
  EXPECT_EQ(s.get(0), nullptr);
}

TEST(CudaAllocator, TheBestFitIsTaken) {
  Rig s;
  char *a = s.get(40 * mib), *b = s.get(30 * mib), *c = s.get(60 * mib);
  for (char* p : {a, b, c}) s.put(p);
  EXPECT_EQ(s.get(29 * mib), b);
  EXPECT_EQ(s.get(32 * mib), a);
  EXPECT_EQ(s.device.used(), 130 * mib);
}

TEST(CudaAllocator, StreamsDoNotShareBlocks) {
  Rig s;
  char* a = s.get(mib);
  s.put(a);
  EXPECT_NE(s.get(mib, side), a);
  EXPECT_EQ(s.get(mib), a);
}

TEST(CudaAllocator, ARecordedStreamDelaysReuse) {
  Rig s;
  char* a = s.get(64 * mib);
  s.memory.record_stream(s.blocks[a], side);
  s.put(a);
  EXPECT_EQ(s.now(AllocatedBytes), 0);
  EXPECT_EQ(s.now(ActiveBytes), static_cast<int64_t>(64 * mib));
  EXPECT_STREQ(s.memory.snapshot().at(0).blocks.at(0).state, "active_awaiting_free");
  char* b = s.get(64 * mib);
  EXPECT_NE(b, a);
  s.device.finish_all();
  EXPECT_EQ(s.get(64 * mib), a);
}

// ---- limits

TEST(CudaAllocator, MaxSplitSizeKeepsLargeBlocksWhole) {
  Rig s("max_split_size_mb:32");
  char* a = s.get(64 * mib);
  s.put(a);
  EXPECT_NE(s.get(2 * mib), a);
  EXPECT_NE(s.get(40 * mib), a);
  EXPECT_EQ(s.get(50 * mib), a);
  EXPECT_EQ(s.memory.stats().oversize_segments.current, 2);
  EXPECT_EQ(s.memory.stats().max_split_size, static_cast<int64_t>(32 * mib));
}

TEST(CudaAllocator, OldBlocksAreCollectedAboveTheThreshold) {
  Rig s("garbage_collection_threshold:0.5");
  s.memory.set_memory_fraction(0.5);
  char *a = s.get(200 * mib), *b = s.get(100 * mib);
  s.put(a);
  s.put(b);
  s.get(20 * mib);
  s.get(210 * mib);
  EXPECT_EQ(s.now(ReservedBytes), static_cast<int64_t>(310 * mib));
  EXPECT_EQ(s.memory.stats().alloc_retries, 0);
}

int reclaims = 0;
Rig* reclaiming = nullptr;
char* garbage = nullptr;

TEST(CudaAllocator, ReclaimsThenEmptiesTheCacheThenFails) {
  Rig s("", 100 * mib, [](int attempt) {
    EXPECT_EQ(attempt, reclaims++ % 2);
    if (attempt == 1 && garbage) reclaiming->put(std::exchange(garbage, nullptr));
    return true;
  });
  reclaiming = &s;
  garbage = s.get(60 * mib);
  char* a = s.get(60 * mib);
  EXPECT_EQ(reclaims, 2);
  EXPECT_EQ(s.memory.stats().alloc_retries, 0);
  s.put(a);
  char* b = s.get(80 * mib);
  EXPECT_EQ(s.memory.stats().alloc_retries, 1);
  try {
    s.get(50 * mib);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind, ErrorKind::OutOfMemory);
    EXPECT_EQ(e.message,
              "cuda: out of memory on cuda:0: tried to allocate 50.00 MiB; 80.00 MiB allocated, "
              "80.00 MiB reserved, 20.00 MiB free of 100.00 MiB");
  }
  EXPECT_EQ(s.memory.stats().ooms, 1);
  EXPECT_THROW(s.get(~size_t{0}), Error);
  s.put(b);
  s.put(s.get(100 * mib));
}

TEST(CudaAllocator, TheFractionLimitsWhatIsReserved) {
  Rig s;
  s.memory.set_memory_fraction(0.25);
  char* a = s.get(200 * mib);
  EXPECT_THROW(s.get(100 * mib), Error);
  s.put(a);
  s.get(100 * mib);
}

// ---- expandable segments

TEST(CudaAllocator, ExpandableSegmentsGrowAndShrinkInPlace) {
  Rig s("expandable_segments:True", 400 * mib);
  char *a = s.get(100 * mib), *b = s.get(20 * mib), *c = s.get(100 * mib);
  EXPECT_EQ(b, a + 100 * mib);
  EXPECT_EQ(c, b + 20 * mib);
  EXPECT_EQ(s.device.used(), 220 * mib);
  s.put(c);
  EXPECT_EQ(s.get(150 * mib), b + 20 * mib);
  EXPECT_EQ(s.device.used(), 280 * mib);
  s.put(a);
  s.memory.empty_cache();
  EXPECT_EQ(s.device.used(), 180 * mib);
  EXPECT_EQ(s.now(ReservedBytes), static_cast<int64_t>(180 * mib));
  s.put(b);
  EXPECT_EQ(s.get(110 * mib), a);
  EXPECT_EQ(s.now(Segments), 1);
}

// The case of G08: every other block is free, none is large enough, together they are.
TEST(CudaAllocator, ExpandableSegmentsServeWhatFragmentsCannot) {
  Rig s("expandable_segments:True", 4 * gib);
  std::vector<char*> large;
  for (int i = 0; i < 3; ++i) {
    large.push_back(s.get(gib));
    s.get(20 * mib);
  }
  s.put(large[0]);
  s.put(large[1]);
  EXPECT_NE(s.get(3 * gib / 2), nullptr);
  EXPECT_THROW(s.get(size_t{1} << 42), Error);
}

// ---- private pools

TEST(CudaAllocator, ACaptureHasItsOwnPool) {
  Rig s;
  char* shared = s.get(mib, side);
  s.put(shared);
  s.device.captured = side;
  s.device.capture = 7;
  s.memory.hold_pool({3, 0}, {});
  s.memory.begin_route({{3, 0}, 7, {}});
  char* a = s.get(mib, side);
  EXPECT_NE(a, shared);
  s.memory.record_stream(s.blocks[a], nullptr);
  s.put(a);
  char* other = s.get(mib);
  EXPECT_NE(other, a);
  s.device.capture = 0;
  s.memory.end_route({3, 0});
  EXPECT_EQ(s.get(mib, side), shared);
  s.memory.empty_cache();
  EXPECT_EQ(s.device.used(), 6 * mib);
  s.memory.drop_pool({3, 0});
  s.memory.empty_cache();
  EXPECT_EQ(s.device.used(), 4 * mib);
}

TEST(CudaAllocator, AMemPoolTakesItsSegmentsFromItsSource) {
  static FakeDevice* driver = nullptr;
  Rig s;
  driver = &s.device;
  SegmentSource source{[](size_t bytes, int, StreamHandle) { return driver->allocate(bytes); },
                       [](void* data, size_t, int, StreamHandle) { driver->release(data); }};
  s.memory.hold_pool({0, 1}, source);
  s.memory.begin_route({{0, 1}, 0, std::this_thread::get_id()});
  char* a = s.get(mib);
  s.memory.end_route({0, 1});
  EXPECT_EQ(s.memory.snapshot().at(0).pool, (PoolId{0, 1}));
  s.memory.drop_pool({0, 1});
  s.put(a);
  s.memory.empty_cache();
  EXPECT_EQ(s.device.used(), 0u);
}

TEST(CudaAllocator, WithoutACacheRequestsArePassedOn) {
  FakeDevice device(100 * mib);
  DirectAllocator memory(0, device, {}, nullptr);
  void *a, *b;
  EXPECT_NE(memory.allocate(1000, nullptr, &a), nullptr);
  EXPECT_EQ(device.used(), 1000u);
  memory.record_stream(a, side);
  memory.release(a);
  EXPECT_EQ(device.used(), 0u);
  EXPECT_THROW(memory.allocate(gib, nullptr, &b), Error);
  EXPECT_EQ(memory.stats().ooms, 1);
  EXPECT_EQ(memory.stats().by_kind[AllocatedBytes][0].peak, 1000);
}

TEST(CudaAllocator, ReportsAreJson) {
  Rig s;
  s.get(mib);
  std::string stats = to_json(s.memory.stats());
  for (const char* key : {"\"allocation.all.current\":1,", "\"reserved_bytes.all.peak\":2097152,",
                          "\"num_alloc_retries\":0,", "\"num_ooms\":0,", "\"max_split_size\":-1}"})
    EXPECT_NE(stats.find(key), std::string::npos) << key;
  std::string snapshot = to_json(0, s.memory.snapshot());
  EXPECT_NE(snapshot.find("\"segment_type\":\"small\""), std::string::npos);
  EXPECT_NE(snapshot.find("\"state\":\"active_allocated\""), std::string::npos);
}

// ---- random work

struct Live {
  void* block;
  size_t asked;
  StreamHandle stream;
  std::map<StreamHandle, bool> used_by;
};

// Random requests, releases, uses by other streams, progress of the device; after each step what
// was handed out must be backed, disjoint, and not in use by a stream that is still behind.
class RandomWork {
 public:
  RandomWork(const char* settings, uint32_t seed) : random_(seed), s_(settings, 3 * gib) {}

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step(random_() % 100);
      if (i % 1000 == 999) check_books();
    }
    while (!live_.empty()) release(live_.begin());
    s_.device.finish_all();
    s_.memory.empty_cache();
    check_books();
    EXPECT_EQ(s_.device.used(), 0u);
    EXPECT_EQ(s_.now(Segments), 0);
  }

 private:
  using Entry = std::map<char*, Live>::iterator;

  void step(uint32_t kind) {
    if (kind < 48) {
      allocate();
    } else if (kind < 88) {
      if (!live_.empty()) release(any());
    } else if (kind < 94) {
      if (live_.empty()) return;
      StreamHandle stream = any_stream();
      Entry e = any();
      s_.memory.record_stream(e->second.block, stream);
      if (stream != e->second.stream) e->second.used_by[stream] = true;
    } else if (kind < 99) {
      auto& stream = s_.device.streams[any_stream()];
      stream.done += random_() % (stream.queued - stream.done + 1);
    } else if (random_() % 50 == 0) {
      s_.memory.empty_cache();
      busy_.clear();
    }
  }

  void allocate() {
    size_t asked = size_t{1} << (random_() % 27);
    asked += random_() % asked;
    StreamHandle stream = any_stream();
    void* block;
    char* data;
    try {
      data = static_cast<char*>(s_.memory.allocate(asked, stream, &block));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind, ErrorKind::OutOfMemory);
      for (int i = 0; i < 20 && !live_.empty(); ++i) release(any());
      return;
    }
    ASSERT_TRUE(s_.device.backed(data, asked));
    auto next = live_.lower_bound(data);
    ASSERT_TRUE(next == live_.end() || data + asked <= next->first);
    if (next != live_.begin()) {
      auto before = std::prev(next);
      ASSERT_LE(before->first + before->second.asked, data);
    }
    std::erase_if(busy_,
                  [&](const Busy& b) { return s_.device.streams[b.stream].done >= b.ticket; });
    for (const Busy& b : busy_)
      ASSERT_TRUE(b.data + b.size <= data || data + asked <= b.data)
          << "memory was handed out that another stream still uses";
    live_[data] = {block, asked, stream, {}};
  }

  void release(Entry e) {
    for (auto [stream, used] : e->second.used_by)
      busy_.push_back({e->first, e->second.asked, stream, s_.device.streams[stream].queued + 1});
    s_.memory.release(e->second.block);
    live_.erase(e);
  }

  void check_books() {
    size_t allocated = 0, reserved = 0, count = 0, inactive = 0, requested = 0;
    for (const SegmentInfo& segment : s_.memory.snapshot()) {
      reserved += segment.total;
      uintptr_t end = 0;
      bool was_inactive = false;
      for (const BlockInfo& b : segment.blocks) {
        bool is_inactive = std::string(b.state) == "inactive";
        ASSERT_TRUE(segment.expandable || !end || b.address == end) << "a hole in a segment";
        ASSERT_FALSE(is_inactive && was_inactive && b.address == end) << "not joined";
        end = b.address + b.size;
        was_inactive = is_inactive;
        if (std::string(b.state) == "active_allocated") allocated += b.size, ++count;
        if (!is_inactive) requested += b.requested;
        if (is_inactive && !segment.expandable && segment.blocks.size() > 1) ++inactive;
      }
    }
    size_t asked = 0;
    for (auto& [data, live] : live_) asked += live.asked;
    EXPECT_EQ(s_.now(Allocations), static_cast<int64_t>(live_.size()));
    EXPECT_EQ(count, live_.size());
    EXPECT_EQ(s_.now(AllocatedBytes), static_cast<int64_t>(allocated));
    EXPECT_EQ(s_.now(ReservedBytes), static_cast<int64_t>(reserved));
    EXPECT_EQ(s_.now(InactiveSplit), static_cast<int64_t>(inactive));
    EXPECT_EQ(s_.now(RequestedBytes), static_cast<int64_t>(requested));
    EXPECT_EQ(s_.device.used(), reserved);
    EXPECT_GE(requested, asked);
  }

  Entry any() {
    Entry e =
        live_.lower_bound(reinterpret_cast<char*>((uintptr_t{1} << 40) + random_() % (4 * gib)));
    if (e == live_.end()) e = live_.begin();
    return std::next(e, static_cast<ptrdiff_t>(random_() % std::min<size_t>(live_.size(), 4)) %
                            std::distance(e, live_.end()));
  }
  StreamHandle any_stream() { return reinterpret_cast<StreamHandle>(uintptr_t{random_() % 3}); }

  struct Busy {
    char* data;
    size_t size;
    StreamHandle stream;
    uint64_t ticket;
  };
  std::mt19937_64 random_;
  Rig s_;
  std::map<char*, Live> live_;
  std::vector<Busy> busy_;
};

TEST(CudaAllocator, RandomWorkKeepsTheBooks) { RandomWork("", 1).run(150000); }
TEST(CudaAllocator, RandomWorkOnExpandableSegments) {
  RandomWork("expandable_segments:True", 2).run(150000);
}
TEST(CudaAllocator, RandomWorkWithAllSettings) {
  RandomWork("max_split_size_mb:32,roundup_power2_divisions:[1:4,>:8]", 3).run(100000);
}

TEST(CudaAllocator, ThreadsShareOneDevice) {
  Rig s("", 8 * gib);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<uint64_t>(t));
      std::vector<void*> mine;
      for (int i = 0; i < 20000; ++i) {
        if (mine.size() > 50 || (!mine.empty() && random() % 2)) {
          s.memory.release(mine.back());
          mine.pop_back();
        } else {
          void* block;
          s.memory.allocate(1 + random() % (4 * mib), nullptr, &block);
          mine.push_back(block);
        }
      }
      for (void* block : mine) s.memory.release(block);
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(s.now(AllocatedBytes), 0);
  EXPECT_EQ(s.now(InactiveSplit), 0);
  s.memory.empty_cache();
  EXPECT_EQ(s.device.used(), 0u);
}

}  // namespace
}  // namespace cresset::cuda
