// Rows of a table by index: embedding, embedding_bag, one_hot.
#include "core/ops/embedding.h"
#include "core/dispatch/op.h"
#include "core/ops/indexing.h"
#include "core/ops/write_in_place.h"

namespace cresset::ops {
namespace {

struct EmbeddingOptions {
  int64_t padding = -1;  // the row without gradient, or -1
  bool scale_by_frequency = false;
};

// `at` without the padding row: -1 marks what the row kernels skip.
Tensor without_padding(const Tensor& at, int64_t padding) {
  if (padding < 0) return at;
  return masked_fill(at, eq(at, Operand(Scalar(padding))), Operand(-1));
}

// 1 / (how often each index occurs), [n, 1].
Tensor inverse_frequency(const Tensor& at, int64_t rows, Options o) {
  Tensor one = expand(ones(Dims{}, o), Dims{at.numel()});
  Tensor counts = spread_rows(one, 0, at, rows);
  return unsqueeze(row(Row::reciprocal, {Operand(select_rows(counts, 0, at))}), 1);
}

// Rows of the table, [n, width]; the gradient leaves out padding and may be scaled.
Tensor lookup(const Tensor& weight, const Tensor& at, EmbeddingOptions options) {
  Tensor y;
  {
    GradMode off(false);
    y = select_rows(weight, 0, at);
  }
  if (wants_grad(weight))
    record("EmbeddingBackward0", y, inputs(weight),
           [rows = weight.size(0), at = save(at), options](Backward& b) {
             Tensor g = b.grad(), i = b(at), kept;
             {
               GradMode off(false);
               kept = without_padding(i, options.padding);
             }
             if (options.scale_by_frequency) g = mul(g, inverse_frequency(i, rows, options_of(g)));
             b[0] = spread_rows(g, 0, kept, rows);
           });
  return y;
}

int64_t wrapped_padding(const char* op, const Tensor& weight, std::optional<int64_t> padding) {
  if (!padding) return -1;
  int64_t n = weight.size(0);
  CHECK(*padding >= -n && *padding < n, Value, op, ": expected padding_idx in [", -n, ", ", n - 1,
        "], got ", *padding);
  return *padding < 0 ? *padding + n : *padding;
}

// Scales rows longer than max_norm in place, as PyTorch does: the weight itself changes.
void limit_norm(const char* op, const Tensor& weight, const Tensor& at, double max_norm,
                double norm_type) {
  CHECK(weight.is_contiguous() && weight.is_floating(), Value, op,
        ": max_norm needs a contiguous floating weight");
  GradMode off(false);
  launch(op, weight.device(), &EmbeddingKernels::limit_norm, weight, at, max_norm, norm_type);
  weight.bump_version();
}

Tensor flat_indices(const char* op, const Tensor& weight, const Tensor& input) {
  CHECK(weight.dim() == 2, Shape, op, ": expected a 2-d weight, got shape ", weight.sizes());
  Tensor at = checked_index(op, weight, input, weight.size(0), false);
  GradMode off(false);
  return contiguous(reshape(at, Dims{at.numel()}));
}

Tensor embedding(const Tensor& input, const Tensor& weight, std::optional<int64_t> padding_idx,
                 std::optional<double> max_norm, double norm_type, bool scale_grad_by_freq,
                 bool sparse) {
  CHECK(!sparse, NotImplemented, "embedding: sparse gradients are not implemented");
  Tensor at = flat_indices("embedding", weight, input);
  int64_t padding = wrapped_padding("embedding", weight, padding_idx);
  if (max_norm) limit_norm("embedding", weight, at, *max_norm, norm_type);
  Dims sizes = input.sizes();
  sizes.push_back(weight.size(1));
  return reshape(lookup(weight, at, {padding, scale_grad_by_freq}), sizes);
}

// ---- embedding_bag

struct Bags {
  Tensor at;   // indices, [n]
  Tensor bag;  // the bag of each index, [n]
  int64_t count = 0;
};

// One bag per row of a 2-d input, or from each offset to the next.
Bags bags_of(const Tensor& weight, const Tensor& input, const std::optional<Tensor>& offsets,
             bool include_last) {
  CHECK(input.dim() == 1 || input.dim() == 2, Shape,
        "embedding_bag: expected a 1-d or 2-d input, got shape ", input.sizes());
  CHECK((input.dim() == 1) == offsets.has_value(), Value,
        input.dim() == 1 ? "embedding_bag: a 1-d input needs offsets"
                         : "embedding_bag: a 2-d input takes no offsets");
  Bags bags{flat_indices("embedding_bag", weight, input), {}, 0};
  CHECK(!input.is_meta(), Device, "embedding_bag: the result depends on values of offsets");
  int64_t n = bags.at.numel();
  bags.bag = empty(Dims{n}, {DType::Int64, {}});
  int64_t* bag = bags.bag.data<int64_t>();
  if (!offsets) {
    bags.count = input.size(0);
    for (int64_t i = 0; i < n; ++i) bag[i] = i / input.size(1);
    bags.bag = on_device(bags.bag, input.device());
    return bags;
  }
  CHECK(offsets->dim() == 1, Shape, "embedding_bag: expected 1-d offsets, got shape ",
        offsets->sizes());
  Tensor o = contiguous(on_host(checked_index("embedding_bag", weight, *offsets, n + 1, false)));
  const int64_t* start = o.data<int64_t>();
  int64_t given = o.numel();
  CHECK(given > 0 || !include_last, Value,
        "embedding_bag: include_last_offset needs at least one offset");
  CHECK(given == 0 || start[0] == 0, Value,
        "embedding_bag: expected the first offset to be 0, got ", given ? start[0] : 0);
  bags.count = include_last ? given - 1 : given;
  std::fill(bag, bag + n, int64_t{-1});
  for (int64_t b = 0; b < bags.count; ++b) {
    int64_t end = b + 1 < given ? start[b + 1] : n;
    CHECK(start[b] <= end, Value, "embedding_bag: offsets must not decrease, got ", start[b],
          " before ", end);
    std::fill(bag + start[b], bag + end, b);
  }
  bags.bag = on_device(bags.bag, input.device());
  return bags;
}

// The index that gave the maximum is found first; then the result is a gather.
Tensor bag_max(const Tensor& weight, const Bags& bags, int64_t padding) {
  Tensor best =
      full(Dims{bags.count, weight.size(1)}, Scalar(int64_t{-1}), {DType::Int64, weight.device()});
  Tensor found;
  {
    GradMode off(false);
    launch("embedding_bag", weight.device(), &EmbeddingKernels::bag_argmax, contiguous(weight),
           without_padding(bags.at, padding), bags.bag, best);
    found = row(Row::ge, {Operand(best), Operand(0)});
    best = row(Row::maximum, {Operand(best), Operand(0)});
  }
  if (weight.size(0) == 0) return zeros(best.sizes(), options_of(weight));
  return where_same(found, gather(weight, 0, best), zeros(Dims{}, options_of(weight)));
}

Tensor embedding_bag(const Tensor& input, const Tensor& weight,
                     const std::optional<Tensor>& offsets, std::optional<double> max_norm,
                     double norm_type, bool scale_grad_by_freq, BagMode mode, bool sparse,
                     const std::optional<Tensor>& per_sample_weights, bool include_last_offset,
                     std::optional<int64_t> padding_idx) {
  CHECK(!sparse, NotImplemented, "embedding_bag: sparse gradients are not implemented");
  CHECK(mode != BagMode::max || !scale_grad_by_freq, Value,
        "embedding_bag: scale_grad_by_freq does not go with mode \"max\"");
  CHECK(!per_sample_weights || mode == BagMode::sum, Value,
        "embedding_bag: per_sample_weights needs mode \"sum\"");
  CHECK(!per_sample_weights || per_sample_weights->sizes() == input.sizes(), Shape,
        "embedding_bag: expected per_sample_weights of the input's shape ", input.sizes());
  CHECK(!per_sample_weights || per_sample_weights->dtype() == weight.dtype(), DType,
        "embedding_bag: expected per_sample_weights of the weight's dtype ", weight.dtype());
  Bags bags = bags_of(weight, input, offsets, include_last_offset);
  int64_t padding = wrapped_padding("embedding_bag", weight, padding_idx);
  if (max_norm) limit_norm("embedding_bag", weight, bags.at, *max_norm, norm_type);
  if (mode == BagMode::max) return bag_max(weight, bags, padding);
  Tensor rows = lookup(weight, bags.at, {padding, scale_grad_by_freq});
  Tensor kept = row(Row::ne, {Operand(bags.at), Operand(Scalar(padding))});
  if (padding >= 0) rows = where_same(unsqueeze(kept, 1), rows, zeros(Dims{}, options_of(rows)));
  if (per_sample_weights)
    rows = mul(rows, unsqueeze(reshape(*per_sample_weights, Dims{bags.at.numel()}), 1));
  Tensor y = spread_rows(rows, 0, bags.bag, bags.count);
  if (mode == BagMode::sum) return y;
  Tensor n = spread_rows(to_dtype(kept, y.dtype()), 0, bags.bag, bags.count);
  return div(y, unsqueeze(row(Row::maximum, {Operand(n), Operand(1)}), 1));
}

// ---- one_hot

Tensor one_hot(const Tensor& input, int64_t num_classes) {
  CHECK(input.dtype() == DType::Int64, DType, "one_hot: expected int64 indices, got ",
        input.dtype());
  GradMode off(false);
  int64_t n = num_classes;
  if (n < 0) {
    CHECK(n == -1, Value, "one_hot: expected num_classes of at least 1, or -1, got ", n);
    CHECK(!input.is_meta() && input.numel() > 0, Value,
          "one_hot: num_classes cannot be found from an empty or meta input");
    int64_t lo = 0, hi = 0;
    launch("one_hot", input.device(), &IndexingKernels::range, contiguous(input), &lo, &hi);
    n = hi + 1;
  }
  CHECK(n > 0 || input.numel() == 0, Value, "one_hot: expected num_classes of at least 1, got ", n);
  Tensor at = unsqueeze(checked_index("one_hot", input, input, n, false), input.dim());
  Dims sizes = input.sizes();
  sizes.push_back(n);
  return scatter_add(zeros(sizes, options_of(input)), input.dim(), at, ones_like(at));
}

}  // namespace

OP_TABLE(embedding) = {
    op<embedding>("embedding(Tensor input, Tensor weight, int? padding_idx=None, "
                  "float? max_norm=None, float norm_type=2.0, bool scale_grad_by_freq=False, "
                  "bool sparse=False) -> Tensor",
                  "nn", "Rows of `weight` [n, width] by index."),
    op<embedding_bag>(
        "embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, float? max_norm=None, "
        "float norm_type=2.0, bool scale_grad_by_freq=False, BagMode{mean|sum|max} mode='mean', "
        "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, "
        "int? padding_idx=None) -> Tensor",
        "nn", "Means, sums or maxima of bags of rows of `weight`."),
    op<one_hot>("one_hot(Tensor input, int num_classes=-1) -> Tensor", "nn",
                "1 at each index, 0 elsewhere, [..., num_classes]."),
};
OP_TABLE_END(embedding);

}  // namespace cresset::ops
