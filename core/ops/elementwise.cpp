// The elementwise engine: promotion, broadcasting, in-place rules and recording for every row.
#include "core/ops/elementwise.h"

#include <cstring>

#include "core/autograd/autograd.h"
#include "core/ops/formula.h"
#include "core/ops/ops.h"
#include "core/ops/overlap.h"

namespace cresset {

Dims broadcast_shapes(const char* op, std::span<const int64_t> a, std::span<const int64_t> b) {
  Dims out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    CHECK(x == y || x == 1 || y == 1, Shape, op, ": shapes ", a, " and ", b,
          " do not broadcast: sizes ", x, " and ", y, " differ");
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

namespace ops {
namespace {

// Rows that give a real result for complex input, computed in complex arithmetic.
bool gives_real(Row row) { return row == Row::abs || row == Row::angle; }

DType promote(const Operands& in) {
  PromotionState state;
  for (const Operand& o : in) {
    if (!o.is_tensor())
      state.add_scalar(static_cast<ScalarKind>(o.scalar().kind()));
    else if (o.tensor().is_wrapped_number())
      state.add_scalar(is_complex(o.tensor().dtype())      ? ScalarKind::Complex
                       : is_floating(o.tensor().dtype())   ? ScalarKind::Float
                       : o.tensor().dtype() == DType::Bool ? ScalarKind::Bool
                                                           : ScalarKind::Int);
    else
      state.add_tensor(o.tensor().dtype(), o.tensor().dim() == 0);
  }
  return state.result(default_dtype());
}

struct Plan {
  DType dtype;  // what is computed
  DType out;    // what is stored
  Dims sizes;
  Device device;
  const Tensor* layout = nullptr;  // whose strides the result takes
};

// The output takes the strides of the operands when all full-size operands agree on them.
void choose_layout(Plan& plan, const Operands& in) {
  const Tensor* first = nullptr;
  for (const Operand& o : in) {
    if (!o.is_tensor() || !(o.tensor().sizes() == plan.sizes)) continue;
    if (!first)
      first = &o.tensor();
    else if (!(first->strides() == o.tensor().strides()))
      return;
  }
  if (first && !first->is_contiguous() && is_dense(*first)) plan.layout = first;
}

Plan make_plan(Row row, const Operands& in) {
  const RowInfo& info = row_info(row);
  Plan plan;
  const Tensor* first = nullptr;
  bool same = true;
  for (const Operand& o : in) {
    if (!o.is_tensor()) continue;
    const Tensor& t = o.tensor();
    if (!first) {
      first = &t;
      continue;
    }
    same &= t.sizes() == first->sizes();
    if (t.device() == first->device()) continue;
    bool number = t.dim() == 0 && t.device().is_cpu();
    if (first->dim() == 0 && first->device().is_cpu()) {
      first = &t;
    } else {
      CHECK(number, Device, info.name, ": expected all tensors on one device, got ",
            first->device(), " and ", t.device());
    }
  }
  CHECK(first, Type, info.name, ": expected at least one tensor argument");
  plan.device = first->device();
  plan.dtype = result_dtype(info.name, info.cls, in);
  plan.out = gives_bool(info.kind)                       ? DType::Bool
             : gives_real(row) && is_complex(plan.dtype) ? to_real(plan.dtype)
                                                         : plan.dtype;
  if (same) {
    plan.sizes = first->sizes();
  } else {
    for (const Operand& o : in)
      if (o.is_tensor()) plan.sizes = broadcast_shapes(info.name, plan.sizes, o.tensor().sizes());
  }
  choose_layout(plan, in);
  return plan;
}

Tensor allocate(const Plan& plan) {
  Options o{plan.out, plan.device};
  return plan.layout ? cresset::empty_strided(plan.sizes, plan.layout->strides(), o)
                     : empty(plan.sizes, o);
}

// Integer division by zero is a user error, found before the loop runs: kernels do not throw.
void check_divisor(Row row, DType dtype, Device device, const Operand& b) {
  if (row != Row::floor_divide && row != Row::trunc_divide && row != Row::remainder &&
      row != Row::fmod)
    return;
  // A GPU's division does not trap, and looking for zeros there would wait for it: as in PyTorch,
  // the result of dividing by 0 is then any number.
  if (!is_integral(dtype, true) || !device.is_cpu()) return;
  bool zero;
  if (!b.is_tensor()) {
    zero = !b.scalar().to_bool();
  } else {
    GradMode off(false);
    Tensor t = contiguous(to_dtype(b.tensor(), DType::Int64));
    const int64_t* p = t.data<int64_t>();
    zero = std::find(p, p + t.numel(), 0) != p + t.numel();
  }
  CHECK(!zero, Value, row_info(row).name, ": integer division by zero");
}

void check_exponent(Row row, DType dtype, const Operand& b) {
  if (row != Row::pow || !is_integral(dtype, true) || b.is_tensor()) return;
  CHECK(b.scalar().to_int() >= 0, Value,
        "pow: integers to negative integer powers are not allowed, got exponent ", b.scalar());
}

/// Computes in `dtype` and stores into `out`.
void run(Row row, DType dtype, const Operands& in, std::span<const double> params,
         const Tensor& out) {
  const char* name = row_info(row).name;
  if (in.size() == 2) {
    check_divisor(row, dtype, out.device(), in[1]);
    check_exponent(row, dtype, in[1]);
  }
  RowCall call{.row = row,
               .compute = compute_for(dtype),
               .params = params.data(),
               .in = in.list(),
               .out = &out};
  launch(name, out.device(), &ElementwiseKernels::row, call);
}

const char* node_name(Row row) {
  static const std::vector<std::string>* names = [] {
    auto* list = new std::vector<std::string>;
    for (const RowInfo& info : row_infos) {
      std::string s;
      bool upper = true;
      for (const char* p = info.name; *p; ++p) {
        if (*p == '_') {
          upper = true;
          continue;
        }
        s += upper ? static_cast<char>(std::toupper(*p)) : *p;
        upper = false;
      }
      list->push_back(s + "Backward0");
    }
    return list;
  }();
  return (*names)[static_cast<size_t>(row)].c_str();
}

/// The recorded application of a row: keeps what its derivative texts mention.
class RowNode final : public Node {
 public:
  RowNode(Row row, const Operands& in, std::span<const double> params)
      : Node(node_name(row)), row_(row), arity_(in.size()) {
    std::copy(params.begin(), params.end(), params_);
    next.reserve(in.size());
    uint8_t used = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      next.push_back(in[i].is_tensor() ? gradient_edge(in[i].tensor()) : Edge{});
      if (next[i].node) used |= row_info(row).uses[i];
    }
    for (size_t i = 0; i < in.size(); ++i) {
      if (!in[i].is_tensor())
        numbers_[i] = in[i].scalar();
      else if (used & (1 << i))
        saved_[i] = save(in[i].tensor());
      is_tensor_[i] = in[i].is_tensor();
      if (is_tensor_[i]) complex_[i] = in[i].tensor().is_complex();
    }
    saves_output_ = used & 8;
  }
  void save_result(const Tensor& y) {
    if (saves_output_) saved_[3] = save_output(y);
  }

  void backward(std::span<const Tensor> grads, std::span<Tensor> out) override {
    if (released_) fail_backward_twice(name_);
    for (size_t i = 0; i < arity_; ++i)
      if (next[i].node) out[i] = derivative(static_cast<int>(i), grads[0]);
  }
  void release_saved() override {
    bool any = false;
    for (SavedTensor& s : saved_) {
      any |= s.defined();
      s = {};
    }
    released_ = any;
  }

 private:
  Tensor derivative(int i, const Tensor& g) {
    const RowInfo& info = row_info(row_);
    const char* text = info.derivative[i];
    if (info.zero_gradient) return zeros_like(g);
    CHECK(text, NotImplemented, info.name, ": the derivative by input ", i, " is not implemented");
    if (std::strcmp(text, "g") == 0) return g;
    std::optional<Operand> operands[5];
    operands[0] = Operand(g);
    for (int k = 0; k < 3; ++k) {
      if (!(info.uses[i] & (1 << k))) continue;
      if (is_tensor_[k])
        operands[k + 1] = Operand(saved_[k].unpack(*this));
      else
        operands[k + 1] = Operand(numbers_[k]);
    }
    if (info.uses[i] & 8) operands[4] = Operand(saved_[3].unpack(*this));
    if (grad_enabled()) return row_formula(row_, i, operands, params_);
    return fused(i, g, operands);
  }

  // One loop over all operands at once.
  Tensor fused(int i, const Tensor& g, std::optional<Operand> (&operands)[5]) {
    DType dtype = g.dtype();
    const Operand* list[5] = {};
    for (int k = 0; k < 5; ++k) {
      if (!operands[k]) continue;
      list[k] = &*operands[k];
      if (operands[k]->is_tensor() && operands[k]->tensor().is_complex())
        dtype = promote_types(dtype, operands[k]->tensor().dtype());
    }
    DType stored = complex_[i] ? dtype : to_real(dtype);
    Tensor d = g.is_contiguous() || !is_dense(g)
                   ? empty(g.sizes(), {stored, g.device()})
                   : cresset::empty_strided(g.sizes(), g.strides(), {stored, g.device()});
    RowCall call{.row = row_,
                 .derivative = i,
                 .compute = compute_for(dtype),
                 .params = params_,
                 .in = {list, 5},
                 .out = &d};
    launch(name_, g.device(), &ElementwiseKernels::row, call);
    return d;
  }

  Row row_;
  size_t arity_;
  double params_[4] = {};
  SavedTensor saved_[4];
  Scalar numbers_[3];
  bool is_tensor_[3] = {}, complex_[3] = {};
  bool saves_output_ = false, released_ = false;
};

bool any_wants_grad(const Operands& in) {
  if (!grad_enabled()) return false;
  for (const Operand& o : in)
    if (o.is_tensor() && o.tensor().requires_grad()) return true;
  return false;
}

}  // namespace

Compute compute_for(DType dtype) {
  switch (dtype) {
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32: return Compute::F32;
    case DType::Float64: return Compute::F64;
    case DType::Complex64: return Compute::C64;
    case DType::Complex128: return Compute::C128;
    default: return Compute::I64;
  }
}

DType result_dtype(const char* op, DTypeClass cls, const Operands& in) {
  // The common case first: tensors of one floating dtype.
  DType dtype = promote(in);
  auto refuse = [&](bool ok, const char* expected) {
    CHECK(ok, DType, op, ": expected ", expected, ", got ", dtype);
  };
  bool integral = is_integral(dtype, true), complex = is_complex(dtype);
  switch (cls) {
    case DTypeClass::number:
    case DTypeClass::logical: return dtype;
    case DTypeClass::number_nobool:
      refuse(dtype != DType::Bool, "a dtype other than bool");
      return dtype;
    case DTypeClass::real: refuse(!complex, "a real dtype"); return dtype;
    case DTypeClass::real_nobool:
      refuse(!complex && dtype != DType::Bool, "a real dtype other than bool");
      return dtype;
    case DTypeClass::floating: refuse(!complex, "a real dtype"); [[fallthrough]];
    case DTypeClass::floating_complex: return integral ? default_dtype() : dtype;
    case DTypeClass::integral: refuse(integral, "an integer or bool dtype"); return dtype;
    case DTypeClass::integer: refuse(is_integral(dtype, false), "an integer dtype"); return dtype;
    case DTypeClass::floating_only: refuse(is_floating(dtype), "a floating dtype"); return dtype;
  }
  return dtype;
}

namespace {

// Tensors of one floating dtype and shape, row-major on one device: no rule has to be looked up.
bool uniform(Row row, const Operands& in) {
  if (!in[0].is_tensor()) return false;
  const Tensor& first = in[0].tensor();
  DType dtype = first.dtype();
  if ((dtype != DType::Float32 && dtype != DType::Float64) || !first.is_contiguous() ||
      first.is_wrapped_number() || first.numel() < 2 || gives_bool(row_info(row).kind) ||
      !class_has(row_info(row).cls, compute_for(dtype)))
    return false;
  for (size_t i = 1; i < in.size(); ++i) {
    if (!in[i].is_tensor()) return false;
    const Tensor& t = in[i].tensor();
    if (t.dtype() != dtype || !t.is_contiguous() || !(t.sizes() == first.sizes()) ||
        !(t.device() == first.device()))
      return false;
  }
  return true;
}

/// The result of a row without autograd.
Tensor compute(Row row, const Operands& in, std::span<const double> params) {
  if (uniform(row, in)) {
    const Tensor& first = in[0].tensor();
    Tensor out = empty(first.sizes(), options_of(first));
    RowCall call{.row = row,
                 .compute = compute_for(first.dtype()),
                 .params = params.data(),
                 .in = in.list(),
                 .out = &out,
                 .uniform = true};
    launch(row_info(row).name, out.device(), &ElementwiseKernels::row, call);
    return out;
  }
  Plan plan = make_plan(row, in);
  Tensor out = allocate(plan);
  run(row, plan.dtype, in, params, out);
  return out;
}

}  // namespace

Tensor elementwise(Row row, const Operands& in, std::span<const double> params) {
  Tensor out = compute(row, in, params);
  if (!gives_bool(row_info(row).kind) && any_wants_grad(in)) {
    auto node = make_ref<RowNode>(row, in, params);
    set_history(out, node);
    node->save_result(out);
  }
  return out;
}

/// `x`, or a copy where it shares some of its elements with `self` in another order.
static Operand apart_from(const Tensor& self, const Operand& x) {
  if (!x.is_tensor() || !partial_overlap(self, x.tensor())) return x;
  GradMode off(false);
  return clone(x.tensor(), std::nullopt);
}

void elementwise_(Row row, const Tensor& self, std::span<const Operand> rest,
                  std::span<const double> params) {
  std::string name = std::string(row_info(row).name) + "_";
  const char* op = name.c_str();
  // The alias keeps the history that `self` had before the write.
  const Operand target(self);
  const Operands in(target, rest);
  bool recording = !gives_bool(row_info(row).kind) && any_wants_grad(in);
  check_inplace(op, self, recording);
  Plan plan = make_plan(row, in);
  CHECK(plan.sizes == self.sizes(), Shape, op, ": the result has shape ", plan.sizes,
        " and cannot be stored into shape ", self.sizes());
  auto rank = [](DType d) {
    return d == DType::Bool ? 0 : is_integral(d, false) ? 1 : is_floating(d) ? 2 : 3;
  };
  CHECK(rank(plan.out) <= rank(self.dtype()), DType, op, ": a result of dtype ", plan.out,
        " cannot be stored into dtype ", self.dtype());
  check_no_self_overlap(op, self);
  std::array<Operand, 2> sources{Operand(Scalar()), Operand(Scalar())};
  for (size_t i = 0; i < rest.size(); ++i) sources[i] = apart_from(self, rest[i]);
  Ref<RowNode> node;
  if (recording) {
    Tensor before = alias(self);
    if (self.impl()->autograd) {
      AutogradMeta& m = autograd_meta(before);
      Edge e = gradient_edge(self);
      m.grad_fn = e.node;
      m.output = e.input;
    }
    node = make_ref<RowNode>(row, Operands(Operand(before), rest), params);
  }
  run(row, plan.dtype, Operands(target, {sources.data(), rest.size()}), params, self);
  self.bump_version();
  if (recording) {
    node->save_result(self);
    rebase_history(self, node);
  }
}

// ---- rows by name, for C++ callers

Tensor row(Row r, std::initializer_list<Operand> in) {
  return elementwise(r, std::span(in.begin(), in.size()), row_defaults(r));
}
Tensor add(const Operand& a, const Operand& b, double alpha) {
  return elementwise(Row::add, {a, b}, {&alpha, 1});
}
Tensor sub(const Operand& a, const Operand& b, double alpha) {
  return elementwise(Row::sub, {a, b}, {&alpha, 1});
}
Tensor mul(const Operand& a, const Operand& b) { return row(Row::mul, {a, b}); }
Tensor div(const Operand& a, const Operand& b) { return row(Row::div, {a, b}); }
Tensor neg(const Tensor& x) { return row(Row::neg, {x}); }
Tensor exp(const Tensor& x) { return row(Row::exp, {x}); }
Tensor log(const Tensor& x) { return row(Row::log, {x}); }
Tensor eq(const Operand& a, const Operand& b) { return row(Row::eq, {a, b}); }
void add_(const Tensor& self, const Operand& b, double alpha) {
  elementwise_(Row::add, self, {&b, 1}, {&alpha, 1});
}
void mul_(const Tensor& self, const Operand& b) { elementwise_(Row::mul, self, {&b, 1}, {}); }
Tensor conj(const Tensor& x) { return x.is_complex() ? row(Row::conj_physical, {x}) : x; }

}  // namespace ops
}  // namespace cresset
