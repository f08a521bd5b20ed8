// Kernel table and functions of the activations that are more than one row.
#pragma once

#include "core/dispatch/decode.h"
#include "core/ops/launch.h"

namespace cresset {

struct ActivationKernels {
  /// x = mantissa 2^exponent; all contiguous, exponent int32.
  void (*frexp)(const Tensor& x, const Tensor& mantissa, const Tensor& exponent);
};

/// How gelu computes the normal distribution function.
enum class Approximate { none, tanh };

template <> struct EnumNames<Approximate> {
  static constexpr const char* schema = "Approximate{none|tanh}";
};

namespace ops {

Tensor gelu(const Tensor& x, Approximate approximate);
Tensor glu(const Tensor& x, int64_t dim);
Tensor prelu(const Tensor& x, const Tensor& weight);
/// x where above 0 and 0 elsewhere, with gradient 1 at 0 as clamp_min has it.
Tensor positive_part(const Tensor& x);

}  // namespace ops
}  // namespace cresset
