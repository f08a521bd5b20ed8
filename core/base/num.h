// Num<T>, the value wrapper of reals and integers: the operators and functions of the rows.
//
// Cplx<R> for complex numbers is in cplx.h. The functions are found by argument-dependent lookup:
// given Num<float> x, write exp(x), maximum(x, 0), select(x > 0, x, 0).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/base/bessel.h"
#include "core/base/polynomials.h"
#include "core/base/scalar_math.h"
#include "core/base/special.h"

namespace cresset {

// Comparisons of scalars give bool; rows combine and store them by these names.
constexpr bool logical_and(bool a, bool b) { return a && b; }
constexpr bool logical_or(bool a, bool b) { return a || b; }
constexpr bool logical_xor(bool a, bool b) { return a != b; }
constexpr bool logical_not(bool a) { return !a; }
template <class T> constexpr void store(bool c, T* p) { *p = static_cast<T>(c ? 1 : 0); }

/// A number whose operators never widen: `0.5 * x` stays float for a Num<float>.
template <class T> struct Num {
  using Element = T;
  static constexpr int width = 1;
  static constexpr bool integral = std::is_integral_v<T>;
  T v{};

  constexpr Num() = default;
  constexpr Num(double x) : v(from_double(x)) {}
  static constexpr Num of(T x) {
    Num n;
    n.v = x;
    return n;
  }
  static constexpr Num load(const T* p) { return of(*p); }

  /// Integers saturate, so that an infinite bound is the widest one.
  static constexpr T from_double(double x) {
    if constexpr (integral) {
      if (x >= 0x1p63) return std::numeric_limits<T>::max();
      if (!(x >= -0x1p63)) return std::numeric_limits<T>::min();
    }
    return static_cast<T>(x);
  }

  friend constexpr void store(Num x, T* p) { *p = x.v; }
  friend constexpr Num select(bool c, Num a, Num b) { return c ? a : b; }
  friend constexpr Num conj(Num x) { return x; }
  friend constexpr Num imaginary_unit(Num) { return 0; }

  friend constexpr Num operator-(Num x) {
    if constexpr (integral)
      return of(scalar::wrap_neg(x.v));
    else
      return of(-x.v);
  }
  friend constexpr Num operator+(Num a, Num b) {
    if constexpr (integral)
      return of(scalar::wrap_add(a.v, b.v));
    else
      return of(a.v + b.v);
  }
  friend constexpr Num operator-(Num a, Num b) {
    if constexpr (integral)
      return of(scalar::wrap_add(a.v, scalar::wrap_neg(b.v)));
    else
      return of(a.v - b.v);
  }
  friend constexpr Num operator*(Num a, Num b) {
    if constexpr (integral)
      return of(scalar::wrap_mul(a.v, b.v));
    else
      return of(a.v * b.v);
  }
  friend constexpr Num operator/(Num a, Num b) { return of(a.v / b.v); }
  friend constexpr bool operator==(Num a, Num b) { return a.v == b.v; }
  friend constexpr bool operator!=(Num a, Num b) { return a.v != b.v; }
  friend constexpr bool operator<(Num a, Num b) { return a.v < b.v; }
  friend constexpr bool operator<=(Num a, Num b) { return a.v <= b.v; }
  friend constexpr bool operator>(Num a, Num b) { return a.v > b.v; }
  friend constexpr bool operator>=(Num a, Num b) { return a.v >= b.v; }

  friend constexpr Num abs(Num x) {
    if constexpr (integral)
      return x.v < 0 ? -x : x;
    else
      return of(std::abs(x.v));
  }
  friend constexpr Num sign(Num x) { return of(static_cast<T>((x.v > 0) - (x.v < 0))); }
  friend constexpr Num sgn(Num x) { return sign(x); }
  friend constexpr Num maximum(Num a, Num b) { return of(scalar::maximum(a.v, b.v)); }
  friend constexpr Num minimum(Num a, Num b) { return of(scalar::minimum(a.v, b.v)); }
  friend constexpr Num fmax(Num a, Num b) { return of(scalar::fmax(a.v, b.v)); }
  friend constexpr Num fmin(Num a, Num b) { return of(scalar::fmin(a.v, b.v)); }
  friend Num remainder(Num a, Num b) { return of(scalar::remainder(a.v, b.v)); }
  friend Num fmod(Num a, Num b) { return of(scalar::fmod(a.v, b.v)); }
  friend Num floor_divide(Num a, Num b) { return of(scalar::floor_divide(a.v, b.v)); }
  friend Num trunc_divide(Num a, Num b) { return of(scalar::trunc_divide(a.v, b.v)); }
  friend Num pow(Num a, Num b) { return of(scalar::pow(a.v, b.v)); }

  friend constexpr bool isnan(Num x) { return x.v != x.v; }
  friend constexpr bool isfinite(Num x) { return integral || x.v - x.v == 0; }
  friend constexpr bool isinf(Num x) { return !isfinite(x) && !isnan(x); }
  friend constexpr bool isposinf(Num x) { return isinf(x) && x.v > 0; }
  friend constexpr bool isneginf(Num x) { return isinf(x) && x.v < 0; }
  friend constexpr bool isreal(Num) { return true; }
  friend constexpr bool signbit(Num x) {
    if constexpr (integral)
      return x.v < 0;
    else
      return std::signbit(x.v);
  }

  // Rounding keeps integers.
  friend Num floor(Num x) {
    if constexpr (integral)
      return x;
    else
      return of(std::floor(x.v));
  }
  friend Num ceil(Num x) {
    if constexpr (integral)
      return x;
    else
      return of(std::ceil(x.v));
  }
  friend Num trunc(Num x) {
    if constexpr (integral)
      return x;
    else
      return of(std::trunc(x.v));
  }
  friend Num round(Num x, double decimals) {
    if constexpr (integral)
      return x;
    else
      return of(scalar::round(x.v, decimals));
  }
  friend Num nan_to_num(Num x, double nan, double posinf, double neginf) {
    if constexpr (integral)
      return x;
    else
      return of(scalar::nan_to_num(x.v, nan, posinf, neginf));
  }

  // Integers only.
  friend constexpr Num bitwise_not(Num x) { return of(~x.v); }
  friend constexpr Num bitwise_and(Num a, Num b) { return of(a.v & b.v); }
  friend constexpr Num bitwise_or(Num a, Num b) { return of(a.v | b.v); }
  friend constexpr Num bitwise_xor(Num a, Num b) { return of(a.v ^ b.v); }
  friend constexpr Num bitwise_left_shift(Num a, Num b) { return of(scalar::shift_left(a.v, b.v)); }
  friend constexpr Num bitwise_right_shift(Num a, Num b) {
    return of(scalar::shift_right(a.v, b.v));
  }
  friend constexpr Num gcd(Num a, Num b) { return of(scalar::gcd(a.v, b.v)); }
  friend constexpr Num lcm(Num a, Num b) { return of(scalar::lcm(a.v, b.v)); }

  // Floating point only, from here on.
  friend Num sqrt(Num x) { return of(std::sqrt(x.v)); }
  friend Num exp(Num x) { return of(std::exp(x.v)); }
  friend Num exp2(Num x) { return of(std::exp2(x.v)); }
  friend Num expm1(Num x) { return of(std::expm1(x.v)); }
  friend Num log(Num x) { return of(std::log(x.v)); }
  friend Num log2(Num x) { return of(std::log2(x.v)); }
  friend Num log10(Num x) { return of(std::log10(x.v)); }
  friend Num log1p(Num x) { return of(std::log1p(x.v)); }
  friend Num sin(Num x) { return of(std::sin(x.v)); }
  friend Num cos(Num x) { return of(std::cos(x.v)); }
  friend Num tan(Num x) { return of(std::tan(x.v)); }
  friend Num asin(Num x) { return of(std::asin(x.v)); }
  friend Num acos(Num x) { return of(std::acos(x.v)); }
  friend Num atan(Num x) { return of(std::atan(x.v)); }
  friend Num sinh(Num x) { return of(std::sinh(x.v)); }
  friend Num cosh(Num x) { return of(std::cosh(x.v)); }
  friend Num tanh(Num x) { return of(std::tanh(x.v)); }
  friend Num asinh(Num x) { return of(std::asinh(x.v)); }
  friend Num acosh(Num x) { return of(std::acosh(x.v)); }
  friend Num atanh(Num x) { return of(std::atanh(x.v)); }
  friend Num erf(Num x) { return of(std::erf(x.v)); }
  friend Num erfc(Num x) { return of(std::erfc(x.v)); }
  friend Num rsqrt(Num x) { return of(1 / std::sqrt(x.v)); }
  friend Num log_sigmoid(Num x) { return minimum(x, 0) - log1p(exp(-abs(x))); }
  friend Num sigmoid(Num x) { return of(scalar::sigmoid(x.v)); }
  friend Num angle(Num x) { return x.v != x.v ? x : Num(x.v < 0 ? scalar::pi : 0); }
  friend Num atan2(Num a, Num b) { return of(std::atan2(a.v, b.v)); }
  friend Num hypot(Num a, Num b) { return of(std::hypot(a.v, b.v)); }
  friend Num copysign(Num a, Num b) { return of(std::copysign(a.v, b.v)); }
  friend Num nextafter(Num a, Num b) { return of(std::nextafter(a.v, b.v)); }
  friend Num xlogy(Num a, Num b) { return a == 0 ? select(b == b, 0, b) : a * log(b); }
  friend Num special_xlog1py(Num a, Num b) { return a == 0 ? select(b == b, 0, b) : a * log1p(b); }
  friend Num logaddexp(Num a, Num b) { return of(scalar::logaddexp(a.v, b.v)); }
  friend Num logaddexp2(Num a, Num b) { return of(scalar::logaddexp2(a.v, b.v)); }
  friend Num lerp(Num a, Num b, Num w) {
    return std::abs(w.v) < 0.5 ? a + w * (b - a) : b - (b - a) * (1 - w);
  }

#define SPECIAL1(name) \
  friend Num name(Num x) { return scalar::name(static_cast<double>(x.v)); }
#define SPECIAL2(name)                                                       \
  friend Num name(Num a, Num b) {                                            \
    return scalar::name(static_cast<double>(a.v), static_cast<double>(b.v)); \
  }
#include "core/base/special.def"
};

}  // namespace cresset
