// Reductions over dims.
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"
#include "core/ops/reduce.h"

namespace cresset::ops {
namespace {

DType sum_dtype(const Tensor& x, std::optional<DType> dtype) {
  if (dtype) return *dtype;
  return is_integral(x.dtype(), true) ? DType::Int64 : x.dtype();
}

// The shape left after reducing `dims`, with and without size-1 dims in their place.
Dims reduced_sizes(const Tensor& x, const Dims& dims, bool keepdim) {
  Dims out;
  for (int64_t i = 0; i < x.dim(); ++i) {
    bool reduced = std::find(dims.begin(), dims.end(), i) != dims.end();
    if (!reduced)
      out.push_back(x.size(i));
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

// Gives a reduced gradient its size-1 dims back and expands it.
Tensor expand_reduced(const Tensor& g, const Dims& sizes, const Dims& dims, bool keepdim) {
  Tensor r = g;
  if (!keepdim)
    for (int64_t d : dims) r = unsqueeze(r, d);
  return expand(r, sizes);
}

}  // namespace

Tensor sum(const Tensor& x, const std::optional<Dims>& dims, bool keepdim,
           std::optional<DType> dtype) {
  Dims over = x.dim() ? wrap_dims("sum", dims.value_or(Dims{}), x.dim(), true) : Dims{};
  Tensor in = to_dtype(x, sum_dtype(x, dtype));
  Tensor y = empty(reduced_sizes(x, over, keepdim), options_of(in));
  {
    GradMode off(false);
    // Kept dims first, reduced dims last, so that the kernel sees rows.
    Dims order;
    for (int64_t i = 0; i < x.dim(); ++i)
      if (std::find(over.begin(), over.end(), i) == over.end()) order.push_back(i);
    for (int64_t d : over) order.push_back(d);
    Tensor rows = contiguous(permute(in, order));
    launch("sum", x.device(), &ReduceKernels::sum_rows, rows, y);
  }
  if (wants_grad(in))
    record("SumBackward1", y, inputs(in), [sizes = x.sizes(), over, keepdim](Backward& b) {
      b[0] = expand_reduced(b.grad(), sizes, over, keepdim);
    });
  return y;
}

Tensor sum_to_size(const Tensor& x, const Dims& sizes) {
  Dims over;
  int64_t lead = x.dim() - static_cast<int64_t>(sizes.size());
  ASSERT(lead >= 0);
  for (int64_t i = 0; i < x.dim(); ++i)
    if (i < lead || (sizes[i - lead] == 1 && x.size(i) != 1)) over.push_back(i);
  Tensor y = over.empty() ? x : sum(x, over, true, std::nullopt);
  return y.sizes() == sizes ? y : reshape(y, sizes);
}

OP_TABLE(reduce) = {
    op<sum>("sum(Tensor self, int[]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) "
            "-> Tensor",
            "torch method", "Sum over dims, or of everything."),
};
OP_TABLE_END(reduce);

}  // namespace cresset::ops
