// Variances, standard deviations and covariances.
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/matmul.h"
#include "core/ops/ops.h"
#include "core/ops/reduce.h"

namespace cresset::ops {
namespace {

struct Moments {
  Tensor variance, mean;
};

void check_moment(const char* op, const Tensor& x) {
  CHECK(x.is_floating() || x.is_complex(), DType, op,
        ": expected a floating or complex dtype, got ", x.dtype());
}

// Two passes: deviations from the mean do not cancel as mean(x^2) - mean(x)^2 does.
Moments moments(const char* op, const Tensor& x, const Dims& over, double correction,
                bool keepdim) {
  GradMode off(false);
  const bool half = itemsize(x.dtype()) == 2;
  Tensor wide = half ? to_dtype(x, DType::Float32) : x;
  const double n = static_cast<double>(reduced_numel(x, over));
  Tensor mean =
      reduce_raw(op, wide, over,
                 {.kind = ReduceOp::Sum, .dtype = wide.dtype(), .keepdim = keepdim, .divisor = n});
  Tensor variance = reduce_raw(op, wide, over,
                               {.kind = ReduceOp::Deviations,
                                .dtype = to_real(wide.dtype()),
                                .keepdim = keepdim,
                                .divisor = std::max(0.0, n - correction),
                                .center = &mean});
  if (!half) return {variance, mean};
  return {to_dtype(variance, x.dtype()), to_dtype(mean, x.dtype())};
}

Tensor var_backward(const Tensor& g, const Tensor& x, const Dims& over, double correction,
                    bool keepdim) {
  const double freedom = static_cast<double>(reduced_numel(x, over)) - correction;
  Tensor wide = expand_reduced(g, x.sizes(), over, keepdim);
  Tensor mean_of = mean(x, over, true, std::nullopt);
  if (freedom > 0) return mul(mul(wide, 2 / freedom), sub(x, mean_of));
  return mul(wide, where(eq(x, mean_of), Operand(NAN), Operand(HUGE_VAL)));
}

// The gradient of a variance from that of its square root; 0 where the root is 0.
Tensor through_root(const Tensor& g, const Tensor& root) {
  Tensor flat = eq(root, 0);
  return where(flat, 0.0, div(g, mul(where(flat, 1.0, root), 2.0)));
}

double correction_of(const std::optional<Scalar>& correction) {
  return correction ? correction->to_double() : 1;
}

}  // namespace

Tensor var(const Tensor& x, const std::optional<Dims>& dims,
           const std::optional<Scalar>& correction, bool keepdim) {
  check_moment("var", x);
  Dims over = reduction_dims("var", x, dims);
  const double c = correction_of(correction);
  Tensor y = moments("var", x, over, c, keepdim).variance;
  if (wants_grad(x))
    record("VarBackward0", y, inputs(x), [x = save(x), over, c, keepdim](Backward& b) {
      b[0] = var_backward(b.grad(), b(x), over, c, keepdim);
    });
  return y;
}

Tensor std(const Tensor& x, const std::optional<Dims>& dims,
           const std::optional<Scalar>& correction, bool keepdim) {
  check_moment("std", x);
  Dims over = reduction_dims("std", x, dims);
  const double c = correction_of(correction);
  Tensor y;
  {
    GradMode off(false);
    y = row(Row::sqrt, {moments("std", x, over, c, keepdim).variance});
  }
  if (wants_grad(x))
    record("StdBackward0", y, inputs(x),
           [x = save(x), y = save_output(y), over, c, keepdim](Backward& b) {
             b[0] = var_backward(through_root(b.grad(), b(y)), b(x), over, c, keepdim);
           });
  return y;
}

namespace {

// Variance (or its root) and mean; one node for both.
std::tuple<Tensor, Tensor> moment_pair(const char* op, const char* node, bool root, const Tensor& x,
                                       const std::optional<Dims>& dims,
                                       const std::optional<Scalar>& correction, bool keepdim) {
  check_moment(op, x);
  Dims over = reduction_dims(op, x, dims);
  const double c = correction_of(correction);
  Moments m = moments(op, x, over, c, keepdim);
  if (root) {
    GradMode off(false);
    m.variance = row(Row::sqrt, {m.variance});
  }
  if (wants_grad(x)) {
    auto backward = [x = save(x), spread = save_output(m.variance), over, c, keepdim,
                     root](Backward& b) {
      Tensor in = b(x), dx;
      if (b.has_grad(0)) {
        Tensor g = root ? through_root(b.grad(0), b(spread)) : b.grad(0);
        dx = var_backward(g, in, over, c, keepdim);
      }
      if (b.has_grad(1)) {
        Tensor share = div(b.grad(1), static_cast<double>(reduced_numel(in, over)));
        Tensor dm = expand_reduced(share, in.sizes(), over, keepdim);
        dx = dx.defined() ? add(dx, dm) : dm;
      }
      b[0] = dx;
    };
    const Tensor outputs[] = {m.variance, m.mean};
    record(node, outputs, inputs(x), backward);
  }
  return {m.variance, m.mean};
}

std::tuple<Tensor, Tensor> var_mean(const Tensor& x, const std::optional<Dims>& dims,
                                    const std::optional<Scalar>& correction, bool keepdim) {
  return moment_pair("var_mean", "VarMeanBackward0", false, x, dims, correction, keepdim);
}
std::tuple<Tensor, Tensor> std_mean(const Tensor& x, const std::optional<Dims>& dims,
                                    const std::optional<Scalar>& correction, bool keepdim) {
  return moment_pair("std_mean", "StdMeanBackward0", true, x, dims, correction, keepdim);
}

// ---- covariance

void check_weights(const char* name, const std::optional<Tensor>& w, bool integral, int64_t n) {
  if (!w) return;
  CHECK(w->dim() <= 1, Shape, "cov: expected ", name, " with at most 1 dim, got shape ",
        w->sizes());
  CHECK(integral ? is_integral(w->dtype(), false) : w->is_floating(), DType, "cov: expected ",
        integral ? "an integer" : "a floating", " dtype for ", name, ", got ", w->dtype());
  CHECK(w->numel() == n, Shape, "cov: expected ", n, " ", name, ", one per observation, got ",
        w->numel());
  if (w->is_meta() || n == 0) return;
  GradMode off(false);
  Tensor least = on_host(amin(to_dtype(*w, DType::Float64), std::nullopt, false));
  CHECK(*least.data<double>() >= 0, Value, "cov: expected ", name, " of at least 0, got ",
        *least.data<double>());
}

Tensor squeeze_all(const Tensor& x) {
  Dims all;
  for (int64_t d = 0; d < x.dim(); ++d) all.push_back(d);
  return squeeze(x, all);
}

Tensor cov(const Tensor& x, int64_t correction, const std::optional<Tensor>& fweights,
           const std::optional<Tensor>& aweights) {
  CHECK(x.dim() <= 2, Shape, "cov: expected at most 2 dims, got shape ", x.sizes());
  CHECK(x.dtype() != DType::Bool, DType, "cov: bool is not supported");
  Tensor in = x.dim() < 2 ? reshape(x, Dims{1, -1}) : x;
  const int64_t n = in.size(1);
  check_weights("fweights", fweights, true, n);
  check_weights("aweights", aweights, false, n);
  std::optional<Tensor> w = fweights ? fweights : aweights;
  if (fweights && aweights) w = mul(*fweights, *aweights);
  Operand total =
      w ? Operand(sum(*w, std::nullopt, false, std::nullopt)) : Operand(static_cast<double>(n));
  auto weighted = [&](const Tensor& t) { return w ? mul(t, *w) : t; };
  Tensor average = div(sum(weighted(in), Dims{1}, true, std::nullopt), total);
  Tensor centered = sub(in, average);
  Tensor second = weighted(centered);
  if (centered.dtype() != second.dtype()) {
    const DType common = promote_types(centered.dtype(), second.dtype());
    centered = to_dtype(centered, common);
    second = to_dtype(second, common);
  }
  Tensor c = mm(centered, conj(transpose(second, 0, 1)));
  if (!w) return squeeze_all(div(c, std::max(0.0, static_cast<double>(n - correction))));
  Operand lost = static_cast<double>(correction);
  if (aweights && correction != 0) {
    Tensor squares = sum(mul(*w, *aweights), std::nullopt, false, std::nullopt);
    lost = mul(div(squares, total), static_cast<double>(correction));
  }
  Tensor norm = row(Row::maximum, {sub(total, lost), 0.0});
  return squeeze_all(div(c, norm));
}

Tensor corrcoef(const Tensor& x) {
  CHECK(x.dim() <= 2, Shape, "corrcoef: expected at most 2 dims, got shape ", x.sizes());
  Tensor c = cov(x, 1, std::nullopt, std::nullopt);
  if (c.dim() == 0) return div(c, c);
  const int64_t n = c.size(0);
  Tensor diagonal = as_strided(c, Dims{n}, Dims{c.stride(0) + c.stride(1)}, c.offset());
  Tensor deviation = row(Row::sqrt, {to_dtype(diagonal, to_real(c.dtype()))});
  Tensor r = div(div(c, reshape(deviation, Dims{n, 1})), reshape(deviation, Dims{1, n}));
  // Rounding may lead beyond 1; complex numbers have no order to clamp by.
  return r.is_complex() ? r : row(Row::clamp, {r, -1.0, 1.0});
}

}  // namespace

OP_TABLE(reduce_moments) = {
    op<var>("_var(Tensor self, int[]? dim=None, Scalar? correction=None, bool keepdim=False) "
            "-> Tensor",
            "private", "Variance over dims."),
    op<std>("_std(Tensor self, int[]? dim=None, Scalar? correction=None, bool keepdim=False) "
            "-> Tensor",
            "private", "Standard deviation over dims."),
    op<var_mean>("_var_mean(Tensor self, int[]? dim=None, Scalar? correction=None, "
                 "bool keepdim=False) -> (Tensor variance, Tensor mean)",
                 "private", "Variance and mean over dims."),
    op<std_mean>("_std_mean(Tensor self, int[]? dim=None, Scalar? correction=None, "
                 "bool keepdim=False) -> (Tensor deviation, Tensor mean)",
                 "private", "Standard deviation and mean over dims."),
    op<cov>("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) "
            "-> Tensor",
            "torch method", "Covariance matrix of the rows."),
    op<corrcoef>("corrcoef(Tensor self) -> Tensor", "torch method",
                 "Correlation coefficients of the rows."),
};
OP_TABLE_END(reduce_moments);

}  // namespace cresset::ops
