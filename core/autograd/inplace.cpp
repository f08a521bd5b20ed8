// Views and in-place writes: whose history changes when memory is shared.
#include "core/autograd/autograd.h"
#include "core/ops/ops.h"

namespace cresset {
namespace {

/// Geometry of a strided view inside a storage.
struct Geometry {
  Dims sizes, strides;
  int64_t offset;
};

Geometry geometry_of(const Tensor& t) { return {t.sizes(), t.strides(), t.offset()}; }

/// The history of a view whose base was written to after the view was made.
Ref<Node> regenerated_view_node(const Tensor& view, const Tensor& base) {
  auto backward = [view = geometry_of(view), base = geometry_of(base)](Backward& b) {
    b[0] = ops::as_strided_backward(b.grad(), base.sizes, base.strides, base.offset, view.sizes,
                                    view.strides, view.offset);
  };
  Ref<Node> node(new FunctionNode<decltype(backward)>("AsStridedBackward0", std::move(backward)));
  link_inputs(*node, inputs(base));
  node->outputs.push_back({view.sizes(), view.dtype(), view.device()});
  return node;
}

/// A write through a view, seen from the base: the gradient of the written part goes through
/// the writing operator, the rest passes unchanged.
class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, Ref<Node> fn)
      : Node("CopySlices"), base_(geometry_of(base)), view_(geometry_of(view)), fn_(std::move(fn)) {
    next = fn_->next;
    next[0] = gradient_edge(base);
    outputs.push_back({base.sizes(), base.dtype(), base.device()});
  }

  void backward(std::span<const Tensor> grads, std::span<Tensor> out) override {
    if (!fn_) fail_backward_twice(name_);
    if (!grads[0].defined()) return;
    Tensor whole = ops::empty_strided(base_.sizes, base_.strides, options_of(grads[0]));
    ops::copy_(whole, grads[0]);
    Tensor part = ops::as_strided(whole, view_.sizes, view_.strides, view_.offset - base_.offset);
    Tensor part_grad = ops::clone(part, std::nullopt);
    fn_->backward({&part_grad, 1}, out);
    if (next[0].node) {
      if (out[0].defined())
        ops::copy_(part, out[0]);
      else
        ops::zero_(part);
      out[0] = whole;
    } else {
      out[0] = {};
    }
  }
  void release_saved() override { fn_ = {}; }

 private:
  Geometry base_, view_;
  Ref<Node> fn_;
};

}  // namespace

void mark_view(const Tensor& view, const Tensor& base, const char* op, ViewOrigin origin) {
  // Tensors of integers take part too: a float may never live in them, so skip the cost.
  if (!view.is_floating() && !view.is_complex()) return;
  auto info = std::make_unique<ViewInfo>();
  const AutogradMeta* m = base.impl()->autograd;
  const ViewInfo* outer = m ? m->view.get() : nullptr;
  info->base = outer ? outer->base : base;
  info->origin = !grad_enabled() ? ViewOrigin::NoGrad : origin;
  if (outer && info->origin == ViewOrigin::Plain) info->origin = outer->origin;
  info->reinterprets = view.dtype() != info->base.dtype() || (outer && outer->reinterprets);
  info->version = view.version();
  info->op = op;
  autograd_meta(view).view = std::move(info);
}

Ref<Node> grad_fn(const Tensor& t) {
  AutogradMeta* m = t.impl()->autograd;
  if (!m) return {};
  ViewInfo* v = m->view.get();
  if (v && v->version != t.version() && v->origin == ViewOrigin::Plain && !v->reinterprets &&
      v->base.requires_grad()) {
    m->grad_fn = regenerated_view_node(t, v->base);
    m->output = 0;
    v->version = t.version();
  }
  return m->grad_fn;
}

void check_inplace(const char* op, const Tensor& self, bool recording) {
  if (!grad_enabled()) return;
  AutogradMeta* m = self.impl()->autograd;
  if (!m) return;
  CHECK(!m->requires_grad || m->grad_fn, Autograd, op,
        ": a leaf tensor that requires grad is being used in an in-place operation");
  const ViewInfo* v = m->view.get();
  if (!v || !(recording || self.requires_grad() || v->base.requires_grad())) return;
  const AutogradMeta* base = v->base.impl()->autograd;
  CHECK(!(base && base->requires_grad && !base->grad_fn), Autograd, op,
        ": a view of a leaf tensor that requires grad is being used in an in-place operation");
  CHECK(v->origin != ViewOrigin::MultiOutput, Autograd, op, ": output of ", v->op,
        " is a view and is being modified in place; this view comes from an operator that returns "
        "several views, which forbids in-place writes: use an out-of-place operator");
  CHECK(v->origin != ViewOrigin::NoGrad, Autograd, op, ": the view (made by ", v->op,
        ") was created with gradients disabled and is being modified in place with gradients "
        "enabled; make the view with gradients enabled, or write under noGrad");
  CHECK(!v->reinterprets, NotImplemented, op, ": in-place write, with gradients, into a view (",
        v->op, ") that reinterprets its base's dtype");
}

void rebase_history(const Tensor& self, Ref<Node> node) {
  AutogradMeta& m = autograd_meta(self);
  // Also of a node inside CopySlices: a result that it saved leads a second derivative to it.
  node->outputs.clear();
  node->outputs.push_back({self.sizes(), self.dtype(), self.device()});
  if (ViewInfo* v = m.view.get(); v && v->origin == ViewOrigin::Plain) {
    auto slices = make_ref<CopySlices>(v->base, self, std::move(node));
    AutogradMeta& base = autograd_meta(v->base);
    base.grad_fn = slices;
    base.output = 0;
    m.grad_fn = regenerated_view_node(self, v->base);
    m.output = 0;
    v->version = self.version();
    return;
  }
  m.grad_fn = std::move(node);
  m.output = 0;
}

}  // namespace cresset
