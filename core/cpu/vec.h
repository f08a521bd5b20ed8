// Vec<T> and Mask<T>: float and double SIMD vectors with the operators and maths of the rows.
//
// For use in a kernel file that Highway compiles once per target:
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "core/cpu/softmax.cpp"
//   #include <hwy/foreach_target.h>
//   #include <hwy/highway.h>
//   #include "core/cpu/vec.h"
//   HWY_BEFORE_NAMESPACE();
//   namespace cresset::HWY_NAMESPACE { using V = Vec<float>; ... V::load(p), store(v, p), exp(v) }
//   HWY_AFTER_NAMESPACE();
//
// Functions that call these must live between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE, and
// lambdas need HWY_ATTR. V::width is the number of lanes; loads and stores need no alignment.

#if defined(CRESSET_CPU_VEC_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CRESSET_CPU_VEC_H_
#undef CRESSET_CPU_VEC_H_
#else
#define CRESSET_CPU_VEC_H_
#endif

#include <hwy/highway.h>

#include "core/base/num.h"
#include "core/cpu/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T> struct Vec;

#define VEC_FN friend HWY_INLINE

/// One truth value per lane.
template <class T> struct Mask {
  using D = hn::ScalableTag<T>;
  hn::Mask<D> m;

  VEC_FN Mask logical_and(Mask a, Mask b) { return {hn::And(a.m, b.m)}; }
  VEC_FN Mask logical_or(Mask a, Mask b) { return {hn::Or(a.m, b.m)}; }
  VEC_FN Mask logical_xor(Mask a, Mask b) { return {hn::Xor(a.m, b.m)}; }
  VEC_FN Mask logical_not(Mask a) { return {hn::Not(a.m)}; }
  VEC_FN Vec<T> select(Mask c, Vec<T> a, Vec<T> b) { return hn::IfThenElse(c.m, a.v, b.v); }
  VEC_FN void store(Mask c, T* p) {
    hn::StoreU(hn::IfThenElseZero(c.m, hn::Set(D(), T(1))), D(), p);
  }
  VEC_FN bool any(Mask c) { return !hn::AllFalse(D(), c.m); }
};

/// Calls a scalar function of floats or doubles lane by lane.
template <class F, class T> HWY_INLINE Vec<T> map_lanes(F* f, Vec<T> x) {
  T lanes[Vec<T>::width];
  store(x, lanes);
  lanes::map(f, lanes, Vec<T>::width);
  return Vec<T>::load(lanes);
}
template <class F, class T> HWY_INLINE Vec<T> map_lanes(F* f, Vec<T> x, Vec<T> y) {
  T lanes[Vec<T>::width], others[Vec<T>::width];
  store(x, lanes);
  store(y, others);
  lanes::map(f, lanes, others, Vec<T>::width);
  return Vec<T>::load(lanes);
}

