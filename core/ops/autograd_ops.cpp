// What the host's Tensor class asks of the core: metadata, gradients, graph inspection.
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/copy_async.h"
#include "core/tensor/cuda_services.h"

namespace cresset::ops {
namespace {

using OptionalList = std::vector<std::optional<Tensor>>;

std::vector<Tensor> undefined_for_null(const OptionalList& list) {
  std::vector<Tensor> out;
  for (const auto& t : list) out.push_back(t.value_or(Tensor()));
  return out;
}

void backward(const TensorList& tensors, const OptionalList& grads, const TensorList& inputs,
              bool retain_graph, bool create_graph) {
  run_backward(tensors, undefined_for_null(grads), inputs,
               {.retain_graph = retain_graph, .create_graph = create_graph});
}

TensorList grad(const TensorList& outputs, const OptionalList& grads, const TensorList& inputs,
                bool retain_graph, bool create_graph, bool allow_unused) {
  return run_grad(
      outputs, undefined_for_null(grads), inputs,
      {.retain_graph = retain_graph, .create_graph = create_graph, .allow_unused = allow_unused});
}

Dims sizes(const Tensor& x) { return x.sizes(); }
Dims strides(const Tensor& x) { return x.strides(); }

/// dtype, device, requires_grad, is_leaf, storage offset, contiguous, version.
Dims info(const Tensor& x) {
  return {static_cast<int64_t>(x.dtype()),
          static_cast<int64_t>(x.device().type) * 256 + x.device().index,
          x.requires_grad(),
          !grad_fn(x),
          x.offset(),
          x.is_contiguous(),
          static_cast<int64_t>(x.version())};
}

bool is_grad_enabled() { return grad_enabled(); }

bool set_grad_enabled(bool on) {
  static thread_local std::optional<GradMode> mode;
  bool previous = grad_enabled();
  mode.reset();
  mode.emplace(on);
  return previous;
}

Tensor get_grad(const Tensor& x) {
  const AutogradMeta* m = x.impl()->autograd;
  return m ? m->grad : Tensor();
}

void set_grad(const Tensor& x, const std::optional<Tensor>& grad) {
  if (grad) {
    CHECK(grad->sizes() == x.sizes(), Shape, "grad: expected a gradient of shape ", x.sizes(),
          ", got ", grad->sizes());
    CHECK(grad->dtype() == x.dtype(), DType, "grad: expected a gradient of dtype ", x.dtype(),
          ", got ", grad->dtype());
  } else if (!x.impl()->autograd) {
    return;
  }
  autograd_meta(x).grad = grad.value_or(Tensor());
}

Tensor& requires_grad_(Tensor& x, bool requires_grad) {
  x.set_requires_grad(requires_grad);
  return x;
}

void retain_grad(const Tensor& x) {
  CHECK(x.requires_grad(), Autograd, "retainGrad: the tensor does not require grad");
  Ref<Node> node = grad_fn(x);
  AutogradMeta& m = autograd_meta(x);
  if (!node || m.retains_grad) return;
  m.retains_grad = true;
  node->retained.push_back({m.output, x.impl()});
}

// The node reached from x's grad_fn by taking the given edges.
Ref<Node> node_at(const Tensor& x, const Dims& path) {
  Ref<Node> node = gradient_edge(x).node;
  for (int64_t i : path) {
    CHECK(node && i >= 0 && i < static_cast<int64_t>(node->next.size()), Index,
          "nextFunctions: no edge ", i);
    node = node->next[static_cast<size_t>(i)].node;
  }
  return node;
}

/// The name of a graph node as char codes; empty when there is none.
Dims node_name(const Tensor& x, const Dims& path) {
  Dims chars;
  if (Ref<Node> node = node_at(x, path))
    for (const char* p = node->name(); *p; ++p) chars.push_back(*p);
  return chars;
}

/// For each edge of a node: the input number it leads to, or -1 where no gradient flows.
Dims node_edges(const Tensor& x, const Dims& path) {
  Dims out;
  if (Ref<Node> node = node_at(x, path))
    for (const Edge& e : node->next)
      out.push_back(e.node ? static_cast<int64_t>(e.input) : int64_t{-1});
  return out;
}

bool same_tensor(const Tensor& a, const Tensor& b) { return a.same(b); }

Scalar item(const Tensor& x) {
  CHECK(x.numel() == 1, Value, "item: expected a tensor with one element, got shape ", x.sizes());
  CHECK(!x.is_meta(), Device, "item: a meta tensor has no values");
  const Tensor here = on_host(x);
  wait_for_copies(here.storage());
  return visit_dtype(x.dtype(), [&]<class T>() {
    T v = *here.data<T>();
    if constexpr (std::is_same_v<T, bool>)
      return Scalar(v);
    else if constexpr (std::is_integral_v<T>)
      return Scalar(static_cast<int64_t>(v));
    else if constexpr (requires { v.imag(); })
      return Scalar(std::complex<double>(v));
    else
      return Scalar(static_cast<double>(v));
  });
}

int64_t get_default_dtype() { return static_cast<int64_t>(default_dtype()); }
void put_default_dtype(DType dtype) { set_default_dtype(dtype); }

Tensor to_device(const Tensor& x, Device device, bool non_blocking) {
  device = resolve_device(device);
  if (x.device() == device) return x;
  Tensor y = non_blocking ? on_device_async(x, device) : on_device(x, device);
  if (wants_grad(x))
    record("ToCopyBackward0", y, inputs(x),
           [from = x.device()](Backward& b) { b[0] = to_device(b.grad(), from, false); });
  return y;
}

}  // namespace

OP_TABLE(autograd) = {
    op<backward>("_backward(Tensor[] tensors, Tensor?[] grads, Tensor[] inputs, "
                 "bool retain_graph, bool create_graph) -> ()",
                 "private", "Accumulates gradients into leaves."),
    op<grad>("_grad(Tensor[] outputs, Tensor?[] grads, Tensor[] inputs, bool retain_graph, "
             "bool create_graph, bool allow_unused) -> Tensor[]",
             "private", "Gradients of outputs by inputs."),
    op<sizes>("_sizes(Tensor self) -> int[]", "private", "Sizes of the dims."),
    op<strides>("_strides(Tensor self) -> int[]", "private", "Strides in elements."),
    op<info>("_info(Tensor self) -> int[]", "private", "Dtype, device and flags."),
    op<is_grad_enabled>("is_grad_enabled() -> bool", "torch",
                        "Whether operators are recorded for backward."),
    op<set_grad_enabled>("_set_grad_enabled(bool mode) -> bool", "private",
                         "Switches recording; gives the previous mode."),
    op<get_grad>("_get_grad(Tensor self) -> Tensor", "private", "The accumulated gradient."),
    op<set_grad>("_set_grad(Tensor self, Tensor? grad) -> ()", "private", "Replaces .grad."),
    op<requires_grad_>("requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)",
                       "method", "Makes the tensor a leaf that collects a gradient."),
    op<retain_grad>("retain_grad(Tensor self) -> ()", "method",
                    "Keeps the gradient of a non-leaf tensor after backward."),
    op<node_name>("_node_name(Tensor self, int[] path) -> int[]", "private",
                  "Name of a graph node."),
    op<node_edges>("_node_edges(Tensor self, int[] path) -> int[]", "private",
                   "Edges of a graph node."),
    op<same_tensor>("_same_tensor(Tensor a, Tensor b) -> bool", "private",
                    "Whether two handles mean one tensor object."),
    op<item>("_item(Tensor self) -> Scalar", "private", "The value of a one-element tensor."),
    op<get_default_dtype>("_default_dtype() -> int", "private", "The default float dtype."),
    op<put_default_dtype>("_set_default_dtype(ScalarType dtype) -> ()", "private",
                          "Sets the default float dtype."),
    op<to_device>("_to_device(Tensor self, Device device, bool non_blocking=False) -> Tensor",
                  "private", "The tensor on another device; itself when it is there."),
};
OP_TABLE_END(autograd);

}  // namespace cresset::ops
