// The first k elements of long rows without sorting the rows.
#include "cuda/topk.h"

#include "cuda/device.cuh"
#include "cuda/sort.h"
#include "cuda/sort_keys.cuh"

namespace cresset::cuda {
namespace {

constexpr int select_threads = 1024, warps = select_threads / 32;
constexpr int in_flight = 4;  // keys that a thread reads before it looks at them

struct Rows {
  const void* x;
  DType dtype;
  int bits;
  uint64_t flip;  ///< exchanges the order of keys
  int64_t n;

  __device__ uint64_t key(int64_t at) const { return sort_key(x, dtype, at) ^ flip; }
};

/// Calls f(key, place, valid) for a block's row, all threads together.
template <class F> __device__ void for_row(const Rows& rows, F f) {
  const int64_t from = blockIdx.x * rows.n;
  for (int64_t base = 0; base < rows.n; base += select_threads * in_flight) {
    uint64_t keys[in_flight];
#pragma unroll
    for (int u = 0; u < in_flight; ++u) {
      const int64_t at = base + u * select_threads + threadIdx.x;
      keys[u] = at < rows.n ? rows.key(from + at) : 0;
    }
#pragma unroll
    for (int u = 0; u < in_flight; ++u) {
      const int64_t at = base + u * select_threads + threadIdx.x;
      f(keys[u], at, at < rows.n);
    }
  }
}

struct Bound {
  uint64_t key;     ///< the k-th one
  unsigned wanted;  ///< how many equal to it belong to the first k
};

/// Radix selection (Alabi et al., "Fast k-selection algorithms for graphics processing units",
/// 2012): digit by digit from the highest, the digit in which the count passes k.
__device__ Bound find_bound(const Rows& rows, unsigned k) {
  __shared__ unsigned counts[256];
  __shared__ unsigned found_digit, found_rank;
  Bound bound{0, k};
  for (int shift = rows.bits - 8; shift >= 0; shift -= 8) {
    if (threadIdx.x < 256) counts[threadIdx.x] = 0;
    __syncthreads();
    const bool first = shift + 8 == rows.bits;
    for_row(rows, [&](uint64_t key, int64_t, bool valid) {
      valid = valid && (first || key >> (shift + 8) == bound.key);
      const unsigned voters = __ballot_sync(0xffffffffu, valid);
      if (!valid) return;
      const unsigned digit = static_cast<unsigned>(key >> shift) & 255;
      const unsigned same = __match_any_sync(voters, digit);
      if (__ffs(same) - 1 == static_cast<int>(threadIdx.x % 32))
        atomicAdd(&counts[digit], __popc(same));
    });
    __syncthreads();
    if (threadIdx.x == 0) {
      unsigned digit = 0, rank = bound.wanted;
      while (counts[digit] < rank) rank -= counts[digit++];
      found_digit = digit;
      found_rank = rank;
    }
    __syncthreads();
    bound = {bound.key << 8 | found_digit, found_rank};
  }
  return bound;
}

/// Keys and places of the first k, in the order of places: those below the bound, then those that
/// equal it.
__global__ void __launch_bounds__(select_threads)
    select_kernel(Rows rows, unsigned k, uint64_t* keys, uint32_t* places) {
  const Bound bound = find_bound(rows, k);
  __shared__ unsigned below_of[warps], equal_of[warps];
  unsigned below_before = 0, equal_before = 0;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, under = (1u << lane) - 1;
  uint64_t* to = keys + static_cast<int64_t>(blockIdx.x) * k;
  uint32_t* at_place = places + static_cast<int64_t>(blockIdx.x) * k;
  for_row(rows, [&](uint64_t key, int64_t place, bool valid) {
    const bool below = valid && key < bound.key, equal = valid && key == bound.key;
    const unsigned belows = __ballot_sync(0xffffffffu, below);
    const unsigned equals = __ballot_sync(0xffffffffu, equal);
    if (lane == 0) {
      below_of[warp] = __popc(belows);
      equal_of[warp] = __popc(equals);
    }
    __syncthreads();
    unsigned b = below_before + __popc(belows & under), e = equal_before + __popc(equals & under);
    for (unsigned w = 0; w < warps; ++w) {
      b += w < warp ? below_of[w] : 0;
      e += w < warp ? equal_of[w] : 0;
      below_before += below_of[w];
      equal_before += equal_of[w];
    }
    __syncthreads();
    const bool taken = below || (equal && e < bound.wanted);
    if (!taken) return;
    const unsigned slot = below ? b : k - bound.wanted + e;
    to[slot] = key;
    at_place[slot] = static_cast<uint32_t>(place);
  });
}

template <class T>
void take(const Tensor& x, const uint32_t* chosen, const uint32_t* order, const Tensor& values,
          const Tensor& indices) {
  const int64_t n = x.size(-1), k = values.size(-1);
  const T* from = pointer<T>(x);
  T* v = pointer<T>(values);
  int64_t* at = pointer<int64_t>(indices);
  for_each(values.numel(), [=] __device__(int64_t i) {
    const int64_t row = i / k, place = chosen[row * k + order[i]];
    v[i] = from[row * n + place];
    at[i] = place;
  });
}

}  // namespace

// A block goes through its row once per byte of a key: one row would keep one multiprocessor busy.
bool selects_first(int64_t rows, int64_t n, int64_t k) {
  return n > 2048 && n < INT32_MAX && k <= 2048 && 4 * k <= n && (rows >= 32 || n <= 65536);
}

void select_first(const Tensor& x, bool descending, const Tensor& values, const Tensor& indices) {
  const int64_t n = x.size(-1), k = values.size(-1), rows = values.numel() / k;
  const int bits = key_bits(x.dtype());
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const Rows source{data_of(x), x.dtype(), bits, descending ? mask : 0, n};
  Tensor keys = scratch(8 * static_cast<size_t>(values.numel()), x.device());
  Tensor places = scratch(4 * static_cast<size_t>(values.numel()), x.device());
  uint32_t* chosen = data_of<uint32_t>(places);
  select_kernel<<<static_cast<unsigned>(rows), select_threads, 0, current_stream()>>>(
      source, static_cast<unsigned>(k), data_of<uint64_t>(keys), chosen);
  check_launch();
  const SortedKeys sorted = sort_keys(keys, rows, k, bits);
  visit_size(itemsize(x.dtype()),
             [&]<class T>() { take<T>(x, chosen, sorted.places, values, indices); });
}

}  // namespace cresset::cuda
