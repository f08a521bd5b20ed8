// Splitting: one recorded node whose outputs are views of neighbouring parts.
#include "core/dispatch/op.h"
#include "core/ops/shape.h"
#include "core/ops/view_helpers.h"

namespace cresset::ops {
namespace {

/// How the parts of a split relate to autograd's in-place rules.
enum class Parts { Views, Unsafe };

constexpr int64_t most_parts = int64_t{1} << 22;

// Contiguous parts of a dim, of given sizes; all of them are outputs of one node.
TensorList parts(const char* op, const Tensor& x, const Dims& sizes, int64_t d, Parts kind) {
  TensorList out;
  int64_t start = 0;
  for (int64_t size : sizes) {
    Dims shape = x.sizes();
    shape[d] = size;
    out.push_back(alias(x, shape, x.strides(), x.offset() + start * x.stride(d)));
    if (kind == Parts::Views) mark_view(out.back(), x, op, ViewOrigin::MultiOutput);
    start += size;
  }
  if (wants_grad(x) && !out.empty()) {
    record("SplitBackward0", std::span<const Tensor>(out), inputs(x),
           [d, n = out.size(), from = x.sizes()](Backward& b) {
             TensorList grads;
             for (size_t i = 0; i < n; ++i) grads.push_back(b.grad(i));
             b[0] = reshape(cat(grads, d), from);
           });
  }
  return out;
}

Dims equal_sizes(const char* op, int64_t total, int64_t size) {
  CHECK(size >= 0, Value, op, ": expected a split size of at least 0, got ", size);
  CHECK(size > 0 || total == 0, Value, op, ": split size 0 needs a dim of size 0, got ", total);
  if (size == 0 || total == 0) return {total};
  CHECK((total - 1) / size < most_parts, Value, op, ": too many parts of size ", size, " in ",
        total);
  Dims sizes;
  for (int64_t at = 0; at < total; at += size) sizes.push_back(std::min(size, total - at));
  return sizes;
}

int64_t split_dim(const char* op, const Tensor& x, int64_t dim) {
  CHECK(x.dim() > 0, Shape, op, ": cannot split a 0-d tensor");
  return wrap_dim(op, dim, x.dim());
}

TensorList split_by(const char* op, const Tensor& x, int64_t size, int64_t dim, Parts kind) {
  int64_t d = split_dim(op, x, dim);
  return parts(op, x, equal_sizes(op, x.size(d), size), d, kind);
}

TensorList sized_by(const char* op, const Tensor& x, const Dims& sizes, int64_t dim, Parts kind) {
  int64_t d = split_dim(op, x, dim), sum = 0;
  for (int64_t s : sizes) {
    CHECK(s >= 0 && !__builtin_add_overflow(sum, s, &sum), Value, op,
          ": expected sizes of at least 0, got ", sizes);
  }
  CHECK(sum == x.size(d), Shape, op, ": expected sizes that add up to ", x.size(d), " (dim ", d,
        " of shape ", x.sizes(), "), got ", sizes);
  return parts(op, x, sizes, d, kind);
}

TensorList chunk_by(const char* op, const Tensor& x, int64_t chunks, int64_t dim, Parts kind) {
  CHECK(x.dim() > 0, Shape, op, ": cannot split a 0-d tensor");
  CHECK(chunks > 0, Value, op, ": expected at least 1 chunk, got ", chunks);
  int64_t d = wrap_dim(op, dim, x.dim()), n = x.size(d);
  if (n == 0) {
    CHECK(chunks < (1 << 20), Value, op, ": too many chunks, ", chunks);
    return parts(op, x, Dims(static_cast<size_t>(chunks)), d, kind);
  }
  int64_t size = n / chunks + (n % chunks != 0);
  return parts(op, x, equal_sizes(op, n, size), d, kind);
}

TensorList copies(TensorList list) {
  for (Tensor& t : list) t = clone(t, int64_t{0});
  return list;
}

}  // namespace

TensorList split(const Tensor& x, int64_t size, int64_t dim) {
  return split_by("split", x, size, dim, Parts::Views);
}
TensorList split_with_sizes(const Tensor& x, const Dims& sizes, int64_t dim) {
  return sized_by("split_with_sizes", x, sizes, dim, Parts::Views);
}
TensorList chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  return chunk_by("chunk", x, chunks, dim, Parts::Views);
}

