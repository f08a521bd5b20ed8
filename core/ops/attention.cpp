// Scaled dot product attention.
#include <cmath>
#include <limits>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/losses.h"
#include "core/ops/matmul.h"
#include "core/ops/random_fills.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"

namespace cresset::ops {
namespace {

Operand number(double v) { return Operand(Scalar(v)); }

// Softmax over the last dim; rows that are masked whole give zeros.
Tensor masked_softmax(const Tensor& x) {
  if (x.numel() == 0) return x;
  bool small = x.dtype() == DType::Float16 || x.dtype() == DType::BFloat16;
  int64_t width = x.dim() ? x.size(-1) : 1;
  Tensor rows = reshape(small ? to_dtype(x, DType::Float32) : x, {x.numel() / width, width});
  return to_dtype(reshape(class_softmax(rows), x.sizes()), x.dtype());
}

// x with elements zeroed at random and the rest scaled up.
Tensor dropped(const Tensor& x, double rate) {
  Tensor keep = empty(x.sizes(), options_of(x));
  draw_into(keep, {}, {Distribution::Bernoulli, 1 - rate},
            [&](Generator& g, void* out, int64_t n, bool) {
              fill_bernoulli(g, x.dtype(), out, n, 1 - rate);
            });
  return mul(x, rate == 1 ? keep : div(keep, number(1 - rate)));
}

// 0 on and below the diagonal of [rows, columns], -inf above it.
Tensor causal_mask(int64_t rows, int64_t columns, Options options) {
  GradMode off(false);
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  return triu(full(Dims{rows, columns}, Scalar(lowest), options), 1);
}

// Each head of [..., H, S, E] repeated so that there are `heads` of them.
Tensor repeated_heads(const Tensor& x, int64_t heads) {
  int64_t own = x.size(-3);
  if (own == heads) return x;
  CHECK(own > 0 && heads % own == 0, Shape, "scaled_dot_product_attention: expected a multiple of ",
        own, " heads, got ", heads);
  Dims wide = x.sizes(), merged = x.sizes();
  wide.insert(static_cast<size_t>(x.dim() - 2), heads / own);
  merged[static_cast<size_t>(x.dim() - 3)] = heads;
  return reshape(expand(unsqueeze(x, x.dim() - 2), wide), merged);
}

}  // namespace

static Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                        std::optional<Tensor> mask, double dropout_p, bool is_causal,
                        std::optional<double> scale, bool enable_gqa) {
  constexpr const char* op = "scaled_dot_product_attention";
  CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, Shape, op,
        ": expected tensors of at least 2 dims, got shapes ", query.sizes(), ", ", key.sizes(),
        " and ", value.sizes());
  CHECK(query.dtype() == key.dtype() && query.dtype() == value.dtype(), DType, op,
        ": expected one dtype, got ", query.dtype(), ", ", key.dtype(), " and ", value.dtype());
  CHECK(dropout_p >= 0 && dropout_p <= 1, Value, op, ": expected dropout_p in [0, 1], got ",
        dropout_p);
  CHECK(!is_causal || !mask, Value, op, ": expected no attn_mask where is_causal is given");
  Tensor k = key, v = value;
  if (enable_gqa) {
    CHECK(query.dim() >= 3 && key.dim() >= 3 && value.dim() >= 3, Shape, op,
          ": expected a dim of heads for enable_gqa");
    k = repeated_heads(key, query.size(-3));
    v = repeated_heads(value, query.size(-3));
  }
  double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  Tensor scores = mul(matmul(query, transpose(k, -2, -1)), number(factor));
  if (is_causal) scores = add(scores, causal_mask(query.size(-2), k.size(-2), options_of(scores)));
  if (mask && mask->dtype() == DType::Bool)
    scores = where(*mask, scores, number(-std::numeric_limits<double>::infinity()));
  else if (mask)
    scores = add(scores, *mask);
  Tensor weights = mask ? masked_softmax(scores) : softmax(scores, -1, std::nullopt);
  if (dropout_p > 0) weights = dropped(weights, dropout_p);
  return matmul(weights, v);
}

OP_TABLE(attention) = {
    op<attention>(
        "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
        "Tensor? attn_mask=None, float dropout_p=0, bool is_causal=False, *, float? scale=None, "
        "bool enable_gqa=False) -> Tensor",
        "nn", "softmax(query key^T scale + mask) value, over [..., L, E] and [..., S, E]."),
};
OP_TABLE_END(attention);

}  // namespace cresset::ops
