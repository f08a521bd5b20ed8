// Cplx<R>, the value wrapper of complex numbers: the operators and functions of the rows.
#pragma once

#include <cmath>
#include <complex>

#include "core/base/num.h"

namespace cresset {

/// A complex number, laid out as std::complex. Functions with a real result, such as abs and
/// angle, give it as the real part.
template <class R> struct Cplx {
  using Element = std::complex<R>;
  static constexpr int width = 1;
  R re{}, im{};

  constexpr Cplx() = default;
  constexpr Cplx(double x) : re(static_cast<R>(x)) {}
  constexpr Cplx(R x, R y) : re(x), im(y) {}
  constexpr Cplx(std::complex<R> z) : re(z.real()), im(z.imag()) {}
  constexpr std::complex<R> std() const { return {re, im}; }
  static constexpr Cplx load(const Element* p) { return *p; }
  /// A real value.
  static constexpr Cplx real(R x) { return {x, R(0)}; }

  friend constexpr void store(Cplx x, Element* p) { *p = x.std(); }
  friend constexpr Cplx select(bool c, Cplx a, Cplx b) { return c ? a : b; }
  friend constexpr Cplx conj(Cplx x) { return {x.re, -x.im}; }
  friend constexpr Cplx imaginary_unit(Cplx) { return {R(0), R(1)}; }

  friend constexpr Cplx operator-(Cplx x) { return {-x.re, -x.im}; }
  friend constexpr Cplx operator+(Cplx a, Cplx b) { return {a.re + b.re, a.im + b.im}; }
  friend constexpr Cplx operator-(Cplx a, Cplx b) { return {a.re - b.re, a.im - b.im}; }
  friend constexpr Cplx operator*(Cplx a, Cplx b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  /// Smith's method: neither overflows nor underflows where the quotient does not.
  friend constexpr Cplx operator/(Cplx a, Cplx b) {
    if ((b.re < 0 ? -b.re : b.re) >= (b.im < 0 ? -b.im : b.im)) {
      if (b.re == 0 && b.im == 0) return {a.re / b.re, a.im / b.re};
      const R r = b.im / b.re, d = 1 / (b.re + b.im * r);
      return {(a.re + a.im * r) * d, (a.im - a.re * r) * d};
    }
    const R r = b.re / b.im, d = 1 / (b.re * r + b.im);
    return {(a.re * r + a.im) * d, (a.im * r - a.re) * d};
  }
  friend constexpr bool operator==(Cplx a, Cplx b) { return a.re == b.re && a.im == b.im; }
  friend constexpr bool operator!=(Cplx a, Cplx b) { return !(a == b); }

  friend bool isnan(Cplx x) { return std::isnan(x.re) || std::isnan(x.im); }
  friend bool isinf(Cplx x) { return std::isinf(x.re) || std::isinf(x.im); }
  friend bool isfinite(Cplx x) { return std::isfinite(x.re) && std::isfinite(x.im); }
  friend bool isreal(Cplx x) { return x.im == 0; }

  friend Cplx abs(Cplx x) { return real(std::hypot(x.re, x.im)); }
  friend Cplx angle(Cplx x) { return real(std::atan2(x.im, x.re)); }
  friend Cplx sgn(Cplx x) {
    const R r = std::hypot(x.re, x.im);
    return r == 0 ? Cplx() : Cplx(x.re / r, x.im / r);
  }
  friend Cplx sqrt(Cplx x) { return std::sqrt(x.std()); }
  friend Cplx rsqrt(Cplx x) { return 1 / sqrt(x); }
  friend Cplx exp(Cplx x) { return std::exp(x.std()); }
  friend Cplx exp2(Cplx x) { return exp(x * 0.69314718055994530942); }
  friend Cplx expm1(Cplx x) {
    const R s = std::sin(x.im / 2), e = std::expm1(x.re);
    return {e * std::cos(x.im) - 2 * s * s, (e + 1) * std::sin(x.im)};
  }
  friend Cplx log(Cplx x) { return std::log(x.std()); }
  friend Cplx log2(Cplx x) {
    const Cplx y = log(x);
    return {y.re * R(1.44269504088896340736), y.im * R(1.44269504088896340736)};
  }
  friend Cplx log10(Cplx x) { return std::log10(x.std()); }
  friend Cplx log1p(Cplx x) {
    if (!(std::abs(x.re) < 0.5 && std::abs(x.im) < 0.5)) return log(x + 1);
    return {std::log1p(x.re * (2 + x.re) + x.im * x.im) / 2, std::atan2(x.im, 1 + x.re)};
  }
  friend Cplx sin(Cplx x) { return std::sin(x.std()); }
  friend Cplx cos(Cplx x) { return std::cos(x.std()); }
  friend Cplx tan(Cplx x) { return std::tan(x.std()); }
  friend Cplx asin(Cplx x) { return std::asin(x.std()); }
  friend Cplx acos(Cplx x) { return std::acos(x.std()); }
  friend Cplx atan(Cplx x) { return std::atan(x.std()); }
  friend Cplx sinh(Cplx x) { return std::sinh(x.std()); }
  friend Cplx cosh(Cplx x) { return std::cosh(x.std()); }
  friend Cplx tanh(Cplx x) { return std::tanh(x.std()); }
  friend Cplx asinh(Cplx x) { return std::asinh(x.std()); }
  friend Cplx acosh(Cplx x) { return std::acosh(x.std()); }
  friend Cplx atanh(Cplx x) { return std::atanh(x.std()); }
  friend Cplx sigmoid(Cplx x) { return 1 / (1 + exp(-x)); }
  friend Cplx pow(Cplx a, Cplx b) {
    if (b == 0) return 1;
    return std::pow(a.std(), b.std());
  }

  friend Cplx logaddexp(Cplx a, Cplx b) {
    if (isnan(a) || isnan(b)) return {R(NAN), R(NAN)};
    const Cplx high = a.re >= b.re ? a : b, low = a.re >= b.re ? b : a;
    if (std::isinf(low.re) && low.re < 0) return high;
    if (std::isinf(low.re)) return log(exp(a) + exp(b));
    return high + log1p(exp(low - high));
  }
  friend Cplx logaddexp2(Cplx a, Cplx b) {
    constexpr double ln2 = 0.69314718055994530942;
    return logaddexp(a * ln2, b * ln2) / ln2;
  }
  friend Cplx lerp(Cplx a, Cplx b, Cplx w) {
    return std::hypot(w.re, w.im) < 0.5 ? a + w * (b - a) : b - (b - a) * (1 - w);
  }
};

}  // namespace cresset
