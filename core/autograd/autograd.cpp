// Recording: grad mode, saved tensors, history of outputs, views and in-place writes.
#include "core/autograd/autograd.h"

#include "core/ops/ops.h"

namespace cresset {
namespace {
thread_local bool grad_enabled_ = true;
thread_local uint64_t next_sequence = 0;
constexpr uint64_t run_first = UINT64_MAX;
}  // namespace

bool grad_enabled() { return grad_enabled_; }
GradMode::GradMode(bool enabled) : previous_(std::exchange(grad_enabled_, enabled)) {}
GradMode::~GradMode() { grad_enabled_ = previous_; }

bool wants_grad(std::span<const Tensor> inputs) {
  if (!grad_enabled_) return false;
  for (const Tensor& t : inputs)
    if (t.defined() && t.requires_grad()) return true;
  return false;
}

// ---- nodes

Node::Node(const char* name) : name_(name), sequence_(next_sequence++) {}

// A chain of 200,000 nodes must not be freed by recursion: nodes that die while another one is
// being destroyed wait in a queue.
void Node::destroy() noexcept {
  thread_local std::vector<Node*>* pending = nullptr;
  if (pending) {
    pending->push_back(this);
    return;
  }
  std::vector<Node*> queue{this};
  pending = &queue;
  while (!queue.empty()) {
    Node* node = queue.back();
    queue.pop_back();
    delete node;
  }
  pending = nullptr;
}

AccumulateGrad::AccumulateGrad(TensorImpl* v) : Node("AccumulateGrad"), variable(v) {
  sequence_ = run_first;
  outputs.push_back({v->sizes, v->dtype, v->storage->device()});
}

namespace {

// A gradient whose memory nobody else can reach may become .grad itself: its only holder is the
// engine, or it is a view of a base that only the view holds.
bool may_steal(const Tensor& g) {
  if (grad_enabled() || g.ref()->use_count() > 1 || !g.is_contiguous()) return false;
  const AutogradMeta* m = g.impl()->autograd;
  const uint32_t holders = g.impl()->storage->use_count();
  if (!m || !m->view) return holders == 1;
  return holders == 2 && m->view->base.ref()->use_count() == 1;
}

}  // namespace

void AccumulateGrad::backward(std::span<const Tensor> grads, std::span<Tensor>) {
  if (!variable || !grads[0].defined()) return;
  Tensor& grad = variable->autograd->grad;
  const Tensor& g = grads[0];
  if (!grad.defined()) {
    grad = may_steal(g) ? alias(g) : ops::clone(g, std::nullopt);
    if (!grad_enabled() && grad.requires_grad()) grad = ops::detach(grad);
  } else if (grad_enabled()) {
    grad = ops::add(grad, g);
  } else {
    ops::add_(grad, g);
  }
}

// ---- tensor state

AutogradMeta::~AutogradMeta() {
  if (accumulator) accumulator->variable = nullptr;
  if (retains_grad && grad_fn)
    std::erase_if(grad_fn->retained, [&](auto& r) { return r.second == owner; });
}

AutogradMeta& autograd_meta(const Tensor& t) {
  TensorImpl* impl = t.impl();
  if (!impl->autograd) {
    impl->autograd = new AutogradMeta;
    impl->autograd->owner = impl;
  }
  return *impl->autograd;
}

bool Tensor::requires_grad() const {
  const AutogradMeta* m = impl_->autograd;
  if (!m) return false;
  if (m->requires_grad || m->grad_fn) return true;
  return m->view && m->view->origin != ViewOrigin::NoGrad && m->view->base.requires_grad() &&
         (is_floating() || is_complex());
}

void Tensor::set_requires_grad(bool on) const {
  CHECK(!on || is_floating() || is_complex(), Autograd,
        "requiresGrad_: only floating and complex tensors can require gradients, got ", dtype());
  if (!on && !requires_grad()) return;
  CHECK(on || !grad_fn(*this), Autograd,
        "requiresGrad_: you can only change requires_grad flags of leaf tensors; use detach()");
  autograd_meta(*this).requires_grad = on;
}

Ref<Node> gradient_accumulator(const Tensor& leaf) {
  AutogradMeta& m = autograd_meta(leaf);
  if (!m.accumulator) m.accumulator = make_ref<AccumulateGrad>(leaf.impl());
  return m.accumulator;
}

Edge gradient_edge(const Tensor& t) {
  if (!t.defined() || !t.impl()->autograd) return {};
  if (Ref<Node> fn = grad_fn(t)) return {fn, t.impl()->autograd->output};
  if (t.impl()->autograd->requires_grad) return {gradient_accumulator(t), 0};
  return {};
}

void link_inputs(Node& node, std::span<const Tensor* const> inputs) {
  node.next.reserve(inputs.size());
  for (const Tensor* t : inputs) node.next.push_back(gradient_edge(*t));
}

void link_inputs(Node& node, std::span<const Tensor> inputs) {
  node.next.reserve(inputs.size());
  for (const Tensor& t : inputs) node.next.push_back(gradient_edge(t));
}

void set_history(const Tensor& y, const Ref<Node>& node) {
  uint32_t index = static_cast<uint32_t>(node->outputs.size());
  node->outputs.push_back({y.sizes(), y.dtype(), y.device()});
  if (!y.is_floating() && !y.is_complex()) return;
  AutogradMeta& m = autograd_meta(y);
  m.grad_fn = node;
  m.output = index;
}

// ---- saved tensors

SavedTensor::SavedTensor(const Tensor& input) : tensor_(input) {
  if (input.defined()) version_ = input.version();
}

SavedTensor SavedTensor::output(const Tensor& y, uint32_t index) {
  SavedTensor s(alias(y));
  s.is_output_ = true;
  s.index_ = index;
  return s;
}

Tensor SavedTensor::unpack(Node& node) const {
  if (!tensor_.defined()) return tensor_;
  CHECK(tensor_.version() == version_, Autograd, node.name(),
        ": one of the tensors needed for gradient computation has been modified by an in-place "
        "operation: ",
        tensor_.dtype(), " ", tensor_.sizes(), " is at version ", tensor_.version(),
        "; expected version ", version_, " instead");
  if (!is_output_ || !grad_enabled()) return tensor_;
  Tensor y = alias(tensor_);
  AutogradMeta& m = autograd_meta(y);
  m.grad_fn = Ref<Node>(&node);
  m.output = index_;
  return y;
}

Tensor Backward::grad(size_t i) const {
  if (grads_[i].defined()) return grads_[i];
  const OutputInfo& o = node_.outputs[i];
  return ops::zeros(o.sizes, {o.dtype, o.device});
}

void fail_backward_twice(const char* node) {
  fail(ErrorKind::Autograd, node,
       ": tried to run backward through the graph a second time, but its saved tensors have "
       "already been freed; pass { retainGraph: true } to the first backward or grad call");
}

}  // namespace cresset
