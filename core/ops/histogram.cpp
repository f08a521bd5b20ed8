// Counting: bincount, histc, histogram, histogramdd.
#include <cmath>

#include "core/dispatch/op.h"
#include "core/ops/indexing.h"
#include "core/ops/search.h"
#include "core/ops/write_in_place.h"

namespace cresset::ops {
namespace {

Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights, int64_t minlength) {
  CHECK(is_integral(self.dtype(), false), DType, "bincount: expected an integer dtype, got ",
        self.dtype());
  CHECK(self.dim() == 1, Shape, "bincount: expected a 1-d tensor, got shape ", self.sizes());
  CHECK(minlength >= 0, Value, "bincount: expected minlength of at least 0, got ", minlength);
  CHECK(!weights || weights->sizes() == self.sizes(), Shape, "bincount: expected weights of shape ",
        self.sizes());
  CHECK(!self.is_meta(), Device, "bincount: the result depends on values");
  if (weights) same_device("bincount", self, *weights);
  GradMode off(false);
  Tensor at = contiguous(to_dtype(self, DType::Int64));
  int64_t lo = 0, hi = -1;
  if (at.numel()) launch("bincount", at.device(), &IndexingKernels::range, at, &lo, &hi);
  CHECK(lo >= 0, Value, "bincount: expected integers of at least 0, got ", lo);
  int64_t size = std::max(hi + 1, minlength);
  if (!weights) return spread_rows(expand(ones(Dims{}, options_of(at)), at.sizes()), 0, at, size);
  DType dtype = weights->dtype() == DType::Float32 ? DType::Float32 : DType::Float64;
  return spread_rows(to_dtype(*weights, dtype), 0, at, size);
}

void check_floats(const char* op, const Tensor& x) {
  CHECK(x.dtype() == DType::Float32 || x.dtype() == DType::Float64, DType, op,
        ": expected dtype float32 or float64, got ", x.dtype());
}

struct Range {
  double lo = 0, hi = 0;
};

// Smallest and largest element of column d of x [n, dims]; 0 and 1 when there is none.
Range range_of(const char* op, const Tensor& x, int64_t d, Range none) {
  if (x.size(0) == 0 || x.is_meta()) return none;
  Tensor column = contiguous(on_host(to_dtype(select(x, 1, d), DType::Float64)));
  const double* v = column.data<double>();
  Range r{v[0], v[0]};
  for (int64_t i = 0; i < column.numel(); ++i) {
    CHECK(std::isfinite(v[i]), Value, op, ": the range of values with ", v[i],
          " in them is not finite");
    r = {std::min(r.lo, v[i]), std::max(r.hi, v[i])};
  }
  return r;
}

void check_range(const char* op, Range r) {
  CHECK(std::isfinite(r.lo) && std::isfinite(r.hi), Value, op, ": expected a finite range, got ",
        r.lo, " to ", r.hi);
  CHECK(r.lo <= r.hi, Value, op, ": expected min <= max, got ", r.lo, " and ", r.hi);
}

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  check_floats("histc", self);
  CHECK(bins > 0, Value, "histc: expected at least 1 bin, got ", bins);
  GradMode off(false);
  Tensor x = contiguous(self);
  Range r{min.to_double(), max.to_double()};
  if (r.lo == r.hi) r = range_of("histc", reshape(x, Dims{x.numel(), 1}), 0, r);
  if (r.lo == r.hi) r = {r.lo - 1, r.hi + 1};
  check_range("histc", r);
  Tensor counts = zeros(Dims{bins}, options_of(self));
  launch("histc", self.device(), &SearchKernels::histc, x, r.lo, r.hi, counts);
  return counts;
}

// ---- histogram, histogramdd

// bins + 1 evenly spaced edges, counted from the nearer end.
Tensor even_edges(const Tensor& x, Range r, int64_t bins) {
  Tensor t = empty(Dims{bins + 1}, {DType::Float64, Device{}});
  double step = (r.hi - r.lo) / static_cast<double>(bins);
  for (int64_t i = 0; i <= bins; ++i)
    t.data<double>()[i] = 2 * i < bins + 1 ? r.lo + step * static_cast<double>(i)
                                           : r.hi - step * static_cast<double>(bins - i);
  return on_device(to_dtype(t, x.dtype()), x.device());
}

TensorList counted_edges(const char* op, const Tensor& x, const Dims& bins,
                         const std::optional<std::vector<double>>& range) {
  int64_t dims = x.size(1);
  CHECK(static_cast<int64_t>(bins.size()) == dims, Value, op, ": expected ", dims,
        " numbers of bins, got ", bins.size());
  CHECK(!range || static_cast<int64_t>(range->size()) == 2 * dims, Value, op, ": expected ",
        2 * dims, " numbers in range, got ", range ? range->size() : 0);
  TensorList edges;
  for (int64_t d = 0; d < dims; ++d) {
    size_t i = static_cast<size_t>(d);
    CHECK(bins[i] > 0, Value, op, ": expected at least 1 bin, got ", bins[i]);
    Range r = range ? Range{(*range)[2 * i], (*range)[2 * i + 1]} : range_of(op, x, d, {0, 1});
    check_range(op, r);
    if (r.lo == r.hi) r = {r.lo - 0.5, r.hi + 0.5};
    edges.push_back(even_edges(x, r, bins[i]));
  }
  return edges;
}

