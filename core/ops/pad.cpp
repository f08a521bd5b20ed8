// Padding: constant, reflect, replicate and circular, with negative amounts that crop.
#include "core/ops/pad.h"

#include "core/dispatch/op.h"
#include "core/ops/shape.h"

namespace cresset {
namespace ops {
namespace {

const char* name_of(PadMode mode) {
  constexpr const char* names[] = {"constant", "reflect", "replicate", "circular"};
  return names[static_cast<int>(mode)];
}

// Where index i (counted from the input's start, maybe outside) reads in a dim of size n.
int64_t source_of(PadMode mode, int64_t i, int64_t n) {
  switch (mode) {
    case PadMode::constant: return i >= 0 && i < n ? i : -1;
    case PadMode::reflect: return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    case PadMode::replicate: return std::clamp<int64_t>(i, 0, n - 1);
    case PadMode::circular: break;
  }
  return i < 0 ? i + n : i >= n ? i - n : i;
}

/// Amounts before and after each dim, first dim first.
struct Amounts {
  Dims before, after;
};

Amounts amounts_of(const char* op, const Tensor& x, const Dims& pad) {
  CHECK(pad.size() % 2 == 0, Value, op, ": expected an even number of amounts, got ", pad);
  CHECK(static_cast<int64_t>(pad.size()) <= 2 * x.dim(), Shape, op, ": expected at most ",
        2 * x.dim(), " amounts for shape ", x.sizes(), ", got ", pad);
  Amounts a{Dims(x.sizes().size()), Dims(x.sizes().size())};
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    size_t d = x.sizes().size() - 1 - i;
    a.before[d] = pad[2 * i];
    a.after[d] = pad[2 * i + 1];
  }
  return a;
}

void check_mode(const Tensor& x, const Dims& pad, const Amounts& a, PadMode mode) {
  int64_t count = static_cast<int64_t>(pad.size()) / 2;
  CHECK(count >= 1 && count <= 3 && (x.dim() == count + 1 || x.dim() == count + 2), NotImplemented,
        "pad: mode ", name_of(mode),
        " pads the last 1, 2 or 3 dims of a tensor with one or two "
        "dims before them, got shape ",
        x.sizes(), " and amounts ", pad);
  for (int64_t d = x.dim() - count - (x.dim() == count + 2); d < x.dim(); ++d) {
    if (d < 0 || (x.dim() == count + 2 && d == 0)) continue;
    CHECK(x.size(d) > 0, Shape, "pad: mode ", name_of(mode),
          " expects only the batch to be "
          "empty, got shape ",
          x.sizes());
    int64_t n = x.size(d), most = mode == PadMode::reflect ? n - 1 : n;
    CHECK(mode == PadMode::replicate || (a.before[d] <= most && a.after[d] <= most), Value,
          "pad: mode ", name_of(mode), " expects amounts of at most ", most, " for dim ", d,
          " of shape ", x.sizes(), ", got ", a.before[d], " and ", a.after[d]);
  }
}

Dims padded_shape(const char* op, const Tensor& x, const Amounts& a, PadMode mode) {
  Dims shape = x.sizes();
  for (int64_t d = x.dim(); d-- > 0;) {
    int64_t size = x.size(d);
    bool overflow = __builtin_add_overflow(size, a.before[d], &size) ||
                    __builtin_add_overflow(size, a.after[d], &size);
    int64_t least = mode == PadMode::constant ? 0 : 1;
    if (a.before[d] == 0 && a.after[d] == 0) least = 0;
    CHECK(!overflow && size >= least, Value, op, ": amounts ", a.before[d], " and ", a.after[d],
          " leave a size of ", size, " for dim ", d, " of shape ", x.sizes());
    shape[d] = size;
  }
  checked_numel(op, shape);
  return shape;
}

// The tables take memory like the result itself, which is to be allocated (or refused) before.
PadPlan plan_of(const Tensor& x, const Amounts& a, PadMode mode, const Dims& shape) {
  PadPlan plan;
  plan.first = 0;
  while (plan.first < x.dim() && a.before[plan.first] == 0 && a.after[plan.first] == 0)
    ++plan.first;
  for (int64_t d = 0; d < x.dim(); ++d) {
    std::vector<int64_t>& source = plan.source.emplace_back(static_cast<size_t>(shape[d]));
    for (int64_t i = 0; i < shape[d]; ++i)
      source[static_cast<size_t>(i)] = source_of(mode, i - a.before[d], x.size(d));
  }
  return plan;
}

Tensor padded(const char* op, const Tensor& x, const Dims& pad, PadMode mode, const Scalar& value);

// The gradient of a mode other than constant.
Tensor pad_backward(const Tensor& grad, const Tensor& like, const Dims& pad, PadMode mode) {
  Tensor gx = zeros(like.sizes(), options_of(grad));
  if (grad.numel() > 0 && !grad.is_meta()) {
    PadPlan plan = plan_of(like, amounts_of("pad", like, pad), mode, grad.sizes());
    GradMode off(false);
    launch("pad", grad.device(), &PadKernels::pad_backward, contiguous(grad), gx, plan);
  }
  if (wants_grad(grad))
    record("PadBackward0Backward0", gx, inputs(grad), [pad, mode](Backward& b) {
      b[0] = padded("pad", b.grad(), pad, mode, Scalar(int64_t{0}));
    });
  return gx;
}

Tensor padded(const char* op, const Tensor& x, const Dims& pad, PadMode mode, const Scalar& value) {
  Amounts a = amounts_of(op, x, pad);
  if (mode != PadMode::constant) check_mode(x, pad, a, mode);
  Dims shape = padded_shape(op, x, a, mode);
  if (x.dim() == 0) return clone(x, std::nullopt);
  Tensor y = empty(shape, options_of(x), op);
  if (!x.is_meta() && y.numel() > 0) {
    PadPlan plan = plan_of(x, a, mode, shape);
    Tensor one = full(Dims{}, value, {x.dtype(), {}});
    launch(op, x.device(), &PadKernels::pad, x, y, plan, one.data<void>());
  }
  if (!wants_grad(x)) return y;
  if (mode == PadMode::constant) {
    Dims crop = pad;
    for (int64_t& p : crop) p = -p;
    record("ConstantPadNdBackward0", y, inputs(x),
           [crop](Backward& b) { b[0] = constant_pad_nd(b.grad(), crop, Scalar(int64_t{0})); });
  } else {
    // Only the geometry of x is needed.
    Tensor like = empty(x.sizes(), {x.dtype(), Device{DeviceType::Meta, 0}});
    record("PadBackward0", y, inputs(x),
           [pad, mode, like](Backward& b) { b[0] = pad_backward(b.grad(), like, pad, mode); });
  }
  return y;
}

Tensor pad_op(const Tensor& x, const Dims& pad, PadMode mode, std::optional<Scalar> value) {
  CHECK(mode == PadMode::constant || !value || value->equals(0), Value, "pad: mode ", name_of(mode),
        " takes no value, got ", *value);
  return padded("pad", x, pad, mode, value.value_or(Scalar(int64_t{0})));
}

}  // namespace

Tensor pad(const Tensor& x, const Dims& amounts, PadMode mode) {
  return padded("pad", x, amounts, mode, Scalar(int64_t{0}));
}

Tensor constant_pad_nd(const Tensor& x, const Dims& pad, const Scalar& value) {
  return padded("constant_pad_nd", x, pad, PadMode::constant, value);
}

OP_TABLE(pad) = {
    op<constant_pad_nd>("constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
                        "torch", "A value around the last dims; negative amounts crop."),
    op<pad_op>("pad(Tensor input, int[] pad, "
               "PadMode{constant|reflect|replicate|circular} mode='constant', "
               "Scalar? value=None) -> Tensor",
               "nn", "The last dims padded (last dim first); negative amounts crop."),
};
OP_TABLE_END(pad);

}  // namespace ops
}  // namespace cresset
