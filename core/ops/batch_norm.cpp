// Normalisations of channels: batch, instance and group normalisation.
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/normalization.h"
#include "core/ops/ops.h"
#include "core/ops/reduce.h"

namespace cresset::ops {
namespace {

using MaybeTensor = std::optional<Tensor>;

SavedTensor save_if_defined(const Tensor& t) { return t.defined() ? save(t) : SavedTensor(); }

Tensor cast_or_none(const MaybeTensor& t, DType dtype) {
  return t ? to_dtype(*t, dtype) : Tensor();
}

// The dtype that is computed in: 16-bit floats in float32.
DType wide_dtype(DType dtype) { return itemsize(dtype) == 2 ? DType::Float32 : dtype; }

Dims all_but_channels(const Tensor& x) {
  Dims over{0};
  for (int64_t d = 2; d < x.dim(); ++d) over.push_back(d);
  return over;
}

Tensor as_channels(const Tensor& t, const Tensor& x) {
  Dims shape(static_cast<size_t>(x.dim()), 1);
  shape[1] = t.numel();
  return reshape(t, shape);
}

struct ChannelStats {
  Tensor mean, variance, rstd;
  // The factors of channel_affine, where they were made along with rstd.
  Tensor a, b;
};

Tensor reciprocal_root(const Tensor& variance, double eps) {
  return row(Row::rsqrt, {add(variance, eps)});
}

// Biased variance, in two passes.
ChannelStats batch_stats(const Tensor& x, double eps) {
  const Dims over = all_but_channels(x);
  const double n = static_cast<double>(reduced_numel(x, over));
  ChannelStats s;
  s.mean =
      reduce_raw("batch_norm", x, over, {.kind = ReduceOp::Sum, .dtype = x.dtype(), .divisor = n});
  s.variance = reduce_raw(
      "batch_norm", x, over,
      {.kind = ReduceOp::Deviations, .dtype = x.dtype(), .divisor = n, .center = &s.mean});
  s.rstd = reciprocal_root(s.variance, eps);
  return s;
}

// Whether the device makes values per channel in one launch each: launches are what costs there.
bool in_one_launch(const Tensor& x) {
  return x.device().type == DeviceType::CUDA && cuda_kernels<NormalizationKernels> &&
         cuda_kernels<NormalizationKernels>->batch_factors;
}

// The gradients by kernels. `stats` holds per channel mean and rstd; x is contiguous.
void batch_norm_kernels(Backward& b, const Tensor& x, const Tensor& weight,
                        const ChannelStats& stats, bool training) {
  Tensor g = contiguous(b.grad()), mean = contiguous(stats.mean);
  Tensor sums = empty(mean.sizes(), options_of(x)), dots = empty(mean.sizes(), options_of(x));
  launch("batch_norm", x.device(), &NormalizationKernels::channel_sums, g, x, mean, sums, dots);
  if (training && in_one_launch(x)) {
    Tensor a = empty_like(sums), slope = empty_like(sums), shift = empty_like(sums);
    Tensor dweight = empty_like(sums), dx = empty(x.sizes(), options_of(x));
    launch("batch_norm", x.device(), &NormalizationKernels::batch_slopes, contiguous(stats.rstd),
           weight.defined() ? contiguous(weight) : weight, sums, dots, x.numel() / mean.numel(), a,
           slope, shift, dweight);
    launch("batch_norm", x.device(), &NormalizationKernels::channel_affine2, g, x, mean, a, slope,
           shift, dx);
    if (b.needs(0)) b[0] = dx;
    if (b.needs(1)) b[1] = dweight;
    if (b.needs(2)) b[2] = sums;
    return;
  }
  if (b.needs(1)) b[1] = mul(dots, stats.rstd);
  if (b.needs(2)) b[2] = sums;
  if (!b.needs(0)) return;
  Tensor a = contiguous(weight.defined() ? mul(stats.rstd, weight) : stats.rstd);
  Tensor slope = zeros_like(a), shift = zeros_like(a);
  if (training) {
    const double n = static_cast<double>(x.numel()) / static_cast<double>(mean.numel());
    slope = div(mul(mul(a, mul(stats.rstd, stats.rstd)), dots), -n);
    shift = div(mul(a, sums), -n);
  }
  Tensor dx = empty(x.sizes(), options_of(x));
  launch("batch_norm", x.device(), &NormalizationKernels::channel_affine2, g, x, mean, a,
         contiguous(slope), contiguous(shift), dx);
  b[0] = dx;
}

// The gradients with operators; in training the statistics depend on x.
void batch_norm_formula(Backward& b, const Tensor& x, const Tensor& weight,
                        const ChannelStats& given, bool training, double eps) {
  const Dims over = all_but_channels(x);
  auto average = [&](const Tensor& t) { return mean(t, over, true, std::nullopt); };
  Tensor centered = sub(x, training ? average(x) : as_channels(given.mean, x));
  Tensor rstd = training ? reciprocal_root(average(mul(centered, centered)), eps)
                         : as_channels(given.rstd, x);
  Tensor h = mul(centered, rstd), g = b.grad();
  if (b.needs(1)) b[1] = sum(mul(g, h), over, false, std::nullopt);
  if (b.needs(2)) b[2] = sum(g, over, false, std::nullopt);
  if (!b.needs(0)) return;
  Tensor v = weight.defined() ? mul(g, as_channels(weight, x)) : g;
  if (training) v = sub(sub(v, average(v)), mul(h, average(mul(v, h))));
  b[0] = mul(v, rstd);
}

// Everything of x's dtype, float or double.
Tensor normalize_channels(const Tensor& input, const Tensor& weight, const Tensor& bias,
                          const ChannelStats& stats, bool training, double eps) {
  Tensor y = empty(input.sizes(), options_of(input));
  {
    GradMode off(false);
    Tensor a = stats.a, b = stats.b;
    if (!a.defined()) {
      a = weight.defined() ? mul(stats.rstd, weight) : stats.rstd;
      b = bias.defined() ? bias : zeros_like(stats.rstd);
    }
    launch("batch_norm", input.device(), &NormalizationKernels::channel_affine, contiguous(input),
           contiguous(stats.mean), contiguous(a), contiguous(b), y);
  }
  if (!wants_grad(input, weight, bias)) return y;
  auto backward = [in = save(input), weight = save_if_defined(weight), stats, training,
                   eps](Backward& b) {
    Tensor x = b(in), w = weight.defined() ? b(weight) : Tensor();
    if (grad_enabled()) return batch_norm_formula(b, x, w, stats, training, eps);
    batch_norm_kernels(b, contiguous(x), w, stats, training);
  };
  record("NativeBatchNormBackward0", y, inputs(input, weight, bias), backward);
  return y;
}

void check_channels(const char* op, const Tensor& x,
                    std::initializer_list<std::pair<const char*, const MaybeTensor*>> params) {
  CHECK(x.is_floating(), DType, op, ": expected a floating dtype, got ", x.dtype());
  CHECK(x.dim() >= 2, Shape, op, ": expected at least 2 dims, got shape ", x.sizes());
  for (auto [name, t] : params)
    CHECK(!*t || ((*t)->dim() == 1 && (*t)->size(0) == x.size(1)), Shape, op, ": expected ", name,
          " with ", x.size(1), " elements, got shape ", (*t)->sizes());
}

void update_running(const MaybeTensor& running, const Tensor& value, double momentum) {
  if (!running) return;
  Tensor target = *running;
  copy_(target, add(mul(target, 1 - momentum), mul(value, momentum)));
}

struct BatchNorm {
  Tensor y, mean, rstd;
};

// Statistics of a training batch on a device that makes all values per channel in one launch.
ChannelStats statistics_in_one_launch(const Tensor& x, const MaybeTensor& weight,
                                      const MaybeTensor& bias, const MaybeTensor& running_mean,
                                      const MaybeTensor& running_var, double momentum, double eps) {
  const Dims over = all_but_channels(x);
  BatchStatistics s;
  s.weight = cast_or_none(weight, x.dtype());
  s.bias = cast_or_none(bias, x.dtype());
  s.count = reduced_numel(x, over);
  s.momentum = momentum;
  s.eps = eps;
  const double n = static_cast<double>(s.count);
  s.mean =
      reduce_raw("batch_norm", x, over, {.kind = ReduceOp::Sum, .dtype = x.dtype(), .divisor = n});
  s.variance = reduce_raw(
      "batch_norm", x, over,
      {.kind = ReduceOp::Deviations, .dtype = x.dtype(), .divisor = n, .center = &s.mean});
  // The kernel moves on what it can write to; other dtypes and layouts go through operators.
  auto direct = [&](const MaybeTensor& t) {
    return t && t->dtype() == x.dtype() && t->is_contiguous() && t->device() == x.device();
  };
  if (direct(running_mean)) s.running_mean = *running_mean;
  if (direct(running_var)) s.running_var = *running_var;
  if (s.weight.defined()) s.weight = contiguous(s.weight);
  if (s.bias.defined()) s.bias = contiguous(s.bias);
  ChannelStats stats{s.mean, s.variance, empty_like(s.mean), empty_like(s.mean),
                     empty_like(s.mean)};
  launch("batch_norm", x.device(), &NormalizationKernels::batch_factors, s, stats.rstd, stats.a,
         stats.b);
  for (const Tensor* t : {&s.running_mean, &s.running_var})
    if (t->defined()) t->bump_version();
  if (!s.running_mean.defined()) update_running(running_mean, stats.mean, momentum);
  if (!s.running_var.defined() && running_var)
    update_running(running_var, mul(stats.variance, n / (n - 1)), momentum);
  return stats;
}

BatchNorm batch_norm_of(const char* op, const Tensor& input, const MaybeTensor& weight,
                        const MaybeTensor& bias, const MaybeTensor& running_mean,
                        const MaybeTensor& running_var, bool training, double momentum,
                        double eps) {
  check_channels(op, input,
                 {{"weight", &weight},
                  {"bias", &bias},
                  {"running_mean", &running_mean},
                  {"running_var", &running_var}});
  CHECK(training || (running_mean && running_var), Value, op,
        ": expected running_mean and running_var outside of training");
  const DType dtype = wide_dtype(input.dtype());
  Tensor x = to_dtype(input, dtype);
  ChannelStats stats;
  {
    GradMode off(false);
    if (training && in_one_launch(x)) {
      stats = statistics_in_one_launch(x, weight, bias, running_mean, running_var, momentum, eps);
    } else if (training) {
      stats = batch_stats(x, eps);
      const double n = static_cast<double>(x.numel()) / static_cast<double>(x.size(1));
      update_running(running_mean, stats.mean, momentum);
      if (running_var) update_running(running_var, mul(stats.variance, n / (n - 1)), momentum);
    } else {
      // Copies: the running statistics may change before the backward pass.
      stats.mean = clone(to_dtype(*running_mean, dtype), std::nullopt);
      stats.rstd = reciprocal_root(to_dtype(*running_var, dtype), eps);
    }
  }
  Tensor y = normalize_channels(x, cast_or_none(weight, dtype), cast_or_none(bias, dtype), stats,
                                training, eps);
  return {to_dtype(y, input.dtype()), stats.mean, stats.rstd};
}

// Nothing to normalise: PyTorch applies the first weight and bias.
Tensor empty_norm(const Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias) {
  Tensor y = clone(input, std::nullopt);
  if (weight && weight->numel()) y = mul(y, select(*weight, 0, 0));
  if (bias && bias->numel()) y = add(y, select(*bias, 0, 0));
  return y;
}

int64_t spatial_size(const Tensor& x) {
  int64_t n = 1;
  for (int64_t d = 2; d < x.dim(); ++d) n *= x.size(d);
  return n;
}

}  // namespace

Tensor batch_norm(const Tensor& input, const MaybeTensor& running_mean,
                  const MaybeTensor& running_var, const MaybeTensor& weight,
                  const MaybeTensor& bias, bool training, double momentum, double eps) {
  CHECK(!training || input.dim() < 2 || input.size(0) * spatial_size(input) != 1, Value,
        "batch_norm: expected more than 1 value per channel in training, got shape ",
        input.sizes());
  if (input.numel() == 0) return empty_norm(input, weight, bias);
  return batch_norm_of("batch_norm", input, weight, bias, running_mean, running_var, training,
                       momentum, eps)
      .y;
}

namespace {

std::tuple<Tensor, Tensor, Tensor> native_batch_norm(const Tensor& input, const MaybeTensor& weight,
                                                     const MaybeTensor& bias,
                                                     const MaybeTensor& running_mean,
                                                     const MaybeTensor& running_var, bool training,
                                                     double momentum, double eps) {
  BatchNorm r = batch_norm_of("native_batch_norm", input, weight, bias, running_mean, running_var,
                              training, momentum, eps);
  if (training) return {r.y, r.mean, r.rstd};
  Tensor none = empty(Dims{0}, options_of(r.mean));
  return {r.y, none, none};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> batch_norm_with_update(
    const Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
    const Tensor& running_mean, const Tensor& running_var, double momentum, double eps) {
  BatchNorm r = batch_norm_of("_batch_norm_with_update", input, weight, bias, running_mean,
                              running_var, true, momentum, eps);
  return {r.y, r.mean, r.rstd, empty(Dims{0}, {DType::UInt8, input.device()})};
}

// One entry per sample and channel.
MaybeTensor repeated(const MaybeTensor& t, int64_t samples) {
  if (!t) return std::nullopt;
  return reshape(expand(*t, Dims{samples, t->size(0)}), Dims{-1});
}

Tensor instance_norm(const Tensor& input, const MaybeTensor& running_mean,
                     const MaybeTensor& running_var, const MaybeTensor& weight,
                     const MaybeTensor& bias, bool use_input_stats, double momentum, double eps) {
  check_channels("instance_norm", input,
                 {{"weight", &weight},
                  {"bias", &bias},
                  {"running_mean", &running_mean},
                  {"running_var", &running_var}});
  CHECK(!use_input_stats || spatial_size(input) != 1, Value,
        "instance_norm: expected more than 1 spatial element, got shape ", input.sizes());
  if (input.numel() == 0) return empty_norm(input, weight, bias);
  const int64_t samples = input.size(0), channels = input.size(1);
  Dims merged = input.sizes();
  merged[0] = 1;
  merged[1] = samples * channels;
  MaybeTensor means, variances;
  {
    GradMode off(false);
    means = repeated(running_mean, samples);
    variances = repeated(running_var, samples);
    if (means && samples == 1) means = clone(*means, std::nullopt);
    if (variances && samples == 1) variances = clone(*variances, std::nullopt);
  }
  Tensor y =
      batch_norm_of("instance_norm", reshape(input, merged), repeated(weight, samples),
                    repeated(bias, samples), means, variances, use_input_stats, momentum, eps)
          .y;
  if (use_input_stats) {
    GradMode off(false);
    auto write_back = [&](const MaybeTensor& running, const MaybeTensor& each) {
      if (!running) return;
      Tensor target = *running;
      copy_(target, mean(reshape(*each, Dims{samples, channels}), Dims{0}, false, std::nullopt));
    };
    write_back(running_mean, means);
    write_back(running_var, variances);
  }
  return reshape(y, input.sizes());
}

// ---- group normalisation

// A group's value for each of its channels: [N, groups] to [N * C].
Tensor per_channel(const Tensor& t, int64_t samples, int64_t groups, int64_t width) {
  return contiguous(reshape(
      expand(reshape(t, Dims{samples, groups, 1}), Dims{samples, groups, width}), Dims{-1}));
}

struct GroupShape {
  int64_t samples, groups, width, length;  // length = elements of a channel
  Dims rows() const { return {samples * groups, width * length}; }
  Dims channels() const { return {1, samples * groups * width, length}; }
  Dims split() const { return {samples, groups, width}; }
};

void group_norm_kernels(Backward& b, const Tensor& x, const Tensor& weight,
                        const ChannelStats& stats, GroupShape s) {
  const Dims split = s.split();
  Tensor flat = reshape(x, s.channels()), g = reshape(contiguous(b.grad()), s.channels());
  Tensor mean = per_channel(stats.mean, s.samples, s.groups, s.width);
  Tensor sums = empty(mean.sizes(), options_of(x)), dots = empty(mean.sizes(), options_of(x));
  launch("group_norm", x.device(), &NormalizationKernels::channel_sums, g, flat, mean, sums, dots);
  Tensor rstd = reshape(stats.rstd, Dims{s.samples, s.groups, 1});
  sums = reshape(sums, split);
  dots = reshape(dots, split);
  auto over_samples = [&](const Tensor& t) {
    return reshape(sum(t, Dims{0}, false, std::nullopt), Dims{-1});
  };
  if (b.needs(1)) b[1] = over_samples(mul(dots, rstd));
  if (b.needs(2)) b[2] = over_samples(sums);
  if (!b.needs(0)) return;
  Tensor w = weight.defined() ? reshape(weight, Dims{1, s.groups, s.width}) : Tensor();
  auto group_total = [&](const Tensor& t) {
    return sum(w.defined() ? mul(t, w) : t, Dims{2}, true, std::nullopt);
  };
  const double n = static_cast<double>(s.width * s.length);
  Tensor cube = mul(rstd, mul(rstd, rstd));
  Tensor slope = div(mul(cube, group_total(dots)), -n);
  Tensor shift = div(mul(rstd, group_total(sums)), -n);
  Tensor a = w.defined() ? reshape(mul(rstd, w), Dims{-1})
                         : per_channel(rstd, s.samples, s.groups, s.width);
  Tensor dx = empty(x.sizes(), options_of(x));
  launch("group_norm", x.device(), &NormalizationKernels::channel_affine2, g, flat, mean,
         contiguous(a), per_channel(slope, s.samples, s.groups, s.width),
         per_channel(shift, s.samples, s.groups, s.width), reshape(dx, s.channels()));
  b[0] = dx;
}

void group_norm_formula(Backward& b, const Tensor& x, const Tensor& weight, GroupShape s,
                        double eps) {
  const Dims shape{s.samples, s.groups, s.width, s.length}, over{2, 3}, outer{0, 3};
  auto average = [&](const Tensor& t) { return mean(t, over, true, std::nullopt); };
  Tensor in = reshape(x, shape), g = reshape(b.grad(), shape);
  Tensor centered = sub(in, average(in));
  Tensor rstd = reciprocal_root(average(mul(centered, centered)), eps);
  Tensor h = mul(centered, rstd);
  auto per_weight = [&](const Tensor& t) {
    return reshape(sum(t, outer, false, std::nullopt), Dims{-1});
  };
  if (b.needs(1)) b[1] = per_weight(mul(g, h));
  if (b.needs(2)) b[2] = per_weight(g);
  if (!b.needs(0)) return;
  Tensor v = weight.defined() ? mul(g, reshape(weight, Dims{1, s.groups, s.width, 1})) : g;
  v = mul(rstd, sub(sub(v, average(v)), mul(h, average(mul(v, h)))));
  b[0] = reshape(v, x.sizes());
}

// Everything of x's dtype, float or double.
Tensor group_norm_of(const Tensor& input, const Tensor& weight, const Tensor& bias, GroupShape s,
                     double eps) {
  Tensor y = empty(input.sizes(), options_of(input));
  ChannelStats stats;
  {
    GradMode off(false);
    Tensor x = contiguous(input);
    stats = batch_stats(transpose(reshape(x, s.rows()), 0, 1), eps);
    auto tiled = [&](const Tensor& t) {
      return reshape(expand(t, Dims{s.samples, t.numel()}), Dims{-1});
    };
    Tensor a = per_channel(stats.rstd, s.samples, s.groups, s.width);
    if (weight.defined()) a = mul(a, tiled(weight));
    Tensor b = bias.defined() ? tiled(bias) : zeros_like(a);
    launch("group_norm", x.device(), &NormalizationKernels::channel_affine,
           reshape(x, s.channels()), per_channel(stats.mean, s.samples, s.groups, s.width),
           contiguous(a), contiguous(b), reshape(y, s.channels()));
  }
  if (!wants_grad(input, weight, bias)) return y;
  auto backward = [in = save(input), weight = save_if_defined(weight), stats, s, eps](Backward& b) {
    Tensor x = b(in), w = weight.defined() ? b(weight) : Tensor();
    if (grad_enabled()) return group_norm_formula(b, x, w, s, eps);
    group_norm_kernels(b, contiguous(x), w, stats, s);
  };
  record("NativeGroupNormBackward0", y, inputs(input, weight, bias), backward);
  return y;
}

Tensor group_norm(const Tensor& input, int64_t num_groups, const MaybeTensor& weight,
                  const MaybeTensor& bias, double eps) {
  check_channels("group_norm", input, {{"weight", &weight}, {"bias", &bias}});
  const int64_t channels = input.size(1);
  CHECK(num_groups > 0 && channels % num_groups == 0, Value, "group_norm: expected ", channels,
        " channels to be divisible by num_groups, got ", num_groups);
  if (input.numel() == 0) return empty_norm(input, weight, bias);
  const GroupShape s{input.size(0), num_groups, channels / num_groups, spatial_size(input)};
  const DType dtype = wide_dtype(input.dtype());
  Tensor y = group_norm_of(to_dtype(input, dtype), cast_or_none(weight, dtype),
                           cast_or_none(bias, dtype), s, eps);
  return to_dtype(y, input.dtype());
}

}  // namespace

OP_TABLE(batch_norm) = {
    op<batch_norm>("batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, "
                   "Tensor? weight=None, Tensor? bias=None, bool training=False, "
                   "float momentum=0.1, float eps=1e-05) -> Tensor",
                   "torch nn", "Mean 0 and variance 1 of each channel over the batch."),
    op<native_batch_norm>("native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, "
                          "Tensor? running_mean, Tensor? running_var, bool training, "
                          "float momentum, float eps) -> (Tensor out, Tensor mean, Tensor rstd)",
                          "torch", "batch_norm with its means and reciprocal deviations."),
    op<batch_norm_with_update>("_batch_norm_with_update(Tensor input, Tensor? weight, "
                               "Tensor? bias, Tensor running_mean, Tensor running_var, "
                               "float momentum, float eps) -> "
                               "(Tensor out, Tensor mean, Tensor rstd, Tensor reserve)",
                               "torch", "batch_norm in training, with what it computed."),
    op<instance_norm>("instance_norm(Tensor input, Tensor? running_mean=None, "
                      "Tensor? running_var=None, Tensor? weight=None, Tensor? bias=None, "
                      "bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> Tensor",
                      "nn", "Mean 0 and variance 1 of each channel of each sample."),
    op<group_norm>("group_norm(Tensor input, int num_groups, Tensor? weight=None, "
                   "Tensor? bias=None, float eps=1e-05) -> Tensor",
                   "torch nn", "Mean 0 and variance 1 of each group of channels."),
};
OP_TABLE_END(batch_norm);

}  // namespace cresset::ops
