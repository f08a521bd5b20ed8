// Recording of operators for the backward pass, and the public entry points of autograd.
#pragma once

#include <array>
#include <initializer_list>
#include <utility>

#include "core/autograd/meta.h"

namespace cresset {

bool grad_enabled();

/// Switches gradient recording on this thread for the lifetime of the guard.
class GradMode {
 public:
  explicit GradMode(bool enabled);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  bool previous_;
};

/// Whether an operator on these inputs has to be recorded. Undefined tensors count as constants.
template <class... T> bool wants_grad(const T&... inputs) {
  return grad_enabled() && ((inputs.defined() && inputs.requires_grad()) || ...);
}
bool wants_grad(std::span<const Tensor> inputs);

/// A tensor kept for backward, checked for in-place changes when it is used.
class SavedTensor {
 public:
  SavedTensor() = default;
  /// Keeps an input of the operator.
  explicit SavedTensor(const Tensor& input);
  /// Keeps an output: without its grad_fn, which would be a reference cycle.
  static SavedTensor output(const Tensor& y, uint32_t index = 0);
  bool defined() const { return tensor_.defined(); }
  /// The tensor; `node` is the one that saved it. Throws Autograd when it was changed in place.
  Tensor unpack(Node& node) const;

 private:
  Tensor tensor_;
  uint32_t version_ = 0;
  uint32_t index_ = 0;
  bool is_output_ = false;
};

inline SavedTensor save(const Tensor& input) { return SavedTensor(input); }
inline SavedTensor save_output(const Tensor& y, uint32_t i = 0) {
  return SavedTensor::output(y, i);
}

/// What a derivative sees: gradients in, slots for gradients out.
class Backward {
 public:
  Backward(Node& node, std::span<const Tensor> grads, std::span<Tensor> out)
      : node_(node), grads_(grads), out_(out) {}
  /// Gradient of forward output i; zeros when nothing flowed into it.
  Tensor grad(size_t i = 0) const;
  bool has_grad(size_t i) const { return grads_[i].defined(); }
  /// Whether the gradient of forward input i is wanted.
  bool needs(size_t i) const { return static_cast<bool>(node_.next[i].node); }
  /// The gradient of forward input i, to be assigned.
  Tensor& operator[](size_t i) { return out_[i]; }
  Tensor operator()(const SavedTensor& s) const { return s.unpack(node_); }
  size_t inputs() const { return out_.size(); }

 private:
  Node& node_;
  std::span<const Tensor> grads_;
  std::span<Tensor> out_;
};

[[noreturn]] void fail_backward_twice(const char* node);

/// A node whose derivative is a function object `void(Backward&)`.
template <class F> class FunctionNode final : public Node {
 public:
  FunctionNode(const char* name, F f) : Node(name), f_(std::move(f)) {}
  void backward(std::span<const Tensor> grads, std::span<Tensor> out) override {
    if (!f_) fail_backward_twice(name_);
    Backward b(*this, grads, out);
    (*f_)(b);
  }
  void release_saved() override { f_.reset(); }

 private:
  std::optional<F> f_;
};

template <class... T> std::array<const Tensor*, sizeof...(T)> inputs(const T&... t) {
  return {&t...};
}

void link_inputs(Node& node, std::span<const Tensor* const> inputs);
void link_inputs(Node& node, std::span<const Tensor> inputs);
/// Makes `y` output number `y`'s position of `node`; `y` must be fresh.
void set_history(const Tensor& y, const Ref<Node>& node);

/// Records `y = op(inputs)`. `f` is called as `void(Backward&)`; see Note [Derivatives].
template <class In, class F> void record(const char* name, const Tensor& y, const In& in, F f) {
  Ref<Node> node(new FunctionNode<F>(name, std::move(f)));
  link_inputs(*node, in);
  set_history(y, node);
}
template <class In, class F>
void record(const char* name, std::span<const Tensor> ys, const In& in, F f) {
  Ref<Node> node(new FunctionNode<F>(name, std::move(f)));
  link_inputs(*node, in);
  for (const Tensor& y : ys) set_history(y, node);
}

/// The node that made `t`, or null for a leaf; brings the history of a view up to date.
Ref<Node> grad_fn(const Tensor& t);

/// Marks `view` as a view of `base` for later in-place writes on either.
void mark_view(const Tensor& view, const Tensor& base, const char* op,
               ViewOrigin origin = ViewOrigin::Plain);

/// Throws Autograd when `self` may not be written to while gradients are recorded (a leaf, a view
/// of a leaf, an output of an operator with several outputs). Call before any in-place write;
/// `recording` = the write itself has to be recorded.
void check_inplace(const char* op, const Tensor& self, bool recording);
/// After an in-place write: `self` is now the output of `node` (whose input 0 was `self`).
void rebase_history(const Tensor& self, Ref<Node> node);

/// torch.autograd.backward and torch.autograd.grad.
struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;
};
void run_backward(std::span<const Tensor> roots, std::span<const Tensor> grads,
                  std::span<const Tensor> inputs, BackwardOptions options);
std::vector<Tensor> run_grad(std::span<const Tensor> roots, std::span<const Tensor> grads,
                             std::span<const Tensor> inputs, BackwardOptions options);

}  // namespace cresset

// Note [Derivatives]
// A derivative is written with operators, so that it can be differentiated again. Where a fused
// kernel is faster it may be used when !grad_enabled(): the engine records only for create_graph.
// The engine sums a gradient over broadcast dims and casts it to the input's dtype (the real part,
// for a real input), so a derivative need not.
