// CPU kernels of pooling: the fast two-dimensional ones, and loops over any windows.
#include "core/ops/pool.h"

#include <limits>

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

template <class F> void visit_pool(DType dtype, F&& f) {
  if (dtype == DType::Float32) return f.template operator()<float>();
  if (dtype == DType::Float64) return f.template operator()<double>();
  f.template operator()<int64_t>();
}

int64_t volume(const std::array<int64_t, 3>& e) { return e[0] * e[1] * e[2]; }

/// Calls visit(plane, out position, windows of the three axes) for every result, in parallel.
template <class Visit> void for_each_window(const PoolWindows& p, Visit&& visit) {
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max(volume(p.in), volume(p.out)));
  parallel_for(0, p.planes, grain, [&](int64_t lo, int64_t hi) {
    for (int64_t plane = lo; plane < hi; ++plane) {
      int64_t at = plane * volume(p.out);
      for (int64_t i = 0; i < p.out[0]; ++i) {
        const PoolWindow z = p.axis[0].window(i);
        for (int64_t j = 0; j < p.out[1]; ++j) {
          const PoolWindow y = p.axis[1].window(j);
          for (int64_t k = 0; k < p.out[2]; ++k)
            visit(plane * volume(p.in), at++, z, y, p.axis[2].window(k));
        }
      }
    }
  });
}

/// Calls visit(index in the plane) for the elements of one window.
template <class Visit>
void for_each_element(const PoolWindows& p, const PoolWindow& z, const PoolWindow& y,
                      const PoolWindow& x, Visit&& visit) {
  for (int64_t i = z.lo; i < z.hi; i += p.step[0])
    for (int64_t j = y.lo; j < y.hi; j += p.step[1])
      for (int64_t k = x.lo; k < x.hi; k += p.step[2]) visit((i * p.in[1] + j) * p.in[2] + k);
}

template <class T> void max_windows(const PoolWindows& p, const T* x, T* y, int64_t* indices) {
  for_each_window(p, [&](int64_t from, int64_t to, const PoolWindow& a, const PoolWindow& b,
                         const PoolWindow& c) {
    T best = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                  : std::numeric_limits<T>::lowest();
    int64_t index = (a.lo * p.in[1] + b.lo) * p.in[2] + c.lo;
    for_each_element(p, a, b, c, [&](int64_t i) {
      const T v = x[from + i];
      if (v > best || v != v) best = v, index = i;
    });
    y[to] = best;
    indices[to] = index;
  });
}

template <class T> T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

int64_t divisor_of(const PoolWindows& p, const PoolWindow& a, const PoolWindow& b,
                   const PoolWindow& c) {
  return p.divisor_override ? p.divisor_override : a.count * b.count * c.count;
}

template <class T> void avg_windows(const PoolWindows& p, const T* x, T* y) {
  for_each_window(p, [&](int64_t from, int64_t to, const PoolWindow& a, const PoolWindow& b,
                         const PoolWindow& c) {
    T sum(0);
    int64_t count = 0;
    for_each_element(p, a, b, c, [&](int64_t i) { sum = add(sum, x[from + i]), ++count; });
    y[to] = count ? pool_mean(sum, divisor_of(p, a, b, c)) : T(0);
  });
}

template <class T> void avg_windows_backward(const PoolWindows& p, const T* gy, T* gx) {
  std::fill_n(gx, p.planes * volume(p.in), T(0));
  for_each_window(p, [&](int64_t to, int64_t from, const PoolWindow& a, const PoolWindow& b,
                         const PoolWindow& c) {
    const bool empty = a.lo >= a.hi || b.lo >= b.hi || c.lo >= c.hi;
    const T share = empty ? T(0) : pool_mean(gy[from], divisor_of(p, a, b, c));
    for_each_element(p, a, b, c, [&](int64_t i) { gx[to + i] = add(gx[to + i], share); });
  });
}

void max(const PoolWindows& p, const Tensor& x, const Tensor& y, const Tensor& indices) {
  visit_pool(y.dtype(), [&]<class T>() {
    if (p.regular)
      max_pool2d_forward<T>(p.shape, x.data<T>(), y.data<T>(), indices.data<int64_t>());
    else
      max_windows<T>(p, x.data<T>(), y.data<T>(), indices.data<int64_t>());
  });
}

void avg(const PoolWindows& p, const Tensor& x, const Tensor& y) {
  visit_pool(y.dtype(), [&]<class T>() {
    if (p.regular)
      avg_pool2d_forward<T>(p.shape, p.divisor, x.data<T>(), y.data<T>());
    else
      avg_windows<T>(p, x.data<T>(), y.data<T>());
  });
}

void avg_backward(const PoolWindows& p, const Tensor& gy, const Tensor& gx) {
  visit_pool(gx.dtype(), [&]<class T>() {
    if (p.regular)
      avg_pool2d_backward<T>(p.shape, p.divisor, gy.data<T>(), gx.data<T>());
    else
      avg_windows_backward<T>(p, gy.data<T>(), gx.data<T>());
  });
}

void scatter(int64_t planes, const Tensor& gy, const Tensor& indices, const Tensor& gx) {
  if (planes == 0) return;
  const PoolShape s{.planes = planes,
                    .h = 1,
                    .w = gx.numel() / planes,
                    .kh = 1,
                    .kw = 1,
                    .oh = 1,
                    .ow = gy.numel() / planes,
                    .stride_h = 1,
                    .stride_w = 1,
                    .pad_h = 0,
                    .pad_w = 0};
  visit_pool(gx.dtype(), [&]<class T>() {
    max_pool2d_backward<T>(s, gy.data<T>(), indices.data<int64_t>(), gx.data<T>());
  });
}

void place(int64_t planes, const Tensor& x, const Tensor& indices, const Tensor& y) {
  if (planes == 0) return;
  const int64_t in = x.numel() / planes, out = y.numel() / planes;
  const int64_t* at = indices.data<int64_t>();
  visit_pool(y.dtype(), [&]<class T>() {
    parallel_for(0, planes, std::max<int64_t>(1, 32768 / std::max<int64_t>(in, 1)),
                 [&](int64_t lo, int64_t hi) {
                   for (int64_t i = lo * in; i < hi * in; ++i)
                     y.data<T>()[i / in * out + at[i]] = x.data<T>()[i];
                 });
  });
}

}  // namespace

template <> const PoolKernels& cpu_kernels<PoolKernels>() {
  static constexpr PoolKernels table = {
      .max = max, .avg = avg, .avg_backward = avg_backward, .scatter = scatter, .place = place};
  return table;
}

}  // namespace cresset
