// A folder of small files named by hashes: bounded, and safe with several processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cresset::cuda {

/// Files are written under another name and renamed, so that readers see whole files only. When
/// they exceed `limit` bytes, those unused for longest go; with a limit of 0 nothing is written.
/// Failures of the file system mean misses.
class DiskCache {
 public:
  DiskCache(std::string folder, int64_t limit) : folder_(std::move(folder)), limit_(limit) {}
  /// $XDG_CACHE_HOME/cresset or ~/.cache/cresset, 256 MiB.
  static DiskCache& standard();
  /// The folder cresset_kernels beside this library, of kernels compiled ahead; only read.
  static DiskCache& shipped();

  std::optional<std::string> get(const std::string& key);
  void put(const std::string& key, std::string_view bytes);
  const std::string& folder() const { return folder_; }

 private:
  void trim();
  std::string folder_;
  int64_t limit_;
  int64_t written_ = 0;
};

/// 128 bits of a text, as 32 hexadecimal digits.
std::string hash_text(std::string_view text);

}  // namespace cresset::cuda
