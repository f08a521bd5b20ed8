// Losses of elements: differences, binary cross entropy and likelihoods.
#include "core/ops/losses.h"

#include <cmath>
#include <limits>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/activation.h"
#include "core/ops/ops.h"
#include "core/ops/wide.h"

namespace cresset::ops {

Reduction legacy_reduction(Reduction reduction, LegacyFlag size_average, LegacyFlag reduce) {
  if (!size_average && !reduce) return reduction;
  if (!reduce.value_or(true)) return Reduction::none;
  return size_average.value_or(true) ? Reduction::mean : Reduction::sum;
}

Tensor reduce_loss(const char* op, const Tensor& loss, Reduction reduction) {
  if (reduction == Reduction::none) return loss;
  Tensor total = sum(loss, std::nullopt, false, std::nullopt);
  if (reduction == Reduction::sum) return total;
  CHECK(loss.is_floating() || loss.is_complex(), DType, op,
        ": expected a floating dtype for reduction mean, got ", loss.dtype());
  return div(total, Operand(static_cast<double>(loss.numel())));
}

namespace {

Operand number(double v) { return Operand(Scalar(v)); }

// ---- losses of a difference

Tensor difference_rows(Difference kind, double p, const Tensor& d) {
  if (kind == Difference::squared) return mul(d, d);
  Tensor size = row(Row::abs, {d});
  if (kind == Difference::absolute) return size;
  Tensor square = mul(mul(d, d), number(kind == Difference::huber ? 0.5 : 0.5 / p));
  Tensor line = sub(size, number(0.5 * p));
  if (kind == Difference::huber)
    return where(row(Row::le, {size, number(p)}), square, mul(line, number(p)));
  return where(row(Row::lt, {size, number(p)}), square, line);
}

Tensor difference_slope(Difference kind, double p, const Tensor& d) {
  if (kind == Difference::squared) return mul(d, number(2));
  Tensor sign = row(Row::sign, {d});
  if (kind == Difference::absolute) return sign;
  Tensor size = row(Row::abs, {d});
  if (kind == Difference::huber)
    return where(row(Row::le, {size, number(p)}), d, mul(sign, number(p)));
  return where(row(Row::lt, {size, number(p)}), div(d, number(p)), sign);
}

struct DifferenceArgs {
  Difference kind;
  double param;
  Reduction reduction;
};

Tensor difference_gradient(const DifferenceArgs& a, const Tensor& x, const Tensor& t,
                           const Tensor& g) {
  if (!grad_enabled()) {
    Tensor dx = empty(x.sizes(), options_of(x));
    launch("loss_backward", x.device(), &LossKernels::difference_backward, a.kind, a.param,
           a.reduction, x, t, contiguous(g), dx);
    return dx;
  }
  Tensor slope = difference_slope(a.kind, a.param, sub(x, t));
  if (a.reduction == Reduction::mean)
    return mul(slope, div(g, number(static_cast<double>(x.numel()))));
  return mul(slope, g);
}

// Both tensors in one pass where they are alike; by operators for other shapes and dtypes.
Tensor difference_loss(const char* op, const DifferenceArgs& a, const Tensor& input,
                       const Tensor& target) {
  bool fused = input.sizes() == target.sizes() && input.dtype() == target.dtype() &&
               input.is_floating() && !needs_widening(input.dtype(), input.device()) &&
               input.device() == target.device() && !input.is_meta();
  if (!fused) {
    broadcast_shapes(op, input.sizes(), target.sizes());
    return reduce_loss(op, difference_rows(a.kind, a.param, sub(input, target)), a.reduction);
  }
  Tensor x = contiguous(input), t = contiguous(target);
  Tensor loss = empty(a.reduction == Reduction::none ? x.sizes() : Dims{}, options_of(x));
  launch(op, x.device(), &LossKernels::difference, a.kind, a.param, a.reduction, x, t, loss);
  if (wants_grad(x, t)) {
    static constexpr const char* nodes[] = {"MseLossBackward0", "L1LossBackward0",
                                            "SmoothL1LossBackward0", "HuberLossBackward0"};
    record(nodes[static_cast<int>(a.kind)], loss, inputs(x, t),
           [a, xs = save(x), ts = save(t)](Backward& b) {
             Tensor dx = difference_gradient(a, b(xs), b(ts), b.grad());
             if (b.needs(0)) b[0] = dx;
             if (b.needs(1)) b[1] = neg(dx);
           });
  }
  return loss;
}

Tensor weighted(const char* op, const DifferenceArgs& a, const Tensor& input, const Tensor& target,
                const std::optional<Tensor>& weight) {
  if (!weight) return difference_loss(op, a, input, target);
  CHECK(broadcast_shapes(op, input.sizes(), target.sizes()) == weight->sizes(), Shape, op,
        ": expected a weight of the losses' shape, got ", weight->sizes());
  Tensor rows =
      mul(difference_loss(op, {a.kind, a.param, Reduction::none}, input, target), *weight);
  if (a.reduction == Reduction::mean)
    return div(sum(rows, std::nullopt, false, std::nullopt),
               sum(*weight, std::nullopt, false, std::nullopt));
  return reduce_loss(op, rows, a.reduction);
}

}  // namespace

Tensor mse_loss(const Tensor& input, const Tensor& target, Reduction reduction) {
  return difference_loss("mse_loss", {Difference::squared, 0, reduction}, input, target);
}

static Tensor mse_loss_form(const Tensor& input, const Tensor& target, LegacyFlag size_average,
                            LegacyFlag reduce, Reduction reduction, std::optional<Tensor> weight) {
  reduction = legacy_reduction(reduction, size_average, reduce);
  return weighted("mse_loss", {Difference::squared, 0, reduction}, input, target, weight);
}

static Tensor l1_loss(const Tensor& input, const Tensor& target, LegacyFlag size_average,
                      LegacyFlag reduce, Reduction reduction, std::optional<Tensor> weight) {
  reduction = legacy_reduction(reduction, size_average, reduce);
  return weighted("l1_loss", {Difference::absolute, 0, reduction}, input, target, weight);
}

static Tensor smooth_l1_loss(const Tensor& input, const Tensor& target, LegacyFlag size_average,
                             LegacyFlag reduce, Reduction reduction, double beta) {
  CHECK(beta >= 0, Value, "smooth_l1_loss: expected beta of at least 0, got ", beta);
  reduction = legacy_reduction(reduction, size_average, reduce);
  Difference kind = beta == 0 ? Difference::absolute : Difference::smooth_l1;
  return difference_loss("smooth_l1_loss", {kind, beta, reduction}, input, target);
}

static Tensor huber_loss(const Tensor& input, const Tensor& target, Reduction reduction,
                         double delta, std::optional<Tensor> weight) {
  CHECK(delta > 0, Value, "huber_loss: expected delta above 0, got ", delta);
  return weighted("huber_loss", {Difference::huber, delta, reduction}, input, target, weight);
}

// ---- binary cross entropy

namespace {

// log(p), not below -100.
Tensor bounded_log(const Tensor& log_p) { return row(Row::maximum, {log_p, number(-100)}); }

void check_probabilities(const Tensor& p) {
  if (!p.device().is_cpu()) return;
  GradMode off(false);
  Tensor outside =
      row(Row::logical_not,
          {row(Row::logical_and, {row(Row::ge, {p, number(0)}), row(Row::le, {p, number(1)})})});
  Tensor count = sum(outside, std::nullopt, false, std::nullopt);
  CHECK(*count.data<int64_t>() == 0, Value,
        "binary_cross_entropy: expected probabilities in [0, 1], got ", *count.data<int64_t>(),
        " others");
}

}  // namespace

static Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                                   std::optional<Tensor> weight, LegacyFlag size_average,
                                   LegacyFlag reduce, Reduction reduction) {
  CHECK(input.sizes() == target.sizes(), Shape, "binary_cross_entropy: expected a target of shape ",
        input.sizes(), ", got ", target.sizes());
  CHECK(input.is_floating() && target.is_floating(), DType,
        "binary_cross_entropy: expected floating dtypes, got ", input.dtype(), " and ",
        target.dtype());
  check_probabilities(input);
  Tensor rows;
  {
    GradMode off(false);
    Tensor log_p = bounded_log(log(input));
    Tensor log_q = bounded_log(row(Row::log1p, {neg(input)}));
    rows = neg(add(mul(target, log_p), mul(sub(number(1), target), log_q)));
  }
  if (wants_grad(input, target))
    record("BinaryCrossEntropyBackward0", rows, inputs(input, target),
           [ps = save(input), ts = save(target)](Backward& b) {
             Tensor p = b(ps), t = b(ts), g = b.grad();
             if (b.needs(0)) {
               Tensor spread = row(Row::maximum, {mul(p, sub(number(1), p)), number(1e-12)});
               b[0] = div(mul(g, sub(p, t)), spread);
             }
             if (b.needs(1))
               b[1] = mul(g, sub(bounded_log(row(Row::log1p, {neg(p)})), bounded_log(log(p))));
           });
  if (weight) rows = mul(rows, *weight);
  return reduce_loss("binary_cross_entropy", rows,
                     legacy_reduction(reduction, size_average, reduce));
}

