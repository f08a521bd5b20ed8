// Trigonometric functions of Vec<T> and their inverses; included by vec.h.

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {

#define VEC_FN template <class T> HWY_INLINE

/// |x| = n pi / 2 + r with |r| <= pi / 4, and n modulo 4.
template <class T> struct Angle { Vec<T> r, quadrant; };

/// Up to this, n times the leading parts of pi / 2 is exact.
template <class T> inline constexpr double angle_limit = sizeof(T) == 4 ? 12000 : 1e6;

/// Cody and Waite's reduction, for |x| up to angle_limit.
VEC_FN Angle<T> reduce_angle(Vec<T> x) {
  // pi / 2 in parts of 11 bits (float) or 33 bits (double), and a rest.
  constexpr double single[] = {-0x1.92p0, -0x1.fb4p-12, -0x1.444p-24, -0x1.68c234c4c6629p-39};
  constexpr double full[] = {-0x1.921fb544p0, -0x1.0b4611a6p-34, -0x1.3198a2e037073p-69};
  const Vec<T> a = abs(x);
  const Vec<T> n = round(a * 0.63661977236758134308);
  Vec<T> r = a;
  if constexpr (Vec<T>::single) {
    for (double part : single) r = mul_add(n, Vec<T>(part), r);
  } else {
    for (double part : full) r = mul_add(n, Vec<T>(part), r);
  }
  return {r, n - floor(n * 0.25) * 4};
}

/// sin(r) on |r| <= pi / 4: its Taylor series.
VEC_FN Vec<T> sin_reduced(Vec<T> r) {
  constexpr double single[] = {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880};
  constexpr double full[] = {
      -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
      -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  const Vec<T> z = r * r;
  return mul_add(polynomial(z, single, full) * z, r, r);
}

/// cos(r) on |r| <= pi / 4: its Taylor series.
VEC_FN Vec<T> cos_reduced(Vec<T> r) {
  constexpr double single[] = {1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800};
  constexpr double full[] = {
      1.0 / 24,        -1.0 / 720,         1.0 / 40320,         -1.0 / 3628800,
      1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
  const Vec<T> z = r * r;
  return mul_add(polynomial(z, single, full), z * z, 1 - 0.5 * z);
}

/// Whether a lane is too large for reduce_angle; the scalar functions serve the whole vector then.
VEC_FN bool any_large_angle(Vec<T> x) { return any(abs(x) > angle_limit<T>); }

VEC_FN Vec<T> sin(Vec<T> x) {
  if (HWY_UNLIKELY(any_large_angle(x))) {
    return map_lanes(
        +[](T v) { return std::sin(v); }, x);
  }
  const auto [r, q] = reduce_angle(x);
  const Vec<T> y = select(logical_or(q == 1, q == 3), cos_reduced(r), sin_reduced(r));
  return flip_sign(select(q >= 2, -y, y), x);
}

VEC_FN Vec<T> cos(Vec<T> x) {
  if (HWY_UNLIKELY(any_large_angle(x))) {
    return map_lanes(
        +[](T v) { return std::cos(v); }, x);
  }
  const auto [r, q] = reduce_angle(x);
  const Vec<T> y = select(logical_or(q == 1, q == 3), sin_reduced(r), cos_reduced(r));
  return select(logical_or(q == 1, q == 2), -y, y);
}

VEC_FN Vec<T> tan(Vec<T> x) {
  if (HWY_UNLIKELY(any_large_angle(x))) {
    return map_lanes(
        +[](T v) { return std::tan(v); }, x);
  }
  const auto [r, q] = reduce_angle(x);
  const Vec<T> s = sin_reduced(r), c = cos_reduced(r);
  const auto odd = logical_or(q == 1, q == 3);
  return flip_sign(select(odd, -c, s) / select(odd, s, c), x);
}

inline constexpr double half_pi = 1.57079632679489661923;
inline constexpr double half_pi_low = 6.12323399573676603587e-17;

/// atan(u) on |u| <= tan(pi / 8); a Chebyshev fit of (atan(u) / u - 1) / u^2.
VEC_FN Vec<T> atan_reduced(Vec<T> u) {
  constexpr double single[] = {-0.333333317611685199, 0.199995404836489634, -0.142639555979846392,
                               0.10743731490791083, -0.0645192820812174876};
  constexpr double full[] = {-0.333333333333333302, 0.199999999999955207,   -0.142857142846665429,
                             0.111111110152563617,  -0.0909090457812390189, 0.0769218319082608656,
                             -0.06664511447381948,  0.0585814891280220988,  -0.0508544973794025986,
                             0.0392316582955871913, -0.019176887119062259};
  const Vec<T> z = u * u;
  return mul_add(polynomial(z, single, full) * z, u, u);
}

/// atan(top / bottom) for non-negative arguments that are not both 0 or infinite.
VEC_FN Vec<T> atan_ratio(Vec<T> top, Vec<T> bottom) {
  const auto steep = top > bottom * 2.41421356237309504880;
  const auto middle = top > bottom * 0.41421356237309504880;
  const Vec<T> u = select(steep, -bottom, select(middle, top - bottom, top)) /
                   select(steep, top, select(middle, top + bottom, bottom));
  const Vec<T> base = select(steep, half_pi, select(middle, Vec<T>(half_pi / 2), Vec<T>(0)));
  const Vec<T> low = select(steep, half_pi_low, select(middle, Vec<T>(half_pi_low / 2), Vec<T>(0)));
  return base + (atan_reduced(u) + low);
}

VEC_FN Vec<T> atan(Vec<T> x) { return copysign(atan_ratio(abs(x), Vec<T>(1)), x); }

template <class T> HWY_INLINE Vec<T> atan2(Vec<T> y, Vec<T> x) {
  const Vec<T> a = abs(y), b = abs(x), high = maximum(a, b);
  // Scaled to 1, sums inside stay finite; 0/0 and inf/inf stand for the angles 0 and pi / 4.
  Vec<T> top = a / high, bottom = b / high;
  top = select(a == HUGE_VAL, Vec<T>(1), select(high == 0, Vec<T>(0), top));
  bottom = select(b == HUGE_VAL, Vec<T>(1), select(high == 0, Vec<T>(1), bottom));
  const Vec<T> angle = atan_ratio(top, bottom);
  const Vec<T> turned = select(signbit(x), half_pi - angle + half_pi, angle);
  return select(logical_and(x == x, y == y), copysign(turned, y), x + y);
}

/// asin(x) on |x| <= 1/2; a Chebyshev fit of (asin(x) / x - 1) / x^2.
VEC_FN Vec<T> asin_reduced(Vec<T> x, Vec<T> z) {
  constexpr double single[] = {0.166666724147953052, 0.0749885507260082111, 0.0450013800699101676,
                               0.0265545422061613284, 0.0380850235610926538};
  constexpr double full[] = {0.166666666666666486,  0.0750000000002076436,  0.0446428571034236434,
                             0.0303819473670984811, 0.0223720476317445104,  0.0173552599557863217,
                             0.0139296529023266332, 0.0118754943826369232,  0.00780294947735331714,
                             0.0160355143491488231, -0.0107490503396978076, 0.0281692180608814129};
  return mul_add(polynomial(z, single, full) * z, x, x);
}

/// asin(x) near 0; near 1, the angle left to pi / 2 halved: asin(sqrt((1 - |x|) / 2)).
VEC_FN Vec<T> asin_core(Vec<T> a, Mask<T> far) {
  const Vec<T> z = select(far, (1 - a) * 0.5, a * a);
  return asin_reduced(select(far, sqrt(z), a), z);
}

VEC_FN Vec<T> asin(Vec<T> x) {
  const Vec<T> a = abs(x);
  const auto far = a > 0.5;
  const Vec<T> y = asin_core(a, far);
  return copysign(select(far, half_pi - 2 * y + half_pi_low, y), x);
}

VEC_FN Vec<T> acos(Vec<T> x) {
  const Vec<T> a = abs(x);
  const auto far = a > 0.5;
  const Vec<T> y = asin_core(a, far);
  const Vec<T> beyond = select(x < 0, 2 * half_pi - 2 * y, 2 * y);
  return select(far, beyond, half_pi - copysign(y, x) + half_pi_low);
}

#undef VEC_FN

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();
