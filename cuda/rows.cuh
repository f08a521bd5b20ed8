// Rows of neighbouring elements, one per warp or block, read once and kept in shared memory.
#pragma once

#include "cuda/device.cuh"

namespace cresset::cuda {

/// `width` neighbouring elements, moved as one.
template <class T, int width> struct alignas(width * sizeof(T)) Pack { T v[width]; };
template <class T> inline constexpr int pack_width = 16 / sizeof(T);

/// Whether rows of n elements from these addresses can be moved in packs of 16 bytes.
template <class T> bool rows_aligned(int64_t n, std::initializer_list<const void*> pointers) {
  bool ok = n % pack_width<T> == 0;
  for (const void* p : pointers) ok = ok && reinterpret_cast<uintptr_t>(p) % 16 == 0;
  return ok;
}

/// Threads of a block and bytes of shared memory for rows of n elements, `kept` rows of which a
/// block holds; without `fits` rows are read again instead.
struct RowLaunch {
  int threads;
  size_t shared;
  bool fits;
};
template <class T> RowLaunch row_launch(int64_t n, int width, int kept) {
  const int64_t per_thread = 4 * width, most = 200 * 1024;
  const int64_t wanted = ((n + per_thread - 1) / per_thread + 31) / 32 * 32;
  const int64_t bytes = n * static_cast<int64_t>(sizeof(T)) * kept;
  const bool fits = bytes <= most;
  return {static_cast<int>(std::clamp<int64_t>(wanted, 64, 1024)),
          fits ? static_cast<size_t>(bytes) : 0, fits};
}

/// Calls f(element, its place) for a thread's share of a row: from memory the first time, with
/// `keep` also into `kept`, which holds what the same thread reads later.
template <int width, class T, class F>
__device__ __forceinline__ void first_pass(const T* __restrict__ from, int64_t n, bool keep,
                                           T* kept, F f) {
  using P = Pack<T, width>;
  const P* packs = reinterpret_cast<const P*>(from);
  P* to = reinterpret_cast<P*>(kept);
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < n / width; i += blockDim.x) {
    const P p = packs[i];
    if (keep) to[i] = p;
#pragma unroll
    for (int k = 0; k < width; ++k) f(widen(p.v[k]), i * width + k);
  }
}

/// to[i] = f(element, i) for a thread's share of a row that first_pass() has seen.
template <int width, class T, class F>
__device__ __forceinline__ void last_pass(const T* __restrict__ row, int64_t n, T* __restrict__ to,
                                          F f) {
  using P = Pack<T, width>;
  const P* packs = reinterpret_cast<const P*>(row);
  P* out = reinterpret_cast<P*>(to);
#pragma unroll 2
  for (int64_t i = threadIdx.x; i < n / width; i += blockDim.x) {
    P p = packs[i];
#pragma unroll
    for (int k = 0; k < width; ++k) p.v[k] = narrow<T>(f(widen(p.v[k]), i * width + k));
    out[i] = p;
  }
}

/// Dispatches a row kernel on the width of its packs: f.operator()<width>().
template <class T, class F> void visit_width(bool packed, F&& f) {
  if (packed)
    f.template operator()<pack_width<T>>();
  else
    f.template operator()<1>();
}

/// Elements that a warp's lanes hold in registers: f.operator()<per lane>() for n <= 1024.
template <class F> void visit_lane_count(int64_t n, F&& f) {
  if (n <= 64)
    f.template operator()<2>();
  else if (n <= 256)
    f.template operator()<8>();
  else
    f.template operator()<32>();
}
constexpr int64_t most_warp_row = 1024;
constexpr int warps_per_block = 4;

/// Warps of 32 lanes (x) and 4 rows (y) per block.
inline dim3 warp_rows_block() { return dim3(32, warps_per_block); }
inline unsigned warp_rows_grid(int64_t rows) { return blocks_for(rows, warps_per_block); }

}  // namespace cresset::cuda
