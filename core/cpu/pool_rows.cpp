// SIMD pooling of whole output rows for every target.
#include "core/cpu/pool_rows.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/cpu/pool_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef CRESSET_POOL_ROWS_ONCE
#define CRESSET_POOL_ROWS_ONCE
namespace cresset {

/// Outputs computed at a time, and elements of the split input row that stand for them.
inline constexpr int64_t kPoolChunk = 128;
inline constexpr int64_t kPoolRoom = 2048;
/// Upper bound of a vector's lanes, which may be read or computed beyond the outputs needed.
inline constexpr int64_t kPoolSlack = 64;

/// Elements per phase that `count` outputs read.
inline int64_t phase_length(const PoolShape& s, int64_t count) {
  return count + (s.kw - 1) * s.dil_w / s.stride_w + 1;
}

/// What padding counts as: never chosen by a maximum, nothing in a sum.
template <class T>
constexpr T lowest_value() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}

}  // namespace cresset
#endif

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Splits the input columns under the outputs from `first` on by their remainder modulo the
/// stride: phases[q * pitch + i] = row[(first + i) * stride - pad + q], or `padding` outside.
/// Every tap of the window then reads neighbours.
template <class T>
void split_row(const PoolShape& s, const T* HWY_RESTRICT row, int64_t first, int64_t pitch,
               T padding, T* HWY_RESTRICT phases) {
  const hn::ScalableTag<T> d;
  const int64_t step = s.stride_w, lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t q = 0; q < step; ++q) {
    const int64_t at = first * step - s.pad_w + q;
    const int64_t lo = at >= 0 ? 0 : std::min(pitch, (-at + step - 1) / step);
    const int64_t hi = at >= s.w ? lo : std::clamp((s.w - 1 - at) / step + 1, lo, pitch);
    T* to = phases + q * pitch;
    std::fill_n(to, lo, padding);
    int64_t i = lo;
    if (step == 1) {
      std::copy(row + at + lo, row + at + hi, to + lo);
      i = hi;
    } else if (step == 2) {
      // The odd half of the last vector may lie behind the row: stop one output early.
      for (; i + lanes < hi; i += lanes) {
        hn::Vec<decltype(d)> even, odd;
        hn::LoadInterleaved2(d, row + at + 2 * i, even, odd);
        hn::StoreU(even, d, to + i);
      }
    }
    for (; i < hi; ++i) to[i] = row[at + i * step];
    std::fill(to + hi, to + pitch, padding);
  }
}

/// Rows of the input that the windows of output row `i` cover: begin, begin + dil_h, ... < end.
struct RowRange {
  int64_t begin, end;
};
inline RowRange rows_of(const PoolShape& s, int64_t i) {
  const int64_t top = i * s.stride_h - s.pad_h;
  const int64_t skipped = top < 0 ? (-top + s.dil_h - 1) / s.dil_h : 0;
  return {top + skipped * s.dil_h, std::min(s.h, top + (s.kh - 1) * s.dil_h + 1)};
}

/// Running maxima of a chunk of outputs and where they were found.
template <class T>
struct Maxima {
  HWY_ALIGN T best[kPoolChunk + kPoolSlack];
  HWY_ALIGN hwy::MakeSigned<T> index[kPoolChunk + kPoolSlack];
};

template <class T>
void take_row(const PoolShape& s, const T* HWY_RESTRICT phases, int64_t pitch, int64_t count,
              int64_t origin, Maxima<T>& m) {
  using I = hwy::MakeSigned<T>;
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto jump = hn::Set(di, static_cast<I>(s.stride_w * lanes));
  HWY_ALIGN I multiples[kPoolSlack];
  for (int64_t l = 0; l < lanes; ++l) multiples[l] = static_cast<I>(l * s.stride_w);
  const auto ramp = hn::Load(di, multiples);
  for (int64_t tap = 0; tap < s.kw; ++tap) {
    const int64_t column = tap * s.dil_w;
    const T* from = phases + column % s.stride_w * pitch + column / s.stride_w;
    auto index = hn::Add(ramp, hn::Set(di, static_cast<I>(origin + column)));
    for (int64_t j = 0; j < count; j += lanes) {
      const auto value = hn::LoadU(d, from + j);
      const auto best = hn::Load(d, m.best + j);
      auto taken = hn::Gt(value, best);
      if constexpr (std::is_floating_point_v<T>) taken = hn::Or(taken, hn::IsNaN(value));
      hn::Store(hn::IfThenElse(taken, value, best), d, m.best + j);
      const auto old = hn::Load(di, m.index + j);
      hn::Store(hn::IfThenElse(hn::RebindMask(di, taken), index, old), di, m.index + j);
      index = hn::Add(index, jump);
    }
  }
}

