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

/// Outputs computed at a time; a multiple of every vector.
inline constexpr int64_t kPoolChunk = 128;
/// Elements of split input that `kPoolChunk` outputs may need.
inline constexpr int64_t kPoolRoom = 4096;
inline constexpr int64_t kPoolStride = 8;

/// Elements per phase that a chunk of outputs of the shape reads, rounded up to whole vectors.
inline int64_t phase_pitch(const PoolShape& s) {
  const int64_t outputs = std::min((s.ow + 63) / 64 * 64, kPoolChunk);
  return outputs + (s.kw - 1) * s.dil_w / s.stride_w + 1;
}

/// What padding counts as: never chosen by a maximum.
template <class T> constexpr T lowest_value() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}

}  // namespace cresset
#endif

HWY_BEFORE_NAMESPACE();
namespace cresset {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The input rows under one chunk of outputs, split by column modulo the stride so that every tap
/// of the window reads neighbours: phase q holds columns (first + i) * stride - pad + q.
template <class T> class SplitRows {
 public:
  SplitRows(const PoolShape& s, int64_t first, T padding) : s_(s), pitch_(phase_pitch(s)) {
    for (int64_t q = 0; q < s.stride_w; ++q) {
      const int64_t at = first * s.stride_w - s.pad_w + q, step = s.stride_w;
      start_[q] = at;
      lo_[q] = at >= 0 ? 0 : std::min(pitch_, (-at + step - 1) / step);
      hi_[q] = at >= s.w ? lo_[q] : std::clamp((s.w - 1 - at) / step + 1, lo_[q], pitch_);
    }
    std::fill_n(memory_, s.kh * s.stride_w * pitch_, padding);
  }

  /// Loads the columns of one input row into row `slot` of the window.
  void load(int64_t slot, const T* HWY_RESTRICT row) {
    const int64_t step = s_.stride_w;
    T* to = memory_ + slot * step * pitch_;
    if (step == 1) {
      std::copy(row + start_[0] + lo_[0], row + start_[0] + hi_[0], to + lo_[0]);
      return;
    }
    // The phases of stride 2 differ by at most one element: split pairs, then the rest.
    int64_t done = 0;
    if (step == 2) done = split_pairs(row, to);
    for (int64_t q = 0; q < step; ++q) {
      T* phase = to + q * pitch_;
      const T* from = row + start_[q];
      if (done > lo_[q] && lo_[q] < hi_[q]) phase[lo_[q]] = from[lo_[q] * step];
      for (int64_t i = std::max(lo_[q], done); i < hi_[q]; ++i) phase[i] = from[i * step];
    }
  }

  /// Where output 0 of the chunk finds tap `tap` of row `slot`.
  const T* tap(int64_t slot, int64_t tap) const {
    const int64_t column = tap * s_.dil_w;
    return memory_ + (slot * s_.stride_w + column % s_.stride_w) * pitch_ + column / s_.stride_w;
  }

 private:
  /// Splits the elements that both phases have, in small vectors that suit short rows; returns
  /// where it stopped.
  int64_t split_pairs(const T* HWY_RESTRICT row, T* HWY_RESTRICT to) {
    constexpr int64_t kLanes = hn::MaxLanes(hn::CappedTag<T, 16 / sizeof(T)>());
    const hn::CappedTag<T, 16 / sizeof(T)> d;
    int64_t i = std::max(lo_[0], lo_[1]);
    const int64_t end = std::min(hi_[0], hi_[1]);
    for (; i + kLanes <= end; i += kLanes) {
      hn::Vec<decltype(d)> even, odd;
      hn::LoadInterleaved2(d, row + start_[0] + 2 * i, even, odd);
      hn::StoreU(even, d, to + i);
      hn::StoreU(odd, d, to + pitch_ + i);
    }
    return i;
  }

  const PoolShape& s_;
  const int64_t pitch_;
  int64_t start_[kPoolStride], lo_[kPoolStride], hi_[kPoolStride];
  HWY_ALIGN T memory_[kPoolRoom];
};

/// Input rows under output row `i`: begin, begin + dil_h, ... < end.
struct RowRange {
  int64_t begin, end;
};
inline RowRange rows_of(const PoolShape& s, int64_t i) {
  const int64_t top = i * s.stride_h - s.pad_h;
  const int64_t skipped = top < 0 ? (-top + s.dil_h - 1) / s.dil_h : 0;
  return {top + skipped * s.dil_h, std::min(s.h, top + (s.kh - 1) * s.dil_h + 1)};
}

/// Column of the first tap of output `j` that lies inside.
inline int64_t first_column(const PoolShape& s, int64_t j) {
  const int64_t left = j * s.stride_w - s.pad_w;
  return left < 0 ? left + (-left + s.dil_w - 1) / s.dil_w * s.dil_w : left;
}

template <class T> void max_plane(const PoolShape& s, const T* x, T* y, int64_t* indices) {
  using I = hwy::MakeSigned<T>;
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr int64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  HWY_ALIGN I ramp[kLanes];
  for (int64_t l = 0; l < kLanes; ++l) ramp[l] = static_cast<I>(l * s.stride_w);
  HWY_ALIGN T best_of[kPoolChunk];
  HWY_ALIGN I index_of[kPoolChunk];
  for (int64_t j0 = 0; j0 < s.ow; j0 += kPoolChunk) {
    const int64_t count = std::min(kPoolChunk, s.ow - j0), left = j0 * s.stride_w - s.pad_w;
    SplitRows<T> split(s, j0, lowest_value<T>());
    for (int64_t i = 0; i < s.oh; ++i) {
      const RowRange rows = rows_of(s, i);
      int64_t slots = 0;
      for (int64_t r = rows.begin; r < rows.end; r += s.dil_h) split.load(slots++, x + r * s.w);
      for (int64_t j = 0; j < count; j += kLanes) {
        auto best = hn::Set(d, lowest_value<T>());
        auto index = hn::Set(di, I(-1));
        for (int64_t slot = 0; slot < slots; ++slot) {
          const int64_t row = (rows.begin + slot * s.dil_h) * s.w + left + j * s.stride_w;
          for (int64_t tap = 0; tap < s.kw; ++tap) {
            const auto value = hn::LoadU(d, split.tap(slot, tap) + j);
            auto taken = hn::Gt(value, best);
            if constexpr (std::is_floating_point_v<T>) taken = hn::Or(taken, hn::IsNaN(value));
            const auto here =
                hn::Add(hn::Load(di, ramp), hn::Set(di, static_cast<I>(row + tap * s.dil_w)));
            best = hn::IfThenElse(taken, value, best);
            index = hn::IfThenElse(hn::RebindMask(di, taken), here, index);
          }
        }
        hn::Store(best, d, best_of + j);
        hn::Store(index, di, index_of + j);
      }
      std::copy_n(best_of, count, y + i * s.ow + j0);
      int64_t* to = indices + i * s.ow + j0;
      for (int64_t j = 0; j < count; ++j) {
        // Nothing was larger than the lowest value: the first element inside is the maximum.
        const bool none = index_of[j] < 0;
        to[j] = none ? rows.begin * s.w + first_column(s, j0 + j) : index_of[j];
      }
    }
  }
}

/// Elements that the window at `start` along an axis of `size` divides by.
inline int64_t axis_count(int64_t start, int64_t kernel, int64_t size, int64_t pad, bool padded) {
  const int64_t end = std::min(start + kernel, size + pad);
  if (padded) return end - start;
  return std::max<int64_t>(0, std::min(end, size) - std::max<int64_t>(0, start));
}

template <class T>
void avg_plane(const PoolShape& s, const AvgPoolDivisor& divisor, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  const bool padded = divisor.count_include_pad, fixed = divisor.divisor_override != 0;
  HWY_ALIGN T mean_of[kPoolChunk];
  HWY_ALIGN T width_of[kPoolChunk];
  for (int64_t j0 = 0; j0 < s.ow; j0 += kPoolChunk) {
    const int64_t count = std::min(kPoolChunk, s.ow - j0);
    std::fill_n(width_of, kPoolChunk, T(1));
    for (int64_t j = 0; j < count && !fixed; ++j) {
      const int64_t left = (j0 + j) * s.stride_w - s.pad_w;
      // A window of padding alone sums to 0, which any divisor keeps.
      width_of[j] =
          static_cast<T>(std::max<int64_t>(1, axis_count(left, s.kw, s.w, s.pad_w, padded)));
    }
    SplitRows<T> split(s, j0, T(0));
    for (int64_t i = 0; i < s.oh; ++i) {
      const RowRange rows = rows_of(s, i);
      const int64_t top = i * s.stride_h - s.pad_h;
      const int64_t height =
          fixed ? divisor.divisor_override : axis_count(top, s.kh, s.h, s.pad_h, padded);
      const auto high = hn::Set(d, static_cast<T>(fixed ? height : std::max<int64_t>(1, height)));
      int64_t slots = 0;
      for (int64_t r = rows.begin; r < rows.end; r += s.dil_h) split.load(slots++, x + r * s.w);
      for (int64_t j = 0; j < count; j += kLanes) {
        auto sum = hn::Zero(d);
        for (int64_t slot = 0; slot < slots; ++slot) {
          for (int64_t tap = 0; tap < s.kw; ++tap) {
            sum = hn::Add(sum, hn::LoadU(d, split.tap(slot, tap) + j));
          }
        }
        hn::Store(hn::Div(sum, hn::Mul(high, hn::Load(d, width_of + j))), d, mean_of + j);
      }
      std::copy_n(mean_of, count, y + i * s.ow + j0);
    }
  }
}

#define CRESSET_MAX_PLANE(NAME, T)                                                \
  void max_plane_##NAME(const PoolShape& s, const T* x, T* y, int64_t* indices) { \
    max_plane(s, x, y, indices);                                                  \
  }
