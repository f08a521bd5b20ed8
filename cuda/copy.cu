// Copies of strided memory: 16-byte runs where both sides have them, tiles where they are turned.
#include "core/ops/copy_kernels.h"

#include <limits>

#include "cuda/launch.h"
#include "cuda/walk.cuh"

namespace cresset::cuda {
namespace {

constexpr int tile = 32, tile_rows = 8;
constexpr unsigned threads = 256;

template <class F> void visit_size(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    case 8: return f.template operator()<uint2>();
    default: return f.template operator()<uint4>();
  }
}

template <class T, class Index>
__global__ void copy_items(T* to, const T* from, int64_t n,
                           const __grid_constant__ Walk<Index> walk) {
  const int64_t item = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= n) return;
  const Offsets<Index> at = locate(walk, static_cast<Index>(item));
  to[at.out] = from[at.in];
}

/// Two dims are turned: `rows` has stride 1 in the source, `cols` in the target.
struct Turn {
  int64_t rows, cols, to_row, from_col;
  int64_t tiles_down, tiles_across;
};

template <class T, class Index>
__global__ void copy_tiles(T* to, const T* from, Turn turn,
                           const __grid_constant__ Walk<Index> outer) {
  __shared__ T part[tile][tile + 1];
  const int64_t tiles = turn.tiles_down * turn.tiles_across;
  const int64_t plane = blockIdx.x / tiles, place = blockIdx.x % tiles;
  const Offsets<Index> at = locate(outer, static_cast<Index>(plane));
  const int64_t row = place / turn.tiles_across * tile, col = place % turn.tiles_across * tile;
  to += at.out;
  from += at.in;
  for (int y = threadIdx.y; y < tile; y += tile_rows)
    if (row + threadIdx.x < turn.rows && col + y < turn.cols)
      part[y][threadIdx.x] = from[(row + threadIdx.x) + (col + y) * turn.from_col];
  __syncthreads();
  for (int y = threadIdx.y; y < tile; y += tile_rows)
    if (row + y < turn.rows && col + threadIdx.x < turn.cols)
      to[(row + y) * turn.to_row + (col + threadIdx.x)] = part[threadIdx.x][y];
}

/// A copy in the making: dims innermost first, by rising stride of the target.
struct Plan {
  char* to;
  const char* from;
  Dims sizes, out, in;
  int64_t bytes;  // of an element
};

void add_dim(Plan& p, int64_t size, int64_t out, int64_t in) {
  if (size == 1) return;
  size_t at = 0;
  while (at < p.sizes.size() && p.out[at] <= out) ++at;
  p.sizes.insert(at, size);
  p.out.insert(at, out);
  p.in.insert(at, in);
}

void collapse(Plan& p) {
  size_t kept = 0;
  for (size_t d = 0; d < p.sizes.size(); ++d) {
    if (kept > 0 && p.out[d] == p.out[kept - 1] * p.sizes[kept - 1] &&
        p.in[d] == p.in[kept - 1] * p.sizes[kept - 1]) {
      p.sizes[kept - 1] *= p.sizes[d];
      continue;
    }
    p.sizes[kept] = p.sizes[d], p.out[kept] = p.out[d], p.in[kept] = p.in[d];
    ++kept;
  }
  p.sizes.resize(kept), p.out.resize(kept), p.in.resize(kept);
}

int64_t count(const Dims& sizes) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return n;
}

// Pairs of neighbouring elements become one of twice the size, up to 16 bytes.
void widen(Plan& p) {
  while (p.bytes < 16 && !p.sizes.empty() && p.out[0] == 1 && p.in[0] == 1 && p.sizes[0] % 2 == 0) {
    const auto wide = static_cast<uintptr_t>(2 * p.bytes);
    if (reinterpret_cast<uintptr_t>(p.to) % wide || reinterpret_cast<uintptr_t>(p.from) % wide)
      return;
    for (size_t d = 1; d < p.sizes.size(); ++d)
      if (p.out[d] % 2 || p.in[d] % 2) return;
    p.bytes *= 2;
    p.sizes[0] /= 2;
    for (size_t d = 1; d < p.sizes.size(); ++d) p.out[d] /= 2, p.in[d] /= 2;
  }
}

bool fits_32_bits(const Plan& p) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  int64_t out = 0, in = 0;
  for (size_t d = 0; d < p.sizes.size(); ++d) {
    out += (p.sizes[d] - 1) * std::abs(p.out[d]);
    in += (p.sizes[d] - 1) * std::abs(p.in[d]);
  }
  return out <= limit && in <= limit && count(p.sizes) <= limit;
}

