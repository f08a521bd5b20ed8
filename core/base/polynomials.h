// Orthogonal polynomials of degree n at x, by their three-term recurrences.
#pragma once

#include <cmath>

#include "core/base/special.h"

namespace cresset::scalar {

/// p(k + 1) = step(k, p(k), p(k - 1)) from p(0) = 1 and p(1) = first; 0 for a negative degree.
/// A degree beyond a million gives NaN: its recurrence would hang for a stray infinity.
template <class Step> inline double recur_polynomial(double n, double first, Step step) {
  const double degree = std::trunc(n);
  if (degree < 0) return 0;
  if (!(degree < 1e6)) return not_a_number;
  if (degree == 0) return 1;
  double p = 1, q = first;
  for (double k = 1; k < degree && std::isfinite(q); k += 1) {
    const double next = step(k, q, p);
    p = q;
    q = next;
  }
  return q;
}

/// The four kinds share a recurrence and differ in p(1); the closed form in cosines keeps high
/// degrees fast inside (-1, 1).
inline double chebyshev_by_recurrence(double x, double n, double first) {
  return recur_polynomial(n, first, [x](double, double q, double p) { return 2 * x * q - p; });
}

inline bool use_angle(double x, double n) { return n > 30 && std::abs(x) < 1; }
inline bool is_odd(double n) { return std::fmod(std::trunc(n), 2) != 0; }

inline double special_chebyshev_polynomial_t(double x, double n) {
  if (use_angle(x, n)) return std::cos(std::trunc(n) * std::acos(x));
  if (std::abs(x) == 1 && n >= 0) return is_odd(n) ? x : 1;
  return chebyshev_by_recurrence(x, n, x);
}

inline double special_chebyshev_polynomial_u(double x, double n) {
  const double m = std::trunc(n);
  if (use_angle(x, n)) {
    const double angle = std::acos(x);
    return std::sin((m + 1) * angle) / std::sin(angle);
  }
  if (std::abs(x) == 1 && n >= 0) return (m + 1) * (is_odd(n) ? x : 1);
  return chebyshev_by_recurrence(x, n, 2 * x);
}

inline double special_chebyshev_polynomial_v(double x, double n) {
  const double m = std::trunc(n);
  if (use_angle(x, n)) {
    const double angle = std::acos(x);
    return std::cos((m + 0.5) * angle) / std::cos(0.5 * angle);
  }
  if (x == 1 && n >= 0) return 1;
  if (x == -1 && n >= 0) return (2 * m + 1) * (is_odd(n) ? -1 : 1);
  return chebyshev_by_recurrence(x, n, 2 * x - 1);
}

inline double special_chebyshev_polynomial_w(double x, double n) {
  const double m = std::trunc(n);
  if (use_angle(x, n)) {
    const double angle = std::acos(x);
    return std::sin((m + 0.5) * angle) / std::sin(0.5 * angle);
  }
  if (x == 1 && n >= 0) return 2 * m + 1;
  if (x == -1 && n >= 0) return is_odd(n) ? -1 : 1;
  return chebyshev_by_recurrence(x, n, 2 * x + 1);
}

inline double special_shifted_chebyshev_polynomial_t(double x, double n) {
  return special_chebyshev_polynomial_t(2 * x - 1, n);
}
inline double special_shifted_chebyshev_polynomial_u(double x, double n) {
  return special_chebyshev_polynomial_u(2 * x - 1, n);
}
inline double special_shifted_chebyshev_polynomial_v(double x, double n) {
  return special_chebyshev_polynomial_v(2 * x - 1, n);
}
inline double special_shifted_chebyshev_polynomial_w(double x, double n) {
  return special_chebyshev_polynomial_w(2 * x - 1, n);
}

inline double special_hermite_polynomial_h(double x, double n) {
  return recur_polynomial(n, 2 * x,
                          [x](double k, double q, double p) { return 2 * x * q - 2 * k * p; });
}

inline double special_hermite_polynomial_he(double x, double n) {
  return recur_polynomial(n, x, [x](double k, double q, double p) { return x * q - k * p; });
}

inline double special_laguerre_polynomial_l(double x, double n) {
  return recur_polynomial(n, 1 - x, [x](double k, double q, double p) {
    return ((2 * k + 1 - x) * q - k * p) / (k + 1);
  });
}

inline double special_legendre_polynomial_p(double x, double n) {
  if (std::abs(x) == 1 && n >= 0) return is_odd(n) ? x : 1;
  return recur_polynomial(
      n, x, [x](double k, double q, double p) { return ((2 * k + 1) * x * q - k * p) / (k + 1); });
}

}  // namespace cresset::scalar
