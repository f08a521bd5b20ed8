// Fourier transforms of complex and real signals, over one dim or several.
#include "core/ops/fft.h"

#include <cmath>

#include "core/dispatch/op.h"
#include "core/ops/shape.h"

namespace cresset::ops {
namespace {

// One dim, unrecorded, contiguous along it.
Tensor transform_lines(const char* op, const Tensor& x, int64_t dim, bool inverse, double scale) {
  Tensor lines = contiguous(transpose(x, dim, -1));
  Tensor y = empty(lines.sizes(), options_of(x));
  const int64_t n = x.size(dim);
  if (x.numel() > 0)
    launch(op, x.device(), &FftKernels::transform, reshape(lines, Dims{-1, n}),
           view(y, Dims{-1, n}), inverse, scale);
  return transpose(y, dim, -1);
}

double scale_of(FftNorm norm, double count, bool inverse) {
  if (norm == FftNorm::Ortho) return 1 / std::sqrt(count);
  return (norm == FftNorm::Forward) != inverse ? 1 / count : 1;
}

Tensor as_floating(const char* op, const Tensor& x) {
  if (!x.is_floating() && !x.is_complex()) return to_dtype(x, default_dtype());
  CHECK(itemsize(x.dtype()) > 2, DType, op, ": expected float32, float64 or a complex dtype, got ",
        x.dtype());
  return x;
}
Tensor as_complex(const char* op, const Tensor& x) {
  Tensor y = as_floating(op, x);
  return y.is_complex() ? y : to_dtype(y, to_complex(y.dtype()));
}
Tensor as_real(const char* op, const Tensor& x) {
  CHECK(!x.is_complex(), DType, op, ": expected a real tensor, got ", x.dtype());
  return as_floating(op, x);
}

void check_length(const char* op, int64_t n) {
  CHECK(n >= 1, Value, op, ": expected at least one point, got ", n);
}

// Cut or filled with zeros to n along a dim.
Tensor resized(const Tensor& x, int64_t dim, int64_t n) {
  const int64_t size = x.size(dim);
  if (size == n) return x;
  if (size > n) return narrow(x, dim, 0, n);
  Dims pad(static_cast<size_t>(2 * (x.dim() - dim)), 0);
  pad.back() = n - size;
  return constant_pad_nd(x, pad, 0.0);
}

}  // namespace

Tensor fft_complex(const char* op, const Tensor& x, const Dims& dims, bool inverse, double scale) {
  Tensor y = x;
  {
    GradMode off(false);
    for (size_t i = 0; i < dims.size(); ++i)
      y = transform_lines(op, y, dims[i], inverse, i == 0 ? scale : 1);
    y = dims.empty() ? clone(mul(x, scale), int64_t{0}) : contiguous(y);
  }
  if (wants_grad(x))
    record("FftC2CBackward0", y, inputs(x), [op, dims, inverse, scale](Backward& b) {
      b[0] = fft_complex(op, b.grad(), dims, !inverse, scale);
    });
  return y;
}

Tensor fft_real(const char* op, const Tensor& x, int64_t dim, double scale) {
  Tensor y = fft_complex(op, as_complex(op, x), Dims{dim}, false, scale);
  return contiguous(narrow(y, dim, 0, x.size(dim) / 2 + 1));
}

Tensor fft_to_real(const char* op, const Tensor& x, int64_t dim, int64_t n, double scale) {
  // The other frequencies are the conjugates of the first ones, backwards.
  const int64_t mirrored = n - (n / 2 + 1);
  Tensor rest = conj(flip(narrow(x, dim, 1, mirrored), Dims{dim}));
  return contiguous(real(fft_complex(op, cat({x, rest}, dim), Dims{dim}, true, scale)));
}

namespace {

// ---- one dim

int64_t signal_dim(const char* op, const Tensor& x, int64_t dim) {
  CHECK(x.dim() > 0, Shape, op, ": expected a tensor of at least one dim");
  return wrap_dim(op, dim, x.dim());
}

Tensor complex_1d(const char* op, const Tensor& input, std::optional<int64_t> n, int64_t dim,
                  FftNorm norm, bool inverse) {
  const int64_t d = signal_dim(op, input, dim), length = n.value_or(input.size(d));
  check_length(op, length);
  Tensor x = resized(as_complex(op, input), d, length);
  return fft_complex(op, x, Dims{d}, inverse, scale_of(norm, static_cast<double>(length), inverse));
}

Tensor real_1d(const char* op, const Tensor& input, std::optional<int64_t> n, int64_t dim,
               FftNorm norm, bool inverse) {
  const int64_t d = signal_dim(op, input, dim), length = n.value_or(input.size(d));
  check_length(op, length);
  Tensor x = resized(as_real(op, input), d, length);
  Tensor y = fft_real(op, x, d, scale_of(norm, static_cast<double>(length), inverse));
  return inverse ? conj(y) : y;
}

Tensor to_real_1d(const char* op, const Tensor& input, std::optional<int64_t> n, int64_t dim,
                  FftNorm norm, bool inverse) {
  const int64_t d = signal_dim(op, input, dim);
  const int64_t length = n.value_or(2 * (input.size(d) - 1));
  check_length(op, length);
  Tensor x = resized(as_complex(op, input), d, length / 2 + 1);
  return fft_to_real(op, inverse ? x : conj(x), d, length,
                     scale_of(norm, static_cast<double>(length), inverse));
}

using Length = std::optional<int64_t>;
Tensor fft(const Tensor& x, Length n, int64_t dim, FftNorm norm) {
  return complex_1d("fft.fft", x, n, dim, norm, false);
}
Tensor ifft(const Tensor& x, Length n, int64_t dim, FftNorm norm) {
  return complex_1d("fft.ifft", x, n, dim, norm, true);
}
Tensor rfft(const Tensor& x, Length n, int64_t dim, FftNorm norm) {
  return real_1d("fft.rfft", x, n, dim, norm, false);
}
Tensor ihfft(const Tensor& x, Length n, int64_t dim, FftNorm norm) {
  return real_1d("fft.ihfft", x, n, dim, norm, true);
}
Tensor irfft(const Tensor& x, Length n, int64_t dim, FftNorm norm) {
  return to_real_1d("fft.irfft", x, n, dim, norm, true);
}
Tensor hfft(const Tensor& x, Length n, int64_t dim, FftNorm norm) {
  return to_real_1d("fft.hfft", x, n, dim, norm, false);
}

// ---- several dims

struct Signal {
  Dims dims, sizes;
};

// The dims of a transform and the sizes to cut or fill them to; -1 keeps a size.
Signal signal_of(const char* op, const Tensor& x, const std::optional<Dims>& s,
                 const std::optional<Dims>& dim) {
  Signal r;
  if (dim) {
    r.dims = wrap_dims(op, *dim, x.dim(), false);
    CHECK(x.dim() > 0 || dim->empty(), Shape, op, ": expected a tensor of at least one dim");
    CHECK(!s || s->size() == dim->size(), Value, op, ": expected as many sizes as dims, got ", *s,
          " for dims ", *dim);
  } else {
    const int64_t count = s ? static_cast<int64_t>(s->size()) : x.dim();
    CHECK(count <= x.dim(), Value, op, ": ", count, " sizes for a tensor of ", x.dim(), " dims");
    for (int64_t d = x.dim() - count; d < x.dim(); ++d) r.dims.push_back(d);
  }
  for (size_t i = 0; i < r.dims.size(); ++i) {
    const bool given = s && (*s)[i] != -1;
    r.sizes.push_back(given ? (*s)[i] : x.size(r.dims[i]));
  }
  return r;
}

double points(const Dims& sizes) {
  double count = 1;
  for (int64_t n : sizes) count *= static_cast<double>(n);
  return count;
}

Tensor resized(const char* op, const Tensor& x, const Signal& signal) {
  Tensor y = x;
  for (size_t i = 0; i < signal.dims.size(); ++i) {
    check_length(op, signal.sizes[i]);
    y = resized(y, signal.dims[i], signal.sizes[i]);
  }
  return y;
}

Tensor complex_nd(const char* op, const Tensor& input, const std::optional<Dims>& s,
                  const std::optional<Dims>& dim, FftNorm norm, bool inverse) {
  Signal signal = signal_of(op, input, s, dim);
  Tensor x = resized(op, as_complex(op, input), signal);
  return fft_complex(op, x, signal.dims, inverse, scale_of(norm, points(signal.sizes), inverse));
}

Dims but_last(const Dims& dims) {
  return Dims(std::span<const int64_t>(dims.data(), dims.size() - 1));
}

Tensor real_nd(const char* op, const Tensor& input, const std::optional<Dims>& s,
               const std::optional<Dims>& dim, FftNorm norm, bool inverse) {
  Signal signal = signal_of(op, input, s, dim);
  CHECK(!signal.dims.empty(), Value, op, ": expected at least one dim to transform");
  Tensor x = resized(op, as_real(op, input), signal);
  Tensor y = fft_real(op, x, signal.dims.back(), scale_of(norm, points(signal.sizes), inverse));
  if (inverse) y = conj(y);
  Dims others = but_last(signal.dims);
  return others.empty() ? y : fft_complex(op, y, others, inverse, 1);
}

Tensor to_real_nd(const char* op, const Tensor& input, const std::optional<Dims>& s,
                  const std::optional<Dims>& dim, FftNorm norm, bool inverse) {
  Signal signal = signal_of(op, input, s, dim);
  CHECK(!signal.dims.empty(), Value, op, ": expected at least one dim to transform");
  const bool given = s && s->back() != -1;
  const int64_t length = given ? s->back() : 2 * (input.size(signal.dims.back()) - 1);
  check_length(op, length);
  const int64_t last = signal.dims.back();
  signal.sizes.back() = length / 2 + 1;
  Tensor x = resized(op, as_complex(op, input), signal);
  signal.sizes.back() = length;
  Dims others = but_last(signal.dims);
  if (!others.empty()) x = fft_complex(op, x, others, inverse, 1);
  return fft_to_real(op, inverse ? x : conj(x), last, length,
                     scale_of(norm, points(signal.sizes), inverse));
}

using List = std::optional<Dims>;
// The 2-d forms transform the last two dims unless told otherwise.
List last_two(const List& dim) { return dim ? dim : List(Dims{-2, -1}); }

Tensor fftn(const Tensor& x, const List& s, const List& dim, FftNorm norm) {
  return complex_nd("fft.fftn", x, s, dim, norm, false);
}
Tensor ifftn(const Tensor& x, const List& s, const List& dim, FftNorm norm) {
  return complex_nd("fft.ifftn", x, s, dim, norm, true);
}
Tensor rfftn(const Tensor& x, const List& s, const List& dim, FftNorm norm) {
  return real_nd("fft.rfftn", x, s, dim, norm, false);
}
Tensor irfftn(const Tensor& x, const List& s, const List& dim, FftNorm norm) {
  return to_real_nd("fft.irfftn", x, s, dim, norm, true);
}
Tensor hfftn(const Tensor& x, const List& s, const List& dim, FftNorm norm) {
  return to_real_nd("fft.hfftn", x, s, dim, norm, false);
}
Tensor ihfftn(const Tensor& x, const List& s, const List& dim, FftNorm norm) {
  return real_nd("fft.ihfftn", x, s, dim, norm, true);
}
Tensor fft2(const Tensor& x, const List& s, const List& dim, FftNorm norm) {
  return complex_nd("fft.fft2", x, s, last_two(dim), norm, false);
}
Tensor ifft2(const Tensor& x, const List& s, const List& dim, FftNorm norm) {
  return complex_nd("fft.ifft2", x, s, last_two(dim), norm, true);
}
Tensor rfft2(const Tensor& x, const List& s, const List& dim, FftNorm norm) {
  return real_nd("fft.rfft2", x, s, last_two(dim), norm, false);
}
Tensor irfft2(const Tensor& x, const List& s, const List& dim, FftNorm norm) {
  return to_real_nd("fft.irfft2", x, s, last_two(dim), norm, true);
}
Tensor hfft2(const Tensor& x, const List& s, const List& dim, FftNorm norm) {
  return to_real_nd("fft.hfft2", x, s, last_two(dim), norm, false);
}
Tensor ihfft2(const Tensor& x, const List& s, const List& dim, FftNorm norm) {
  return real_nd("fft.ihfft2", x, s, last_two(dim), norm, true);
}

// ---- order of frequencies

Tensor shifted(const char* op, const Tensor& x, const List& dim, bool back) {
  Dims dims;
  if (dim)
    dims = wrap_dims(op, *dim, x.dim(), false);
  else
    for (int64_t d = 0; d < x.dim(); ++d) dims.push_back(d);
  if (dims.empty() || x.dim() == 0) return clone(x, std::nullopt);
  Dims shifts;
  for (int64_t d : dims) shifts.push_back((x.size(d) + (back ? 1 : 0)) / 2);
  return roll(x, shifts, dims);
}
Tensor fftshift(const Tensor& x, const List& dim) { return shifted("fft.fftshift", x, dim, false); }
Tensor ifftshift(const Tensor& x, const List& dim) {
  return shifted("fft.ifftshift", x, dim, true);
}

// The k-th of n frequencies in cycles per unit of the spacing d; half of them where `half`.
Tensor frequencies(const char* op, int64_t n, double d, std::optional<DType> dtype,
                   std::optional<Device> device, bool requires_grad, bool half) {
  check_length(op, n);
  Options options{dtype.value_or(default_dtype()), device.value_or(Device{})};
  CHECK(is_floating(options.dtype), DType, op, ": expected a floating dtype, got ", options.dtype);
  const int64_t count = half ? n / 2 + 1 : n;
  Tensor y = empty(Dims{count}, options);
  if (!y.is_meta()) {
    Tensor steps = empty(Dims{count}, Options{DType::Float64, Device{}});
    for (int64_t k = 0; k < count; ++k)
      steps.data<double>()[k] =
          static_cast<double>(!half && k > (n - 1) / 2 ? k - n : k) / (static_cast<double>(n) * d);
    copy_raw(steps, y);
  }
  y.set_requires_grad(requires_grad);
  return y;
}
Tensor fftfreq(int64_t n, double d, std::optional<DType> dtype, std::optional<Device> device,
               bool requires_grad) {
  return frequencies("fft.fftfreq", n, d, dtype, device, requires_grad, false);
}
Tensor rfftfreq(int64_t n, double d, std::optional<DType> dtype, std::optional<Device> device,
                bool requires_grad) {
  return frequencies("fft.rfftfreq", n, d, dtype, device, requires_grad, true);
}

}  // namespace

OP_TABLE(fft) = {
    op<fft>("fft_fft(Tensor self, int? n=None, int dim=-1, "
            "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
            "fft", "Frequencies of a signal: the sum of x[j] exp(-2 pi i j k / n) over j."),
    op<ifft>("fft_ifft(Tensor self, int? n=None, int dim=-1, "
             "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
             "fft", "The inverse of fft."),
    op<rfft>("fft_rfft(Tensor self, int? n=None, int dim=-1, "
             "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
             "fft", "The first n / 2 + 1 frequencies of a real signal."),
    op<irfft>("fft_irfft(Tensor self, int? n=None, int dim=-1, "
              "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
              "fft", "The real signal of the first n / 2 + 1 frequencies."),
    op<hfft>("fft_hfft(Tensor self, int? n=None, int dim=-1, "
             "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
             "fft", "Real frequencies of the first half of a signal with conjugate symmetry."),
    op<ihfft>("fft_ihfft(Tensor self, int? n=None, int dim=-1, "
              "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
              "fft", "The inverse of hfft."),
    op<fftn>("fft_fftn(Tensor self, int[]? s=None, int[]? dim=None, "
             "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
             "fft", "fft over several dims, all unless given."),
    op<ifftn>("fft_ifftn(Tensor self, int[]? s=None, int[]? dim=None, "
              "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
              "fft", "The inverse of fftn."),
    op<rfftn>("fft_rfftn(Tensor self, int[]? s=None, int[]? dim=None, "
              "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
              "fft", "fftn of a real signal: half of the last dim."),
    op<irfftn>("fft_irfftn(Tensor self, int[]? s=None, int[]? dim=None, "
               "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
               "fft", "The inverse of rfftn."),
    op<hfftn>("fft_hfftn(Tensor self, int[]? s=None, int[]? dim=None, "
              "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
              "fft", "hfft over several dims."),
    op<ihfftn>("fft_ihfftn(Tensor self, int[]? s=None, int[]? dim=None, "
               "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
               "fft", "The inverse of hfftn."),
    op<fft2>("fft_fft2(Tensor self, int[]? s=None, int[]? dim=None, "
             "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
             "fft", "fft over two dims, the last ones unless given."),
    op<ifft2>("fft_ifft2(Tensor self, int[]? s=None, int[]? dim=None, "
              "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
              "fft", "The inverse of fft2."),
    op<rfft2>("fft_rfft2(Tensor self, int[]? s=None, int[]? dim=None, "
              "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
              "fft", "rfft over two dims: half of the last one."),
    op<irfft2>("fft_irfft2(Tensor self, int[]? s=None, int[]? dim=None, "
               "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
               "fft", "The inverse of rfft2."),
    op<hfft2>("fft_hfft2(Tensor self, int[]? s=None, int[]? dim=None, "
              "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
              "fft", "hfft over two dims."),
    op<ihfft2>("fft_ihfft2(Tensor self, int[]? s=None, int[]? dim=None, "
               "FftNorm{None|backward|ortho|forward} norm=None) -> Tensor",
               "fft", "The inverse of hfft2."),
    op<fftshift>("fft_fftshift(Tensor self, int[]? dim=None) -> Tensor", "fft",
                 "Moves frequency 0 to the middle of each dim."),
    op<ifftshift>("fft_ifftshift(Tensor self, int[]? dim=None) -> Tensor", "fft",
                  "The inverse of fftshift."),
    op<fftfreq>("fft_fftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Device? device=None, "
                "bool requires_grad=False) -> Tensor",
                "fft", "The frequencies of fft in cycles per unit."),
    op<rfftfreq>("fft_rfftfreq(int n, float d=1.0, *, ScalarType? dtype=None, Device? device=None, "
                 "bool requires_grad=False) -> Tensor",
                 "fft", "The frequencies of rfft in cycles per unit."),
};
OP_TABLE_END(fft);

}  // namespace cresset::ops
