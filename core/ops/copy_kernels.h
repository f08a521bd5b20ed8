// Kernel table of copies between strided memory of one element size.
#pragma once

#include "core/ops/launch.h"

namespace cresset {

/// Copies an index space; strides are in elements and may be 0 or negative on the source side.
struct StridedCopy {
  char* to;
  const char* from;
  Dims sizes, to_strides, from_strides;
  int64_t size;  ///< bytes of an element
};

struct CopyKernels {
  void (*strided)(StridedCopy copy);
  /// Keeps (x) or zeroes the elements of matrices below or above a diagonal:
  /// from and to are contiguous [batch, rows, columns].
  void (*triangle)(const Tensor& from, const Tensor& to, int64_t diagonal, bool upper);
};

namespace ops {
/// dst = src for equal dtypes on the CPU, src broadcast to dst's shape; no checks, no recording.
void copy_same_dtype(const Tensor& src, const Tensor& dst);
}  // namespace ops

}  // namespace cresset