template <class T, class Index> void run_items(const Plan& p) {
  const int64_t n = count(p.sizes);
  start(copy_items<T, Index>, blocks_for(n, threads), threads, 0, reinterpret_cast<T*>(p.to),
        reinterpret_cast<const T*>(p.from), n, make_walk<Index>(p.sizes, p.in, p.out));
}

template <class T, class Index> void run_tiles(const Plan& p, size_t turned) {
  Turn turn = {p.sizes[turned], p.sizes[0], p.out[turned], p.in[0], 0, 0};
  turn.tiles_down = (turn.rows + tile - 1) / tile;
  turn.tiles_across = (turn.cols + tile - 1) / tile;
  Dims sizes, in, out;
  for (size_t d = 1; d < p.sizes.size(); ++d) {
    if (d == turned) continue;
    sizes.push_back(p.sizes[d]);
    in.push_back(p.in[d]);
    out.push_back(p.out[d]);
  }
  const int64_t blocks = count(sizes) * turn.tiles_down * turn.tiles_across;
  start(copy_tiles<T, Index>, dim3(static_cast<unsigned>(blocks)), dim3(tile, tile_rows), 0,
        reinterpret_cast<T*>(p.to), reinterpret_cast<const T*>(p.from), turn,
        make_walk<Index>(sizes, in, out));
}

// The dim along which the source is contiguous, where that pays: 0 when there is none.
size_t turned_dim(const Plan& p) {
  if (p.sizes.size() < 2 || p.out[0] != 1 || p.in[0] == 1 || p.in[0] == 0 || p.sizes[0] < 8)
    return 0;
  for (size_t d = 1; d < p.sizes.size(); ++d)
    if (p.in[d] == 1 && p.sizes[d] >= 8) return d;
  return 0;
}

void run(Plan p) {
  const int64_t n = count(p.sizes);
  if (n == 0) return;
  collapse(p);
  const bool block = p.sizes.empty() || (p.sizes.size() == 1 && p.out[0] == 1 && p.in[0] == 1);
  if (block) {
    CUDA_CHECK(cudaMemcpyAsync(p.to, p.from, static_cast<size_t>(n * p.bytes),
                               cudaMemcpyDeviceToDevice, current_stream()));
    return;
  }
  if (p.sizes.size() > reduce_dims) {
    // More dims than a kernel walks: one launch per index of the outermost.
    const size_t last = p.sizes.size() - 1;
    Plan part = p;
    part.sizes.resize(last), part.out.resize(last), part.in.resize(last);
    for (int64_t i = 0; i < p.sizes[last]; ++i) {
      part.to = p.to + i * p.out[last] * p.bytes;
      part.from = p.from + i * p.in[last] * p.bytes;
      run(part);
    }
    return;
  }
  const size_t turned = turned_dim(p);
  if (!turned) widen(p);
  const bool narrow = fits_32_bits(p);
  visit_size(p.bytes, [&]<class T>() {
    if (turned)
      narrow ? run_tiles<T, int32_t>(p, turned) : run_tiles<T, int64_t>(p, turned);
    else
      narrow ? run_items<T, int32_t>(p) : run_items<T, int64_t>(p);
  });
}

void strided(StridedCopy c) {
  Plan p{c.to, c.from, {}, {}, {}, c.size};
  for (size_t d = c.sizes.size(); d-- > 0;)
    add_dim(p, c.sizes[d], c.to_strides[d], c.from_strides[d]);
  run(p);
}

template <class T>
__global__ void keep_triangle(T* to, const T* from, int64_t n, int64_t rows, int64_t cols,
                              int64_t diagonal, bool upper) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int64_t col = i % cols, row = i / cols % rows;
  const bool keep = upper ? col - row >= diagonal : col - row <= diagonal;
  to[i] = keep ? from[i] : T{};
}

void triangle(const Tensor& from, const Tensor& to, int64_t diagonal, bool upper) {
  const int64_t n = to.numel();
  if (n == 0) return;
  visit_size(static_cast<int64_t>(itemsize(to.dtype())), [&]<class T>() {
    start(keep_triangle<T>, blocks_for(n, threads), threads, 0, data_of<T>(to), data_of<T>(from), n,
          to.size(-2), to.size(-1), diagonal, upper);
  });
}

}  // namespace

template <> const CopyKernels& cuda_table<CopyKernels>() {
  static constexpr CopyKernels table = {.strided = strided, .triangle = triangle};
  return table;
}

}  // namespace cresset::cuda
