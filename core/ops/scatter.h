// Kernel table of gather and scatter.
#pragma once

#include "core/dispatch/decode.h"
#include "core/ops/launch.h"

namespace cresset {

enum class ScatterOp : uint8_t { Assign, Sum, Prod, Amax, Amin };

/// `index` (int64, checked) may be strided; its dims are at most those of the others but in `dim`.
struct ScatterKernels {
  /// out[..., i, ...] = self[..., index[..., i, ...], ...]; out contiguous, of index's shape.
  void (*gather)(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out);
  /// self[..., index[..., i, ...], ...] op= src[..., i, ...], in row-major order of the index.
  void (*scatter)(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                  ScatterOp op);
};

/// What scatter(reduce=) takes.
enum class ScatterMode : uint8_t { none, add, multiply };
template <> struct EnumNames<ScatterMode> {
  static constexpr const char* schema = "ScatterMode{none|add|multiply}";
};

enum class ReduceMode : uint8_t { sum, prod, mean, amax, amin };
template <> struct EnumNames<ReduceMode> {
  static constexpr const char* schema = "ReduceMode{sum|prod|mean|amax|amin}";
};

}  // namespace cresset
