// CPU kernels of searching, counting and removing repetitions.
#include "core/ops/search.h"

#include <algorithm>
#include <numeric>

#include "core/cpu/parallel.h"
#include "core/cpu/sort_keys.h"

namespace cresset {
namespace {

// Comparisons are written so that a NaN value is beyond every element.
template <class T>
int64_t bound(const T* row, const int64_t* sorter, int64_t n, T value, bool right) {
  int64_t lo = 0, hi = n;
  while (lo < hi) {
    const int64_t mid = lo + (hi - lo) / 2;
    const T x = row[sorter ? sorter[mid] : mid];
    const bool beyond = right ? x > value : x >= value;
    if (beyond)
      hi = mid;
    else
      lo = mid + 1;
  }
  return lo;
}

void searchsorted(const Tensor& sequence, const Tensor& values, const Tensor& sorter, bool right,
                  const Tensor& out) {
  const int64_t n = sequence.size(-1), count = values.numel();
  const int64_t per_row =
      sequence.dim() == 1 ? std::max<int64_t>(count, 1) : std::max<int64_t>(values.size(-1), 1);
  const int64_t* order = sorter.defined() ? sorter.data<int64_t>() : nullptr;
  visit_sortable(sequence.dtype(), [&]<class T>() {
    const T *from = sequence.data<T>(), *v = values.data<T>();
    parallel_for(0, count, 2048, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i) {
        const int64_t start = i / per_row * n;
        const int64_t at = bound(from + start, order ? order + start : nullptr, n, v[i], right);
        if (out.dtype() == DType::Int32)
          out.data<int32_t>()[i] = static_cast<int32_t>(at);
        else
          out.data<int64_t>()[i] = at;
      }
    });
  });
}

template <class T> bool is_nan(T x) { return x != x; }

void isin(const Tensor& x, const Tensor& test, bool invert, const Tensor& out) {
  visit_sortable(x.dtype(), [&]<class T>() {
    std::vector<SortKey<T>> keys;
    keys.reserve(static_cast<size_t>(test.numel()));
    for (int64_t i = 0; i < test.numel(); ++i)
      if (T v = test.data<T>()[i]; !is_nan(v)) keys.push_back(sort_key(v));
    std::sort(keys.begin(), keys.end());
    const T* from = x.data<T>();
    bool* to = out.data<bool>();
    parallel_for(0, x.numel(), 4096, [&](int64_t lo, int64_t hi) {
      for (int64_t i = lo; i < hi; ++i)
        to[i] = (!is_nan(from[i]) &&
                 std::binary_search(keys.begin(), keys.end(), sort_key(from[i]))) != invert;
    });
  });
}

// Fills `result` from rows in sorted (or given) order.
template <class Same>
void collect(const std::vector<int64_t>& order, Same same, UniqueRows* result) {
  result->inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || !same(order[i - 1], order[i])) {
      result->first.push_back(order[i]);
      result->counts.push_back(0);
    }
    ++result->counts.back();
    result->inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(result->first.size()) - 1;
  }
}

template <class T> void sort_rows(const T* x, int64_t n, int64_t m, std::vector<int64_t>& order) {
  if (m == 1) {
    using K = SortKey<T>;
    std::vector<SortItem<K>> items(static_cast<size_t>(2 * n));
    load_row(x, n, false, items.data());
    radix_sort(items.data(), items.data() + n, n);
    std::transform(items.begin(), items.begin() + n, order.begin(),
                   [](const SortItem<K>& item) { return item.at; });
    return;
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    for (int64_t c = 0; c < m; ++c) {
      auto p = sort_key(x[a * m + c]), q = sort_key(x[b * m + c]);
      if (p != q) return p < q;
    }
    return false;
  });
}

void unique(const Tensor& x, bool consecutive, UniqueRows* result) {
  const int64_t n = x.size(0), m = x.size(1);
  if (n == 0) return;
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  visit_sortable(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    if (!consecutive) sort_rows(from, n, m, order);
    auto same = [&](int64_t a, int64_t b) {
      for (int64_t c = 0; c < m; ++c)
        if (from[a * m + c] != from[b * m + c]) return false;
      return true;
    };
    collect(order, same, result);
  });
}

template <class F> void visit_float32_64(DType dtype, F&& f) {
  if (dtype == DType::Float32)
    f.template operator()<float>();
  else
    f.template operator()<double>();
}

void histogram(const Tensor& x, const TensorList& edges, const Tensor& weight,
               const Tensor& counts) {
  const int64_t n = x.size(0), dims = x.size(1);
  visit_float32_64(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    T* to = counts.data<T>();
    for (int64_t i = 0; i < n; ++i) {
      int64_t bin = 0;
      for (int64_t d = 0; d < dims && bin >= 0; ++d) {
        const T* e = edges[static_cast<size_t>(d)].data<T>();
        const int64_t bins = edges[static_cast<size_t>(d)].numel() - 1;
        const T v = from[i * dims + d];
        if (!(v >= e[0] && v <= e[bins])) {
          bin = -1;
          break;
        }
        bin = bin * bins + std::min(bins - 1, bound(e, nullptr, bins + 1, v, true) - 1);
      }
      if (bin >= 0) to[bin] += weight.defined() ? weight.data<T>()[i] : T(1);
    }
  });
}

void histc(const Tensor& x, double lo, double hi, const Tensor& counts) {
  const int64_t bins = counts.numel();
  visit_float32_64(x.dtype(), [&]<class T>() {
    const T *from = x.data<T>(), low = static_cast<T>(lo), high = static_cast<T>(hi);
    T* to = counts.data<T>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      if (!(from[i] >= low && from[i] <= high)) continue;
      to[bin_of(from[i], low, high, bins)] += 1;
    }
  });
}

}  // namespace

template <> const SearchKernels& cpu_kernels<SearchKernels>() {
  static constexpr SearchKernels table = {.searchsorted = searchsorted,
                                          .isin = isin,
                                          .unique = unique,
                                          .histogram = histogram,
                                          .histc = histc};
  return table;
}

}  // namespace cresset
