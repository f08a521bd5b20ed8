// Convolutions on plain pointers: forward and both gradients, for one to three spatial dimensions.
#pragma once

#include <array>
#include <cstdint>

namespace cresset {

/// Sizes of a 2-D convolution: x [n, c_in, h, w], weight [c_out, c_in / groups, kh, kw],
/// y [n, c_out, oh, ow], all contiguous. The caller has checked that they fit together.
struct ConvShape {
  int64_t n, c_in, h, w, c_out, kh, kw, oh, ow, stride_h, stride_w;
  int64_t pad_top, pad_left, pad_bottom, pad_right, dil_h, dil_w, groups;
};

/// The same with depth, height and width; a lower rank has 1 in its leading extents, kernels,
/// strides and dilations, and padding 0. What `out` does not reach of the input is left out.
struct ConvNdShape {
  using Extent = std::array<int64_t, 3>;
  int64_t n, c_in, c_out, groups;
  Extent in, kernel, out, stride, pad_before, pad_after, dilation;

  bool operator==(const ConvNdShape&) const = default;
};

ConvNdShape to_nd(const ConvShape& s);

/// y = conv(x, w) + bias; `bias` [c_out] may be null. T: float, double, int64_t, complex<float>,
/// complex<double>. No function here conjugates; a transposed convolution is backward_input with
/// x and y exchanged.
template <class T>
void conv_forward(const ConvNdShape& s, const T* x, const T* w, const T* bias, T* y);

/// gx [n, c_in, ...in] from gy [n, c_out, ...out].
template <class T> void conv_backward_input(const ConvNdShape& s, const T* gy, const T* w, T* gx);

/// gw [c_out, c_in / groups, ...kernel] and, unless null, gb [c_out].
template <class T>
void conv_backward_weight(const ConvNdShape& s, const T* x, const T* gy, T* gw, T* gb);

/// The 2-D cases by name.
void conv2d_forward_f32(const ConvShape& s, const float* x, const float* w, const float* bias,
                        float* y);
void conv2d_backward_input_f32(const ConvShape& s, const float* gy, const float* w, float* gx);
void conv2d_backward_weight_f32(const ConvShape& s, const float* x, const float* gy, float* gw,
                                float* gb);
void conv2d_forward_f64(const ConvShape& s, const double* x, const double* w, const double* bias,
                        double* y);
void conv2d_backward_input_f64(const ConvShape& s, const double* gy, const double* w, double* gx);
void conv2d_backward_weight_f64(const ConvShape& s, const double* x, const double* gy, double* gw,
                                double* gb);

/// The own kernels (unrolled input times weight), which serve whatever oneDNN does not.
template <class T>
void conv_own_forward(const ConvNdShape& s, const T* x, const T* w, const T* bias, T* y);
template <class T>
void conv_own_backward_input(const ConvNdShape& s, const T* gy, const T* w, T* gx);
template <class T>
void conv_own_backward_weight(const ConvNdShape& s, const T* x, const T* gy, T* gw, T* gb);

/// oneDNN's kernels; false, with nothing done, for a shape that it does not take.
bool conv_onednn_forward(const ConvNdShape& s, const float* x, const float* w, const float* bias,
                         float* y);
bool conv_onednn_backward_input(const ConvNdShape& s, const float* gy, const float* w, float* gx);
bool conv_onednn_backward_weight(const ConvNdShape& s, const float* x, const float* gy, float* gw,
                                 float* gb);

}  // namespace cresset
