// Kernel table of the operators that choose elements or rows, and what other families use of them.
#pragma once

#include "core/ops/launch.h"
#include "core/ops/operand.h"

namespace cresset {

/// A contiguous tensor seen as [outer, n, inner]: the rows are indexed along n.
struct RowShape {
  int64_t outer = 1, n = 1, inner = 1;
};

/// Indices are contiguous int64 and already checked; -1 marks a row to skip (zeros when read).
struct IndexingKernels {
  /// Smallest and largest value of a non-empty index.
  void (*range)(const Tensor& index, int64_t* lo, int64_t* hi);
  /// Adds n to negative indices.
  void (*wrap)(const Tensor& index, int64_t n);
  /// out[i] = the number of element (index[0][i], index[1][i], ...) of a row-major block.
  void (*linear)(const TensorList& index, const Dims& sizes, const Tensor& out);
  /// out[o, j] = self[o, index[j]].
  void (*select_rows)(const Tensor& self, const Tensor& index, const Tensor& out, RowShape shape);
  /// self[o, index[j]] = src[o, j]; the last of equal indices stays.
  void (*write_rows)(const Tensor& self, const Tensor& index, const Tensor& src, RowShape shape);
  /// self[o, index[j]] += alpha * src[o, j], in the order of j.
  void (*add_rows)(const Tensor& self, const Tensor& index, const Tensor& src, const Scalar& alpha,
                   RowShape shape);
  /// Any strides, broadcast; a and b of out's dtype; out contiguous.
  void (*where)(const Tensor& condition, const Tensor& a, const Tensor& b, const Tensor& out);
  /// Elements that are not 0 in each block of `nonzero_block` elements of contiguous x.
  void (*count_nonzero)(const Tensor& x, std::vector<int64_t>* counts);
  /// out[d, k] = coordinate d of the k-th element that is not 0.
  void (*nonzero)(const Tensor& x, const std::vector<int64_t>& counts, const Tensor& out);
  /// out[i] (int64) = index[i], plus n where it is negative and may be. What is outside becomes -1
  /// and is announced on the device: for GPUs, whose indices the host does not see.
  void (*check)(const Tensor& index, int64_t n, bool negative, const Tensor& out) = nullptr;
};

inline constexpr int64_t nonzero_block = 16384;

namespace ops {

/// `index` as int64, checked against [0, n), or [-n, n) when `negative` (then wrapped).
Tensor checked_index(const char* op, const Tensor& self, const Tensor& index, int64_t n,
                     bool negative);
/// Throws Device unless both are on one device.
void same_device(const char* op, const Tensor& self, const Tensor& other);

// Differentiable in x, self and src; `index` is checked, 1-d, int64 (-1 skips a row).
Tensor select_rows(const Tensor& x, int64_t dim, const Tensor& index);
Tensor copy_rows(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
Tensor add_rows(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                const Scalar& alpha = Scalar(int64_t{1}));
/// Rows of src added into zeros that have n rows in `dim`.
Tensor spread_rows(const Tensor& src, int64_t dim, const Tensor& index, int64_t n);

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
Tensor index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                 const Scalar& alpha);
Tensor index(const Tensor& self, const std::vector<std::optional<Tensor>>& indices);
Tensor index_put(const Tensor& self, const std::vector<std::optional<Tensor>>& indices,
                 const Tensor& values, bool accumulate);
Tensor nonzero(const Tensor& x);
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index, bool sparse_grad = false);
Tensor scatter_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
/// where() for operands that already have one dtype.
Tensor where_same(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor masked_fill(const Tensor& self, const Tensor& mask, const Operand& value);

}  // namespace ops
}  // namespace cresset
