// Kernel table of resampling images.
#pragma once

#include <vector>

#include "core/ops/launch.h"

namespace cresset {

/// How the positions of a dim are resampled; *_aa widens the filter where the dim shrinks.
enum class Resampling { nearest, nearest_exact, linear, cubic, area, linear_aa, cubic_aa };

/// A sparse matrix [outputs, inputs] by rows: output o is the sum over k in [first[o],
/// first[o + 1]) of weight[k] times input index[k].
struct ResamplingMatrix {
  int64_t inputs = 0, outputs = 0;
  std::vector<int64_t> first, index;
  std::vector<double> weight;
};

struct VisionKernels {
  /// y [outer, outputs, inner] = matrix times x [outer, inputs, inner], or, transposed, y
  /// [outer, inputs, inner] from x [outer, outputs, inner]; contiguous.
  void (*resample)(const ResamplingMatrix& matrix, bool transposed, int64_t inner, const Tensor& x,
                   const Tensor& y);
};

}  // namespace cresset
