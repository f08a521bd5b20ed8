// The connectionist temporal classification loss.
#include "core/ops/ctc.h"

#include <limits>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/losses.h"
#include "core/ops/ops.h"

namespace cresset::ops {
namespace {

constexpr const char* name = "ctc_loss";

struct CtcInputs {
  Tensor targets;  // [N, L], padded with blanks
  std::vector<int64_t> input_lengths, target_lengths;
};

std::vector<int64_t> lengths_of(const char* what, const Tensor& given, int64_t n, int64_t most) {
  CHECK(is_integral(given.dtype(), false) && given.dim() <= 1 && given.numel() == n, Shape, name,
        ": expected ", n, " integer ", what, ", got shape ", given.sizes(), " of ", given.dtype());
  Tensor t = contiguous(on_host(to_dtype(given, DType::Int64)));
  std::vector<int64_t> out(t.data<int64_t>(), t.data<int64_t>() + n);
  for (int64_t v : out)
    CHECK(v >= 0 && v <= most, Value, name, ": expected ", what, " in [0, ", most, "], got ", v);
  return out;
}

// Rows of labels; concatenated targets [sum of lengths] are laid out by sample.
CtcInputs prepare(const Tensor& x, const Tensor& targets, const Tensor& input_lengths,
                  const Tensor& target_lengths, int64_t blank) {
  int64_t n = x.size(1), classes = x.size(2);
  CHECK(is_integral(targets.dtype(), false), DType, name,
        ": expected targets of an integer dtype, got ", targets.dtype());
  CHECK(targets.dim() == 1 || (targets.dim() == 2 && targets.size(0) == n), Shape, name,
        ": expected targets [", n, ", L] or of 1 dim, got shape ", targets.sizes());
  CHECK(blank >= 0 && blank < classes, Value, name, ": expected blank in [0, ", classes - 1,
        "], got ", blank);
  bool rows = targets.dim() == 2;
  CtcInputs in;
  in.input_lengths = lengths_of("input_lengths", input_lengths, n, x.size(0));
  in.target_lengths = lengths_of("target_lengths", target_lengths, n, targets.size(-1));
  int64_t longest = 0, total = 0;
  for (int64_t v : in.target_lengths) longest = std::max(longest, v), total += v;
  CHECK(rows || total <= targets.numel(), Shape, name, ": expected ", total,
        " targets in all, got ", targets.numel());
  Tensor t = contiguous(on_host(to_dtype(targets, DType::Int64)));
  in.targets = full(Dims{n, longest}, Scalar(blank), {DType::Int64, {}});
  const int64_t* from = t.data<int64_t>();
  for (int64_t i = 0, at = 0; i < n; at += in.target_lengths[i++])
    for (int64_t k = 0; k < in.target_lengths[i]; ++k) {
      int64_t label = from[(rows ? i * t.size(1) : at) + k];
      CHECK(label >= 0 && label < classes, Index, name, ": expected targets in [0, ", classes - 1,
            "], got ", label);
      in.targets.data<int64_t>()[i * longest + k] = label;
    }
  in.targets = on_device(in.targets, x.device());
  return in;
}

}  // namespace

static Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                       const Tensor& target_lengths, int64_t blank, Reduction reduction,
                       bool zero_infinity) {
  CHECK(log_probs.dim() == 2 || log_probs.dim() == 3, Shape, name,
        ": expected log probabilities [T, N, C] or [T, C], got shape ", log_probs.sizes());
  CHECK(log_probs.dtype() == DType::Float32 || log_probs.dtype() == DType::Float64, DType, name,
        ": expected float32 or float64, got ", log_probs.dtype());
  CHECK(!log_probs.is_meta(), Device, name, ": needs values, which meta tensors do not have");
  bool single = log_probs.dim() == 2;
  Tensor x = contiguous(single ? unsqueeze(log_probs, 1) : log_probs);
  CtcInputs in = prepare(x, targets, input_lengths, target_lengths, blank);
  int64_t n = x.size(1);
  Tensor alpha = empty(Dims{n, x.size(0), 2 * in.targets.size(1) + 1}, options_of(x));
  Tensor loss = empty(Dims{n}, options_of(x));
  auto call = [in, alpha, blank, zero_infinity](const Tensor& scores, const Tensor& losses) {
    return CtcCall{&scores,          &in.targets,       &alpha, &losses,
                   in.input_lengths, in.target_lengths, blank,  zero_infinity};
  };
  launch(name, x.device(), &CtcKernels::forward, call(x, loss));
  // The kernel of the derivative needs the losses as they were computed.
  Operand infinity{Scalar{std::numeric_limits<double>::infinity()}};
  Tensor rows = zero_infinity ? where(eq(loss, infinity), Operand(Scalar(0.0)), loss)
                              : clone(loss, std::nullopt);
  if (wants_grad(x))
    record("CtcLossBackward0", rows, inputs(x), [call, loss, xs = save(x)](Backward& b) {
      CHECK(!grad_enabled(), NotImplemented, name, ": no derivative of its derivative");
      Tensor scores = b(xs), dx = zeros_like(scores);
      launch(name, dx.device(), &CtcKernels::backward, call(scores, loss), contiguous(b.grad()),
             dx);
      b[0] = dx;
    });
  if (reduction == Reduction::mean) {
    // Each loss counts per label.
    Tensor counts = on_device(reshape(to_dtype(target_lengths, x.dtype()), {n}), x.device());
    rows = div(rows, row(Row::maximum, {counts, Operand(1)}));
  }
  if (reduction == Reduction::none) return single ? squeeze(rows, {0}) : rows;
  return reduce_loss(name, rows, reduction);
}

OP_TABLE(ctc) = {
    op<ctc_loss>("_ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, "
                 "Tensor target_lengths, int blank, Reduction{none|mean|sum} reduction, "
                 "bool zero_infinity) -> Tensor",
                 "private", "CTC loss of log probabilities [T, N, C]."),
};
OP_TABLE_END(ctc);

}  // namespace cresset::ops
