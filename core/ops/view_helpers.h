// Making views that autograd knows of.
#pragma once

#include "core/autograd/autograd.h"

namespace cresset {

/// A view of x's storage, recorded as node `node` with derivative `backward`.
template <class F>
Tensor make_view(const char* op, const char* node, const Tensor& x, Dims sizes, Dims strides,
                 int64_t offset, F backward, ViewOrigin origin = ViewOrigin::Plain) {
  Tensor y = alias(x, std::move(sizes), std::move(strides), offset);
  mark_view(y, x, op, origin);
  if (wants_grad(x)) record(node, y, inputs(x), std::move(backward));
  return y;
}

}  // namespace cresset
