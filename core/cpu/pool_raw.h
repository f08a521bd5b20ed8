// Two-dimensional max and average pooling on plain pointers, forward and backward.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/base/scalar_math.h"

namespace cresset {

/// sum / divisor; integers are truncated, and no division of them traps.
template <class T> T pool_mean(T sum, int64_t divisor) {
  if constexpr (std::is_integral_v<T>)
    return scalar::trunc_divide(sum, divisor);
  else
    return sum / static_cast<T>(divisor);
}

/// `planes` images (batch times channels) of [h, w] pooled to [oh, ow]; the caller has resolved
/// ceil_mode in oh and ow. Average pooling has no dilation.
struct PoolShape {
  int64_t planes, h, w, kh, kw, oh, ow;
  int64_t stride_h, stride_w, pad_h, pad_w, dil_h = 1, dil_w = 1;
};

/// The largest element of each window and its index in the [h, w] plane. Padding is never chosen; a
/// NaN wins, the last one if there are several; of equal elements the first wins.
/// T: float, double, int64_t.
template <class T> void max_pool2d_forward(const PoolShape& s, const T* x, T* y, int64_t* indices);

/// gx [planes, h, w] = gy added up at the indices of the forward pass.
template <class T>
void max_pool2d_backward(const PoolShape& s, const T* gy, const int64_t* indices, T* gx);

/// How the divisor of an average is chosen: `divisor_override` if not 0, else the window's size,
/// which counts padding (but never what ceil_mode adds beyond it) if `count_include_pad`.
struct AvgPoolDivisor {
  bool count_include_pad = true;
  int64_t divisor_override = 0;
};

template <class T>
void avg_pool2d_forward(const PoolShape& s, const AvgPoolDivisor& divisor, const T* x, T* y);
template <class T>
void avg_pool2d_backward(const PoolShape& s, const AvgPoolDivisor& divisor, const T* gy, T* gx);

}  // namespace cresset
