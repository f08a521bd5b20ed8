// The cache of pinned memory on a fake device: reuse waits for the copies that use a block.
#include "cuda/pinned.h"

#include <memory>

#include "test/core/cuda_fake_device.h"

namespace cresset::cuda {
namespace {

struct FakeHost final : HostApi {
  void* allocate(size_t bytes) override {
    if (bytes > (size_t{1} << 30)) return nullptr;
    return held.emplace_back(std::make_unique<char[]>(bytes)).get();
  }
  void release(void* data) override {
    std::erase_if(held, [&](const auto& block) { return block.get() == data; });
  }
  std::vector<std::unique_ptr<char[]>> held;
};

struct PinnedMemory : testing::Test {
  FakeHost host;
  FakeDevice device{1};
  PinnedCache cache{host};
};

TEST_F(PinnedMemory, BlocksAreReusedBySize) {
  auto* a = cache.allocate(1000);
  EXPECT_EQ(a->size, 1024u);
  cache.release(a);
  EXPECT_EQ(cache.allocate(600), a);
  EXPECT_NE(cache.allocate(600), a);
  EXPECT_NE(cache.allocate(0), nullptr);
  EXPECT_EQ(cache.allocate(size_t{1} << 40), nullptr);
}

TEST_F(PinnedMemory, ABlockInFlightIsNotGivenOutAgain) {
  auto* a = cache.allocate(4096);
  cache.record(a, device, nullptr);
  cache.release(a);
  auto* b = cache.allocate(4096);
  EXPECT_NE(b, a);
  device.finish_all();
  EXPECT_EQ(cache.allocate(4096), a);
}

TEST_F(PinnedMemory, TheCpuWaitsForCopies) {
  auto* a = cache.allocate(4096);
  cache.record(a, device, nullptr);
  EXPECT_LT(device.streams[nullptr].done, device.streams[nullptr].queued);
  cache.wait(a);
  EXPECT_EQ(device.streams[nullptr].done, device.streams[nullptr].queued);
  EXPECT_TRUE(a->uses.empty());
}

TEST_F(PinnedMemory, AddressesInsideABlockAreFound) {
  auto* a = cache.allocate(4096);
  int other = 0;
  EXPECT_EQ(cache.find(a->data + 4095), a);
  EXPECT_EQ(cache.find(&other), nullptr);
  cache.release(a);
  EXPECT_EQ(cache.find(a->data), nullptr);
}

}  // namespace
}  // namespace cresset::cuda
