// Exponentials, logarithms, powers and error functions of Vec<T>; included by vec.h.
//
// Each is right over the whole range of the type: NaN, infinities, subnormal numbers. Errors are
// within 2 units in the last place, 4 for those composed of others. The polynomials without a
// source are Chebyshev fits on the stated interval.

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {

#define VEC_FN template <class T> HWY_INLINE

/// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule.
template <class T, size_t n> HWY_INLINE Vec<T> polynomial(Vec<T> x, const double (&c)[n]) {
  Vec<T> sum = c[n - 1];
  for (size_t i = n - 1; i-- > 0;) sum = mul_add(sum, x, Vec<T>(c[i]));
  return sum;
}

/// A polynomial whose coefficients differ for float and double.
template <class T, size_t n, size_t m>
HWY_INLINE Vec<T> polynomial(Vec<T> x, const double (&single)[n], const double (&full)[m]) {
  if constexpr (sizeof(T) == 4)
    return polynomial(x, single);
  else
    return polynomial(x, full);
}

/// 2^n for integral n in the range of normal exponents.
VEC_FN Vec<T> power_of_two(Vec<T> n) {
  constexpr int mantissa = Vec<T>::single ? 23 : 52;
  constexpr int bias = Vec<T>::single ? 127 : 1023;
  const hn::RebindToSigned<typename Vec<T>::D> di;
  const auto bits = hn::Add(hn::ConvertTo(di, n.v), hn::Set(di, bias));
  return hn::BitCast(typename Vec<T>::D(), hn::ShiftLeft<mantissa>(bits));
}

/// p 2^n for any n that leaves p 2^(n/2) normal: in two steps, so that only the last one rounds.
VEC_FN Vec<T> scale_by_power(Vec<T> p, Vec<T> n) {
  const Vec<T> half = floor(n * 0.5);
  return p * power_of_two(half) * power_of_two(n - half);
}

/// x clamped to [low, high], for finite bounds; NaN becomes either.
VEC_FN Vec<T> clamp_number(Vec<T> x, double low, double high) {
  return hn::Min(hn::Max(x.v, Vec<T>(low).v), Vec<T>(high).v);
}

// ln 2 in two parts; the first has enough trailing zeros that small integers times it are exact.
template <class T>
inline constexpr double ln2_high = sizeof(T) == 4 ? 0.693359375 : 0x1.62e42fee00000p-1;
template <class T>
inline constexpr double ln2_low = sizeof(T) == 4 ? -2.12194440054690583e-4
                                                 : 1.90821492927058770002e-10;

/// x = n ln 2 + r with |r| <= ln 2 / 2; returns r and sets n.
VEC_FN Vec<T> reduce_by_ln2(Vec<T> x, Vec<T>& n) {
  n = round(x * 1.44269504088896340736);
  return mul_add(n, Vec<T>(-ln2_low<T>), mul_add(n, Vec<T>(-ln2_high<T>), x));
}

/// exp(r) - 1 on |r| <= ln 2 / 2 and a little beyond: its Taylor series.
VEC_FN Vec<T> expm1_reduced(Vec<T> r) {
  constexpr double single[] = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040};
  constexpr double full[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                             1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                             1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  return mul_add(polynomial(r, single, full), r * r, r);
}

/// exp(x + low) 2^shift, for low much smaller than 1.
VEC_FN Vec<T> exp_scaled(Vec<T> x, Vec<T> low, double shift) {
  // Beyond these the result is 0 or inf, also for the shifts in use.
  constexpr double lowest = Vec<T>::single ? -105 : -746;
  constexpr double highest = Vec<T>::single ? 90 : 711;
  Vec<T> n;
  const Vec<T> r = reduce_by_ln2(clamp_number(x, lowest, highest), n) + low;
  const Vec<T> y = scale_by_power(expm1_reduced(r) + 1, n + shift);
  return select(x == x, y, x);
}

VEC_FN Vec<T> exp(Vec<T> x) { return exp_scaled(x, Vec<T>(0), 0); }

VEC_FN Vec<T> exp2(Vec<T> x) {
  constexpr double lowest = Vec<T>::single ? -152 : -1077;
  constexpr double highest = Vec<T>::single ? 130 : 1026;
  const Vec<T> clamped = clamp_number(x, lowest, highest);
  const Vec<T> n = round(clamped);
  const Vec<T> p = expm1_reduced((clamped - n) * 0.69314718055994530942) + 1;
  return select(x == x, scale_by_power(p, n), x);
}

VEC_FN Vec<T> expm1(Vec<T> x) {
  constexpr double lowest = Vec<T>::single ? -20 : -40;
  constexpr double highest = Vec<T>::single ? 89 : 710;
  Vec<T> n;
  const Vec<T> p = expm1_reduced(reduce_by_ln2(clamp_number(x, lowest, highest), n));
  // Half of the scale keeps 2^n finite at the top of the range.
  const Vec<T> s = power_of_two(n - 1);
  const Vec<T> y = mul_add(s, p, s - 0.5) * 2;
  return select(abs(x) > 0x1p-60, y, x);
}

/// A positive finite number as m 2^e with m in [sqrt(1/2), sqrt(2)); returns m and sets e.
VEC_FN Vec<T> split_exponent(Vec<T> x, Vec<T>& e) {
  constexpr int mantissa = Vec<T>::single ? 23 : 52;
  constexpr double tiny = Vec<T>::single ? 0x1p-126 : 0x1p-1022;
  constexpr int grow = Vec<T>::single ? 25 : 54;
  const typename Vec<T>::D d;
  const hn::RebindToSigned<typename Vec<T>::D> di;
  const Mask<T> subnormal = x < tiny;
  const auto bits = hn::BitCast(di, select(subnormal, x * double(1ll << grow), x).v);
  // With sqrt(1/2) taken off the bits, the exponent field turns over at sqrt(2).
  const auto offset = hn::BitCast(di, Vec<T>(0.70710678118654752440).v);
  const auto exponent = hn::ShiftRight<mantissa>(hn::Sub(bits, offset));
  e = Vec<T>(hn::ConvertTo(d, exponent)) - select(subnormal, Vec<T>(grow), Vec<T>(0));
  return hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<mantissa>(exponent)));
}

