// Kernel table of the connectionist temporal classification loss.
#pragma once

#include <vector>

#include "core/ops/launch.h"

namespace cresset {

/// log_probs [T, N, C] and alpha [N, T, 2 L + 1] are contiguous, of one floating dtype; the labels
/// of sample n are the next `target_lengths[n]` of its row of `targets` [N, L].
struct CtcCall {
  const Tensor* log_probs = nullptr;
  const Tensor* targets = nullptr;  ///< int64
  const Tensor* alpha = nullptr;    ///< log probability of all paths to a state
  const Tensor* loss = nullptr;     ///< [N]
  std::span<const int64_t> input_lengths, target_lengths;
  int64_t blank = 0;
  bool zero_infinity = false;
};

struct CtcKernels {
  void (*forward)(const CtcCall& call);
  /// dx [T, N, C] = gradient for g [N], as if log_probs came from a log_softmax.
  void (*backward)(const CtcCall& call, const Tensor& g, const Tensor& dx);
};

}  // namespace cresset
