// Division of 32-bit numbers by a constant, as the walks of generated kernels do it.
#pragma once

#include <cstdint>

namespace cresset::cuda {

/// For n < 2^31: n / divisor = (umulhi(n, magic) + n) >> shift. Granlund and Montgomery, PLDI 1994.
inline void set_magic(uint32_t divisor, uint32_t& magic, uint32_t& shift) {
  shift = 0;
  while (shift < 32 && (uint64_t{1} << shift) < divisor) ++shift;
  magic = divisor == 0
              ? 0
              : static_cast<uint32_t>(
                    ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - divisor)) / divisor + 1);
}

}  // namespace cresset::cuda
