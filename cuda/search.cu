// CUDA kernels of searching, counting and removing repetitions.
#include "core/ops/search.h"

#include <algorithm>
#include <numeric>

#include "cuda/atomic.cuh"
#include "cuda/sort.h"
#include "cuda/sort_keys.cuh"

namespace cresset::cuda {
namespace {

// Comparisons are written so that a NaN value is beyond every element.
template <class A>
__device__ int64_t bound(const void* row, DType dtype, int64_t start, const int64_t* sorter,
                         int64_t n, A value, bool right) {
  int64_t lo = 0, hi = n;
  while (lo < hi) {
    const int64_t mid = lo + (hi - lo) / 2;
    int64_t at = sorter ? sorter[start + mid] : mid;
    at = at < 0 ? 0 : at < n ? at : n - 1;
    const A x = load_as<A>(row, dtype, start + at);
    const bool beyond = right ? x > value : x >= value;
    if (beyond)
      hi = mid;
    else
      lo = mid + 1;
  }
  return lo;
}

template <class A>
void search_as(const Tensor& sequence, const Tensor& values, const Tensor& sorter, bool right,
               const Tensor& out) {
  const int64_t n = sequence.size(-1), count = values.numel();
  const int64_t per_row =
      sequence.dim() == 1 ? std::max<int64_t>(count, 1) : std::max<int64_t>(values.size(-1), 1);
  const void *from = data_of(sequence), *v = data_of(values);
  const int64_t* order = pointer<int64_t>(sorter);
  void* to = data_of(out);
  const DType dtype = sequence.dtype(), result = out.dtype();
  for_each(count, [=] __device__(int64_t i) {
    const A value = load_as<A>(v, dtype, i);
    store_as<int64_t>(to, result, i, bound(from, dtype, i / per_row * n, order, n, value, right));
  });
}

void searchsorted(const Tensor& sequence, const Tensor& values, const Tensor& sorter, bool right,
                  const Tensor& out) {
  if (is_floating(sequence.dtype()))
    search_as<double>(sequence, values, sorter, right, out);
  else
    search_as<int64_t>(sequence, values, sorter, right, out);
}

void isin(const Tensor& x, const Tensor& test, bool invert, const Tensor& out) {
  const int64_t m = test.numel();
  const DType dtype = x.dtype();
  const int bits = key_bits(dtype);
  const bool floating = is_floating(dtype);
  const uint64_t nan_key = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const SortedKeys sorted = sort_keys(make_keys(test, false), 1, m, bits);
  const uint64_t* keys = sorted.keys;
  const void* from = data_of(x);
  bool* to = pointer<bool>(out);
  for_each(x.numel(), [=] __device__(int64_t i) {
    const uint64_t key = sort_key(from, dtype, i);
    int64_t lo = 0, hi = m;
    while (lo < hi) {
      const int64_t mid = (lo + hi) / 2;
      if (keys[mid] < key)
        lo = mid + 1;
      else
        hi = mid;
    }
    const bool found = lo < m && keys[lo] == key && !(floating && key == nan_key);
    to[i] = found != invert;
  });
}

// ---- unique: the contract of the table is lists on the host, so all of this waits for the device

// Fills `result` from the order of the rows and whether each equals the one before it.
void collect(const std::vector<uint32_t>& order, const std::vector<uint8_t>& same,
             UniqueRows* result) {
  result->inverse.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (!same[i]) {
      result->first.push_back(order[i]);
      result->counts.push_back(0);
    }
    ++result->counts.back();
    result->inverse[order[i]] = static_cast<int64_t>(result->first.size()) - 1;
  }
}

__device__ bool equal_elements(const void* x, DType dtype, int64_t a, int64_t b) {
  if (!is_floating(dtype)) return load_as<int64_t>(x, dtype, a) == load_as<int64_t>(x, dtype, b);
  return load_as<double>(x, dtype, a) == load_as<double>(x, dtype, b);
}

// Rows of several columns are sorted by each column, from the last to the first.
SortedKeys order_rows(const Tensor& x) {
  const int64_t n = x.size(0), m = x.size(1);
  const void* from = data_of(x);
  const DType dtype = x.dtype();
  Tensor order_memory = scratch(4 * static_cast<size_t>(n), x.device());
  uint32_t* order = data_of<uint32_t>(order_memory);
  for_each(n, [=] __device__(int64_t i) { order[i] = static_cast<uint32_t>(i); });
  SortedKeys sorted;
  for (int64_t c = m - 1; c >= 0; --c) {
    Tensor memory = scratch(8 * static_cast<size_t>(n), x.device());
    uint64_t* keys = data_of<uint64_t>(memory);
    for_each(n, [=] __device__(int64_t i) {
      keys[i] = sort_key(from, dtype, static_cast<int64_t>(order[i]) * m + c);
    });
    sorted = sort_keys(memory, 1, n, key_bits(dtype));
    // sorted.places tells where in `order` each row stood.
    Tensor next_memory = scratch(4 * static_cast<size_t>(n), x.device());
    uint32_t* next = data_of<uint32_t>(next_memory);
    const uint32_t *places = sorted.places, *before = order;
    for_each(n, [=] __device__(int64_t i) { next[i] = before[places[i]]; });
    order_memory = next_memory;
    order = next;
  }
  sorted.place_memory = order_memory;
  sorted.places = order;
  return sorted;
}

void unique(const Tensor& x, bool consecutive, UniqueRows* result) {
  const int64_t n = x.size(0), m = x.size(1);
  if (n == 0) return;
  const size_t count = static_cast<size_t>(n);
  std::vector<uint32_t> order(count);
  std::vector<uint8_t> same(count);
  SortedKeys sorted;
  if (!consecutive) sorted = order_rows(x);
  const uint32_t* places = sorted.places;
  Tensor memory = scratch(count, x.device());
  uint8_t* equal = data_of<uint8_t>(memory);
  const void* from = data_of(x);
  const DType dtype = x.dtype();
  for_each(n, [=] __device__(int64_t i) {
    bool all = i > 0;
    const int64_t a = places ? places[i] : i, b = i > 0 ? (places ? places[i - 1] : i - 1) : 0;
    for (int64_t c = 0; all && c < m; ++c) all = equal_elements(from, dtype, a * m + c, b * m + c);
    equal[i] = all;
  });
  if (places)
    download(order.data(), places, 4 * count);
  else
    std::iota(order.begin(), order.end(), 0u);
  download(same.data(), equal, count);
  collect(order, same, result);
}

// ---- histograms

struct EdgeList {
  static constexpr size_t most = 32;
  int dims = 0;
  const void* edges[most];
  int64_t bins[most];
};

// Counts are exact in any order; weighted sums meet in atomics.
template <class T>
void histogram_as(const Tensor& x, const TensorList& edges, const Tensor& weight,
                  const Tensor& counts) {
  CHECK(edges.size() <= EdgeList::most, NotImplemented, launching_op(), ": expected at most ",
        EdgeList::most, " dims, got ", edges.size());
  EdgeList list;
  for (const Tensor& e : edges) {
    list.edges[list.dims] = data_of(e);
    list.bins[list.dims++] = e.numel() - 1;
  }
  const int64_t dims = x.size(1);
  const T *from = pointer<T>(x), *w = pointer<T>(weight);
  T* to = pointer<T>(counts);
  const DType dtype = x.dtype();
  for_each(x.size(0), [=] __device__(int64_t i) {
    int64_t bin = 0;
    for (int64_t d = 0; d < dims; ++d) {
      const T* e = static_cast<const T*>(list.edges[d]);
      const int64_t bins = list.bins[d];
      const T v = from[i * dims + d];
      if (!(v >= e[0] && v <= e[bins])) return;
      const int64_t at =
          bound<double>(e, dtype, 0, nullptr, bins + 1, static_cast<double>(v), true) - 1;
      bin = bin * bins + (at < bins - 1 ? at : bins - 1);
    }
    atomic_plus(to + bin, w ? w[i] : T(1));
  });
}

void histogram(const Tensor& x, const TensorList& edges, const Tensor& weight,
               const Tensor& counts) {
  if (x.dtype() == DType::Float32)
    histogram_as<float>(x, edges, weight, counts);
  else
    histogram_as<double>(x, edges, weight, counts);
}

template <class T> void histc_as(const Tensor& x, T low, T high, const Tensor& counts) {
  const int64_t bins = counts.numel();
  const T* from = pointer<T>(x);
  T* to = pointer<T>(counts);
  for_each(x.numel(), [=] __device__(int64_t i) {
    const T v = from[i];
    if (!(v >= low && v <= high)) return;
    atomic_plus(to + bin_of(v, low, high, bins), T(1));
  });
}

void histc(const Tensor& x, double lo, double hi, const Tensor& counts) {
  if (x.dtype() == DType::Float32)
    histc_as<float>(x, static_cast<float>(lo), static_cast<float>(hi), counts);
  else
    histc_as<double>(x, lo, hi, counts);
}

}  // namespace

template <> const SearchKernels& cuda_table<SearchKernels>() {
  static constexpr SearchKernels table = {.searchsorted = searchsorted,
                                          .isin = isin,
                                          .unique = unique,
                                          .histogram = histogram,
                                          .histc = histc};
  return table;
}

}  // namespace cresset::cuda
