// CPU kernel of Fourier transforms: mixed radix with sorted output (Temperton, "Self-sorting mixed-
// radix fast Fourier transforms", 1983), Bluestein's algorithm (1970) for large prime factors.
#include "core/ops/fft.h"

#include <cmath>
#include <complex>
#include <memory>
#include <vector>

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

struct C {
  double re = 0, im = 0;
  friend C operator+(C a, C b) { return {a.re + b.re, a.im + b.im}; }
  friend C operator-(C a, C b) { return {a.re - b.re, a.im - b.im}; }
  friend C operator*(C a, C b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
};

C conjugate(C a) { return {a.re, -a.im}; }
/// exp(-2 pi i k / n)
C root_of_unity(int64_t k, int64_t n) {
  const double angle = -2 * M_PI * (static_cast<double>(k) / static_cast<double>(n));
  return {std::cos(angle), std::sin(angle)};
}

/// What the transforms of one length share.
class Plan {
 public:
  explicit Plan(int64_t n) : n_(n) {
    if (factorize())
      for (int64_t k = 0; k < n; ++k) roots_.push_back(root_of_unity(k, n));
    else
      prepare_chirp();
  }
  int64_t length() const { return n_; }
  /// Numbers of scratch that one transform takes.
  int64_t scratch() const { return chirp_.empty() ? n_ : inner_->n_ + inner_->scratch(); }

  /// Transforms `data` in place.
  void run(C* data, C* scratch) const {
    if (!chirp_.empty()) return run_chirp(data, scratch);
    C *from = data, *to = scratch;
    int64_t done = 1;
    for (int64_t radix : factors_) {
      stage(radix, done, n_ / (done * radix), from, to);
      std::swap(from, to);
      done *= radix;
    }
    if (from != data) std::copy_n(from, n_, data);
  }

 private:
  static constexpr int64_t largest_radix = 31;

  /// False where a prime factor is too large for sums of its length.
  bool factorize() {
    int64_t rest = n_;
    for (; rest % 4 == 0; rest /= 4) factors_.push_back(4);
    for (int64_t p = 2; p <= largest_radix && rest > 1; ++p)
      for (; rest % p == 0; rest /= p) factors_.push_back(p);
    return rest == 1;
  }

  /// One pass: sums of `radix` elements, `ahead` apart in blocks of `ahead * radix`; of the output
  /// the `done` parts of each element of the sum lie together.
  void stage(int64_t radix, int64_t done, int64_t ahead, const C* from, C* to) const {
    if (radix == 4) return stage4(done, ahead, from, to);
    if (radix == 2) return stage2(done, ahead, from, to);
    C t[largest_radix];
    const int64_t step = n_ / radix;
    for (int64_t k = 0; k < done; ++k)
      for (int64_t i = 0; i < ahead; ++i) {
        for (int64_t b = 0; b < radix; ++b) t[b] = from[i + ahead * (b + radix * k)];
        for (int64_t u = 0; u < radix; ++u) {
          C sum = t[0];
          for (int64_t b = 1, at = u; b < radix; ++b, at = (at + u) % radix)
            sum = sum + t[b] * roots_[static_cast<size_t>(at * step)];
          to[i + ahead * (k + done * u)] = sum * twiddle(u * done * i);
        }
      }
  }
  void stage2(int64_t done, int64_t ahead, const C* from, C* to) const {
    for (int64_t k = 0; k < done; ++k)
      for (int64_t i = 0; i < ahead; ++i) {
        const C a = from[i + ahead * 2 * k], b = from[i + ahead * (1 + 2 * k)];
        to[i + ahead * k] = a + b;
        to[i + ahead * (k + done)] = (a - b) * twiddle(done * i);
      }
  }
  void stage4(int64_t done, int64_t ahead, const C* from, C* to) const {
    for (int64_t k = 0; k < done; ++k)
      for (int64_t i = 0; i < ahead; ++i) {
        const C* x = from + i + ahead * 4 * k;
        const C a = x[0] + x[2 * ahead], b = x[0] - x[2 * ahead];
        const C c = x[ahead] + x[3 * ahead], e = x[ahead] - x[3 * ahead];
        const C d{e.im, -e.re};
        C* y = to + i + ahead * k;
        const int64_t next = ahead * done;
        y[0] = a + c;
        y[next] = (b + d) * twiddle(done * i);
        y[2 * next] = (a - c) * twiddle(2 * done * i);
        y[3 * next] = (b - d) * twiddle(3 * done * i);
      }
  }
  C twiddle(int64_t k) const { return roots_[static_cast<size_t>(k)]; }