TensorList unbind(const Tensor& x, int64_t dim) {
  CHECK(x.dim() > 0, Shape, "unbind: a 0-d tensor has no dim to unbind");
  int64_t d = wrap_dim("unbind", dim, x.dim());
  CHECK(x.size(d) <= most_parts, Value, "unbind: too many parts, ", x.size(d));
  Dims shape = x.sizes(), strides = x.strides();
  shape.erase(static_cast<size_t>(d));
  strides.erase(static_cast<size_t>(d));
  TensorList out;
  for (int64_t i = 0; i < x.size(d); ++i) {
    out.push_back(alias(x, shape, strides, x.offset() + i * x.stride(d)));
    mark_view(out.back(), x, "unbind", ViewOrigin::MultiOutput);
  }
  if (wants_grad(x) && !out.empty())
    record("UnbindBackward0", std::span<const Tensor>(out), inputs(x),
           [d, n = out.size()](Backward& b) {
             TensorList grads;
             for (size_t i = 0; i < n; ++i) grads.push_back(b.grad(i));
             b[0] = stack(grads, d);
           });
  return out;
}

namespace {

TensorList unsafe_split(const Tensor& x, int64_t size, int64_t dim) {
  return split_by("unsafe_split", x, size, dim, Parts::Unsafe);
}
TensorList unsafe_split_with_sizes(const Tensor& x, const Dims& sizes, int64_t dim) {
  return sized_by("unsafe_split_with_sizes", x, sizes, dim, Parts::Unsafe);
}
TensorList unsafe_chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  return chunk_by("unsafe_chunk", x, chunks, dim, Parts::Unsafe);
}
TensorList split_copy(const Tensor& x, int64_t size, int64_t dim) {
  return copies(split(x, size, dim));
}
TensorList split_with_sizes_copy(const Tensor& x, const Dims& sizes, int64_t dim) {
  return copies(split_with_sizes(x, sizes, dim));
}
TensorList unbind_copy(const Tensor& x, int64_t dim) { return copies(unbind(x, dim)); }

TensorList tensor_split_sections(const Tensor& x, int64_t sections, int64_t dim) {
  int64_t d = split_dim("tensor_split", x, dim), n = x.size(d);
  CHECK(sections > 0, Value, "tensor_split: expected at least 1 section, got ", sections);
  CHECK(sections < (1 << 20), Value, "tensor_split: too many sections, ", sections);
  TensorList out;
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    int64_t size = n / sections + (i < n % sections);
    out.push_back(slice(x, d, start, start + size, 1));
    start += size;
  }
  return out;
}

TensorList tensor_split_indices(const Tensor& x, const Dims& indices, int64_t dim) {
  int64_t d = split_dim("tensor_split", x, dim), start = 0;
  TensorList out;
  for (int64_t end : indices) {
    out.push_back(slice(x, d, start, end, 1));
    start = end;
  }
  out.push_back(slice(x, d, start, x.size(d), 1));
  return out;
}

}  // namespace

OP_TABLE(shape_split) = {
    op<split>("_split(Tensor self, int split_size, int dim=0) -> Tensor[]", "private",
              "Parts of equal size, the last one smaller."),
    op<split_with_sizes>("split_with_sizes(Tensor self, int[] split_sizes, int dim=0) "
                         "-> Tensor[]",
                         "torch method", "Parts of given sizes."),
    op<chunk>("chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", "torch method",
              "At most `chunks` parts of equal size."),
    op<unbind>("unbind(Tensor self, int dim=0) -> Tensor[]", "torch method",
               "The slices of a dim, without it."),
    op<unsafe_split>("unsafe_split(Tensor self, int split_size, int dim=0) -> Tensor[]",
                     "torch method", "split whose parts may be written to while recording."),
    op<unsafe_split_with_sizes>("unsafe_split_with_sizes(Tensor self, int[] split_sizes, "
                                "int dim=0) -> Tensor[]",
                                "torch method", "split_with_sizes whose parts may be written to."),
    op<unsafe_chunk>("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", "torch method",
                     "chunk whose parts may be written to while recording."),
    op<split_copy>("split_copy(Tensor self, int split_size, int dim=0) -> Tensor[]", "torch",
                   "split as copies."),
    op<split_with_sizes_copy>("split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0) "
                              "-> Tensor[]",
                              "torch", "split_with_sizes as copies."),
    op<unbind_copy>("unbind_copy(Tensor self, int dim=0) -> Tensor[]", "torch",
                    "unbind as copies."),
    op<tensor_split_sections>("_tensor_split_sections(Tensor self, int sections, int dim) "
                              "-> Tensor[]",
                              "private", "A number of parts of nearly equal size."),
    op<tensor_split_indices>("_tensor_split_indices(Tensor self, int[] indices, int dim) "
                             "-> Tensor[]",
                             "private", "The parts between indices."),
};
OP_TABLE_END(shape_split);

}  // namespace cresset::ops