#define CRESSET_AVG_PLANE(NAME, T)                                                             \
  void avg_plane_##NAME(const PoolShape& s, const AvgPoolDivisor& divisor, const T* x, T* y) { \
    avg_plane(s, divisor, x, y);                                                               \
  }
CRESSET_MAX_PLANE(f32, float)
CRESSET_MAX_PLANE(f64, double)
CRESSET_MAX_PLANE(i64, int64_t)
CRESSET_AVG_PLANE(f32, float)
CRESSET_AVG_PLANE(f64, double)
#undef CRESSET_MAX_PLANE
#undef CRESSET_AVG_PLANE

}  // namespace HWY_NAMESPACE
}  // namespace cresset
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cresset {

#define CRESSET_MAX_PLANE(NAME, T)                                              \
  HWY_EXPORT(max_plane_##NAME);                                                 \
  void max_pool_plane(const PoolShape& s, const T* x, T* y, int64_t* indices) { \
    HWY_DYNAMIC_DISPATCH(max_plane_##NAME)(s, x, y, indices);                   \
  }
#define CRESSET_AVG_PLANE(NAME, T)                                                           \
  HWY_EXPORT(avg_plane_##NAME);                                                              \
  void avg_pool_plane(const PoolShape& s, const AvgPoolDivisor& divisor, const T* x, T* y) { \
    HWY_DYNAMIC_DISPATCH(avg_plane_##NAME)(s, divisor, x, y);                                \
  }
CRESSET_MAX_PLANE(f32, float)
CRESSET_MAX_PLANE(f64, double)
CRESSET_MAX_PLANE(i64, int64_t)
CRESSET_AVG_PLANE(f32, float)
CRESSET_AVG_PLANE(f64, double)
#undef CRESSET_MAX_PLANE
#undef CRESSET_AVG_PLANE

bool pool_rows_fit(const PoolShape& s) {
  // float keeps indices in 32 bits, and a few outputs per row would leave most lanes idle.
  return s.ow >= 4 && s.stride_w <= kPoolStride &&
         s.kh * s.stride_w * phase_pitch(s) <= kPoolRoom &&
         s.h * s.w < std::numeric_limits<int32_t>::max() - kPoolStride * kPoolChunk;
}

}  // namespace cresset
#endif
