// Which norm is meant: a number, or one of those with a name.
#pragma once

#include "core/dispatch/decode.h"

namespace cresset {

enum class NormKind : uint8_t { Number, Frobenius, Nuclear, None };

template <> struct EnumNames<NormKind> {
  static constexpr const char* schema = "NormKind{number|fro|nuc|none}";
};

namespace ops {
/// Norm of matrices over two dims.
Tensor matrix_norm(const Tensor& x, NormKind kind, double ord, const Dims& dim, bool keepdim,
                   std::optional<DType> dtype);
}  // namespace ops

}  // namespace cresset
