// The settings of the CUDA allocator, in the grammar of PYTORCH_ALLOC_CONF.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string_view>

namespace cresset::cuda {

constexpr size_t min_block = 512;                   ///< every size is a multiple of it
constexpr size_t small_limit = size_t{1} << 20;     ///< larger requests use the large pool
constexpr size_t small_segment = size_t{2} << 20;   ///< asked from the driver for small requests
constexpr size_t large_segment = size_t{20} << 20;  ///< asked for requests below `huge_request`
constexpr size_t huge_request = size_t{10} << 20;   ///< from here on the request itself, rounded
constexpr size_t huge_rounding = size_t{2} << 20;
constexpr size_t unlimited = std::numeric_limits<size_t>::max();

enum class AllocatorBackend { Native, Async };

struct AllocatorConfig {
  size_t max_split_size = unlimited;              ///< larger blocks are never split
  size_t max_non_split_rounding = large_segment;  ///< slack allowed in a block that is not split
  double garbage_collection_threshold = 0;        ///< part of the memory limit; 0 = never
  bool expandable_segments = false;
  AllocatorBackend backend = AllocatorBackend::Native;
  /// Steps per power of two for sizes from 1 MiB << i on; 0 = multiples of 512.
  std::array<size_t, 16> divisions = {};

  /// A request as the pools see it.
  size_t round(size_t bytes) const;
};

/// The config of "max_split_size_mb:128,roundup_power2_divisions:[256:1,>:4],...". Throws Value
/// with `source` in front, naming the key that is unknown or has a bad value.
AllocatorConfig parse_allocator_config(const char* source, std::string_view text);

}  // namespace cresset::cuda
