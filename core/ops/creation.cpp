// New tensors: uninitialised and constant, by size or like another tensor.
#include "core/ops/creation.h"
#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/shape.h"

namespace cresset::ops {

Options resolve(std::optional<DType> dtype, std::optional<Device> device) {
  return {dtype.value_or(default_dtype()), device.value_or(Device{})};
}
Options resolve(const Tensor& x, std::optional<DType> dtype, std::optional<Device> device) {
  return {dtype.value_or(x.dtype()), device.value_or(x.device())};
}
Tensor with_grad(Tensor t, bool requires_grad) {
  if (requires_grad) t.set_requires_grad(true);
  return t;
}

namespace {

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
  return with_grad(
      full(size, fill_value, resolve(dtype.value_or(fill_value.dtype(default_dtype())), device)),
      requires_grad);
}

Tensor empty_permuted(const Dims& size, const Dims& physical_layout, std::optional<DType> dtype,
                      std::optional<Device> device, bool requires_grad) {
  CHECK(size.size() == physical_layout.size(), Shape, "empty_permuted: expected a layout of ",
        size.size(), " dims, got ", physical_layout);
  checked_numel("empty_permuted", size);
  Dims strides(size.size(), -1);
  int64_t step = 1, rank = static_cast<int64_t>(size.size());
  for (size_t i = size.size(); i-- > 0;) {
    int64_t d = physical_layout[i];
    CHECK(d >= 0 && d < rank && strides[d] < 0, Value,
          "empty_permuted: expected a permutation of the dims, got ", physical_layout);
    strides[d] = step;
    step *= std::max<int64_t>(size[d], 1);
  }
  return with_grad(cresset::empty_strided(size, strides, resolve(dtype, device)), requires_grad);
}

Tensor scalar_tensor(const Scalar& s, std::optional<DType> dtype, std::optional<Device> device,
                     bool requires_grad) {
  return with_grad(full(Dims{}, s, resolve(dtype, device)), requires_grad);
}

// ---- like another tensor

using Format = std::optional<int64_t>;

Tensor empty_like_op(const Tensor& x, std::optional<DType> dtype, std::optional<Device> device,
                     bool requires_grad, Format format) {
  return with_grad(empty_in_format("empty_like", x, resolve(x, dtype, device), format),
                   requires_grad);
}
Tensor full_like_op(const Tensor& x, const Scalar& value, std::optional<DType> dtype,
                    std::optional<Device> device, bool requires_grad, Format format) {
  Tensor y = empty_in_format("full_like", x, resolve(x, dtype, device), format);
  CHECK(!value.is_complex() || y.is_complex(), DType,
        "full_like: a complex value does not fit dtype ", y.dtype());
  copy_raw(Operand(value), y);
  return with_grad(y, requires_grad);
}
Tensor zeros_like_op(const Tensor& x, std::optional<DType> dtype, std::optional<Device> device,
                     bool requires_grad, Format format) {
  return full_like_op(x, Scalar(int64_t{0}), dtype, device, requires_grad, format);
}
Tensor ones_like_op(const Tensor& x, std::optional<DType> dtype, std::optional<Device> device,
                    bool requires_grad, Format format) {
  return full_like_op(x, Scalar(int64_t{1}), dtype, device, requires_grad, format);
}
Tensor new_empty(const Tensor& x, const Dims& size, std::optional<DType> dtype,
                 std::optional<Device> device, bool requires_grad) {
  return with_grad(empty(size, resolve(x, dtype, device), "new_empty"), requires_grad);
}
Tensor new_empty_strided(const Tensor& x, const Dims& size, const Dims& stride,
                         std::optional<DType> dtype, std::optional<Device> device,
                         bool requires_grad) {
  return with_grad(cresset::empty_strided(size, stride, resolve(x, dtype, device)), requires_grad);
}
Tensor new_full(const Tensor& x, const Dims& size, const Scalar& value, std::optional<DType> dtype,
                std::optional<Device> device, bool requires_grad) {
  return with_grad(filled("new_full", size, value, resolve(x, dtype, device)), requires_grad);
}
Tensor new_zeros(const Tensor& x, const Dims& size, std::optional<DType> dtype,
                 std::optional<Device> device, bool requires_grad) {
  return new_full(x, size, Scalar(int64_t{0}), dtype, device, requires_grad);
}
Tensor new_ones(const Tensor& x, const Dims& size, std::optional<DType> dtype,
                std::optional<Device> device, bool requires_grad) {
  return new_full(x, size, Scalar(int64_t{1}), dtype, device, requires_grad);
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
    op<empty_permuted>("empty_permuted(int[] size, int[] physical_layout, "
                       "*, ScalarType? dtype=None, Device? device=None, "
                       "bool requires_grad=False) -> Tensor",
                       "torch", "Uninitialised values whose dims lie in memory in a given order."),
    op<scalar_tensor>("scalar_tensor(Scalar s, "
                      "*, ScalarType? dtype=None, Device? device=None, "
                      "bool requires_grad=False) -> Tensor",
                      "torch", "A 0-d tensor of a number."),
    op<empty_like_op>("empty_like(Tensor self, "
                      "*, ScalarType? dtype=None, Device? device=None, "
                      "bool requires_grad=False, "
                      "int? memory_format=None) -> Tensor",
                      "torch", "Uninitialised values in the shape of another tensor."),
    op<full_like_op>("full_like(Tensor self, Scalar fill_value, "
                     "*, ScalarType? dtype=None, Device? device=None, "
                     "bool requires_grad=False, "
                     "int? memory_format=None) -> Tensor",
                     "torch", "One value in the shape of another tensor."),
    op<zeros_like_op>("zeros_like(Tensor self, "
                      "*, ScalarType? dtype=None, Device? device=None, "
                      "bool requires_grad=False, "
                      "int? memory_format=None) -> Tensor",
                      "torch", "Zeros in the shape of another tensor."),
    op<ones_like_op>("ones_like(Tensor self, "
                     "*, ScalarType? dtype=None, Device? device=None, "
                     "bool requires_grad=False, "
                     "int? memory_format=None) -> Tensor",
                     "torch", "Ones in the shape of another tensor."),
    op<new_empty>("new_empty(Tensor self, int[] size, "
                  "*, ScalarType? dtype=None, Device? device=None, "
                  "bool requires_grad=False) -> Tensor",
                  "method", "Uninitialised values of this tensor's dtype and device."),
    op<new_empty_strided>("new_empty_strided(Tensor self, int[] size, int[] stride, "
                          "*, ScalarType? dtype=None, Device? device=None, "
                          "bool requires_grad=False) -> Tensor",
                          "method", "Uninitialised values of this tensor's dtype, with strides."),
    op<new_full>("new_full(Tensor self, int[] size, Scalar fill_value, "
                 "*, ScalarType? dtype=None, Device? device=None, "
                 "bool requires_grad=False) -> Tensor",
                 "method", "One value, of this tensor's dtype and device."),
    op<new_zeros>("new_zeros(Tensor self, int[] size, "
                  "*, ScalarType? dtype=None, Device? device=None, "
                  "bool requires_grad=False) -> Tensor",
                  "method", "Zeros of this tensor's dtype and device."),
    op<new_ones>("new_ones(Tensor self, int[] size, "
                 "*, ScalarType? dtype=None, Device? device=None, "
                 "bool requires_grad=False) -> Tensor",
                 "method", "Ones of this tensor's dtype and device."),
};
OP_TABLE_END(creation);

}  // namespace cresset::ops
