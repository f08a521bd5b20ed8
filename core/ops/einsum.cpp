// einsum: sums of products by labelled dims, contracted pairwise from the left.
#include <array>
#include <string>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"

namespace cresset::ops {
namespace {

constexpr int label_count = 52;
constexpr int ellipsis = label_count;

// The labels of one operand or of the output; `ellipsis` stands for its dims.
using Labels = std::vector<int>;

struct Equation {
  std::vector<Labels> in;
  std::optional<Labels> out;
};

int label_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  CHECK(c >= 'a' && c <= 'z', Value, "einsum: expected letters as labels, got \"",
        std::string(1, c), "\"");
  return 26 + c - 'a';
}

std::string letter_of(int label) {
  return std::string(1, static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26));
}

Labels parse_labels(const std::string& text) {
  Labels labels;
  bool seen = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text[i] != '.') {
      labels.push_back(label_of(text[i]));
      continue;
    }
    CHECK(text.compare(i, 3, "...") == 0 && !seen, Value,
          "einsum: expected at most one \"...\" per operand, got \"", text, "\"");
    seen = true;
    labels.push_back(ellipsis);
    i += 2;
  }
  return labels;
}

Equation parse(const std::string& text) {
  Equation e;
  size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  for (size_t from = 0;;) {
    size_t comma = left.find(',', from);
    e.in.push_back(parse_labels(left.substr(from, comma - from)));
    if (comma == std::string::npos) break;
    from = comma + 1;
  }
  if (arrow != std::string::npos) e.out = parse_labels(text.substr(arrow + 2));
  return e;
}

// Where every label and the dims of the ellipsis lie in the common order of dims.
struct Order {
  std::array<int64_t, label_count + 1> at;
  int64_t ellipsis_dims = 0;
  int64_t out = 0;  // dims of the output, which come first
  int64_t total = 0;
};

Order order_dims(const Equation& e, const TensorList& operands) {
  Order o;
  o.at.fill(-1);
  std::array<int, label_count> count{};
  bool dots = false;
  for (size_t i = 0; i < operands.size(); ++i) {
    int64_t labelled = 0;
    bool own_dots = false;
    for (int l : e.in[i]) {
      if (l == ellipsis)
        own_dots = dots = true;
      else
        ++labelled, ++count[static_cast<size_t>(l)];
    }
    int64_t dims = operands[i].dim();
    CHECK(own_dots ? dims >= labelled : dims == labelled, Value, "einsum: operand ", i, " has ",
          labelled, " labels", own_dots ? " and \"...\"" : "", " but shape ", operands[i].sizes());
    if (own_dots) o.ellipsis_dims = std::max(o.ellipsis_dims, dims - labelled);
  }
  Labels out;
  if (e.out) {
    out = *e.out;
  } else {
    if (dots) out.push_back(ellipsis);
    for (int l = 0; l < label_count; ++l)
      if (count[static_cast<size_t>(l)] == 1) out.push_back(l);
  }
  auto place = [&](int l) {
    o.at[static_cast<size_t>(l)] = o.total;
    o.total += l == ellipsis ? o.ellipsis_dims : 1;
  };
  for (int l : out) {
    CHECK(o.at[static_cast<size_t>(l)] < 0, Value, "einsum: an output label appears twice");
    CHECK(l == ellipsis || count[static_cast<size_t>(l)] > 0, Value, "einsum: output label \"",
          letter_of(l), "\" does not appear in an input");
    place(l);
  }
  o.out = o.total;
  for (int l = 0; l < label_count; ++l)
    if (count[static_cast<size_t>(l)] > 0 && o.at[static_cast<size_t>(l)] < 0) place(l);
  if (dots && o.at[ellipsis] < 0) place(ellipsis);
  return o;
}

// The operand with all dims of the common order, 1 where it has none; repeated labels become
// their diagonal.
Tensor arrange(const Tensor& operand, const Labels& labels, const Order& o) {
  Dims source(static_cast<size_t>(o.total), -1);
  Tensor x = operand;
  int64_t dots = x.dim() - static_cast<int64_t>(labels.size()) + 1;
  int64_t d = 0;
  for (int l : labels) {
    if (l == ellipsis) {
      int64_t lead = o.ellipsis_dims - dots;
      for (int64_t i = 0; i < dots; ++i)
        source[static_cast<size_t>(o.at[ellipsis] + lead + i)] = d++;
      continue;
    }
    int64_t& from = source[static_cast<size_t>(o.at[static_cast<size_t>(l)])];
    if (from < 0) {
      from = d++;
      continue;
    }
    CHECK(x.size(from) == x.size(d), Value, "einsum: a repeated label has sizes ", x.size(from),
          " and ", x.size(d));
    // The diagonal is the last dim; it takes the place of the first one.
    x = movedim(diagonal(x, 0, from, d), Dims{-1}, Dims{from});
  }
  Dims dims, sizes;
  for (int64_t s : source)
    if (s >= 0) dims.push_back(s);
  x = permute(x, dims);
  int64_t next = 0;
  for (int64_t s : source) sizes.push_back(s < 0 ? 1 : x.size(next++));
  return reshape(x, sizes);
}

