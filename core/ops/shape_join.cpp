// Joining tensors: each input is copied into its part of the result in runs of memory.
#include "core/dispatch/op.h"
#include "core/ops/shape.h"
#include "core/ops/view_helpers.h"

namespace cresset {

enum class Indexing { xy, ij };
template <> struct EnumNames<Indexing> { static constexpr const char* schema = "Indexing{xy|ij}"; };

namespace ops {
namespace {

DType common_dtype(const TensorList& tensors) {
  PromotionState state;
  for (const Tensor& t : tensors) state.add_tensor(t.dtype(), t.dim() == 0);
  return state.result(default_dtype());
}

void check_devices(const char* op, const TensorList& tensors) {
  for (const Tensor& t : tensors)
    CHECK(t.device() == tensors[0].device(), Device, op, ": expected all tensors on one device, ",
          "got ", tensors[0].device(), " and ", t.device());
}

// torch.cat has always taken 1-d tensors without elements next to tensors of any shape.
bool is_skipped(const Tensor& t) { return t.dim() == 1 && t.size(0) == 0; }

bool all_channels_last(const TensorList& tensors) {
  for (const Tensor& t : tensors) {
    if (t.dim() != 4 || t.is_contiguous()) return false;
    if (!(t.strides() == format_strides("cat", t.sizes(), 1))) return false;
  }
  return true;
}

// Shape of the result; throws where the shapes do not fit.
Dims joined_shape(const TensorList& tensors, int64_t& dim) {
  const Tensor* first = nullptr;
  for (const Tensor& t : tensors) {
    CHECK(t.dim() > 0, Shape, "cat: a 0-d tensor cannot be concatenated; use stack");
    if (!first && !is_skipped(t)) first = &t;
  }
  if (!first) first = &tensors[0];
  dim = wrap_dim("cat", dim, first->dim());
  Dims shape = first->sizes();
  shape[dim] = 0;
  for (const Tensor& t : tensors) {
    if (is_skipped(t)) continue;
    bool fits = t.dim() == first->dim();
    for (int64_t d = 0; fits && d < t.dim(); ++d) fits = d == dim || t.size(d) == shape[d];
    CHECK(fits, Shape, "cat: expected shapes that agree but for dim ", dim, ", got ",
          first->sizes(), " and ", t.sizes());
    CHECK(!__builtin_add_overflow(shape[dim], t.size(dim), &shape[dim]), Value,
          "cat: too many elements");
  }
  return shape;
}

}  // namespace

Tensor cat(const TensorList& tensors, int64_t dim) {
  CHECK(!tensors.empty(), Value, "cat: expected at least one tensor");
  check_devices("cat", tensors);
  int64_t d = dim;
  Dims shape = joined_shape(tensors, d);
  Options o{common_dtype(tensors), tensors[0].device()};
  Tensor y = all_channels_last(tensors)
                 ? cresset::empty_strided(shape, format_strides("cat", shape, 1), o)
                 : empty(shape, o, "cat");
  Dims lengths;
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    lengths.push_back(is_skipped(t) ? -1 : t.size(d));
    if (t.numel() == 0) continue;
    Dims part = shape;
    part[d] = t.size(d);
    copy_raw(t, alias(y, part, y.strides(), start * y.stride(d)));
    start += t.size(d);
  }
  if (wants_grad(std::span<const Tensor>(tensors))) {
    record("CatBackward0", y, tensors, [d, lengths](Backward& b) {
      int64_t at = 0;
      for (size_t i = 0; i < lengths.size(); ++i) {
        bool skipped = lengths[i] < 0;
        if (b.needs(i))
          b[i] =
              skipped ? zeros(Dims{0}, options_of(b.grad())) : narrow(b.grad(), d, at, lengths[i]);
        at += skipped ? 0 : lengths[i];
      }
    });
  }
  return y;
}

Tensor stack(const TensorList& tensors, int64_t dim) {
  CHECK(!tensors.empty(), Value, "stack: expected at least one tensor");
  check_devices("stack", tensors);
  const Tensor& first = tensors[0];
  int64_t d = wrap_dim("stack", dim, first.dim() + 1);
  for (const Tensor& t : tensors)
    CHECK(t.sizes() == first.sizes(), Shape, "stack: expected tensors of one shape, got ",
          first.sizes(), " and ", t.sizes());
  Dims shape = first.sizes();
  shape.insert(static_cast<size_t>(d), static_cast<int64_t>(tensors.size()));
  Tensor y = empty(shape, {common_dtype(tensors), first.device()}, "stack");
  Dims strides = y.strides();
  int64_t step = strides[d], at = 0;
  strides.erase(static_cast<size_t>(d));
  for (const Tensor& t : tensors) {
    if (t.numel()) copy_raw(t, alias(y, t.sizes(), strides, at));
    at += step;
  }
  if (wants_grad(std::span<const Tensor>(tensors)))
    record("StackBackward0", y, tensors, [d](Backward& b) {
      for (size_t i = 0; i < b.inputs(); ++i)
        if (b.needs(i)) b[i] = select(b.grad(), d, static_cast<int64_t>(i));
    });
  return y;
}

namespace {

TensorList at_least(const TensorList& tensors, int64_t rank) {
  TensorList out;
  for (const Tensor& t : tensors) {
    Tensor u = t;
    if (u.dim() == 0 && rank > 0) u = reshape(u, Dims{1});
    if (u.dim() == 1 && rank > 1) u = unsqueeze(u, 0);
    if (u.dim() == 2 && rank > 2) u = unsqueeze(u, 2);
    out.push_back(u);
  }
  return out;
}

Tensor hstack(const TensorList& tensors) {
  CHECK(!tensors.empty(), Value, "hstack: expected at least one tensor");
  TensorList list = at_least(tensors, 1);
  return cat(list, list[0].dim() == 1 ? 0 : 1);
}
Tensor vstack(const TensorList& tensors) {
  CHECK(!tensors.empty(), Value, "vstack: expected at least one tensor");
  return cat(at_least(tensors, 2), 0);
}
Tensor dstack(const TensorList& tensors) {
  CHECK(!tensors.empty(), Value, "dstack: expected at least one tensor");
  return cat(at_least(tensors, 3), 2);
}
Tensor column_stack(const TensorList& tensors) {
  CHECK(!tensors.empty(), Value, "column_stack: expected at least one tensor");
  TensorList list;
  for (const Tensor& t : tensors) list.push_back(t.dim() <= 1 ? reshape(t, Dims{t.numel(), 1}) : t);
  return cat(list, 1);
}

Tensor block_diag(const TensorList& tensors) {
  if (tensors.empty()) return empty(Dims{1, 0}, {default_dtype(), {}});
  check_devices("block_diag", tensors);
  int64_t columns = 0;
  TensorList blocks;
  for (const Tensor& t : tensors) {
    CHECK(t.dim() <= 2, Shape, "block_diag: expected tensors of at most 2 dims, got shape ",
          t.sizes());
    blocks.push_back(at_least({t}, 2)[0]);
    columns += blocks.back().size(1);
  }
  Options o{common_dtype(tensors), tensors[0].device()};
  TensorList bands;
  int64_t left = 0;
  for (const Tensor& b : blocks) {
    int64_t right = columns - left - b.size(1);
    bands.push_back(constant_pad_nd(to_dtype(b, o.dtype), Dims{left, right}, Scalar(int64_t{0})));
    left += b.size(1);
  }
  return cat(bands, 0);
}

// One input of _chunk_cat: its dim padded to whole chunks, [before..., chunks, rest].
Tensor chunked(const Tensor& t, int64_t dim, int64_t chunks) {
  int64_t each = (t.size(dim) + chunks - 1) / chunks, missing = each * chunks - t.size(dim);
  Dims pad(static_cast<size_t>(2 * (t.dim() - dim)));
  pad.back() = missing;
  Tensor whole = missing ? constant_pad_nd(t, pad, Scalar(int64_t{0})) : t;
  Dims shape;
  for (int64_t d = 0; d < dim; ++d) shape.push_back(t.size(d));
  shape.push_back(chunks);
  shape.push_back(-1);
  return reshape(whole, shape);
}

Tensor chunk_cat(const TensorList& tensors, int64_t dim, int64_t num_chunks) {
  CHECK(!tensors.empty(), Value, "_chunk_cat: expected at least one tensor");
  CHECK(num_chunks >= 1 && num_chunks < (int64_t{1} << 32), Value,
        "_chunk_cat: expected at least 1 chunk, got ", num_chunks);
  check_devices("_chunk_cat", tensors);
  int64_t d = wrap_dim("_chunk_cat", dim, tensors[0].dim());
  TensorList list;
  for (const Tensor& t : tensors) {
    CHECK(t.numel() > 0, Shape, "_chunk_cat: a tensor has no elements");
    bool fits = t.dim() > d && (dim >= 0 || t.dim() == tensors[0].dim());
    for (int64_t i = 0; fits && i < d; ++i) fits = t.size(i) == tensors[0].size(i);
    CHECK(fits, Shape, "_chunk_cat: expected shapes that agree before dim ", d, ", got ",
          tensors[0].sizes(), " and ", t.sizes());
    CHECK(t.dtype() == tensors[0].dtype(), DType, "_chunk_cat: expected one dtype, got ",
          tensors[0].dtype(), " and ", t.dtype());
    list.push_back(chunked(t, d, num_chunks));
  }
  return cat(list, d + 1);
}

TensorList meshgrid(const TensorList& tensors, Indexing indexing) {
  CHECK(!tensors.empty(), Value, "meshgrid: expected at least one tensor");
  check_devices("meshgrid", tensors);
  Dims shape;
  for (const Tensor& t : tensors) {
    CHECK(t.dim() <= 1, Shape, "meshgrid: expected tensors of at most 1 dim, got shape ",
          t.sizes());
    CHECK(t.dtype() == tensors[0].dtype(), DType, "meshgrid: expected one dtype, got ",
          tensors[0].dtype(), " and ", t.dtype());
    shape.push_back(t.numel());
  }
  bool swap = indexing == Indexing::xy && tensors.size() >= 2;
  if (swap) std::swap(shape[0], shape[1]);
  TensorList out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    size_t at = swap && i < 2 ? 1 - i : i;
    Dims own(tensors.size(), 1);
    own[at] = tensors[i].numel();
    out.push_back(expand(view(reshape(tensors[i], Dims{own[at]}), own), shape));
  }
  return out;
}

TensorList broadcast_tensors(const TensorList& tensors) {
  CHECK(!tensors.empty(), Value, "broadcast_tensors: expected at least one tensor");
  Dims shape;
  for (const Tensor& t : tensors)
    shape = cresset::broadcast_shapes("broadcast_tensors", shape, t.sizes());
  TensorList out;
  for (const Tensor& t : tensors) out.push_back(expand(t, shape));
  return out;
}

Tensor cartesian_prod(const TensorList& tensors) {
  CHECK(!tensors.empty(), Value, "cartesian_prod: expected at least one tensor");
  for (const Tensor& t : tensors)
    CHECK(t.dim() == 1, Shape, "cartesian_prod: expected 1-d tensors, got shape ", t.sizes());
  if (tensors.size() == 1) return tensors[0];
  TensorList grid = meshgrid(tensors, Indexing::ij);
  for (Tensor& t : grid) t = reshape(t, Dims{t.numel()});
  return stack(grid, 1);
}

}  // namespace

