// Convolutions as cuDNN runs them: engines chosen once per shape.
#pragma once

#include "core/ops/conv.h"

namespace cresset::cuda {

/// Which of the three tensors is computed.
enum class ConvDirection : uint8_t { Forward, Input, Weight };

/// The tensors of a convolution, whichever of them is computed.
struct ConvTensors {
  void *x, *w, *y;
};

/// Runs a convolution, without a bias, on the current stream; `like` is the computed tensor. False
/// where cuDNN has no engine for it.
bool run_conv_plan(const ConvNdShape& s, ConvDirection direction, const Tensor& like,
                   bool channels_last, const ConvTensors& t);

}  // namespace cresset::cuda
