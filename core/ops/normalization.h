// Normalisations over rows and over channels: kernel table, and what other families use.
#pragma once

#include "core/ops/launch.h"
#include "core/ops/operand.h"

namespace cresset {

/// What follows from the statistics of a batch, one value per channel, all of one dtype; undefined
/// weights, biases and running statistics are left out.
struct BatchStatistics {
  Tensor mean, variance;  ///< of the batch, biased
  Tensor weight, bias, running_mean, running_var;
  int64_t count = 1;  ///< elements of a channel
  double momentum = 0.1, eps = 1e-5;
};

/// All tensors are contiguous and of one dtype, float or double (on GPUs also 16-bit floats, then
/// with statistics and values per channel in float); undefined weights count as 1 and undefined
/// biases as 0.
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
  /// One launch for what is several operators on the CPU: rstd = 1 / sqrt(variance + eps), a = rstd
  /// weight, b = bias, and the running statistics moved on.
  void (*batch_factors)(const BatchStatistics& s, const Tensor& rstd, const Tensor& a,
                        const Tensor& b) = nullptr;
  /// The factors of channel_affine2 in training, and the weight's gradient: a = rstd weight,
  /// slope = -a rstd^2 dots / count, shift = -a sums / count, dweight = dots rstd.
  void (*batch_slopes)(const Tensor& rstd, const Tensor& weight, const Tensor& sums,
                       const Tensor& dots, int64_t count, const Tensor& a, const Tensor& slope,
                       const Tensor& shift, const Tensor& dweight) = nullptr;
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
