// Elementary functions of Vec<T>, right over the whole range of the type; included by vec.h.

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {

#define VEC_FN template <class T> HWY_INLINE

VEC_FN Vec<T> abs(Vec<T> x) { return hn::Abs(x.v); }
VEC_FN Vec<T> copysign(Vec<T> x, Vec<T> s) { return hn::CopySign(x.v, s.v); }
VEC_FN Vec<T> mul_add(Vec<T> a, Vec<T> b, Vec<T> c) { return hn::MulAdd(a.v, b.v, c.v); }

/// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule.
template <class T, size_t n>
HWY_INLINE Vec<T> polynomial(Vec<T> x, const double (&c)[n]) {
  Vec<T> sum = c[n - 1];
  for (size_t i = n - 1; i-- > 0;) sum = mul_add(sum, x, Vec<T>(c[i]));
  return sum;
}

/// Calls a scalar function lane by lane.
template <class T>
HWY_INLINE Vec<T> map_lanes(T (*f)(T), Vec<T> x) {
  T lanes[Vec<T>::width];
  store(x, lanes);
  for (T& lane : lanes) lane = f(lane);
  return Vec<T>::load(lanes);
}

/// 2^n for integral n in the range of normal exponents.
VEC_FN Vec<T> power_of_two(Vec<T> n) {
  constexpr int mantissa = sizeof(T) == 4 ? 23 : 52;
  constexpr int bias = sizeof(T) == 4 ? 127 : 1023;
  const hn::RebindToSigned<typename Vec<T>::D> di;
  const auto bits = hn::Add(hn::ConvertTo(di, n.v), hn::Set(di, bias));
  return hn::BitCast(typename Vec<T>::D(), hn::ShiftLeft<mantissa>(bits));
}

inline constexpr double inverse_factorials[] = {
    1.0,           1.0,            1.0 / 2,         1.0 / 6,          1.0 / 24,
    1.0 / 120,     1.0 / 720,      1.0 / 5040,      1.0 / 40320,      1.0 / 362880,
    1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.};

/// x = n ln 2 + r with |r| <= ln 2 / 2; returns r and sets n.
VEC_FN Vec<T> reduce_by_ln2(Vec<T> x, Vec<T>& n) {
  // The high parts have enough trailing zeros that n times them is exact.
  constexpr double high = sizeof(T) == 4 ? 0.693359375 : 0x1.62e42fee00000p-1;
  constexpr double low = sizeof(T) == 4 ? -2.12194440054690583e-4 : 1.90821492927058770002e-10;
  n = hn::Round((x * 1.44269504088896340736).v);
  return mul_add(n, Vec<T>(-low), mul_add(n, Vec<T>(-high), x));
}

/// (exp(r) - 1 - r) / r^2 on |r| <= ln 2 / 2, a Taylor polynomial.
VEC_FN Vec<T> exp_tail(Vec<T> r) {
  constexpr size_t terms = sizeof(T) == 4 ? 6 : 12;
  Vec<T> sum = inverse_factorials[terms + 1];
  for (size_t i = terms; i-- > 1;) sum = mul_add(sum, r, Vec<T>(inverse_factorials[i + 1]));
  return sum;
}

VEC_FN Vec<T> exp(Vec<T> x) {
  // Beyond these the result is 0 or inf, also after the two-step scaling below.
  constexpr double lowest = sizeof(T) == 4 ? -105.0 : -746.0;
  constexpr double highest = sizeof(T) == 4 ? 89.0 : 710.0;
  const Vec<T> clamped = hn::Min(hn::Max(x.v, Vec<T>(lowest).v), Vec<T>(highest).v);
  Vec<T> n;
  const Vec<T> r = reduce_by_ln2(clamped, n);
  const Vec<T> p = mul_add(exp_tail(r), r * r, r) + 1;
  const Vec<T> half = hn::Floor((n * 0.5).v);
  const Vec<T> y = p * power_of_two(half) * power_of_two(n - half);
  return select(x == x, y, x);
}

VEC_FN Vec<T> expm1(Vec<T> x) {
  constexpr double lowest = sizeof(T) == 4 ? -20.0 : -40.0;
  constexpr double highest = sizeof(T) == 4 ? 89.0 : 710.0;
  const Vec<T> clamped = hn::Min(hn::Max(x.v, Vec<T>(lowest).v), Vec<T>(highest).v);
  Vec<T> n;
  const Vec<T> r = reduce_by_ln2(clamped, n);
  const Vec<T> p = mul_add(exp_tail(r), r * r, r);
  // Half of the scale keeps 2^n finite at the top of the range.
  const Vec<T> s = power_of_two(n - 1);
  const Vec<T> y = mul_add(s, p, s - 0.5) * 2;
  return select(abs(x) > 0x1p-60, select(x == x, y, x), x);
}

VEC_FN Vec<T> log(Vec<T> x) {
  constexpr bool single = sizeof(T) == 4;
  constexpr int mantissa = single ? 23 : 52;
  constexpr double tiny = single ? 0x1p-126 : 0x1p-1022;
  constexpr double grow = single ? 0x1p25 : 0x1p54;
  const typename Vec<T>::D d;
  const hn::RebindToSigned<typename Vec<T>::D> di;
  const Mask<T> subnormal = x < tiny;
  const Vec<T> scaled = select(subnormal, x * grow, x);
  // m in [sqrt(1/2), sqrt(2)): take sqrt(1/2) off the bits, so the exponent rounds at sqrt(2).
  const auto offset = hn::BitCast(di, Vec<T>(0.70710678118654752440).v);
  const auto bits = hn::Sub(hn::BitCast(di, scaled.v), offset);
  const auto exponent = hn::ShiftRight<mantissa>(bits);
  const Vec<T> m = hn::BitCast(d, hn::Sub(hn::BitCast(di, scaled.v),
                                          hn::ShiftLeft<mantissa>(exponent)));
  const Vec<T> e = Vec<T>(hn::ConvertTo(d, exponent)) -
                   select(subnormal, Vec<T>(single ? 25 : 54), Vec<T>(0));
  // log(1 + f) = f - f^2/2 + s (f^2/2 + tail), s = f / (2 + f), by the series of atanh.
  const Vec<T> f = m - 1;
  const Vec<T> s = f / (f + 2);
  const Vec<T> z = s * s;
  constexpr int terms = single ? 5 : 11;
  Vec<T> tail = 2.0 / (2 * terms + 1);
  for (int k = terms - 1; k >= 1; --k) tail = mul_add(tail, z, Vec<T>(2.0 / (2 * k + 1)));
  const Vec<T> half_square = f * f * 0.5;
  constexpr double high = single ? 0.693359375 : 0x1.62e42fee00000p-1;
  constexpr double low = single ? -2.12194440054690583e-4 : 1.90821492927058770002e-10;
  const Vec<T> inner = mul_add(s, mul_add(tail, z, half_square), e * low);
  const Vec<T> y = e * high - ((half_square - inner) - f);
  const Vec<T> inf = HUGE_VAL;
  const Vec<T> special = select(x == 0, -inf, select(x == inf, inf, Vec<T>(NAN)));
  return select(logical_and(x > 0, x < inf), y, special);
}

VEC_FN Vec<T> tanh(Vec<T> x) {
  const Vec<T> a = abs(x);
  const Vec<T> t = expm1(Vec<T>(hn::Min(a.v, Vec<T>(20).v)) * 2);
  return select(x == x, copysign(t / (t + 2), x), x);
}

VEC_FN Vec<T> sigmoid(Vec<T> x) { return 1 / (1 + exp(-x)); }

VEC_FN Vec<T> erf(Vec<T> x) {
  return map_lanes<T>([](T v) -> T { return std::erf(v); }, x);
}

#undef VEC_FN

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();
