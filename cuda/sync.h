// Watching over what makes the host wait, and copies between devices.
#pragma once

#include <cstddef>

namespace cresset::cuda {

/// For a copy that makes the host wait: says or throws what torch.cuda.setSyncDebugMode asks for.
void warn_of_sync();

/// Between two devices, ordered after the work of both current streams and before what they do
/// next.
void copy_to_peer(void* to, int to_device, const void* from, int from_device, size_t bytes);

}  // namespace cresset::cuda
