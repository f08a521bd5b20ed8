// Convolutions: kernel table, and what other families use of them.
#pragma once

#include "core/cpu/conv_raw.h"
#include "core/dispatch/decode.h"
#include "core/ops/launch.h"

namespace cresset {

/// All tensors contiguous (on GPUs maybe all with channels last) and of one dtype among float32,
/// float64, int64, complex64, complex128, on GPUs float16 and bfloat16;
/// `bias` and `gb` may be undefined. x [n, c_in, ...in], w [c_out, c_in / groups, ...kernel],
/// gy [n, c_out, ...out].
struct ConvKernels {
  void (*forward)(const ConvNdShape& s, const Tensor& x, const Tensor& w, const Tensor& bias,
                  const Tensor& y);
  void (*backward_input)(const ConvNdShape& s, const Tensor& gy, const Tensor& w, const Tensor& gx);
  void (*backward_weight)(const ConvNdShape& s, const Tensor& x, const Tensor& gy, const Tensor& gw,
                          const Tensor& gb);
};

/// Padding by name: none, or what keeps the size.
enum class ConvPadding : uint8_t { valid, same };
template <> struct EnumNames<ConvPadding> {
  static constexpr const char* schema = "ConvPadding{valid|same}";
};

namespace ops {

// The three parts of a convolution's calculus; each one's derivatives are the other two.
// `bias` may be undefined.
Tensor conv_apply(const ConvNdShape& s, const Tensor& x, const Tensor& w, const Tensor& bias);
Tensor conv_transposed(const ConvNdShape& s, const Tensor& gy, const Tensor& w, const Tensor& bias);
Tensor conv_weight_gradient(const ConvNdShape& s, const Tensor& x, const Tensor& gy);

Tensor conv2d(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
              const Dims& stride, const Dims& padding, const Dims& dilation, int64_t groups);

}  // namespace ops
}  // namespace cresset
