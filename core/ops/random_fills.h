// Fills a tensor with random numbers in the order in which PyTorch draws them.
#pragma once

#include "core/ops/overlap.h"
#include "core/ops/random.h"
#include "core/ops/shape.h"
#include "core/tensor/distributions.h"

namespace cresset::ops {

/// Calls `kernel(dense, generator)` with a tensor that is then self, in its order of memory.
template <class K> void draw_on_gpu(const Tensor& self, GeneratorRef ref, K&& kernel) {
  std::shared_ptr<PhiloxGenerator> generator = philox_of(ref, self.device());
  if (self.numel() == 0) return;
  if (is_dense(self)) return kernel(self, *generator);
  Tensor dense = empty_in_format("random", self, options_of(self), std::nullopt);
  kernel(dense, *generator);
  copy_raw(dense, self);
}

/// Calls `fill(generator, data, n, contiguous)` on memory that is then self's, in memory order. On
/// a GPU the kernel draws what `draw` says; the fill of nothing checks dtype and parameters there.
template <class F>
void draw_into(const Tensor& self, GeneratorRef ref, const Draw& draw, F&& fill) {
  if (self.is_meta()) return;
  if (self.device().is_cuda()) {
    fill(default_generator(), nullptr, 0, true);
    return draw_on_gpu(self, ref, [&](const Tensor& dense, PhiloxGenerator& generator) {
      launch("random", self.device(), &RandomKernels::fill, dense, draw, generator);
    });
  }
  std::shared_ptr<Generator> generator = generator_of(ref);
  if (is_dense(self)) {
    fill(*generator, self.data<void>(), self.numel(), self.is_contiguous());
    return;
  }
  Tensor dense = empty_in_format("random", self, options_of(self), std::nullopt);
  fill(*generator, dense.data<void>(), dense.numel(), false);
  copy_raw(dense, self);
}

/// An in-place random operator: `write(self)` draws; its derivative is zero.
template <class W>
Tensor& write_random(const char* op, const char* node_name, Tensor& self, W&& write) {
  bool recording = wants_grad(self);
  check_inplace(op, self, recording);
  check_no_self_overlap(op, self);
  Ref<Node> node;
  if (recording) {
    auto backward = [](Backward& b) { b[0] = zeros_like(b.grad()); };
    node = Ref<Node>(new FunctionNode<decltype(backward)>(node_name, backward));
    link_inputs(*node, inputs(self));
  }
  write(self);
  self.bump_version();
  if (node) rebase_history(self, node);
  return self;
}

template <class F>
Tensor& draw_in_place(const char* op, const char* node_name, Tensor& self, GeneratorRef generator,
                      const Draw& draw, F&& fill) {
  return write_random(op, node_name, self, [&](const Tensor& t) {
    draw_into(t, generator, draw, std::forward<F>(fill));
  });
}

}  // namespace cresset::ops
