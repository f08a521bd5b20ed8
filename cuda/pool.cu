// CUDA kernels of pooling: one thread a result, gradients gathered without atomics where they can.
#include "core/ops/pool.h"

#include "cuda/ordered.cuh"

namespace cresset::cuda {
namespace {

template <class F> void visit_pool(DType dtype, F&& f) {
  if (dtype == DType::Int64) return f.template operator()<int64_t>();
  visit_floating(dtype, std::forward<F>(f));
}

/// PoolWindows in the integer type of its sizes: 32 bits nearly always.
template <class I> struct Axis {
  I in, out, kernel, stride, pad, dilation;
  bool adaptive, count_pad;

  explicit Axis(const PoolAxis& a)
      : in(static_cast<I>(a.in)),
        out(static_cast<I>(a.out)),
        kernel(static_cast<I>(a.kernel)),
        stride(static_cast<I>(a.stride)),
        pad(static_cast<I>(a.pad)),
        dilation(static_cast<I>(a.dilation)),
        adaptive(a.adaptive),
        count_pad(a.count_include_pad) {}

  struct Window {
    I lo, hi, count;
  };
  __device__ Window window(I at) const {
    if (adaptive) {
      const I lo = static_cast<I>(static_cast<int64_t>(at) * in / out);
      const I hi = static_cast<I>((static_cast<int64_t>(at + 1) * in + out - 1) / out);
      return {lo, hi, hi - lo};
    }
    const I begin = at * stride - pad, end = begin + dilation * (kernel - 1) + 1;
    const I lo = begin < 0 ? begin + (-begin + dilation - 1) / dilation * dilation : begin;
    I hi = end < in ? end : in;
    hi = hi > lo ? hi : lo;
    const I padded = end < in + pad ? end : in + pad;
    return {lo, hi, count_pad ? padded - begin : hi - lo};
  }
  /// The results [first, last] whose windows may hold element i; dilation is 1.
  __device__ void reached_by(I i, I* first, I* last) const {
    if (adaptive) {
      *first = static_cast<I>(static_cast<int64_t>(i) * out / in);
      *last = static_cast<I>((static_cast<int64_t>(i + 1) * out - 1) / in);
    } else {
      *first = i + pad < kernel ? 0 : (i + pad - kernel) / stride + 1;
      *last = (i + pad) / stride;
    }
    if (*last >= out) *last = out - 1;
  }
};

template <class I> struct Windows {
  Axis<I> z, y, x;
  int64_t planes, divisor_override;

  Windows(const PoolWindows& p, const std::array<PoolAxis, 3>& axes)
      : z(axes[0]),
        y(axes[1]),
        x(axes[2]),
        planes(p.planes),
        divisor_override(p.divisor_override) {}
  __device__ int64_t in_volume() const { return static_cast<int64_t>(z.in) * y.in * x.in; }

  /// Splits a number into plane and place, by the extents of one side.
  struct Place {
    int64_t plane;
    I z, y, x;
  };
  __device__ static Place place(int64_t at, I d, I h, I w) {
    const int64_t rows = at / w, slices = rows / h, plane = slices / d;
    return {plane, static_cast<I>(slices - plane * d), static_cast<I>(rows - slices * h),
            static_cast<I>(at - rows * w)};
  }
  __device__ Place result(int64_t at) const { return place(at, z.out, y.out, x.out); }
  __device__ Place element(int64_t at) const { return place(at, z.in, y.in, x.in); }
};

/// The axes; those of a regular pooling are described by its shape alone.
std::array<PoolAxis, 3> axes_of(const PoolWindows& p) {
  if (!p.regular) return p.axis;
  const PoolShape& s = p.shape;
  const bool pads = p.divisor.count_include_pad;
  return {PoolAxis{},
          {.in = s.h,
           .out = s.oh,
           .kernel = s.kh,
           .stride = s.stride_h,
           .pad = s.pad_h,
           .dilation = s.dil_h,
           .count_include_pad = pads},
          {.in = s.w,
           .out = s.ow,
           .kernel = s.kw,
           .stride = s.stride_w,
           .pad = s.pad_w,
           .dilation = s.dil_w,
           .count_include_pad = pads}};
}

template <class I> bool fits(const std::array<PoolAxis, 3>& axes) {
  for (const PoolAxis& a : axes)
    if (a.in + 2 * a.pad + a.dilation * a.kernel + a.stride * a.out >
        std::numeric_limits<I>::max() / 2)
      return false;
  return true;
}

/// f(windows) in 32 bits where the sizes allow it.
template <class F> void visit_windows(const PoolWindows& p, F&& f) {
  const std::array<PoolAxis, 3> axes = axes_of(p);
  if (fits<int32_t>(axes))
    f(Windows<int32_t>(p, axes));
  else
    f(Windows<int64_t>(p, axes));
}

template <class T, class I> struct MaxPool {
  Windows<I> p;
  const T* x;
  T* y;
  int64_t* indices;
  __device__ void operator()(int64_t at) const {
    const auto r = p.result(at);
    const auto a = p.z.window(r.z), b = p.y.window(r.y), c = p.x.window(r.x);
    const T* plane = x + r.plane * p.in_volume();
    using A = Acc<T>;
    A best = std::numeric_limits<A>::has_infinity ? -std::numeric_limits<A>::infinity()
                                                  : std::numeric_limits<A>::lowest();
    int64_t index = (static_cast<int64_t>(a.lo) * p.y.in + b.lo) * p.x.in + c.lo;
    for (I i = a.lo; i < a.hi; i += p.z.dilation)
      for (I j = b.lo; j < b.hi; j += p.y.dilation) {
        const int64_t row = (static_cast<int64_t>(i) * p.y.in + j) * p.x.in;
        for (I k = c.lo; k < c.hi; k += p.x.dilation) {
          const A v = widen(plane[row + k]);
          if (v > best || v != v) {
            best = v;
            index = row + k;
          }
        }
      }
    y[at] = narrow<T>(best);
    indices[at] = index;
  }
};

template <class T, class I, class Window>
__device__ Acc<T> divisor_of(const Windows<I>& p, const Window& a, const Window& b,
                             const Window& c) {
  return static_cast<Acc<T>>(
      p.divisor_override ? p.divisor_override : static_cast<int64_t>(a.count) * b.count * c.count);
}

template <class T, class I> struct AvgPool {
  Windows<I> p;
  const T* x;
  T* y;
  __device__ void operator()(int64_t at) const {
    const auto r = p.result(at);
    const auto a = p.z.window(r.z), b = p.y.window(r.y), c = p.x.window(r.x);
    const T* plane = x + r.plane * p.in_volume();
    Acc<T> sum = 0;
    bool any = false;
    for (I i = a.lo; i < a.hi; ++i)
      for (I j = b.lo; j < b.hi; ++j) {
        const int64_t row = (static_cast<int64_t>(i) * p.y.in + j) * p.x.in;
        for (I k = c.lo; k < c.hi; ++k) {
          sum += widen(plane[row + k]);
          any = true;
        }
      }
    y[at] = narrow<T>(any ? sum / divisor_of<T>(p, a, b, c) : Acc<T>(0));
  }
};

// Every element collects its share of the results that it took part in, in a fixed order.
template <class T, class I> struct AvgPoolBackward {
  Windows<I> p;
  const T* gy;
  T* gx;
  __device__ void operator()(int64_t at) const {
    const auto e = p.element(at);
    I z0, z1, y0, y1, x0, x1;
    p.z.reached_by(e.z, &z0, &z1);
    p.y.reached_by(e.y, &y0, &y1);
    p.x.reached_by(e.x, &x0, &x1);
    Acc<T> sum = 0;
    for (I i = z0; i <= z1; ++i) {
      const auto a = p.z.window(i);
      if (e.z < a.lo || e.z >= a.hi) continue;
      for (I j = y0; j <= y1; ++j) {
        const auto b = p.y.window(j);
        if (e.y < b.lo || e.y >= b.hi) continue;
        for (I k = x0; k <= x1; ++k) {
          const auto c = p.x.window(k);
          if (e.x < c.lo || e.x >= c.hi) continue;
          const int64_t from = ((e.plane * p.z.out + i) * p.y.out + j) * p.x.out + k;
          sum += widen(gy[from]) / divisor_of<T>(p, a, b, c);
        }
      }
    }
    gx[at] = narrow<T>(sum);
  }
};

void max(const PoolWindows& p, const Tensor& x, const Tensor& y, const Tensor& indices) {
  visit_pool(y.dtype(), [&]<class T>() {
    visit_windows(p, [&]<class I>(const Windows<I>& w) {
      for_each(y.numel(),
               MaxPool<T, I>{w, pointer<T>(x), pointer<T>(y), pointer<int64_t>(indices)});
    });
  });
}

void avg(const PoolWindows& p, const Tensor& x, const Tensor& y) {
  visit_pool(y.dtype(), [&]<class T>() {
    visit_windows(p, [&]<class I>(const Windows<I>& w) {
      for_each(y.numel(), AvgPool<T, I>{w, pointer<T>(x), pointer<T>(y)});
    });
  });
}

void avg_backward(const PoolWindows& p, const Tensor& gy, const Tensor& gx) {
  visit_pool(gx.dtype(), [&]<class T>() {
    visit_windows(p, [&]<class I>(const Windows<I>& w) {
      for_each(gx.numel(), AvgPoolBackward<T, I>{w, pointer<T>(gy), pointer<T>(gx)});
    });
  });
}

template <class T>
void scatter_as(int64_t planes, const Tensor& gy, const Tensor& indices, const Tensor& gx) {
  const int64_t in = gx.numel() / planes, out = gy.numel() / planes;
  const T* from = pointer<T>(gy);
  const int64_t* at = pointer<int64_t>(indices);
  T* to = pointer<T>(gx);
  CUDA_CHECK(cudaMemsetAsync(to, 0, sizeof(T) * static_cast<size_t>(gx.numel()), current_stream()));
  if (out == 0) return;
  scattered_sums<T>(
      gy.numel(), gx.numel(), gx.device(),
      [=] __device__(int64_t i) {
        return at[i] >= 0 && at[i] < in ? i / out * in + at[i] : int64_t{-1};
      },
      [=] __device__(int64_t i) { return from[i]; }, to);
}

void scatter(int64_t planes, const Tensor& gy, const Tensor& indices, const Tensor& gx) {
  if (planes == 0 || gx.numel() == 0) return;
  visit_pool(gx.dtype(), [&]<class T>() { scatter_as<T>(planes, gy, indices, gx); });
}

template <class T>
void place_as(int64_t planes, const Tensor& x, const Tensor& indices, const Tensor& y) {
  const int64_t in = x.numel() / planes, out = y.numel() / planes;
  const T* from = pointer<T>(x);
  const int64_t* at = pointer<int64_t>(indices);
  T* to = pointer<T>(y);
  scattered_writes<T>(
      x.numel(), y.numel(), y.device(),
      [=] __device__(int64_t i) {
        return at[i] >= 0 && at[i] < out ? i / in * out + at[i] : int64_t{-1};
      },
      [=] __device__(int64_t i) { return from[i]; }, to);
}

void place(int64_t planes, const Tensor& x, const Tensor& indices, const Tensor& y) {
  if (planes == 0) return;
  visit_pool(y.dtype(), [&]<class T>() { place_as<T>(planes, x, indices, y); });
}

}  // namespace

template <> const PoolKernels& cuda_table<PoolKernels>() {
  static constexpr PoolKernels table = {
      .max = max, .avg = avg, .avg_backward = avg_backward, .scatter = scatter, .place = place};
  return table;
}

}  // namespace cresset::cuda
