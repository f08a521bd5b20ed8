// Bessel and Airy functions of one double.
#pragma once

#include <cmath>

#include "core/base/special.h"

namespace cresset::scalar {

// The POSIX functions; y0 and y1 give -inf at 0 and NaN below.
inline double special_bessel_j0(double x) { return ::j0(x); }
inline double special_bessel_j1(double x) { return ::j1(x); }
inline double special_bessel_y0(double x) { return ::y0(x); }
inline double special_bessel_y1(double x) { return ::y1(x); }

/// I_order(x) for x >= 0 of moderate size, order 0 or 1, by its power series.
inline double bessel_i_series(double x, int order) {
  const double z = x * x / 4;
  double term = order == 0 ? 1 : x / 2;
  double sum = term;
  for (int k = 1; term > sum * 1e-17; ++k) sum += term *= z / (k * (k + order));
  return sum;
}

/// exp(-x) I_order(x) for large x, Abramowitz-Stegun 9.7.1.
inline double bessel_i_asymptotic(double x, int order) {
  if (std::isinf(x)) return 0;
  double term = 1, sum = 1;
  for (int k = 1; k < 40 && std::abs(term) > 1e-17; ++k) {
    term *= ((2 * k - 1.0) * (2 * k - 1.0) - 4.0 * order) / (8 * x * k);
    sum += term;
  }
  return sum / std::sqrt(2 * pi * x);
}

/// I_order(x) or exp(-x) I_order(x), for x >= 0.
inline double bessel_i(double x, int order, bool scaled) {
  if (x <= 25) return bessel_i_series(x, order) * (scaled ? std::exp(-x) : 1);
  const double y = bessel_i_asymptotic(x, order);
  if (scaled || std::isinf(x)) return scaled ? y : x;
  // exp in two halves: I stays finite a little beyond the range of exp.
  const double half = std::exp(x / 2);
  return y * half * half;
}

inline double i0(double x) { return bessel_i(std::abs(x), 0, false); }
inline double special_i1(double x) { return std::copysign(bessel_i(std::abs(x), 1, false), x); }
inline double special_i0e(double x) { return bessel_i(std::abs(x), 0, true); }
inline double special_i1e(double x) { return std::copysign(bessel_i(std::abs(x), 1, true), x); }

/// exp(x) K_order(x) for x > 0: the integral of exp(-x (cosh t - 1)) cosh(order t) over t >= 0 by
/// the trapezoidal rule, which converges exponentially (Trefethen and Weideman, SIAM Review 2014).
inline double scaled_bessel_k(double x, double order) {
  const double step = std::fmin(0.2, 0.6 / std::sqrt(x));
  double sum = 0.5;
  for (int k = 1;; ++k) {
    const double t = k * step;
    const double s = std::sinh(t / 2);
    const double term = std::exp(-2 * x * s * s) * std::cosh(order * t);
    sum += term;
    if (term < sum * 1e-18) return sum * step;
  }
}

inline double special_scaled_modified_bessel_k0(double x) {
  if (!(x > 0)) return x == 0 ? infinity : not_a_number;
  if (std::isinf(x)) return 0;
  constexpr double euler = 0.57721566490153286061;
  return x < 1e-8 ? (std::log(2 / x) - euler) * (1 + x) : scaled_bessel_k(x, 0);
}

inline double special_scaled_modified_bessel_k1(double x) {
  if (!(x > 0)) return x == 0 ? infinity : not_a_number;
  if (std::isinf(x)) return 0;
  return x < 1e-8 ? 1 / x + 1 : scaled_bessel_k(x, 1);
}

inline double special_modified_bessel_k0(double x) {
  return special_scaled_modified_bessel_k0(x) * std::exp(-x);
}

inline double special_modified_bessel_k1(double x) {
  return special_scaled_modified_bessel_k1(x) * std::exp(-x);
}

inline double special_spherical_bessel_j0(double x) {
  if (x == 0) return 1;
  return std::isinf(x) ? 0 : std::sin(x) / x;
}

/// Ai for x < -10, Abramowitz-Stegun 10.4.60.
inline double airy_asymptotic(double x) {
  const double zeta = 2.0 / 3 * -x * std::sqrt(-x);
  double term = 1, cosine = 1, sine = 0;
  for (int k = 1; k < 30 && std::abs(term) > 1e-17; ++k) {
    term *= (6 * k - 5.0) * (6 * k - 1.0) / (72.0 * k * zeta);
    const double sign = k % 4 < 2 ? 1 : -1;
    (k % 2 == 0 ? cosine : sine) += sign * term;
  }
  const double angle = zeta - pi / 4;
  return (cosine * std::cos(angle) + sine * std::sin(angle)) / (sqrt_pi * std::sqrt(std::sqrt(-x)));
}

/// Ai for -10 <= x < 1: Taylor steps along y'' = x y from 0, stable where the solution oscillates.
inline double airy_steps(double x) {
  double at = 0, value = 0.35502805388781723926, slope = -0.25881940379280679840;
  while (at != x) {
    const double h = x - at < -0.5 ? -0.5 : x - at;
    double c[32] = {value, slope, at * value / 2};
    for (int k = 1; k < 30; ++k) c[k + 2] = (at * c[k] + c[k - 1]) / ((k + 2.0) * (k + 1));
    value = slope = 0;
    for (int k = 31; k >= 0; --k) value = value * h + c[k];
    for (int k = 31; k >= 1; --k) slope = slope * h + k * c[k];
    at = h == -0.5 ? at + h : x;
  }
  return value;
}

inline double special_airy_ai(double x) {
  if (std::isinf(x) || std::isnan(x)) return not_a_number;
  if (x < -10) return airy_asymptotic(x);
  if (x < 1) return airy_steps(x);
  const double zeta = 2.0 / 3 * x * std::sqrt(x);
  if (zeta > 750) return 0;
  return std::exp(-zeta) * std::sqrt(x / 3) / pi * scaled_bessel_k(zeta, 1.0 / 3);
}

}  // namespace cresset::scalar
