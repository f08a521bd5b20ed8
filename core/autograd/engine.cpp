// The backward pass: counts dependencies, then runs nodes as their gradients become complete.
#include <algorithm>
#include <queue>

#include "core/autograd/autograd.h"
#include "core/ops/ops.h"

namespace cresset {
namespace {

/// One backward pass over the graph below some roots. Iterative: depth costs heap, not stack.
class GraphTask {
 public:
  GraphTask(std::span<const Tensor> roots, std::span<const Tensor> inputs, bool accumulate,
            BackwardOptions options)
      : accumulate_(accumulate), options_(options) {
    for (const Tensor& r : roots) roots_.push_back(gradient_edge(r));
    for (const Tensor& t : inputs) {
      Edge e = gradient_edge(t);
      CHECK(e.node, Autograd,
            "grad: one of the inputs does not require grad; call requiresGrad_() on it first");
      captures_.push_back({e.node.get(), e.input, {}});
      held_.push_back(e.node);
    }
    count_dependencies();
    if (!captures_.empty()) mark_needed();
  }

  void run(std::span<const Tensor> grads) {
    for (size_t i = 0; i < roots_.size(); ++i)
      if (roots_[i].node) deliver(roots_[i], grads[i]);
    for (const Edge& r : roots_)
      if (r.node && state(r.node.get()).waiting == 0) push(r.node.get());
    PoolVector<Tensor> out;
    while (!ready_.empty()) {
      Ref<Node> node(ready_.top().second);
      ready_.pop();
      run_node(*node, out);
    }
  }

  std::vector<Tensor> captured() {
    std::vector<Tensor> result;
    for (Capture& c : captures_) result.push_back(std::move(c.grad));
    return result;
  }

 private:
  struct State {
    Node* node;
    int64_t waiting = 0;
    bool needed = true;
    bool queued = false;
    PoolVector<Tensor> grads;
  };
  struct Capture {
    Node* node;
    uint32_t output;
    Tensor grad;
  };

  // The slot kept in the node is only a hint: a nested pass over the same node overwrites it.
  State* find(Node* node) {
    if (node->slot < states_.size() && states_[node->slot].node == node)
      return &states_[node->slot];
    if (!nested_) return nullptr;
    auto it = std::find_if(states_.begin(), states_.end(),
                           [&](const State& s) { return s.node == node; });
    return it == states_.end() ? nullptr : &*it;
  }
  State& state(Node* node) { return *find(node); }

  bool visit(Node* node) {
    if (find(node)) return false;
    node->slot = static_cast<uint32_t>(states_.size());
    states_.push_back({node, 0, true, false, {}});
    return true;
  }

  void count_dependencies() {
    PoolVector<Node*> stack;
    for (const Edge& r : roots_)
      if (r.node && visit(r.node.get())) stack.push_back(r.node.get());
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      for (const Edge& e : node->next) {
        if (!e.node) continue;
        if (visit(e.node.get())) stack.push_back(e.node.get());
        ++state(e.node.get()).waiting;
      }
    }
    nested_ = true;
  }

  // Only nodes above a captured input have to run. Parents come before children in `states_` only
  // loosely, so walk in an order of falling dependency: a depth-first post-order.
  void mark_needed() {
    for (State& s : states_) s.needed = false;
    for (const Capture& c : captures_)
      if (State* s = find(c.node)) s->needed = true;
    std::vector<char> done(states_.size(), 0);
    std::vector<std::pair<Node*, size_t>> stack;
    for (const Edge& r : roots_) {
      if (!r.node || done[index(r.node.get())]) continue;
      done[index(r.node.get())] = 1;
      stack.push_back({r.node.get(), 0});
      while (!stack.empty()) {
        auto& [node, i] = stack.back();
        if (i == node->next.size()) {
          State& s = state(node);
          for (const Edge& e : node->next)
            if (e.node && state(e.node.get()).needed) s.needed = true;
          stack.pop_back();
          continue;
        }
        Node* child = node->next[i++].node.get();
        if (child && !done[index(child)]) {
          done[index(child)] = 1;
          stack.push_back({child, 0});
        }
      }
    }
  }
  size_t index(Node* node) { return static_cast<size_t>(&state(node) - states_.data()); }

  void push(Node* node) {
    State& s = state(node);
    if (s.queued) return;
    s.queued = true;
    ready_.push({node->sequence(), node});
  }

  void deliver(const Edge& edge, const Tensor& grad) {
    State& s = state(edge.node.get());
    if (s.grads.empty()) s.grads.resize(edge.node->outputs.size());
    if (!grad.defined()) return;
    Tensor& slot = s.grads[edge.input];
    slot = slot.defined() ? ops::add(slot, grad) : grad;
  }

  // Fits a gradient to the forward input it belongs to: sums broadcast dims, drops the imaginary
  // part for real inputs, casts.
  static Tensor fitted(const Tensor& g, const OutputInfo& want) {
    Tensor r = g;
    // Only a number on the CPU mixes with tensors elsewhere: its gradient goes back to it.
    if (!(r.device() == want.device) && want.device.is_cpu())
      r = ops::on_host(ops::sum_to_size(r, want.sizes));
    if (!(r.sizes() == want.sizes)) r = ops::sum_to_size(r, want.sizes);
    if (r.dtype() == want.dtype) return r;
    if (r.is_complex() && !is_complex(want.dtype)) r = ops::real(r);
    return ops::to_dtype(r, want.dtype);
  }

