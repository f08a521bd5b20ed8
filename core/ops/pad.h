// Padding: kernel table (every mode is a table of source indices per dim) and its modes.
#pragma once

#include <vector>

#include "core/dispatch/decode.h"
#include "core/ops/launch.h"

namespace cresset {

enum class PadMode { constant, reflect, replicate, circular };
template <> struct EnumNames<PadMode> {
  static constexpr const char* schema = "PadMode{constant|reflect|replicate|circular}";
};

/// source[d][i] = the index in dim d of the input that lands at i of the output; -1 = the value.
struct PadPlan {
  std::vector<std::vector<int64_t>> source;
  /// Dims before this one are not padded.
  int64_t first = 0;
};

struct PadKernels {
  /// y contiguous; `value` points to one element of the dtype.
  void (*pad)(const Tensor& x, const Tensor& y, const PadPlan& plan, const void* value);
  /// Adds g (contiguous) to the places of gx (contiguous, zeroed) that it came from.
  void (*pad_backward)(const Tensor& g, const Tensor& gx, const PadPlan& plan);
};

namespace ops {
/// The last dims padded, last dim first.
Tensor pad(const Tensor& x, const Dims& amounts, PadMode mode);
}  // namespace ops

}  // namespace cresset
