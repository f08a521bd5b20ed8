// The first k elements of long rows without sorting the rows.
#include "cuda/topk.h"

#include "cuda/device.cuh"
#include "cuda/sort.h"
#include "cuda/sort_keys.cuh"

namespace cresset::cuda {
namespace {

constexpr int select_threads = 1024, warps = select_threads / 32;
constexpr int in_flight = 4;    // keys that a thread reads before it looks at them
constexpr int digit_bits = 11;  // of a key, looked at in one pass

/// Rows of one dtype; `flip` exchanges the order of keys.
template <DType dtype> struct Rows {
  static constexpr int bits = static_cast<int>(itemsize(dtype)) * 8;
  const void* x;
  uint64_t flip;
  int64_t n;

  __device__ uint64_t key(int64_t at) const { return sort_key(x, dtype, at) ^ flip; }
};

/// Calls f(keys, first, end) for pieces of a block's row, all threads together: keys[u] is that of
/// place first + 32 u, up to `end`. The places of a warp are neighbours.
template <DType dtype, class F> __device__ void for_row(const Rows<dtype>& rows, F f) {
  const int64_t from = blockIdx.x * rows.n;
  const int64_t own = (threadIdx.x / 32) * 32 * in_flight + threadIdx.x % 32;
  for (int64_t base = 0; base < rows.n; base += select_threads * in_flight) {
    uint64_t keys[in_flight];
#pragma unroll
    for (int u = 0; u < in_flight; ++u) {
      const int64_t at = base + own + u * 32;
      keys[u] = at < rows.n ? rows.key(from + at) : 0;
    }
    f(keys, base + own, rows.n);
  }
}

struct Bound {
  uint64_t key;     ///< the k-th one
  unsigned wanted;  ///< how many equal to it belong to the first k
};

/// The place among `size` counts (at most 64 a lane) where their sum passes `rank`, which becomes
/// the rank within. For a whole warp.
__device__ unsigned find_digit(const unsigned* counts, unsigned size, unsigned& rank) {
  const unsigned lane = threadIdx.x % 32, each = size / 32;
  unsigned own = 0;
  for (unsigned i = 0; i < each; ++i) own += counts[lane * each + (i + lane) % each];
  unsigned upto = own;
  for (int d = 1; d < 32; d *= 2) {
    const unsigned other = __shfl_up_sync(0xffffffffu, upto, d);
    if (lane >= d) upto += other;
  }
  const int holder = __ffs(__ballot_sync(0xffffffffu, upto >= rank)) - 1;
  unsigned digit = holder * each, left = rank - __shfl_sync(0xffffffffu, upto - own, holder);
  while (counts[digit] < left) left -= counts[digit++];
  rank = left;
  return digit;
}

/// Radix selection (Alabi et al., "Fast k-selection algorithms for graphics processing units",
/// 2012): digit by digit from the highest, the digit in which the count passes k.
template <DType dtype> __device__ Bound find_bound(const Rows<dtype>& rows, unsigned k) {
  __shared__ unsigned counts[1 << digit_bits];
  __shared__ unsigned found_digit, found_rank;
  Bound bound{0, k};
  for (int above = rows.bits; above > 0;) {
    // The last digit may be short; a warp looks at 32 counts at least.
    const int width = above < digit_bits ? above : digit_bits, shift = above - width;
    const unsigned size = 1u << (width < 5 ? 5 : width);
    for (unsigned i = threadIdx.x; i < size; i += select_threads) counts[i] = 0;
    __syncthreads();
    const bool first = above == rows.bits;
    for_row(rows, [&](const uint64_t(&keys)[in_flight], int64_t at, int64_t end) {
#pragma unroll
      for (int u = 0; u < in_flight; ++u) {
        const bool counts_here = at + u * 32 < end && (first || keys[u] >> above == bound.key);
        const unsigned voters = __ballot_sync(0xffffffffu, counts_here);
        if (!counts_here) continue;
        const unsigned digit = static_cast<unsigned>(keys[u] >> shift) & ((1u << width) - 1);
        const unsigned same = __match_any_sync(voters, digit);
        if (__ffs(same) - 1 == static_cast<int>(threadIdx.x % 32))
          atomicAdd(&counts[digit], __popc(same));
      }
    });
    __syncthreads();
    if (threadIdx.x < 32) {
      unsigned rank = bound.wanted;
      const unsigned digit = find_digit(counts, size, rank);
      if (threadIdx.x == 0) {
        found_digit = digit;
        found_rank = rank;
      }
    }
    __syncthreads();
    bound = {bound.key << width | found_digit, found_rank};
    above = shift;
  }
  return bound;
}

/// The sums of the counts of the warps before this one, and of all.
__device__ inline void scan_warps(const unsigned* counts, unsigned& before, unsigned& all) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned upto = counts[lane];
  for (int d = 1; d < 32; d *= 2) {
    const unsigned other = __shfl_up_sync(0xffffffffu, upto, d);
    if (lane >= d) upto += other;
  }
  before = __shfl_sync(0xffffffffu, upto, warp > 0 ? warp - 1 : 0);
  if (warp == 0) before = 0;
  all = __shfl_sync(0xffffffffu, upto, 31);
}

/// Keys and places of the first k, in the order of places: those below the bound, then those that
/// equal it.
template <DType dtype>
__global__ void __launch_bounds__(select_threads)
    select_kernel(Rows<dtype> rows, unsigned k, uint64_t* keys_out, uint32_t* places) {
  const Bound bound = find_bound(rows, k);
  __shared__ unsigned below_of[warps], equal_of[warps];
  unsigned below_before = 0, equal_before = 0;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, under = (1u << lane) - 1;
  uint64_t* to = keys_out + static_cast<int64_t>(blockIdx.x) * k;
  uint32_t* place_to = places + static_cast<int64_t>(blockIdx.x) * k;
  for_row(rows, [&](const uint64_t(&keys)[in_flight], int64_t at, int64_t end) {
    bool any = false;
#pragma unroll
    for (int u = 0; u < in_flight; ++u) any |= at + u * 32 < end && keys[u] <= bound.key;
    if (!__syncthreads_or(any)) return;
    unsigned belows[in_flight], equals[in_flight], below_count = 0, equal_count = 0;
#pragma unroll
    for (int u = 0; u < in_flight; ++u) {
      const bool valid = at + u * 32 < end;
      belows[u] = __ballot_sync(0xffffffffu, valid && keys[u] < bound.key);
      equals[u] = __ballot_sync(0xffffffffu, valid && keys[u] == bound.key);
      below_count += __popc(belows[u]);
      equal_count += __popc(equals[u]);
    }
    if (lane == 0) {
      below_of[warp] = below_count;
      equal_of[warp] = equal_count;
    }
    __syncthreads();
    unsigned b, e, all_below, all_equal;
    scan_warps(below_of, b, all_below);
    scan_warps(equal_of, e, all_equal);
    b += below_before;
    e += equal_before;
    below_before += all_below;
    equal_before += all_equal;
#pragma unroll
    for (int u = 0; u < in_flight; ++u) {
      const bool below = belows[u] >> lane & 1, equal = equals[u] >> lane & 1;
      const unsigned order = e + __popc(equals[u] & under);
      if (below || (equal && order < bound.wanted)) {
        const unsigned slot = below ? b + __popc(belows[u] & under) : k - bound.wanted + order;
        to[slot] = keys[u];
        place_to[slot] = static_cast<uint32_t>(at + u * 32);
      }
      b += __popc(belows[u]);
      e += __popc(equals[u]);
    }
  });
}

/// Calls f.operator()<dtype>() with a real dtype.
template <class F> void visit_keys(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8: return f.template operator()<DType::UInt8>();
    case DType::Int8: return f.template operator()<DType::Int8>();
    case DType::Int16: return f.template operator()<DType::Int16>();
    case DType::Int32: return f.template operator()<DType::Int32>();
    case DType::Int64: return f.template operator()<DType::Int64>();
    case DType::Float16: return f.template operator()<DType::Float16>();
    case DType::BFloat16: return f.template operator()<DType::BFloat16>();
    case DType::Float32: return f.template operator()<DType::Float32>();
    default: return f.template operator()<DType::Float64>();
  }
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

// A block goes through its row once per digit of a key: one row would keep one multiprocessor busy.
bool selects_first(int64_t rows, int64_t n, int64_t k) {
  return n > 2048 && n < INT32_MAX && k <= 2048 && 4 * k <= n && (rows >= 32 || n <= 65536);
}

void select_first(const Tensor& x, bool descending, const Tensor& values, const Tensor& indices) {
  const int64_t n = x.size(-1), k = values.size(-1), rows = values.numel() / k;
  const int bits = key_bits(x.dtype());
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  Tensor keys = scratch(8 * static_cast<size_t>(values.numel()), x.device());
  Tensor places = scratch(4 * static_cast<size_t>(values.numel()), x.device());
  uint32_t* chosen = data_of<uint32_t>(places);
  visit_keys(x.dtype(), [&]<DType dtype>() {
    const Rows<dtype> source{data_of(x), descending ? mask : 0, n};
    select_kernel<dtype><<<static_cast<unsigned>(rows), select_threads, 0, current_stream()>>>(
        source, static_cast<unsigned>(k), data_of<uint64_t>(keys), chosen);
  });
  check_launch();
  const SortedKeys sorted = sort_keys(keys, rows, k, bits);
  visit_size(itemsize(x.dtype()),
             [&]<class T>() { take<T>(x, chosen, sorted.places, values, indices); });
}

}  // namespace cresset::cuda
