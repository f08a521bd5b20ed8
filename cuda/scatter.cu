// CUDA kernels of gather and scatter; every index is checked against the size of its dim.
#include "core/ops/scatter.h"

#include "cuda/ordered.cuh"

namespace cresset::cuda {
namespace {

// Strides of `t` along the index's dims; the dim that the index replaces does not move.
Dims strides_without(const Tensor& t, int64_t dim) {
  Dims s = t.sizes().empty() ? Dims{0} : t.strides();
  if (dim >= 0) s[static_cast<size_t>(dim)] = 0;
  return s;
}
Dims at_least_1d(const Dims& sizes, int64_t fill) { return sizes.empty() ? Dims{fill} : sizes; }

int64_t size_along(const Tensor& t, int64_t dim) { return t.dim() ? t.size(dim) : 1; }
int64_t step_along(const Tensor& t, int64_t dim) { return t.dim() ? t.stride(dim) : 0; }

template <class W>
void gather_words(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  const Walks<2> walk =
      make_walks<2>({at_least_1d(index.sizes(), 1),
                     {strides_without(self, dim), at_least_1d(index.strides(), 0)}});
  const int64_t step = step_along(self, dim), size = size_along(self, dim);
  const W* from = static_cast<const W*>(data_of(self));
  const int64_t* at = pointer<int64_t>(index);
  W* to = static_cast<W*>(data_of(out));
  for_each(out.numel(), [=] __device__(int64_t i) {
    int64_t offset[2];
    walk.offsets(i, offset);
    const int64_t j = at[offset[1]];
    to[i] = j < 0 || j >= size ? W{} : from[offset[0] + j * step];
  });
}

void gather(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& out) {
  visit_size(itemsize(self.dtype()), [&]<class W>() { gather_words<W>(self, dim, index, out); });
}

/// One more than the largest offset of an element.
int64_t reach_of(const Tensor& t) {
  int64_t reach = 1;
  for (int64_t d = 0; d < t.dim(); ++d) reach += (t.size(d) - 1) * t.stride(d);
  return reach;
}

/// Where a scatter writes element i and what it reads; -1 where the index is out of range.
struct Scatter {
  Walks<3> walk;
  int64_t step, size;
  const int64_t* index;

  Scatter(const Tensor& self, int64_t dim, const Tensor& at, const Tensor& src)
      : walk(make_walks<3>({at_least_1d(at.sizes(), 1),
                            {strides_without(self, dim), at_least_1d(at.strides(), 0),
                             at_least_1d(src.strides(), 0)}})),
        step(step_along(self, dim)),
        size(size_along(self, dim)),
        index(pointer<int64_t>(at)) {}
  __device__ int64_t target(int64_t i) const {
    int64_t offset[3];
    walk.offsets(i, offset);
    const int64_t j = index[offset[1]];
    return j < 0 || j >= size ? -1 : offset[0] + j * step;
  }
  __device__ int64_t source(int64_t i) const {
    int64_t offset[3];
    walk.offsets(i, offset);
    return offset[2];
  }
};

template <class W>
void assign_words(const Tensor& self, const Scatter& s, const Tensor& src, int64_t n) {
  W* to = static_cast<W*>(data_of(self));
  const W* from = static_cast<const W*>(data_of(src));
  scattered_writes<W>(
      n, reach_of(self), self.device(), [=] __device__(int64_t i) { return s.target(i); },
      [=] __device__(int64_t i) { return from[s.source(i)]; }, to);
}

template <class T> __device__ T combined(ScatterOp op, T to, T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return op == ScatterOp::Sum || op == ScatterOp::Amax ? to || x : to && x;
  } else if constexpr (is_complex_type<T>) {
    return op == ScatterOp::Prod ? to * x : to + x;
  } else {
    const Acc<T> a = widen(to), b = widen(x);
    switch (op) {
      case ScatterOp::Prod: return narrow<T>(a * b);
      case ScatterOp::Amax: return b > a || b != b ? x : to;
      case ScatterOp::Amin: return b < a || b != b ? x : to;
      default: return narrow<T>(a + b);
    }
  }
}

template <class T>
void reduce_as(const Tensor& self, const Scatter& s, const Tensor& src, int64_t n, ScatterOp op) {
  T* to = pointer<T>(self);
  const T* from = pointer<T>(src);
  if (op == ScatterOp::Sum) {
    scattered_sums<T>(
        n, reach_of(self), self.device(), [=] __device__(int64_t i) { return s.target(i); },
        [=] __device__(int64_t i) { return from[s.source(i)]; }, to);
  } else if constexpr (sizeof(T) == 16) {
    // No exchange of 16 bytes on every GPU: one thread goes through them in order.
    for_each(1, [=] __device__(int64_t) {
      for (int64_t i = 0; i < n; ++i) {
        const int64_t place = s.target(i);
        if (place >= 0) to[place] = combined(op, to[place], from[s.source(i)]);
      }
    });
  } else {
    for_each(n, [=] __device__(int64_t i) {
      const int64_t place = s.target(i);
      if (place < 0) return;
      const T x = from[s.source(i)];
      atomic_update(to + place, [op, x](T v) { return combined(op, v, x); });
    });
  }
}

void scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
             ScatterOp op) {
  const int64_t n = index.numel();
  if (n == 0) return;
  const Scatter s(self, dim, index, src);
  if (op == ScatterOp::Assign)
    return visit_size(itemsize(self.dtype()), [&]<class W>() { assign_words<W>(self, s, src, n); });
  visit_device(self.dtype(), [&]<class T>() { reduce_as<T>(self, s, src, n, op); });
}

}  // namespace

template <> const ScatterKernels& cuda_table<ScatterKernels>() {
  static constexpr ScatterKernels table = {.gather = gather, .scatter = scatter};
  return table;
}

}  // namespace cresset::cuda
