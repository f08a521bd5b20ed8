// Own float and double matrix-vector product: SIMD along contiguous rows or contiguous columns.
#include <algorithm>
#include <cstdint>

#include "core/cpu/gemm_piece.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/gemv_own.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T> void store_result(const GemvPiece<T>& g, int64_t i, T sum) {
  T& y = g.y[i * g.y_stride];
  y = g.beta == T(0) ? g.alpha * sum : g.alpha * sum + g.beta * y;
}

/// kR rows times x; each row has two running sums so that additions overlap.
template <int kR, class T> void dot_rows(const GemvPiece<T>& g, int64_t first) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  const T* a = g.a + first * g.a_row;
  V even[kR], odd[kR];
  HWY_UNROLL(4)
  for (int r = 0; r < kR; ++r) even[r] = odd[r] = hn::Zero(d);
  int64_t p = 0;
  for (; p + 2 * kLanes <= g.k; p += 2 * kLanes) {
    const V x0 = hn::LoadU(d, g.x + p), x1 = hn::LoadU(d, g.x + p + kLanes);
    HWY_UNROLL(4)
    for (int r = 0; r < kR; ++r) {
      even[r] = hn::MulAdd(hn::LoadU(d, a + r * g.a_row + p), x0, even[r]);
      odd[r] = hn::MulAdd(hn::LoadU(d, a + r * g.a_row + p + kLanes), x1, odd[r]);
    }
  }
  HWY_UNROLL(4)
  for (int r = 0; r < kR; ++r) {
    T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(even[r], odd[r])));
    for (int64_t q = p; q < g.k; ++q) sum += a[r * g.a_row + q] * g.x[q];
    store_result(g, first + r, sum);
  }
}

template <class T> void gemv_rows(const GemvPiece<T>& g) {
  int64_t i = 0;
  for (; i + 4 <= g.rows; i += 4) dot_rows<4>(g, i);
  for (; i < g.rows; ++i) dot_rows<1>(g, i);
}

/// sums[0, count) += kC columns of A, each scaled by its element of x.
template <int kC, class T>
void add_columns(const T* HWY_RESTRICT a, int64_t a_col, const T* HWY_RESTRICT x, int64_t count,
                 T* HWY_RESTRICT sums) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr int64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  V scale[kC];
  HWY_UNROLL(8)
  for (int q = 0; q < kC; ++q) scale[q] = hn::Set(d, x[q]);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    V sum = hn::LoadU(d, sums + i);
    HWY_UNROLL(8)
    for (int q = 0; q < kC; ++q) sum = hn::MulAdd(hn::LoadU(d, a + q * a_col + i), scale[q], sum);
    hn::StoreU(sum, d, sums + i);
  }
  for (; i < count; ++i) {
    for (int q = 0; q < kC; ++q) sums[i] += a[q * a_col + i] * x[q];
  }
}

template <class T> void gemv_columns(const GemvPiece<T>& g) {
  constexpr int64_t kBlock = 1024;
  HWY_ALIGN T sums[kBlock];
  for (int64_t i = 0; i < g.rows; i += kBlock) {
    const int64_t count = std::min(kBlock, g.rows - i);
    std::fill_n(sums, count, T(0));
    int64_t p = 0;
    for (; p + 8 <= g.k; p += 8) {
      add_columns<8>(g.a + i + p * g.a_col, g.a_col, g.x + p, count, sums);
    }
    for (; p < g.k; ++p) add_columns<1>(g.a + i + p * g.a_col, g.a_col, g.x + p, count, sums);
    for (int64_t j = 0; j < count; ++j) store_result(g, i + j, sums[j]);
  }
}

template <class T> void run_gemv(const GemvPiece<T>& g) {
  g.a_col == 1 ? gemv_rows(g) : gemv_columns(g);
}
void run_gemv_f32(const GemvPiece<float>& g) { run_gemv(g); }
void run_gemv_f64(const GemvPiece<double>& g) { run_gemv(g); }

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cresset {

HWY_EXPORT(run_gemv_f32);
HWY_EXPORT(run_gemv_f64);

void run_gemv_piece(const GemvPiece<float>& piece) { HWY_DYNAMIC_DISPATCH(run_gemv_f32)(piece); }
void run_gemv_piece(const GemvPiece<double>& piece) { HWY_DYNAMIC_DISPATCH(run_gemv_f64)(piece); }

}  // namespace cresset
#endif
