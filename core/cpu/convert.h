// Loads and stores between memory dtypes and the compute types of the elementwise loops.
#pragma once

#include "core/cpu/loops.h"
#include "core/tensor/dtype.h"

namespace cresset {

/// Reads n elements with a stride (in elements) into contiguous compute values.
using LoadFn = void (*)(const void* src, int64_t stride, void* dst, int64_t n);
/// Writes n contiguous compute values to memory with a stride (in elements).
using StoreFn = void (*)(const void* src, void* dst, int64_t stride, int64_t n);

LoadFn load_function(DType from, Compute to);
StoreFn store_function(Compute from, DType to);

/// The dtype whose memory layout a compute type has.
constexpr DType memory_dtype(Compute c) {
  constexpr DType types[] = {DType::Float32, DType::Float64, DType::Int64, DType::Complex64,
                             DType::Complex128};
  return types[static_cast<int>(c)];
}

}  // namespace cresset
