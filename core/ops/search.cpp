// Searching in sorted sequences and sets: searchsorted, bucketize, isin, unique.
#include "core/ops/search.h"

#include "core/dispatch/op.h"
#include "core/ops/indexing.h"
#include "core/ops/write_in_place.h"

namespace cresset::ops {
namespace {

// The values to look up, in the dtype that they are compared in.
std::pair<Tensor, Tensor> comparable(const char* op, const Tensor& sequence,
                                     const Operand& values) {
  if (values.is_tensor()) {
    CHECK(sequence.dtype() == values.tensor().dtype(), DType, op,
          ": expected boundaries and values of one dtype, got ", sequence.dtype(), " and ",
          values.tensor().dtype());
    same_device(op, sequence, values.tensor());
  }
  const Operand pair[] = {Operand(sequence), values};
  DType dtype = result_dtype(op, DTypeClass::real, pair);
  return {contiguous(to_dtype(sequence, dtype)), contiguous(to_dtype(values.as_tensor(), dtype))};
}

Tensor search_in(const char* op, const Tensor& sequence, const Operand& values,
                 const Tensor& sorter, bool right, bool out_int32) {
  GradMode off(false);
  CHECK(!out_int32 || sequence.size(-1) < int64_t{1} << 31, Value, op, ": positions in ",
        sequence.size(-1), " boundaries do not fit int32");
  auto [s, given] = comparable(op, sequence, values);
  Tensor v = on_device(given, s.device());
  Tensor out = empty(v.sizes(), {out_int32 ? DType::Int32 : DType::Int64, s.device()});
  launch(op, s.device(), &SearchKernels::searchsorted, s, v, sorter, right, out);
  return out;
}

Tensor searchsorted(const Tensor& sequence, const Operand& values, bool out_int32, bool right,
                    Side side, const std::optional<Tensor>& sorter) {
  CHECK(side != Side::left || !right, Value,
        "searchsorted: side \"left\" contradicts right = true");
  CHECK(sequence.dim() > 0, Shape, "searchsorted: expected a sequence of at least 1 dim");
  if (sequence.dim() > 1) {
    CHECK(values.is_tensor() && values.tensor().dim() == sequence.dim(), Shape,
          "searchsorted: expected values with as many dims as the sequence of shape ",
          sequence.sizes());
    for (int64_t i = 0; i + 1 < sequence.dim(); ++i)
      CHECK(values.tensor().size(i) == sequence.size(i), Shape, "searchsorted: values of shape ",
            values.tensor().sizes(), " do not fit a sequence of shape ", sequence.sizes());
  }
  Tensor order;
  if (sorter) {
    CHECK(sorter->sizes() == sequence.sizes(), Shape, "searchsorted: expected a sorter of shape ",
          sequence.sizes(), ", got ", sorter->sizes());
    order = contiguous(checked_index("searchsorted", sequence, *sorter, sequence.size(-1), false));
  }
  return search_in("searchsorted", sequence, values, order, right || side == Side::right,
                   out_int32);
}

Tensor bucketize(const Operand& values, const Tensor& boundaries, bool out_int32, bool right) {
  CHECK(boundaries.dim() == 1, Shape, "bucketize: expected 1-d boundaries, got shape ",
        boundaries.sizes());
  return search_in("bucketize", boundaries, values, Tensor(), right, out_int32);
}

Tensor isin(const Operand& elements, const Operand& test_elements, bool, bool invert) {
  GradMode off(false);
  const Operand pair[] = {elements, test_elements};
  DType dtype = result_dtype("isin", DTypeClass::real, pair);
  Tensor x = contiguous(to_dtype(elements.as_tensor(), dtype));
  Tensor test = contiguous(to_dtype(test_elements.as_tensor(), dtype));
  // Plain numbers go to where the tensor is.
  if (!elements.is_tensor()) x = on_device(x, test.device());
  if (!test_elements.is_tensor()) test = on_device(test, x.device());
  same_device("isin", x, test);
  Tensor out = empty(x.sizes(), {DType::Bool, x.device()});
  launch("isin", x.device(), &SearchKernels::isin, x, test, invert, out);
  return out;
}

// ---- unique

Tensor int64_tensor(const std::vector<int64_t>& v, const Dims& sizes, Device device) {
  Tensor t = empty(sizes, {DType::Int64, {}});
  std::copy(v.begin(), v.end(), t.data<int64_t>());
  return on_device(t, device);
}

// Distinct elements, or distinct slices along dim: values, inverse, counts.
std::tuple<Tensor, Tensor, Tensor> unique(const Tensor& self, std::optional<int64_t> dim,
                                          bool consecutive) {
  const char* op = consecutive ? "unique_consecutive" : "unique";
  CHECK(!self.is_complex(), DType, op, ": expected a real dtype, got ", self.dtype());
  CHECK(!self.is_meta(), Device, op, ": the result depends on values, which meta tensors lack");
  GradMode off(false);
  int64_t d = dim ? wrap_dim(op, *dim, self.dim()) : 0;
  Tensor from = dim && self.dim() ? self : reshape(self, Dims{-1});
  int64_t n = from.size(d);
  CHECK(n < int64_t{1} << 32, NotImplemented, op, ": more than 2^32 - 1 elements");
  CHECK(n == 0 || from.numel() > 0, Index, op, ": cannot find unique slices along dim ", d,
        " of shape ", self.sizes());
  int64_t width = n ? from.numel() / n : 0;
  Tensor rows = reshape(contiguous(transpose(from, 0, d)), Dims{n, width});
  UniqueRows result;
  launch(op, self.device(), &SearchKernels::unique, rows, consecutive, &result);
  int64_t found = static_cast<int64_t>(result.first.size());
  Tensor first = int64_tensor(result.first, Dims{found}, self.device());
  Dims inverse = dim ? Dims{n} : self.sizes();
  return {select_rows(from, d, first), int64_tensor(result.inverse, inverse, self.device()),
          int64_tensor(result.counts, Dims{found}, self.device())};
}

}  // namespace

OP_TABLE(search) = {
    op<searchsorted>("searchsorted(Tensor sorted_sequence, Tensor|Scalar input, *, "
                     "bool out_int32=False, bool right=False, Side{unset|left|right} "
                     "side='unset', Tensor? sorter=None) -> Tensor",
                     "torch", "Where values would be put into a sorted sequence."),
    op<bucketize>("bucketize(Tensor|Scalar input, Tensor boundaries, *, bool out_int32=False, "
                  "bool right=False) -> Tensor",
                  "torch", "The bucket between sorted boundaries that each value lies in."),
    op<isin>("isin(Tensor|Scalar elements, Tensor|Scalar test_elements, *, "
             "bool assume_unique=False, bool invert=False) -> Tensor",
             "torch", "Whether each element is among the test elements."),
    op<unique>("_unique(Tensor self, int? dim, bool consecutive) "
               "-> (Tensor values, Tensor inverse, Tensor counts)",
               "private", "Distinct elements or slices; see torch.unique."),
};
OP_TABLE_END(search);

}  // namespace cresset::ops
