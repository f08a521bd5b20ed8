// Copies, casts, memory formats and fills.
#include <algorithm>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/copy_async.h"
#include "core/ops/copy_kernels.h"
#include "core/ops/overlap.h"
#include "core/ops/shape.h"
#include "core/tensor/cuda_services.h"

namespace cresset::ops {

// ---- memory formats

namespace {

enum Format : int64_t { Contiguous, ChannelsLast, ChannelsLast3d, Preserve };

// Dense strides that keep the order of x's dims in memory.
Dims dense_strides(const Tensor& x) {
  Dims order(static_cast<size_t>(x.dim()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  // A stride of 0 says nothing about the order, so this is no ordering that sort() could take.
  auto outside = [&](int64_t a, int64_t b) {
    return x.stride(a) != 0 && x.stride(b) != 0 && x.stride(a) > x.stride(b);
  };
  for (size_t i = 1; i < order.size(); ++i)
    for (size_t j = i; j > 0 && outside(order[j], order[j - 1]); --j)
      std::swap(order[j], order[j - 1]);
  Dims strides(order.size());
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = step;
    step *= std::max<int64_t>(x.size(order[i]), 1);
  }
  return strides;
}

bool has_format(const Tensor& x, int64_t format) {
  if (format == Preserve) return true;
  if (format == Contiguous) return x.is_contiguous();
  if (x.dim() != (format == ChannelsLast ? 4 : 5)) return false;
  if (x.numel() == 0) return true;
  Dims strides = format_strides("contiguous", x.sizes(), format);
  for (int64_t d = 0; d < x.dim(); ++d)
    if (x.size(d) != 1 && x.stride(d) != strides[d]) return false;
  return true;
}

}  // namespace

Dims format_strides(const char* op, std::span<const int64_t> sizes, int64_t format) {
  CHECK(format >= Contiguous && format <= ChannelsLast3d, Value, op,
        ": expected a memory format, got ", format);
  if (format == Contiguous) return contiguous_strides(sizes);
  size_t rank = format == ChannelsLast ? 4 : 5;
  CHECK(sizes.size() == rank, Shape, op, ": expected ", rank, " dims for ",
        format == ChannelsLast ? "channelsLast" : "channelsLast3d", ", got shape ", sizes);
  Dims strides(rank);
  int64_t step = 1;
  auto take = [&](size_t d) {
    strides[d] = step;
    step *= std::max<int64_t>(sizes[d], 1);
  };
  take(1);
  for (size_t d = rank; d-- > 2;) take(d);
  take(0);
  return strides;
}

Tensor empty_in_format(const char* op, const Tensor& x, Options o, std::optional<int64_t> format) {
  int64_t f = format.value_or(Preserve);
  if (f != Preserve) return cresset::empty_strided(x.sizes(), format_strides(op, x.sizes(), f), o);
  if (x.is_contiguous()) return empty(x.sizes(), o);
  if (is_dense(x)) return cresset::empty_strided(x.sizes(), x.strides(), o);
  return cresset::empty_strided(x.sizes(), dense_strides(x), o);
}

// ---- copies

void copy_same_dtype(const Tensor& src, const Tensor& dst) {
  for (const Tensor* t : {&src, &dst}) wait_for_copies(t->storage());
  int64_t size = static_cast<int64_t>(itemsize(dst.dtype()));
  StridedCopy c{dst.device_data<char>(), src.device_data<char>(),  dst.sizes(),
                dst.strides(),           Dims(dst.sizes().size()), size};
  int64_t lead = dst.dim() - src.dim();
  for (int64_t i = 0; i < src.dim(); ++i)
    c.from_strides[i + lead] = src.size(i) == 1 ? 0 : src.stride(i);
  launch("copy_", dst.device(), &CopyKernels::strided, std::move(c));
}

namespace {

// The elements as one block of memory, in their own order where they have no gaps.
Tensor block_of(const Tensor& x) {
  if (is_dense(x)) return x;
  GradMode off(false);
  return clone(x, std::nullopt);
}

void move_block(const Tensor& src, const Tensor& dst, bool wait) {
  const size_t bytes = static_cast<size_t>(src.numel()) * itemsize(src.dtype());
  if (bytes)
    cuda_runtime().copy(dst.device_data(), dst.device(), src.device_data(), src.device(), bytes,
                        wait);
}

// The same values on another device; without `wait` they may arrive later.
Tensor moved(const Tensor& x, Device device, bool wait) {
  device = resolve_device(device);
  if (x.device() == device) return x;
  if (device.is_meta()) return cresset::empty_strided(x.sizes(), x.strides(), {x.dtype(), device});
  CHECK(!x.is_meta(), NotImplemented, "to: no copy from ", x.device(), " to ", device);
  const Tensor from = block_of(x);
  const Options o{x.dtype(), !wait && device.is_cpu() ? pinned_cpu : device};
  Tensor to = from.is_contiguous() ? empty(from.sizes(), o)
                                   : cresset::empty_strided(from.sizes(), from.strides(), o);
  move_block(from, to, wait);
  return to;
}

// Between devices the block moves first; dtype, broadcast and strides are the target's work.
void copy_across(const Tensor& src, const Tensor& dst, bool wait) {
  const bool same = src.dtype() == dst.dtype() && src.sizes() == dst.sizes();
  if (same && src.strides() == dst.strides() && is_dense(src)) return move_block(src, dst, wait);
  if (same && src.is_contiguous() && dst.is_contiguous()) return move_block(src, dst, wait);
  wait_for_copies(dst.storage());
  launch("copy_", dst.device(), &ElementwiseKernels::copy, Operand(moved(src, dst.device(), true)),
         dst);
}

bool is_across(const Tensor& src, const Tensor& dst) {
  return !(src.device() == dst.device()) && !dst.is_meta();
}

}  // namespace

Tensor on_device(const Tensor& x, Device device) { return moved(x, device, true); }
Tensor on_device_async(const Tensor& x, Device device) { return moved(x, device, false); }

void copy_raw(const Operand& src, const Tensor& dst) {
  if (src.is_tensor() && is_across(src.tensor(), dst)) return copy_across(src.tensor(), dst, true);
  bool plain = src.is_tensor() && !dst.is_meta() && src.tensor().dtype() == dst.dtype() &&
               src.tensor().numel() != 1;
  if (plain && dst.numel() > 0) return copy_same_dtype(src.tensor(), dst);
  if (src.is_tensor()) wait_for_copies(src.tensor().storage());
  wait_for_copies(dst.storage());
  launch("copy_", dst.device(), &ElementwiseKernels::copy, src, dst);
}

void copy_raw_async(const Tensor& src, const Tensor& dst) {
  if (is_across(src, dst))
    copy_across(src, dst, false);
  else
    copy_raw(src, dst);
}

Tensor clone(const Tensor& x, std::optional<int64_t> memory_format) {
  Tensor y = empty_in_format("clone", x, options_of(x), memory_format);
  copy_raw(x, y);
  if (wants_grad(x)) record("CloneBackward0", y, inputs(x), [](Backward& b) { b[0] = b.grad(); });
  return y;
}

Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : clone(x, int64_t{0}); }

namespace {

Tensor contiguous_op(const Tensor& x, std::optional<int64_t> memory_format) {
  int64_t format = memory_format.value_or(Contiguous);
  CHECK(format != Preserve, Value, "contiguous: preserveFormat is not a memory format to have");
  return has_format(x, format) ? x : clone(x, format);
}

bool is_contiguous_op(const Tensor& x, std::optional<int64_t> memory_format) {
  return has_format(x, memory_format.value_or(Contiguous));
}

// The cast of PyTorch's _to_copy: a new tensor in any case.
Tensor cast_copy(const Tensor& x, DType dtype, std::optional<int64_t> format) {
  Tensor y = empty_in_format("to", x, {dtype, x.device()}, format);
  copy_raw(x, y);
  if ((is_floating(dtype) || is_complex(dtype)) && wants_grad(x))
    record("ToCopyBackward0", y, inputs(x), [](Backward& b) { b[0] = b.grad(); });
  return y;
}

Tensor to_op(const Tensor& x, std::optional<DType> dtype, bool copy,
             std::optional<int64_t> memory_format) {
  DType target = dtype.value_or(x.dtype());
  bool same = target == x.dtype() && has_format(x, memory_format.value_or(Preserve));
  return same && !copy ? x : cast_copy(x, target, memory_format);
}

}  // namespace

Tensor to_dtype(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : cast_copy(x, dtype, std::nullopt);
}

namespace {

Tensor& copy_op(Tensor& self, const Tensor& src, bool non_blocking) {
  bool recording = wants_grad(self, src) && (self.is_floating() || self.is_complex());
  check_inplace("copy_", self, recording);
  check_no_self_overlap("copy_", self);
  CHECK(broadcast_shapes("copy_", self.sizes(), src.sizes()) == self.sizes(), Shape,
        "copy_: a source of shape ", src.sizes(), " does not broadcast to shape ", self.sizes());
  Ref<Node> node;
  if (recording) {
    auto backward = [sizes = src.sizes(), device = src.device()](Backward& b) {
      if (b.needs(0)) b[0] = zeros_like(b.grad());
      if (b.needs(1)) b[1] = on_device(sum_to_size(b.grad(), sizes), device);
    };
    node = Ref<Node>(new FunctionNode<decltype(backward)>("CopyBackwards", std::move(backward)));
    link_inputs(*node, inputs(self, src));
  }
  Tensor from = src;
  if (partial_overlap(self, src)) {
    GradMode off(false);
    from = clone(src, std::nullopt);
  }
  if (non_blocking)
    copy_raw_async(from, self);
  else
    copy_raw(from, self);
  self.bump_version();
  if (node) rebase_history(self, node);
  return self;
}

}  // namespace

Tensor& copy_(Tensor& self, const Tensor& src) { return copy_op(self, src, false); }

Tensor& fill_(Tensor& self, const Operand& value) {
  CHECK(!value.is_tensor() || value.tensor().dim() == 0, Shape,
        "fill_: expected a number or a 0-d tensor, got shape ", value.tensor().sizes());
  if (value.is_tensor()) return copy_(self, value.tensor());
  CHECK(!value.scalar().is_complex() || self.is_complex(), DType,
        "fill_: a complex value does not fit dtype ", self.dtype());
  bool recording = wants_grad(self);
  // Elements that share memory get the same value: an expanded tensor can be filled.
  check_inplace("fill_", self, recording);
  Ref<Node> node;
  if (recording) {
    auto backward = [](Backward& b) { b[0] = zeros_like(b.grad()); };
    node = Ref<Node>(new FunctionNode<decltype(backward)>("FillBackward0", backward));
    link_inputs(*node, inputs(self));
  }
  copy_raw(value, self);
  self.bump_version();
  if (node) rebase_history(self, node);
  return self;
}

Tensor& zero_(Tensor& self) { return fill_(self, Operand(Scalar(int64_t{0}))); }

Tensor fill(const Tensor& x, const Operand& value) {
  Tensor y = clone(x, std::nullopt);
  return fill_(y, value);
}

OP_TABLE(copy) = {
    op<clone>("clone(Tensor self, *, int? memory_format=None) -> Tensor", "torch method",
              "A copy of the values."),
    op<contiguous_op>("contiguous(Tensor self, *, int? memory_format=None) -> Tensor", "method",
                      "The tensor itself when it has the memory format, else a copy in it."),
    op<is_contiguous_op>("_is_contiguous(Tensor self, int? memory_format=None) -> bool", "private",
                         "Whether the strides are those of a memory format."),
    op<to_op>("_to(Tensor self, ScalarType? dtype, bool copy, int? memory_format=None) -> Tensor",
              "private", "The values cast and laid out; the tensor itself when it fits."),
    op<to_dtype>("_to_dtype(Tensor self, ScalarType dtype) -> Tensor", "private",
                 "The values cast to a dtype; the tensor itself when it has that dtype."),
    op<copy_op>("copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
                "method", "Writes the values of `src`, broadcast and cast, into the tensor."),
    op<fill_>("fill_(Tensor(a!) self, Tensor|Scalar value) -> Tensor(a!)", "method",
              "Writes one value into every element."),
    op<fill>("fill(Tensor self, Tensor|Scalar value) -> Tensor", "torch",
             "A tensor like self with one value everywhere."),
    op<zero_>("zero_(Tensor(a!) self) -> Tensor(a!)", "method", "Writes zeros."),
};
OP_TABLE_END(copy);

}  // namespace cresset::ops
