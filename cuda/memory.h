// The allocators in use: one per device, chosen by the settings, and the pinned memory of the host.
#pragma once

#include <string>

#include "cuda/allocator.h"
#include "cuda/pinned.h"

namespace cresset::cuda {

/// The device's allocator, made at its first use from the settings.
DeviceAllocator& allocator(int device);
/// The allocator if the device was used, else null.
DeviceAllocator* used_allocator(int device) noexcept;
PinnedCache& pinned_cache();

/// New settings; the backend can be chosen only before the first use.
void set_allocator_options(const std::string& options);
std::string allocator_backend();

/// The functions `allocate(bytes, device, stream)` and `release(data, bytes, device, stream)` of a
/// shared library.
SegmentSource load_source(const std::string& path, const std::string& allocate,
                          const std::string& release);
/// Takes the place of the allocators, before their first use.
void use_source(SegmentSource source);

}  // namespace cresset::cuda
