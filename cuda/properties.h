// What a device is, as JSON.
#pragma once

#include <string>

namespace cresset::cuda {

/// name, major, minor, totalMemory, multiProcessorCount, ...: as torch.cuda.get_device_properties.
std::string properties_json(int device);

}  // namespace cresset::cuda
