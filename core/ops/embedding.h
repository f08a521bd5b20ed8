// Kernel table of the embeddings.
#pragma once

#include "core/dispatch/decode.h"
#include "core/ops/launch.h"

namespace cresset {

enum class BagMode : uint8_t { mean, sum, max };
template <> struct EnumNames<BagMode> {
  static constexpr const char* schema = "BagMode{mean|sum|max}";
};

struct EmbeddingKernels {
  /// Scales the indexed rows of the contiguous 2-d weight whose p-norm is above max_norm.
  void (*limit_norm)(const Tensor& weight, const Tensor& index, double max_norm, double p);
  /// best[bag[i], c] = the index[i] with the first largest weight[index[i], c]; -1 for empty bags
  /// on entry. A negative index or bag is skipped.
  void (*bag_argmax)(const Tensor& weight, const Tensor& index, const Tensor& bag,
                     const Tensor& best);
};

}  // namespace cresset
