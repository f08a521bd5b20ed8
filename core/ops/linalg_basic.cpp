// Products written with others: outer, inner, tensordot, kron, multi_dot, powers, bilinear.
#include <cmath>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/linalg.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"

namespace cresset::ops {

Tensor outer(const Tensor& a, const Tensor& b) {
  CHECK(a.dim() == 1 && b.dim() == 1, Shape, "outer: expected two vectors, got shapes ", a.sizes(),
        " and ", b.sizes());
  return mul(unsqueeze(a, 1), b);
}

// ---- contractions

namespace {

// Marks the wrapped `dims` of x.
std::vector<bool> marked(const Tensor& x, const Dims& dims, Dims& wrapped) {
  std::vector<bool> is(static_cast<size_t>(x.dim()), false);
  for (int64_t d : dims) {
    int64_t at = wrap_dim("tensordot", d, x.dim());
    CHECK(x.dim() > 0 && !is[static_cast<size_t>(at)], Value, "tensordot: dim ", d,
          " appears twice in ", dims);
    is[static_cast<size_t>(at)] = true;
    wrapped.push_back(at);
  }
  return is;
}

}  // namespace

Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& dims_a, const Dims& dims_b) {
  CHECK(dims_a.size() == dims_b.size(), Value,
        "tensordot: expected as many dims of both tensors, got ", dims_a, " and ", dims_b);
  Dims da, db;
  std::vector<bool> in_a = marked(a, dims_a, da), in_b = marked(b, dims_b, db);
  Tensor x = a, y = b;
  int64_t inner = 1, rows = 1, columns = 1;
  for (size_t i = 0; i < da.size(); ++i) {
    int64_t n = a.size(da[i]), m = b.size(db[i]);
    CHECK(n == m || n == 1 || m == 1, Shape, "tensordot: dim ", da[i], " of shape ", a.sizes(),
          " and dim ", db[i], " of shape ", b.sizes(), " differ");
    // A size of 1 meets every element of the other.
    if (n == 1 && m != 1) y = sum(y, Dims{db[i]}, true, std::nullopt);
    if (m == 1 && n != 1) x = sum(x, Dims{da[i]}, true, std::nullopt);
    inner *= n == m ? n : 1;
  }
  Dims order_a, order_b = db, sizes;
  for (int64_t d = 0; d < a.dim(); ++d)
    if (!in_a[static_cast<size_t>(d)]) {
      order_a.push_back(d);
      sizes.push_back(a.size(d));
      rows *= a.size(d);
    }
  for (int64_t d : da) order_a.push_back(d);
  for (int64_t d = 0; d < b.dim(); ++d)
    if (!in_b[static_cast<size_t>(d)]) {
      order_b.push_back(d);
      sizes.push_back(b.size(d));
      columns *= b.size(d);
    }
  return reshape(mm(reshape(permute(x, order_a), Dims{rows, inner}),
                    reshape(permute(y, order_b), Dims{inner, columns})),
                 sizes);
}

namespace {

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return mul(self, other);
  CHECK(self.dtype() == other.dtype(), DType, "inner: expected tensors of one dtype, got ",
        self.dtype(), " and ", other.dtype());
  CHECK(self.size(-1) == other.size(-1), Shape, "inner: the last dims of shapes ", self.sizes(),
        " and ", other.sizes(), " differ");
  return tensordot(self, other, Dims{-1}, Dims{-1});
}

