// Highway for WebAssembly with what its release 1.0.3 lacks there: arithmetic on double vectors.
#include_next <hwy/highway.h>

#ifndef CRESSET_WASM_HWY_HIGHWAY_H_
#define CRESSET_WASM_HWY_HIGHWAY_H_

namespace hwy::N_WASM {

// Defined as templates over the lane count, as Highway's own, so that its generic functions
// (Add, Eq, SumOfLanes ...) find them by their argument types.
#define CRESSET_DOUBLES template <size_t N> HWY_INLINE
#define CRESSET_UNARY(name, instruction) \
  CRESSET_DOUBLES Vec128<double, N> name(Vec128<double, N> v) { return {instruction(v.raw)}; }
#define CRESSET_BINARY(name, instruction)                                            \
  CRESSET_DOUBLES Vec128<double, N> name(Vec128<double, N> a, Vec128<double, N> b) { \
    return {instruction(a.raw, b.raw)};                                              \
  }
#define CRESSET_COMPARE(name, instruction)                                            \
  CRESSET_DOUBLES Mask128<double, N> name(Vec128<double, N> a, Vec128<double, N> b) { \
    return {instruction(a.raw, b.raw)};                                               \
  }

CRESSET_DOUBLES Vec128<double, N> Set(Simd<double, N, 0>, double t) {
  return {wasm_f64x2_splat(t)};
}
// Highway's own reads the lane as an integer.
CRESSET_DOUBLES double GetLane(Vec128<double, N> v) { return wasm_f64x2_extract_lane(v.raw, 0); }
CRESSET_UNARY(Abs, wasm_f64x2_abs)
CRESSET_UNARY(Sqrt, wasm_f64x2_sqrt)
CRESSET_UNARY(Floor, wasm_f64x2_floor)
CRESSET_UNARY(Ceil, wasm_f64x2_ceil)
CRESSET_UNARY(Trunc, wasm_f64x2_trunc)
CRESSET_UNARY(Round, wasm_f64x2_nearest)
CRESSET_BINARY(operator+, wasm_f64x2_add)
CRESSET_BINARY(operator-, wasm_f64x2_sub)
CRESSET_BINARY(operator*, wasm_f64x2_mul)
CRESSET_BINARY(operator/, wasm_f64x2_div)
CRESSET_BINARY(Min, wasm_f64x2_min)
CRESSET_BINARY(Max, wasm_f64x2_max)
CRESSET_COMPARE(operator==, wasm_f64x2_eq)
CRESSET_COMPARE(operator!=, wasm_f64x2_ne)
CRESSET_COMPARE(operator<, wasm_f64x2_lt)
CRESSET_COMPARE(operator<=, wasm_f64x2_le)
CRESSET_COMPARE(operator>, wasm_f64x2_gt)
CRESSET_COMPARE(operator>=, wasm_f64x2_ge)

CRESSET_DOUBLES Vec128<double, N> MulAdd(Vec128<double, N> mul, Vec128<double, N> x,
                                         Vec128<double, N> add) {
  return mul * x + add;
}

CRESSET_DOUBLES Vec128<double, N> PromoteTo(Simd<double, N, 0>, Vec128<float, N> v) {
  return {wasm_f64x2_promote_low_f32x4(v.raw)};
}
CRESSET_DOUBLES Vec128<float, N> DemoteTo(Simd<float, N, 0>, Vec128<double, N> v) {
  return {wasm_f32x4_demote_f64x2_zero(v.raw)};
}

// There is no instruction between doubles and 64-bit integers: lane by lane.
CRESSET_DOUBLES Vec128<int64_t, N> ConvertTo(Simd<int64_t, N, 0>, Vec128<double, N> v) {
  const auto low = static_cast<int64_t>(wasm_f64x2_extract_lane(v.raw, 0));
  return {wasm_i64x2_make(low, static_cast<int64_t>(wasm_f64x2_extract_lane(v.raw, 1)))};
}
CRESSET_DOUBLES Vec128<double, N> ConvertTo(Simd<double, N, 0>, Vec128<int64_t, N> v) {
  const auto low = static_cast<double>(wasm_i64x2_extract_lane(v.raw, 0));
  return {wasm_f64x2_make(low, static_cast<double>(wasm_i64x2_extract_lane(v.raw, 1)))};
}

#undef CRESSET_COMPARE
#undef CRESSET_BINARY
#undef CRESSET_UNARY
#undef CRESSET_DOUBLES

}  // namespace hwy::N_WASM

#endif
