// Order-preserving unsigned keys of real dtypes, and the radix sort of them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/tensor/dtype.h"

namespace cresset {

template <class T> inline constexpr bool is_complex_element = requires { typename T::value_type; };

/// uint64_t for 8-byte elements, else uint32_t.
template <class T> using SortKey = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class F> auto float_key(F x) {
  using K = std::conditional_t<sizeof(F) == 8, uint64_t, uint32_t>;
  if (x != x) return static_cast<K>(~K{0});
  if (x == 0) x = 0;  // -0 and 0 are equal
  constexpr K sign = K{1} << (sizeof(K) * 8 - 1);
  K bits = std::bit_cast<K>(x);
  return static_cast<K>(bits & sign ? ~bits : bits | sign);
}

/// key(a) < key(b) exactly where a < b; NaN, all of them equal, has the largest key.
template <class T> SortKey<T> sort_key(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return float_key(x);
  else if constexpr (!std::is_integral_v<T>)
    return float_key(static_cast<float>(x));
  else if constexpr (sizeof(T) == 8)
    return static_cast<uint64_t>(x) ^ (uint64_t{1} << 63);
  else
    return static_cast<uint32_t>(static_cast<int64_t>(x) + (int64_t{1} << 31));
}

template <class T> inline constexpr bool has_nan = !std::is_integral_v<T>;

/// A key and the place that it came from.
template <class K> struct SortItem {
  K key;
  uint32_t at;
};

template <class K> bool less_key(const SortItem<K>& a, const SortItem<K>& b) {
  return a.key < b.key;
}

// Radix sort from the lowest digit, stable; digits in which all keys agree cost one look.
// D. E. Knuth, The Art of Computer Programming, vol. 3, algorithm 5.2.5R.
template <class K> void radix_sort(SortItem<K>* items, SortItem<K>* spare, int64_t n) {
  constexpr int bits = 11, digits = (sizeof(K) * 8 + bits - 1) / bits;
  constexpr K mask = (1u << bits) - 1;
  std::vector<uint32_t> counts(static_cast<size_t>(digits) << bits, 0);
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < digits; ++d)
      ++counts[(static_cast<size_t>(d) << bits) + ((items[i].key >> (d * bits)) & mask)];
  SortItem<K>* from = items;
  SortItem<K>* to = spare;
  for (int d = 0; d < digits; ++d) {
    uint32_t* count = counts.data() + (static_cast<size_t>(d) << bits);
    if (count[(from[0].key >> (d * bits)) & mask] == static_cast<uint32_t>(n)) continue;
    uint32_t start = 0;
    for (K v = 0; v <= mask; ++v) {
      uint32_t c = count[v];
      count[v] = start;
      start += c;
    }
    for (int64_t i = 0; i < n; ++i) to[count[(from[i].key >> (d * bits)) & mask]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::copy(from, from + n, items);
}

template <class T>
void load_row(const T* x, int64_t n, bool reversed, SortItem<SortKey<T>>* items) {
  for (int64_t i = 0; i < n; ++i) {
    SortKey<T> key = sort_key(x[i]);
    items[i] = {static_cast<SortKey<T>>(reversed ? ~key : key), static_cast<uint32_t>(i)};
  }
}

/// visit_dtype() for the dtypes that have an order; complex ones are left out.
template <class F> void visit_sortable(DType dtype, F&& f) {
  visit_dtype(dtype, [&]<class T>() {
    if constexpr (!is_complex_element<T>) f.template operator()<T>();
  });
}

}  // namespace cresset
