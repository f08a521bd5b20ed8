// New tensors: constants and ranges.
#include <cmath>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/ops.h"

namespace cresset::ops {
namespace {

Options resolve(std::optional<DType> dtype, std::optional<Device> device) {
  return {dtype.value_or(default_dtype()), device.value_or(Device{})};
}

Tensor filled(const char* op, std::span<const int64_t> sizes, const Scalar& value, Options o) {
  CHECK(!value.is_complex() || is_complex(o.dtype), DType, op,
        ": a complex value does not fit dtype ", o.dtype);
  Tensor t = empty(sizes, o, op);
  copy_raw(Operand(value), t);
  return t;
}

}  // namespace

Tensor zeros(std::span<const int64_t> sizes, Options o) {
  return filled("zeros", sizes, Scalar(int64_t{0}), o);
}
Tensor ones(std::span<const int64_t> sizes, Options o) {
  return filled("ones", sizes, Scalar(int64_t{1}), o);
}
Tensor full(std::span<const int64_t> sizes, const Scalar& value, Options o) {
  return filled("full", sizes, value, o);
}
Tensor zeros_like(const Tensor& x) {
  Tensor t = empty_like(x);
  copy_raw(Operand(Scalar(int64_t{0})), t);
  return t;
}
Tensor ones_like(const Tensor& x) {
  Tensor t = empty_like(x);
  copy_raw(Operand(Scalar(int64_t{1})), t);
  return t;
}

namespace {

Tensor with_grad(Tensor t, bool requires_grad) {
  if (requires_grad) t.set_requires_grad(true);
  return t;
}

Tensor empty_op(const Dims& size, std::optional<DType> dtype, std::optional<Device> device,
                bool requires_grad) {
  return with_grad(empty(size, resolve(dtype, device), "empty"), requires_grad);
}
Tensor empty_strided_op(const Dims& size, const Dims& stride, std::optional<DType> dtype,
                        std::optional<Device> device, bool requires_grad) {
  return with_grad(empty_strided(size, stride, resolve(dtype, device)), requires_grad);
}
Tensor zeros_op(const Dims& size, std::optional<DType> dtype, std::optional<Device> device,
                bool requires_grad) {
  return with_grad(zeros(size, resolve(dtype, device)), requires_grad);
}
Tensor ones_op(const Dims& size, std::optional<DType> dtype, std::optional<Device> device,
               bool requires_grad) {
  return with_grad(ones(size, resolve(dtype, device)), requires_grad);
}
Tensor full_op(const Dims& size, const Scalar& fill_value, std::optional<DType> dtype,
               std::optional<Device> device, bool requires_grad) {
  return with_grad(full(size, fill_value,
                        resolve(dtype.value_or(fill_value.dtype(default_dtype())), device)),
                   requires_grad);
}

}  // namespace

OP_TABLE(creation) = {
    op<empty_op>("empty(int[] size, *, ScalarType? dtype=None, Device? device=None, "
                 "bool requires_grad=False) -> Tensor",
                 "torch", "Uninitialised values."),
    op<empty_strided_op>("empty_strided(int[] size, int[] stride, *, ScalarType? dtype=None, "
                         "Device? device=None, bool requires_grad=False) -> Tensor",
                         "torch", "Uninitialised values under given strides (in elements)."),
    op<zeros_op>("zeros(int[] size, *, ScalarType? dtype=None, Device? device=None, "
                 "bool requires_grad=False) -> Tensor",
                 "torch", "Zeros."),
    op<ones_op>("ones(int[] size, *, ScalarType? dtype=None, Device? device=None, "
                "bool requires_grad=False) -> Tensor",
                "torch", "Ones."),
    op<full_op>("full(int[] size, Scalar fill_value, *, ScalarType? dtype=None, "
                "Device? device=None, bool requires_grad=False) -> Tensor",
                "torch", "One value everywhere."),
};
OP_TABLE_END(creation);

}  // namespace cresset::ops