OP_TABLE(shape_join) = {
    op<cat>("cat(Tensor[] tensors, int dim=0) -> Tensor", "torch", "Tensors joined along a dim."),
    op<cat>("concat(Tensor[] tensors, int dim=0) -> Tensor", "torch", "Another name of cat."),
    op<cat>("concatenate(Tensor[] tensors, int dim=0) -> Tensor", "torch", "Another name of cat."),
    op<stack>("stack(Tensor[] tensors, int dim=0) -> Tensor", "torch",
              "Tensors joined along a new dim."),
    op<hstack>("hstack(Tensor[] tensors) -> Tensor", "torch",
               "Joined side by side: dim 1, or dim 0 of 1-d tensors."),
    op<vstack>("vstack(Tensor[] tensors) -> Tensor", "torch", "Joined below each other: dim 0."),
    op<vstack>("row_stack(Tensor[] tensors) -> Tensor", "torch", "Another name of vstack."),
    op<dstack>("dstack(Tensor[] tensors) -> Tensor", "torch", "Joined along dim 2."),
    op<column_stack>("column_stack(Tensor[] tensors) -> Tensor", "torch",
                     "Joined side by side, 1-d tensors as columns."),
    op<block_diag>("_block_diag(Tensor[] tensors) -> Tensor", "private",
                   "Matrices along a diagonal, zeros elsewhere."),
    op<chunk_cat>("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", "torch",
                  "Padded to whole chunks, then joined chunk by chunk."),
    op<meshgrid>("_meshgrid(Tensor[] tensors, Indexing{xy|ij} indexing) -> Tensor[]", "private",
                 "Grids of the coordinates in 1-d tensors."),
    op<broadcast_tensors>("_broadcast_tensors(Tensor[] tensors) -> Tensor[]", "private",
                          "Tensors expanded to their common shape."),
    op<cartesian_prod>("_cartesian_prod(Tensor[] tensors) -> Tensor", "private",
                       "All ways to take one element of each 1-d tensor."),
};
OP_TABLE_END(shape_join);

}  // namespace ops
}  // namespace cresset
