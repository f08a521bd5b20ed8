// The order-preserving unsigned key of an element.
#pragma once

#include "cuda/device.cuh"

namespace cresset::cuda {

/// Key from the bits of a float: NaN is the largest, -0 and 0 are equal.
__device__ __forceinline__ uint64_t float_key(uint64_t bits, int width, uint64_t infinity) {
  const uint64_t all = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  const uint64_t sign = uint64_t{1} << (width - 1), size = bits & (sign - 1);
  if (size > infinity) return all;
  if (size == 0) return sign;
  return bits & sign ? ~bits & all : bits | sign;
}

__device__ __forceinline__ uint64_t sort_key(const void* p, DType dtype, int64_t i) {
  switch (dtype) {
    case DType::Bool:
    case DType::UInt8: return static_cast<const uint8_t*>(p)[i];
    case DType::Int8: return static_cast<uint64_t>(static_cast<const int8_t*>(p)[i] + (1 << 7));
    case DType::Int16: return static_cast<uint64_t>(static_cast<const int16_t*>(p)[i] + (1 << 15));
    case DType::Int32:
      return static_cast<uint64_t>(static_cast<int64_t>(static_cast<const int32_t*>(p)[i]) +
                                   (int64_t{1} << 31));
    case DType::Int64:
      return static_cast<uint64_t>(static_cast<const int64_t*>(p)[i]) ^ (uint64_t{1} << 63);
    case DType::Float16: return float_key(static_cast<const uint16_t*>(p)[i], 16, 0x7c00);
    case DType::BFloat16: return float_key(static_cast<const uint16_t*>(p)[i], 16, 0x7f80);
    case DType::Float32: return float_key(static_cast<const uint32_t*>(p)[i], 32, 0x7f800000);
    default: return float_key(static_cast<const uint64_t*>(p)[i], 64, uint64_t{0x7ff0} << 48);
  }
}

}  // namespace cresset::cuda
