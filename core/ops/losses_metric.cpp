// Losses over margins and distances.
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/activation.h"
#include "core/ops/distance.h"
#include "core/ops/losses.h"
#include "core/ops/ops.h"

namespace cresset::ops {
namespace {

Operand number(double v) { return Operand(Scalar(v)); }
Operand zero() { return Operand(Scalar(int64_t{0})); }

Tensor sum_over(const Tensor& x, const Dims& dims, bool keepdim = false) {
  return sum(x, dims, keepdim, std::nullopt);
}
Tensor equals(const Tensor& x, int64_t v) { return eq(x, Operand(Scalar(v))); }
Tensor relu(const Tensor& x) { return row(Row::relu, {x}); }

}  // namespace

// ---- margins between pairs

static Tensor hinge_embedding_loss(const Tensor& input, const Tensor& target, double margin,
                                   LegacyFlag size_average, LegacyFlag reduce,
                                   Reduction reduction) {
  Tensor below = positive_part(sub(number(margin), input));
  Tensor rows =
      add(where(equals(target, 1), zero(), below), where(equals(target, -1), zero(), input));
  return reduce_loss("hinge_embedding_loss", rows,
                     legacy_reduction(reduction, size_average, reduce));
}

static Tensor margin_ranking_loss(const Tensor& input1, const Tensor& input2, const Tensor& target,
                                  double margin, LegacyFlag size_average, LegacyFlag reduce,
                                  Reduction reduction) {
  CHECK(input1.dim() == input2.dim() && input1.dim() == target.dim(), Shape,
        "margin_ranking_loss: expected inputs of one number of dims, got shapes ", input1.sizes(),
        ", ", input2.sizes(), " and ", target.sizes());
  Tensor gap = mul(neg(target), sub(input1, input2));
  return reduce_loss("margin_ranking_loss", positive_part(add(gap, number(margin))),
                     legacy_reduction(reduction, size_average, reduce));
}

static Tensor cosine_embedding_loss(const Tensor& input1, const Tensor& input2,
                                    const Tensor& target, double margin, LegacyFlag size_average,
                                    LegacyFlag reduce, Reduction reduction) {
  CHECK(target.dim() <= 1 && input1.dim() == target.dim() + 1 && input2.dim() == input1.dim(),
        Shape,
        "cosine_embedding_loss: expected inputs [N, D] with a target [N], or [D] with a "
        "0-d target, got shapes ",
        input1.sizes(), ", ", input2.sizes(), " and ", target.sizes());
  Dims last{target.dim()};
  constexpr double tiny = 1e-12;
  Tensor squares1 = add(sum_over(mul(input1, input1), last), number(tiny));
  Tensor squares2 = add(sum_over(mul(input2, input2), last), number(tiny));
  Tensor cosine =
      div(sum_over(mul(input1, input2), last), row(Row::sqrt, {mul(squares1, squares2)}));
  Tensor rows = add(where(equals(target, 1), sub(Operand(1), cosine), zero()),
                    where(equals(target, -1), positive_part(sub(cosine, number(margin))), zero()));
  return reduce_loss("cosine_embedding_loss", rows,
                     legacy_reduction(reduction, size_average, reduce));
}

// ---- margins between classes

// Scores as [N, C]: a 0-d or 1-d tensor is one sample.
static Tensor as_samples(const char* op, const Tensor& x) {
  CHECK(x.is_floating(), DType, op, ": expected scores of a floating dtype, got ", x.dtype());
  CHECK(x.dim() <= 2 && (x.dim() == 0 || x.size(-1) > 0), Shape, op,
        ": expected scores [C] or [N, C] with C above 0, got shape ", x.sizes());
  return x.dim() == 2 ? x : reshape(x, {1, x.dim() ? x.size(0) : 1});
}

static Tensor multi_margin_loss(const Tensor& input, const Tensor& target, const Scalar& p,
                                const Scalar& margin, std::optional<Tensor> weight,
                                LegacyFlag size_average, LegacyFlag reduce, Reduction reduction) {
  constexpr const char* op = "multi_margin_loss";
  CHECK(p.equals(1) || p.equals(2), Value, op, ": expected p to be 1 or 2, got ", p);
  Tensor x = as_samples(op, input);
  CHECK(target.dim() <= 1 && target.numel() == x.size(0), Shape, op, ": expected a target of ",
        x.size(0), " classes, got shape ", target.sizes());
  CHECK(target.dtype() == DType::Int64, DType, op, ": expected a target of dtype int64, got ",
        target.dtype());
  Tensor classes = reshape(target, {x.size(0)});
  constexpr int64_t none_ignored = -1;
  Tensor chosen = one_hot_targets(op, x, classes, Tensor(), none_ignored);
  Tensor others = sub(Operand(1), chosen);
  Tensor own = sum_over(mul(x, chosen), {1}, true);
  Tensor gap = relu(add(sub(x, own), Operand(Scalar(margin.to_double()))));
  if (p.equals(2)) gap = mul(gap, gap);
  Tensor rows = div(sum_over(mul(gap, others), {1}), number(static_cast<double>(x.size(1))));
  if (weight)
    rows = mul(rows, sum_over(one_hot_targets(op, x, classes, *weight, none_ignored), {1}));
  if (input.dim() < 2 && target.dim() == 0) rows = reshape(rows, {});
  return reduce_loss(op, rows, legacy_reduction(reduction, size_average, reduce));
}

// The classes of a row up to its first -1; the rest becomes -1.
static Tensor leading_classes(const Tensor& target, int64_t classes) {
  if (target.is_meta()) return target;
  Tensor t = clone(on_host(target), int64_t{0});
  int64_t* v = t.data<int64_t>();
  for (int64_t i = 0; i < t.numel(); i += classes) {
    bool ended = false;
    for (int64_t c = 0; c < classes; ++c) {
      ended |= v[i + c] == -1;
      if (ended) v[i + c] = -1;
    }
  }
  return on_device(t, target.device());
}

static Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target,
                                     LegacyFlag size_average, LegacyFlag reduce,
                                     Reduction reduction) {
  constexpr const char* op = "multilabel_margin_loss";
  Tensor x = as_samples(op, input);
  CHECK(target.sizes() == input.sizes(), Shape, op, ": expected a target of shape ", input.sizes(),
        ", got ", target.sizes());
  CHECK(target.dtype() == DType::Int64, DType, op, ": expected a target of dtype int64, got ",
        target.dtype());
  int64_t n = x.size(0), classes = x.size(1);
  // chosen[n, j, c]: whether class c is the j-th target of sample n.
  Tensor chosen, valid, others;
  {
    GradMode off(false);
    Tensor flat = reshape(leading_classes(target, classes), {n * classes});
    Tensor scores = empty(Dims{n * classes, classes}, options_of(x));
    chosen = reshape(one_hot_targets(op, scores, flat, Tensor(), -1), {n, classes, classes});
    valid = sum_over(chosen, {2}, true);
    others = unsqueeze(row(Row::minimum, {sum_over(chosen, {1}), Operand(1)}), 1);
    others = sub(Operand(1), others);
  }
  Tensor own = sum_over(mul(chosen, unsqueeze(x, 1)), {2}, true);
  Tensor gap = relu(add(sub(unsqueeze(x, 1), own), Operand(1)));
  Tensor rows =
      div(sum_over(mul(mul(gap, valid), others), {1, 2}), number(static_cast<double>(classes)));
  if (input.dim() < 2) rows = reshape(rows, {});
  return reduce_loss(op, rows, legacy_reduction(reduction, size_average, reduce));
}

