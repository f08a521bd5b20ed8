// The cache of compiled kernels: whole files only, bounded, oldest use first, several writers.
#include "cuda/disk_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

namespace cresset::cuda {
namespace {

namespace fs = std::filesystem;

std::string fresh_folder(const char* name) {
  const fs::path folder = fs::temp_directory_path() / ("cresset-cache-test-" + std::string(name));
  fs::remove_all(folder);
  return folder.string();
}

TEST(DiskCache, KeepsWhatWasPut) {
  DiskCache cache(fresh_folder("keeps"), 1 << 20);
  EXPECT_FALSE(cache.get("a"));
  cache.put("a", std::string("x\0y", 3));
  EXPECT_EQ(cache.get("a"), std::string("x\0y", 3));
  EXPECT_EQ(DiskCache(cache.folder(), 1 << 20).get("a"), std::string("x\0y", 3));
  fs::remove_all(cache.folder());
}

TEST(DiskCache, DropsWhatWasUnusedForLongest) {
  DiskCache cache(fresh_folder("drops"), 16000);
  const std::string kilobyte(1000, 'k');
  const auto hour = std::chrono::hours(1);
  for (int i = 0; i < 40; ++i) {
    const std::string key = "key" + std::to_string(i);
    cache.put(key, kilobyte);
    std::error_code gone;
    const fs::path path = fs::path(cache.folder()) / key;
    fs::last_write_time(path, fs::file_time_type::clock::now() - 100 * hour + i * hour, gone);
  }
  int64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(cache.folder()))
    bytes += static_cast<int64_t>(file.file_size());
  EXPECT_LE(bytes, 17000);
  EXPECT_TRUE(cache.get("key39"));
  EXPECT_FALSE(cache.get("key0"));
  fs::remove_all(cache.folder());
}

TEST(DiskCache, TakesSeveralWritersAndReaders) {
  const std::string folder = fresh_folder("several");
  const std::string value(50000, 'v');
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      DiskCache cache(folder, 1 << 24);
      for (int i = 0; i < 50; ++i) {
        cache.put("shared", value);
        const auto got = cache.get("shared");
        ASSERT_TRUE(got);
        ASSERT_EQ(*got, value);
      }
    });
  for (std::thread& t : threads) t.join();
  fs::remove_all(folder);
}

TEST(DiskCache, MissesWhereItCannotWrite) {
  DiskCache cache("/proc/cresset-has-no-place-here", 1 << 20);
  cache.put("a", "x");
  EXPECT_FALSE(cache.get("a"));
  DiskCache nowhere("", 1 << 20);
  nowhere.put("a", "x");
  EXPECT_FALSE(nowhere.get("a"));
}

TEST(DiskCache, HashesTellTextsApart) {
  EXPECT_EQ(hash_text("a").size(), 32u);
  EXPECT_NE(hash_text("a"), hash_text("b"));
  EXPECT_NE(hash_text(""), hash_text(std::string(1, '\0')));
  EXPECT_EQ(hash_text("same"), hash_text("same"));
}

}  // namespace
}  // namespace cresset::cuda
