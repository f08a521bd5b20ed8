// Matrix products on plain pointers: row-major views with explicit strides, single and batched.
#pragma once

#include <cstdint>

namespace cresset {

/// A matrix of `rows` x `cols` elements; element (i, j) is `data[i * row_stride + j * col_stride]`.
/// Strides are never negative; inputs may overlap or be expanded (stride 0), outputs may not.
template <class T> struct MatrixView {
  T* data;
  int64_t rows, cols, row_stride, col_stride;
};

/// C = alpha * A @ B + beta * C. beta == 0 never reads C; an empty inner dimension gives beta * C.
void gemm_f32(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c,
              float alpha, float beta);
void gemm_f64(MatrixView<const double> a, MatrixView<const double> b, MatrixView<double> c,
              double alpha, double beta);

/// The same for every other element type: signed integers and uint8_t wrap around, bool is
/// or-of-ands (alpha and beta then mean "take it"), std::complex<float> and <double>.
template <class T>
void gemm_any(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, T alpha, T beta);

/// `batch` products of [m, k] by [k, n]; strides count elements and may be 0 for the inputs.
template <class T> struct BatchedGemm {
  const T* a;
  const T* b;
  T* c;
  int64_t batch, m, n, k;
  int64_t a_batch_stride, a_row_stride, a_col_stride;
  int64_t b_batch_stride, b_row_stride, b_col_stride;
  int64_t c_batch_stride, c_row_stride, c_col_stride;
  T alpha = T(1), beta = T(0);
};

void gemm_batched_f32(const BatchedGemm<float>& p);
void gemm_batched_f64(const BatchedGemm<double>& p);
template <class T> void gemm_batched_any(const BatchedGemm<T>& p);

/// The own SIMD kernels that the functions above choose from; for float and double.
template <class T>
void gemm_own(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, T alpha, T beta);

/// C = A @ B + row_bias[i] in every row i, by the own kernels; the inner dimension is not empty.
template <class T>
void gemm_own_bias(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c,
                   const T* row_bias);

/// oneDNN's sgemm, on one thread inside a parallel region; false, with nothing done, for a layout
/// that it does not take or when it lacks memory.
bool gemm_onednn(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c,
                 float alpha, float beta);

}  // namespace cresset
