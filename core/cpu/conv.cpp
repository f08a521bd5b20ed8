// Chooses between oneDNN's and the own convolutions, and maps the 2-D names to the general ones.
#include <complex>
#include <type_traits>

#include "core/cpu/conv_direct.h"
#include "core/cpu/conv_raw.h"
#include "core/cpu/parallel.h"

namespace cresset {
#if CRESSET_ONEDNN
namespace {

int64_t volume(const ConvNdShape::Extent& e) { return e[0] * e[1] * e[2]; }

/// oneDNN is asked for shapes where every tensor has elements.
bool ask_onednn(const ConvNdShape& s) {
  return s.n * s.c_in * s.c_out * volume(s.in) * volume(s.out) != 0 && !in_parallel_region();
}

// Where the own kernels are faster (measured on AVX-512): kernels of one element, which are plain
// matrix products, and first layers, whose result oneDNN computes in blocked form and copies back.

bool is_pointwise(const ConvNdShape& s) {
  const ConvNdShape::Extent ones{1, 1, 1};
  return s.groups == 1 && s.kernel == ones && s.stride == ones && s.in == s.out;
}
bool prefer_own_forward(const ConvNdShape& s) {
  return is_pointwise(s) || (s.groups == 1 && s.c_in <= 4 && conv_direct_fits<float>(s));
}
bool prefer_own_backward_input(const ConvNdShape& s) {
  return is_pointwise(s) || (s.groups == 1 && s.c_in <= 4);
}

}  // namespace
#endif

ConvNdShape to_nd(const ConvShape& s) {
  return {.n = s.n,
          .c_in = s.c_in,
          .c_out = s.c_out,
          .groups = s.groups,
          .in = {1, s.h, s.w},
          .kernel = {1, s.kh, s.kw},
          .out = {1, s.oh, s.ow},
          .stride = {1, s.stride_h, s.stride_w},
          .pad_before = {0, s.pad_top, s.pad_left},
          .pad_after = {0, s.pad_bottom, s.pad_right},
          .dilation = {1, s.dil_h, s.dil_w}};
}

template <class T>
void conv_forward(const ConvNdShape& s, const T* x, const T* w, const T* bias, T* y) {
#if CRESSET_ONEDNN
  if constexpr (std::is_same_v<T, float>) {
    const bool ask = ask_onednn(s) && !prefer_own_forward(s);
    if (ask && conv_onednn_forward(s, x, w, bias, y)) return;
  }
#endif
  conv_own_forward(s, x, w, bias, y);
}

template <class T> void conv_backward_input(const ConvNdShape& s, const T* gy, const T* w, T* gx) {
#if CRESSET_ONEDNN
  if constexpr (std::is_same_v<T, float>) {
    const bool ask = ask_onednn(s) && !prefer_own_backward_input(s);
    if (ask && conv_onednn_backward_input(s, gy, w, gx)) return;
  }
#endif
  conv_own_backward_input(s, gy, w, gx);
}

template <class T>
void conv_backward_weight(const ConvNdShape& s, const T* x, const T* gy, T* gw, T* gb) {
#if CRESSET_ONEDNN
  if constexpr (std::is_same_v<T, float>) {
    const bool ask = ask_onednn(s) && !is_pointwise(s);
    if (ask && conv_onednn_backward_weight(s, x, gy, gw, gb)) return;
  }
#endif
  conv_own_backward_weight(s, x, gy, gw, gb);
}

#define CRESSET_CONV(T)                                                             \
  template void conv_forward(const ConvNdShape&, const T*, const T*, const T*, T*); \
  template void conv_backward_input(const ConvNdShape&, const T*, const T*, T*);    \
  template void conv_backward_weight(const ConvNdShape&, const T*, const T*, T*, T*);
CRESSET_CONV(float)
CRESSET_CONV(double)
CRESSET_CONV(int64_t)
CRESSET_CONV(std::complex<float>)
CRESSET_CONV(std::complex<double>)
#undef CRESSET_CONV

void conv2d_forward_f32(const ConvShape& s, const float* x, const float* w, const float* bias,
                        float* y) {
  conv_forward(to_nd(s), x, w, bias, y);
}
void conv2d_backward_input_f32(const ConvShape& s, const float* gy, const float* w, float* gx) {
  conv_backward_input(to_nd(s), gy, w, gx);
}
void conv2d_backward_weight_f32(const ConvShape& s, const float* x, const float* gy, float* gw,
                                float* gb) {
  conv_backward_weight(to_nd(s), x, gy, gw, gb);
}
void conv2d_forward_f64(const ConvShape& s, const double* x, const double* w, const double* bias,
                        double* y) {
  conv_forward(to_nd(s), x, w, bias, y);
}
void conv2d_backward_input_f64(const ConvShape& s, const double* gy, const double* w, double* gx) {
  conv_backward_input(to_nd(s), gy, w, gx);
}
void conv2d_backward_weight_f64(const ConvShape& s, const double* x, const double* gy, double* gw,
                                double* gb) {
  conv_backward_weight(to_nd(s), x, gy, gw, gb);
}

}  // namespace cresset
