// Operators that move elements: flips, rolls, repeats, triangles, differences, shuffles.
#include "core/dispatch/op.h"
#include "core/ops/copy_kernels.h"
#include "core/ops/indexing.h"
#include "core/ops/shape.h"

namespace cresset::ops {

// ---- flip, roll

Tensor flip(const Tensor& x, const Dims& dims) {
  Dims over = wrap_dims("flip", dims, x.dim(), false);
  Tensor y = empty_like(x);
  StridedCopy c{nullptr,     nullptr,     x.sizes(),
                y.strides(), x.strides(), static_cast<int64_t>(itemsize(x.dtype()))};
  int64_t start = 0;
  for (int64_t d : over) {
    if (x.dim() == 0 || x.size(d) == 0) continue;
    start += (x.size(d) - 1) * x.stride(d);
    c.from_strides[d] = -x.stride(d);
  }
  if (!x.is_meta()) {
    c.to = y.device_data<char>();
    c.from = x.device_data<char>() + start * c.size;
  }
  launch("flip", x.device(), &CopyKernels::strided, std::move(c));
  if (wants_grad(x))
    record("FlipBackward0", y, inputs(x), [over](Backward& b) { b[0] = flip(b.grad(), over); });
  return y;
}

namespace {

// y = x with dim d rotated by `shift`, 0 <= shift < size.
Tensor rolled(const Tensor& x, int64_t shift, int64_t d) {
  Tensor y = empty(x.sizes(), options_of(x));
  int64_t n = x.size(d);
  auto copy_part = [&](int64_t from, int64_t to, int64_t length) {
    if (length == 0) return;
    Dims part = x.sizes();
    part[d] = length;
    copy_raw(alias(x, part, x.strides(), x.offset() + from * x.stride(d)),
             alias(y, part, y.strides(), to * y.stride(d)));
  };
  copy_part(0, shift, n - shift);
  copy_part(n - shift, 0, shift);
  return y;
}

}  // namespace

Tensor roll(const Tensor& x, const Dims& shifts, const Dims& dims) {
  CHECK(!shifts.empty(), Value, "roll: expected at least one shift");
  if (dims.empty() && shifts.size() == 1)
    return reshape(roll(reshape(x, Dims{x.numel()}), shifts, Dims{0}), x.sizes());
  CHECK(shifts.size() == dims.size(), Value, "roll: expected as many shifts as dims, got ", shifts,
        " and ", dims);
  Tensor y = x;
  Dims back = shifts;
  for (size_t i = 0; i < shifts.size(); ++i) {
    back[i] = shifts[i] == std::numeric_limits<int64_t>::min() ? shifts[i] : -shifts[i];
    CHECK(x.dim() > 0, Shape, "roll: a 0-d tensor has no dim to roll");
    int64_t d = wrap_dim("roll", dims[i], x.dim());
    if (x.numel() == 0) continue;
    int64_t n = x.size(d), shift = (shifts[i] % n + n) % n;
    y = rolled(y, shift, d);
  }
  if (y.same(x)) y = clone(alias(x), int64_t{0});
  if (wants_grad(x))
    record("RollBackward0", y, inputs(x),
           [back, dims](Backward& b) { b[0] = roll(b.grad(), back, dims); });
  return y;
}

namespace {

Tensor rot90(const Tensor& x, int64_t k, const Dims& dims) {
  CHECK(dims.size() == 2, Value, "rot90: expected 2 dims, got ", dims);
  CHECK(x.dim() >= 2, Shape, "rot90: expected a tensor of at least 2 dims, got shape ", x.sizes());
  int64_t a = wrap_dim("rot90", dims[0], x.dim()), b = wrap_dim("rot90", dims[1], x.dim());
  CHECK(a != b, Value, "rot90: expected two different dims, got ", dims);
  switch ((k % 4 + 4) % 4) {
    case 1: return transpose(flip(x, Dims{b}), a, b);
    case 2: return flip(x, Dims{a, b});
    case 3: return transpose(flip(x, Dims{a}), a, b);
    default: return clone(x, int64_t{0});
  }
}

Tensor fliplr(const Tensor& x) {
  CHECK(x.dim() >= 2, Shape, "fliplr: expected a tensor of at least 2 dims, got shape ", x.sizes());
  return flip(x, Dims{1});
}
Tensor flipud(const Tensor& x) {
  CHECK(x.dim() >= 1, Shape, "flipud: expected a tensor of at least 1 dim, got shape ", x.sizes());
  return flip(x, Dims{0});
}

}  // namespace

// ---- repeat

Tensor repeat(const Tensor& x, const Dims& repeats) {
  CHECK(static_cast<int64_t>(repeats.size()) >= x.dim(), Shape, "repeat: expected at least ",
        x.dim(), " repeats for shape ", x.sizes(), ", got ", repeats);
  size_t rank = repeats.size(), lead = rank - x.sizes().size();
  Dims shape(rank), split;  // split = [repeats, size] for every dim
  for (size_t d = 0; d < rank; ++d) {
    CHECK(repeats[d] >= 0, Value, "repeat: expected repeats of at least 0, got ", repeats);
    int64_t size = d < lead ? 1 : x.size(static_cast<int64_t>(d - lead));
    CHECK(!__builtin_mul_overflow(size, repeats[d], &shape[d]), Value, "repeat: ", repeats,
          " gives too many elements");
    split.push_back(repeats[d]);
    split.push_back(size);
  }
  Tensor y = empty(shape, options_of(x), "repeat");
  StridedCopy c{nullptr,        nullptr,        split,
                Dims(2 * rank), Dims(2 * rank), static_cast<int64_t>(itemsize(x.dtype()))};
  for (size_t d = 0; d < rank; ++d) {
    c.to_strides[2 * d] = y.stride(static_cast<int64_t>(d)) * split[2 * d + 1];
    c.to_strides[2 * d + 1] = y.stride(static_cast<int64_t>(d));
    if (d >= lead) c.from_strides[2 * d + 1] = x.stride(static_cast<int64_t>(d - lead));
  }
  if (!x.is_meta()) {
    c.to = y.device_data<char>();
    c.from = x.device_data<char>();
  }
  launch("repeat", x.device(), &CopyKernels::strided, std::move(c));
  if (wants_grad(x))
    record("RepeatBackward0", y, inputs(x), [split, from = x.sizes()](Backward& b) {
      Dims over;
      for (size_t d = 0; d < split.size(); d += 2) over.push_back(static_cast<int64_t>(d));
      Tensor g = reshape(b.grad(), split);
      b[0] = reshape(over.empty() ? g : sum(g, over, false, std::nullopt), from);
    });
  return y;
}

namespace {

Tensor tile(const Tensor& x, const Dims& dims) {
  Dims repeats = dims;
  while (static_cast<int64_t>(repeats.size()) < x.dim()) repeats.insert(0, 1);
  return repeat(x, repeats);
}

Tensor repeat_each(const Tensor& x, int64_t repeats, int64_t d) {
  CHECK(repeats >= 0, Value, "repeat_interleave: expected repeats of at least 0, got ", repeats);
  Tensor wide = unsqueeze(x, d + 1);
  Dims shape = wide.sizes();
  shape[d + 1] = repeats;
  Dims joined = x.sizes();
  CHECK(!__builtin_mul_overflow(joined[d], repeats, &joined[d]), Value,
        "repeat_interleave: too many elements");
  return reshape(expand(wide, shape), joined);
}

// The counts of a repeats tensor, checked.
Dims counts_of(const Tensor& repeats, int64_t n) {
  CHECK(repeats.dtype() == DType::Int64 || repeats.dtype() == DType::Int32, DType,
        "repeat_interleave: expected int32 or int64 repeats, got ", repeats.dtype());
  CHECK(repeats.dim() <= 1, Shape, "repeat_interleave: expected 0-d or 1-d repeats, got shape ",
        repeats.sizes());
  CHECK(repeats.numel() == n || repeats.numel() == 1, Shape, "repeat_interleave: expected ", n,
        " repeats, got ", repeats.numel());
  CHECK(!repeats.is_meta(), Device, "repeat_interleave: meta repeats have no values");
  GradMode off(false);
  Tensor counts = contiguous(on_host(to_dtype(repeats, DType::Int64)));
  Dims out(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    out[i] = counts.data<int64_t>()[counts.numel() == 1 ? 0 : i];
    CHECK(out[i] >= 0, Value, "repeat_interleave: expected repeats of at least 0, got ", out[i]);
  }
  return out;
}

Tensor repeat_counted(const Tensor& x, const Dims& counts, int64_t d) {
  int64_t total = 0;
  for (int64_t c : counts)
    CHECK(!__builtin_add_overflow(total, c, &total), Value, "repeat_interleave: too many elements");
  Tensor index = empty(Dims{total}, {DType::Int64, {}}, "repeat_interleave");
  int64_t* to = index.data<int64_t>();
  for (size_t i = 0; i < counts.size(); ++i)
    to = std::fill_n(to, counts[i], static_cast<int64_t>(i));
  return select_rows(x, d, on_device(index, x.device()));
}

Tensor repeat_interleave(const Tensor& x, const Operand& repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  Tensor flat = dim ? x : reshape(x, Dims{x.numel()});
  if (flat.dim() == 0) flat = reshape(flat, Dims{1});
  int64_t d = wrap_dim("repeat_interleave", dim.value_or(0), flat.dim());
  Tensor y;
  if (repeats.is_tensor()) {
    y = repeat_counted(flat, counts_of(repeats.tensor(), flat.size(d)), d);
  } else {
    CHECK(repeats.scalar().kind() == Scalar::Kind::Int, Type,
          "repeat_interleave: expected integer repeats, got ", repeats.scalar());
    y = repeat_each(flat, repeats.scalar().to_int(), d);
  }
  CHECK(!output_size || y.size(d) == *output_size, Value,
        "repeat_interleave: the repeats give size ", y.size(d), ", not output_size ", *output_size);
  return y;
}

// ---- combinations

// Column c of the rows of combinations: which element stands there, in lexicographic order.
std::vector<Dims> combination_columns(int64_t n, int64_t r, bool replacement) {
  std::vector<Dims> columns(static_cast<size_t>(r));
  Dims at(static_cast<size_t>(r));
  for (int64_t i = 0; i < r; ++i) at[i] = replacement ? 0 : i;
  if (n == 0 || (!replacement && r > n)) return columns;
  for (;;) {
    for (int64_t i = 0; i < r; ++i) columns[static_cast<size_t>(i)].push_back(at[i]);
    CHECK(columns[0].size() < (1u << 26), Value, "combinations: too many rows");
    int64_t i = r - 1;
    while (i >= 0 && at[i] == (replacement ? n - 1 : n - r + i)) --i;
    if (i < 0) return columns;
    ++at[i];
    for (int64_t j = i + 1; j < r; ++j) at[j] = replacement ? at[i] : at[j - 1] + 1;
  }
}

Tensor combinations(const Tensor& x, int64_t r, bool with_replacement) {
  CHECK(x.dim() == 1, Shape, "combinations: expected a 1-d tensor, got shape ", x.sizes());
  CHECK(r >= 0 && r <= 1 << 16, Value, "combinations: expected r from 0 to 65536, got ", r);
  if (r == 0) return empty(Dims{0}, options_of(x));
  TensorList columns;
  for (const Dims& places : combination_columns(x.size(0), r, with_replacement)) {
    Tensor index = empty(Dims{static_cast<int64_t>(places.size())}, {DType::Int64, {}});
    std::copy(places.begin(), places.end(), index.data<int64_t>());
    columns.push_back(select_rows(x, 0, on_device(index, x.device())));
  }
  return stack(columns, 1);
}

// ---- triangles

Tensor triangle(const char* op, const char* node, const Tensor& x, int64_t diagonal, bool upper) {
  CHECK(x.dim() >= 2, Shape, op, ": expected a tensor of at least 2 dims, got shape ", x.sizes());
  // Beyond the size of the matrix every diagonal is the same.
  int64_t k = std::clamp<int64_t>(diagonal, -x.size(-2) - 1, x.size(-1) + 1);
  Tensor y = empty(x.sizes(), options_of(x));
  {
    GradMode off(false);
    launch(op, x.device(), &CopyKernels::triangle, contiguous(x), y, k, upper);
  }
  if (wants_grad(x))
    record(node, y, inputs(x),
           [k, upper](Backward& b) { b[0] = upper ? triu(b.grad(), k) : tril(b.grad(), k); });
  return y;
}

}  // namespace

Tensor tril(const Tensor& x, int64_t diagonal) {
  return triangle("tril", "TrilBackward0", x, diagonal, false);
}
Tensor triu(const Tensor& x, int64_t diagonal) {
  return triangle("triu", "TriuBackward0", x, diagonal, true);
}

namespace {

Tensor& tril_(Tensor& self, int64_t diagonal) { return copy_(self, tril(self, diagonal)); }
Tensor& triu_(Tensor& self, int64_t diagonal) { return copy_(self, triu(self, diagonal)); }

// ---- differences

Tensor diff(const Tensor& x, int64_t n, int64_t dim, const std::optional<Tensor>& prepend,
            const std::optional<Tensor>& append) {
  CHECK(n >= 0 && n <= 1 << 20, Value, "diff: expected an order from 0 to 1048576, got ", n);
  CHECK(x.dim() > 0, Shape, "diff: expected a tensor of at least 1 dim, got a 0-d one");
  int64_t d = wrap_dim("diff", dim, x.dim());
  TensorList list;
  if (prepend) list.push_back(*prepend);
  list.push_back(x);
  if (append) list.push_back(*append);
  for (const Tensor& t : list)
    CHECK(t.dim() == x.dim(), Shape, "diff: expected prepend and append of ", x.dim(),
          " dims, got shape ", t.sizes());
  Tensor y = list.size() == 1 ? x : cat(list, d);
  if (n == 0) return clone(y, std::nullopt);
  for (int64_t i = std::min(n, y.size(d)); i > 0; --i) {
    int64_t m = std::max<int64_t>(y.size(d) - 1, 0);
    Tensor later = narrow(y, d, y.size(d) - m, m), earlier = narrow(y, d, 0, m);
    y = y.dtype() == DType::Bool ? row(Row::logical_xor, {later, earlier}) : sub(later, earlier);
  }
  return y;
}

// ---- shuffles of channels and pixels

Tensor pixel_shuffle(const Tensor& x, int64_t r) {
  CHECK(x.dim() >= 3, Shape, "pixel_shuffle: expected a tensor of at least 3 dims, got shape ",
        x.sizes());
  CHECK(r > 0 && r < (1 << 20), Value,
        "pixel_shuffle: expected an upscale_factor of at least 1, got ", r);
  int64_t c = x.size(-3), h = x.size(-2), w = x.size(-1), lead = x.dim() - 3;
  CHECK(c % (r * r) == 0, Shape, "pixel_shuffle: expected channels divisible by ", r * r, ", got ",
        c);
  Dims split, order, joined;
  for (int64_t d = 0; d < lead; ++d) {
    split.push_back(x.size(d)), order.push_back(d), joined.push_back(x.size(d));
  }
  for (int64_t s : {c / (r * r), r, r, h, w}) split.push_back(s);
  for (int64_t o : {0, 3, 1, 4, 2}) order.push_back(lead + o);
  for (int64_t s : {c / (r * r), h * r, w * r}) joined.push_back(s);
  return reshape(permute(reshape(x, split), order), joined);
}

Tensor pixel_unshuffle(const Tensor& x, int64_t r) {
  CHECK(x.dim() >= 3, Shape, "pixel_unshuffle: expected a tensor of at least 3 dims, got shape ",
        x.sizes());
  CHECK(r > 0 && r < (1 << 20), Value,
        "pixel_unshuffle: expected a downscale_factor of at least 1, got ", r);
  int64_t c = x.size(-3), h = x.size(-2), w = x.size(-1), lead = x.dim() - 3;
  CHECK(h % r == 0 && w % r == 0, Shape, "pixel_unshuffle: expected height and width divisible by ",
        r, ", got ", h, " and ", w);
  Dims split, order, joined;
  for (int64_t d = 0; d < lead; ++d) {
    split.push_back(x.size(d)), order.push_back(d), joined.push_back(x.size(d));
  }
  for (int64_t s : {c, h / r, r, w / r, r}) split.push_back(s);
  for (int64_t o : {0, 2, 4, 1, 3}) order.push_back(lead + o);
  for (int64_t s : {c * r * r, h / r, w / r}) joined.push_back(s);
  return reshape(permute(reshape(x, split), order), joined);
}

Tensor channel_shuffle(const Tensor& x, int64_t groups) {
  CHECK(x.dim() >= 3, Shape, "channel_shuffle: expected a tensor of at least 3 dims, got shape ",
        x.sizes());
  CHECK(groups > 0 && x.size(1) % groups == 0, Value,
        "channel_shuffle: expected groups that divide ", x.size(1), " channels, got ", groups);
  Dims split = x.sizes();
  split[1] = x.size(1) / groups;
  split.insert(1, groups);
  return reshape(transpose(reshape(x, split), 1, 2), x.sizes());
}

}  // namespace

OP_TABLE(shape_move) = {
    op<flip>("flip(Tensor self, int[] dims) -> Tensor", "torch method", "Dims in reverse order."),
    op<fliplr>("fliplr(Tensor self) -> Tensor", "torch method", "Dim 1 in reverse order."),
    op<flipud>("flipud(Tensor self) -> Tensor", "torch method", "Dim 0 in reverse order."),
    op<roll>("roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor", "torch method",
             "Elements shifted along dims, around the end; without dims of the flat tensor."),
    op<rot90>("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor", "torch method",
              "A plane turned by k times 90 degrees."),
    op<repeat>("repeat(Tensor self, int[] repeats) -> Tensor", "method",
               "The whole tensor repeated along each dim."),
    op<tile>("tile(Tensor self, int[] dims) -> Tensor", "torch method",
             "repeat, with missing leading repeats taken as 1."),
    op<repeat_interleave>("_repeat_interleave(Tensor self, Tensor|Scalar repeats, int? dim=None, "
                          "int? output_size=None) -> Tensor",
                          "private", "Each element repeated in place."),
    op<combinations>("_combinations(Tensor self, int r, bool with_replacement) -> Tensor",
                     "private", "All ways to take r elements, as rows."),
    op<tril>("tril(Tensor self, int diagonal=0) -> Tensor", "torch method",
             "The lower triangle of matrices, zeros above."),
    op<triu>("triu(Tensor self, int diagonal=0) -> Tensor", "torch method",
             "The upper triangle of matrices, zeros below."),
    op<tril_>("tril_(Tensor(a!) self, int diagonal=0) -> Tensor(a!)", "method",
              "Zeroes what lies above a diagonal."),
    op<triu_>("triu_(Tensor(a!) self, int diagonal=0) -> Tensor(a!)", "method",
              "Zeroes what lies below a diagonal."),
    op<diff>("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) "
             "-> Tensor",
             "torch method", "Differences of neighbours along a dim, n times."),
    op<pixel_shuffle>("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", "torch nn",
                      "[N, C r^2, H, W] to [N, C, H r, W r]."),
    op<pixel_unshuffle>("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor", "torch nn",
                        "[N, C, H r, W r] to [N, C r^2, H, W]."),
    op<channel_shuffle>("channel_shuffle(Tensor self, int groups) -> Tensor", "torch nn",
                        "Channels of groups dealt out in turn."),
};
OP_TABLE_END(shape_move);

}  // namespace cresset::ops
