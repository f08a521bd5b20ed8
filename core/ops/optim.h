// Kernel table of the optimizer updates.
#pragma once

#include "core/ops/launch.h"

namespace cresset {

/// One parameter of a step: all pointers are to `n` elements of `dtype`, in the same order.
struct UpdateSlot {
  DType dtype;
  int64_t n;
  void* param;
  const void* grad;
  void* state[3] = {};
  /// Divisors that undo the bias of Adam's running averages (the second one's square root).
  double correction1 = 1, correction2_sqrt = 1;
  /// Where the GPU counts the steps itself; the corrections then follow from it.
  float* step = nullptr;
};

struct SgdOptions {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
  bool first;  ///< the momentum buffers hold nothing yet
};

struct AdamOptions {
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled;  ///< AdamW's weight decay
  bool amsgrad, maximize;
};

struct OptimKernels {
  /// state[0] = momentum buffer, where momentum is not 0.
  void (*sgd)(std::span<const UpdateSlot> slots, const SgdOptions& options);
  /// state = running averages of the gradient and its square, and the square's maximum (amsgrad).
  void (*adam)(std::span<const UpdateSlot> slots, const AdamOptions& options);
};

}  // namespace cresset
