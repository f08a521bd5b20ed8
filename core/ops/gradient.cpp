// Finite differences and the vector product: gradient, cross.
#include "core/dispatch/op.h"
#include "core/ops/indexing.h"
#include "core/ops/write_in_place.h"

namespace cresset::ops {
namespace {

// ---- cross

Tensor rolled(const Tensor& x, int64_t d, int64_t first) {
  Tensor at = empty(Dims{3}, {DType::Int64, {}});
  for (int64_t i = 0; i < 3; ++i) at.data<int64_t>()[i] = (first + i) % 3;
  return select_rows(x, d, on_device(at, x.device()));
}

Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  CHECK(self.dim() == other.dim(), Shape, "linalg.cross: expected as many dims, got shapes ",
        self.sizes(), " and ", other.sizes());
  int64_t d = wrap_dim("linalg.cross", dim, self.dim());
  CHECK(self.dim() > 0 && self.size(d) == 3 && other.size(d) == 3, Shape,
        "linalg.cross: expected size 3 in dim ", d, ", got shapes ", self.sizes(), " and ",
        other.sizes());
  return sub(mul(rolled(self, d, 1), rolled(other, d, 2)),
             mul(rolled(self, d, 2), rolled(other, d, 1)));
}

// Without a dim: the first of size 3, as in PyTorch.
Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (dim) return linalg_cross(self, other, *dim);
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.size(d) == 3) return linalg_cross(self, other, d);
  fail(ErrorKind::Shape, "cross: no dim of size 3 in shape ", self.sizes());
}

// ---- gradient

// Note [Differences]
// The derivative along a dim is a weighted sum of two or three of its elements, chosen by lists of
// indices; borders and uneven spacing differ in the lists alone. A weight is never 0 where the
// formula does not read an element, so that an infinity does not spread.
struct Term {
  std::vector<int64_t> index;
  std::vector<double> weight;
};

using Terms = std::vector<Term>;

void set_row(Terms& terms, int64_t i, std::initializer_list<std::pair<int64_t, double>> row) {
  size_t k = 0;
  for (auto [index, weight] : row) {
    terms[k].index[static_cast<size_t>(i)] = index;
    terms[k].weight[static_cast<size_t>(i)] = weight;
    ++k;
  }
}

// x holds the coordinates of the n points.
Terms difference_terms(const std::vector<double>& x, bool even, int64_t edge_order) {
  const int64_t n = static_cast<int64_t>(x.size());
  const size_t count = even && edge_order == 1 ? 2 : 3;
  Term blank{std::vector<int64_t>(x.size()), std::vector<double>(x.size())};
  Terms terms(count, blank);
  auto gap = [&](int64_t i) { return x[static_cast<size_t>(i + 1)] - x[static_cast<size_t>(i)]; };
  for (int64_t i = 1; i + 1 < n; ++i) {
    double l = gap(i - 1), r = gap(i);
    if (even && count == 2)
      set_row(terms, i, {{i - 1, -0.5 / l}, {i + 1, 0.5 / l}});
    else if (even)
      set_row(terms, i, {{i - 1, -0.5 / l}, {i + 1, 0.25 / l}, {i + 1, 0.25 / l}});
    else
      set_row(terms, i,
              {{i - 1, -r / (l * (l + r))}, {i, (r - l) / (l * r)}, {i + 1, l / (r * (l + r))}});
  }
  double a = gap(0), z = gap(n - 2);
  if (edge_order == 1) {
    for (int64_t i : {int64_t{0}, n - 1}) {
      int64_t from = i ? n - 2 : 0;
      double w = 1 / (i ? z : a);
      if (count == 2)
        set_row(terms, i, {{from, -w}, {from + 1, w}});
      else
        set_row(terms, i, {{from, -w}, {from + 1, w / 2}, {from + 1, w / 2}});
    }
    return terms;
  }
  double b = gap(1), y = gap(n - 3);
  set_row(terms, 0,
          {{0, -(2 * a + b) / (a * (a + b))}, {1, (a + b) / (a * b)}, {2, -a / (b * (a + b))}});
  set_row(terms, n - 1,
          {{n - 3, z / (y * (y + z))},
           {n - 2, -(y + z) / (y * z)},
           {n - 1, (2 * z + y) / (z * (y + z))}});
  return terms;
}

