// Graph nodes: what runs in the backward pass, and the edges between them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace cresset {

class Node;

/// Where a gradient goes: input `input` of `node`; a null node means no gradient is wanted.
struct Edge {
  Ref<Node> node;
  uint32_t input = 0;
};

/// What the engine must know of a forward output: a gradient for it has this shape and dtype.
struct OutputInfo {
  Dims sizes;
  DType dtype = DType::Float32;
  Device device = {};
};

/// Runs on the gradient of one forward output before the node sees it; may replace it.
using GradientHook = std::function<Tensor(const Tensor&)>;

/// One recorded operation. Subclasses hold what the derivative needs.
class Node : public RefCounted {
 public:
  explicit Node(const char* name);

  /// Turns gradients of the forward outputs into gradients of the forward inputs.
  /// `grads` may hold undefined tensors (zero); undefined results mean zero.
  virtual void backward(std::span<const Tensor> grads, std::span<Tensor> out) = 0;
  /// Drops what was saved; a second backward is then an error.
  virtual void release_saved() {}

  const char* name() const { return name_; }
  /// PyTorch runs later recorded nodes first.
  uint64_t sequence() const { return sequence_; }

  PoolVector<Edge> next;
  PoolVector<OutputInfo> outputs;
  std::vector<std::pair<uint32_t, GradientHook>> hooks;
  /// Non-leaf tensors that asked to keep their gradient, by output.
  std::vector<std::pair<uint32_t, TensorImpl*>> retained;
  /// Slot of the node in the running backward pass (a hint, verified by the engine).
  uint32_t slot = 0;

 protected:
  void destroy() noexcept override;
  const char* name_;
  uint64_t sequence_;
};

/// Adds gradients to a leaf's `.grad`. Runs before everything else that is ready.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(TensorImpl* variable);
  void backward(std::span<const Tensor> grads, std::span<Tensor> out) override;
  /// Null once the tensor is gone: nobody could read the gradient.
  TensorImpl* variable;
};

/// Creates and keeps the accumulator of a leaf that requires grad.
Ref<Node> gradient_accumulator(const Tensor& leaf);
/// The edge along which a gradient of `t` flows; null when `t` needs none.
Edge gradient_edge(const Tensor& t);

}  // namespace cresset
