// CPU kernels of gather and scatter.
#include "core/ops/scatter.h"

#include "core/base/half.h"
#include "core/cpu/parallel.h"
#include "core/cpu/strided.h"

namespace cresset {
namespace {

// Strides of `t` along the index's dims; the dim that the index replaces does not move.
Dims strides_without(const Tensor& t, int64_t dim) {
  Dims s = t.sizes().empty() ? Dims{0} : t.strides();
  if (dim >= 0) s[dim] = 0;
  return s;
}

Dims at_least_1d(const Dims& sizes, int64_t fill) { return sizes.empty() ? Dims{fill} : sizes; }

void gather(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  const int64_t step = self.dim() ? self.stride(dim) : 0;
  const Strided<2> walk =
      coalesced<2>({at_least_1d(index.sizes(), 1),
                    {strides_without(self, dim), at_least_1d(index.strides(), 0)}});
  const int64_t s0 = walk.strides[0].back(), s1 = walk.strides[1].back();
  const int64_t* at = index.data<int64_t>();
  visit_bytes(itemsize(self.dtype()), [&]<class T>() {
    const T* from = self.data<T>();
    T* to = out.data<T>();
    auto run = [&](const std::array<int64_t, 2>& offset, int64_t first, int64_t n) {
      const T* x = from + offset[0];
      const int64_t* i = at + offset[1];
      for (int64_t j = 0; j < n; ++j) to[first + j] = x[j * s0 + i[j * s1] * step];
    };
    parallel_for(0, out.numel(), 16384,
                 [&](int64_t lo, int64_t hi) { for_each_run(walk, lo, hi, run); });
  });
}

template <class T> constexpr bool is_complex_type = requires { typename T::value_type; };

template <class T> bool not_a_number(const T& x) { return x != x; }

template <ScatterOp op, class T> void combine(T& to, const T& x) {
  if constexpr (op == ScatterOp::Assign) {
    to = x;
  } else if constexpr (std::is_same_v<T, bool>) {
    to = op == ScatterOp::Sum || op == ScatterOp::Amax ? to || x : to && x;
  } else if constexpr (op == ScatterOp::Sum) {
    to = static_cast<T>(to + x);
  } else if constexpr (op == ScatterOp::Prod) {
    to = static_cast<T>(to * x);
  } else if constexpr (!is_complex_type<T>) {
    bool better = op == ScatterOp::Amax ? x > to : x < to;
    if (better || not_a_number(x)) to = x;
  }
}

// Threads share out one dim other than `dim`, so that no two write to one element.
template <ScatterOp op, class T>
void scatter_as(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  Strided<3> s{
      at_least_1d(index.sizes(), 1),
      {strides_without(self, dim), at_least_1d(index.strides(), 0), at_least_1d(src.strides(), 0)}};
  const int64_t step = self.dim() ? self.stride(dim) : 0;
  T* to = self.data<T>();
  const T* from = src.data<T>();
  const int64_t* at = index.data<int64_t>();
  size_t shared = static_cast<size_t>(dim);
  for (size_t d = s.sizes.size(); d-- > 0;)
    if (d != static_cast<size_t>(dim) &&
        (shared == static_cast<size_t>(dim) || s.sizes[d] > s.sizes[shared]))
      shared = d;
  auto piece = [&](int64_t lo, int64_t hi) {
    Strided<3> part = s;
    part.sizes[shared] = hi - lo;
    part = coalesced(part);
    const std::array<int64_t, 3> base{lo * s.strides[0][shared], lo * s.strides[1][shared],
                                      lo * s.strides[2][shared]};
    const int64_t s0 = part.strides[0].back(), s1 = part.strides[1].back(),
                  s2 = part.strides[2].back();
    for_each_run(part, 0, part.numel(), [&](const std::array<int64_t, 3>& o, int64_t, int64_t n) {
      T* y = to + base[0] + o[0];
      const int64_t* i = at + base[1] + o[1];
      const T* x = from + base[2] + o[2];
      for (int64_t j = 0; j < n; ++j) combine<op>(y[j * s0 + i[j * s1] * step], x[j * s2]);
    });
  };
  int64_t size = s.sizes[shared];
  if (shared == static_cast<size_t>(dim)) return piece(0, size);
  parallel_for(0, size, std::max<int64_t>(1, 16384 * size / s.numel()), piece);
}

template <ScatterOp op>
void scatter_op(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  visit_dtype(self.dtype(), [&]<class T>() { scatter_as<op, T>(self, dim, index, src); });
}

void scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
             ScatterOp op) {
  if (index.numel() == 0) return;
  switch (op) {
    case ScatterOp::Assign:
      return visit_bytes(itemsize(self.dtype()), [&]<class T>() {
        scatter_as<ScatterOp::Assign, T>(self, dim, index, src);
      });
    case ScatterOp::Sum: return scatter_op<ScatterOp::Sum>(self, dim, index, src);
    case ScatterOp::Prod: return scatter_op<ScatterOp::Prod>(self, dim, index, src);
    case ScatterOp::Amax: return scatter_op<ScatterOp::Amax>(self, dim, index, src);
    case ScatterOp::Amin: return scatter_op<ScatterOp::Amin>(self, dim, index, src);
  }
}

}  // namespace

template <> const ScatterKernels& cpu_kernels<ScatterKernels>() {
  static constexpr ScatterKernels table = {.gather = gather, .scatter = scatter};
  return table;
}

}  // namespace cresset
