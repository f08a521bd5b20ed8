// CPU kernels of the convolutions: tensors to pointers.
#include "core/ops/conv.h"

namespace cresset {
namespace {

// Calls f with the element type; the operators have cast every other dtype.
template <class F> void visit_conv(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32: return f.template operator()<float>();
    case DType::Float64: return f.template operator()<double>();
    case DType::Int64: return f.template operator()<int64_t>();
    case DType::Complex64: return f.template operator()<std::complex<float>>();
    default: return f.template operator()<std::complex<double>>();
  }
}

template <class T> T* pointer(const Tensor& t) { return t.defined() ? t.data<T>() : nullptr; }

void forward(const ConvNdShape& s, const Tensor& x, const Tensor& w, const Tensor& bias,
             const Tensor& y) {
  visit_conv(y.dtype(), [&]<class T>() {
    conv_forward<T>(s, x.data<T>(), w.data<T>(), pointer<T>(bias), y.data<T>());
  });
}

void backward_input(const ConvNdShape& s, const Tensor& gy, const Tensor& w, const Tensor& gx) {
  visit_conv(gx.dtype(), [&]<class T>() {
    conv_backward_input<T>(s, gy.data<T>(), w.data<T>(), gx.data<T>());
  });
}

void backward_weight(const ConvNdShape& s, const Tensor& x, const Tensor& gy, const Tensor& gw,
                     const Tensor& gb) {
  visit_conv(gw.dtype(), [&]<class T>() {
    conv_backward_weight<T>(s, x.data<T>(), gy.data<T>(), gw.data<T>(), pointer<T>(gb));
  });
}

}  // namespace

template <> const ConvKernels& cpu_kernels<ConvKernels>() {
  static constexpr ConvKernels table = {
      .forward = forward, .backward_input = backward_input, .backward_weight = backward_weight};
  return table;
}

}  // namespace cresset
