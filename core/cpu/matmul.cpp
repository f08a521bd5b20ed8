// CPU kernels of the matrix products: tensors to pointers and strides.
#include "core/ops/matmul.h"

#include "core/cpu/gemm.h"

namespace cresset {
namespace {

template <class T> T scalar_as(const Scalar& s) {
  if constexpr (requires(T v) { v.imag(); })
    return T(static_cast<typename T::value_type>(s.to_double()),
             static_cast<typename T::value_type>(s.to_complex().imag()));
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(s.to_int());
  else
    return static_cast<T>(s.to_double());
}

template <class T> MatrixView<T> matrix(const Tensor& t) {
  return {const_cast<T*>(t.data<std::remove_const_t<T>>()), t.size(-2), t.size(-1), t.stride(-2),
          t.stride(-1)};
}

template <class T> void run(const Tensor& a, const Tensor& b, const Tensor& c, T alpha, T beta) {
  if (batch_count(c) == 1) {
    if constexpr (std::is_same_v<T, float>)
      gemm_f32(matrix<const T>(a), matrix<const T>(b), matrix<T>(c), alpha, beta);
    else if constexpr (std::is_same_v<T, double>)
      gemm_f64(matrix<const T>(a), matrix<const T>(b), matrix<T>(c), alpha, beta);
    else
      gemm_any<T>(matrix<const T>(a), matrix<const T>(b), matrix<T>(c), alpha, beta);
    return;
  }
  BatchedGemm<T> p{.a = a.data<T>(),
                   .b = b.data<T>(),
                   .c = c.data<T>(),
                   .batch = batch_count(c),
                   .m = c.size(-2),
                   .n = c.size(-1),
                   .k = a.size(-1),
                   .a_batch_stride = batch_stride(a),
                   .a_row_stride = a.stride(-2),
                   .a_col_stride = a.stride(-1),
                   .b_batch_stride = batch_stride(b),
                   .b_row_stride = b.stride(-2),
                   .b_col_stride = b.stride(-1),
                   .c_batch_stride = batch_stride(c),
                   .c_row_stride = c.stride(-2),
                   .c_col_stride = c.stride(-1),
                   .alpha = alpha,
                   .beta = beta};
  if constexpr (std::is_same_v<T, float>)
    gemm_batched_f32(p);
  else if constexpr (std::is_same_v<T, double>)
    gemm_batched_f64(p);
  else
    gemm_batched_any<T>(p);
}

void bmm(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& alpha,
         const Scalar& beta) {
  if (c.numel() == 0) return;
  visit_dtype(c.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      fail(ErrorKind::DType, "matmul: no kernel for dtype ", c.dtype());
    else
      run<T>(a, b, c, scalar_as<T>(alpha), scalar_as<T>(beta));
  });
}

}  // namespace

template <> const MatmulKernels& cpu_kernels<MatmulKernels>() {
  static constexpr MatmulKernels table = {.bmm = bmm};
  return table;
}

}  // namespace cresset
