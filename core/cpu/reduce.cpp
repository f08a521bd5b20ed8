// CPU kernels of the reductions: every dtype by scalar folds, floats and doubles by SIMD ones.
#include "core/ops/reduce.h"

#include <complex>

#include "core/cpu/fold.h"
#include "core/cpu/reduce_arg.h"
#include "core/cpu/reduce_plan.h"

namespace cresset {
namespace {

template <class T> inline constexpr bool is_complex_type = false;
template <class R> inline constexpr bool is_complex_type<std::complex<R>> = true;
template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_float_type = std::is_floating_point_v<T> || is_half_type<T>;

// What values of T are summed in; unsigned, so that integers wrap.
template <class T>
using Wide = std::conditional_t<is_complex_type<T>, std::complex<double>,
                                std::conditional_t<is_float_type<T>, double, uint64_t>>;

template <class T> Wide<T> widen(T x) {
  if constexpr (is_half_type<T>)
    return static_cast<float>(x);
  else if constexpr (std::is_integral_v<T>)
    return static_cast<uint64_t>(static_cast<int64_t>(x));
  else
    return Wide<T>(x);
}

// The type of a sum of T.
template <class T> using SumOf = std::conditional_t<std::is_integral_v<T>, int64_t, T>;

template <class Out, class Acc> Out narrow(Acc v) {
  if constexpr (is_half_type<Out>)
    return Out(static_cast<float>(v));
  else
    return static_cast<Out>(v);
}

// The walk over runs and columns that the scalar folds share; D has add(acc&, x, output index).
template <class D, class T, class A> struct ScalarFold {
  using In = T;
  using Acc = A;
  const D& self() const { return static_cast<const D&>(*this); }

  // Runs are added up in blocks, so that rounding errors stay small.
  void row(A& acc, const T* x, int64_t n, int64_t stride, int64_t out) const {
    for (int64_t i = 0; i < n;) {
      A part = self().identity();
      for (const int64_t end = std::min(n, i + 256); i < end; ++i)
        self().add(part, x[i * stride], out);
      self().merge(acc, part);
    }
  }
  void columns(A* acc, const T* x, int64_t rows, int64_t stride, int64_t cols, int64_t col_stride,
               int64_t out, int64_t out_stride) const {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        self().add(acc[j], x[i * stride + j * col_stride], out + j * out_stride);
  }
};

template <class T> struct SumFold : ScalarFold<SumFold<T>, T, Wide<T>> {
  SumOf<T>* y;
  bool skip_nan;
  double divisor;
  explicit SumFold(const ReduceCall& c)
      : y(c.y->data<SumOf<T>>()), skip_nan(c.op == ReduceOp::NanSum), divisor(c.divisor) {}
  static Wide<T> identity() { return {}; }
  void add(Wide<T>& acc, T x, int64_t) const {
    const Wide<T> v = widen(x);
    if (!skip_nan || v == v) acc += v;
  }
  static void merge(Wide<T>& acc, const Wide<T>& other) { acc += other; }
  void finish(const Wide<T>& acc, int64_t i) const {
    if constexpr (std::is_integral_v<T>)
      y[i] = narrow<SumOf<T>>(acc);
    else
      y[i] = narrow<SumOf<T>>(acc / divisor);
  }
};

template <class T> struct ProdFold : ScalarFold<ProdFold<T>, T, Wide<T>> {
  SumOf<T>* y;
  explicit ProdFold(void* out) : y(static_cast<SumOf<T>*>(out)) {}
  static Wide<T> identity() { return Wide<T>(1); }
  static void add(Wide<T>& acc, T x, int64_t) { acc *= widen(x); }
  static void merge(Wide<T>& acc, const Wide<T>& other) { acc *= other; }
  void finish(const Wide<T>& acc, int64_t i) const { y[i] = narrow<SumOf<T>>(acc); }
};

template <class T>
struct ExtremeFold
    : ScalarFold<ExtremeFold<T>, T, std::conditional_t<is_float_type<T>, double, int64_t>> {
  using Acc = std::conditional_t<is_float_type<T>, double, int64_t>;
  T* y;
  bool largest;
  ExtremeFold(void* out, bool max) : y(static_cast<T*>(out)), largest(max) {}
  Acc identity() const {
    using L = std::numeric_limits<Acc>;
    if constexpr (L::has_infinity)
      return largest ? -L::infinity() : L::infinity();
    else
      return largest ? L::min() : L::max();
  }
  void join(Acc& acc, Acc v) const {
    if (v != v || (largest ? v > acc : v < acc)) acc = v;
  }
  void add(Acc& acc, T x, int64_t) const { join(acc, static_cast<Acc>(widen(x))); }
  void merge(Acc& acc, const Acc& other) const { join(acc, other); }
  void finish(const Acc& acc, int64_t i) const { y[i] = narrow<T>(acc); }
};

template <class T> struct NonzeroFold : ScalarFold<NonzeroFold<T>, T, int64_t> {
  const ReduceCall& call;
  int64_t length;
  NonzeroFold(const ReduceCall& c, int64_t n) : call(c), length(n) {}
  static int64_t identity() { return 0; }
  static void add(int64_t& acc, T x, int64_t) { acc += widen(x) != Wide<T>(0); }
  static void merge(int64_t& acc, const int64_t& other) { acc += other; }
  void finish(const int64_t& acc, int64_t i) const {
    if (call.op == ReduceOp::Nonzero) {
      call.y->data<int64_t>()[i] = acc;
    } else {
      call.y->data<uint8_t>()[i] = call.op == ReduceOp::Any ? acc > 0 : acc == length;
    }
  }
};

double finish_norm(double p, double acc) {
  if (p == 2) return std::sqrt(acc);
  if (p == 0 || p == 1 || std::isinf(p)) return acc;
  return std::pow(acc, 1 / p);
}

template <class T> struct NormFold : ScalarFold<NormFold<T>, T, double> {
  double p;
  void* y;
  DType dtype;
  NormFold(const ReduceCall& c) : p(c.p), y(c.y->data()), dtype(c.y->dtype()) {}
  double identity() const { return p < 0 && std::isinf(p) ? HUGE_VAL : 0; }
  void add(double& acc, T x, int64_t) const {
    const double v = std::abs(widen(x));
    if (std::isinf(p))
      merge(acc, v);
    else if (p == 2)
      acc += v * v;
    else if (p == 1)
      acc += v;
    else if (p == 0)
      acc += v != 0;
    else
      acc += std::pow(v, p);
  }
  void merge(double& acc, const double& other) const {
    if (!std::isinf(p))
      acc += other;
    else if (other != other || (p > 0 ? other > acc : other < acc))
      acc = other;
  }
  void finish(const double& acc, int64_t i) const {
    const double v = finish_norm(p, acc);
    if constexpr (is_half_type<T>)
      static_cast<T*>(y)[i] = narrow<T>(v);
    else if (dtype == DType::Float32)
      static_cast<float*>(y)[i] = static_cast<float>(v);
    else
      static_cast<double*>(y)[i] = v;
  }
};

template <class T> struct DeviationFold : ScalarFold<DeviationFold<T>, T, double> {
  const T* center;
  double divisor;
  NormFold<T> out;
  explicit DeviationFold(const ReduceCall& c)
      : center(c.center->data<T>()), divisor(c.divisor), out(c) {
    out.p = 1;
  }
  static double identity() { return 0; }
  void add(double& acc, T x, int64_t i) const { acc += std::norm(widen(x) - widen(center[i])); }
  static void merge(double& acc, const double& other) { acc += other; }
  void finish(const double& acc, int64_t i) const { out.finish(acc / divisor, i); }
};

// Floats and doubles whose neighbours in memory are reduced together or kept together.
template <class T> struct VectorFold {
  using In = T;
  using Acc = double;
  Fold fold;
  double p, divisor;
  T* y;
  const T* center;
  const FoldLoops<T>& loops;

  double identity() const { return fold_identity(fold); }
  void row(double& acc, const T* x, int64_t n, int64_t, int64_t out) const {
    merge(acc, loops.row(x, n, center ? center[out] : T(0)));
  }
  void columns(double* acc, const T* x, int64_t rows, int64_t stride, int64_t cols, int64_t,
               int64_t out, int64_t out_stride) const {
    constexpr int64_t block = reduce_detail::column_block;
    T own[block];
    const T* centers = center ? own : nullptr;
    for (int64_t j = 0; center && j < cols; ++j) own[j] = center[out + j * out_stride];
    // Narrow rows without gaps are taken several at a time.
    const int64_t times = stride == cols && cols <= 32 ? std::min(rows, block / cols) : 1;
    if (times < 2) return loops.columns(x, rows, stride, cols, centers, acc);
    const int64_t wide = times * cols, groups = rows / times;
    for (int64_t j = cols; center && j < wide; ++j) own[j] = own[j - cols];
    double sums[block];
    std::fill(sums, sums + wide, identity());
    loops.columns(x, groups, wide, wide, centers, sums);
    for (int64_t j = 0; j < wide; ++j) merge(acc[j % cols], sums[j]);
    const int64_t done = groups * times;
    loops.columns(x + done * stride, rows - done, stride, cols, centers, acc);
  }
  void merge(double& acc, const double& other) const { acc = fold_merge(fold, acc, other); }
  void finish(const double& acc, int64_t i) const {
    y[i] = static_cast<T>(p == 1 ? acc / divisor : finish_norm(p, acc));
  }
};

// The SIMD fold of a call, if there is one.
std::optional<Fold> vector_fold(const ReduceCall& c) {
  switch (c.op) {
    case ReduceOp::Sum: return Fold::Sum;
    case ReduceOp::NanSum: return Fold::NanSum;
    case ReduceOp::Prod: return Fold::Prod;
    case ReduceOp::Max: return Fold::Max;
    case ReduceOp::Min: return Fold::Min;
    case ReduceOp::Deviations: return Fold::SumDeviations;
    case ReduceOp::Norm:
      if (c.p == 1) return Fold::SumAbs;
      if (c.p == 2) return Fold::SumSquares;
      if (std::isinf(c.p)) return c.p > 0 ? Fold::MaxAbs : Fold::MinAbs;
      return std::nullopt;
    default: return std::nullopt;
  }
}

template <class T> VectorFold<T> make_vector_fold(const ReduceCall& c, Fold fold) {
  return {fold,           c.op == ReduceOp::Norm ? c.p : 1,         c.divisor,
          c.y->data<T>(), c.center ? c.center->data<T>() : nullptr, fold_loops<T>(fold)};
}

// A short block of memory folded into one number, without a plan.
template <class T> bool reduce_short(const ReduceCall& c) {
  const int64_t n = c.x->numel();
  if (n == 0 || n > 4096 || static_cast<int64_t>(c.over.size()) != c.x->dim()) return false;
  if (!c.x->is_contiguous()) return false;
  const std::optional<Fold> fold = vector_fold(c);
  if (!fold) return false;
  const VectorFold<T> f = make_vector_fold<T>(c, *fold);
  double acc = f.identity();
  f.row(acc, c.x->data<T>(), n, 1, 0);
  f.finish(acc, 0);
  return true;
}

template <class T> bool reduce_vectors(const ReduceCall& c, const ReducePlan& plan) {
  const std::optional<Fold> fold = vector_fold(c);
  const bool adjacent = plan.columns ? plan.kept_in.back() == 1 : plan.red_in.back() == 1;
  if (!fold || (!adjacent && plan.length > 1)) return false;
  if (plan.columns && !adjacent) return false;
  // The largest absolute value of nothing is 0.
  if (plan.length == 0 && *fold == Fold::MaxAbs) return false;
  run_fold(make_vector_fold<T>(c, *fold), plan, c.x->data<T>());
  return true;
}

template <class T> void reduce_scalars(const ReduceCall& c, const ReducePlan& plan) {
  const T* x = c.x->data<T>();
  void* y = c.y->data();
  switch (c.op) {
    case ReduceOp::Sum:
    case ReduceOp::NanSum: return run_fold(SumFold<T>(c), plan, x);
    case ReduceOp::Prod: return run_fold(ProdFold<T>(y), plan, x);
    case ReduceOp::Nonzero:
    case ReduceOp::Any:
    case ReduceOp::All: return run_fold(NonzeroFold<T>(c, plan.length), plan, x);
    case ReduceOp::Max:
    case ReduceOp::Min:
      if constexpr (!is_complex_type<T>)
        run_fold(ExtremeFold<T>(y, c.op == ReduceOp::Max), plan, x);
      return;
    case ReduceOp::Norm:
      if constexpr (!std::is_integral_v<T>) run_fold(NormFold<T>(c), plan, x);
      return;
    case ReduceOp::Deviations:
      if constexpr (!std::is_integral_v<T>) run_fold(DeviationFold<T>(c), plan, x);
      return;
  }
}

void reduce(const ReduceCall& c) {
  const DType dtype = c.x->dtype();
  if (dtype == DType::Float32 && reduce_short<float>(c)) return;
  const ReducePlan plan = plan_reduction(*c.x, c.over);
  if (dtype == DType::Float32 && reduce_vectors<float>(c, plan)) return;
  if (dtype == DType::Float64 && reduce_vectors<double>(c, plan)) return;
  visit_dtype(dtype, [&]<class T>() { reduce_scalars<T>(c, plan); });
}

}  // namespace

template <> const ReduceKernels& cpu_kernels<ReduceKernels>() {
  static constexpr ReduceKernels table = {.reduce = reduce, .extreme = reduce_arg::extreme};
  return table;
}

}  // namespace cresset
