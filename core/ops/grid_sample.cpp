// Sampling of images at given positions.
#include "core/ops/grid_sample.h"

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"

namespace cresset::ops {
namespace {

void check_shapes(const char* op, const Tensor& x, const Tensor& grid, GridMode mode) {
  CHECK((x.dim() == 4 || x.dim() == 5) && grid.dim() == x.dim() && grid.size(0) == x.size(0) &&
            grid.size(-1) == x.dim() - 2,
        Shape, op, ": expected an input [N, C, spatial...] and a grid [N, positions..., 2 or 3], ",
        "got shapes ", x.sizes(), " and ", grid.sizes());
  CHECK((x.dtype() == DType::Float32 || x.dtype() == DType::Float64) && x.dtype() == grid.dtype(),
        DType, op, ": expected float32 or float64 for both, got ", x.dtype(), " and ",
        grid.dtype());
  for (int64_t d = 2; d < x.dim(); ++d)
    CHECK(x.size(d) > 0, Shape, op, ": expected spatial sizes above 0, got shape ", x.sizes());
  CHECK(mode != GridMode::bicubic || x.dim() == 4, Value, op,
        ": expected 4 dims for mode bicubic, got shape ", x.sizes());
}

Tensor sample(const char* op, const Tensor& input, const Tensor& positions, GridMode mode,
              GridPadding padding, bool align_corners) {
  check_shapes(op, input, positions, mode);
  Tensor x = contiguous(input), grid = contiguous(positions);
  Dims sizes = grid.sizes();
  sizes.erase(sizes.size() - 1);
  sizes.insert(1, x.size(1));
  Tensor y = empty(sizes, options_of(x));
  launch(op, x.device(), &GridKernels::forward, GridCall{mode, padding, align_corners, &x, &grid},
         y);
  if (wants_grad(x, grid))
    record("GridSampler2DBackward0", y, inputs(x, grid),
           [op, mode, padding, align_corners, xs = save(x), gs = save(grid)](Backward& b) {
             CHECK(!grad_enabled(), NotImplemented, op, ": no derivative of its derivative");
             Tensor image = b(xs), at = b(gs);
             Tensor dx = zeros_like(image), dgrid = empty(at.sizes(), options_of(at));
             launch(op, dx.device(), &GridKernels::backward,
                    GridCall{mode, padding, align_corners, &image, &at}, contiguous(b.grad()), dx,
                    dgrid);
             if (b.needs(0)) b[0] = dx;
             if (b.needs(1)) b[1] = dgrid;
           });
  return y;
}

Tensor by_number(const char* op, int64_t dims, const Tensor& input, const Tensor& grid,
                 int64_t mode, int64_t padding, bool align_corners) {
  CHECK(input.dim() == dims, Shape, op, ": expected ", dims, " dims, got shape ", input.sizes());
  CHECK(mode >= 0 && mode <= 2 && padding >= 0 && padding <= 2, Value, op,
        ": expected modes in [0, 2], got ", mode, " and ", padding);
  return sample(op, input, grid, static_cast<GridMode>(mode), static_cast<GridPadding>(padding),
                align_corners);
}

}  // namespace

static Tensor grid_sample(const Tensor& input, const Tensor& grid, GridMode mode,
                          GridPadding padding_mode, std::optional<bool> align_corners) {
  return sample("grid_sample", input, grid, mode, padding_mode, align_corners.value_or(false));
}
static Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t mode,
                              int64_t padding, bool align_corners) {
  return by_number("grid_sampler_2d", 4, input, grid, mode, padding, align_corners);
}
static Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t mode,
                              int64_t padding, bool align_corners) {
  return by_number("grid_sampler_3d", 5, input, grid, mode, padding, align_corners);
}

OP_TABLE(grid_sample) = {
    op<grid_sample>("grid_sample(Tensor input, Tensor grid, GridMode{bilinear|nearest|bicubic} "
                    "mode='bilinear', GridPadding{zeros|border|reflection} padding_mode='zeros', "
                    "bool? align_corners=None) -> Tensor",
                    "nn", "Values of an image at positions given in [-1, 1]."),
    op<grid_sampler_2d>("grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, "
                        "int padding_mode, bool align_corners) -> Tensor",
                        "torch", "grid_sample of [N, C, H, W] with numbered modes."),
    op<grid_sampler_3d>("grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, "
                        "int padding_mode, bool align_corners) -> Tensor",
                        "torch", "grid_sample of [N, C, D, H, W] with numbered modes."),
};
OP_TABLE_END(grid_sample);

}  // namespace cresset::ops
