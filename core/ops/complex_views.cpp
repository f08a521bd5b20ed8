// Complex numbers and their parts, and views of memory under another dtype.
#include "core/dispatch/op.h"
#include "core/ops/copy_kernels.h"
#include "core/ops/shape.h"
#include "core/ops/view_helpers.h"

namespace cresset::ops {
namespace {

// x's storage as elements of another dtype, recorded as node `node`.
template <class F>
Tensor reinterpret(const char* op, const char* node, const Tensor& x, DType dtype, Dims sizes,
                   Dims strides, int64_t offset, F backward) {
  Tensor y(
      make_ref<TensorImpl>(x.impl()->storage, std::move(sizes), std::move(strides), offset, dtype));
  mark_view(y, x, op);
  bool float_like = is_floating(dtype) || is_complex(dtype);
  if (float_like && wants_grad(x)) record(node, y, inputs(x), std::move(backward));
  return y;
}

Dims doubled(const Dims& strides) {
  Dims out = strides;
  for (int64_t& s : out) s *= 2;
  return out;
}

// One of the two parts of a complex tensor.
template <class F>
Tensor part(const char* op, const char* node, const Tensor& x, int64_t which, F backward) {
  return reinterpret(op, node, x, to_real(x.dtype()), x.sizes(), doubled(x.strides()),
                     2 * x.offset() + which, std::move(backward));
}

}  // namespace

Tensor real(const Tensor& x) {
  if (!x.is_complex()) return x;
  return part("real", "RealBackward0", x, 0,
              [](Backward& b) { b[0] = to_dtype(b.grad(), to_complex(b.grad().dtype())); });
}

Tensor imag(const Tensor& x) {
  CHECK(x.is_complex(), DType, "imag: expected a complex tensor, got ", x.dtype());
  return part("imag", "ImagBackward0", x, 1,
              [](Backward& b) { b[0] = make_complex(zeros_like(b.grad()), b.grad()); });
}

Tensor view_as_real(const Tensor& x) {
  CHECK(x.is_complex(), DType, "view_as_real: expected a complex tensor, got ", x.dtype());
  Dims sizes = x.sizes(), strides = doubled(x.strides());
  sizes.push_back(2);
  strides.push_back(1);
  return reinterpret("view_as_real", "ViewAsRealBackward0", x, to_real(x.dtype()), sizes, strides,
                     2 * x.offset(),
                     [](Backward& b) { b[0] = view_as_complex(contiguous(b.grad())); });
}

Tensor view_as_complex(const Tensor& x) {
  CHECK(x.dtype() == DType::Float32 || x.dtype() == DType::Float64, DType,
        "view_as_complex: expected float32 or float64, got ", x.dtype());
  CHECK(x.dim() > 0 && x.size(-1) == 2, Shape,
        "view_as_complex: expected a last dim of size 2, got shape ", x.sizes());
  Dims sizes = x.sizes(), strides = x.strides();
  bool pairs = strides.back() == 1 && x.offset() % 2 == 0;
  sizes.pop_back();
  strides.pop_back();
  for (int64_t& s : strides) {
    pairs &= s % 2 == 0;
    s /= 2;
  }
  CHECK(pairs, Shape, "view_as_complex: expected adjacent pairs, got strides ", x.strides(),
        " and offset ", x.offset());
  return reinterpret("view_as_complex", "ViewAsComplexBackward0", x, to_complex(x.dtype()), sizes,
                     strides, x.offset() / 2,
                     [](Backward& b) { b[0] = view_as_real(contiguous(b.grad())); });
}

Tensor make_complex(const Tensor& re, const Tensor& im) {
  CHECK(re.dtype() == im.dtype() && (re.dtype() == DType::Float32 || re.dtype() == DType::Float64),
        DType, "complex: expected two float32 or two float64 tensors, got ", re.dtype(), " and ",
        im.dtype());
  Dims sizes = cresset::broadcast_shapes("complex", re.sizes(), im.sizes());
  Tensor y = empty(sizes, {to_complex(re.dtype()), re.device()});
  {
    GradMode off(false);
    copy_raw(re, real(y));
    copy_raw(im, imag(y));
  }
  if (wants_grad(re, im))
    record("ComplexBackward0", y, inputs(re, im), [](Backward& b) {
      if (b.needs(0)) b[0] = real(b.grad());
      if (b.needs(1)) b[1] = imag(b.grad());
    });
  return y;
}

namespace {

Tensor polar(const Tensor& abs, const Tensor& angle) {
  CHECK(abs.dtype() == angle.dtype() &&
            (abs.dtype() == DType::Float32 || abs.dtype() == DType::Float64),
        DType, "polar: expected two float32 or two float64 tensors, got ", abs.dtype(), " and ",
        angle.dtype());
  return make_complex(mul(abs, row(Row::cos, {angle})), mul(abs, row(Row::sin, {angle})));
}

// Conjugates and negatives are never lazy here, so there is nothing to resolve.
Tensor itself(const Tensor& x) { return x; }
bool never(const Tensor&) { return false; }
bool is_complex_op(const Tensor& x) { return x.is_complex(); }
bool is_floating_op(const Tensor& x) { return x.is_floating(); }

// The same bytes under another dtype; the last dim takes up a difference in element size.
Tensor view_dtype(const Tensor& x, DType dtype) {
  if (dtype == x.dtype()) return view(x, x.sizes());
  int64_t from = static_cast<int64_t>(itemsize(x.dtype()));
  int64_t to = static_cast<int64_t>(itemsize(dtype));
  Dims sizes = x.sizes(), strides = x.strides();
  int64_t offset = x.offset();
  if (from != to) {
    CHECK(x.dim() > 0 && strides.back() == 1, Shape,
          "view: a dtype of another size needs a last dim of stride 1, got strides ", strides);
    bool fits = from > to || (sizes.back() % (to / from) == 0 && offset % (to / from) == 0);
    sizes.back() = sizes.back() * from / to;
    for (size_t i = 0; i + 1 < strides.size(); ++i) {
      fits &= strides[i] * from % to == 0;
      strides[i] = strides[i] * from / to;
    }
    CHECK(fits, Shape, "view: shape ", x.sizes(), " with strides ", x.strides(), " and offset ",
          offset, " does not divide into elements of ", dtype);
    offset = offset * from / to;
  }
  CHECK(!x.requires_grad(), NotImplemented,
        "view: no derivative of a view under another dtype; detach() first");
  return Tensor(make_ref<TensorImpl>(x.impl()->storage, sizes, strides, offset, dtype));
}

}  // namespace

OP_TABLE(complex_views) = {
    op<real>("real(Tensor self) -> Tensor", "torch", "The real part, as a view."),
    op<imag>("imag(Tensor self) -> Tensor", "torch", "The imaginary part, as a view."),
    op<view_as_real>("view_as_real(Tensor self) -> Tensor", "torch",
                     "Complex numbers as pairs in a new last dim."),
    op<view_as_complex>("view_as_complex(Tensor self) -> Tensor", "torch",
                        "Pairs in the last dim as complex numbers."),
    op<make_complex>("complex(Tensor real, Tensor imag) -> Tensor", "torch",
                     "Complex numbers of two parts."),
    op<polar>("polar(Tensor abs, Tensor angle) -> Tensor", "torch",
              "Complex numbers of a modulus and an angle."),
    op<conj>("conj(Tensor self) -> Tensor", "torch method",
             "The complex conjugate: a copy, not a lazy view."),
    op<itself>("resolve_conj(Tensor self) -> Tensor", "torch method",
               "The tensor itself: conjugates are never lazy."),
    op<itself>("resolve_neg(Tensor self) -> Tensor", "torch method",
               "The tensor itself: negatives are never lazy."),
    op<never>("is_conj(Tensor self) -> bool", "torch method", "False: conjugates are never lazy."),
    op<never>("is_neg(Tensor self) -> bool", "torch method", "False: negatives are never lazy."),
    op<is_complex_op>("is_complex(Tensor self) -> bool", "torch", "Whether the dtype is complex."),
    op<is_floating_op>("is_floating_point(Tensor self) -> bool", "torch",
                       "Whether the dtype is a real floating one."),
    op<view_dtype>("_view_dtype(Tensor self, ScalarType dtype) -> Tensor", "private",
                   "The same bytes under another dtype."),
};
OP_TABLE_END(complex_views);

}  // namespace cresset::ops
