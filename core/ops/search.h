// Kernel table of searching, counting and removing repetitions.
#pragma once

#include "core/dispatch/decode.h"
#include "core/ops/launch.h"
#include "core/ops/operand.h"

namespace cresset {

/// The distinct rows of a matrix: where each first stands, the number of each row's distinct row,
/// and how often each occurs.
struct UniqueRows {
  std::vector<int64_t> first, inverse, counts;
};

/// The one of `bins` equal bins of [low, high] for an x inside; also where the range is wider than
/// the largest number of T.
template <class T> constexpr int64_t bin_of(T x, T low, T high, int64_t bins) {
  const T at = (x / 2 - low / 2) * static_cast<T>(bins) / (high / 2 - low / 2);
  return at >= T(0) && at < static_cast<T>(bins) ? static_cast<int64_t>(at) : bins - 1;
}

struct SearchKernels {
  /// out[...] = how many elements of its row of `sequence` are below the value (or not above it,
  /// when `right`). One sequence for all values, or one per row of them. Sorter may be undefined.
  void (*searchsorted)(const Tensor& sequence, const Tensor& values, const Tensor& sorter,
                       bool right, const Tensor& out);
  /// out[i] = whether x[i] is among `test`; both contiguous, of one dtype.
  void (*isin)(const Tensor& x, const Tensor& test, bool invert, const Tensor& out);
  /// x [n, m] contiguous; sorted by rows, or runs of equal neighbours when `consecutive`.
  void (*unique)(const Tensor& x, bool consecutive, UniqueRows* result);
  /// Adds 1, or the weight, of each row of x [n, d] to its bin; edges ascend, one list per column.
  void (*histogram)(const Tensor& x, const TensorList& edges, const Tensor& weight,
                    const Tensor& counts);
  /// Adds 1 to one of counts.numel() equal bins of [lo, hi] for each element of x inside.
  void (*histc)(const Tensor& x, double lo, double hi, const Tensor& counts);
};

enum class Side : uint8_t { unset, left, right };
template <> struct EnumNames<Side> {
  static constexpr const char* schema = "Side{unset|left|right}";
};

}  // namespace cresset
