// Fourier transforms: kernel table, and what short-time transforms use.
#pragma once

#include "core/dispatch/decode.h"
#include "core/ops/launch.h"

namespace cresset {

/// How a transform is scaled; None means backward.
enum class FftNorm : uint8_t { None, Backward, Ortho, Forward };
template <> struct EnumNames<FftNorm> {
  static constexpr const char* schema = "FftNorm{None|backward|ortho|forward}";
};

struct FftKernels {
  /// y[b, k] = scale times the sum over j of x[b, j] exp(-+2 pi i j k / n), for contiguous lines
  /// [B, n] of complex64 or complex128; + for the inverse.
  void (*transform)(const Tensor& x, const Tensor& y, bool inverse, double scale);
};

namespace ops {

/// Complex to complex over `dims`.
Tensor fft_complex(const char* op, const Tensor& x, const Dims& dims, bool inverse, double scale);
/// Real to complex over a dim: the first n / 2 + 1 frequencies.
Tensor fft_real(const char* op, const Tensor& x, int64_t dim, double scale);
/// From the first n / 2 + 1 frequencies to n real numbers.
Tensor fft_to_real(const char* op, const Tensor& x, int64_t dim, int64_t n, double scale);

}  // namespace ops
}  // namespace cresset
