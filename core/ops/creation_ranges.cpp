// New tensors that count: ranges, identity matrices, triangles' indices, Vandermonde matrices.
#include <cmath>

#include "core/dispatch/op.h"
#include "core/ops/creation.h"
#include "core/ops/shape.h"

namespace cresset::ops {
namespace {

void check_real(const char* op, DType dtype) {
  CHECK(!is_complex(dtype), DType, op, ": expected a real dtype, got ", dtype);
}

// Triangles are walked row by row on the CPU; the indices are then moved.
Options made_on_host(Options o) {
  if (o.device.is_cuda()) o.device = {};
  return o;
}

// ---- arange

// ceil((end - start) / step) without overflow.
int64_t integer_count(int64_t start, int64_t end, int64_t step) {
  __int128 span = static_cast<__int128>(end) - start;
  __int128 n = (span + step - (step > 0 ? 1 : -1)) / step;
  return n > (int64_t{1} << 60) ? int64_t{1} << 60 : static_cast<int64_t>(n);
}

int64_t arange_count(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype) {
  for (const Scalar* s : {&start, &end, &step})
    CHECK(!s->is_complex() && std::isfinite(s->to_double()), Value,
          "arange: expected finite numbers, got ", start, ", ", end, ", ", step);
  bool exact = start.is_integral() && end.is_integral() && step.is_integral();
  bool truncates = dtype == DType::Int64;
  if (truncates)
    for (const Scalar* s : {&start, &end, &step})
      CHECK(std::abs(s->to_double()) < 0x1p63, Value, "arange: ", *s, " does not fit int64");
  bool zero = truncates ? step.to_int() == 0 : step.equals(0);
  CHECK(!zero, Value, "arange: expected a step other than 0 for dtype ", dtype);
  bool ahead = exact || truncates ? (step.to_int() > 0 ? end.to_int() >= start.to_int()
                                                       : end.to_int() <= start.to_int())
                                  : (step.to_double() > 0 ? end.to_double() >= start.to_double()
                                                          : end.to_double() <= start.to_double());
  CHECK(ahead, Value, "arange: a step of ", step, " does not lead from ", start, " to ", end);
  if (exact || truncates) return integer_count(start.to_int(), end.to_int(), step.to_int());
  double n = std::ceil((end.to_double() - start.to_double()) / step.to_double());
  CHECK(n < 0x1p55, Value, "arange: too many elements, ", n);
  return static_cast<int64_t>(n);
}

Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
              std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
  bool integral = start.is_integral() && end.is_integral() && step.is_integral();
  Options o = resolve(dtype.value_or(integral ? DType::Int64 : default_dtype()), device);
  int64_t n = arange_count(start, end, step, o.dtype);
  check_real("arange", o.dtype);
  Tensor y = empty(Dims{n}, o, "arange");
  if (n > 0) launch("arange", y.device(), &RangeKernels::arange, y, start, step);
  return with_grad(y, requires_grad);
}

// ---- linspace, logspace

double end_point(const char* op, const Operand& x) {
  if (!x.is_tensor()) {
    CHECK(!x.scalar().is_complex(), NotImplemented, op, ": complex end points");
    return x.scalar().to_double();
  }
  CHECK(x.tensor().dim() == 0, Shape, op, ": expected 0-d tensors as end points, got shape ",
        x.tensor().sizes());
  CHECK(!x.tensor().is_complex(), NotImplemented, op, ": complex end points");
  CHECK(!x.tensor().is_meta(), Device, op, ": a meta tensor has no value");
  return *on_host(to_dtype(x.tensor(), DType::Float64)).data<double>();
}

Tensor spaced(const char* op, const Operand& start, const Operand& end, int64_t steps,
              std::optional<double> base, Options o) {
  CHECK(steps >= 0, Value, op, ": expected steps of at least 0, got ", steps);
  double from = end_point(op, start), to = end_point(op, end);
  if (is_complex(o.dtype))
    return to_dtype(spaced(op, start, end, steps, base, {to_real(o.dtype), o.device}), o.dtype);
  Tensor y = empty(Dims{steps}, o, op);
  if (steps > 0) launch(op, y.device(), &RangeKernels::spaced, y, from, to, base);
  return y;
}

Tensor linspace(const Operand& start, const Operand& end, int64_t steps, std::optional<DType> dtype,
                std::optional<Device> device, bool requires_grad) {
  return with_grad(spaced("linspace", start, end, steps, std::nullopt, resolve(dtype, device)),
                   requires_grad);
}

Tensor logspace(const Operand& start, const Operand& end, int64_t steps, double base,
                std::optional<DType> dtype, std::optional<Device> device, bool requires_grad) {
  return with_grad(spaced("logspace", start, end, steps, base, resolve(dtype, device)),
                   requires_grad);
}

// ---- matrices

Tensor eye(int64_t n, std::optional<int64_t> m, std::optional<DType> dtype,
           std::optional<Device> device, bool requires_grad) {
  int64_t columns = m.value_or(n);
  CHECK(n >= 0 && columns >= 0, Value, "eye: expected sizes of at least 0, got ", n, " and ",
        columns);
  Tensor y = zeros(Dims{n, columns}, resolve(dtype, device));
  GradMode off(false);
  copy_raw(Operand(Scalar(int64_t{1})), diagonal(y));
  return with_grad(y, requires_grad);
}

// Elements of a matrix on and below diagonal k.
int64_t triangle_count(int64_t rows, int64_t columns, int64_t k) {
  int64_t first = std::clamp<int64_t>(-k, 0, rows);
  int64_t full = std::clamp<int64_t>(columns - k, first, rows);
  // Rows first ... full - 1 have first + k + 1, ..., full + k elements, all others every column.
  __int128 ramp = static_cast<__int128>(full - first) * (first + full + 2 * k + 1) / 2;
  return static_cast<int64_t>(ramp + static_cast<__int128>(rows - full) * columns);
}

// Rows and columns of the elements on one side of a diagonal, row by row.
Tensor triangle_indices(const char* op, int64_t rows, int64_t columns, int64_t offset, bool upper,
                        std::optional<DType> dtype, std::optional<Device> device) {
  CHECK(rows >= 0 && columns >= 0, Value, op, ": expected sizes of at least 0, got ", rows, " and ",
        columns);
  Options o{dtype.value_or(DType::Int64), device.value_or(Device{})};
  CHECK(o.dtype == DType::Int64 || o.dtype == DType::Int32, DType, op,
        ": expected int32 or int64, got ", o.dtype);
  checked_numel(op, Dims{rows, columns});
  int64_t k = std::clamp(offset, -rows - 1, columns + 1);
  auto edge = [&](int64_t r) { return std::clamp<int64_t>(r + k + (upper ? 0 : 1), 0, columns); };
  // Rows without elements are never visited: there may be very many.
  int64_t first = upper ? 0 : std::clamp<int64_t>(-k, 0, rows);
  int64_t last = upper ? std::clamp<int64_t>(columns - k, 0, rows) : rows;
  int64_t total = triangle_count(rows, columns, upper ? k - 1 : k);
  if (upper) total = rows * columns - total;
  Tensor y = empty(Dims{2, total}, made_on_host(o), op);
  if (y.is_meta()) return y;
  visit_dtype(o.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      T *row = y.data<T>(), *column = row + total;
      if (columns == 0) return;
      for (int64_t r = first; r < last; ++r)
        for (int64_t c = upper ? edge(r) : 0; c < (upper ? columns : edge(r)); ++c) {
          *row++ = static_cast<T>(r);
          *column++ = static_cast<T>(c);
        }
    }
  });
  return on_device(y, o.device);
}

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                    std::optional<Device> device) {
  return triangle_indices("tril_indices", row, col, offset, false, dtype, device);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, std::optional<DType> dtype,
                    std::optional<Device> device) {
  return triangle_indices("triu_indices", row, col, offset, true, dtype, device);
}