/// log(1 + f) on [sqrt(1/2) - 1, sqrt(2) - 1] as f - (half - inner): half = f^2 / 2, and inner,
/// to which small terms may be added, is s (half + tail(s^2)) with s = f / (2 + f).
VEC_FN Vec<T> log_inner(Vec<T> f, Vec<T>& half) {
  constexpr double single[] = {0.66666685039575855, 0.399887805660219819, 0.295799493919727847};
  constexpr double full[] = {0.666666666666666969, 0.399999999998995045, 0.285714286259754849,
                             0.222222111347950799, 0.181828891252617221, 0.153317216005560413,
                             0.146164496850434059};
  const Vec<T> s = f / (f + 2);
  const Vec<T> z = s * s;
  half = f * f * 0.5;
  return s * mul_add(polynomial(z, single, full), z, half);
}

/// The value `y` of a logarithm for 0 < x < inf, else the limit or NaN.
VEC_FN Vec<T> with_log_edges(Vec<T> x, Vec<T> y) {
  const Vec<T> inf = HUGE_VAL;
  const Vec<T> edge = select(x == 0, -inf, select(x == inf, inf, Vec<T>(NAN)));
  return select(logical_and(x > 0, x < inf), y, edge);
}

VEC_FN Vec<T> log(Vec<T> x) {
  Vec<T> e, half;
  const Vec<T> f = split_exponent(x, e) - 1;
  const Vec<T> inner = log_inner(f, half) + e * ln2_low<T>;
  return with_log_edges(x, mul_add(e, Vec<T>(ln2_high<T>), f - (half - inner)));
}

VEC_FN Vec<T> log2(Vec<T> x) {
  Vec<T> e, half;
  const Vec<T> f = split_exponent(x, e) - 1;
  const Vec<T> inner = log_inner(f, half);
  const Vec<T> y = f - (half - inner);
  return with_log_edges(x, mul_add(y, Vec<T>(1.44269504088896340736), e));
}