Tensor kron(const Tensor& self, const Tensor& other) {
  size_t rank = static_cast<size_t>(std::max(self.dim(), other.dim()));
  Dims left, right, sizes;
  for (size_t i = 0; i < rank; ++i) {
    auto size = [&](const Tensor& t) {
      int64_t d = t.dim() - static_cast<int64_t>(rank - i);
      return d < 0 ? 1 : t.size(d);
    };
    int64_t n = size(self), m = size(other), product = 0;
    CHECK(!__builtin_mul_overflow(n, m, &product), Value, "kron: sizes are too large");
    left.push_back(n);
    left.push_back(1);
    right.push_back(1);
    right.push_back(m);
    sizes.push_back(product);
  }
  checked_numel("kron", sizes);
  return reshape(mul(reshape(self, left), reshape(other, right)), sizes);
}

Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  CHECK(x.dtype() == y.dtype(), DType, "linalg.vecdot: expected tensors of one dtype, got ",
        x.dtype(), " and ", y.dtype());
  CHECK(x.dim() > 0 && y.dim() > 0, Shape, "linalg.vecdot: expected tensors of at least one dim");
  CHECK(x.size(wrap_dim("linalg.vecdot", dim, x.dim())) ==
            y.size(wrap_dim("linalg.vecdot", dim, y.dim())),
        Shape, "linalg.vecdot: dim ", dim, " of shapes ", x.sizes(), " and ", y.sizes(),
        " differs");
  return sum(mul(conj(x), y), Dims{dim}, false, x.dtype());
}

// ---- chains of matrices

// The split points of the cheapest order (Cormen et al., "Introduction to Algorithms", 15.2).
std::vector<std::vector<size_t>> best_splits(const TensorList& m) {
  size_t n = m.size();
  std::vector<double> sizes;
  for (const Tensor& t : m) sizes.push_back(static_cast<double>(t.size(0)));
  sizes.push_back(static_cast<double>(m.back().size(1)));
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> split(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; ++length)
    for (size_t i = 0; i + length < n; ++i) {
      size_t j = i + length;
      cost[i][j] = HUGE_VAL;
      for (size_t k = i; k < j; ++k) {
        double c = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
        if (c < cost[i][j]) cost[i][j] = c, split[i][j] = k;
      }
    }
  return split;
}

Tensor multiply_range(const TensorList& m, const std::vector<std::vector<size_t>>& split, size_t i,
                      size_t j) {
  if (i == j) return m[i];
  return mm(multiply_range(m, split, i, split[i][j]), multiply_range(m, split, split[i][j] + 1, j));
}

Tensor multiply_chain(const TensorList& m) {
  constexpr size_t longest_searched = 128;
  if (m.size() <= longest_searched) return multiply_range(m, best_splits(m), 0, m.size() - 1);
  Tensor y = m[0];
  for (size_t i = 1; i < m.size(); ++i) y = mm(y, m[i]);
  return y;
}

void check_chain(const char* op, const TensorList& m) {
  for (const Tensor& t : m) {
    CHECK(t.dim() == 2, Shape, op, ": expected matrices, got shape ", t.sizes());
    CHECK(t.dtype() == m[0].dtype(), DType, op, ": expected tensors of one dtype, got ",
          m[0].dtype(), " and ", t.dtype());
  }
  for (size_t i = 1; i < m.size(); ++i)
    CHECK(m[i - 1].size(1) == m[i].size(0), Shape, op, ": shapes ", m[i - 1].sizes(), " and ",
          m[i].sizes(), " cannot be multiplied");
}

Tensor linalg_multi_dot(const TensorList& tensors) {
  CHECK(tensors.size() >= 2, Value, "linalg.multi_dot: expected at least 2 tensors, got ",
        tensors.size());
  TensorList m = tensors;
  bool row = m.front().dim() == 1, column = m.back().dim() == 1;
  if (row) m.front() = unsqueeze(m.front(), 0);
  if (column) m.back() = unsqueeze(m.back(), 1);
  check_chain("linalg.multi_dot", m);
  Tensor y = multiply_chain(m);
  if (column) y = squeeze(y, Dims{-1});
  return row ? squeeze(y, Dims{0}) : y;
}

Tensor chain_matmul(const TensorList& matrices) {
  CHECK(!matrices.empty(), Value, "chain_matmul: expected at least one matrix");
  check_chain("chain_matmul", matrices);
  return multiply_chain(matrices);
}

}  // namespace

void check_square(const char* op, const Tensor& x) {
  CHECK(x.dim() >= 2 && x.size(-1) == x.size(-2), Shape, op,
        ": expected square matrices, got shape ", x.sizes());
}

Tensor identity_like(const Tensor& x) {
  Tensor y = zeros(x.sizes(), options_of(x));
  Tensor d = diagonal(y, 0, -2, -1);
  fill_(d, 1.0);
  return y;
}