// The product of x and y, summed over the marked dims, which stay with size 1.
Tensor contract(Tensor x, Tensor y, const std::vector<bool>& summed) {
  Dims batch, only_x, only_y, inner, sum_x, sum_y;
  int64_t nb = 1, nx = 1, ny = 1, ni = 1;
  Dims sizes;
  for (int64_t d = 0; d < x.dim(); ++d) {
    int64_t a = x.size(d), b = y.size(d);
    CHECK(a == b || a == 1 || b == 1, Value, "einsum: operands do not broadcast: sizes ", a,
          " and ", b, " of one label differ");
    if (summed[static_cast<size_t>(d)]) {
      if (a != 1 && b != 1)
        inner.push_back(d), ni *= a;
      else if (a != 1)
        sum_x.push_back(d), only_x.push_back(d);
      else if (b != 1)
        sum_y.push_back(d), only_y.push_back(d);
      else
        only_x.push_back(d);
    } else if (a != 1 && b != 1) {
      batch.push_back(d), nb *= a;
    } else if (a != 1) {
      only_x.push_back(d), nx *= a;
    } else {
      only_y.push_back(d), ny *= b;
    }
  }
  if (!sum_x.empty()) x = sum(x, sum_x, true, x.dtype());
  if (!sum_y.empty()) y = sum(y, sum_y, true, y.dtype());
  if (inner.empty()) return mul(x, y);
  Dims px = batch, py = batch, back(static_cast<size_t>(x.dim()));
  auto append = [](Dims& to, const Dims& from) { to.append(from.data(), from.size()); };
  append(px, only_x), append(px, inner), append(px, only_y);
  append(py, inner), append(py, only_y), append(py, only_x);
  Tensor z =
      bmm(reshape(permute(x, px), Dims{nb, nx, ni}), reshape(permute(y, py), Dims{nb, ni, ny}));
  Dims from = batch;
  append(from, only_x), append(from, inner), append(from, only_y);
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t d = from[i];
    bool is_inner = std::find(inner.begin(), inner.end(), d) != inner.end();
    sizes.push_back(is_inner ? 1 : std::max(x.size(d), y.size(d)));
    // A size of 0 meets 1 in broadcasting.
    if (x.size(d) == 0 || y.size(d) == 0) sizes.back() = is_inner ? 1 : 0;
    back[static_cast<size_t>(d)] = static_cast<int64_t>(i);
  }
  return permute(reshape(z, sizes), back);
}

}  // namespace

static Tensor einsum(const std::string& equation, const TensorList& tensors) {
  Equation e = parse(equation);
  CHECK(!tensors.empty() && e.in.size() == tensors.size(), Value, "einsum: \"", equation,
        "\" is for ", e.in.size(), " tensors, got ", tensors.size());
  Order o = order_dims(e, tensors);
  TensorList operands;
  for (size_t i = 0; i < tensors.size(); ++i) operands.push_back(arrange(tensors[i], e.in[i], o));
  // The last operand that has more than one element along each dim.
  std::vector<size_t> last(static_cast<size_t>(o.total), 0);
  for (size_t i = 0; i < operands.size(); ++i)
    for (int64_t d = 0; d < o.total; ++d)
      if (operands[i].size(d) != 1) last[static_cast<size_t>(d)] = i;
  auto ending = [&](size_t operand) {
    std::vector<bool> ends(static_cast<size_t>(o.total), false);
    for (int64_t d = o.out; d < o.total; ++d)
      ends[static_cast<size_t>(d)] = last[static_cast<size_t>(d)] == operand;
    return ends;
  };
  auto sum_ending = [&](const Tensor& x, size_t operand) {
    Dims dims;
    std::vector<bool> ends = ending(operand);
    for (int64_t d = o.out; d < o.total; ++d)
      if (ends[static_cast<size_t>(d)] && x.size(d) != 1) dims.push_back(d);
    return dims.empty() ? x : sum(x, dims, true, x.dtype());
  };
  Tensor y = sum_ending(operands[0], 0);
  for (size_t i = 1; i < operands.size(); ++i) y = contract(y, operands[i], ending(i));
  Dims sizes(std::span<const int64_t>(y.sizes().data(), static_cast<size_t>(o.out)));
  return reshape(y, sizes);
}

OP_TABLE(einsum) = {
    op<einsum>("_einsum(str equation, Tensor[] operands) -> Tensor", "private",
               "Sums of products by labelled dims."),
};
OP_TABLE_END(einsum);

}  // namespace cresset::ops
