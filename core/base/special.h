// Gamma, zeta and error functions of one double, by series and iterations that reach its precision.
#pragma once

#include <cmath>
#include <limits>

namespace cresset::scalar {

inline constexpr double pi = 3.14159265358979323846;
inline constexpr double sqrt_pi = 1.77245385090551602730;
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

inline double lgamma(double x) { return std::lgamma(x); }

/// The logarithmic derivative of the gamma function: recurrence up, then Abramowitz-Stegun 6.3.18.
inline double digamma(double x) {
  if (x == 0) return std::copysign(infinity, -x);
  double sum = 0;
  if (x < 0) {
    if (x == std::floor(x)) return not_a_number;
    sum = -pi / std::tan(pi * std::remainder(x, 1.0));
    x = 1 - x;
  }
  for (; x < 12; x += 1) sum -= 1 / x;
  const double z = 1 / (x * x);
  const double tail =
      z * (1.0 / 12 - z * (1.0 / 120 -
                           z * (1.0 / 252 -
                                z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12))))));
  return sum + std::log(x) - 0.5 / x - (std::isinf(x) ? 0 : tail);
}

/// The derivative of digamma, Abramowitz-Stegun 6.4.12.
inline double trigamma(double x) {
  if (x <= 0) {
    if (x == std::floor(x)) return infinity;
    const double s = std::sin(pi * std::remainder(x, 1.0));
    return pi * pi / (s * s) - trigamma(1 - x);
  }
  double sum = 0;
  for (; x < 15; x += 1) sum += 1 / (x * x);
  const double z = 1 / (x * x);
  const double tail =
      z *
      (1.0 / 6 -
       z * (1.0 / 30 -
            z * (1.0 / 42 - z * (1.0 / 30 - z * (5.0 / 66 - z * (691.0 / 2730 - z * 7.0 / 6))))));
  return sum + (1 + 0.5 / x + tail) / x;
}

/// Hurwitz's zeta for q > 0, s > 1, by the Euler-Maclaurin formula.
inline double zeta_positive(double s, double q) {
  constexpr double bernoulli[] = {1.0 / 6,       -1.0 / 30,      1.0 / 42, -1.0 / 30,
                                  5.0 / 66,      -691.0 / 2730,  7.0 / 6,  -3617.0 / 510,
                                  43867.0 / 798, -174611.0 / 330};
  double sum = 0;
  // Far enough for the expansion, or until the terms vanish, which is sooner for a large s.
  for (const double enough = 12 + s; q < enough; q += 1) {
    const double term = std::pow(q, -s);
    sum += term;
    if (term <= sum * 1e-18 || std::isinf(sum)) return sum;
  }
  const double last = std::pow(q, -s);
  sum += last * q / (s - 1) + last / 2;
  double factor = last / q * s / 2;
  for (int j = 0; j < 10; ++j) {
    sum += factor * bernoulli[j];
    const double k = 2 * j + 1;
    factor *= (s + k) * (s + k + 1) / ((k + 2) * (k + 3)) / (q * q);
  }
  return sum;
}

/// Sum of (q + k)^-s over k >= 0.
inline double special_zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q) || s < 1) return not_a_number;
  if (s == 1) return infinity;
  if (q > 0) return std::isinf(q) ? 0 : zeta_positive(s, q);
  if (q == std::floor(q)) return infinity;
  if (s != std::floor(s)) return not_a_number;
  // The terms below zero are those of a positive argument, up to sign: sum them in closed form.
  const double count = std::ceil(-q);
  const double f = q + count;
  const double sign = std::fmod(s, 2) == 0 ? 1 : -1;
  return zeta_positive(s, f) +
         sign * (zeta_positive(s, -(q + (count - 1))) - zeta_positive(s, 1 - q));
}

/// The n-th derivative of digamma.
inline double polygamma(double x, double n) {
  if (n == 0) return digamma(x);
  if (n == 1) return trigamma(x);
  const double sign = std::fmod(n, 2) == 0 ? -1 : 1;
  return sign * std::tgamma(n + 1) * special_zeta(n + 1, x);
}

/// exp(x^2) erfc(x).
inline double special_erfcx(double x) {
  if (x < 0) return x < -26.7 ? infinity : 2 * std::exp(x * x) - special_erfcx(-x);
  if (x < 10) {
    // The rounding of x^2 would be magnified by exp: carry it along.
    const double square = x * x;
    return std::exp(square) * (1 + std::fma(x, x, -square)) * std::erfc(x);
  }
  double sum = 0;
  const double z = 1 / (2 * x * x);
  for (int k = 13; k >= 1; --k) sum = -(2 * k - 1) * z * (1 + sum);
  return (1 + sum) / (x * sqrt_pi);
}

/// Winitzki's approximation of the inverse error function, from log(1 - y^2); error 2e-3.
inline double erfinv_start(double log_term) {
  constexpr double a = 0.147;
  const double t = 2 / (pi * a) + log_term / 2;
  return std::sqrt(std::sqrt(t * t - log_term / a) - t);
}

/// x with erfc(x) = q, for 0 < q <= 1, by Newton's method on the logarithm.
inline double erfcinv_upper(double q) {
  double x = erfinv_start(std::log(q) + std::log(2 - q));
  const double log_q = std::log(q);
  for (int i = 0; i < 4; ++i) {
    const double e = special_erfcx(x);
    x += (std::log(e) - x * x - log_q) * e * sqrt_pi / 2;
  }
  return x;
}