Tensor matrix_power(const Tensor& x, int64_t n) {
  check_square("linalg.matrix_power", x);
  if (n == 0) {
    // Part of the graph, as in PyTorch, with gradient zero.
    Tensor y = clone(x, int64_t{0});
    return copy_(y, identity_like(x));
  }
  Tensor power = n < 0 ? linalg_inv(x) : x, y;
  uint64_t left = n < 0 ? uint64_t{0} - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  for (;; power = matmul(power, power)) {
    if (left & 1) y = y.defined() ? matmul(y, power) : power;
    left >>= 1;
    if (!left) return y.same(x) ? clone(y, std::nullopt) : y;
  }
}

namespace {

// y[b, o] = x1[b, :] weight[o] x2[b, :] + bias[o]
Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const std::optional<Tensor>& bias) {
  CHECK(weight.dim() == 3, Shape, "bilinear: expected a weight of shape [out, in1, in2], got ",
        weight.sizes());
  CHECK(input1.dim() > 0 && input1.dim() == input2.dim(), Shape,
        "bilinear: expected inputs of equally many dims, got shapes ", input1.sizes(), " and ",
        input2.sizes());
  for (int64_t d = 0; d + 1 < input1.dim(); ++d)
    CHECK(input1.size(d) == input2.size(d), Shape, "bilinear: the batch dims of shapes ",
          input1.sizes(), " and ", input2.sizes(), " differ");
  int64_t out = weight.size(0), n = weight.size(1), m = weight.size(2);
  CHECK(input1.size(-1) == n && input2.size(-1) == m, Shape, "bilinear: inputs of shapes ",
        input1.sizes(), " and ", input2.sizes(), " do not fit a weight of shape ", weight.sizes());
  CHECK(!bias || (bias->dim() == 1 && bias->size(0) == out), Shape,
        "bilinear: expected bias of shape [", out, "], got ", bias->sizes());
  Dims sizes = input1.sizes();
  int64_t batch = 1;
  for (size_t d = 0; d + 1 < sizes.size(); ++d) batch *= sizes[d];
  sizes.back() = out;
  Tensor left = mm(reshape(input1, Dims{batch, n}),
                   reshape(permute(weight, Dims{1, 0, 2}), Dims{n, out * m}));
  Tensor y = bmm(reshape(left, Dims{batch, out, m}), reshape(input2, Dims{batch, m, 1}));
  y = reshape(y, sizes);
  return bias ? add(y, *bias) : y;
}

}  // namespace

OP_TABLE(linalg_basic) = {
    op<outer>("outer(Tensor self, Tensor vec2) -> Tensor", "torch method",
              "Every product of two vectors' elements."),
    op<outer>("ger(Tensor self, Tensor vec2) -> Tensor", "torch method", "outer()."),
    op<inner>("inner(Tensor self, Tensor other) -> Tensor", "torch method",
              "Products summed over the last dims."),
    op<tensordot>("_tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> "
                  "Tensor",
                  "private", "Products summed over pairs of dims."),
    op<kron>("kron(Tensor self, Tensor other) -> Tensor", "torch method",
             "Kronecker product: self's elements times the whole of other."),
    op<linalg_vecdot>("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", "linalg",
                      "Products summed over a dim, x conjugated."),
    op<linalg_multi_dot>("linalg_multi_dot(Tensor[] tensors) -> Tensor", "linalg",
                         "Product of a chain of matrices in the cheapest order."),
    op<chain_matmul>("_chain_matmul(Tensor[] matrices) -> Tensor", "private",
                     "Product of a chain of matrices."),
    op<matrix_power>("matrix_power(Tensor self, int n) -> Tensor", "torch method",
                     "The n-th power of square matrices; negative powers invert."),
    op<matrix_power>("linalg_matrix_power(Tensor self, int n) -> Tensor", "linalg",
                     "The n-th power of square matrices; negative powers invert."),
    op<bilinear>("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> "
                 "Tensor",
                 "torch nn", "input1 @ weight[o] @ input2 + bias[o]; weight [out, in1, in2]."),
};
OP_TABLE_END(linalg_basic);

}  // namespace cresset::ops