VEC_FN Vec<T> log10(Vec<T> x) {
  // log10(2) in two parts, the first exact times an exponent.
  constexpr double high = Vec<T>::single ? 0x1.344p-2 : 0x1.34413509f6000p-2;
  constexpr double low = Vec<T>::single ? 4.6050389811952137e-6 : 3.6942390771589305e-13;
  Vec<T> e, half;
  const Vec<T> f = split_exponent(x, e) - 1;
  const Vec<T> inner = log_inner(f, half);
  const Vec<T> y = f - (half - inner);
  const Vec<T> fraction = mul_add(y, Vec<T>(0.43429448190325182765), e * low);
  return with_log_edges(x, mul_add(e, Vec<T>(high), fraction));
}

VEC_FN Vec<T> log1p(Vec<T> x) {
  const Vec<T> u = x + 1;
  const Vec<T> lost = x - (u - 1);
  return log(u) + select(logical_and(u > 0, u < HUGE_VAL), lost / u, Vec<T>(0));
}

VEC_FN Vec<T> sigmoid(Vec<T> x) { return 1 / (1 + exp(-x)); }

VEC_FN Vec<T> tanh(Vec<T> x) {
  const Vec<T> t = expm1(clamp_number(abs(x), 0, 20) * 2);
  return select(x == x, copysign(t / (t + 2), x), x);
}

/// cosh and sinh share exp(|x|) / 2, which does not overflow before they do.
VEC_FN Vec<T> cosh(Vec<T> x) {
  const Vec<T> e = exp_scaled(abs(x), Vec<T>(0), -1);
  return e + 0.25 / e;
}

VEC_FN Vec<T> sinh(Vec<T> x) {
  constexpr double single[] = {1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880};
  constexpr double full[] = {
      1.0 / 6,        1.0 / 120,        1.0 / 5040,          1.0 / 362880,
      1.0 / 39916800, 1.0 / 6227020800, 1.0 / 1307674368000, 1.0 / 355687428096000};
  const Vec<T> a = abs(x), z = x * x;
  const Vec<T> e = exp_scaled(a, Vec<T>(0), -1);
  const Vec<T> series = mul_add(polynomial(z, single, full) * z, x, x);
  return select(a < 1, series, copysign(e - 0.25 / e, x));
}

VEC_FN Vec<T> asinh(Vec<T> x) {
  const Vec<T> a = abs(x), z = a * a;
  const Vec<T> y = log1p(a + z / (sqrt(z + 1) + 1));
  return copysign(select(a > 0x1p60, log(a) + 0.69314718055994530942, y), x);
}

VEC_FN Vec<T> acosh(Vec<T> x) {
  const Vec<T> t = x - 1;
  const Vec<T> y = log1p(t + sqrt(t * (t + 2)));
  const Vec<T> far = select(x > 0x1p60, log(x) + 0.69314718055994530942, y);
  return select(x < 1, Vec<T>(NAN), far);
}

VEC_FN Vec<T> atanh(Vec<T> x) {
  const Vec<T> a = abs(x);
  return copysign(log1p(2 * a / (1 - a)) * 0.5, x);
}

/// log(exp(a) + exp(b)) without overflow; equal infinities are kept.
template <class T> HWY_INLINE Vec<T> logaddexp(Vec<T> a, Vec<T> b) {
  const Vec<T> y = maximum(a, b) + log1p(exp(-abs(a - b)));
  return select(a == b, a + 0.69314718055994530942, y);
}

template <class T> HWY_INLINE Vec<T> logaddexp2(Vec<T> a, Vec<T> b) {
  const Vec<T> y = maximum(a, b) + log1p(exp2(-abs(a - b))) * 1.44269504088896340736;
  return select(a == b, a + 1, y);
}

VEC_FN Vec<T> hypot(Vec<T> a, Vec<T> b) {
  a = abs(a), b = abs(b);
  const Vec<T> high = maximum(a, b), low = minimum(a, b);
  const Vec<T> r = low / high;
  const Vec<T> y = select(high == 0, high, high * sqrt(r * r + 1));
  return select(logical_or(a == HUGE_VAL, b == HUGE_VAL), Vec<T>(HUGE_VAL), y);
}

