// Kernel table of the operators that choose elements.
#pragma once

#include "core/ops/launch.h"

namespace cresset {

struct IndexingKernels {
  /// All contiguous, of one shape; a and b of out's dtype.
  void (*where)(const Tensor& condition, const Tensor& a, const Tensor& b, const Tensor& out);
};

}  // namespace cresset
