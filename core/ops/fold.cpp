// unfold and fold of torch.nn.functional: images to columns of windows, and back by summing.
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/shape.h"

namespace cresset::ops {
namespace {

struct Windows {
  Dims kernel, dilation, padding, stride;
  Dims out;     // positions of the window, [rows, columns]
  Dims padded;  // the image with its padding, [h, w]
};

Dims pair(const char* op, const char* what, const Dims& values, int64_t least) {
  CHECK(values.size() == 2 || values.size() == 1, Value, op, ": expected ", what,
        " of 2 numbers, got ", values);
  for (int64_t v : values)
    CHECK(v >= least && v <= INT32_MAX, Value, op, ": expected ", what, " of at least ", least,
          ", got ", values);
  return values.size() == 2 ? values : Dims(2, values[0]);
}

Windows windows(const char* op, const Dims& image, const Dims& kernel, const Dims& dilation,
                const Dims& padding, const Dims& stride) {
  Windows w{pair(op, "kernel_size", kernel, 1),
            pair(op, "dilation", dilation, 1),
            pair(op, "padding", padding, 0),
            pair(op, "stride", stride, 1),
            {},
            {}};
  for (size_t i = 0; i < 2; ++i) {
    int64_t size = image[i] + 2 * w.padding[i];
    int64_t span = w.dilation[i] * (w.kernel[i] - 1) + 1;
    CHECK(size >= span, Shape, op, ": a window of ", span, " elements does not fit into ", size,
          " of dim ", i, " of an image of size ", image);
    w.padded.push_back(size);
    w.out.push_back((size - span) / w.stride[i] + 1);
  }
  return w;
}

// Sizes and strides of all windows in contiguous padded images [N, C, h, w].
std::pair<Dims, Dims> geometry(const Windows& w, int64_t n, int64_t c) {
  int64_t row = w.padded[1], plane = w.padded[0] * row;
  return {
      Dims{n, c, w.kernel[0], w.kernel[1], w.out[0], w.out[1]},
      Dims{c * plane, plane, w.dilation[0] * row, w.dilation[1], w.stride[0] * row, w.stride[1]}};
}

Tensor im2col(const Tensor& x, const Dims& kernel_size, const Dims& dilation, const Dims& padding,
              const Dims& stride) {
  CHECK(x.dim() == 3 || x.dim() == 4, Shape,
        "unfold: expected images [N, C, H, W] or [C, H, W], "
        "got shape ",
        x.sizes());
  for (int64_t d = -3; d < 0; ++d)
    CHECK(x.size(d) > 0, Shape, "unfold: expected elements in every dim but the batch, got shape ",
          x.sizes());
  Tensor batch = x.dim() == 3 ? unsqueeze(x, 0) : x;
  Windows w =
      windows("unfold", Dims{x.size(-2), x.size(-1)}, kernel_size, dilation, padding, stride);
  int64_t n = batch.size(0), c = batch.size(1);
  Dims pad{w.padding[1], w.padding[1], w.padding[0], w.padding[0]};
  bool padded = w.padding[0] != 0 || w.padding[1] != 0;
  Tensor source = contiguous(padded ? constant_pad_nd(batch, pad, Scalar(int64_t{0})) : batch);
  auto [sizes, strides] = geometry(w, n, c);
  Tensor y = reshape(as_strided(source, sizes, strides, source.offset()),
                     Dims{n, c * w.kernel[0] * w.kernel[1], w.out[0] * w.out[1]});
  return x.dim() == 3 ? squeeze(y, Dims{0}) : y;
}

Tensor col2im(const Tensor& x, const Dims& output_size, const Dims& kernel_size,
              const Dims& dilation, const Dims& padding, const Dims& stride) {
  CHECK(x.dim() == 2 || x.dim() == 3, Shape,
        "fold: expected columns [N, C kh kw, L] or "
        "[C kh kw, L], got shape ",
        x.sizes());
  Dims image = pair("fold", "output_size", output_size, 1);
  Windows w = windows("fold", image, kernel_size, dilation, padding, stride);
  int64_t taps = w.kernel[0] * w.kernel[1];
  CHECK(x.size(-2) > 0 && x.size(-2) % taps == 0, Shape, "fold: expected dim ", x.dim() - 2,
        " of shape ", x.sizes(), " to be a multiple of the window's ", taps, " elements");
  CHECK(x.size(-1) == w.out[0] * w.out[1], Shape, "fold: expected ", w.out[0] * w.out[1],
        " windows in the last dim, got shape ", x.sizes());
  int64_t n = x.dim() == 3 ? x.size(0) : 1, c = x.size(-2) / taps;
  auto [sizes, strides] = geometry(w, n, c);
  Dims base{n, c, w.padded[0], w.padded[1]};
  Tensor y =
      as_strided_backward(reshape(x, sizes), base, contiguous_strides(base), 0, sizes, strides, 0);
  y = narrow(narrow(y, 2, w.padding[0], image[0]), 3, w.padding[1], image[1]);
  y = contiguous(y);
  return x.dim() == 2 ? squeeze(y, Dims{0}) : y;
}

}  // namespace

OP_TABLE(fold) = {
    op<im2col>("im2col(Tensor self, int[2] kernel_size, int[2] dilation=1, int[2] padding=0, "
               "int[2] stride=1) -> Tensor",
               "private", "Columns of the windows of images."),
    op<col2im>("col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation=1, "
               "int[2] padding=0, int[2] stride=1) -> Tensor",
               "private", "Images from columns of windows, summed where they overlap."),
};
OP_TABLE_END(fold);

}  // namespace cresset::ops
