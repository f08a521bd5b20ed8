// The autograd state of a tensor.
#pragma once

#include "core/autograd/node.h"

namespace cresset {

/// How a view came about decides whether it may be written to while gradients are recorded.
enum class ViewOrigin : uint8_t { Plain, MultiOutput, NoGrad };

/// A view remembers its base, so that writes through either side reach the other's history.
struct ViewInfo : Pooled {
  Tensor base;
  ViewOrigin origin = ViewOrigin::Plain;
  /// Storage version at which the view's grad_fn was recorded.
  uint32_t version = 0;
  /// The view has another dtype than its base (real parts of complex numbers).
  bool reinterprets = false;
  const char* op = "";
};

struct AutogradMeta : Pooled {
  ~AutogradMeta();
  bool requires_grad = false;
  bool retains_grad = false;
  uint32_t output = 0;
  Ref<Node> grad_fn;
  Ref<AccumulateGrad> accumulator;
  Tensor grad;
  std::unique_ptr<ViewInfo> view;
  TensorImpl* owner = nullptr;
};

/// The state of `t`, created when missing.
AutogradMeta& autograd_meta(const Tensor& t);

}  // namespace cresset