TensorList given_edges(const char* op, const Tensor& x, const TensorList& bins) {
  CHECK(static_cast<int64_t>(bins.size()) == x.size(1), Value, op, ": expected ", x.size(1),
        " lists of edges, got ", bins.size());
  TensorList edges;
  for (const Tensor& e : bins) {
    same_device(op, x, e);
    CHECK(e.dim() == 1 && e.numel() > 1, Shape, op,
          ": expected 1-d bin edges with at least 2 elements, got shape ", e.sizes());
    CHECK(e.dtype() == x.dtype(), DType, op, ": expected bin edges of dtype ", x.dtype(), ", got ",
          e.dtype());
    edges.push_back(contiguous(e));
  }
  return edges;
}

// Divides counts by their sum and the sizes of the bins.
Tensor to_density(Tensor counts, const TensorList& edges) {
  counts = div(counts, sum(counts, std::nullopt, false, std::nullopt));
  for (size_t d = 0; d < edges.size(); ++d) {
    int64_t bins = edges[d].numel() - 1;
    Tensor width = sub(narrow(edges[d], 0, 1, bins), narrow(edges[d], 0, 0, bins));
    Dims sizes(edges.size(), 1);
    sizes[d] = bins;
    counts = div(counts, reshape(width, sizes));
  }
  return counts;
}

TensorList count_into(const char* op, const Tensor& x, const TensorList& edges,
                      const std::optional<Tensor>& weight, bool density) {
  Tensor w;
  if (weight) {
    CHECK(weight->numel() == x.size(0), Shape, op, ": expected ", x.size(0), " weights, got ",
          weight->numel());
    CHECK(weight->dtype() == x.dtype(), DType, op, ": expected weights of dtype ", x.dtype(),
          ", got ", weight->dtype());
    same_device(op, x, *weight);
    w = contiguous(*weight);
  }
  Dims sizes;
  for (const Tensor& e : edges) sizes.push_back(e.numel() - 1);
  Tensor counts = zeros(sizes, options_of(x));
  launch(op, x.device(), &SearchKernels::histogram, contiguous(x), edges, w, counts);
  TensorList out{density ? to_density(counts, edges) : counts};
  out.insert(out.end(), edges.begin(), edges.end());
  return out;
}

Tensor points_of(const char* op, const Tensor& self) {
  check_floats(op, self);
  CHECK(self.dim() >= 2, Shape, op, ": expected at least 2 dims, got shape ", self.sizes());
  int64_t dims = self.size(-1), n = 1;
  for (int64_t d = 0; d + 1 < self.dim(); ++d) n *= self.size(d);
  return reshape(self, Dims{n, dims});
}

std::tuple<Tensor, Tensor> histogram(const Tensor& self, const Operand& bins,
                                     const std::optional<std::vector<double>>& range,
                                     const std::optional<Tensor>& weight, bool density) {
  check_floats("histogram", self);
  CHECK(!weight || weight->sizes() == self.sizes(), Shape, "histogram: expected a weight of shape ",
        self.sizes());
  CHECK(bins.is_tensor() || bins.scalar().is_integral(), Type,
        "histogram: expected bins to be an integer or a tensor of edges, got ", bins.scalar());
  GradMode off(false);
  Tensor x = reshape(self, Dims{self.numel(), 1});
  TensorList edges = bins.is_tensor()
                         ? given_edges("histogram", x, {bins.tensor()})
                         : counted_edges("histogram", x, Dims{bins.scalar().to_int()}, range);
  TensorList out = count_into("histogram", x, edges, weight, density);
  return {out[0], out[1]};
}

TensorList histogramdd_counts(const Tensor& self, const Dims& bins,
                              const std::optional<std::vector<double>>& range,
                              const std::optional<Tensor>& weight, bool density) {
  GradMode off(false);
  Tensor x = points_of("histogramdd", self);
  TensorList edges = counted_edges("histogramdd", x, bins, range);
  return count_into("histogramdd", x, edges, weight, density);
}

TensorList histogramdd_edges(const Tensor& self, const TensorList& bins,
                             const std::optional<Tensor>& weight, bool density) {
  GradMode off(false);
  Tensor x = points_of("histogramdd", self);
  return count_into("histogramdd", x, given_edges("histogramdd", x, bins), weight, density);
}

}  // namespace

OP_TABLE(histogram) = {
    op<bincount>("bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
                 "torch method", "How often each integer from 0 on occurs."),
    op<histc>("histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
              "torch method", "Counts in equal bins of [min, max], or of the data's range."),
    op<histogram>("histogram(Tensor self, Tensor|Scalar bins, *, float[]? range=None, "
                  "Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
                  "torch method", "Counts in equal bins, or between given edges."),
    op<histogramdd_counts>("_histogramdd_counts(Tensor self, int[] bins, float[]? range, "
                           "Tensor? weight, bool density) -> Tensor[]",
                           "private", "See torch.histogramdd."),
    op<histogramdd_edges>("_histogramdd_edges(Tensor self, Tensor[] bins, Tensor? weight, "
                          "bool density) -> Tensor[]",
                          "private", "See torch.histogramdd."),
};
OP_TABLE_END(histogram);

}  // namespace cresset::ops
