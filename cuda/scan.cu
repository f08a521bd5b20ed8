// CUDA kernels of the scans along a dim: one thread a lane, or blocks over pieces of long lanes.
#include "core/ops/scan.h"

#include <cub/block/block_scan.cuh>

#include "cuda/device.cuh"

namespace cresset::cuda {
namespace {

/// A contiguous tensor as outer x n x inner around the dim.
struct Lanes {
  int64_t outer = 1, n = 1, inner = 1;
  bool reverse;
  Lanes(const Tensor& t, int64_t dim, bool from_end) : reverse(from_end) {
    for (int64_t d = 0; d < t.dim(); ++d) (d < dim ? outer : d > dim ? inner : n) *= t.size(d);
  }
  __host__ __device__ int64_t count() const { return outer * inner; }
  /// Offset of step k of a lane, counted from the end in reverse.
  __device__ int64_t place(int64_t lane, int64_t k) const {
    return (lane / inner * n + (reverse ? n - 1 - k : k)) * inner + lane % inner;
  }
};

// ---- what is scanned: load(place, step), join(earlier, later) and store(place, state)

// Sums wrap for integers; floats and complex numbers are added up in double.
template <class A> __device__ A wrapping_add(A a, A b) { return a + b; }
template <> __device__ int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class A> __device__ A wrapping_multiply(A a, A b) { return a * b; }
template <> __device__ int64_t wrapping_multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

__device__ double log_add_exp(double a, double b) {
  const bool first = a > b || a != a;
  const double high = first ? a : b, low = first ? b : a;
  if (isinf(high) && high == low) return high;
  return high + log1p(exp(low - high));
}
__device__ Complex<double> exponential(Complex<double> z) {
  const double size = exp(z.re);
  return {size * cos(z.im), size * sin(z.im)};
}
__device__ Complex<double> log_add_exp(Complex<double> a, Complex<double> b) {
  const bool first = a.re > b.re || a.re != a.re;
  const Complex<double> high = first ? a : b, low = first ? b : a;
  if (isinf(high.re) && high.re < 0) return high;
  const Complex<double> w = Complex<double>(1) + exponential(low - high);
  return high + Complex<double>(log(hypot(w.re, w.im)), atan2(w.im, w.re));
}

template <ScanOp op, class A> struct Fold {
  using State = A;
  const void* x;
  void* y;
  DType dtype;
  __device__ State load(int64_t p, int64_t) const { return load_as<A>(x, dtype, p); }
  __device__ void store(int64_t p, State s) const { store_as<A>(y, dtype, p, s); }
  __device__ static State join(State a, State b) {
    if constexpr (op == ScanOp::Sum)
      return wrapping_add(a, b);
    else if constexpr (op == ScanOp::Prod)
      return wrapping_multiply(a, b);
    else
      return log_add_exp(a, b);
  }
};

/// r -> a + b r; the first step of a lane has no predecessor, whatever its factor is.
template <class A> struct Affine { A a, b; };
template <class A> struct Recurrence {
  using State = Affine<A>;
  const void *a, *b;
  void* r;
  DType dtype;
  __device__ State load(int64_t p, int64_t k) const {
    return {load_as<A>(a, dtype, p), k ? load_as<A>(b, dtype, p) : A(0)};
  }
  __device__ void store(int64_t p, State s) const { store_as<A>(r, dtype, p, s.a); }
  __device__ static State join(State first, State then) {
    return {wrapping_add(then.a, wrapping_multiply(then.b, first.a)),
            wrapping_multiply(then.b, first.b)};
  }
};

template <class A> struct Reached {
  A value;
  int64_t at;
};
/// NaN stays; of equal elements the last one counts.
template <class A, bool largest> struct Extreme {
  using State = Reached<A>;
  const void* x;
  void* values;
  int64_t* indices;
  DType dtype;
  __device__ State load(int64_t p, int64_t k) const { return {load_as<A>(x, dtype, p), k}; }
  __device__ void store(int64_t p, State s) const {
    store_as<A>(values, dtype, p, s.value);
    indices[p] = s.at;
  }
  __device__ static State join(State a, State b) {
    const bool later = b.value != b.value ||
                       (a.value == a.value && (largest ? b.value >= a.value : b.value <= a.value));
    return later ? b : a;
  }
};

// ---- walks

template <class Op> struct ThreadPerLane {
  Op op;
  Lanes lanes;
  __device__ void operator()(int64_t lane) const {
    typename Op::State s = op.load(lanes.place(lane, 0), 0);
    op.store(lanes.place(lane, 0), s);
    for (int64_t k = 1; k < lanes.n; ++k) {
      const int64_t p = lanes.place(lane, k);
      s = Op::join(s, op.load(p, k));
      op.store(p, s);
    }
  }
};

constexpr int scan_threads = 256, scan_items = 4;
constexpr int64_t scan_tile = scan_threads * scan_items;

template <class Op> struct Join {
  __device__ typename Op::State operator()(typename Op::State a, typename Op::State b) const {
    return Op::join(a, b);
  }
};

// Block (lane, piece): scans its piece behind before[block], or leaves only the piece's fold in
// totals[block].
template <class Op>
__global__ void __launch_bounds__(scan_threads)
    scan_pieces(Op op, Lanes lanes, int64_t pieces, int64_t length,
                const typename Op::State* before, typename Op::State* totals) {
  using State = typename Op::State;
  using Scan = cub::BlockScan<State, scan_threads>;
  __shared__ typename Scan::TempStorage memory;
  __shared__ State last;
  const int64_t lane = blockIdx.x / pieces, piece = blockIdx.x % pieces;
  const int64_t first = piece * length;
  const int64_t end = first + length < lanes.n ? first + length : lanes.n;
  bool carried = before && piece > 0;
  State carry = carried ? before[blockIdx.x] : State{};
  for (int64_t tile = first; tile < end; tile += scan_tile) {
    const int64_t own = tile + threadIdx.x * scan_items;
    const int count = static_cast<int>(end - own < 0            ? 0
                                       : end - own < scan_items ? end - own
                                                                : scan_items);
    State items[scan_items];
    for (int k = 0; k < scan_items; ++k)
      if (k < count) {
        items[k] = op.load(lanes.place(lane, own + k), own + k);
        if (k) items[k] = Op::join(items[k - 1], items[k]);
      }
    // Threads past the end repeat a neighbour's state; nothing after them is read.
    const int64_t room = end - tile;
    const int threads =
        static_cast<int>(room >= scan_tile ? scan_threads : (room + scan_items - 1) / scan_items);
    State total = count ? items[count - 1] : State{}, ahead;
    Scan(memory).InclusiveScan(total, ahead, Join<Op>());
    __shared__ State ends[scan_threads];
    ends[threadIdx.x] = ahead;
    __syncthreads();
    if (!totals)
      for (int k = 0; k < count; ++k) {
        State s = threadIdx.x ? Op::join(ends[threadIdx.x - 1], items[k]) : items[k];
        if (carried) s = Op::join(carry, s);
        op.store(lanes.place(lane, own + k), s);
      }
    if (threadIdx.x == 0) last = ends[threads - 1];
    __syncthreads();
    carry = carried ? Op::join(carry, last) : last;
    carried = true;
  }
  if (totals && threadIdx.x == 0) totals[blockIdx.x] = carry;
}

/// Turns the pieces' folds of a lane into what comes before each piece.
template <class Op> struct Prefixes {
  typename Op::State *totals, *before;
  int64_t pieces;
  __device__ void operator()(int64_t lane) const {
    typename Op::State s = totals[lane * pieces];
    for (int64_t k = 1; k < pieces; ++k) {
      before[lane * pieces + k] = s;
      s = Op::join(s, totals[lane * pieces + k]);
    }
  }
};

template <class Op> void run(const Op& op, const Lanes& lanes, Device device) {
  const int64_t count = lanes.count();
  if (count == 0 || lanes.n == 0) return;
  const int64_t busy = 2 * multiprocessors();
  if (lanes.n <= 64 || (lanes.inner > 1 && count >= 64 * busy))
    return for_each(count, ThreadPerLane<Op>{op, lanes});
  using State = typename Op::State;
  const int64_t wanted = std::max<int64_t>(1, 2 * busy / count);
  const int64_t most = (lanes.n + 4 * scan_tile - 1) / (4 * scan_tile);
  const int64_t tiles = (lanes.n + scan_tile - 1) / scan_tile;
  const int64_t length = (tiles + std::min(wanted, most) - 1) / std::min(wanted, most) * scan_tile;
  const int64_t pieces = (lanes.n + length - 1) / length;
  const unsigned blocks = static_cast<unsigned>(count * pieces);
  Tensor memory;
  State* before = nullptr;
  if (pieces > 1) {
    memory = scratch(2 * sizeof(State) * blocks, device);
    State* totals = static_cast<State*>(data_of(memory));
    before = totals + blocks;
    scan_pieces<Op>
        <<<blocks, scan_threads, 0, current_stream()>>>(op, lanes, pieces, length, nullptr, totals);
    check_launch();
    for_each(count, Prefixes<Op>{totals, before, pieces});
  }
  scan_pieces<Op>
      <<<blocks, scan_threads, 0, current_stream()>>>(op, lanes, pieces, length, before, nullptr);
  check_launch();
}

/// Calls f.operator()<A>() with the type that a dtype is accumulated in.
template <class F> void visit_running(DType dtype, F&& f) {
  if (is_complex(dtype)) return f.template operator()<Complex<double>>();
  if (is_floating(dtype)) return f.template operator()<double>();
  f.template operator()<int64_t>();
}

void scan(ScanOp op, const Tensor& x, int64_t dim, bool reverse, const Tensor& y) {
  const Lanes lanes(x, dim, reverse);
  const void* in = data_of(x);
  void* out = data_of(y);
  const DType dtype = x.dtype();
  visit_running(dtype, [&]<class A>() {
    if (op == ScanOp::Sum)
      run(Fold<ScanOp::Sum, A>{in, out, dtype}, lanes, x.device());
    else if (op == ScanOp::Prod)
      run(Fold<ScanOp::Prod, A>{in, out, dtype}, lanes, x.device());
    else if constexpr (!std::is_integral_v<A>)
      run(Fold<ScanOp::LogSumExp, A>{in, out, dtype}, lanes, x.device());
  });
}

void recurrence(const Tensor& a, const Tensor& b, int64_t dim, bool reverse, const Tensor& r) {
  const Lanes lanes(a, dim, reverse);
  visit_running(a.dtype(), [&]<class A>() {
    run(Recurrence<A>{data_of(a), data_of(b), data_of(r), a.dtype()}, lanes, a.device());
  });
}

template <bool largest>
void extreme_of(const Tensor& x, const Lanes& lanes, const Tensor& values, const Tensor& indices) {
  const void* in = data_of(x);
  void* out = data_of(values);
  int64_t* at = pointer<int64_t>(indices);
  if (is_floating(x.dtype()))
    run(Extreme<double, largest>{in, out, at, x.dtype()}, lanes, x.device());
  else
    run(Extreme<int64_t, largest>{in, out, at, x.dtype()}, lanes, x.device());
}

void extreme(const Tensor& x, int64_t dim, bool largest, const Tensor& values,
             const Tensor& indices) {
  const Lanes lanes(x, dim, false);
  if (largest)
    extreme_of<true>(x, lanes, values, indices);
  else
    extreme_of<false>(x, lanes, values, indices);
}

}  // namespace

template <> const ScanKernels& cuda_table<ScanKernels>() {
  static constexpr ScanKernels table = {.scan = scan, .recurrence = recurrence, .extreme = extreme};
  return table;
}

}  // namespace cresset::cuda
