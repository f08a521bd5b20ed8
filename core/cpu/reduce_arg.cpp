// Extremes along a dim and where they are.
#include "core/cpu/reduce_arg.h"

#include "core/cpu/fold.h"
#include "core/cpu/reduce_plan.h"

namespace cresset::reduce_arg {
namespace {

template <class T> constexpr bool is_nan(T x) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return x != x;
}

template <class T> bool beats(T candidate, T best, bool largest) {
  if (is_nan(best)) return false;
  return is_nan(candidate) || (largest ? candidate > best : candidate < best);
}

// What a search writes its results to; values may be null.
template <class T> struct Found {
  T* values;
  int64_t* indices;
  bool largest;
  void put(int64_t out, T value, int64_t index) const {
    if (values) values[out] = value;
    indices[out] = index;
  }
};

template <class T>
void search_row(const T* x, int64_t n, int64_t stride, int64_t out, const Found<T>& found) {
  int64_t at = 0;
  if constexpr (std::is_floating_point_v<T>) {
    if (stride == 1 && n >= 32) {
      // The extreme by SIMD first, then where it is.
      const Fold fold = found.largest ? Fold::Max : Fold::Min;
      const T best = static_cast<T>(fold_loops<T>(fold).row(x, n, T(0)));
      if (is_nan(best)) {
        while (!is_nan(x[at])) ++at;
      } else {
        while (x[at] != best) ++at;
      }
      return found.put(out, x[at], at);
    }
  }
  T best = x[0];
  for (int64_t i = 1; i < n; ++i) {
    if (!beats(x[i * stride], best, found.largest)) continue;
    best = x[i * stride];
    at = i;
  }
  found.put(out, best, at);
}

// Neighbouring outputs together, so that memory is read in order.
template <class T>
void search_columns(const T* x, int64_t n, int64_t stride, int64_t cols, int64_t col_stride,
                    int64_t out, int64_t out_stride, const Found<T>& found) {
  constexpr int64_t block = 64;
  T best[block];
  int64_t at[block];
  for (int64_t from = 0; from < cols; from += block) {
    const int64_t m = std::min(block, cols - from);
    for (int64_t j = 0; j < m; ++j) {
      best[j] = x[(from + j) * col_stride];
      at[j] = 0;
    }
    for (int64_t i = 1; i < n; ++i)
      for (int64_t j = 0; j < m; ++j) {
        const T v = x[i * stride + (from + j) * col_stride];
        if (!beats(v, best[j], found.largest)) continue;
        best[j] = v;
        at[j] = i;
      }
    for (int64_t j = 0; j < m; ++j) found.put(out + (from + j) * out_stride, best[j], at[j]);
  }
}

}  // namespace

void extreme(const Tensor& x, int64_t dim, bool largest, const Tensor& values,
             const Tensor& indices) {
  const ReducePlan p =
      plan_reduction(x, x.dim() ? std::span<const int64_t>(&dim, 1) : std::span<const int64_t>());
  if (p.outputs == 0) return;
  const int64_t n = p.red.back(), stride = p.red_in.back();
  const int64_t width = p.columns ? p.kept.back() : 1, tasks = p.outputs / width;
  visit_dtype(x.dtype(), [&]<class T>() {
    if constexpr (requires(T a) { a < a; }) {
      const T* data = x.data<T>();
      const Found<T> found{values.defined() ? values.data<T>() : nullptr, indices.data<int64_t>(),
                           largest};
      const int64_t grain = std::max<int64_t>(1, 32768 / (n * width));
      parallel_for(0, tasks, grain, [&](int64_t lo, int64_t hi) {
        const size_t rank = p.kept.size() - (p.columns ? 1 : 0);
        Odometer at({p.kept.data(), rank}, {p.kept_in.data(), rank}, {p.kept_out.data(), rank}, lo);
        for (int64_t t = lo; t < hi; ++t, at.next()) {
          if (p.columns)
            search_columns(data + at.first, n, stride, width, p.kept_in.back(), at.second,
                           p.kept_out.back(), found);
          else
            search_row(data + at.first, n, stride, at.second, found);
        }
      });
    }
  });
}

}  // namespace cresset::reduce_arg
