// Elementary functions of one real or integer value, with PyTorch's rules at the edges.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

namespace cresset::scalar {

/// Wrapping integer arithmetic: signed overflow is defined as two's complement.
constexpr int64_t wrap_neg(int64_t a) { return static_cast<int64_t>(0 - static_cast<uint64_t>(a)); }
constexpr int64_t wrap_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
constexpr int64_t wrap_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Integer division never traps: callers refuse a zero divisor before the loop, so its result here
// does not matter, and min / -1 wraps.
constexpr int64_t trunc_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? wrap_neg(a) : a / b;
}
constexpr int64_t fmod(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
constexpr int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t r = fmod(a, b);
  return trunc_divide(a, b) - (r != 0 && (r < 0) != (b < 0));
}
constexpr int64_t remainder(int64_t a, int64_t b) {
  const int64_t r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

template <std::floating_point T> T trunc_divide(T a, T b) { return std::trunc(a / b); }
template <std::floating_point T> T fmod(T a, T b) { return std::fmod(a, b); }
template <std::floating_point T> T remainder(T a, T b) {
  const T r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/// Python's floor division: from the exact remainder, so that 1.0 // 0.1 is 9.
template <std::floating_point T> T floor_divide(T a, T b) {
  if (b == 0) return a / b;
  const T r = std::fmod(a, b);
  T q = (a - r) / b;
  if (r != 0 && (b < 0) != (r < 0)) q -= 1;
  if (q == 0) return std::copysign(T(0), a / b);
  const T floored = std::floor(q);
  return q - floored > T(0.5) ? floored + 1 : floored;
}

/// a^b by squaring, wrapping; a negative exponent gives 0 unless a is 1 or -1.
constexpr int64_t pow(int64_t a, int64_t b) {
  if (b < 0) {
    if (a == 1) return 1;
    if (a == -1) return b % 2 == 0 ? 1 : -1;
    return 0;
  }
  int64_t result = 1;
  for (; b != 0; b >>= 1, a = wrap_mul(a, a)) {
    if (b & 1) result = wrap_mul(result, a);
  }
  return result;
}
template <std::floating_point T> T pow(T a, T b) { return std::pow(a, b); }

constexpr int64_t shift_left(int64_t a, int64_t b) {
  return b < 0 || b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
constexpr int64_t shift_right(int64_t a, int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); }

constexpr int64_t gcd(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t r = fmod(a, b);
    a = b;
    b = r;
  }
  return a < 0 ? wrap_neg(a) : a;
}
constexpr int64_t lcm(int64_t a, int64_t b) {
  const int64_t g = gcd(a, b);
  if (g == 0) return 0;
  const int64_t m = wrap_mul(trunc_divide(a, g), b);
  return m < 0 ? wrap_neg(m) : m;
}

// Maximum and minimum propagate NaN; fmax and fmin prefer the number.
template <class T> constexpr T maximum(T a, T b) { return a > b || a != a ? a : b; }
template <class T> constexpr T minimum(T a, T b) { return a < b || a != a ? a : b; }
template <class T> constexpr T fmax(T a, T b) { return a >= b || b != b ? a : b; }
template <class T> constexpr T fmin(T a, T b) { return a <= b || b != b ? a : b; }

template <std::floating_point T> T sigmoid(T x) { return 1 / (1 + std::exp(-x)); }

/// log(exp(a) + exp(b)) without overflow; equal infinities are kept.
template <std::floating_point T> T logaddexp(T a, T b) {
  if (a == b) return a + T(0.69314718055994530942);
  return maximum(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}
template <std::floating_point T> T logaddexp2(T a, T b) {
  if (a == b) return a + 1;
  const T tail = std::log1p(std::exp2(-std::abs(a - b)));
  return maximum(a, b) + tail * T(1.44269504088896340736);
}

/// Rounds half to even at a decimal place.
template <std::floating_point T> T round(T x, double decimals) {
  if (decimals == 0) return std::nearbyint(x);
  const T ten = static_cast<T>(std::pow(10.0, std::abs(decimals)));
  return decimals > 0 ? std::nearbyint(x * ten) / ten : std::nearbyint(x / ten) * ten;
}

/// Replaces NaN and infinities; a NaN for posinf or neginf stands for the limits of T.
template <std::floating_point T> T nan_to_num(T x, double nan, double posinf, double neginf) {
  constexpr T limit = std::numeric_limits<T>::max();
  if (x != x) return static_cast<T>(nan);
  if (x > limit) return posinf != posinf ? limit : static_cast<T>(posinf);
  if (x < -limit) return neginf != neginf ? -limit : static_cast<T>(neginf);
  return x;
}

}  // namespace cresset::scalar
