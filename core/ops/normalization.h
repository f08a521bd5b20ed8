// Normalisations over rows and over channels: kernel table, and what other families use.
#pragma once

#include "core/ops/launch.h"
#include "core/ops/operand.h"

namespace cresset {

/// All tensors are contiguous and of one dtype, float or double; undefined weights count as 1 and
/// undefined biases as 0.
struct NormalizationKernels {
  /// y = (x - mean) rstd weight + bias over rows of length n = x.numel() / mean.numel().
  void (*layer_norm)(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps,
                     const Tensor& y, const Tensor& mean, const Tensor& rstd);
  /// Gradients of layer_norm; those not wanted are undefined.
  void (*layer_norm_backward)(const Tensor& g, const Tensor& x, const Tensor& mean,
                              const Tensor& rstd, const Tensor& weight, const Tensor& dx,
                              const Tensor& dweight, const Tensor& dbias);
  /// y[n, c, l] = (x - mean[c]) a[c] + b[c], with C = a.numel() channels; x is [N, C, L].
  void (*channel_affine)(const Tensor& x, const Tensor& mean, const Tensor& a, const Tensor& b,
                         const Tensor& y);
  /// dx[n, c, l] = g a[c] + (x - mean[c]) b[c] + d[c].
  void (*channel_affine2)(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& a,
                          const Tensor& b, const Tensor& d, const Tensor& dx);
  /// sums[c] = sum of g, dots[c] = sum of g (x - mean[c]), over n and l.
  void (*channel_sums)(const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& sums,
                       const Tensor& dots);
};

namespace ops {

Tensor layer_norm(const Tensor& input, const Dims& normalized_shape,
                  const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                  double eps);
Tensor batch_norm(const Tensor& input, const std::optional<Tensor>& running_mean,
                  const std::optional<Tensor>& running_var, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, bool training, double momentum, double eps);

}  // namespace ops
}  // namespace cresset
