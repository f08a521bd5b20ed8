// Distances between vectors: pairwise, of all pairs, and the cosine.
#include "core/ops/distance.h"

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/losses.h"
#include "core/ops/ops.h"
#include "core/ops/reduce.h"

namespace cresset {

/// cdist's choice of a matrix product for Euclidean distances; the result is the same.
enum class CdistMode { if_necessary, always, never };

template <> struct EnumNames<CdistMode> {
  static constexpr const char* schema =
      "CdistMode{use_mm_for_euclid_dist_if_necessary|use_mm_for_euclid_dist|"
      "donot_use_mm_for_euclid_dist}";
};

namespace ops {

Tensor pairwise_distance(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  CHECK(x1.dim() >= 1 || x2.dim() >= 1, Shape,
        "pairwise_distance: expected tensors of at least 1 dim, got two 0-d ones");
  Tensor d = add(sub(x1, x2), Operand(Scalar(eps)));
  return vector_norm(d, Scalar(p), Dims{d.dim() - 1}, keepdim, std::nullopt);
}

Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  constexpr const char* op = "cosine_similarity";
  Dims sizes = broadcast_shapes(op, x1.sizes(), x2.sizes());
  int64_t d = wrap_dim(op, dim, static_cast<int64_t>(sizes.size()));
  const Operand both[] = {x1, x2};
  DType dtype = result_dtype(op, DTypeClass::number, both);
  CHECK(is_floating(dtype) || is_complex(dtype), DType, op, ": expected floating dtypes, got ",
        x1.dtype(), " and ", x2.dtype());
  auto direction = [&](const Tensor& x) {
    Tensor v = expand(to_dtype(x, dtype), sizes);
    Tensor length = vector_norm(v, Scalar(2.0), Dims{d}, true, std::nullopt);
    return div(v, at_least(length, eps));
  };
  return sum(mul(direction(x1), direction(x2)), Dims{d}, false, std::nullopt);
}

// ---- all pairs

namespace {

void run_forward(const char* op, DistanceCall call, const Tensor& a, const Tensor& b,
                 const Tensor& y) {
  call.a = &a;
  call.b = &b;
  call.y = &y;
  launch(op, y.device(), &DistanceKernels::forward, call);
}

Tensor distances(const char* op, const DistanceCall& call, const Tensor& a, const Tensor& b,
                 const Dims& sizes) {
  Tensor y = empty(sizes, options_of(a));
  run_forward(op, call, a, b, y);
  if (!wants_grad(a, b)) return y;
  const char* node = call.pairs ? "PdistBackward0" : "CdistBackward0";
  record(node, y, inputs(a, b),
         [op, call, as = save(a), bs = save(b), ys = save_output(y)](Backward& back) {
           CHECK(!grad_enabled(), NotImplemented, op, ": no derivative of its derivative");
           Tensor x1 = back(as), x2 = back(bs), out = back(ys), g = contiguous(back.grad());
           DistanceCall c = call;
           c.a = &x1;
           c.b = &x2;
           c.y = &out;
           Tensor da = zeros_like(x1), db = call.pairs ? Tensor() : zeros_like(x2);
           launch(op, g.device(), &DistanceKernels::backward, c, g, da, db);
           if (back.needs(0)) back[0] = da;
           if (back.needs(1) && !call.pairs) back[1] = db;
         });
  return y;
}

void check_order(const char* op, const Tensor& x, double p) {
  CHECK(x.dtype() == DType::Float32 || x.dtype() == DType::Float64, DType, op,
        ": expected float32 or float64, got ", x.dtype());
  CHECK(p >= 0, Value, op, ": expected p of at least 0, got ", p);
}

}  // namespace

static Tensor cdist(const Tensor& x1, const Tensor& x2, double p, CdistMode) {
  check_order("cdist", x1, p);
  CHECK(x1.dtype() == x2.dtype(), DType, "cdist: expected one dtype, got ", x1.dtype(), " and ",
        x2.dtype());
  CHECK(x1.dim() >= 2 && x2.dim() >= 2 && x1.size(-1) == x2.size(-1), Shape,
        "cdist: expected shapes [..., P, M] and [..., R, M], got ", x1.sizes(), " and ",
        x2.sizes());
  auto lead = [](const Tensor& x) {
    return Dims(std::span<const int64_t>(x.sizes()).first(x.sizes().size() - 2));
  };
  Dims batch = broadcast_shapes("cdist", lead(x1), lead(x2));
  auto spread = [&](const Tensor& x) {
    Dims sizes = batch;
    sizes.push_back(x.size(-2));
    sizes.push_back(x.size(-1));
    return contiguous(expand(x, sizes));
  };
  DistanceCall call{.p = p, .rows_a = x1.size(-2), .rows_b = x2.size(-2), .width = x1.size(-1)};
  for (int64_t n : batch) call.batch *= n;
  Dims sizes = batch;
  sizes.push_back(call.rows_a);
  sizes.push_back(call.rows_b);
  return distances("cdist", call, spread(x1), spread(x2), sizes);
}

static Tensor pdist(const Tensor& input, double p) {
  check_order("pdist", input, p);
  CHECK(input.dim() == 2, Shape, "pdist: expected shape [N, M], got ", input.sizes());
  Tensor x = contiguous(input);
  int64_t n = x.size(0);
  DistanceCall call{.p = p, .pairs = true, .rows_a = n, .rows_b = n, .width = x.size(1)};
  return distances("pdist", call, x, x, Dims{n < 2 ? 0 : n * (n - 1) / 2});
}

OP_TABLE(distance) = {
    op<pairwise_distance>("pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-6, "
                          "bool keepdim=False) -> Tensor",
                          "torch nn", "Norm of x1 - x2 + eps over the last dim."),
    op<cosine_similarity>("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-8) "
                          "-> Tensor",
                          "torch nn", "Cosine of the angle between vectors along a dim."),
    op<cdist>("cdist(Tensor x1, Tensor x2, float p=2, CdistMode"
              "{use_mm_for_euclid_dist_if_necessary|use_mm_for_euclid_dist|"
              "donot_use_mm_for_euclid_dist} compute_mode='use_mm_for_euclid_dist_if_necessary') "
              "-> Tensor",
              "torch", "Distances of order p between all rows [..., P, M] and [..., R, M]."),
    op<pdist>("pdist(Tensor input, float p=2) -> Tensor", "torch nn",
              "Distances of order p between all rows i < j of [N, M]."),
};
OP_TABLE_END(distance);

}  // namespace ops
}  // namespace cresset
