// std::complex and its functions for NVRTC.
namespace std {

template <class R> struct complex {
  using value_type = R;
  R re, im;
  constexpr complex(R a = R(0), R b = R(0)) : re(a), im(b) {}
  constexpr R real() const { return re; }
  constexpr R imag() const { return im; }
};

namespace complex_detail {
template <class R> using C = complex<R>;
template <class R> C<R> mul(C<R> a, C<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class R> C<R> times_i(C<R> a) { return {-a.im, a.re}; }
template <class R> C<R> times_minus_i(C<R> a) { return {a.im, -a.re}; }
}  // namespace complex_detail

template <class R> complex<R> exp(complex<R> z) {
  const R e = std::exp(z.re);
  if (z.im == 0) return {e, z.im};
  if (std::isinf(z.re)) {
    if (z.re < 0) {
      if (!std::isfinite(z.im)) return {R(0), R(0)};
      return {e * std::cos(z.im), e * std::sin(z.im)};
    }
    if (!std::isfinite(z.im)) return {e, z.im - z.im};
  }
  return {e * std::cos(z.im), e * std::sin(z.im)};
}

// |z| near 1 is taken from |z|^2 - 1, computed without cancellation.
template <class R> R log_abs(complex<R> z) {
  R a = std::abs(z.re), b = std::abs(z.im);
  if (a < b) {
    const R t = a;
    a = b;
    b = t;
  }
  if (a > R(0.5) && a < R(2)) return std::log1p((a - 1) * (a + 1) + b * b) / 2;
  return std::log(std::hypot(a, b));
}
template <class R> complex<R> log(complex<R> z) { return {log_abs(z), std::atan2(z.im, z.re)}; }
template <class R> complex<R> log10(complex<R> z) {
  const complex<R> y = std::log(z);
  return {y.re * R(0.43429448190325182765), y.im * R(0.43429448190325182765)};
}

template <class R> complex<R> sqrt(complex<R> z) {
  if (z.re == 0 && z.im == 0) return {R(0), z.im};
  if (std::isinf(z.im)) return {R(INFINITY), z.im};
  if (std::isinf(z.re)) {
    if (z.re > 0) return {z.re, z.im != z.im ? z.im : std::copysign(R(0), z.im)};
    return {z.im != z.im ? z.im : R(0), std::copysign(R(INFINITY), z.im)};
  }
  // Scaled so that neither squares overflow nor small parts vanish.
  const bool large = std::abs(z.re) > R(1e15) || std::abs(z.im) > R(1e15);
  const R scale = large ? R(0.0625) : R(16), back = large ? R(4) : R(0.25);
  const R a = z.re * scale, b = z.im * scale;
  const R t = std::sqrt((std::abs(a) + std::hypot(a, b)) / 2) * back;
  const R other = b * back * back / (2 * t);
  if (z.re >= 0) return {t, other};
  return {std::abs(other), std::copysign(t, z.im)};
}

template <class R> complex<R> sinh(complex<R> z) {
  if (z.im == 0) return {std::sinh(z.re), z.im};
  if (std::isinf(z.re) && !std::isfinite(z.im)) return {z.re, z.im - z.im};
  return {std::sinh(z.re) * std::cos(z.im), std::cosh(z.re) * std::sin(z.im)};
}
template <class R> complex<R> cosh(complex<R> z) {
  if (z.im == 0) return {std::cosh(z.re), z.im * std::copysign(R(1), z.re)};
  if (std::isinf(z.re) && !std::isfinite(z.im)) return {std::abs(z.re), z.im - z.im};
  return {std::cosh(z.re) * std::cos(z.im), std::sinh(z.re) * std::sin(z.im)};
}
// Kahan, "Branch cuts for complex elementary functions" (1987).
template <class R> complex<R> tanh(complex<R> z) {
  if (std::abs(z.re) > R(sizeof(R) == 4 ? 11 : 22)) {
    const R decay = std::exp(-2 * std::abs(z.re));
    const R twist = std::isfinite(z.im) ? std::sin(2 * z.im) : R(0);
    return {std::copysign(R(1), z.re), 2 * twist * decay};
  }
  const R t = std::tan(z.im), beta = 1 + t * t, s = std::sinh(z.re), rho = std::sqrt(1 + s * s);
  if (std::isinf(t)) return {rho / s, 1 / t};
  const R d = 1 + beta * s * s;
  return {beta * rho * s / d, t / d};
}
template <class R> complex<R> sin(complex<R> z) {
  return complex_detail::times_minus_i(std::sinh(complex_detail::times_i(z)));
}
template <class R> complex<R> cos(complex<R> z) { return std::cosh(complex_detail::times_i(z)); }
template <class R> complex<R> tan(complex<R> z) {
  return complex_detail::times_minus_i(std::tanh(complex_detail::times_i(z)));
}

template <class R> complex<R> asinh(complex<R> z);

// Kahan's formulas over square roots, with the real part of a square root product.
template <class R> complex<R> acos(complex<R> z) {
  const complex<R> p = std::sqrt(complex<R>(1 + z.re, z.im));
  const complex<R> m = std::sqrt(complex<R>(1 - z.re, -z.im));
  return {2 * std::atan2(m.re, p.re), std::asinh(p.re * m.im - p.im * m.re)};
}
template <class R> complex<R> asin(complex<R> z) {
  const complex<R> p = std::sqrt(complex<R>(1 + z.re, z.im));
  const complex<R> m = std::sqrt(complex<R>(1 - z.re, -z.im));
  return {std::atan2(z.re, p.re * m.re - p.im * m.im), std::asinh(m.re * p.im - m.im * p.re)};
}
template <class R> complex<R> acosh(complex<R> z) {
  const complex<R> p = std::sqrt(complex<R>(z.re + 1, z.im));
  const complex<R> m = std::sqrt(complex<R>(z.re - 1, z.im));
  return {std::asinh(m.re * p.re + m.im * p.im), 2 * std::atan2(m.im, p.re)};
}
template <class R> complex<R> asinh(complex<R> z) {
  return complex_detail::times_minus_i(std::asin(complex_detail::times_i(z)));
}
template <class R> complex<R> atanh(complex<R> z) {
  const R x = z.re, y = z.im;
  if (std::isinf(x) || std::isinf(y))
    return {std::copysign(R(0), x), std::copysign(R(1.57079632679489661923), y)};
  const R re = std::log1p(4 * std::abs(x) / ((1 - std::abs(x)) * (1 - std::abs(x)) + y * y)) / 4;
  const R im = std::atan2(2 * y, (1 - x) * (1 + x) - y * y) / 2;
  return {std::copysign(re, x), im};
}
template <class R> complex<R> atan(complex<R> z) {
  return complex_detail::times_minus_i(std::atanh(complex_detail::times_i(z)));
}

template <class R> complex<R> pow(complex<R> a, complex<R> b) {
  if (a.re == 0 && a.im == 0) {
    if (b.im == 0 && b.re > 0) return {R(0), R(0)};
    if (b.im == 0 && b.re == 0) return {R(1), R(0)};
  }
  const complex<R> l = std::log(a);
  if (b.im == 0) {
    const R length = std::exp(b.re * l.re), turn = b.re * l.im;
    return {length * std::cos(turn), length * std::sin(turn)};
  }
  return std::exp(complex_detail::mul(b, l));
}

}  // namespace std
