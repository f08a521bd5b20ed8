// Losses over classes: cross entropy and negative log likelihood.
#include <limits>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/losses.h"
#include "core/ops/ops.h"

namespace cresset::ops {
namespace {

// Shape of one loss per sample: the scores' shape without the class dim.
Dims row_sizes(const Tensor& x) {
  Dims sizes = x.sizes();
  sizes.erase(x.dim() == 1 ? 0 : 1);
  return sizes;
}

int64_t class_dim(const Tensor& x) { return x.dim() == 1 ? 0 : 1; }

void set_geometry(ClassLoss& in, const Tensor& x) {
  in.n = x.dim() == 1 ? 1 : x.size(0);
  in.classes = x.size(class_dim(x));
  in.inner = 1;
  for (int64_t d = 2; d < x.dim(); ++d) in.inner *= x.size(d);
}

// The kernels index with targets, so every one is checked here.
void check_classes(const char* op, const ClassLoss& in) {
  if (!in.target.device().is_cpu()) return;
  const int64_t* t = in.target.data<int64_t>();
  for (int64_t i = 0; i < in.target.numel(); ++i)
    CHECK((t[i] >= 0 && t[i] < in.classes) || t[i] == in.ignore_index, Index, op,
          ": expected target classes in [0, ", in.classes - 1, "], got ", t[i]);
}

// Checks scores, classes and weights, and lays them out for the kernels.
void prepare(const char* op, const Tensor& x, const Tensor& target, const Tensor& weight,
             ClassLoss& in) {
  CHECK(x.dim() >= 1, Shape, op, ": expected scores of at least 1 dim, got a 0-d tensor");
  CHECK(x.is_floating(), DType, op, ": expected scores of a floating dtype, got ", x.dtype());
  CHECK(is_integral(target.dtype(), false), DType, op, ": expected classes of dtype int64, got ",
        target.dtype());
  CHECK(target.sizes() == row_sizes(x) || (x.dim() == 1 && target.numel() == 1), Shape, op,
        ": expected a target of shape ", row_sizes(x), " for scores of shape ", x.sizes(), ", got ",
        target.sizes());
  set_geometry(in, x);
  CHECK(in.classes > 0 || in.n * in.inner == 0, Shape, op,
        ": expected at least one class, got shape ", x.sizes());
  in.scores = x;
  in.target = contiguous(to_dtype(target, DType::Int64));
  if (weight.defined()) {
    CHECK(weight.dim() == 1 && weight.numel() == in.classes, Shape, op, ": expected a weight of ",
          in.classes, " classes, got shape ", weight.sizes());
    in.weight = contiguous(to_dtype(detach(weight), x.dtype()));
  }
  check_classes(op, in);
}

// A copy that keeps neither scores nor classes: those are saved apart, with their versions.
ClassLoss without_tensors(const ClassLoss& in) {
  ClassLoss rest = in;
  rest.scores = rest.target = Tensor();
  return rest;
}

// The negative of B, where a row's loss is -sum over c of B[c] log p[c].
Tensor negative_targets(const ClassLoss& in) {
  GradMode off(false);
  ClassLoss plain = in;
  plain.logits = false;
  Tensor dx = empty(in.scores.sizes(), options_of(in.scores));
  ClassLossOut none{.reduction = Reduction::sum, .lse = {}, .loss = {}, .total = {}};
  launch("class_loss", dx.device(), &LossKernels::class_loss_backward, plain, none,
         full(Dims{}, Scalar(1.0), options_of(dx)), dx);
  return dx;
}

// Gradient of the scores; differentiable itself in the scores and in g.
Tensor class_loss_gradient(const ClassLoss& in, const ClassLossOut& saved, const Tensor& g) {
  const Tensor& x = in.scores;
  if (!grad_enabled()) {
    Tensor dx = empty(x.sizes(), options_of(x));
    launch("class_loss_backward", x.device(), &LossKernels::class_loss_backward, in, saved,
           contiguous(g), dx);
    return dx;
  }
  Tensor scale = saved.reduction == Reduction::mean ? div(g, saved.total) : g;
  if (saved.reduction == Reduction::none) {
    Dims sizes = x.sizes();
    sizes[static_cast<size_t>(class_dim(x))] = 1;
    scale = reshape(scale, sizes);
  }
  Tensor minus = negative_targets(in);
  if (!in.logits) return mul(scale, minus);
  Tensor mass = neg(sum(minus, Dims{class_dim(x)}, true, std::nullopt));
  return mul(scale, add(mul(mass, class_softmax(x)), minus));
}

}  // namespace

Tensor class_log_sum_exp(const Tensor& scores) {
  Tensor x = contiguous(scores);
  ClassLoss in;
  set_geometry(in, x);
  in.scores = x;
  Dims sizes = x.sizes();
  sizes[static_cast<size_t>(class_dim(x))] = 1;
  Tensor y = empty(sizes, options_of(x));
  launch("logsumexp", x.device(), &LossKernels::log_sum_exp, in, y);
  if (wants_grad(x))
    record("LogsumexpBackward0", y, inputs(x), [s = save(x)](Backward& b) {
      Tensor scores = b(s);
      b[0] = mul(b.grad(), class_softmax(scores));
    });
  return y;
}

Tensor class_softmax(const Tensor& x) {
  Tensor z = class_log_sum_exp(x);
  Operand lowest(Scalar(-std::numeric_limits<double>::infinity()));
  return exp(sub(x, where(eq(z, lowest), Operand(Scalar(0.0)), z)));
}

Tensor one_hot_targets(const char* op, const Tensor& x, const Tensor& target, const Tensor& weight,
                       int64_t ignore_index) {
  GradMode off(false);
  ClassLoss in;
  in.ignore_index = ignore_index;
  prepare(op, contiguous(x), target, weight, in);
  return neg(negative_targets(in));
}

Tensor class_loss(const char* op, const Tensor& scores, const Tensor& target, const Tensor& weight,
                  ClassLoss in, Reduction reduction) {
  DType dtype = scores.dtype();
  if (dtype == DType::Float16 || dtype == DType::BFloat16) {
    Tensor w = weight.defined() ? to_dtype(weight, DType::Float32) : weight;
    Tensor x = to_dtype(scores, DType::Float32);
    return to_dtype(class_loss(op, x, target, w, std::move(in), reduction), dtype);
  }
  Tensor x = contiguous(scores);
  prepare(op, x, target, weight, in);
  ClassLossOut out{.reduction = reduction, .lse = {}, .loss = {}, .total = {}};
  Options options = options_of(x);
  if (in.logits) out.lse = empty(Dims{in.n * in.inner}, options);
  out.loss = empty(reduction == Reduction::none ? row_sizes(x) : Dims{}, options);
  if (reduction == Reduction::mean) out.total = empty(Dims{}, options);
  launch(op, x.device(), &LossKernels::class_loss, in, out);
  Tensor loss = std::exchange(out.loss, Tensor());
  if (wants_grad(x)) {
    auto backward = [xs = save(x), ts = save(in.target), in = without_tensors(in),
                     out](Backward& b) {
      ClassLoss at = in;
      at.scores = b(xs);
      at.target = b(ts);
      b[0] = class_loss_gradient(at, out, b.grad());
    };
    const char* node = in.logits ? "CrossEntropyLossBackward0" : "NllLossBackward0";
    record(node, loss, inputs(x), std::move(backward));
  }
  return loss;
}

// ---- cross entropy

// Targets are probabilities: the loss of a row is -sum over c of w[c] q[c] log p[c].
static Tensor cross_entropy_dense(const Tensor& input, const Tensor& target, const Tensor& weight,
                                  double smoothing, Reduction reduction) {
  CHECK(target.is_floating(), DType,
        "cross_entropy: expected class probabilities of a floating dtype, got ", target.dtype());
  int64_t d = class_dim(input), classes = input.size(d);
  Tensor q = target;
  if (smoothing > 0)
    q = add(mul(q, Operand(1 - smoothing)), Operand(smoothing / static_cast<double>(classes)));
  if (weight.defined()) {
    CHECK(weight.dim() == 1 && weight.numel() == classes, Shape,
          "cross_entropy: expected a weight of ", classes, " classes, got shape ", weight.sizes());
    Dims shape(static_cast<size_t>(input.dim()), 1);
    shape[static_cast<size_t>(d)] = classes;
    q = mul(q, reshape(weight, shape));
  }
  DType dtype = input.dtype();
  bool small = dtype == DType::Float16 || dtype == DType::BFloat16;
  Tensor x = small ? to_dtype(input, DType::Float32) : input;
  Tensor rows = neg(sum(mul(sub(x, class_log_sum_exp(x)), q), Dims{d}, false, std::nullopt));
  if (small) rows = to_dtype(rows, dtype);
  return reduce_loss("cross_entropy", rows, reduction);
}

static Tensor cross_entropy(const Tensor& input, const Tensor& target, std::optional<Tensor> weight,
                            LegacyFlag size_average, int64_t ignore_index, LegacyFlag reduce,
                            Reduction reduction, double label_smoothing) {
  CHECK(label_smoothing >= 0 && label_smoothing <= 1, Value,
        "cross_entropy: expected label_smoothing in [0, 1], got ", label_smoothing);
  CHECK(input.is_floating(), DType, "cross_entropy: expected scores of a floating dtype, got ",
        input.dtype());
  CHECK(input.dim() >= 1, Shape, "cross_entropy: expected scores of at least 1 dim, got 0");
  reduction = legacy_reduction(reduction, size_average, reduce);
  Tensor w = weight.value_or(Tensor());
  if (input.sizes() == target.sizes())
    return cross_entropy_dense(input, target, w, label_smoothing, reduction);
  ClassLoss in;
  in.ignore_index = ignore_index;
  in.smoothing = label_smoothing;
  return class_loss("cross_entropy", input, target, w, std::move(in), reduction);
}

static Tensor nll_loss(const Tensor& input, const Tensor& target, std::optional<Tensor> weight,
                       LegacyFlag size_average, int64_t ignore_index, LegacyFlag reduce,
                       Reduction reduction) {
  ClassLoss in;
  in.ignore_index = ignore_index;
  in.logits = false;
  return class_loss("nll_loss", input, target, weight.value_or(Tensor()), std::move(in),
                    legacy_reduction(reduction, size_average, reduce));
}

OP_TABLE(losses_class) = {
    op<cross_entropy>(
        "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
        "int ignore_index=-100, bool? reduce=None, Reduction{none|mean|sum} reduction='mean', "
        "float label_smoothing=0) -> Tensor",
        "nn",
        "Cross entropy of logits [N, C, ...] and classes [N, ...] or probabilities [N, C, ...]."),
    op<nll_loss>(
        "nll_loss(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
        "int ignore_index=-100, bool? reduce=None, Reduction{none|mean|sum} reduction='mean') "
        "-> Tensor",
        "nn", "Negative log likelihood of log-probabilities [N, C, ...] and classes [N, ...]."),
};
OP_TABLE_END(losses_class);

}  // namespace cresset::ops
