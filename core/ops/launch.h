// Calls a device's kernel through the table of its family.
#pragma once

#include "core/tensor/device_runtime.h"
#include "core/tensor/tensor.h"

namespace cresset {

/// The CPU's table of a family: specialised in core/cpu/<family>.cpp.
template <class Kernels> const Kernels& cpu_kernels();

/// The GPU's table, set when the CUDA library is opened.
template <class Kernels> inline const Kernels* cuda_kernels = nullptr;
/// The place of a family's table by its type's name, for the CUDA library: its own copy of
/// cuda_kernels is another variable.
CRESSET_API const void** cuda_table_slot(const char* kernels);

/// Runs `member` of the family's table for `device`; on `meta` there is nothing to run.
template <class Kernels, class... P, class... A>
void launch(const char* op, Device device, void (*Kernels::*member)(P...), A&&... args) {
  if (device.is_cpu()) [[likely]] {
    void (*kernel)(P...) = cpu_kernels<Kernels>().*member;
    CHECK(kernel, NotImplemented, op, ": no kernel for device ", device);
    return kernel(std::forward<A>(args)...);
  }
  if (device.is_meta()) return;
  void (*kernel)(P...) = cuda_kernels<Kernels> ? cuda_kernels<Kernels>->*member : nullptr;
  CHECK(kernel, NotImplemented, op, ": no kernel for device ", device);
  const LaunchScope scope(op, device);
  kernel(std::forward<A>(args)...);
}

}  // namespace cresset
