// Memory overlap: writes into shared memory must not depend on the order of the loop.
#pragma once

#include "core/tensor/tensor.h"

namespace cresset {

/// Throws Value when two elements of `self` share memory (an expanded tensor).
inline void check_no_self_overlap(const char* op, const Tensor& self) {
  CHECK(!may_overlap_itself(self), Value, op,
        ": more than one element of the written-to tensor refers to a single memory location; "
        "clone() it first");
}

/// Whether `a` and `b` share memory without being element for element the same view.
inline bool partial_overlap(const Tensor& a, const Tensor& b) {
  if (a.impl()->storage.get() != b.impl()->storage.get()) return false;
  if (a.numel() == 0 || b.numel() == 0) return false;
  if (a.offset() == b.offset() && a.sizes() == b.sizes() && a.strides() == b.strides() &&
      a.dtype() == b.dtype())
    return false;
  auto range = [](const Tensor& t) {
    int64_t last = 0;
    for (size_t i = 0; i < t.sizes().size(); ++i) last += (t.sizes()[i] - 1) * t.strides()[i];
    int64_t size = static_cast<int64_t>(itemsize(t.dtype()));
    return std::pair(t.offset() * size, (t.offset() + last + 1) * size);
  };
  auto [a_lo, a_hi] = range(a);
  auto [b_lo, b_hi] = range(b);
  return a_lo < b_hi && b_lo < a_hi;
}

}  // namespace cresset
