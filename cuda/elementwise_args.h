// The arguments of the generated elementwise kernels: read by the host and by NVRTC programs.
#pragma once

#include <cstdint>

namespace cresset::cuda {

constexpr int most_inputs = 5;
constexpr int most_dims = 8;
/// Threads of a block: of flat kernels, and of those that walk shapes.
constexpr int flat_threads = 128, shape_threads = 256;

/// Addresses, numbers and members of one launch; `numbers` are in the compute type.
struct RowArgs {
  void* out;
  const void* in[most_inputs];  ///< of a scalar operand: null, or where its one element lies
  int64_t n;                    ///< elements
  double params[4];
  double numbers[most_inputs][2];
};

/// The iteration space of a strided launch, innermost dim first; items are packs of elements.
template <class Index> struct Space {
  int rank;
  Index sizes[most_dims];
  uint32_t magic[most_dims];  ///< with `shift`, divides a 32-bit number by sizes[d]
  uint32_t shift[most_dims];
  Index strides[most_inputs + 1][most_dims];  ///< the output's last
  uint8_t splat[most_inputs];                 ///< the input's innermost stride is 0
};

}  // namespace cresset::cuda
