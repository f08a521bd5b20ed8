// The in-place form of an operator that has an out-of-place one.
#pragma once

#include "core/autograd/autograd.h"
#include "core/ops/ops.h"
#include "core/ops/overlap.h"

namespace cresset::ops {

/// `direct(self)` writes where nothing is recorded and self is contiguous; otherwise the result of
/// `compute()` is copied into self. `direct` must not read tensors that share self's memory.
template <class Direct, class Compute>
Tensor& write_in_place(const char* op, Tensor& self, bool recording, Direct direct,
                       Compute compute) {
  check_inplace(op, self, recording);
  check_no_self_overlap(op, self);
  if (recording || !self.is_contiguous()) return copy_(self, compute());
  GradMode off(false);
  direct(self);
  self.bump_version();
  return self;
}

/// `t`, or a copy of it where it shares memory with `self`.
inline Tensor apart_from(const Tensor& self, const Tensor& t) {
  if (t.impl()->storage.get() != self.impl()->storage.get()) return t;
  GradMode off(false);
  return clone(t, int64_t{0});
}

}  // namespace cresset::ops
