// Operators of the shape families that other operators are written with.
#pragma once

#include "core/autograd/autograd.h"
#include "core/ops/ops.h"

namespace cresset::ops {

// Joining and splitting (shape_join.cpp, shape_split.cpp)
Tensor cat(const TensorList& tensors, int64_t dim = 0);
Tensor stack(const TensorList& tensors, int64_t dim = 0);
TensorList split(const Tensor& x, int64_t size, int64_t dim = 0);
TensorList split_with_sizes(const Tensor& x, const Dims& sizes, int64_t dim = 0);
TensorList chunk(const Tensor& x, int64_t chunks, int64_t dim = 0);
TensorList unbind(const Tensor& x, int64_t dim = 0);

// Views (shape_views.cpp)
Tensor diagonal(const Tensor& x, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1);
Tensor flatten(const Tensor& x, int64_t start_dim = 0, int64_t end_dim = -1);
Tensor unflatten(const Tensor& x, int64_t dim, const Dims& sizes);
Tensor movedim(const Tensor& x, const Dims& source, const Dims& destination);
Tensor unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step);
/// The two last dims swapped, and conjugated.
Tensor matrix_h(const Tensor& x);

// Moving elements (shape_move.cpp)
Tensor flip(const Tensor& x, const Dims& dims);
Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims);
Tensor repeat(const Tensor& x, const Dims& repeats);
Tensor tril(const Tensor& x, int64_t diagonal = 0);
Tensor triu(const Tensor& x, int64_t diagonal = 0);

// Writing into a copy (shape_scatter.cpp)
Tensor diag_embed(const Tensor& x, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1);
Tensor select_scatter(const Tensor& x, const Tensor& src, int64_t dim, int64_t index);
Tensor slice_scatter(const Tensor& x, const Tensor& src, int64_t dim, std::optional<int64_t> start,
                     std::optional<int64_t> end, int64_t step);

// Complex numbers (complex_views.cpp)
Tensor view_as_real(const Tensor& x);
Tensor view_as_complex(const Tensor& x);
Tensor imag(const Tensor& x);
Tensor make_complex(const Tensor& real, const Tensor& imag);

// Padding (pad.cpp)
Tensor constant_pad_nd(const Tensor& x, const Dims& pad, const Scalar& value);

// Memory formats (copy.cpp): 0 contiguous, 1 channels last, 2 channels last 3d, 3 preserve
/// The strides of `sizes` in a format other than preserve. Throws Shape naming `op`.
Dims format_strides(const char* op, std::span<const int64_t> sizes, int64_t format);
/// An uninitialised tensor with x's sizes, laid out by `format` (none = preserve).
Tensor empty_in_format(const char* op, const Tensor& x, Options options,
                       std::optional<int64_t> format);

}  // namespace cresset::ops
