// Random tensors and fills, with PyTorch's CPU numbers.
#include <cmath>

#include "core/dispatch/op.h"
#include "core/ops/creation.h"
#include "core/ops/random_fills.h"
#include "core/ops/reduce.h"
#include "core/ops/scan.h"
#include "core/ops/search.h"
#include "core/ops/sort.h"

namespace cresset::ops {
namespace {

using Format = std::optional<int64_t>;
using OptDType = std::optional<DType>;
using OptDevice = std::optional<Device>;

// ---- fills

auto uniform_fill(DType dtype, double low, double high) {
  return
      [=](Generator& g, void* out, int64_t n, bool) { fill_uniform(g, dtype, out, n, low, high); };
}
auto normal_fill(DType dtype, double mean, double std) {
  return [=](Generator& g, void* out, int64_t n, bool contiguous) {
    fill_normal(g, dtype, out, n, mean, std, contiguous);
  };
}
auto randint_fill(DType dtype, int64_t low, std::optional<int64_t> high) {
  return
      [=](Generator& g, void* out, int64_t n, bool) { fill_randint(g, dtype, out, n, low, high); };
}
Draw uniform_draw(double low, double high) { return {Distribution::Uniform, low, high}; }
Draw normal_draw(double mean, double std) { return {Distribution::Normal, mean, std}; }
Draw randint_draw(DType dtype, int64_t low, std::optional<int64_t> high) {
  if (low == std::numeric_limits<int64_t>::lowest() && !high) return {Distribution::AnyInteger};
  const auto [first, range] = integer_range(dtype, low, high);
  return {Distribution::Integer, 0, 1, first, range};
}

Tensor& uniform_(Tensor& self, double from, double to, GeneratorRef g) {
  return draw_in_place("uniform_", "UniformBackward0", self, g, uniform_draw(from, to),
                       uniform_fill(self.dtype(), from, to));
}
Tensor& normal_(Tensor& self, double mean, double std, GeneratorRef g) {
  CHECK(std >= 0, Value, "normal_: expected std of at least 0, got ", std);
  return draw_in_place("normal_", "NormalBackward0", self, g, normal_draw(mean, std),
                       normal_fill(self.dtype(), mean, std));
}
Tensor& log_normal_(Tensor& self, double mean, double std, GeneratorRef g) {
  return draw_in_place("log_normal_", "LogNormalBackward0", self, g,
                       {Distribution::LogNormal, mean, std},
                       [&](Generator& gen, void* out, int64_t n, bool) {
                         fill_log_normal(gen, self.dtype(), out, n, mean, std);
                       });
}
Tensor& exponential_(Tensor& self, double lambd, GeneratorRef g) {
  return draw_in_place("exponential_", "ExponentialBackward0", self, g,
                       {Distribution::Exponential, lambd},
                       [&](Generator& gen, void* out, int64_t n, bool) {
                         fill_exponential(gen, self.dtype(), out, n, lambd);
                       });
}
Tensor& cauchy_(Tensor& self, double median, double sigma, GeneratorRef g) {
  return draw_in_place("cauchy_", "CauchyBackward0", self, g, {Distribution::Cauchy, median, sigma},
                       [&](Generator& gen, void* out, int64_t n, bool) {
                         fill_cauchy(gen, self.dtype(), out, n, median, sigma);
                       });
}
Tensor& geometric_(Tensor& self, double p, GeneratorRef g) {
  return draw_in_place("geometric_", "GeometricBackward0", self, g, {Distribution::Geometric, p},
                       [&](Generator& gen, void* out, int64_t n, bool) {
                         fill_geometric(gen, self.dtype(), out, n, p);
                       });
}
Tensor& random_(Tensor& self, std::optional<int64_t> low, std::optional<int64_t> high,
                GeneratorRef g) {
  DType dtype = self.dtype();
  const bool bounded = low || high;
  const Draw draw =
      bounded ? randint_draw(dtype, low.value_or(0), high) : Draw{Distribution::Natural};
  return draw_in_place("random_", "RandomBackward0", self, g, draw,
                       [&](Generator& gen, void* out, int64_t n, bool) {
                         if (!bounded)
                           fill_random(gen, dtype, out, n);
                         else
                           fill_randint(gen, dtype, out, n, low.value_or(0), high);
                       });
}

// Probabilities in the memory order of the tensor that is drawn.
Tensor laid_out_like(const Tensor& p, const Tensor& self) {
  Tensor out = empty_in_format("bernoulli", self, {p.dtype(), p.device()}, std::nullopt);
  copy_raw(p, out);
  return out;
}

Tensor& bernoulli_(Tensor& self, const Operand& p, GeneratorRef g) {
  DType dtype = self.dtype();
  if (!p.is_tensor()) {
    double number = p.scalar().to_double();
    return draw_in_place("bernoulli_", "BernoulliBackward0", self, g,
                         {Distribution::Bernoulli, number},
                         [&](Generator& gen, void* out, int64_t n, bool) {
                           fill_bernoulli(gen, dtype, out, n, number);
                         });
  }
  CHECK(broadcast_shapes("bernoulli_", self.sizes(), p.tensor().sizes()) == self.sizes(), Shape,
        "bernoulli_: probabilities of shape ", p.tensor().sizes(), " do not broadcast to shape ",
        self.sizes());
  Tensor chances = self.is_meta() ? p.tensor() : laid_out_like(p.tensor(), self);
  auto fill = [&](Generator& gen, void* out, int64_t n, bool) {
    fill_bernoulli(gen, dtype, out, n, chances.dtype(), n ? chances.data<void>() : nullptr);
  };
  return write_random("bernoulli_", "BernoulliBackward0", self, [&](const Tensor& t) {
    if (!t.device().is_cuda()) return draw_into(t, g, {Distribution::Bernoulli}, fill);
    fill(default_generator(), nullptr, 0, true);
    draw_on_gpu(t, g, [&](const Tensor& dense, PhiloxGenerator& generator) {
      launch("bernoulli_", t.device(), &RandomKernels::bernoulli, chances, dense, generator);
    });
  });
}

// y is random and depends on x only by chance: a derivative of zero.
Tensor with_zero_gradient(const char* node, const Tensor& x, Tensor y) {
  if (wants_grad(x)) record(node, y, inputs(x), [](Backward& b) { b[0] = zeros_like(b.grad()); });
  return y;
}

Tensor bernoulli(const Tensor& x, std::optional<double> p, GeneratorRef g) {
  CHECK(p || x.is_floating(), DType, "bernoulli: expected floating probabilities, got ", x.dtype());
  Tensor y = empty_in_format("bernoulli", x, options_of(x), std::nullopt);
  {
    GradMode off(false);
    bernoulli_(y, p ? Operand(*p) : Operand(x), g);
  }
  return with_zero_gradient("BernoulliBackward0", x, y);
}

Tensor poisson(const Tensor& x, GeneratorRef g) {
  Tensor y = empty_in_format("poisson", x, options_of(x), std::nullopt);
  if (!x.is_meta()) {
    Tensor rates = laid_out_like(x, y);
    auto fill = [&](Generator& gen, void* out, int64_t n, bool) {
      fill_poisson(gen, x.dtype(), out, n ? rates.data<void>() : nullptr, n);
    };
    if (x.device().is_cuda()) {
      fill(default_generator(), nullptr, 0, true);
      draw_on_gpu(y, g, [&](const Tensor& dense, PhiloxGenerator& generator) {
        launch("poisson", x.device(), &RandomKernels::poisson, rates, dense, generator);
      });
    } else {
      draw_into(y, g, {Distribution::Normal}, fill);
    }
  }
  return with_zero_gradient("PoissonBackward0", x, y);
}

// ---- new tensors

template <class F>
Tensor drawn(Tensor y, GeneratorRef g, bool requires_grad, const Draw& draw, F&& fill) {
  draw_into(y, g, draw, std::forward<F>(fill));
  return with_grad(y, requires_grad);
}

Tensor rand(const Dims& size, GeneratorRef g, OptDType dtype, OptDevice device, bool grad) {
  Options o = resolve(dtype, device);
  return drawn(empty(size, o, "rand"), g, grad, uniform_draw(0, 1), uniform_fill(o.dtype, 0, 1));
}
Tensor randn(const Dims& size, GeneratorRef g, OptDType dtype, OptDevice device, bool grad) {
  Options o = resolve(dtype, device);
  return drawn(empty(size, o, "randn"), g, grad, normal_draw(0, 1), normal_fill(o.dtype, 0, 1));
}
Tensor normal_sized(double mean, double std, const Dims& size, GeneratorRef g, OptDType dtype,
                    OptDevice device, bool grad) {
  Options o = resolve(dtype, device);
  return drawn(empty(size, o, "normal"), g, grad, normal_draw(mean, std),
               normal_fill(o.dtype, mean, std));
}
Tensor randint(int64_t low, int64_t high, const Dims& size, GeneratorRef g, OptDType dtype,
               OptDevice device, bool grad) {
  Options o = resolve(dtype.value_or(DType::Int64), device);
  return drawn(empty(size, o, "randint"), g, grad, randint_draw(o.dtype, low, high),
               randint_fill(o.dtype, low, high));
}
Tensor randperm(int64_t n, GeneratorRef g, OptDType dtype, OptDevice device, bool grad) {
  CHECK(n >= 0, Value, "randperm: expected n of at least 0, got ", n);
  Options o = resolve(dtype.value_or(DType::Int64), device);
  Tensor y = empty(Dims{n}, o, "randperm");
  auto fill = [&](Generator& gen, void* out, int64_t count, bool) {
    fill_randperm(gen, o.dtype, out, count);
  };
  if (!y.device().is_cuda()) return drawn(y, g, grad, {Distribution::Natural}, fill);
  fill(default_generator(), nullptr, 0, true);
  // The order of random keys; equal ones, of 2^64, are as good as never.
  Tensor keys = empty(Dims{n}, {DType::Int64, y.device()});
  draw_into(keys, g, {Distribution::AnyInteger}, [](Generator&, void*, int64_t, bool) {});
  copy_raw(std::get<1>(sort(keys, 0, false, false)), y);
  return with_grad(y, grad);
}

Tensor rand_like(const Tensor& x, GeneratorRef g, OptDType dtype, OptDevice device, bool grad,
                 Format format) {
  Options o = resolve(x, dtype, device);
  return drawn(empty_in_format("rand_like", x, o, format), g, grad, uniform_draw(0, 1),
               uniform_fill(o.dtype, 0, 1));
}
Tensor randn_like(const Tensor& x, GeneratorRef g, OptDType dtype, OptDevice device, bool grad,
                  Format format) {
  Options o = resolve(x, dtype, device);
  return drawn(empty_in_format("randn_like", x, o, format), g, grad, normal_draw(0, 1),
               normal_fill(o.dtype, 0, 1));
}
Tensor randint_like(const Tensor& x, int64_t low, int64_t high, GeneratorRef g, OptDType dtype,
                    OptDevice device, bool grad, Format format) {
  Options o = resolve(x, dtype, device);
  return drawn(empty_in_format("randint_like", x, o, format), g, grad,
               randint_draw(o.dtype, low, high), randint_fill(o.dtype, low, high));
}

// ---- normal with tensors of parameters

void check_std(const Operand& std) {
  if (!std.is_tensor()) {
    CHECK(std.scalar().to_double() >= 0, Value, "normal: expected std of at least 0, got ",
          std.scalar());
    return;
  }
  CHECK(!std.tensor().is_complex(), DType, "normal: expected a real std, got ",
        std.tensor().dtype());
  if (std.tensor().is_meta()) return;
  Tensor values = contiguous(on_host(to_dtype(std.tensor(), DType::Float64)));
  const double* p = values.data<double>();
  for (int64_t i = 0; i < values.numel(); ++i)
    CHECK(p[i] >= 0, Value, "normal: expected std of at least 0, got ", p[i]);
}

Tensor normal_tensors(const Operand& mean, const Operand& std, GeneratorRef g) {
  CHECK(mean.is_tensor() || std.is_tensor(), Type, "normal: expected a size for two numbers");
  const Tensor& first = mean.is_tensor() ? mean.tensor() : std.tensor();
  Tensor y;
  {
    GradMode off(false);
    check_std(std);
    Dims sizes = first.sizes();
    if (mean.is_tensor() && std.is_tensor())
      sizes = cresset::broadcast_shapes("normal", sizes, std.tensor().sizes());
    bool own = sizes == first.sizes();
    y = own ? empty_in_format("normal", first, options_of(first), std::nullopt)
            : empty(sizes, options_of(first));
    double spread = std.is_tensor() ? 1 : std.scalar().to_double();
    draw_into(y, g, normal_draw(0, spread), normal_fill(y.dtype(), 0, spread));
    if (std.is_tensor()) mul_(y, std);
    add_(y, mean);
  }
  auto zero = [](const Operand& o) { return o.is_tensor() ? o.tensor() : Tensor(); };
  Tensor m = zero(mean), s = zero(std);
  if (wants_grad(m, s))
    record("NormalBackward0", y, inputs(m, s), [](Backward& b) {
      for (size_t i : {0, 1})
        if (b.needs(i)) b[i] = zeros_like(b.grad());
    });
  return y;
}

/// One number of a tensor on any device; waits for the device.
double number_of(const Tensor& x) { return *on_host(to_dtype(x, DType::Float64)).data<double>(); }

/// As the CPU's loop does; bad weights would otherwise show as draws of no meaning.
void check_weights_on_gpu(const Tensor& weights) {
  const double low = number_of(amin(weights, Dims{}, false));
  const double high = number_of(amax(weights, Dims{}, false));
  CHECK(low >= 0 && std::isfinite(high), Value,
        "multinomial: expected finite weights >= 0, got weights between ", low, " and ", high);
  const double least = number_of(amin(sum(weights, Dims{-1}, false, std::nullopt), Dims{}, false));
  CHECK(least > 0, Value, "multinomial: expected a positive sum of weights in each row, got ",
        least);
}

// Without replacement: the categories whose exponential variables, of rates that the weights give,
// come first. With replacement: where uniform numbers fall among the sums of the weights.
Tensor multinomial_on_gpu(const Tensor& x, int64_t samples, bool replacement, GeneratorRef g) {
  Tensor weights = is_floating(x.dtype()) && itemsize(x.dtype()) < 4 ? to_dtype(x, DType::Float32)
                                                                     : contiguous(x);
  if (weights.numel() > 0) check_weights_on_gpu(weights);
  if (!replacement || samples == 1) {
    Tensor races = empty(weights.sizes(), options_of(weights));
    exponential_(races, 1, g);
    Tensor order = std::get<1>(sort(div(weights, races), -1, true, false));
    return contiguous(slice(order, -1, 0, samples, 1));
  }
  Tensor sums = cumsum(weights, -1, std::nullopt);
  Dims sizes = x.sizes();
  sizes.back() = samples;
  Tensor points = empty(sizes, options_of(weights));
  // Short of 1, so that the product with the sum of all weights cannot round up to it.
  constexpr double most = 1 - 0x1p-20;
  draw_into(points, g, uniform_draw(0, most), uniform_fill(points.dtype(), 0, most));
  mul_(points, slice(sums, -1, sums.size(-1) - 1, sums.size(-1), 1));
  Tensor y = empty(sizes, {DType::Int64, x.device()});
  launch("multinomial", x.device(), &SearchKernels::searchsorted, sums, points, Tensor(), true, y);
  return y;
}

Tensor multinomial(const Tensor& x, int64_t num_samples, bool replacement, GeneratorRef g) {
  CHECK(x.dim() == 1 || x.dim() == 2, Shape,
        "multinomial: expected weights of 1 or 2 dims, got shape ", x.sizes());
  CHECK(x.is_floating(), DType, "multinomial: expected floating weights, got ", x.dtype());
  CHECK(num_samples > 0, Value, "multinomial: expected at least 1 sample, got ", num_samples);
  int64_t categories = x.size(-1), rows = x.dim() == 2 ? x.size(0) : 1;
  CHECK(replacement || num_samples <= categories, Value, "multinomial: cannot draw ", num_samples,
        " of ", categories, " categories without replacement");
  CHECK(categories > 0 && categories < (int64_t{1} << 24), Value,
        "multinomial: expected 1 to 2^24 - 1 categories, got ", categories);
  Dims sizes = x.dim() == 2 ? Dims{rows, num_samples} : Dims{num_samples};
  Tensor y = empty(sizes, {DType::Int64, x.device()}, "multinomial");
  if (x.is_meta()) return y;
  GradMode off(false);
  if (x.device().is_cuda()) return multinomial_on_gpu(x, num_samples, replacement, g);
  Tensor weights = contiguous(x);
  fill_multinomial(*generator_of(g), y.data<int64_t>(), x.dtype(), weights.data<void>(), rows,
                   categories, num_samples, replacement);
  return y;
}

}  // namespace

Tensor standard_normal(const Dims& size, Options options) {
  Tensor y = empty(size, options);
  draw_into(y, GeneratorRef{}, normal_draw(0, 1), normal_fill(options.dtype, 0, 1));
  return y;
}

OP_TABLE(random) = {
    op<uniform_>("uniform_(Tensor(a!) self, float from=0, float to=1, *, "
                 "Generator? generator=None) -> Tensor(a!)",
                 "method", "Fills with numbers uniform in [from, to)."),
    op<normal_>("normal_(Tensor(a!) self, float mean=0, float std=1, *, "
                "Generator? generator=None) -> Tensor(a!)",
                "method", "Fills with normal numbers."),
    op<log_normal_>("log_normal_(Tensor(a!) self, float mean=1, float std=2, *, "
                    "Generator? generator=None) -> Tensor(a!)",
                    "method", "Fills with exp of normal numbers."),
    op<exponential_>("exponential_(Tensor(a!) self, float lambd=1, *, "
                     "Generator? generator=None) -> Tensor(a!)",
                     "method", "Fills with exponential numbers of rate lambd."),
    op<cauchy_>("cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, "
                "Generator? generator=None) -> Tensor(a!)",
                "method", "Fills with Cauchy numbers."),
    op<geometric_>("geometric_(Tensor(a!) self, float p, *, Generator? generator=None) "
                   "-> Tensor(a!)",
                   "method", "Fills with trials up to the first success."),
    op<random_>("_random_(Tensor(a!) self, int? from, int? to, *, Generator? generator=None) "
                "-> Tensor(a!)",
                "private", "Fills with integers in [from, to)."),
    op<bernoulli_>("bernoulli_(Tensor(a!) self, Tensor|Scalar p=0.5, *, "
                   "Generator? generator=None) -> Tensor(a!)",
                   "method", "Fills with 1 at probability p, else 0."),
    op<bernoulli>("bernoulli(Tensor self, float? p=None, *, Generator? generator=None) -> Tensor",
                  "torch method", "1 at the probability that each element gives (or p), else 0."),
    op<poisson>("poisson(Tensor self, Generator? generator=None) -> Tensor", "torch",
                "Poisson numbers whose means are the elements."),
    op<rand>("rand(int[] size, *, Generator? generator=None, ScalarType? dtype=None, "
             "Device? device=None, bool requires_grad=False) -> Tensor",
             "torch", "Numbers uniform in [0, 1)."),
    op<randn>("randn(int[] size, *, Generator? generator=None, ScalarType? dtype=None, "
              "Device? device=None, bool requires_grad=False) -> Tensor",
              "torch", "Standard normal numbers."),
    op<normal_sized>("_normal_sized(float mean, float std, int[] size, *, "
                     "Generator? generator=None, ScalarType? dtype=None, Device? device=None, "
                     "bool requires_grad=False) -> Tensor",
                     "private", "Normal numbers in a given shape."),
    op<randint>("_randint(int low, int high, int[] size, *, Generator? generator=None, "
                "ScalarType? dtype=None, Device? device=None, bool requires_grad=False) "
                "-> Tensor",
                "private", "Integers in [low, high)."),
    op<randperm>("randperm(int n, *, Generator? generator=None, ScalarType? dtype=None, "
                 "Device? device=None, bool requires_grad=False) -> Tensor",
                 "torch", "The numbers 0 to n - 1 in random order."),
    op<rand_like>("rand_like(Tensor self, *, Generator? generator=None, ScalarType? dtype=None, "
                  "Device? device=None, bool requires_grad=False, int? memory_format=None) "
                  "-> Tensor",
                  "torch", "Numbers uniform in [0, 1), in the shape of another tensor."),
    op<randn_like>("randn_like(Tensor self, *, Generator? generator=None, "
                   "ScalarType? dtype=None, Device? device=None, bool requires_grad=False, "
                   "int? memory_format=None) -> Tensor",
                   "torch", "Standard normal numbers in the shape of another tensor."),
    op<randint_like>("_randint_like(Tensor self, int low, int high, *, "
                     "Generator? generator=None, ScalarType? dtype=None, Device? device=None, "
                     "bool requires_grad=False, int? memory_format=None) -> Tensor",
                     "private", "Integers in [low, high), in the shape of another tensor."),
    op<normal_tensors>("_normal_tensors(Tensor|Scalar mean, Tensor|Scalar std, *, "
                       "Generator? generator=None) -> Tensor",
                       "private", "Normal numbers with a mean and a spread per element."),
    op<multinomial>("multinomial(Tensor self, int num_samples, bool replacement=False, *, "
                    "Generator? generator=None) -> Tensor",
                    "torch method", "Indices drawn by weights, per row."),
};
OP_TABLE_END(random);

}  // namespace cresset::ops
