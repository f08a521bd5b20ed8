// Short-time Fourier transforms: spectra of overlapping windows, and signals from them.
#include <cmath>

#include "core/dispatch/op.h"
#include "core/ops/fft.h"
#include "core/ops/pad.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

namespace cresset::ops {
namespace {

/// The frames of a transform: `n_fft` points each, one every `hop`.
struct Frames {
  int64_t n_fft, hop, win_length;
};

Frames frames_of(const char* op, int64_t n_fft, std::optional<int64_t> hop_length,
                 std::optional<int64_t> win_length) {
  CHECK(n_fft > 0, Value, op, ": expected n_fft above 0, got ", n_fft);
  Frames f{n_fft, hop_length.value_or(n_fft / 4), win_length.value_or(n_fft)};
  CHECK(f.hop > 0, Value, op, ": expected hop_length above 0, got ", f.hop);
  CHECK(f.win_length > 0 && f.win_length <= n_fft, Value, op, ": expected win_length in [1, ",
        n_fft, "], got ", f.win_length);
  return f;
}

// The window with zeros on both sides to n_fft points; ones without a window.
Tensor whole_window(const char* op, const std::optional<Tensor>& window, const Frames& f,
                    Options options) {
  CHECK(!window || (window->dim() == 1 && window->size(0) == f.win_length), Shape, op,
        ": expected a window of shape [", f.win_length, "], got ",
        window ? window->sizes() : Dims{});
  Tensor w = window ? *window : ones(Dims{f.win_length}, options);
  const int64_t left = (f.n_fft - f.win_length) / 2;
  if (f.win_length == f.n_fft) return w;
  return constant_pad_nd(w, Dims{left, f.n_fft - f.win_length - left}, Scalar(int64_t{0}));
}

Tensor stft(const Tensor& input, int64_t n_fft, std::optional<int64_t> hop_length,
            std::optional<int64_t> win_length, const std::optional<Tensor>& window, bool center,
            PadMode pad_mode, bool normalized, std::optional<bool> onesided,
            std::optional<bool> return_complex) {
  const char* op = "stft";
  CHECK(input.dim() == 1 || input.dim() == 2, Shape, op, ": expected a signal [L] or [B, L], got ",
        input.sizes());
  CHECK(input.is_floating() || input.is_complex(), DType, op,
        ": expected a floating or complex dtype, got ", input.dtype());
  const bool complex = input.is_complex() || (window && window->is_complex());
  CHECK(complex || return_complex, Value, op, ": expected return_complex for a real signal");
  CHECK(!complex || !onesided.value_or(false), Value, op,
        ": onesided is for real signals and windows");
  Frames f = frames_of(op, n_fft, hop_length, win_length);
  Tensor x = input.dim() == 1 ? unsqueeze(input, 0) : input;
  if (center) {
    // Some modes are defined for [N, C, L] only.
    const int64_t side = n_fft / 2;
    x = squeeze(pad(unsqueeze(x, 0), Dims{side, side}, pad_mode), Dims{0});
  }
  CHECK(n_fft <= x.size(1), Shape, op, ": expected at least ", n_fft, " points, got ", x.size(1));
  Tensor w = whole_window(op, window, f, options_of(x));
  Tensor parts = mul(unfold(x, 1, n_fft, f.hop), w);
  const double scale = normalized ? 1 / std::sqrt(static_cast<double>(n_fft)) : 1;
  Tensor y = complex ? fft_complex(op, to_dtype(parts, to_complex(to_real(parts.dtype()))), Dims{2},
                                   false, scale)
                     : fft_real(op, parts, 2, scale);
  if (!complex && !onesided.value_or(true))
    y = fft_complex(op, to_dtype(parts, to_complex(parts.dtype())), Dims{2}, false, scale);
  y = transpose(y, 1, 2);
  if (input.dim() == 1) y = squeeze(y, Dims{0});
  return return_complex.value_or(true) ? y : view_as_real(contiguous(y));
}

// Frames [B, T, n_fft] summed where they overlap: [B, n_fft + hop (T - 1)].
Tensor overlap_add(const Tensor& frames, int64_t hop) {
  const int64_t batch = frames.size(0), count = frames.size(1), n = frames.size(2);
  const int64_t length = n + hop * (count - 1);
  return as_strided_backward(frames, Dims{batch, length}, Dims{length, 1}, 0, frames.sizes(),
                             Dims{length, hop, 1}, 0);
}

Tensor istft(const Tensor& input, int64_t n_fft, std::optional<int64_t> hop_length,
             std::optional<int64_t> win_length, const std::optional<Tensor>& window, bool center,
             bool normalized, std::optional<bool> onesided, std::optional<int64_t> length,
             bool return_complex) {
  const char* op = "istft";
  CHECK(input.is_complex(), DType, op, ": expected a complex tensor, got ", input.dtype());
  CHECK(input.dim() == 2 || input.dim() == 3, Shape, op,
        ": expected spectra [N, T] or [B, N, T], got shape ", input.sizes());
  CHECK(input.numel() > 0, Shape, op, ": expected elements, got shape ", input.sizes());
  bool half = onesided.value_or(input.size(-2) != n_fft);
  CHECK(!half || !return_complex, Value, op, ": a complex signal has no one-sided spectrum");
  Frames f = frames_of(op, n_fft, hop_length, win_length);
  const int64_t bins = half ? n_fft / 2 + 1 : n_fft;
  CHECK(input.size(-2) == bins, Shape, op, ": expected ", bins, " frequencies for n_fft ", n_fft,
        ", got shape ", input.sizes());
  CHECK(f.hop <= f.win_length, Value, op, ": expected hop_length of at most win_length ",
        f.win_length, ", got ", f.hop);
  Tensor x = transpose(input.dim() == 2 ? unsqueeze(input, 0) : input, 1, 2);
  // Of a real signal the first half of a spectrum says all.
  if (!return_complex && !half) x = narrow(x, 2, 0, n_fft / 2 + 1);
  half = !return_complex;
  const double points = static_cast<double>(n_fft);
  const double scale = normalized ? 1 / std::sqrt(points) : 1 / points;
  Tensor frames =
      half ? fft_to_real(op, x, 2, n_fft, scale) : fft_complex(op, x, Dims{2}, true, scale);
  Tensor w = whole_window(op, window, f, Options{to_real(x.dtype()), x.device()});
  Tensor y = overlap_add(mul(frames, w), f.hop);
  Tensor squares = expand(mul(w, w), Dims{1, x.size(1), n_fft});
  Tensor envelope = overlap_add(contiguous(squares), f.hop);
  const int64_t total = y.size(1), start = center ? n_fft / 2 : 0;
  int64_t end = length ? start + *length : total - start;
  const int64_t kept = std::min(end, total) - start;
  CHECK(kept > 0, Value, op, ": nothing is left of ", total, " points");
  y = narrow(y, 1, start, kept);
  envelope = narrow(envelope, 1, start, kept);
  if (!envelope.is_meta() && envelope.device().is_cpu()) {
    GradMode off(false);
    Tensor least = to_dtype(amin(row(Row::abs, {envelope}), std::nullopt, false), DType::Float64);
    CHECK(*least.data<double>() > 1e-11, Value, op,
          ": the squares of the windows add up to 0 somewhere");
  }
  y = div(y, envelope);
  if (end > total) y = constant_pad_nd(y, Dims{0, end - total}, Scalar(int64_t{0}));
  return input.dim() == 2 ? squeeze(y, Dims{0}) : y;
}

}  // namespace

OP_TABLE(stft) = {
    op<stft>("stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, "
             "Tensor? window=None, bool center=True, "
             "PadMode{constant|reflect|replicate|circular} pad_mode='reflect', "
             "bool normalized=False, bool? onesided=None, bool? return_complex=None) -> Tensor",
             "torch method", "Spectra [N, T] of the windows of a signal."),
    op<istft>("istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, "
              "Tensor? window=None, bool center=True, bool normalized=False, "
              "bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
              "torch method", "The signal with given spectra, by least squares."),
};
OP_TABLE_END(stft);

}  // namespace cresset::ops