  /// j k = (j^2 + k^2 - (k - j)^2) / 2 makes the transform a convolution of a length at will.
  void prepare_chirp() {
    int64_t m = 1;
    while (m < 2 * n_ - 1) m *= 2;
    inner_ = std::make_unique<Plan>(m);
    int64_t square = 0;  // k^2 modulo 2 n
    for (int64_t k = 0; k < n_; ++k) {
      chirp_.push_back(root_of_unity(square, 2 * n_));
      square = (square + 2 * k + 1) % (2 * n_);
    }
    spectrum_.resize(static_cast<size_t>(m));
    for (int64_t k = 0; k < n_; ++k)
      spectrum_[static_cast<size_t>(k)] = spectrum_[static_cast<size_t>((m - k) % m)] =
          conjugate(chirp_[static_cast<size_t>(k)]);
    std::vector<C> scratch(static_cast<size_t>(inner_->scratch()));
    inner_->run(spectrum_.data(), scratch.data());
  }
  void run_chirp(C* data, C* scratch) const {
    const int64_t m = inner_->n_;
    C* z = scratch;
    for (int64_t k = 0; k < n_; ++k) z[k] = data[k] * chirp_[static_cast<size_t>(k)];
    std::fill(z + n_, z + m, C{});
    inner_->run(z, scratch + m);
    // The inverse as the conjugate of the transform of the conjugate.
    for (int64_t k = 0; k < m; ++k) z[k] = conjugate(z[k] * spectrum_[static_cast<size_t>(k)]);
    inner_->run(z, scratch + m);
    const double scale = 1.0 / static_cast<double>(m);
    for (int64_t k = 0; k < n_; ++k) {
      const C y = conjugate(z[k]) * chirp_[static_cast<size_t>(k)];
      data[k] = {y.re * scale, y.im * scale};
    }
  }

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<C> roots_;
  std::unique_ptr<Plan> inner_;
  std::vector<C> chirp_, spectrum_;
};

/// The plan of the latest length on this thread.
const Plan& plan_for(int64_t n) {
  static thread_local std::unique_ptr<Plan> latest;
  if (!latest || latest->length() != n) latest = std::make_unique<Plan>(n);
  return *latest;
}

/// The inverse swaps real and imaginary parts before and after.
template <class T>
void lines(const Plan& plan, const std::complex<T>* x, std::complex<T>* y, int64_t count,
           bool inverse, double scale, C* work) {
  const int64_t n = plan.length();
  C *data = work, *scratch = work + n;
  for (int64_t line = 0; line < count; ++line, x += n, y += n) {
    for (int64_t k = 0; k < n; ++k)
      data[k] = inverse ? C{x[k].imag(), x[k].real()} : C{x[k].real(), x[k].imag()};
    plan.run(data, scratch);
    for (int64_t k = 0; k < n; ++k) {
      const T re = static_cast<T>(data[k].re * scale), im = static_cast<T>(data[k].im * scale);
      y[k] = inverse ? std::complex<T>(im, re) : std::complex<T>(re, im);
    }
  }
}

/// Computes in double precision.
template <class T> void transform_as(const Tensor& x, const Tensor& y, bool inverse, double scale) {
  const int64_t batch = x.size(0), n = x.size(1);
  const Plan& plan = plan_for(n);
  constexpr int64_t worth_a_thread = 8192;
  const int64_t pieces =
      std::clamp<int64_t>(batch * n / worth_a_thread, 1, std::min(batch, balanced_pieces()));
  const int64_t size = n + plan.scratch();
  std::vector<C> work(static_cast<size_t>(pieces * size));
  parallel_for(0, pieces, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t p = lo; p < hi; ++p) {
      const int64_t from = batch * p / pieces, to = batch * (p + 1) / pieces;
      lines(plan, x.data<std::complex<T>>() + from * n, y.data<std::complex<T>>() + from * n,
            to - from, inverse, scale, work.data() + p * size);
    }
  });
}

void transform(const Tensor& x, const Tensor& y, bool inverse, double scale) {
  if (x.dtype() == DType::Complex64) return transform_as<float>(x, y, inverse, scale);
  transform_as<double>(x, y, inverse, scale);
}

}  // namespace

template <> const FftKernels& cpu_kernels<FftKernels>() {
  static constexpr FftKernels table = {.transform = transform};
  return table;
}

}  // namespace cresset
