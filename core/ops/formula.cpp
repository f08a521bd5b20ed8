// Derivatives of elementwise rows as tensor expressions, for higher derivatives.
#include "core/ops/formula.h"

#include <cstring>

#include "core/ops/ops.h"

namespace cresset {
namespace formula {

/// What the row texts compute with here: an operand under the names of the formulas.
class Value {
 public:
  Value() : operand_(Scalar(0)) {}
  Value(Operand o) : operand_(std::move(o)) {}
  Value(double v)
      : operand_(v == static_cast<double>(static_cast<int64_t>(v))
                     ? Operand(Scalar(static_cast<int64_t>(v)))
                     : Operand(Scalar(v))) {}
  Value(int v) : Value(static_cast<double>(v)) {}
  const Operand& operand() const { return operand_; }
  bool is_number() const { return !operand_.is_tensor(); }
  double number() const { return operand_.scalar().to_double(); }

 private:
  Operand operand_;
};

Value call_row(Row row, std::initializer_list<const Value*> in,
               std::initializer_list<double> members) {
  std::vector<Operand> operands;
  bool any_tensor = false;
  for (const Value* v : in) {
    operands.push_back(v->operand());
    any_tensor |= !v->is_number();
  }
  // Numbers alone are computed as a double tensor, and stay a number for promotion.
  if (!any_tensor) operands[0] = Operand(wrapped_number(Scalar(in.begin()[0]->number())));
  std::vector<double> params(members);
  std::span<const double> defaults = row_defaults(row);
  for (size_t i = params.size(); i < defaults.size(); ++i) params.push_back(defaults[i]);
  Tensor y = ops::elementwise(row, std::span<const Operand>(operands), params);
  if (!any_tensor) y.impl()->wrapped_number = true;
  return Value(Operand(y));
}

#define FUNCTION1(name)                                                  \
  template <class... M> Value name(const Value& x, M... members) {       \
    return call_row(Row::name, {&x}, {static_cast<double>(members)...}); \
  }
#define FUNCTION2(name)                                                            \
  template <class... M> Value name(const Value& a, const Value& b, M... members) { \
    return call_row(Row::name, {&a, &b}, {static_cast<double>(members)...});       \
  }
#define FUNCTION3(name)                                                                            \
  template <class... M> Value name(const Value& a, const Value& b, const Value& c, M... members) { \
    return call_row(Row::name, {&a, &b, &c}, {static_cast<double>(members)...});                   \
  }
#define UNARY(name, ...) FUNCTION1(name)
#define UNARY0(name, ...) FUNCTION1(name)
#define UNARYZ(name, ...) FUNCTION1(name)
#define PREDICATE(name, ...) FUNCTION1(name)
#define BINARY(name, ...) FUNCTION2(name)
#define BINARY0(name, ...) FUNCTION2(name)
#define COMPARE(name, ...) FUNCTION2(name)
#define TERNARY(name, ...) FUNCTION3(name)
#define TERNARY0(name, ...) FUNCTION3(name)
#include "core/ops/elementwise.def"

Value operator+(const Value& a, const Value& b) { return add(a, b); }
Value operator-(const Value& a, const Value& b) { return sub(a, b); }
Value operator*(const Value& a, const Value& b) { return mul(a, b); }
Value operator/(const Value& a, const Value& b) { return div(a, b); }
Value operator-(const Value& a) { return a.is_number() ? Value(-a.number()) : neg(a); }
Value operator<(const Value& a, const Value& b) { return lt(a, b); }
Value operator<=(const Value& a, const Value& b) { return le(a, b); }
Value operator>(const Value& a, const Value& b) { return gt(a, b); }
Value operator>=(const Value& a, const Value& b) { return ge(a, b); }
Value operator==(const Value& a, const Value& b) { return eq(a, b); }
Value operator!=(const Value& a, const Value& b) { return ne(a, b); }
Value operator&(const Value& a, const Value& b) { return logical_and(a, b); }
Value operator|(const Value& a, const Value& b) { return logical_or(a, b); }
Value operator!(const Value& a) { return logical_not(a); }

Value select(const Value& c, const Value& a, const Value& b) {
  return Value(Operand(ops::where(c.operand().as_tensor(), a.operand(), b.operand())));
}
Value conj(const Value& x) {
  if (x.is_number() || !x.operand().tensor().is_complex()) return x;
  return conj_physical(x);
}

#include "core/ops/row_structs.h"

Value value_of(const std::optional<Operand>& o) { return o ? Value(*o) : Value(); }

template <class R> R with_params(const double* params) {
  R r;
  if constexpr (!std::is_empty_v<R>) std::memcpy(static_cast<void*>(&r), params, sizeof(R));
  return r;
}

using Operands = const std::optional<Operand> (&)[5];

template <class R> Value unary(int, Operands o, const double* params) {
  return with_params<R>(params).backward0(value_of(o[0]), value_of(o[1]), value_of(o[4]));
}
template <class R> Value binary(int i, Operands o, const double* params) {
  R r = with_params<R>(params);
  Value g = value_of(o[0]), a = value_of(o[1]), b = value_of(o[2]), y = value_of(o[4]);
  return i == 0 ? r.backward0(g, a, b, y) : r.backward1(g, a, b, y);
}
template <class R> Value ternary(int i, Operands o, const double* params) {
  R r = with_params<R>(params);
  Value g = value_of(o[0]), a = value_of(o[1]), b = value_of(o[2]), c = value_of(o[3]);
  Value y = value_of(o[4]);
  if (i == 0) return r.backward0(g, a, b, c, y);
  return i == 1 ? r.backward1(g, a, b, c, y) : r.backward2(g, a, b, c, y);
}

using FormulaFn = Value (*)(int, Operands, const double*);

constexpr FormulaFn formulas[] = {
#define UNARY(name, ...) &unary<name##_row>,
#define BINARY(name, ...) &binary<name##_row>,
#define TERNARY(name, ...) &ternary<name##_row>,
#define UNARY0(name, ...) nullptr,
#define UNARYZ(name, ...) nullptr,
#define BINARY0(name, ...) nullptr,
#define TERNARY0(name, ...) nullptr,
#define COMPARE(name, ...) nullptr,
#define PREDICATE(name, ...) nullptr,
#include "core/ops/elementwise.def"
};

// Members are doubles only, so a default-constructed row is its list of defaults.
template <class R> std::span<const double> defaults_of() {
  if constexpr (std::is_empty_v<R>) {
    return {};
  } else {
    static const R row;
    return {reinterpret_cast<const double*>(&row), sizeof(R) / sizeof(double)};
  }
}

using DefaultsFn = std::span<const double> (*)();
constexpr DefaultsFn defaults[] = {
#define ROW_NAME(name) &defaults_of<name##_row>,
#include "core/ops/elementwise.def"
#undef ROW_NAME
};

}  // namespace formula

Tensor row_formula(Row row, int i, const std::optional<Operand> (&operands)[5],
                   const double* params) {
  formula::FormulaFn f = formula::formulas[static_cast<size_t>(row)];
  ASSERT(f);
  return f(i, operands, params).operand().as_tensor();
}

std::span<const double> row_defaults(Row row) {
  return formula::defaults[static_cast<size_t>(row)]();
}

}  // namespace cresset
