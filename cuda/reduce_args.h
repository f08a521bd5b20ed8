// The arguments of the generated reduction kernels: read by the host and by NVRTC programs.
#pragma once

#include <cstdint>

namespace cresset::cuda {

constexpr int reduce_dims = 8;

/// Dims in walking order, innermost first, with strides in elements of x and of y.
template <class Index> struct Walk {
  int rank;
  Index sizes[reduce_dims];
  uint32_t magic[reduce_dims];  ///< with `shift`, divides a 32-bit number by sizes[d]
  uint32_t shift[reduce_dims];
  Index in[reduce_dims];
  Index out[reduce_dims];
};

/// One reduction. Items are packs: of neighbouring outputs in the column kernel (`items` of them),
/// of neighbouring elements of a run in the row kernel.
template <class Index> struct ReduceArgs {
  const void* x;
  const void* center;
  void* y;
  void* indices;  ///< of extremes
  void* partial;  ///< one accumulator per split and output; null for a single split
  int64_t outputs;
  int64_t items;
  int64_t length;     ///< elements per output
  int64_t per_split;  ///< of the column kernel: elements per split
  double p, divisor;
  Walk<Index> kept, red;
};

}  // namespace cresset::cuda
