// Fills a tensor with random numbers in the order in which PyTorch draws them.
#pragma once

#include "core/ops/overlap.h"
#include "core/ops/random.h"
#include "core/ops/shape.h"
#include "core/tensor/distributions.h"

namespace cresset::ops {

/// Calls `fill(generator, data, n, contiguous)` on memory that is then self's, in memory order.
template <class F> void draw_into(const Tensor& self, GeneratorRef ref, F&& fill) {
  if (self.is_meta()) return;
  std::shared_ptr<Generator> generator = generator_of(ref);
  if (is_dense(self)) {
    fill(*generator, self.data<void>(), self.numel(), self.is_contiguous());
    return;
  }
  Tensor dense = empty_in_format("random", self, options_of(self), std::nullopt);
  fill(*generator, dense.data<void>(), dense.numel(), false);
  copy_raw(dense, self);
}

/// An in-place random operator; its derivative is zero.
template <class F>
Tensor& draw_in_place(const char* op, const char* node_name, Tensor& self, GeneratorRef generator,
                      F&& fill) {
  bool recording = wants_grad(self);
  check_inplace(op, self, recording);
  check_no_self_overlap(op, self);
  Ref<Node> node;
  if (recording) {
    auto backward = [](Backward& b) { b[0] = zeros_like(b.grad()); };
    node = Ref<Node>(new FunctionNode<decltype(backward)>(node_name, backward));
    link_inputs(*node, inputs(self));
  }
  draw_into(self, generator, std::forward<F>(fill));
  self.bump_version();
  if (node) rebase_history(self, node);
  return self;
}

}  // namespace cresset::ops
