// Kernels compiled at run time: NVRTC, with a cache of cubins on disk.
#pragma once

#include <cuda.h>

#include <span>
#include <string>
#include <string_view>

namespace cresset::cuda {

/// A text of cuda/texts or of the core's scalar headers, by its file name.
std::string_view embedded_text(std::string_view name);

/// Compiles a program to a cubin for "sm_90" or the like; throws Internal with the log.
std::string compile(const std::string& source, const std::string& arch);

/// The name of a program's cubin for an architecture in caches.
std::string kernel_key(const std::string& source, const std::string& arch);

/// The kernel `entry` of a program, for the current device: from the disk cache where it is there.
/// The source stays loaded for the life of the process.
CUfunction load_kernel(const std::string& source, const char* entry);

/// Launches on the current stream. `args` are pointers to the arguments.
void launch_kernel(CUfunction kernel, unsigned blocks_x, unsigned blocks_y, unsigned threads_x,
                   unsigned threads_y, void** args);

}  // namespace cresset::cuda