/// f of float vectors in double precision, in two halves.
template <class F> HWY_INLINE Vec<float> through_double(F f, Vec<float> a, Vec<float> b) {
  const Vec<float>::D d;
  const hn::Half<Vec<float>::D> dh;
  const Vec<double>::D dd;
  const auto half = [&](auto x, auto y) HWY_ATTR {
    const Vec<double> wide_x = hn::PromoteTo(dd, x), wide_y = hn::PromoteTo(dd, y);
    return hn::DemoteTo(dh, f(wide_x, wide_y).v);
  };
  const auto low = half(hn::LowerHalf(dh, a.v), hn::LowerHalf(dh, b.v));
  const auto high = half(hn::UpperHalf(dh, a.v), hn::UpperHalf(dh, b.v));
  return hn::Combine(d, high, low);
}

/// |a| modulo |b|, exact while the quotient is below 2^28 (or 2^52, where products are fused).
HWY_INLINE Vec<double> modulo(Vec<double> a, Vec<double> b) {
  a = abs(a), b = abs(b);
  Vec<double> r = mul_add(-trunc(a / b), b, a);
  // The rounded quotient may be one off.
  r = select(r < 0, r + b, r);
  r = select(r >= b, r - b, r);
  return select(a < b, a, r);
}

/// The remainder with the sign of a, exact; lanes with a huge quotient send all to the scalar.
HWY_INLINE Vec<float> fmod(Vec<float> a, Vec<float> b) {
  if (HWY_UNLIKELY(any(abs(a / b) > 0x1p28))) return map_lanes(scalar::fmod<float>, a, b);
  const auto f = [](Vec<double> x, Vec<double> y) HWY_ATTR { return modulo(x, y); };
  return copysign(through_double(f, a, b), a);
}

HWY_INLINE Vec<double> fmod(Vec<double> a, Vec<double> b) {
  const Vec<double> limit = HWY_NATIVE_FMA ? 0x1p52 : 0;
  if (HWY_UNLIKELY(any(abs(a / b) > limit))) return map_lanes(scalar::fmod<double>, a, b);
  return copysign(modulo(a, b), a);
}

/// The remainder with the sign of b.
template <class T> HWY_INLINE Vec<T> remainder(Vec<T> a, Vec<T> b) {
  const Vec<T> r = fmod(a, b);
  return select(logical_and(r != 0, logical_xor(r < 0, b < 0)), r + b, r);
}

/// Python's floor division, from the exact remainder as in scalar::floor_divide.
template <class T> HWY_INLINE Vec<T> floor_divide(Vec<T> a, Vec<T> b) {
  const Vec<T> r = fmod(a, b), zero = 0;
  Vec<T> q = (a - r) / b;
  q = select(logical_and(r != 0, logical_xor(r < 0, b < 0)), q - 1, q);
  const Vec<T> floored = floor(q);
  const Vec<T> y = select(q - floored > 0.5, floored + 1, floored);
  return select(b == 0, a / b, select(q == 0, copysign(zero, a / b), y));
}

/// |a|^b, apart from the edges.
HWY_INLINE Vec<double> positive_power(Vec<double> a, Vec<double> b) { return exp(b * log(abs(a))); }

HWY_INLINE Vec<double> pow(Vec<double> a, Vec<double> b) {
  return map_lanes(&scalar::pow<double>, a, b);
}

HWY_INLINE Vec<float> pow(Vec<float> a, Vec<float> b) {
  using V = Vec<float>;
  const auto f = [](Vec<double> x, Vec<double> y) HWY_ATTR { return positive_power(x, y); };
  const V magnitude = through_double(f, a, b);
  const V inf = HUGE_VAL;
  const auto integral = floor(b) == b;
  const auto odd = logical_and(integral, floor(b * 0.5) * 2 != b);
  V y = select(logical_and(a < 0, logical_not(integral)), select(a == -inf, magnitude, V(NAN)),
               magnitude);
  y = select(odd, copysign(y, a), y);
  y = select(logical_and(a == -1, abs(b) == inf), V(1), y);
  return select(logical_or(a == 1, b == 0), V(1), y);
}