Tensor apply_terms(const Tensor& self, int64_t d, const Terms& terms) {
  Tensor result;
  Dims lined(static_cast<size_t>(self.dim() - d), 1);
  lined[0] = self.size(d);
  for (const Term& t : terms) {
    Tensor at = empty(Dims{self.size(d)}, {DType::Int64, Device{}});
    Tensor weight = empty(lined, {DType::Float64, Device{}});
    std::copy(t.index.begin(), t.index.end(), at.data<int64_t>());
    std::copy(t.weight.begin(), t.weight.end(), weight.data<double>());
    Tensor rows = select_rows(self, d, on_device(at, self.device()));
    Tensor part = mul(rows, on_device(to_dtype(weight, to_real(self.dtype())), self.device()));
    result = result.defined() ? add(result, part) : part;
  }
  return result;
}

std::vector<double> points(const Tensor& self, int64_t d, size_t k, const std::vector<double>& h,
                           const TensorList& coordinates) {
  const int64_t n = self.size(d);
  std::vector<double> x(static_cast<size_t>(n));
  if (coordinates.empty()) {
    for (int64_t i = 0; i < n; ++i) x[static_cast<size_t>(i)] = h[k] * static_cast<double>(i);
    return x;
  }
  const Tensor& c = coordinates[k];
  same_device("gradient", self, c);
  CHECK(c.dim() == 1 && c.numel() == n, Shape, "gradient: expected ", n, " coordinates for dim ", d,
        ", got shape ", c.sizes());
  Tensor v = contiguous(on_host(to_dtype(c, DType::Float64)));
  std::copy(v.data<double>(), v.data<double>() + n, x.begin());
  return x;
}

TensorList gradient(const Tensor& self, const std::vector<double>& spacing,
                    const TensorList& coordinates, const Dims& dims, int64_t edge_order) {
  CHECK(edge_order == 1 || edge_order == 2, Value, "gradient: expected edge_order 1 or 2, got ",
        edge_order);
  CHECK(!self.is_meta(), NotImplemented, "gradient: not implemented for device ", self.device());
  Dims wrapped = wrap_dims("gradient", dims, self.dim(), false);
  CHECK(wrapped.size() == dims.size(), Value, "gradient: a dim appears twice in ", dims);
  size_t given = coordinates.empty() ? spacing.size() : coordinates.size();
  CHECK(given == dims.size(), Value, "gradient: expected ", dims.size(), " spacings, got ", given);
  Tensor x = is_integral(self.dtype(), true) ? to_dtype(self, default_dtype()) : self;
  TensorList out;
  for (size_t k = 0; k < dims.size(); ++k) {
    int64_t d = wrap_dim("gradient", dims[k], self.dim());
    CHECK(self.dim() > 0 && self.size(d) > edge_order, Shape, "gradient: expected at least ",
          edge_order + 1, " elements in dim ", d, " of shape ", self.sizes());
    out.push_back(apply_terms(x, d,
                              difference_terms(points(self, d, k, spacing, coordinates),
                                               coordinates.empty(), edge_order)));
  }
  return out;
}

}  // namespace

OP_TABLE(gradient) = {
    op<linalg_cross>("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor", "linalg",
                     "Vector product along a dim of size 3."),
    op<cross>("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", "torch method",
              "Vector product along a dim of size 3; by default the first such dim."),
    op<gradient>("_gradient(Tensor self, float[] spacing, Tensor[] coordinates, int[] dim, "
                 "int edge_order) -> Tensor[]",
                 "private", "Finite differences; see torch.gradient."),
};
OP_TABLE_END(gradient);

}  // namespace cresset::ops
