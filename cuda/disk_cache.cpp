// A folder of small files named by hashes: bounded, and safe with several processes.
#include "cuda/disk_cache.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace cresset::cuda {
namespace fs = std::filesystem;

DiskCache& DiskCache::standard() {
  static DiskCache* cache = [] {
    std::string folder;
    if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg)
      folder = xdg;
    else if (const char* home = std::getenv("HOME"); home && *home)
      folder = std::string(home) + "/.cache";
    return new DiskCache(folder.empty() ? folder : folder + "/cresset", int64_t{256} << 20);
  }();
  return *cache;
}

DiskCache& DiskCache::shipped() {
  static DiskCache* cache = [] {
    Dl_info info;
    std::string folder;
    if (dladdr(reinterpret_cast<void*>(&DiskCache::standard), &info) && info.dli_fname) {
      folder = info.dli_fname;
      folder.resize(folder.rfind('/') + 1);
      folder += "cresset_kernels";
    }
    return new DiskCache(folder, 0);
  }();
  return *cache;
}

std::optional<std::string> DiskCache::get(const std::string& key) {
  if (folder_.empty()) return std::nullopt;
  const fs::path path = fs::path(folder_) / key;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.empty()) return std::nullopt;
  if (limit_ == 0) return bytes;
  // The time of the last use is what trim() goes by.
  std::error_code ignored;
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return bytes;
}

void DiskCache::put(const std::string& key, std::string_view bytes) {
  if (folder_.empty() || limit_ == 0) return;
  static std::atomic<unsigned> serial{0};
  std::error_code error;
  fs::create_directories(folder_, error);
  const fs::path path = fs::path(folder_) / key;
  const fs::path draft =
      path.string() + ".tmp" + std::to_string(getpid()) + "-" + std::to_string(serial.fetch_add(1));
  {
    std::ofstream file(draft, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file) {
      file.close();
      fs::remove(draft, error);
      return;
    }
  }
  fs::rename(draft, path, error);
  if (error) fs::remove(draft, error);
  // The folder is looked through once per sixteenth of its limit.
  if (written_ == 0 || written_ > limit_ / 16) {
    trim();
    written_ = 0;
  }
  written_ += static_cast<int64_t>(bytes.size());
}

void DiskCache::trim() {
  struct File {
    fs::file_time_type used;
    int64_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  int64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    const auto bytes = static_cast<int64_t>(it->file_size(gone));
    const fs::file_time_type used = it->last_write_time(gone);
    if (gone) continue;
    files.push_back({used, bytes, it->path()});
    total += bytes;
  }
  if (total <= limit_) return;
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (total <= limit_ - limit_ / 8) break;
    if (fs::remove(file.path, error)) total -= file.bytes;
  }
}

std::string hash_text(std::string_view text) {
  // Two FNV-1a hashes of 64 bits, the second over words scrambled by a multiplication.
  uint64_t a = 14695981039346656037ull, b = 0x9e3779b97f4a7c15ull;
  for (const char c : text) {
    a = (a ^ static_cast<uint8_t>(c)) * 1099511628211ull;
    b = (b + static_cast<uint8_t>(c)) * 0xbf58476d1ce4e5b9ull;
    b ^= b >> 29;
  }
  std::string out;
  for (const uint64_t h : {a, b})
    for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[(h >> shift) & 15];
  return out;
}

}  // namespace cresset::cuda
