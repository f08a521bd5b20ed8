// Texts from operators: the frame carries numbers, so that a text leaves as a tensor of bytes.
#pragma once

#include <cstring>
#include <string_view>

#include "core/tensor/tensor.h"

namespace cresset::ops {

/// The UTF-8 bytes as a uint8 tensor on the CPU.
inline Tensor text_tensor(std::string_view text) {
  Tensor bytes = empty(Dims{static_cast<int64_t>(text.size())}, {DType::UInt8, {}});
  if (!text.empty()) std::memcpy(bytes.data<uint8_t>(), text.data(), text.size());
  return bytes;
}

}  // namespace cresset::ops
