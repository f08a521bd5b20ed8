// Walks of strided memory in .cu files: linear items to offsets.
#pragma once

#include <cstdint>

#include "core/base/small_vector.h"
#include "core/tensor/tensor.h"
#include "cuda/divide.h"
#include "cuda/reduce_args.h"

namespace cresset::cuda {

template <class Index> struct Offsets { Index in, out; };

/// The offsets of a linear item below 2^31 (32-bit walks) or any (64-bit walks).
template <class Index>
__device__ inline Offsets<Index> locate(const Walk<Index>& walk, Index item) {
  Offsets<Index> o = {0, 0};
#pragma unroll 1
  for (int d = 0; d < walk.rank; ++d) {
    Index quotient = 0;
    if (d + 1 < walk.rank) {
      if constexpr (sizeof(Index) == 4)
        quotient = static_cast<Index>(
            (__umulhi(static_cast<uint32_t>(item), walk.magic[d]) + static_cast<uint32_t>(item)) >>
            walk.shift[d]);
      else
        quotient = item / walk.sizes[d];
    }
    const Index at = item - quotient * walk.sizes[d];
    item = quotient;
    o.in += at * walk.in[d];
    o.out += at * walk.out[d];
  }
  return o;
}

/// Sizes and strides, innermost first; at most reduce_dims of them.
template <class Index> Walk<Index> make_walk(const Dims& sizes, const Dims& in, const Dims& out) {
  Walk<Index> w = {};
  w.rank = static_cast<int>(sizes.size());
  for (int d = 0; d < w.rank; ++d) {
    w.sizes[d] = static_cast<Index>(sizes[d]);
    set_magic(static_cast<uint32_t>(sizes[d]), w.magic[d], w.shift[d]);
    w.in[d] = static_cast<Index>(in[d]);
    w.out[d] = static_cast<Index>(out[d]);
  }
  return w;
}

}  // namespace cresset::cuda
