// A description of every tensor that a host language holds.
#pragma once

#include <string>

#include "core/dispatch/handles.h"

namespace cresset {

/// A JSON array of {id, dtype, shape, device, bytes, storage, storageBytes, requiresGrad, depth}.
/// `bytes` are those of the elements; handles with one `storage` number share their memory.
std::string snapshot_json(const HandleTable& handles);

}  // namespace cresset