inline double erfinv(double y) {
  const double a = std::abs(y);
  if (!(a <= 1)) return not_a_number;
  if (a == 1) return std::copysign(infinity, y);
  if (a > 0.5) return std::copysign(erfcinv_upper(1 - a), y);
  double x = a < 0.01 ? a * sqrt_pi / 2 : erfinv_start(std::log1p(-a * a));
  for (int i = 0; i < 3; ++i) {
    const double u = (std::erf(x) - a) * std::exp(x * x) * sqrt_pi / 2;
    x -= u / (1 + x * u);
  }
  return std::copysign(x, y);
}

/// The inverse of the normal distribution function.
inline double special_ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return not_a_number;
  if (p == 0) return -infinity;
  if (p == 1) return infinity;
  constexpr double sqrt2 = 1.41421356237309504880;
  if (p > 0.25 && p < 0.75) return sqrt2 * erfinv(2 * (p - 0.5));
  return p < 0.5 ? -sqrt2 * erfcinv_upper(2 * p) : sqrt2 * erfcinv_upper(2 * (1 - p));
}

/// The logarithm of the normal distribution function.
inline double special_log_ndtr(double x) {
  const double t = x * 0.70710678118654752440;
  if (x < -1) return std::isinf(x) ? x : std::log(special_erfcx(-t) / 2) - t * t;
  return std::log1p(-std::erfc(t) / 2);
}

/// x^a exp(-x) / gamma(a + 1), without the cancellation of its logarithm for large a.
inline double gamma_prefactor(double a, double x) {
  if (a < 15) return std::exp(a * std::log(x) - x - std::lgamma(a + 1));
  const double z = 1 / (a * a);
  const double stirling = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z / 1680))) / a;
  const double mu = (x - a) / a;
  return std::exp(a * (std::log1p(mu) - mu) - stirling) / std::sqrt(2 * pi * a);
}

/// Temme's uniform expansion of Q(a, x), its first term: enough for a > 1e5.
inline double gamma_upper_uniform(double a, double x) {
  const double mu = (x - a) / a;
  const double eta = std::copysign(std::sqrt(2 * (mu - std::log1p(mu))), mu);
  const double c0 = std::abs(eta) < 0.01
                        ? -1.0 / 3 + eta * (1.0 / 12 + eta * (-2.0 / 135 + eta / 864))
                        : 1 / mu - 1 / eta;
  return 0.5 * std::erfc(eta * std::sqrt(a / 2)) +
         std::exp(-a * eta * eta / 2) / std::sqrt(2 * pi * a) * c0;
}

/// lgamma(1 + a) for a > 0; for small a, where 1 + a would round, by its Taylor series.
inline double lgamma_1p(double a) {
  if (a > 1e-3) return std::lgamma(1 + a);
  return a * (-0.57721566490153286061 +
              a * (0.82246703342411321824 -
                   a * (0.40068563438653142847 -
                        a * (0.27058080842778454788 - a * 0.20738555102867398527))));
}

/// Q(a, x) for small x and a, where 1 - P would cancel: 1 - x^a / gamma(a + 1) without its series.
inline double gamma_upper_small(double a, double x) {
  double term = 1, sum = 0;
  for (double n = 1; n < 60 && std::abs(term) > 1e-18; n += 1) {
    term *= -x / n;
    sum += term / (a + n);
  }
  const double log_power = a * std::log(x) - lgamma_1p(a);
  return -std::expm1(log_power) - std::exp(log_power) * a * sum;
}

/// P(a, x), or Q(a, x) if `upper`, for finite positive arguments.
inline double incomplete_gamma(double a, double x, bool upper) {
  if (a > 1e5 && x > 0.5 * a && x < 2 * a) {
    const double q = gamma_upper_uniform(a, x);
    return upper ? q : 1 - q;
  }
  if (upper && x <= 1.1 && a <= (x <= 0.5 ? -0.4 / std::log(x) : 1.1 * x)) {
    return gamma_upper_small(a, x);
  }
  const double prefactor = gamma_prefactor(a, x);
  if (x < a + 1) {
    double term = 1, sum = 1;
    for (double n = a + 1; term > sum * 1e-17; n += 1) sum += term *= x / n;
    const double p = prefactor * sum;
    return upper ? 1 - p : p;
  }
  // Legendre's continued fraction by Lentz's method, Abramowitz-Stegun 6.5.31.
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (double i = 1; i < 10000; i += 1) {
    const double an = -i * (i - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  const double q = prefactor * a * h;
  return upper ? q : 1 - q;
}

/// The regularized lower incomplete gamma function P(a, x).
inline double igamma(double a, double x) {
  if (!(a >= 0 && x >= 0)) return not_a_number;
  if (a == 0) return x > 0 ? 1 : not_a_number;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? not_a_number : 0;
  return std::isinf(x) ? 1 : incomplete_gamma(a, x, false);
}

/// The regularized upper incomplete gamma function Q(a, x).
inline double igammac(double a, double x) {
  if (!(a >= 0 && x >= 0)) return not_a_number;
  if (a == 0) return x > 0 ? 0 : not_a_number;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? not_a_number : 1;
  return std::isinf(x) ? 0 : incomplete_gamma(a, x, true);
}

}  // namespace cresset::scalar
