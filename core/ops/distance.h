// Kernel table and functions of distances between vectors.
#pragma once

#include "core/ops/launch.h"

namespace cresset {

/// Distances of order p between rows of a [B, P, M] and b [B, R, M]; all contiguous, one floating
/// dtype. With `pairs`, a is b and only rows i < j are compared, in row-major order.
struct DistanceCall {
  double p = 2;
  bool pairs = false;
  int64_t batch = 1, rows_a = 0, rows_b = 0, width = 0;
  const Tensor *a = nullptr, *b = nullptr;
  const Tensor* y = nullptr;  ///< distances [B, P, R], or [P (P - 1) / 2] for pairs
};

struct DistanceKernels {
  void (*forward)(const DistanceCall& call);
  /// da and db += gradients for `g` of y's shape; zero where a distance is 0. db may be undefined,
  /// and is not used for pairs.
  void (*backward)(const DistanceCall& call, const Tensor& g, const Tensor& da, const Tensor& db);
};

namespace ops {

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim);
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps);

}  // namespace ops
}  // namespace cresset
