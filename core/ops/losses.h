// Kernel table and functions of the loss functions.
#pragma once

#include "core/dispatch/decode.h"
#include "core/ops/launch.h"

namespace cresset {

/// What becomes of the losses of the elements.
enum class Reduction { none, mean, sum };

template <> struct EnumNames<Reduction> {
  static constexpr const char* schema = "Reduction{none|mean|sum}";
};

/// As Reduction; batchmean divides the sum by the size of the batch.
enum class KlReduction { none, mean, sum, batchmean };

template <> struct EnumNames<KlReduction> {
  static constexpr const char* schema = "KlReduction{none|mean|sum|batchmean}";
};

/// Losses f(d) of the difference d of two tensors: d^2, |d|, and two that are quadratic near 0:
/// smooth_l1 d^2 / (2 p) or |d| - p / 2, huber d^2 / 2 or p (|d| - p / 2), with a parameter p.
enum class Difference { squared, absolute, smooth_l1, huber };

/// Scores x [N, C, S] and classes [N, S]; row (n, s) is x[n, :, s]. A row's loss is
///   (1 - smoothing) w[t] (z - x[t]) + smoothing / C sum over c of w[c] (z - x[c])
/// with z = log sum exp of the row for logits, 0 for log-probabilities; ignored rows give 0.
struct ClassLoss {
  int64_t n = 1, classes = 1, inner = 1;
  Tensor scores;  ///< contiguous, float32 or float64
  Tensor target;  ///< contiguous, int64
  Tensor weight;  ///< w [C], contiguous, of the scores' dtype; undefined for ones
  int64_t ignore_index = -100;
  double smoothing = 0;
  bool logits = true;
};

/// Where the rows' losses go. `lse` [N, S] gets z for logits; `total` the sum of w[t] for a mean.
struct ClassLossOut {
  Reduction reduction = Reduction::mean;
  Tensor lse, loss, total;
};

struct LossKernels {
  /// lse[n, s] = log sum over c of exp(x[n, c, s]).
  void (*log_sum_exp)(const ClassLoss& in, const Tensor& lse);
  void (*class_loss)(const ClassLoss& in, const ClassLossOut& out);
  /// dx = gradient of the scores; g is 0-d, or [N, S] without reduction.
  void (*class_loss_backward)(const ClassLoss& in, const ClassLossOut& saved, const Tensor& g,
                              const Tensor& dx);
  /// x, t and, without reduction, out are contiguous and of one shape.
  void (*difference)(Difference kind, double param, Reduction reduction, const Tensor& x,
                     const Tensor& t, const Tensor& out);
  /// dx = g f'(x - t), divided by the element count for a mean; g is 0-d, or of dx's shape.
  void (*difference_backward)(Difference kind, double param, Reduction reduction, const Tensor& x,
                              const Tensor& t, const Tensor& g, const Tensor& dx);
};

namespace ops {

using LegacyFlag = std::optional<bool>;

/// PyTorch's old size_average and reduce flags win over `reduction` where given.
Reduction legacy_reduction(Reduction reduction, LegacyFlag size_average, LegacyFlag reduce);
Tensor reduce_loss(const char* op, const Tensor& loss, Reduction reduction);

/// Losses of one row per sample; `x` is [N, C, ...] or [C], `target` holds classes.
Tensor class_loss(const char* op, const Tensor& x, const Tensor& target, const Tensor& weight,
                  ClassLoss in, Reduction reduction);
/// The dense form [N, C, ...] of classes: w[t] at the target, 0 elsewhere and in ignored rows.
Tensor one_hot_targets(const char* op, const Tensor& x, const Tensor& target, const Tensor& weight,
                       int64_t ignore_index);
/// log sum exp over the class dim (1, or 0 of a 1-d tensor), which is kept with size 1.
Tensor class_log_sum_exp(const Tensor& x);
/// softmax over the class dim; zeros where every score is -inf.
Tensor class_softmax(const Tensor& x);

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction);
/// x, not below `lowest`; its gradient is that of x everywhere.
Tensor at_least(const Tensor& x, double lowest);

}  // namespace ops
}  // namespace cresset