/// erf(x) / x on |x| < 1, in z = x^2.
VEC_FN Vec<T> erf_ratio(Vec<T> z) {
  constexpr double single[] = {1.12837912617873727,    -0.376123437753278044,
                               0.112803166525050752,   -0.0267150542322664312,
                               0.00492176202787723099, -0.000564805986550304365};
  constexpr double full[] = {
      1.12837916709551257,     -0.376126389031835404,   0.112837916709450063,
      -0.0268661706432377704,  0.00522397760711642273,  -0.000854832597538969208,
      0.000120552949048397079, -1.49247369074196603e-5, 1.64474247033173624e-6,
      -1.62084838018717059e-7, 1.37200645467776856e-8,  -7.79589882700214224e-10};
  return polynomial(z, single, full);
}

/// erfc(a) for a >= 0.9: exp(-a^2) times a polynomial in (a - 2) / (a + 2), over 1 + 2 a.
VEC_FN Vec<T> erfc_tail(Vec<T> a) {
  constexpr double single[] = {
      1.27697837269030638,    -0.0927635917070789638,  -0.166029136363259523,
      0.164041814504890389,   -0.0542410453254196854,  -0.00792042551370918997,
      0.00878443471944924138, 0.000782558542863241063, -0.00125824051550030048};
  constexpr double full[] = {
      1.27697838155252875,     -0.0927638265857493038,  -0.166030397615302513,
      0.164051280034119925,    -0.054220000991500757,   -0.00803401512349600764,
      0.00872265390628049559,  0.00127134005309305652,  -0.00145681597695381971,
      -0.00045435455425017903, 0.000206408980125476764, 0.00015110751846920383,
      -1.89869030589973403e-6, -3.62863313689864422e-5, -1.19489717427744646e-5,
      1.17150006558292201e-6,  4.42609336546389685e-6,  7.72486313714307955e-6,
      -7.55621510742724208e-6, 1.77365130769007302e-6};
  a = clamp_number(a, 0.9, 28);
  // a^2 = h^2 + (a - h)(a + h) with h^2 exact, as exp magnifies an error of its argument.
  const typename Vec<T>::D d;
  const hn::RebindToUnsigned<typename Vec<T>::D> du;
  const auto keep = hn::Set(du, static_cast<hn::TFromD<decltype(du)>>(
                                    Vec<T>::single ? 0xfffff000u : 0xfffffffff8000000ull));
  const Vec<T> h = hn::BitCast(d, hn::And(hn::BitCast(du, a.v), keep));
  const Vec<T> e = exp_scaled(-h * h, (h - a) * (h + a), 0);
  const Vec<T> t = (a - 2) / (a + 2);
  return e * polynomial(t, single, full) / (1 + 2 * a);
}

VEC_FN Vec<T> erfc(Vec<T> x) {
  const Vec<T> a = abs(x), tail = erfc_tail(a);
  const Vec<T> y = select(a < 1, 1 - x * erf_ratio(x * x), select(x < 0, 2 - tail, tail));
  return select(x == x, y, x);
}

HWY_INLINE Vec<double> erf(Vec<double> x) {
  using V = Vec<double>;
  const V a = abs(x);
  const V y = select(a < 1, x * erf_ratio(x * x), copysign(1 - erfc_tail(a), x));
  return select(x == x, y, x);
}

/// A rational function, fitted for |x| < 3.93. From 3.92 on erf rounds to 1 in float; it must be
/// exactly that, as 1 + erf(x) is multiplied by large x in gelu.
HWY_INLINE Vec<float> erf(Vec<float> x) {
  using V = Vec<float>;
  constexpr double p[] = {1.1283791453778789,    0.1907824674630138,    0.052790112329788884,
                          0.0037795532514798167, 0.0002848077488105372, 2.041985932367036e-06};
  constexpr double q[] = {1.0,
                          0.5024092793531326,
                          0.11425696491008701,
                          0.014997324111283256,
                          0.0011651999572132544,
                          3.800418888397484e-05};
  const V a = clamp_number(x, -3.93, 3.93);
  const V z = a * a;
  const V y = clamp_number(a * polynomial(z, p) / polynomial(z, q), -1, 1);
  const V saturated = select(abs(x) < 3.92, y, copysign(V(1), x));
  return select(x == x, saturated, x);
}

#undef VEC_FN

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();
