// Operators that other operators and the autograd engine are written with.
#pragma once

#include "core/ops/elementwise.h"

#pragma GCC visibility push(default)

namespace cresset::ops {

// Creation (creation.cpp)
Tensor zeros(std::span<const int64_t> sizes, Options options);
Tensor ones(std::span<const int64_t> sizes, Options options);
Tensor full(std::span<const int64_t> sizes, const Scalar& value, Options options);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
using cresset::empty_strided;

// Copies (copy.cpp)
Tensor clone(const Tensor& x, std::optional<int64_t> memory_format);
Tensor contiguous(const Tensor& x);
Tensor to_dtype(const Tensor& x, DType dtype);
Tensor& copy_(Tensor& self, const Tensor& src);
Tensor& zero_(Tensor& self);
Tensor& fill_(Tensor& self, const Operand& value);
/// Copies without recording, checks or version bump: dst must be of src's broadcast shape.
void copy_raw(const Operand& src, const Tensor& dst);
/// The same values on another device, not recorded; the tensor itself where it is there already.
Tensor on_device(const Tensor& x, Device device);
/// The values on the CPU, for code that looks at them: waits for the device.
inline Tensor on_host(const Tensor& x) { return on_device(x, {}); }

// Views (view.cpp)
Tensor detach(const Tensor& x);
Tensor as_strided(const Tensor& x, const Dims& sizes, const Dims& strides,
                  std::optional<int64_t> offset);
Tensor as_strided_backward(const Tensor& grad, const Dims& base_sizes, const Dims& base_strides,
                           int64_t base_offset, const Dims& view_sizes, const Dims& view_strides,
                           int64_t view_offset);
Tensor view(const Tensor& x, const Dims& sizes);
Tensor reshape(const Tensor& x, const Dims& sizes);
Tensor expand(const Tensor& x, const Dims& sizes, bool implicit = false);
Tensor permute(const Tensor& x, const Dims& dims);
Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
Tensor select(const Tensor& x, int64_t dim, int64_t index);
Tensor slice(const Tensor& x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end,
             int64_t step);
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
Tensor squeeze(const Tensor& x, const Dims& dims);
Tensor unsqueeze(const Tensor& x, int64_t dim);
Tensor real(const Tensor& x);

// Elementwise rows by name, with PyTorch's defaults
Tensor add(const Operand& a, const Operand& b, double alpha = 1);
Tensor sub(const Operand& a, const Operand& b, double alpha = 1);
Tensor mul(const Operand& a, const Operand& b);
Tensor div(const Operand& a, const Operand& b);
Tensor neg(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor eq(const Operand& a, const Operand& b);
void add_(const Tensor& self, const Operand& b, double alpha = 1);
void mul_(const Tensor& self, const Operand& b);
Tensor conj(const Tensor& x);
Tensor where(const Tensor& condition, const Operand& a, const Operand& b);
/// Any row out of place, members at their defaults.
Tensor row(Row row, std::initializer_list<Operand> in);

// Reductions (reduce.cpp)
Tensor sum(const Tensor& x, const std::optional<Dims>& dims, bool keepdim,
           std::optional<DType> dtype);
/// Sums over the dims that broadcasting from `sizes` made.
Tensor sum_to_size(const Tensor& x, const Dims& sizes);

}  // namespace cresset::ops

#pragma GCC visibility pop
