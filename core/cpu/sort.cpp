// CPU kernels of sorting and selecting within rows.
#include "core/ops/sort.h"

#include <algorithm>
#include <vector>

#include "core/cpu/parallel.h"
#include "core/cpu/sort_keys.h"

namespace cresset {
namespace {

// Calls f(row, items, spare) for all rows; each thread has 2n items of scratch.
template <class K, class F> void for_rows(int64_t rows, int64_t n, bool needs_spare, F f) {
  const int64_t pieces =
      std::max<int64_t>(1, std::min<int64_t>({rows, balanced_pieces(), rows * n / 4096}));
  const int64_t room = n * (needs_spare ? 2 : 1);
  std::vector<SortItem<K>> scratch(static_cast<size_t>(pieces * room));
  parallel_for(0, pieces, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t p = lo; p < hi; ++p) {
      SortItem<K>* items = scratch.data() + p * room;
      for (int64_t r = rows * p / pieces; r < rows * (p + 1) / pieces; ++r) f(r, items, items + n);
    }
  });
}

template <class K> bool less_item(const SortItem<K>& a, const SortItem<K>& b) {
  return a.key != b.key ? a.key < b.key : a.at < b.at;
}

// Where order among equals is free, small dtypes get the order that PyTorch's std::sort gives.
void sort(const Tensor& x, bool descending, bool stable, const Tensor& values,
          const Tensor& indices) {
  const int64_t n = x.size(-1), rows = n ? x.numel() / n : 0;
  visit_sortable(x.dtype(), [&]<class T>() {
    using K = SortKey<T>;
    const bool any_order = !stable && sizeof(T) <= 2;
    const int64_t radix_from = sizeof(K) == 8 ? 4096 : 1024;
    const T* from = x.data<T>();
    T* v = values.data<T>();
    int64_t* out = indices.data<int64_t>();
    for_rows<K>(rows, n, n >= radix_from, [&](int64_t r, SortItem<K>* items, SortItem<K>* spare) {
      const T* row = from + r * n;
      load_row(row, n, descending, items);
      if (any_order)
        std::sort(items, items + n, less_key<K>);
      else if (n >= radix_from)
        radix_sort(items, spare, n);
      else
        std::sort(items, items + n, less_item<K>);
      for (int64_t i = 0; i < n; ++i) {
        v[r * n + i] = row[items[i].at];
        out[r * n + i] = items[i].at;
      }
    });
  });
}

void topk(const Tensor& x, bool largest, const Tensor& values, const Tensor& indices) {
  const int64_t n = x.size(-1), rows = n ? x.numel() / n : 0, k = values.size(-1);
  if (k == 0) return;
  visit_sortable(x.dtype(), [&]<class T>() {
    using K = SortKey<T>;
    const T* from = x.data<T>();
    T* v = values.data<T>();
    int64_t* out = indices.data<int64_t>();
    for_rows<K>(rows, n, false, [&](int64_t r, SortItem<K>* items, SortItem<K>*) {
      const T* row = from + r * n;
      load_row(row, n, largest, items);
      if (k * 64 <= n) {
        std::partial_sort(items, items + k, items + n, less_key<K>);
      } else {
        std::nth_element(items, items + k - 1, items + n, less_key<K>);
        std::sort(items, items + k - 1, less_key<K>);
      }
      for (int64_t i = 0; i < k; ++i) {
        v[r * k + i] = row[items[i].at];
        out[r * k + i] = items[i].at;
      }
    });
  });
}

// Hoare's selection with the median of three as the pivot, as PyTorch's kthvalue does it: among
// equals it decides which index is given. W. H. Press et al., Numerical Recipes, section 8.5.
template <class K> void quick_select(SortItem<K>* items, int64_t n, int64_t k) {
  int64_t left = 0, right = n - 1;
  auto order = [&](int64_t a, int64_t b) {
    if (items[a].key > items[b].key) std::swap(items[a], items[b]);
  };
  while (left + 1 < right) {
    std::swap(items[left + (right - left) / 2], items[left + 1]);
    order(left + 1, right);
    order(left, right);
    order(left + 1, left);
    const K pivot = items[left].key;
    int64_t i = left + 1, j = right;
    for (;;) {
      do ++i;
      while (pivot > items[i].key);
      do --j;
      while (items[j].key > pivot);
      if (j < i) break;
      std::swap(items[i], items[j]);
    }
    std::swap(items[left], items[j]);
    if (j <= k) left = i;
    if (j >= k) right = j - 1;
  }
  if (left + 1 == right) order(left, right);
}

// Place of the selected element of a row.
template <class K>
uint32_t select_item(SortItem<K>* items, int64_t n, Selection rule, int64_t k, bool has_nan) {
  if (rule == Selection::Rank) {
    quick_select(items, n, k);
    return items[k].at;
  }
  int64_t numbers = n;
  for (int64_t i = n; has_nan && i-- > 0;)
    if (items[i].key == static_cast<K>(~K{0})) --numbers;
  if (rule == Selection::Median && numbers < n)
    return std::max_element(items, items + n, less_key<K>)->at;
  const int64_t rank = std::max<int64_t>(0, (numbers - 1) / 2);
  std::nth_element(items, items + rank, items + n, less_item<K>);
  return items[rank].at;
}

void select(const Tensor& x, Selection rule, int64_t k, const Tensor& values,
            const Tensor& indices) {
  const int64_t n = x.size(-1), rows = values.numel();
  visit_sortable(x.dtype(), [&]<class T>() {
    using K = SortKey<T>;
    const T* from = x.data<T>();
    for_rows<K>(rows, n, false, [&](int64_t r, SortItem<K>* items, SortItem<K>*) {
      load_row(from + r * n, n, false, items);
      const uint32_t at = select_item(items, n, rule, k, has_nan<T>);
      values.data<T>()[r] = from[r * n + at];
      indices.data<int64_t>()[r] = at;
    });
  });
}

void mode(const Tensor& x, const Tensor& values, const Tensor& indices) {
  const int64_t n = x.size(-1), rows = values.numel();
  visit_sortable(x.dtype(), [&]<class T>() {
    using K = SortKey<T>;
    const T* from = x.data<T>();
    for_rows<K>(rows, n, false, [&](int64_t r, SortItem<K>* items, SortItem<K>*) {
      const T* row = from + r * n;
      load_row(row, n, false, items);
      std::sort(items, items + n, less_key<K>);
      int64_t best = 0, most = 0;
      for (int64_t i = 0, run = 1; i < n; ++i, ++run) {
        if (i + 1 < n && items[i + 1].key == items[i].key) continue;
        if (run > most) {
          most = run;
          best = items[i].at;
        }
        run = 0;
      }
      values.data<T>()[r] = row[best];
      indices.data<int64_t>()[r] = best;
    });
  });
}

}  // namespace

template <> const SortKernels& cpu_kernels<SortKernels>() {
  static constexpr SortKernels table = {.sort = sort, .topk = topk, .select = select, .mode = mode};
  return table;
}

}  // namespace cresset
