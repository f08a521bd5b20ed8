// Two-dimensional max and average pooling, parallel over planes, by SIMD rows or plain loops.
#include "core/cpu/pool_raw.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/cpu/parallel.h"
#include "core/cpu/pool_rows.h"

namespace cresset {
namespace {

/// Planes per piece so that each is worth a thread.
int64_t plane_grain(const PoolShape& s) {
  const int64_t work = std::max<int64_t>(1, s.oh * s.ow * s.kh * s.kw);
  return std::max<int64_t>(1, 32768 / work);
}

template <class T> bool takes_over(T candidate, T best) {
  if constexpr (std::is_floating_point_v<T>) {
    return candidate > best || candidate != candidate;
  } else {
    return candidate > best;
  }
}

/// The elements [lo, hi) in steps of `step` that a window along one axis covers.
struct Span {
  int64_t lo, hi;
};

Span window(int64_t at, int64_t kernel, int64_t dilation, int64_t size) {
  // Windows begin in the padding at the first element inside.
  const int64_t first = at < 0 ? at + (-at + dilation - 1) / dilation * dilation : at;
  return {first, std::min(size, at + (kernel - 1) * dilation + 1)};
}

template <class T> void max_plane(const PoolShape& s, const T* x, T* y, int64_t* indices) {
  for (int64_t i = 0; i < s.oh; ++i) {
    const Span rows = window(i * s.stride_h - s.pad_h, s.kh, s.dil_h, s.h);
    for (int64_t j = 0; j < s.ow; ++j) {
      const Span cols = window(j * s.stride_w - s.pad_w, s.kw, s.dil_w, s.w);
      T best = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                    : std::numeric_limits<T>::lowest();
      int64_t index = rows.lo * s.w + cols.lo;
      for (int64_t r = rows.lo; r < rows.hi; r += s.dil_h) {
        for (int64_t c = cols.lo; c < cols.hi; c += s.dil_w) {
          const T value = x[r * s.w + c];
          if (takes_over(value, best)) best = value, index = r * s.w + c;
        }
      }
      y[i * s.ow + j] = best;
      indices[i * s.ow + j] = index;
    }
  }
}

/// One averaging window: the elements inside and what their sum is divided by.
struct AvgWindow {
  Span rows, cols;
  int64_t divisor;

  bool is_empty() const { return rows.lo >= rows.hi || cols.lo >= cols.hi; }
};

AvgWindow avg_window(const PoolShape& s, const AvgPoolDivisor& divisor, int64_t i, int64_t j) {
  const int64_t top = i * s.stride_h - s.pad_h, left = j * s.stride_w - s.pad_w;
  const int64_t bottom = std::min(top + s.kh, s.h + s.pad_h);
  const int64_t right = std::min(left + s.kw, s.w + s.pad_w);
  AvgWindow win{{std::max<int64_t>(0, top), std::min(bottom, s.h)},
                {std::max<int64_t>(0, left), std::min(right, s.w)},
                divisor.divisor_override};
  if (win.divisor == 0) {
    win.divisor = divisor.count_include_pad
                      ? (bottom - top) * (right - left)
                      : (win.rows.hi - win.rows.lo) * (win.cols.hi - win.cols.lo);
  }
  return win;
}

template <class T> T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class T> T window_sum(const PoolShape& s, const AvgWindow& win, const T* plane) {
  T sum(0);
  for (int64_t r = win.rows.lo; r < win.rows.hi; ++r) {
    for (int64_t c = win.cols.lo; c < win.cols.hi; ++c) sum = add(sum, plane[r * s.w + c]);
  }
  return sum;
}

/// Calls visit(plane) for every plane, in parallel.
template <class Visit> void for_each_plane(const PoolShape& s, Visit&& visit) {
  parallel_for(0, s.planes, plane_grain(s), [&](int64_t lo, int64_t hi) {
    for (int64_t p = lo; p < hi; ++p) visit(p);
  });
}

}  // namespace

template <class T> void max_pool2d_forward(const PoolShape& s, const T* x, T* y, int64_t* indices) {
  const int64_t in = s.h * s.w, out = s.oh * s.ow;
  const bool by_rows = pool_rows_fit(s);
  for_each_plane(s, [&](int64_t p) {
    if (by_rows) {
      max_pool_plane(s, x + p * in, y + p * out, indices + p * out);
    } else {
      max_plane(s, x + p * in, y + p * out, indices + p * out);
    }
  });
}

template <class T>
void max_pool2d_backward(const PoolShape& s, const T* gy, const int64_t* indices, T* gx) {
  const int64_t in = s.h * s.w, out = s.oh * s.ow;
  for_each_plane(s, [&](int64_t p) {
    T* plane = gx + p * in;
    std::fill_n(plane, in, T(0));
    for (int64_t i = p * out; i < (p + 1) * out; ++i) {
      plane[indices[i]] = add(plane[indices[i]], gy[i]);
    }
  });
}

template <class T>
void avg_pool2d_forward(const PoolShape& s, const AvgPoolDivisor& divisor, const T* x, T* y) {
  const bool by_rows = pool_rows_fit(s);
  for_each_plane(s, [&](int64_t p) {
    const T* plane = x + p * s.h * s.w;
    T* to = y + p * s.oh * s.ow;
    if constexpr (std::is_floating_point_v<T>) {
      if (by_rows) return avg_pool_plane(s, divisor, plane, to);
    }
    for (int64_t i = 0; i < s.oh; ++i) {
      for (int64_t j = 0; j < s.ow; ++j) {
        const AvgWindow win = avg_window(s, divisor, i, j);
        const T sum = window_sum(s, win, plane);
        to[i * s.ow + j] = win.is_empty() ? T(0) : pool_mean(sum, win.divisor);
      }
    }
  });
}

template <class T>
void avg_pool2d_backward(const PoolShape& s, const AvgPoolDivisor& divisor, const T* gy, T* gx) {
  for_each_plane(s, [&](int64_t p) {
    const T* from = gy + p * s.oh * s.ow;
    T* plane = gx + p * s.h * s.w;
    std::fill_n(plane, s.h * s.w, T(0));
    for (int64_t i = 0; i < s.oh; ++i) {
      for (int64_t j = 0; j < s.ow; ++j) {
        const AvgWindow win = avg_window(s, divisor, i, j);
        if (win.is_empty()) continue;
        const T share = pool_mean(from[i * s.ow + j], win.divisor);
        for (int64_t r = win.rows.lo; r < win.rows.hi; ++r) {
          for (int64_t c = win.cols.lo; c < win.cols.hi; ++c) {
            plane[r * s.w + c] = add(plane[r * s.w + c], share);
          }
        }
      }
    }
  });
}

#define CRESSET_POOL(T)                                                                    \
  template void max_pool2d_forward(const PoolShape&, const T*, T*, int64_t*);              \
  template void max_pool2d_backward(const PoolShape&, const T*, const int64_t*, T*);       \
  template void avg_pool2d_forward(const PoolShape&, const AvgPoolDivisor&, const T*, T*); \
  template void avg_pool2d_backward(const PoolShape&, const AvgPoolDivisor&, const T*, T*);
CRESSET_POOL(float)
CRESSET_POOL(double)
CRESSET_POOL(int64_t)
#undef CRESSET_POOL

}  // namespace cresset
