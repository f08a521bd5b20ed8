// PyTorch's forms of elementwise operators whose arguments a row alone cannot express.
#include <cmath>

#include "core/autograd/autograd.h"
#include "core/dispatch/op.h"
#include "core/ops/activation.h"
#include "core/ops/ops.h"

namespace cresset {

enum class RoundingMode { None, floor, trunc };

template <> struct EnumNames<RoundingMode> {
  static constexpr const char* schema = "RoundingMode{None|floor|trunc}";
};

namespace ops {
namespace {

// A factor may not lift the result to another kind of number.
void check_factor(const char* op, const char* name, const Scalar& s, DType result) {
  if (s.kind() == Scalar::Kind::Int) return;
  CHECK(s.kind() != Scalar::Kind::Bool || result == DType::Bool, Value, op, ": expected ", name,
        " of bool for bool results only, got ", s, " for ", result);
  CHECK(s.kind() != Scalar::Kind::Float || !is_integral(result, true), Value, op, ": expected ",
        name, " to be an integer for ", result, ", got ", s);
  CHECK(!s.is_complex() || is_complex(result), Value, op, ": expected a real ", name, " for ",
        result, ", got ", s);
}

bool is_one(const Scalar& s) { return s.kind() == Scalar::Kind::Int && s.to_int() == 1; }

// The row's parameter for a factor; a complex one is multiplied into `operand` instead.
double take_factor(const Scalar& s, Operand& operand) {
  if (!s.is_complex()) return s.to_double();
  operand = mul(operand, Operand(s));
  return 1;
}

Tensor with_alpha(Row row, const char* op, DTypeClass cls, Operand&& a, Operand&& b,
                  const Scalar& alpha, size_t scaled) {
  // Two plain numbers give a 0-d tensor.
  if (!a.is_tensor() && !b.is_tensor()) a = a.as_tensor();
  double factor = 1;
  if (!is_one(alpha)) {
    check_factor(op, "alpha", alpha, result_dtype(op, cls, {a, b}));
    factor = take_factor(alpha, scaled == 0 ? a : b);
  }
  return elementwise(row, {a, b}, {&factor, 1});
}

void with_alpha_(Row row, const char* op, DTypeClass cls, Tensor& self, Operand other,
                 const Scalar& alpha) {
  double factor = 1;
  if (!is_one(alpha)) {
    check_factor(op, "alpha", alpha, result_dtype(op, cls, {Operand(self), other}));
    factor = take_factor(alpha, other);
  }
  elementwise_(row, self, {&other, 1}, {&factor, 1});
}

}  // namespace

// ---- sums with a factor

static Tensor add_alpha(Operand&& a, Operand&& b, const Scalar& alpha) {
  return with_alpha(Row::add, "add", DTypeClass::number, std::move(a), std::move(b), alpha, 1);
}
// A difference with a mask is a mistake: logical_not or bitwise_xor is meant.
static void refuse_bool(const char* op, const Operand& x) {
  bool is_bool =
      x.is_tensor() ? x.tensor().dtype() == DType::Bool : x.scalar().kind() == Scalar::Kind::Bool;
  CHECK(!is_bool, DType, op, ": expected a dtype other than bool, got bool");
}
static Tensor sub_alpha(Operand&& a, Operand&& b, const Scalar& alpha) {
  refuse_bool("sub", a);
  refuse_bool("sub", b);
  return with_alpha(Row::sub, "sub", DTypeClass::number_nobool, std::move(a), std::move(b), alpha,
                    1);
}
static Tensor rsub_alpha(const Tensor& a, Operand&& b, const Scalar& alpha) {
  refuse_bool("rsub", a);
  refuse_bool("rsub", b);
  return with_alpha(Row::rsub, "rsub", DTypeClass::number_nobool, a, std::move(b), alpha, 0);
}
static Tensor& add_alpha_(Tensor& self, const Operand& b, const Scalar& alpha) {
  with_alpha_(Row::add, "add_", DTypeClass::number, self, b, alpha);
  return self;
}
static Tensor& sub_alpha_(Tensor& self, const Operand& b, const Scalar& alpha) {
  refuse_bool("sub_", self);
  refuse_bool("sub_", b);
  with_alpha_(Row::sub, "sub_", DTypeClass::number_nobool, self, b, alpha);
  return self;
}

static Tensor addcmul(const Tensor& self, const Tensor& t1, const Tensor& t2, const Scalar& value) {
  Operand in[] = {self, t1, t2};
  check_factor("addcmul", "value", value, result_dtype("addcmul", DTypeClass::number, in));
  double factor = take_factor(value, in[1]);
  return elementwise(Row::addcmul, in, {&factor, 1});
}
static Tensor& addcmul_(Tensor& self, const Tensor& t1, const Tensor& t2, const Scalar& value) {
  Operand in[] = {self, t1, t2};
  check_factor("addcmul_", "value", value, result_dtype("addcmul_", DTypeClass::number, in));
  double factor = take_factor(value, in[1]);
  elementwise_(Row::addcmul, self, {in + 1, 2}, {&factor, 1});
  return self;
}

static double addcdiv_factor(const char* op, Operand (&in)[3], const Scalar& value) {
  CHECK(!is_integral(in[1].tensor().dtype(), true) || !is_integral(in[2].tensor().dtype(), true),
        DType, op, ": expected floating tensors to divide, got ", in[1].tensor().dtype(), " and ",
        in[2].tensor().dtype());
  check_factor(op, "value", value, result_dtype(op, DTypeClass::floating_complex, in));
  return take_factor(value, in[1]);
}
static Tensor addcdiv(const Tensor& self, const Tensor& t1, const Tensor& t2, const Scalar& value) {
  Operand in[] = {self, t1, t2};
  double factor = addcdiv_factor("addcdiv", in, value);
  return elementwise(Row::addcdiv, in, {&factor, 1});
}
static Tensor& addcdiv_(Tensor& self, const Tensor& t1, const Tensor& t2, const Scalar& value) {
  Operand in[] = {self, t1, t2};
  double factor = addcdiv_factor("addcdiv_", in, value);
  elementwise_(Row::addcdiv, self, {in + 1, 2}, {&factor, 1});
  return self;
}

static void check_lerp(const char* op, const Tensor& self, const Tensor& end, const Operand& w) {
  CHECK(self.is_floating() || self.is_complex(), DType, op,
        ": expected a floating or complex dtype, got ", self.dtype());
  CHECK(self.dtype() == end.dtype(), DType, op, ": expected end of dtype ", self.dtype(), ", got ",
        end.dtype());
  if (w.is_tensor())
    CHECK(w.tensor().dtype() == self.dtype(), DType, op, ": expected weight of dtype ",
          self.dtype(), ", got ", w.tensor().dtype());
  else
    CHECK(!w.scalar().is_complex() || self.is_complex(), Value, op, ": expected a real weight for ",
          self.dtype(), ", got ", w.scalar());
}
static Tensor lerp(const Tensor& self, const Tensor& end, const Operand& weight) {
  check_lerp("lerp", self, end, weight);
  return row(Row::lerp, {self, end, weight});
}
static Tensor& lerp_(Tensor& self, const Tensor& end, const Operand& weight) {
  check_lerp("lerp_", self, end, weight);
  const Operand rest[] = {end, weight};
  elementwise_(Row::lerp, self, rest, {});
  return self;
}

// ---- quotients and powers

static Row division(RoundingMode mode) {
  return mode == RoundingMode::None    ? Row::div
         : mode == RoundingMode::floor ? Row::floor_divide
                                       : Row::trunc_divide;
}
static Tensor div_rounded(const Operand& a, const Operand& b, RoundingMode mode) {
  return row(division(mode), {a.is_tensor() || b.is_tensor() ? a : Operand(a.as_tensor()), b});
}
static Tensor& div_rounded_(Tensor& self, const Operand& b, RoundingMode mode) {
  elementwise_(division(mode), self, {&b, 1}, {});
  return self;
}

static Tensor true_divide(const Operand& a, const Operand& b) {
  return div_rounded(a, b, RoundingMode::None);
}
static Tensor& true_divide_(Tensor& self, const Operand& b) {
  return div_rounded_(self, b, RoundingMode::None);
}

// Squares of bools are integers, as a power with an integer exponent.
static Tensor square(const Tensor& self) {
  return row(Row::square, {self.dtype() == DType::Bool ? to_dtype(self, DType::Int64) : self});
}
static Tensor& square_(Tensor& self) {
  CHECK(self.dtype() != DType::Bool, DType,
        "square_: a result of dtype int64 cannot be stored into dtype bool");
  elementwise_(Row::square, self, {}, {});
  return self;
}

static Row complement(const Tensor& x) {
  return x.dtype() == DType::Bool ? Row::logical_not : Row::bitwise_not;
}
static Tensor bitwise_not(const Tensor& self) { return row(complement(self), {self}); }
static Tensor& bitwise_not_(Tensor& self) {
  elementwise_(complement(self), self, {}, {});
  return self;
}

static bool is_complex_operand(const Operand& o) {
  return o.is_tensor() ? o.tensor().is_complex() : o.scalar().is_complex();
}
static DType float_power_dtype(const Operand& a, const Operand& b) {
  return is_complex_operand(a) || is_complex_operand(b) ? DType::Complex128 : DType::Float64;
}
static Operand widened(const Operand& o, DType dtype) {
  return o.is_tensor() ? Operand(to_dtype(o.tensor(), dtype)) : o;
}
static Tensor float_power(const Operand& a, const Operand& b) {
  CHECK(a.is_tensor() || b.is_tensor(), Type, "float_power: expected at least one tensor argument");
  DType dtype = float_power_dtype(a, b);
  return row(Row::pow, {widened(a, dtype), widened(b, dtype)});
}
static Tensor& float_power_(Tensor& self, const Operand& exponent) {
  DType dtype = float_power_dtype(self, exponent);
  CHECK(self.dtype() == dtype, DType, "float_power_: expected a tensor of dtype ", dtype, ", got ",
        self.dtype());
  Operand e = widened(exponent, dtype);
  elementwise_(Row::pow, self, {&e, 1}, {});
  return self;
}

// Two to the power of `x`, floating for integers too.
static Tensor two_to(const Tensor& x) {
  return row(Row::exp2, {x.dtype() == DType::Bool ? to_dtype(x, default_dtype()) : x});
}
static Tensor ldexp(const Tensor& self, const Tensor& other) { return mul(self, two_to(other)); }
static Tensor& ldexp_(Tensor& self, const Tensor& other) {
  mul_(self, two_to(other));
  return self;
}

static std::tuple<Tensor, Tensor> frexp(const Tensor& x) {
  CHECK(x.is_floating(), DType, "frexp: expected a floating dtype, got ", x.dtype());
  Tensor in;
  {
    GradMode off(false);
    in = contiguous(x);
  }
  Tensor mantissa = empty(x.sizes(), options_of(x));
  Tensor exponent = empty(x.sizes(), {DType::Int32, x.device()});
  launch("frexp", x.device(), &ActivationKernels::frexp, in, mantissa, exponent);
  if (wants_grad(x))
    record("FrexpBackward0", mantissa, inputs(x), [exponent](Backward& b) {
      b[0] = div(b.grad(), row(Row::exp2, {to_dtype(exponent, b.grad().dtype())}));
    });
  return {mantissa, exponent};
}

// ---- optional and integer parameters

static double logit_eps(const std::optional<double>& eps) { return eps.value_or(-1); }
static Tensor logit(const Tensor& self, std::optional<double> eps) {
  const Operand in[] = {self};
  double e = logit_eps(eps);
  return elementwise(Row::logit, in, {&e, 1});
}
static Tensor& logit_(Tensor& self, std::optional<double> eps) {
  double e = logit_eps(eps);
  elementwise_(Row::logit, self, {}, {&e, 1});
  return self;
}

static Tensor nan_to_num(const Tensor& self, std::optional<double> nan,
                         std::optional<double> posinf, std::optional<double> neginf) {
  const Operand in[] = {self};
  const double params[] = {nan.value_or(0), posinf.value_or(not_given), neginf.value_or(not_given)};
  return elementwise(Row::nan_to_num, in, params);
}
static Tensor& nan_to_num_(Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                           std::optional<double> neginf) {
  const double params[] = {nan.value_or(0), posinf.value_or(not_given), neginf.value_or(not_given)};
  elementwise_(Row::nan_to_num, self, {}, params);
  return self;
}

static double order_of_polygamma(const char* op, int64_t n) {
  CHECK(n >= 0, Value, op, ": expected n of at least 0, got ", n);
  return static_cast<double>(n);
}
static Tensor polygamma(const Tensor& self, int64_t n) {
  const Operand in[] = {self};
  double order = order_of_polygamma("polygamma", n);
  return elementwise(Row::polygamma, in, {&order, 1});
}
static Tensor& polygamma_(Tensor& self, int64_t n) {
  double order = order_of_polygamma("polygamma_", n);
  elementwise_(Row::polygamma, self, {}, {&order, 1});
  return self;
}

// p (p - 1) / 4 log(pi) + sum over j < p of lgamma(x - j / 2).
static Tensor mvlgamma(const Tensor& self, int64_t p) {
  CHECK(p >= 1, Value, "mvlgamma: expected p of at least 1, got ", p);
  CHECK(self.dtype() != DType::Bool && !self.is_complex(), DType,
        "mvlgamma: expected a real dtype other than bool, got ", self.dtype());
  CHECK(p <= 1 << 20, Value, "mvlgamma: expected p of at most 1048576, got ", p);
  Tensor y = row(Row::lgamma, {self});
  for (int64_t j = 1; j < p; ++j)
    y = add(y, row(Row::lgamma, {sub(self, Operand(0.5 * static_cast<double>(j)))}));
  double pd = static_cast<double>(p);
  return add(y, Operand(pd * (pd - 1) / 4 * std::log(M_PI)));
}
static Tensor& mvlgamma_(Tensor& self, int64_t p) {
  CHECK(self.is_floating(), DType, "mvlgamma_: a floating result cannot be stored into dtype ",
        self.dtype());
  return copy_(self, mvlgamma(self, p));
}

OP_TABLE(arithmetic) = {
    op<add_alpha>("add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
                  "torch method", "a + alpha b"),
    op<add_alpha_>("add_(Tensor(a!) self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor(a!)",
                   "torch method", "a + alpha b, in place"),
    op<sub_alpha>("sub(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
                  "torch method", "a - alpha b"),
    op<sub_alpha_>("sub_(Tensor(a!) self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor(a!)",
                   "torch method", "a - alpha b, in place"),
    op<rsub_alpha>("rsub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor", "torch",
                   "b - alpha a"),
    op<addcmul>("addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) "
                "-> Tensor",
                "torch method", "a + value b c"),
    op<addcmul_>("addcmul_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) "
                 "-> Tensor(a!)",
                 "method", "a + value b c, in place"),
    op<addcdiv>("addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) "
                "-> Tensor",
                "torch method", "a + value b / c"),
    op<addcdiv_>("addcdiv_(Tensor(a!) self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) "
                 "-> Tensor(a!)",
                 "method", "a + value b / c, in place"),
    op<lerp>("lerp(Tensor self, Tensor end, Tensor|Scalar weight) -> Tensor", "torch method",
             "a + weight (b - a)"),
    op<lerp_>("lerp_(Tensor(a!) self, Tensor end, Tensor|Scalar weight) -> Tensor(a!)", "method",
              "a + weight (b - a), in place"),
    op<div_rounded>("div(Tensor|Scalar self, Tensor|Scalar other, *, RoundingMode"
                    "{None|floor|trunc} rounding_mode=None) -> Tensor",
                    "torch method", "quotient, rounded towards minus infinity or 0 on demand"),
    op<div_rounded_>("div_(Tensor(a!) self, Tensor|Scalar other, *, RoundingMode"
                     "{None|floor|trunc} rounding_mode=None) -> Tensor(a!)",
                     "method", "quotient, in place"),
    op<true_divide>("true_divide(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
                    "torch method", "quotient"),
    op<true_divide_>("true_divide_(Tensor(a!) self, Tensor|Scalar other) -> Tensor(a!)", "method",
                     "quotient, in place"),
    op<square>("square(Tensor self) -> Tensor", "torch method", "square"),
    op<square_>("square_(Tensor(a!) self) -> Tensor(a!)", "torch method", "square, in place"),
    op<bitwise_not>("bitwise_not(Tensor self) -> Tensor", "torch method",
                    "bitwise not; logical not of bools"),
    op<bitwise_not_>("bitwise_not_(Tensor(a!) self) -> Tensor(a!)", "method",
                     "bitwise not, in place"),
    op<float_power>("float_power(Tensor|Scalar self, Tensor|Scalar exponent) -> Tensor",
                    "torch method", "a to the power b in float64 or complex128"),
    op<float_power_>("float_power_(Tensor(a!) self, Tensor|Scalar exponent) -> Tensor(a!)",
                     "method", "a to the power b, in place"),
    op<ldexp>("ldexp(Tensor self, Tensor other) -> Tensor", "torch method", "a 2^b"),
    op<ldexp_>("ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)", "method", "a 2^b, in place"),
    op<frexp>("frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)", "torch method",
              "x = mantissa 2^exponent with abs(mantissa) in [0.5, 1)"),
    op<logit>("logit(Tensor self, float? eps=None) -> Tensor", "torch method special",
              "log(x / (1 - x)), x clamped to [eps, 1 - eps] where eps is given"),
    op<logit_>("logit_(Tensor(a!) self, float? eps=None) -> Tensor(a!)", "method",
               "logit, in place"),
    op<nan_to_num>("nan_to_num(Tensor self, float? nan=None, float? posinf=None, "
                   "float? neginf=None) -> Tensor",
                   "torch method",
                   "replaces NaN and infinities; infinities by the dtype's limits unless given"),
    op<nan_to_num_>("nan_to_num_(Tensor(a!) self, float? nan=None, float? posinf=None, "
                    "float? neginf=None) -> Tensor(a!)",
                    "method", "nan_to_num, in place"),
    op<polygamma>("polygamma(Tensor self, int n) -> Tensor", "method",
                  "n-th derivative of digamma"),
    op<polygamma_>("polygamma_(Tensor(a!) self, int n) -> Tensor(a!)", "method",
                   "n-th derivative of digamma, in place"),
    op<mvlgamma>("mvlgamma(Tensor self, int p) -> Tensor", "torch method",
                 "logarithm of the multivariate gamma function of dimension p"),
    op<mvlgamma_>("mvlgamma_(Tensor(a!) self, int p) -> Tensor(a!)", "method",
                  "mvlgamma, in place"),
};
OP_TABLE_END(arithmetic);

}  // namespace ops
}  // namespace cresset
