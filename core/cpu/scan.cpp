// CPU kernels of the scans along a dim.
#include "core/ops/scan.h"

#include <cmath>

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

constexpr int64_t lane_block = 64;

// Accumulator of a scan: double for floats, so that rounding does not build up.
template <class T> struct Running { using Type = T; };
template <> struct Running<float> { using Type = double; };
template <> struct Running<Half> { using Type = double; };
template <> struct Running<BFloat16> { using Type = double; };
template <> struct Running<std::complex<float>> { using Type = std::complex<double>; };

template <class A, class T> A raise(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return static_cast<float>(x);
  else
    return A(x);
}
template <class T, class A> T lower(A x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

// A contiguous tensor as outer x n x inner around `dim`, walked in blocks of neighbouring lanes.
struct Lanes {
  int64_t outer = 1, n = 1, inner = 1;
  Lanes(const Tensor& t, int64_t dim) {
    for (int64_t d = 0; d < t.dim(); ++d) (d < dim ? outer : d > dim ? inner : n) *= t.size(d);
  }
  // body(offset of the first element, number of lanes), over disjoint blocks.
  template <class Body> void each(Body&& body) const {
    if (outer == 0 || n == 0 || inner == 0) return;
    const int64_t blocks = (inner + lane_block - 1) / lane_block;
    const int64_t work = n * std::min(inner, lane_block);
    parallel_for(0, outer * blocks, 1 + 16384 / work, [&](int64_t lo, int64_t hi) {
      for (int64_t t = lo; t < hi; ++t) {
        const int64_t from = t % blocks * lane_block;
        body(t / blocks * n * inner + from, std::min(lane_block, inner - from));
      }
    });
  }
  // Offset of step k, counted from the end when `reverse`.
  int64_t step(int64_t k, bool reverse) const { return (reverse ? n - 1 - k : k) * inner; }
};

template <class A> A log_add_exp(A a, A b) {
  if constexpr (std::is_floating_point_v<A>) {
    const A high = a > b || a != a ? a : b, low = a > b || a != a ? b : a;
    if (std::isinf(high) && high == low) return high;
    return high + std::log1p(std::exp(low - high));
  } else {
    const bool first = a.real() > b.real() || a.real() != a.real();
    const A high = first ? a : b, low = first ? b : a;
    if (std::isinf(high.real()) && high.real() < 0) return high;
    return high + std::log(A(1) + std::exp(low - high));
  }
}

template <class T, class Join>
void scan_with(const Tensor& x, int64_t dim, bool reverse, const Tensor& y, Join&& join) {
  using A = typename Running<T>::Type;
  const Lanes lanes(x, dim);
  const T* in = x.data<T>();
  T* out = y.data<T>();
  lanes.each([&](int64_t at, int64_t cols) {
    A acc[lane_block];
    const int64_t first = at + lanes.step(0, reverse);
    for (int64_t j = 0; j < cols; ++j) {
      acc[j] = raise<A>(in[first + j]);
      out[first + j] = in[first + j];
    }
    for (int64_t k = 1; k < lanes.n; ++k) {
      const int64_t p = at + lanes.step(k, reverse);
      for (int64_t j = 0; j < cols; ++j) {
        acc[j] = join(acc[j], raise<A>(in[p + j]));
        out[p + j] = lower<T>(acc[j]);
      }
    }
  });
}

// Sums and products of integers wrap.
template <class A> A add(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <class A> A multiply(A a, A b) {
  if constexpr (std::is_integral_v<A>)
    return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

void scan(ScanOp op, const Tensor& x, int64_t dim, bool reverse, const Tensor& y) {
  visit_dtype(x.dtype(), [&]<class T>() {
    using A = typename Running<T>::Type;
    if (op == ScanOp::Sum)
      return scan_with<T>(x, dim, reverse, y, [](A a, A b) { return add(a, b); });
    if (op == ScanOp::Prod)
      return scan_with<T>(x, dim, reverse, y, [](A a, A b) { return multiply(a, b); });
    if constexpr (!std::is_integral_v<T>)
      scan_with<T>(x, dim, reverse, y, [](A a, A b) { return log_add_exp(a, b); });
  });
}

void recurrence(const Tensor& a, const Tensor& b, int64_t dim, bool reverse, const Tensor& r) {
  const Lanes lanes(a, dim);
  visit_dtype(a.dtype(), [&]<class T>() {
    using A = typename Running<T>::Type;
    const T *pa = a.data<T>(), *pb = b.data<T>();
    T* out = r.data<T>();
    lanes.each([&](int64_t at, int64_t cols) {
      A acc[lane_block] = {};
      for (int64_t k = 0; k < lanes.n; ++k) {
        const int64_t p = at + lanes.step(k, reverse);
        for (int64_t j = 0; j < cols; ++j) {
          // The first step has no predecessor, whatever its factor is.
          const A carried = k ? multiply(raise<A>(pb[p + j]), acc[j]) : A(0);
          acc[j] = add(raise<A>(pa[p + j]), carried);
          out[p + j] = lower<T>(acc[j]);
        }
      }
    });
  });
}

void extreme(const Tensor& x, int64_t dim, bool largest, const Tensor& values,
             const Tensor& indices) {
  const Lanes lanes(x, dim);
  visit_dtype(x.dtype(), [&]<class T>() {
    if constexpr (requires(T a) { a < a; }) {
      const T* in = x.data<T>();
      T* out = values.data<T>();
      int64_t* where = indices.data<int64_t>();
      lanes.each([&](int64_t at, int64_t cols) {
        for (int64_t j = 0; j < cols; ++j) {
          T best = in[at + j];
          int64_t best_at = 0;
          for (int64_t k = 0; k < lanes.n; ++k) {
            const int64_t p = at + k * lanes.inner + j;
            const T v = in[p];
            // NaN stays; of equal elements the last one counts.
            if (v != v || (best == best && (largest ? v >= best : v <= best))) {
              best = v;
              best_at = k;
            }
            out[p] = best;
            where[p] = best_at;
          }
        }
      });
    }
  });
}

}  // namespace

template <> const ScanKernels& cpu_kernels<ScanKernels>() {
  static constexpr ScanKernels table = {.scan = scan, .recurrence = recurrence, .extreme = extreme};
  return table;
}

}  // namespace cresset
