// Scalar value wrappers for the row formulas: Num<T> for reals and integers, Cplx<R> for complex.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <type_traits>

namespace cresset {

// Comparisons of Num give bool; rows combine them by these names.
constexpr bool logical_and(bool a, bool b) { return a && b; }
constexpr bool logical_or(bool a, bool b) { return a || b; }
constexpr bool logical_not(bool a) { return !a; }
template <class T>
constexpr void store(bool c, T* p) {
  *p = static_cast<T>(c ? 1 : 0);
}

/// A number whose operators never widen: `0.5 * x` stays float for a Num<float>.
template <class T>
struct Num {
  using Element = T;
  static constexpr int width = 1;
  T v{};

  constexpr Num() = default;
  constexpr Num(double x) : v(static_cast<T>(x)) {}
  static constexpr Num of(T x) {
    Num n;
    n.v = x;
    return n;
  }
  static constexpr Num load(const T* p) { return of(*p); }

  friend constexpr void store(Num x, T* p) { *p = x.v; }
  friend constexpr Num select(bool c, Num a, Num b) { return c ? a : b; }
  friend constexpr Num conj(Num x) { return x; }

  friend constexpr Num operator-(Num x) { return of(static_cast<T>(T(0) - x.v)); }
  friend constexpr Num operator+(Num a, Num b) { return of(a.v + b.v); }
  friend constexpr Num operator-(Num a, Num b) { return of(a.v - b.v); }
  friend constexpr Num operator*(Num a, Num b) { return of(a.v * b.v); }
  friend constexpr Num operator/(Num a, Num b) { return of(a.v / b.v); }
  friend constexpr bool operator==(Num a, Num b) { return a.v == b.v; }
  friend constexpr bool operator!=(Num a, Num b) { return a.v != b.v; }
  friend constexpr bool operator<(Num a, Num b) { return a.v < b.v; }
  friend constexpr bool operator<=(Num a, Num b) { return a.v <= b.v; }
  friend constexpr bool operator>(Num a, Num b) { return a.v > b.v; }
  friend constexpr bool operator>=(Num a, Num b) { return a.v >= b.v; }

  friend Num exp(Num x) { return of(std::exp(x.v)); }
  friend Num log(Num x) { return of(std::log(x.v)); }
  friend Num tanh(Num x) { return of(std::tanh(x.v)); }
  friend Num erf(Num x) { return of(std::erf(x.v)); }
  friend Num sigmoid(Num x) { return of(1 / (1 + std::exp(-x.v))); }
};

/// A complex number, laid out as PyTorch stores it.
template <class R>
struct Cplx {
  using Element = std::complex<R>;
  static constexpr int width = 1;
  R re{}, im{};

  constexpr Cplx() = default;
  constexpr Cplx(double x) : re(static_cast<R>(x)) {}
  constexpr Cplx(R x, R y) : re(x), im(y) {}
  constexpr Cplx(std::complex<R> z) : re(z.real()), im(z.imag()) {}
  constexpr std::complex<R> std() const { return {re, im}; }
  static constexpr Cplx load(const Element* p) { return *p; }

  friend constexpr void store(Cplx x, Element* p) { *p = x.std(); }
  friend constexpr Cplx select(bool c, Cplx a, Cplx b) { return c ? a : b; }
  friend constexpr Cplx conj(Cplx x) { return {x.re, -x.im}; }

  friend constexpr Cplx operator-(Cplx x) { return {-x.re, -x.im}; }
  friend constexpr Cplx operator+(Cplx a, Cplx b) { return {a.re + b.re, a.im + b.im}; }
  friend constexpr Cplx operator-(Cplx a, Cplx b) { return {a.re - b.re, a.im - b.im}; }
  friend constexpr Cplx operator*(Cplx a, Cplx b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend Cplx operator/(Cplx a, Cplx b) { return a.std() / b.std(); }
  friend constexpr bool operator==(Cplx a, Cplx b) { return a.re == b.re && a.im == b.im; }
  friend constexpr bool operator!=(Cplx a, Cplx b) { return !(a == b); }

  friend Cplx exp(Cplx x) { return std::exp(x.std()); }
  friend Cplx log(Cplx x) { return std::log(x.std()); }
  friend Cplx tanh(Cplx x) { return std::tanh(x.std()); }
  friend Cplx sigmoid(Cplx x) { return 1 / (1 + exp(-x)); }
};

}  // namespace cresset