Tensor vander(const Tensor& x, std::optional<int64_t> count) {
  Tensor base = x.dim() ? x : unsqueeze(x, 0);
  if (is_integral(base.dtype(), true)) base = to_dtype(base, DType::Int64);
  int64_t n = count.value_or(base.size(-1));
  CHECK(n > 1, Value, "linalg.vander: expected N of at least 2, got ", n);
  CHECK(n < (1 << 20), Value, "linalg.vander: too many columns, ", n);
  TensorList columns{ones_like(base), base};
  while (static_cast<int64_t>(columns.size()) < n) columns.push_back(mul(columns.back(), base));
  return stack(columns, -1);
}

TensorList unravel_index(const Tensor& indices, const Dims& shape) {
  CHECK(is_integral(indices.dtype(), false), DType, "unravel_index: expected integer indices, got ",
        indices.dtype());
  int64_t total = checked_numel("unravel_index", shape), step = 1;
  if (!indices.is_meta()) {
    Tensor flat = contiguous(on_host(to_dtype(indices, DType::Int64)));
    const int64_t* p = flat.data<int64_t>();
    for (int64_t i = 0; i < flat.numel(); ++i)
      CHECK(p[i] >= -total && p[i] < total, Index, "unravel_index: index ", p[i],
            " is out of bounds for shape ", shape);
  }
  TensorList out(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    Operand size{Scalar(shape[d])};
    Tensor q = row(Row::floor_divide, {indices, Operand(Scalar(step))});
    out[d] = row(Row::remainder, {q, size});
    step *= std::max<int64_t>(shape[d], 1);
  }
  return out;
}

}  // namespace

OP_TABLE(creation_ranges) = {
    op<arange>("_arange(Scalar start, Scalar end, Scalar step, *, ScalarType? dtype=None, "
               "Device? device=None, bool requires_grad=False) -> Tensor",
               "private", "Numbers from start to before end."),
    op<linspace>("linspace(Tensor|Scalar start, Tensor|Scalar end, int steps, *, "
                 "ScalarType? dtype=None, Device? device=None, bool requires_grad=False) "
                 "-> Tensor",
                 "torch", "`steps` evenly spaced numbers from start to end, both included."),
    op<logspace>("logspace(Tensor|Scalar start, Tensor|Scalar end, int steps, float base=10, *, "
                 "ScalarType? dtype=None, Device? device=None, bool requires_grad=False) "
                 "-> Tensor",
                 "torch", "base to the power of evenly spaced numbers."),
    op<eye>("eye(int n, int? m=None, *, ScalarType? dtype=None, Device? device=None, "
            "bool requires_grad=False) -> Tensor",
            "torch", "Ones on the diagonal, zeros elsewhere."),
    op<tril_indices>("tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, "
                     "Device? device=None) -> Tensor",
                     "torch", "Rows and columns of a lower triangle, [2, count]."),
    op<triu_indices>("triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, "
                     "Device? device=None) -> Tensor",
                     "torch", "Rows and columns of an upper triangle, [2, count]."),
    op<vander>("linalg_vander(Tensor x, *, int? N=None) -> Tensor", "linalg",
               "Powers 0 to N - 1 of each element, in a new last dim."),
    op<unravel_index>("unravel_index(Tensor indices, int[] shape) -> Tensor[]", "torch",
                      "The coordinates of flat indices, one tensor per dim."),
};
OP_TABLE_END(creation_ranges);

}  // namespace cresset::ops