// ---- triplets

static Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                  const Tensor& negative, double margin, double p, double eps,
                                  bool swap, LegacyFlag size_average, LegacyFlag reduce,
                                  Reduction reduction) {
  constexpr const char* op = "triplet_margin_loss";
  CHECK(margin > 0, Value, op, ": expected margin above 0, got ", margin);
  CHECK(anchor.dim() == positive.dim() && anchor.dim() == negative.dim(), Shape, op,
        ": expected inputs of one number of dims, got shapes ", anchor.sizes(), ", ",
        positive.sizes(), " and ", negative.sizes());
  Tensor near = pairwise_distance(anchor, positive, p, eps, false);
  Tensor far = pairwise_distance(anchor, negative, p, eps, false);
  if (swap) far = row(Row::minimum, {far, pairwise_distance(positive, negative, p, eps, false)});
  Tensor rows = positive_part(add(sub(near, far), number(margin)));
  return reduce_loss(op, rows, legacy_reduction(reduction, size_average, reduce));
}

OP_TABLE(losses_metric) = {
    op<hinge_embedding_loss>(
        "hinge_embedding_loss(Tensor input, Tensor target, float margin=1, "
        "bool? size_average=None, bool? reduce=None, Reduction{none|mean|sum} reduction='mean') "
        "-> Tensor",
        "nn", "Distances where the target is 1, max(0, margin - distance) where it is -1."),
    op<margin_ranking_loss>(
        "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, "
        "bool? size_average=None, bool? reduce=None, Reduction{none|mean|sum} reduction='mean') "
        "-> Tensor",
        "nn", "max(0, -target (input1 - input2) + margin)."),
    op<cosine_embedding_loss>(
        "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, "
        "bool? size_average=None, bool? reduce=None, Reduction{none|mean|sum} reduction='mean') "
        "-> Tensor",
        "nn", "1 - cosine where the target is 1, max(0, cosine - margin) where it is -1."),
    op<multi_margin_loss>(
        "multi_margin_loss(Tensor input, Tensor target, Scalar p=1, Scalar margin=1, "
        "Tensor? weight=None, bool? size_average=None, bool? reduce=None, "
        "Reduction{none|mean|sum} reduction='mean') -> Tensor",
        "nn", "Mean over the other classes of max(0, margin - x[target] + x[c])^p."),
    op<multilabel_margin_loss>(
        "multilabel_margin_loss(Tensor input, Tensor target, bool? size_average=None, "
        "bool? reduce=None, Reduction{none|mean|sum} reduction='mean') -> Tensor",
        "nn", "Margins between the classes listed before the first -1 and all others."),
    op<triplet_margin_loss>(
        "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1, "
        "float p=2, float eps=1e-6, bool swap=False, bool? size_average=None, "
        "bool? reduce=None, Reduction{none|mean|sum} reduction='mean') -> Tensor",
        "nn", "max(0, distance to the positive - distance to the negative + margin)."),
};
OP_TABLE_END(losses_metric);

}  // namespace cresset::ops
