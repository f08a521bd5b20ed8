// The CUDA source of one reduction kernel.
#pragma once

#include <string>

#include "core/ops/reduce.h"

namespace cresset::cuda {

/// Everything that a reduction is compiled for; equal keys mean equal kernels.
struct ReduceProgram {
  ReduceOp op = ReduceOp::Sum;
  bool places = false;  ///< Max or Min with positions
  DType in = DType::Float32, out = DType::Float32;
  bool rows = true, run = false, wide_index = false;
  bool line = false;     ///< the reduced dims are one
  bool combine = false;  ///< the second kernel, which folds splits
  uint8_t pack = 1;
  uint8_t p_kind = 2;  ///< of Norm: 0, 1, 2; 3 infinity, 4 minus infinity, 5 any other

  uint64_t key() const {
    uint64_t k = 1;
    k = k << 4 | static_cast<uint64_t>(op);
    k = k << 4 | static_cast<uint64_t>(in);
    k = k << 4 | static_cast<uint64_t>(out);
    k = k << 4 | (places * 8u + rows * 4u + run * 2u + wide_index);
    k = k << 4 | pack;
    k = k << 4 | p_kind;
    k = k << 2 | (line * 2u + combine);
    return k | uint64_t{1} << 57;
  }
};

/// The program; its kernel is `reduce_kernel`, or `combine_kernel`.
std::string reduce_source(const ReduceProgram& program);
std::string reduce_body(const ReduceProgram& program);
/// Bytes of an accumulator, as the program has it.
size_t accumulator_bytes(const ReduceProgram& program);

}  // namespace cresset::cuda