template <class T>
void max_plane(const PoolShape& s, const T* x, T* y, int64_t* indices) {
  const int64_t longest = phase_length(s, std::min(s.ow, kPoolChunk)) + kPoolSlack;
  HWY_ALIGN T phases[kPoolRoom];
  Maxima<T> m;
  for (int64_t i = 0; i < s.oh; ++i) {
    const RowRange rows = rows_of(s, i);
    for (int64_t j0 = 0; j0 < s.ow; j0 += kPoolChunk) {
      const int64_t count = std::min(kPoolChunk, s.ow - j0), left = j0 * s.stride_w - s.pad_w;
      std::fill_n(m.best, count + kPoolSlack, lowest_value<T>());
      for (int64_t j = 0; j < count; ++j) {
        const int64_t at = left + j * s.stride_w;
        const int64_t skipped = at < 0 ? (-at + s.dil_w - 1) / s.dil_w : 0;
        m.index[j] = static_cast<hwy::MakeSigned<T>>(rows.begin * s.w + at + skipped * s.dil_w);
      }
      for (int64_t r = rows.begin; r < rows.end; r += s.dil_h) {
        split_row(s, x + r * s.w, j0, longest, lowest_value<T>(), phases);
        take_row(s, phases, longest, count, r * s.w + left, m);
      }
      std::copy_n(m.best, count, y + i * s.ow + j0);
      std::copy_n(m.index, count, indices + i * s.ow + j0);
    }
  }
}

template <class T>
void sum_plane(const PoolShape& s, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t longest = phase_length(s, std::min(s.ow, kPoolChunk)) + kPoolSlack;
  HWY_ALIGN T phases[kPoolRoom];
  HWY_ALIGN T sums[kPoolChunk + kPoolSlack];
  for (int64_t i = 0; i < s.oh; ++i) {
    const RowRange rows = rows_of(s, i);
    for (int64_t j0 = 0; j0 < s.ow; j0 += kPoolChunk) {
      const int64_t count = std::min(kPoolChunk, s.ow - j0);
      std::fill_n(sums, count + kPoolSlack, T(0));
      for (int64_t r = rows.begin; r < rows.end; r += s.dil_h) {
        split_row(s, x + r * s.w, j0, longest, T(0), phases);
        for (int64_t tap = 0; tap < s.kw; ++tap) {
          const int64_t column = tap * s.dil_w;
          const T* from = phases + column % s.stride_w * longest + column / s.stride_w;
          for (int64_t j = 0; j < count; j += lanes) {
            hn::Store(hn::Add(hn::Load(d, sums + j), hn::LoadU(d, from + j)), d, sums + j);
          }
        }
      }
      std::copy_n(sums, count, y + i * s.ow + j0);
    }
  }
}

#define CRESSET_POOL_ROWS(NAME, T)                                                     \
  void max_plane_##NAME(const PoolShape& s, const T* x, T* y, int64_t* indices) {      \
    max_plane(s, x, y, indices);                                                       \
  }                                                                                    \
  void sum_plane_##NAME(const PoolShape& s, const T* x, T* y) { sum_plane(s, x, y); }
CRESSET_POOL_ROWS(f32, float)
CRESSET_POOL_ROWS(f64, double)
CRESSET_POOL_ROWS(i64, int64_t)
#undef CRESSET_POOL_ROWS

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cresset {

#define CRESSET_POOL_ROWS(NAME, T)                                                      \
  HWY_EXPORT(max_plane_##NAME);                                                         \
  HWY_EXPORT(sum_plane_##NAME);                                                         \
  void max_pool_plane(const PoolShape& s, const T* x, T* y, int64_t* indices) {         \
    HWY_DYNAMIC_DISPATCH(max_plane_##NAME)(s, x, y, indices);                           \
  }                                                                                     \
  void sum_pool_plane(const PoolShape& s, const T* x, T* y) {                           \
    HWY_DYNAMIC_DISPATCH(sum_plane_##NAME)(s, x, y);                                    \
  }
CRESSET_POOL_ROWS(f32, float)
CRESSET_POOL_ROWS(f64, double)
CRESSET_POOL_ROWS(i64, int64_t)
#undef CRESSET_POOL_ROWS

bool pool_rows_fit(const PoolShape& s) {
  const int64_t pitch = phase_length(s, std::min(s.ow, kPoolChunk)) + kPoolSlack;
  // float keeps indices in 32 bits, and a few outputs per row would leave most lanes idle.
  return s.ow >= 4 && pitch * s.stride_w <= kPoolRoom &&
         s.h * s.w + s.stride_w * (kPoolChunk + kPoolSlack) < std::numeric_limits<int32_t>::max();
}

}  // namespace cresset
#endif