static Tensor bce_with_logits(const Tensor& input, const Tensor& target,
                              std::optional<Tensor> weight, LegacyFlag size_average,
                              LegacyFlag reduce, Reduction reduction,
                              std::optional<Tensor> pos_weight) {
  CHECK(input.sizes() == target.sizes(), Shape,
        "binary_cross_entropy_with_logits: expected a target of shape ", input.sizes(), ", got ",
        target.sizes());
  Tensor log_p = row(Row::log_sigmoid, {input});
  if (pos_weight) log_p = mul(add(mul(sub(*pos_weight, number(1)), target), number(1)), log_p);
  Tensor rows = sub(mul(sub(number(1), target), input), log_p);
  if (weight) rows = mul(rows, *weight);
  return reduce_loss("binary_cross_entropy_with_logits", rows,
                     legacy_reduction(reduction, size_average, reduce));
}

static Tensor soft_margin_loss(const Tensor& input, const Tensor& target, LegacyFlag size_average,
                               LegacyFlag reduce, Reduction reduction) {
  Tensor rows = neg(row(Row::log_sigmoid, {mul(input, target)}));
  return reduce_loss("soft_margin_loss", rows, legacy_reduction(reduction, size_average, reduce));
}

static Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target,
                                          std::optional<Tensor> weight, LegacyFlag size_average,
                                          LegacyFlag reduce, Reduction reduction) {
  CHECK(input.dim() >= 1, Shape, "multilabel_soft_margin_loss: expected at least 1 dim, got 0");
  Tensor positive = mul(target, row(Row::log_sigmoid, {input}));
  Tensor negative = mul(sub(number(1), target), row(Row::log_sigmoid, {neg(input)}));
  Tensor rows = neg(add(positive, negative));
  if (weight) rows = mul(rows, *weight);
  double classes = static_cast<double>(input.size(-1));
  rows = div(sum(rows, Dims{rows.dim() - 1}, false, std::nullopt), number(classes));
  return reduce_loss("multilabel_soft_margin_loss", rows,
                     legacy_reduction(reduction, size_average, reduce));
}

