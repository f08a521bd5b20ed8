// What optimizers and modules do to parameters in place, many tensors per call.
#include "core/ops/optim.h"

#include <cmath>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/tensor/cuda_services.h"

namespace cresset::ops {
namespace {

Tensor grad_of(const Tensor& param) {
  const AutogradMeta* meta = param.impl()->autograd;
  return meta ? meta->grad : Tensor();
}

/// Collects the parameters that have a gradient, by device, in a layout that the kernels can walk.
class Update {
 public:
  Update(const char* op, const TensorList& params) : op_(op), params_(params) {
    copies_.reserve(params.size());
  }

  /// Adds parameter i with its state, unless it has no gradient. Returns its slot or null.
  UpdateSlot* add(size_t i, std::initializer_list<const Tensor*> state) {
    const Tensor& param = params_[i];
    Tensor grad = grad_of(param);
    if (!grad.defined()) return nullptr;
    CHECK(param.is_floating(), NotImplemented, op_, ": no update for parameters of dtype ",
          param.dtype());
    UpdateSlot slot{.dtype = param.dtype(), .n = param.numel(), .param = nullptr, .grad = nullptr};
    Tensor like = write(is_dense(param) ? param : contiguous(param), param);
    if (param.is_meta()) return nullptr;
    slot.param = like.device_data();
    Tensor laid_out = fit(grad, like);
    slot.grad = laid_out.device_data();
    hold(laid_out);
    size_t n = 0;
    for (const Tensor* s : state) {
      CHECK(s->sizes() == param.sizes(), Shape, op_, ": expected optimizer state of shape ",
            param.sizes(), ", got ", s->sizes());
      slot.state[n++] = write(fit(*s, like), *s).device_data();
    }
    return &slots_on(param.device()).emplace_back(slot);
  }

  template <class Options>
  void run(void (*OptimKernels::*kernel)(std::span<const UpdateSlot>, const Options&),
           const Options& options) {
    for (const auto& [device, slots] : groups_)
      launch(op_, device, kernel, std::span<const UpdateSlot>(slots), options);
    for (auto& [from, to] : copies_)
      if (to.defined()) copy_raw(from, to);
  }

 private:
  // `t` itself, or a copy in the dtype and element order of `like`.
  static Tensor fit(const Tensor& t, const Tensor& like) {
    if (t.dtype() == like.dtype() && t.strides() == like.strides()) return t;
    if (t.dtype() == like.dtype() && t.is_contiguous() && like.is_contiguous()) return t;
    Tensor copy = empty_like(like);
    copy_raw(t, copy);
    return copy;
  }
  // `used` stands for `target`, which is about to change.
  const Tensor& write(const Tensor& used, const Tensor& target) {
    target.bump_version();
    copies_.emplace_back(used, used.same(target) ? Tensor() : target);
    return copies_.back().first;
  }
  std::vector<UpdateSlot>& slots_on(Device device) {
    for (auto& [known, slots] : groups_)
      if (known == device) return slots;
    auto& slots = groups_.emplace_back(device, std::vector<UpdateSlot>()).second;
    slots.reserve(params_.size());
    return slots;
  }
  void hold(const Tensor& t) { copies_.emplace_back(t, Tensor()); }

