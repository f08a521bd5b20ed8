// Capturing and replaying CUDA graphs, and functions whose forward and backward are graphs.
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/tensor/cuda_services.h"

namespace cresset::ops {
namespace {

using OptionalList = std::vector<std::optional<Tensor>>;

int64_t graph_begin(int64_t share_pool_of) { return cuda_services().begin_capture(share_pool_of); }
void graph_end(int64_t graph, bool keep) { cuda_services().end_capture(graph, keep); }
void graph_replay(int64_t graph) { cuda_services().replay(graph); }
void graph_destroy(int64_t graph) { cuda_services().destroy_graph(graph); }
bool graph_capturing() { return opened_cuda_runtime && cuda_services().is_capturing(); }

/// Copies the inputs to where the graph expects them, replays it, and gives its outputs; the ones
/// that require grad get a node that replays the backward graph. Of `inputs`, those beyond
/// `static_inputs` are parameters, which the graph uses in place.
TensorList graphed_call(int64_t forward, int64_t backward, const TensorList& inputs,
                        const TensorList& static_inputs, const TensorList& static_outputs,
                        const Dims& requires_grad, const TensorList& grad_outputs,
                        const OptionalList& grad_inputs) {
  CHECK(static_inputs.size() <= inputs.size() && requires_grad.size() == static_outputs.size() &&
            grad_inputs.size() == inputs.size(),
        Value, "graphed function: expected as many tensors as were captured");
  TensorList outputs;
  {
    const GradMode off(false);
    for (size_t i = 0; i < static_inputs.size(); ++i)
      if (inputs[i].device_data() != static_inputs[i].device_data())
        copy_raw(inputs[i], static_inputs[i]);
    cuda_services().replay(forward);
    for (const Tensor& y : static_outputs) outputs.push_back(alias(y));
  }
  if (!backward || !wants_grad(std::span<const Tensor>(inputs))) return outputs;
  TensorList recorded;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (requires_grad[i]) recorded.push_back(outputs[i]);
  CHECK(recorded.size() == grad_outputs.size(), Value,
        "graphed function: expected a gradient for each output that has one");
  record("GraphedBackward", std::span<const Tensor>(recorded), std::span<const Tensor>(inputs),
         [=](Backward& b) {
           for (size_t i = 0; i < grad_outputs.size(); ++i) copy_raw(b.grad(i), grad_outputs[i]);
           cuda_services().replay(backward);
           for (size_t i = 0; i < grad_inputs.size(); ++i)
             if (grad_inputs[i] && b.needs(i)) b[i] = clone(*grad_inputs[i], std::nullopt);
         });
  return outputs;
}

}  // namespace

OP_TABLE(cuda_graphs) = {
    op<graph_begin>("_cuda_graph_begin(int share_pool_of) -> int", "private",
                    "Starts to capture the current stream."),
    op<graph_end>("_cuda_graph_end(int graph, bool keep) -> ()", "private",
                  "Ends a capture, and keeps or drops it."),
    op<graph_replay>("_cuda_graph_replay(int graph) -> ()", "private", "Runs a graph."),
    op<graph_destroy>("_cuda_graph_destroy(int graph) -> ()", "private", "Frees a graph."),
    op<graph_capturing>("_cuda_graph_capturing() -> bool", "private",
                        "Whether this thread captures a graph."),
    op<graphed_call>("_cuda_graphed_call(int forward, int backward, Tensor[] inputs, "
                     "Tensor[] static_inputs, Tensor[] static_outputs, int[] requires_grad, "
                     "Tensor[] grad_outputs, Tensor?[] grad_inputs) -> Tensor[]",
                     "private", "Replays a captured function, with its backward."),
};
OP_TABLE_END(cuda_graphs);

}  // namespace cresset::ops