// ---- likelihoods

static Tensor kl_div(const Tensor& input, const Tensor& target, LegacyFlag size_average,
                     LegacyFlag reduce, KlReduction reduction, bool log_target) {
  Tensor rows = log_target ? mul(exp(target), sub(target, input))
                           : sub(row(Row::xlogy, {target, target}), mul(target, input));
  if (reduction == KlReduction::batchmean && !size_average && !reduce) {
    Tensor total = sum(rows, std::nullopt, false, std::nullopt);
    if (input.dim() == 0) return total;
    CHECK(input.size(0) > 0, Shape, "kl_div: expected a batch for reduction batchmean, got shape ",
          input.sizes());
    return div(total, number(static_cast<double>(input.size(0))));
  }
  Reduction plain =
      reduction == KlReduction::batchmean ? Reduction::sum : static_cast<Reduction>(reduction);
  return reduce_loss("kl_div", rows, legacy_reduction(plain, size_average, reduce));
}

static Tensor poisson_nll_loss(const Tensor& input, const Tensor& target, bool log_input, bool full,
                               LegacyFlag size_average, double eps, LegacyFlag reduce,
                               Reduction reduction) {
  Tensor rows = log_input ? sub(exp(input), mul(target, input))
                          : sub(input, mul(target, log(add(input, number(eps)))));
  if (full) {
    // Stirling's approximation of log(target!).
    Tensor half = mul(log(mul(target, number(2 * M_PI))), number(0.5));
    Tensor stirling = add(sub(mul(target, log(target)), target), half);
    rows = add(rows, where(row(Row::le, {target, Operand(1)}), Operand(0), stirling));
  }
  return reduce_loss("poisson_nll_loss", rows, legacy_reduction(reduction, size_average, reduce));
}

Tensor at_least(const Tensor& x, double lowest) {
  Tensor y;
  {
    GradMode off(false);
    y = row(Row::maximum, {x, number(lowest)});
  }
  if (wants_grad(x)) record("CloneBackward0", y, inputs(x), [](Backward& b) { b[0] = b.grad(); });
  return y;
}