/// A full vector of T.
template <class T> struct Vec {
  using Element = T;
  using D = hn::ScalableTag<T>;
  using Raw = hn::Vec<D>;
  using M = Mask<T>;
  static constexpr int width = static_cast<int>(HWY_LANES(T));
  static constexpr bool single = sizeof(T) == 4;
  Raw v;

  HWY_INLINE Vec() = default;
  HWY_INLINE Vec(Raw raw) : v(raw) {}
  HWY_INLINE Vec(double x) : v(hn::Set(D(), static_cast<T>(x))) {}
  static HWY_INLINE Vec load(const T* p) { return hn::LoadU(D(), p); }

  VEC_FN void store(Vec x, T* p) { hn::StoreU(x.v, D(), p); }
  VEC_FN Vec conj(Vec x) { return x; }
  VEC_FN Vec imaginary_unit(Vec) { return 0; }

  VEC_FN Vec operator-(Vec x) { return hn::Neg(x.v); }
  VEC_FN Vec operator+(Vec a, Vec b) { return hn::Add(a.v, b.v); }
  VEC_FN Vec operator-(Vec a, Vec b) { return hn::Sub(a.v, b.v); }
  VEC_FN Vec operator*(Vec a, Vec b) { return hn::Mul(a.v, b.v); }
  VEC_FN Vec operator/(Vec a, Vec b) { return hn::Div(a.v, b.v); }
  VEC_FN M operator==(Vec a, Vec b) { return {hn::Eq(a.v, b.v)}; }
  // Highway's Ne is ordered on AVX; NaN must differ from everything.
  VEC_FN M operator!=(Vec a, Vec b) { return {hn::Not(hn::Eq(a.v, b.v))}; }
  VEC_FN M operator<(Vec a, Vec b) { return {hn::Lt(a.v, b.v)}; }
  VEC_FN M operator<=(Vec a, Vec b) { return {hn::Le(a.v, b.v)}; }
  VEC_FN M operator>(Vec a, Vec b) { return {hn::Gt(a.v, b.v)}; }
  VEC_FN M operator>=(Vec a, Vec b) { return {hn::Ge(a.v, b.v)}; }

  VEC_FN Vec abs(Vec x) { return hn::Abs(x.v); }
  VEC_FN Vec sqrt(Vec x) { return hn::Sqrt(x.v); }
  VEC_FN Vec rsqrt(Vec x) { return 1 / sqrt(x); }
  VEC_FN Vec floor(Vec x) { return hn::Floor(x.v); }
  VEC_FN Vec ceil(Vec x) { return hn::Ceil(x.v); }
  VEC_FN Vec trunc(Vec x) { return hn::Trunc(x.v); }
  VEC_FN Vec round(Vec x) { return hn::Round(x.v); }
  VEC_FN Vec round(Vec x, double decimals) {
    if (decimals == 0) return round(x);
    const Vec ten = std::pow(10.0, std::abs(decimals));
    return decimals > 0 ? round(x * ten) / ten : round(x / ten) * ten;
  }
  VEC_FN Vec sign(Vec x) { return select(x > 0, Vec(1), select(x < 0, Vec(-1), Vec(0))); }
  VEC_FN Vec sgn(Vec x) { return sign(x); }
  VEC_FN Vec angle(Vec x) { return select(x < 0, scalar::pi, select(x == x, Vec(0), x)); }
  VEC_FN Vec copysign(Vec a, Vec b) { return hn::CopySign(a.v, b.v); }
  /// a with its sign flipped where b is negative.
  VEC_FN Vec flip_sign(Vec a, Vec b) { return hn::Xor(a.v, hn::And(b.v, hn::SignBit(D()))); }
  /// a b + c, fused where the target can.
  VEC_FN Vec mul_add(Vec a, Vec b, Vec c) { return hn::MulAdd(a.v, b.v, c.v); }

  // Maximum and minimum propagate NaN; fmax and fmin prefer the number.
  VEC_FN Vec maximum(Vec a, Vec b) { return select(logical_or(a > b, a != a), a, b); }
  VEC_FN Vec minimum(Vec a, Vec b) { return select(logical_or(a < b, a != a), a, b); }
  VEC_FN Vec fmax(Vec a, Vec b) { return select(logical_or(a >= b, b != b), a, b); }
  VEC_FN Vec fmin(Vec a, Vec b) { return select(logical_or(a <= b, b != b), a, b); }

  VEC_FN M isnan(Vec x) { return x != x; }
  VEC_FN M isfinite(Vec x) { return x - x == 0; }
  VEC_FN M isinf(Vec x) { return abs(x) == HUGE_VAL; }
  VEC_FN M isposinf(Vec x) { return x == HUGE_VAL; }
  VEC_FN M isneginf(Vec x) { return x == -HUGE_VAL; }
  VEC_FN M isreal(Vec x) { return logical_or(x == x, x != x); }
  VEC_FN M signbit(Vec x) { return copysign(1, x) < 0; }

  VEC_FN Vec nan_to_num(Vec x, double nan, double posinf, double neginf) {
    constexpr double limit = std::numeric_limits<T>::max();
    x = select(x == HUGE_VAL, posinf != posinf ? limit : posinf, x);
    x = select(x == -HUGE_VAL, neginf != neginf ? -limit : neginf, x);
    return select(x == x, x, nan);
  }
  VEC_FN Vec lerp(Vec a, Vec b, Vec w) {
    return select(abs(w) < 0.5, a + w * (b - a), b - (b - a) * (1 - w));
  }
  VEC_FN Vec log_sigmoid(Vec x) { return minimum(x, 0) - log1p(exp(-abs(x))); }
  VEC_FN Vec xlogy(Vec a, Vec b) { return select(a == 0, select(b == b, Vec(0), b), a * log(b)); }
  VEC_FN Vec special_xlog1py(Vec a, Vec b) {
    return select(a == 0, select(b == b, Vec(0), b), a * log1p(b));
  }
  VEC_FN Vec trunc_divide(Vec a, Vec b) { return trunc(a / b); }
  VEC_FN Vec nextafter(Vec a, Vec b) {
    return map_lanes(
        +[](T x, T y) { return std::nextafter(x, y); }, a, b);
  }

#define SPECIAL1(name) \
  VEC_FN Vec name(Vec x) { return map_lanes(&scalar::name, x); }
#define SPECIAL2(name) \
  VEC_FN Vec name(Vec a, Vec b) { return map_lanes(&scalar::name, a, b); }
#include "core/base/special.def"
};

#undef VEC_FN

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#include "core/cpu/vec_math.h"
#include "core/cpu/vec_trig.h"

#endif  // include guard per target
