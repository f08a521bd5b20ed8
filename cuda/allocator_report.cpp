// What the CUDA allocators tell: statistics, snapshots, the out-of-memory error.
#include <cstdio>
#include <sstream>

#include "core/base/error.h"
#include "cuda/allocator.h"

namespace cresset::cuda {
namespace {

std::string readable(size_t bytes) {
  char text[64];
  double b = static_cast<double>(bytes);
  if (bytes < (size_t{1} << 20))
    std::snprintf(text, sizeof(text), "%.2f KiB", b / 1024);
  else if (bytes < (size_t{1} << 30))
    std::snprintf(text, sizeof(text), "%.2f MiB", b / (1 << 20));
  else
    std::snprintf(text, sizeof(text), "%.2f GiB", b / (1 << 30));
  return text;
}

template <class F> void each_stat(DeviceStats& s, F&& f) {
  for (auto& kinds : s.by_kind)
    for (Stat& stat : kinds) f(stat);
  f(s.oversize_allocations);
  f(s.oversize_segments);
}

void reset_peaks(DeviceStats& s) {
  each_stat(s, [](Stat& stat) { stat.peak = stat.current; });
}

void reset_counts(DeviceStats& s) {
  each_stat(s, [](Stat& stat) { stat.allocated = stat.freed = 0; });
  s.alloc_retries = s.ooms = s.syncs = s.device_allocs = s.device_frees = 0;
}

// The members of one Stat as "name.current":1,...
void write(std::ostream& out, const std::string& name, const Stat& s) {
  out << '"' << name << ".current\":" << s.current << ",\"" << name << ".peak\":" << s.peak << ",\""
      << name << ".allocated\":" << s.allocated << ",\"" << name << ".freed\":" << s.freed << ',';
}

}  // namespace

void fail_out_of_memory(int device, DeviceApi& api, size_t asked, const DeviceStats& s,
                        size_t limit) {
  size_t free = 0, total = 0;
  api.memory_info(&free, &total);
  auto allocated = static_cast<size_t>(s.current(AllocatedBytes));
  auto reserved = static_cast<size_t>(s.current(ReservedBytes));
  std::string hint;
  if (limit) hint = "; the process may hold " + readable(limit);
  if (reserved > allocated && reserved - allocated >= asked)
    hint +=
        "; the reserved memory is in pieces that are too small, which expandable_segments:True "
        "in CRESSET_ALLOC_CONF avoids";
  fail(ErrorKind::OutOfMemory, "cuda: out of memory on cuda:", device, ": tried to allocate ",
       readable(asked), "; ", readable(allocated), " allocated, ", readable(reserved),
       " reserved, ", readable(free), " free of ", readable(total), hint);
}

std::string to_json(const DeviceStats& s) {
  static constexpr const char* kinds[] = {
      "allocation",      "segment",        "active",       "inactive_split",
      "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
      "requested_bytes"};
  static constexpr const char* pools[] = {"all", "small_pool", "large_pool"};
  std::ostringstream out;
  out << '{';
  for (size_t kind = 0; kind < counted_kinds; ++kind)
    for (size_t pool = 0; pool < 3; ++pool)
      write(out, std::string(kinds[kind]) + "." + pools[pool], s.by_kind[kind][pool]);
  write(out, "oversize_allocations", s.oversize_allocations);
  write(out, "oversize_segments", s.oversize_segments);
  out << "\"num_alloc_retries\":" << s.alloc_retries << ",\"num_ooms\":" << s.ooms
      << ",\"num_sync_all_streams\":" << s.syncs << ",\"num_device_alloc\":" << s.device_allocs
      << ",\"num_device_free\":" << s.device_frees << ",\"max_split_size\":" << s.max_split_size
      << '}';
  return out.str();
}

std::string to_json(int device, const std::vector<SegmentInfo>& segments) {
  std::ostringstream out;
  const char* comma = "";
  out << '[';
  for (const SegmentInfo& s : segments) {
    out << comma << "{\"device\":" << device << ",\"address\":" << s.address
        << ",\"total_size\":" << s.total << ",\"allocated_size\":" << s.allocated
        << ",\"active_size\":" << s.active << ",\"requested_size\":" << s.requested
        << ",\"stream\":" << reinterpret_cast<uintptr_t>(s.stream) << ",\"segment_type\":\""
        << (s.small ? "small" : "large") << "\",\"segment_pool_id\":[" << s.pool.first << ','
        << s.pool.second << "],\"is_expandable\":" << (s.expandable ? "true" : "false")
        << ",\"blocks\":[";
    const char* between = "";
    for (const BlockInfo& b : s.blocks) {
      out << between << "{\"address\":" << b.address << ",\"size\":" << b.size
          << ",\"requested_size\":" << b.requested << ",\"state\":\"" << b.state << "\"}";
      between = ",";
    }
    out << "]}";
    comma = ",";
  }
  out << ']';
  return out.str();
}

// ---- the caching allocator

DeviceStats CachingAllocator::stats() {
  std::lock_guard lock(mutex_);
  DeviceStats s = stats_;
  if (config_.max_split_size != unlimited)
    s.max_split_size = static_cast<int64_t>(config_.max_split_size);
  return s;
}

void CachingAllocator::reset_peak() {
  std::lock_guard lock(mutex_);
  reset_peaks(stats_);
}

void CachingAllocator::reset_accumulated() {
  std::lock_guard lock(mutex_);
  reset_counts(stats_);
}

std::vector<SegmentInfo> CachingAllocator::snapshot() {
  std::lock_guard lock(mutex_);
  std::vector<SegmentInfo> out;
  for (auto& [address, s] : segments_) {
    SegmentInfo info;
    info.address = reinterpret_cast<uintptr_t>(s->data);
    info.stream = s->stream;
    info.small = s->pool->small;
    info.expandable = s->chunk != 0;
    if (s->pool->owner) info.pool = s->pool->owner->id;
    for (Block* b = s->first; b; b = b->next) {
      if (!b->mapped) continue;
      bool active = !is_free(b);
      info.total += b->size;
      if (b->allocated) info.allocated += b->size;
      if (active) info.active += b->size, info.requested += b->requested;
      info.blocks.push_back({reinterpret_cast<uintptr_t>(b->data), b->size, b->requested,
                             b->allocated ? "active_allocated"
                             : active     ? "active_awaiting_free"
                                          : "inactive"});
    }
    out.push_back(std::move(info));
  }
  return out;
}

// ---- the allocator without a cache

DeviceStats DirectAllocator::stats() {
  std::lock_guard lock(mutex_);
  DeviceStats s = stats_;
  if (!source_.allocate)
    s.by_kind[ReservedBytes][0].current = static_cast<int64_t>(api_.reserved_in_order());
  return s;
}

void DirectAllocator::reset_peak() {
  std::lock_guard lock(mutex_);
  reset_peaks(stats_);
}

void DirectAllocator::reset_accumulated() {
  std::lock_guard lock(mutex_);
  reset_counts(stats_);
}

}  // namespace cresset::cuda