namespace {

// One variance per sample gets a last dim of 1, as the mean of its elements.
Tensor aligned_variance(const Tensor& input, const Tensor& var) {
  if (var.sizes() == input.sizes() || input.dim() == 0) return var;
  Dims lead = input.sizes();
  lead.erase(lead.size() - 1);
  if (var.sizes() == lead) return unsqueeze(var, -1);
  // Or it has size 1 in exactly one dim that the input has not.
  int64_t narrow = 0;
  bool fits = var.dim() == input.dim();
  for (int64_t d = 0; fits && d < var.dim(); ++d)
    if (var.size(d) != input.size(d)) fits = var.size(d) == 1 && ++narrow == 1;
  lead.push_back(1);
  CHECK(fits, Shape, "gaussian_nll_loss: expected a variance of shape ", input.sizes(),
        ", without its last dim, or with one dim of size 1 such as ", lead, ", got ", var.sizes());
  return var;
}

void check_variance(const Tensor& var) {
  if (!var.device().is_cpu()) return;
  GradMode off(false);
  Tensor count = sum(row(Row::lt, {var, Operand(0)}), std::nullopt, false, std::nullopt);
  CHECK(*count.data<int64_t>() == 0, Value,
        "gaussian_nll_loss: expected variances of at least 0, got negative ones");
}

}  // namespace

static Tensor gaussian_nll_loss(const Tensor& input, const Tensor& target, const Operand& var,
                                bool with_constant, double eps, Reduction reduction) {
  Tensor given =
      var.is_tensor() ? var.tensor() : full(input.sizes(), var.scalar(), options_of(input));
  check_variance(given);
  Tensor spread = at_least(aligned_variance(input, given), eps);
  Tensor d = sub(input, target);
  Tensor rows = mul(add(log(spread), div(mul(d, d), spread)), number(0.5));
  if (with_constant) rows = add(rows, number(0.5 * std::log(2 * M_PI)));
  return reduce_loss("gaussian_nll_loss", rows, reduction);
}

OP_TABLE(losses) = {
    op<mse_loss_form>(
        "mse_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
        "Reduction{none|mean|sum} reduction='mean', Tensor? weight=None) -> Tensor",
        "nn", "Squared differences."),
    op<l1_loss>("l1_loss(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
                "Reduction{none|mean|sum} reduction='mean', Tensor? weight=None) -> Tensor",
                "nn", "Absolute differences."),
    op<smooth_l1_loss>(
        "smooth_l1_loss(Tensor input, Tensor target, bool? size_average=None, "
        "bool? reduce=None, Reduction{none|mean|sum} reduction='mean', float beta=1) -> Tensor",
        "nn", "Absolute differences, quadratic below beta."),
    op<huber_loss>(
        "huber_loss(Tensor input, Tensor target, Reduction{none|mean|sum} reduction='mean', "
        "float delta=1, Tensor? weight=None) -> Tensor",
        "nn", "Half squared differences, linear above delta."),
    op<binary_cross_entropy>(
        "binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, "
        "bool? size_average=None, bool? reduce=None, Reduction{none|mean|sum} reduction='mean') "
        "-> Tensor",
        "nn", "Cross entropy of probabilities and targets in [0, 1]."),
    op<bce_with_logits>(
        "binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, "
        "bool? size_average=None, bool? reduce=None, Reduction{none|mean|sum} reduction='mean', "
        "Tensor? pos_weight=None) -> Tensor",
        "nn", "Cross entropy of sigmoid(input) and targets in [0, 1]."),
    op<soft_margin_loss>("soft_margin_loss(Tensor input, Tensor target, bool? size_average=None, "
                         "bool? reduce=None, Reduction{none|mean|sum} reduction='mean') -> Tensor",
                         "nn", "log(1 + exp(-target input)) for targets 1 and -1."),
    op<multilabel_soft_margin_loss>(
        "multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, "
        "bool? size_average=None, bool? reduce=None, Reduction{none|mean|sum} reduction='mean') "
        "-> Tensor",
        "nn", "Binary cross entropy with logits, averaged over the last dim."),
    op<kl_div>(
        "kl_div(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
        "KlReduction{none|mean|sum|batchmean} reduction='mean', bool log_target=False) -> Tensor",
        "nn", "Kullback-Leibler divergence of log-probabilities from a target distribution."),
    op<poisson_nll_loss>(
        "poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, "
        "bool? size_average=None, float eps=1e-8, bool? reduce=None, "
        "Reduction{none|mean|sum} reduction='mean') -> Tensor",
        "nn", "Negative log likelihood of counts; `full` adds Stirling's term."),
    op<gaussian_nll_loss>(
        "gaussian_nll_loss(Tensor input, Tensor target, Tensor|Scalar var, bool full=False, "
        "float eps=1e-6, Reduction{none|mean|sum} reduction='mean') -> Tensor",
        "nn", "Negative log likelihood of a normal distribution with variance var."),
};
OP_TABLE_END(losses);

}  // namespace cresset::ops
