// Resampling of images: every mode is a sparse matrix for each spatial dim.
#include "core/ops/vision.h"

#include <cmath>
#include <memory>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"

namespace cresset {

template <> struct EnumNames<Resampling> {
  static constexpr const char* schema =
      "Resampling{nearest|nearest_exact|linear|cubic|area|linear_aa|cubic_aa}";
};

namespace ops {
namespace {

struct DimPlan {
  int64_t in, out;
  std::optional<double> scale;  // given by the user, output per input
  Resampling mode;
  bool align;
};

/// Taps of one dim above which its table would not fit into any memory worth having (4 GiB).
constexpr size_t most_taps = size_t{1} << 28;

void check_taps(const ResamplingMatrix& m, size_t taps) {
  CHECK(taps <= most_taps, Value, "interpolate: output size ", m.outputs, " from ", m.inputs,
        " inputs needs more than ", most_taps, " weights");
}

void add_tap(ResamplingMatrix& m, int64_t index, double weight) {
  check_taps(m, m.weight.size() + 1);
  m.index.push_back(index);
  m.weight.push_back(weight);
}

// Rounds towards zero; x may be beyond any integer, or NaN.
int64_t bounded(double x, int64_t least, int64_t most) {
  if (!(x > static_cast<double>(least))) return least;
  return x < static_cast<double>(most) ? static_cast<int64_t>(x) : most;
}

double pixel_scale(const DimPlan& d) {
  if (d.align)
    return d.out > 1 ? static_cast<double>(d.in - 1) / static_cast<double>(d.out - 1) : 0;
  if (d.scale && *d.scale > 0) return 1 / *d.scale;
  return static_cast<double>(d.in) / static_cast<double>(d.out);
}

// PyTorch finds nearest pixels in float; so do we, or neighbours of ties would differ.
void nearest_taps(const DimPlan& d, int64_t o, ResamplingMatrix& m) {
  float scale = d.scale && *d.scale > 0 ? static_cast<float>(1 / *d.scale)
                                        : static_cast<float>(d.in) / static_cast<float>(d.out);
  float at = static_cast<float>(o) + (d.mode == Resampling::nearest_exact ? 0.5f : 0.0f);
  add_tap(m, bounded(std::floor(at * scale), 0, d.in - 1), 1);
}

void linear_taps(const DimPlan& d, int64_t o, ResamplingMatrix& m) {
  double scale = pixel_scale(d), pos = static_cast<double>(o);
  double at = d.align ? scale * pos : std::max(0.0, scale * (pos + 0.5) - 0.5);
  int64_t i = bounded(at, 0, d.in - 1);
  double t = std::clamp(at - static_cast<double>(i), 0.0, 1.0);
  add_tap(m, i, 1 - t);
  add_tap(m, std::min(i + 1, d.in - 1), t);
}

// Cubic convolution: R. Keys, "Cubic convolution interpolation for digital image processing"
// (1981).
double cubic_filter(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

void cubic_taps(const DimPlan& d, int64_t o, ResamplingMatrix& m) {
  double scale = pixel_scale(d), pos = static_cast<double>(o);
  double at = d.align ? scale * pos : scale * (pos + 0.5) - 0.5;
  int64_t i = bounded(std::floor(at), -2, d.in - 1);
  double t = std::clamp(at - static_cast<double>(i), 0.0, 1.0);
  for (int64_t k = -1; k <= 2; ++k)
    add_tap(m, std::clamp<int64_t>(i + k, 0, d.in - 1),
            cubic_filter(static_cast<double>(k) - t, -0.75));
}

void area_taps(const DimPlan& d, int64_t o, ResamplingMatrix& m) {
  int64_t lo = o * d.in / d.out, hi = ((o + 1) * d.in + d.out - 1) / d.out;
  for (int64_t i = lo; i < hi; ++i) add_tap(m, i, 1 / static_cast<double>(hi - lo));
}

void antialias_taps(const DimPlan& d, int64_t o, ResamplingMatrix& m) {
  bool cubic = d.mode == Resampling::cubic_aa;
  double scale = pixel_scale(d), stretch = std::max(scale, 1.0);
  double support = (cubic ? 2 : 1) * stretch, center = scale * (static_cast<double>(o) + 0.5);
  int64_t lo = bounded(center - support + 0.5, 0, d.in);
  int64_t hi = bounded(center + support + 0.5, 0, d.in);
  size_t begin = m.weight.size();
  double total = 0;
  for (int64_t i = lo; i < hi; ++i) {
    double x = (static_cast<double>(i) - center + 0.5) / stretch;
    double w = cubic ? cubic_filter(x, -0.5) : std::max(0.0, 1 - std::abs(x));
    total += w;
    add_tap(m, i, w);
  }
  for (size_t k = begin; k < m.weight.size(); ++k)
    if (total != 0) m.weight[k] /= total;
}

// Without weights when `shape_only`, for meta tensors: their sizes may be far too large.
std::shared_ptr<const ResamplingMatrix> make_matrix(const DimPlan& d, bool shape_only) {
  auto m = std::make_shared<ResamplingMatrix>();
  m->inputs = d.in;
  m->outputs = d.out;
  if (shape_only) return m;
  const size_t each = d.mode == Resampling::cubic ? 4 : d.mode == Resampling::linear ? 2 : 1;
  check_taps(*m, static_cast<size_t>(d.out) * each);
  m->first.push_back(0);
  for (int64_t o = 0; o < d.out; ++o) {
    switch (d.mode) {
      case Resampling::nearest:
      case Resampling::nearest_exact: nearest_taps(d, o, *m); break;
      case Resampling::linear: linear_taps(d, o, *m); break;
      case Resampling::cubic: cubic_taps(d, o, *m); break;
      case Resampling::area: area_taps(d, o, *m); break;
      default: antialias_taps(d, o, *m); break;
    }
    m->first.push_back(static_cast<int64_t>(m->index.size()));
  }
  return m;
}

// One dim resampled; the derivative is the same with the transposed matrix.
Tensor resample_dim(const Tensor& x, int64_t dim,
                    const std::shared_ptr<const ResamplingMatrix>& matrix, bool transposed) {
  Tensor in = contiguous(x);
  Dims sizes = in.sizes();
  sizes[static_cast<size_t>(dim)] = transposed ? matrix->inputs : matrix->outputs;
  Tensor y = empty(sizes, options_of(in));
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < in.dim(); ++d) inner *= in.size(d);
  launch("interpolate", in.device(), &VisionKernels::resample, *matrix, transposed, inner, in, y);
  if (wants_grad(in))
    record("UpsampleBackward0", y, inputs(in), [dim, matrix, transposed](Backward& b) {
      b[0] = resample_dim(b.grad(), dim, matrix, !transposed);
    });
  return y;
}

}  // namespace

static Tensor resample(const Tensor& x, const Dims& output_size,
                       const std::optional<std::vector<double>>& scales, Resampling mode,
                       bool align_corners) {
  constexpr const char* op = "interpolate";
  int64_t spatial = x.dim() - 2;
  CHECK(spatial >= 1 && spatial <= 3, Shape, op,
        ": expected a tensor of 3, 4 or 5 dims, got shape ", x.sizes());
  CHECK(static_cast<int64_t>(output_size.size()) == spatial, Shape, op, ": expected ", spatial,
        " output sizes for shape ", x.sizes(), ", got ", output_size);
  CHECK(x.is_floating() || (x.dtype() == DType::UInt8 && mode <= Resampling::nearest_exact), DType,
        op, ": expected a floating dtype, got ", x.dtype());
  if (x.dtype() == DType::Float16 || x.dtype() == DType::BFloat16) {
    Tensor wide = to_dtype(x, DType::Float32);
    return to_dtype(resample(wide, output_size, scales, mode, align_corners), x.dtype());
  }
  Tensor y = x;
  for (int64_t i = 0; i < spatial; ++i) {
    DimPlan d{x.size(i + 2), output_size[i], std::nullopt, mode, align_corners};
    CHECK(d.in > 0 && d.out > 0, Shape, op, ": expected sizes above 0, got input shape ", x.sizes(),
          " and output size ", output_size);
    CHECK(d.out < int64_t{1} << 31, Value, op, ": output size ", d.out, " is too large");
    if (scales) d.scale = (*scales)[static_cast<size_t>(i)];
    y = resample_dim(y, i + 2, make_matrix(d, x.is_meta()), false);
  }
  return y;
}

// By output size, or by factors from which it follows.
static Tensor upsample_bilinear_aa(const Tensor& x, const std::optional<Dims>& output_size,
                                   bool align_corners,
                                   const std::optional<std::vector<double>>& scale_factors,
                                   std::optional<double> scales_h, std::optional<double> scales_w) {
  constexpr const char* op = "_upsample_bilinear2d_aa";
  CHECK(x.dim() == 4, Shape, op, ": expected 4 dims, got shape ", x.sizes());
  CHECK(output_size.has_value() != scale_factors.has_value(), Value, op,
        ": expected one of output_size and scale_factors");
  if (output_size) {
    std::vector<double> scales{scales_h.value_or(0), scales_w.value_or(0)};
    return resample(x, *output_size, scales, Resampling::linear_aa, align_corners);
  }
  CHECK(scale_factors->size() == 2, Value, op, ": expected 2 scale factors, got ",
        static_cast<int64_t>(scale_factors->size()));
  Dims sizes;
  for (int64_t i = 0; i < 2; ++i)
    sizes.push_back(static_cast<int64_t>(static_cast<double>(x.size(i + 2)) *
                                         (*scale_factors)[static_cast<size_t>(i)]));
  return resample(x, sizes, scale_factors, Resampling::linear_aa, align_corners);
}

OP_TABLE(vision) = {
    op<upsample_bilinear_aa>(
        "_upsample_bilinear2d_aa(Tensor input, int[]? output_size, bool align_corners=False, "
        "float[]? scale_factors=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        "torch", "Bilinear resizing that averages over what it skips."),
    op<resample>("_resample(Tensor input, int[] output_size, float[]? scales, "
                 "Resampling{nearest|nearest_exact|linear|cubic|area|linear_aa|cubic_aa} mode, "
                 "bool align_corners) -> Tensor",
                 "private", "Resizes the dims after the second."),
};
OP_TABLE_END(vision);

}  // namespace ops
}  // namespace cresset
