// CUDA kernels of sorting and selecting within rows, all from rows of sorted keys.
#include "core/ops/sort.h"

#include "cuda/device.cuh"
#include "cuda/sort.h"
#include "cuda/topk.h"

namespace cresset::cuda {
namespace {

// Copies the first k elements of each sorted row.
template <class T>
void take_sorted(const Tensor& x, const uint32_t* places, int64_t n, int64_t k,
                 const Tensor& values, const Tensor& indices) {
  const T* from = pointer<T>(x);
  T* v = pointer<T>(values);
  int64_t* at = pointer<int64_t>(indices);
  for_each(values.numel(), [=] __device__(int64_t i) {
    const int64_t row = i / k, place = places[row * n + (i - row * k)];
    v[i] = from[row * n + place];
    at[i] = place;
  });
}

void first_sorted(const Tensor& x, bool descending, int64_t k, const Tensor& values,
                  const Tensor& indices) {
  if (values.numel() == 0) return;
  const int64_t n = x.size(-1), rows = x.numel() / n;
  const SortedKeys s = sort_keys(make_keys(x, descending), rows, n, key_bits(x.dtype()));
  visit_size(itemsize(x.dtype()),
             [&]<class T>() { take_sorted<T>(x, s.places, n, k, values, indices); });
}

void sort(const Tensor& x, bool descending, bool, const Tensor& values, const Tensor& indices) {
  first_sorted(x, descending, x.size(-1), values, indices);
}

void topk(const Tensor& x, bool largest, const Tensor& values, const Tensor& indices) {
  if (values.numel() == 0) return;
  const int64_t n = x.size(-1);
  if (selects_first(x.numel() / n, n, values.size(-1)))
    return select_first(x, largest, values, indices);
  first_sorted(x, largest, values.size(-1), values, indices);
}

/// How many of n ascending keys are below `bound`.
__device__ int64_t count_below(const uint64_t* keys, int64_t n, uint64_t bound) {
  int64_t lo = 0, hi = n;
  while (lo < hi) {
    const int64_t mid = (lo + hi) / 2;
    if (keys[mid] < bound)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

template <class T>
void select_as(const Tensor& x, Selection rule, int64_t k, const Tensor& values,
               const Tensor& indices) {
  const int64_t n = x.size(-1), rows = values.numel();
  const int bits = key_bits(x.dtype());
  const SortedKeys s = sort_keys(make_keys(x, false), rows, n, bits);
  const uint64_t* keys = s.keys;
  const uint32_t* places = s.places;
  const uint64_t nan_key = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const bool floating = is_floating(x.dtype());
  const T* from = pointer<T>(x);
  T* v = pointer<T>(values);
  int64_t* out = pointer<int64_t>(indices);
  for_each(rows, [=] __device__(int64_t r) {
    const int64_t numbers = floating ? count_below(keys + r * n, n, nan_key) : n;
    int64_t rank = k;
    if (rule == Selection::Median && numbers < n)
      rank = numbers;
    else if (rule != Selection::Rank)
      rank = numbers > 0 ? (numbers - 1) / 2 : 0;
    const int64_t at = places[r * n + rank];
    v[r] = from[r * n + at];
    out[r] = at;
  });
}

void select(const Tensor& x, Selection rule, int64_t k, const Tensor& values,
            const Tensor& indices) {
  if (values.numel() == 0) return;
  visit_size(itemsize(x.dtype()), [&]<class T>() { select_as<T>(x, rule, k, values, indices); });
}

/// The longest run so far: its length, and the place in the sorted row where it ends.
struct Run {
  int64_t length, end;
  __device__ Run better(Run o) const {
    return o.length > length || (o.length == length && o.end < end) ? o : *this;
  }
};

// One block a row: each thread measures the runs that end at its places.
template <class T>
__global__ void mode_kernel(const T* x, const uint64_t* keys, const uint32_t* places, int64_t n,
                            T* values, int64_t* indices) {
  const uint64_t* row = keys + blockIdx.x * n;
  Run best{0, 0};
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    if (i + 1 < n && row[i + 1] == row[i]) continue;
    best = best.better({i + 1 - count_below(row, i + 1, row[i]), i});
  }
  __shared__ Run parts[256];
  parts[threadIdx.x] = best;
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      parts[threadIdx.x] = parts[threadIdx.x].better(parts[threadIdx.x + half]);
  }
  if (threadIdx.x != 0) return;
  const int64_t at = places[blockIdx.x * n + parts[0].end];
  values[blockIdx.x] = x[blockIdx.x * n + at];
  indices[blockIdx.x] = at;
}

void mode(const Tensor& x, const Tensor& values, const Tensor& indices) {
  const int64_t n = x.size(-1), rows = values.numel();
  if (rows == 0) return;
  const SortedKeys s = sort_keys(make_keys(x, false), rows, n, key_bits(x.dtype()));
  visit_size(itemsize(x.dtype()), [&]<class T>() {
    mode_kernel<T><<<static_cast<unsigned>(rows), 256, 0, current_stream()>>>(
        pointer<T>(x), s.keys, s.places, n, pointer<T>(values), pointer<int64_t>(indices));
  });
  check_launch();
}

}  // namespace

template <> const SortKernels& cuda_table<SortKernels>() {
  static constexpr SortKernels table = {.sort = sort, .topk = topk, .select = select, .mode = mode};
  return table;
}

}  // namespace cresset::cuda
