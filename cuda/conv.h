// The parts of a convolution that no library does: uneven padding, integers and complex.
#pragma once

#include "core/ops/conv.h"

namespace cresset::cuda {

/// Copies `planes` volumes of extent `from` into volumes of extent `to`, moved by `shift`; zeros
/// where nothing lands. With channels last, `inner` neighbouring elements move as one.
void shift_volumes(const Tensor& x, const Tensor& y, int64_t planes, int64_t inner,
                   const ConvNdShape::Extent& from, const ConvNdShape::Extent& to,
                   const ConvNdShape::Extent& shift);

// Plain loops over contiguous tensors: one thread a result.
void direct_forward(const ConvNdShape& s, const Tensor& x, const Tensor& w, const Tensor& bias,
                    const Tensor& y);
void direct_backward_input(const ConvNdShape& s, const Tensor& gy, const Tensor& w,
                           const Tensor& gx);
void direct_backward_weight(const ConvNdShape& s, const Tensor& x, const Tensor& gy,
                            const Tensor& gw);

}  // namespace cresset::cuda
