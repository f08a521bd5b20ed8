// How exact, repeatable and watched CUDA work is: the switches of torch.backends and torch.cuda.
#pragma once

#include <string_view>

#include "core/base/api.h"

namespace cresset {

/// Process-wide switches with PyTorch's defaults; a change applies to the calls after it.
struct MathMode {
  bool matmul_tf32 = false;            ///< float32 products by TF32
  bool fp16_reduced_reduction = true;  ///< split sums of float16 products may stay float16
  bool bf16_reduced_reduction = true;  ///< the same of bfloat16
  bool conv_tf32 = true;               ///< float32 convolutions by TF32
  bool conv_benchmark = false;         ///< measure convolution algorithms instead of asking
  bool conv_deterministic = false;     ///< only algorithms that give equal bits in every run
  bool deterministic = false;          ///< the same for every operator
  bool launch_blocking = false;        ///< wait after every kernel, so that its errors name it
  int sync_debug_mode = 0;             ///< 1 warns where the host waits for a device, 2 throws
};

CRESSET_API MathMode& math_mode();

/// The switch of a name, such as "cudnn.benchmark"; see the table in math_mode.cpp.
int get_switch(std::string_view name);
void set_switch(std::string_view name, int value);

}  // namespace cresset