  const char* op_;
  const TensorList& params_;
  std::vector<std::pair<Device, std::vector<UpdateSlot>>> groups_;
  std::vector<std::pair<Tensor, Tensor>> copies_;
};

void check_lists(const char* op, const TensorList& params,
                 std::initializer_list<const TensorList*> states) {
  for (const TensorList* s : states)
    CHECK(s->size() == params.size(), Value, op, ": expected ", params.size(),
          " state tensors, got ", s->size());
}

void fused_sgd(const TensorList& params, const TensorList& buffers, bool first, double lr,
               double momentum, double dampening, double weight_decay, bool nesterov,
               bool maximize) {
  GradMode off(false);
  if (momentum != 0) check_lists("SGD", params, {&buffers});
  Update update("SGD", params);
  for (size_t i = 0; i < params.size(); ++i)
    if (momentum != 0)
      update.add(i, {&buffers[i]});
    else
      update.add(i, {});
  update.run(&OptimKernels::sgd, SgdOptions{.lr = lr,
                                            .momentum = momentum,
                                            .dampening = dampening,
                                            .weight_decay = weight_decay,
                                            .nesterov = nesterov,
                                            .maximize = maximize,
                                            .first = first});
}

// Counts a step in a 0-d float32 tensor, as PyTorch keeps it. A step on the parameter's GPU is
// counted by the kernel, so that a captured graph counts too.
void count_step(const Tensor& step, Device device, const AdamOptions& o, UpdateSlot* slot) {
  const bool here = step.device().is_cpu();
  CHECK(step.dtype() == DType::Float32 && step.numel() == 1 && (here || step.device() == device),
        Value, "Adam: expected a float32 number on the CPU or on ", device,
        " as the step of a parameter");
  CHECK(!here || !device.is_cuda() || !cuda_services().is_capturing(), NotImplemented,
        "Adam: a step that is counted on the CPU cannot be captured in a CUDA graph; expected an "
        "optimizer with { capturable: true }");
  step.bump_version();
  if (!here) {
    slot->step = step.device_data<float>();
    return;
  }
  const double count = *step.data<float>() += 1;
  slot->correction1 = 1 - std::pow(o.beta1, count);
  slot->correction2_sqrt = std::sqrt(1 - std::pow(o.beta2, count));
}

void fused_adam(const TensorList& params, const TensorList& averages, const TensorList& squares,
                const TensorList& maxima, const TensorList& steps, double lr, double beta1,
                double beta2, double eps, double weight_decay, bool decoupled, bool amsgrad,
                bool maximize) {
  GradMode off(false);
  check_lists("Adam", params, {&averages, &squares, &steps});
  if (amsgrad) check_lists("Adam", params, {&maxima});
  const AdamOptions options{.lr = lr,
                            .beta1 = beta1,
                            .beta2 = beta2,
                            .eps = eps,
                            .weight_decay = weight_decay,
                            .decoupled = decoupled,
                            .amsgrad = amsgrad,
                            .maximize = maximize};
  Update update("Adam", params);
  for (size_t i = 0; i < params.size(); ++i) {
    UpdateSlot* slot = amsgrad ? update.add(i, {&averages[i], &squares[i], &maxima[i]})
                               : update.add(i, {&averages[i], &squares[i]});
    if (slot) count_step(steps[i], params[i].device(), options, slot);
  }
  update.run(&OptimKernels::adam, options);
}

void zero_grads(const TensorList& params, bool set_to_none) {
  for (const Tensor& p : params) {
    AutogradMeta* meta = p.impl()->autograd;
    if (!meta || !meta->grad.defined()) continue;
    if (set_to_none) {
      meta->grad = Tensor();
      continue;
    }
    if (meta->grad.requires_grad()) meta->grad = detach(meta->grad);
    zero_(meta->grad);
  }
}

/// Gives a parameter another tensor's memory, shape and dtype; optimizers keep their hold on it.
Tensor& set_data_(Tensor& self, const Tensor& data) {
  TensorImpl* to = self.impl();
  CHECK(!grad_fn(self), Autograd, "set_data: only a leaf can be given other data");
  CHECK(data.is_floating() || data.is_complex() || !self.requires_grad(), DType,
        "set_data: a tensor of dtype ", data.dtype(), " cannot require a gradient");
  const TensorImpl* from = data.impl();
  to->storage = from->storage;
  to->sizes = from->sizes;
  to->strides = from->strides;
  to->offset = from->offset;
  to->dtype = from->dtype;
  to->refresh();
  // The accumulator knows the old shape and dtype; the next forward pass makes another one.
  if (to->autograd && to->autograd->accumulator) {
    to->autograd->accumulator->variable = nullptr;
    to->autograd->accumulator = {};
  }
  return self;
}

}  // namespace

OP_TABLE(optim) = {
    op<fused_sgd>("_fused_sgd(Tensor[] params, Tensor[] buffers, bool first, float lr, "
                  "float momentum, float dampening, float weight_decay, bool nesterov, "
                  "bool maximize) -> ()",
                  "private", "One SGD step over the parameters that have a gradient."),
    op<fused_adam>("_fused_adam(Tensor[] params, Tensor[] averages, Tensor[] squares, "
                   "Tensor[] maxima, Tensor[] steps, float lr, float beta1, float beta2, "
                   "float eps, float weight_decay, bool decoupled, bool amsgrad, bool maximize) "
                   "-> ()",
                   "private", "One Adam or AdamW step over the parameters that have a gradient."),
    op<zero_grads>("_zero_grads(Tensor[] params, bool set_to_none) -> ()", "private",
                   "Drops or zeroes gradients."),
    op<set_data_>("_set_data_(Tensor(a!) self, Tensor data) -> Tensor(a!)", "private",
                  "Replaces memory, shape and dtype of a leaf."),
};
OP_TABLE_END(optim);

}  // namespace cresset::ops
