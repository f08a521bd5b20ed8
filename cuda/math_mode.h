// How exact the libraries' products and convolutions are, with PyTorch's defaults.
#pragma once

namespace cresset::cuda {

/// Process-wide switches; a change applies to the calls after it.
struct MathMode {
  bool matmul_tf32 = false;            ///< float32 products by TF32
  bool fp16_reduced_reduction = true;  ///< split sums of float16 products may stay float16
  bool bf16_reduced_reduction = true;  ///< the same of bfloat16
  bool conv_tf32 = true;               ///< float32 convolutions by TF32
  bool conv_benchmark = false;         ///< measure convolution algorithms instead of asking
  bool conv_deterministic = false;     ///< only algorithms that give equal bits in every run
};

inline MathMode& math_mode() {
  static MathMode mode;
  return mode;
}

}  // namespace cresset::cuda
