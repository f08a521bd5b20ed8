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

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
struct Vec;

#define VEC_FN friend HWY_INLINE

/// One truth value per lane.
template <class T>
struct Mask {
  using D = hn::ScalableTag<T>;
  hn::Mask<D> m;

  VEC_FN Mask logical_and(Mask a, Mask b) { return {hn::And(a.m, b.m)}; }
  VEC_FN Mask logical_or(Mask a, Mask b) { return {hn::Or(a.m, b.m)}; }
  VEC_FN Mask logical_not(Mask a) { return {hn::Not(a.m)}; }
  VEC_FN Vec<T> select(Mask c, Vec<T> a, Vec<T> b) { return hn::IfThenElse(c.m, a.v, b.v); }
  VEC_FN void store(Mask c, T* p) {
    hn::StoreU(hn::IfThenElseZero(c.m, hn::Set(D(), T(1))), D(), p);
  }
};

/// A full vector of T.
template <class T>
struct Vec {
  using Element = T;
  using D = hn::ScalableTag<T>;
  using Raw = hn::Vec<D>;
  using M = Mask<T>;
  static constexpr int width = static_cast<int>(HWY_LANES(T));
  Raw v;

  HWY_INLINE Vec() = default;
  HWY_INLINE Vec(Raw raw) : v(raw) {}
  HWY_INLINE Vec(double x) : v(hn::Set(D(), static_cast<T>(x))) {}
  static HWY_INLINE Vec load(const T* p) { return hn::LoadU(D(), p); }

  VEC_FN void store(Vec x, T* p) { hn::StoreU(x.v, D(), p); }
  VEC_FN Vec conj(Vec x) { return x; }

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
};

#undef VEC_FN

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#include "core/cpu/vec_math.h"

#endif  // include guard per target