  void run_hooks(Node& node, PoolVector<Tensor>& grads) {
    for (auto& [output, hook] : node.hooks) {
      if (!grads[output].defined()) continue;
      Tensor replaced = hook(grads[output]);
      if (replaced.defined()) grads[output] = replaced;
    }
    for (auto& [output, impl] : node.retained) {
      if (!grads[output].defined()) continue;
      Tensor& kept = impl->autograd->grad;
      kept = kept.defined() ? ops::add(kept, grads[output]) : grads[output];
    }
  }

  void run_node(Node& node, PoolVector<Tensor>& out) {
    State& s = state(&node);
    PoolVector<Tensor> grads = std::move(s.grads);
    grads.resize(node.outputs.size());
    if (!node.hooks.empty() || !node.retained.empty()) run_hooks(node, grads);
    for (Capture& c : captures_)
      if (c.node == &node) c.grad = grads[c.output];
    bool leaf = node.next.empty();
    bool run = leaf ? accumulate_ && s.needed : s.needed && has_needed_child(node);
    bool any = std::any_of(grads.begin(), grads.end(), [](const Tensor& t) { return t.defined(); });
    out.assign(node.next.size(), {});
    if (run && any) {
      node.backward(grads, out);
      if (!options_.retain_graph) node.release_saved();
    }
    grads.clear();
    for (size_t i = 0; i < node.next.size(); ++i) {
      const Edge& e = node.next[i];
      if (!e.node) continue;
      if (out[i].defined()) deliver(e, fitted(out[i], e.node->outputs[e.input]));
      out[i] = {};
      if (--state(e.node.get()).waiting == 0) push(e.node.get());
    }
  }

  bool has_needed_child(Node& node) {
    if (captures_.empty()) return true;
    return std::any_of(node.next.begin(), node.next.end(),
                       [&](const Edge& e) { return e.node && state(e.node.get()).needed; });
  }

  bool accumulate_;
  bool nested_ = false;
  BackwardOptions options_;
  PoolVector<Edge> roots_;
  std::vector<Capture> captures_;
  std::vector<Ref<Node>> held_;
  PoolVector<State> states_;
  using Ready = std::pair<uint64_t, Node*>;
  std::priority_queue<Ready, PoolVector<Ready>> ready_;
};

std::vector<Tensor> root_gradients(const char* op, std::span<const Tensor> roots,
                                   std::span<const Tensor> grads) {
  CHECK(grads.empty() || grads.size() == roots.size(), Autograd, op, ": expected ", roots.size(),
        " gradients, one per output, got ", grads.size());
  std::vector<Tensor> result;
  for (size_t i = 0; i < roots.size(); ++i) {
    const Tensor& r = roots[i];
    CHECK(r.requires_grad(), Autograd, op, ": output ", i,
          " does not require grad and does not have a grad_fn");
    if (i < grads.size() && grads[i].defined()) {
      CHECK(grads[i].sizes() == r.sizes(), Shape, op, ": expected a gradient of shape ", r.sizes(),
            " for output ", i, ", got ", grads[i].sizes());
      CHECK(grads[i].is_complex() == r.is_complex(), DType, op, ": expected a gradient of dtype ",
            r.dtype(), " for output ", i, ", got ", grads[i].dtype());
      result.push_back(grads[i]);
      continue;
    }
    CHECK(r.numel() == 1, Autograd, op,
          ": a gradient can be created implicitly only for outputs with one element, got shape ",
          r.sizes());
    CHECK(!r.is_complex(), Autograd, op,
          ": a gradient can be created implicitly only for real outputs, got ", r.dtype());
    result.push_back(ops::full(r.sizes(), Scalar(1), options_of(r)));
  }
  return result;
}

}  // namespace

void run_backward(std::span<const Tensor> roots, std::span<const Tensor> grads,
                  std::span<const Tensor> inputs, BackwardOptions options) {
  std::vector<Tensor> start = root_gradients("backward", roots, grads);
  GraphTask task(roots, inputs, true, options);
  GradMode mode(options.create_graph);
  task.run(start);
}

std::vector<Tensor> run_grad(std::span<const Tensor> roots, std::span<const Tensor> grads,
                             std::span<const Tensor> inputs, BackwardOptions options) {
  CHECK(!inputs.empty(), Autograd, "grad: expected at least one input");
  std::vector<Tensor> start = root_gradients("grad", roots, grads);
  GraphTask task(roots, inputs, false, options);
  GradMode mode(options.create_graph);
  task.run(start);
  std::vector<Tensor> result = task.captured();
  for (const Tensor& g : result)
    CHECK(g.defined() || options.allow_unused, Autograd,
          "grad: one of the inputs was not used in the graph; pass { allowUnused: true } if that "
          "is meant");
  return result;
}

}  // namespace cresset
