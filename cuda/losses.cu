// CUDA kernels of the losses: classes by rows of scores, and differences of two tensors.
#include "core/ops/losses.h"

#include "cuda/device.cuh"
#include "cuda/device_error.h"

namespace cresset::cuda {
namespace {

__device__ __forceinline__ float exponential(float x) { return expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }
__device__ __forceinline__ float logarithm(float x) { return logf(x); }
__device__ __forceinline__ double logarithm(double x) { return log(x); }

// ---- losses over classes

/// A ClassLoss as kernels take it.
template <class T> struct Classes {
  int64_t rows, classes, inner, ignore;
  const T *x, *w;
  const int64_t* target;
  Acc<T> keep, share;
  IndexReport report;

  explicit Classes(const ClassLoss& in)
      : rows(in.n * in.inner),
        classes(in.classes),
        inner(in.inner),
        ignore(in.ignore_index),
        x(pointer<T>(in.scores)),
        w(pointer<T>(in.weight)),
        target(pointer<int64_t>(in.target)),
        keep(static_cast<Acc<T>>(1 - in.smoothing)),
        share(static_cast<Acc<T>>(in.smoothing / static_cast<double>(in.classes))),
        report(index_report()) {}
  __device__ Acc<T> weight(int64_t c) const { return w ? widen(w[c]) : Acc<T>(1); }
  __device__ int64_t first(int64_t row) const {
    return row / inner * classes * inner + row % inner;
  }
  /// The row's class, or -1 where it is ignored or out of range (which is announced).
  __device__ int64_t class_of(int64_t row) const {
    const int64_t t = target[row];
    if (t == ignore) return -1;
    if (t >= 0 && t < classes) return t;
    report(t, 0, classes);
    return -1;
  }
};

/// log sum exp in one pass: the largest score so far and the sum of exp(score - largest).
template <class A> struct LogSum {
  A m = -std::numeric_limits<A>::infinity(), s = 0;
  __device__ void add(A v) { merge({v, A(1)}); }
  __device__ void merge(LogSum o) {
    constexpr A lowest = -std::numeric_limits<A>::infinity();
    const A high = o.m > m || o.m != o.m ? o.m : m;
    if (high == lowest) return;
    if (high == -lowest || high != high) {
      m = high;
      s = 1;
      return;
    }
    s = s * exponential(m - high) + o.s * exponential(o.m - high);
    m = high;
  }
  __device__ A value() const {
    return s == 0 ? -std::numeric_limits<A>::infinity() : m + logarithm(s);
  }
};
template <class A> __device__ LogSum<A> from_lane(LogSum<A> v, int d) {
  LogSum<A> o;
  o.m = __shfl_xor_sync(0xffffffffu, v.m, d);
  o.s = __shfl_xor_sync(0xffffffffu, v.s, d);
  return o;
}

/// What one pass over a row finds: z, sum of w x, sum of w.
template <class A> struct RowPass {
  LogSum<A> z;
  A weighted = 0, weights = 0;
  __device__ void merge(const RowPass& o) {
    z.merge(o.z);
    weighted += o.weighted;
    weights += o.weights;
  }
};
template <class A> __device__ RowPass<A> warp_merge(RowPass<A> v) {
  for (int d = 16; d > 0; d >>= 1) {
    RowPass<A> o;
    o.z = from_lane(v.z, d);
    o.weighted = __shfl_xor_sync(0xffffffffu, v.weighted, d);
    o.weights = __shfl_xor_sync(0xffffffffu, v.weights, d);
    v.merge(o);
  }
  return v;
}

/// Threads that share a row: a thread (neighbouring rows lie side by side), a warp or a block.
enum class Team { Thread, Warp, Block };

template <Team team, class T>
__device__ RowPass<Acc<T>> pass_over(const Classes<T>& in, int64_t row, bool logits) {
  using A = Acc<T>;
  const int64_t step = team == Team::Thread ? 1 : team == Team::Warp ? 32 : blockDim.x;
  const int64_t start = team == Team::Thread ? 0
                        : team == Team::Warp ? static_cast<int64_t>(threadIdx.x & 31)
                                             : static_cast<int64_t>(threadIdx.x);
  const T* x = in.x + in.first(row);
  RowPass<A> p;
  if (logits || in.share != A(0))
    for (int64_t c = start; c < in.classes; c += step) {
      const A v = widen(x[c * in.inner]);
      if (logits) p.z.add(v);
      if (in.share != A(0)) {
        p.weighted += in.weight(c) * v;
        p.weights += in.weight(c);
      }
    }
  if constexpr (team != Team::Thread) p = warp_merge(p);
  if constexpr (team == Team::Block) {
    __shared__ A parts[4][32];
    __syncthreads();
    if ((threadIdx.x & 31) == 0) {
      const int warp = threadIdx.x / 32;
      parts[0][warp] = p.z.m;
      parts[1][warp] = p.z.s;
      parts[2][warp] = p.weighted;
      parts[3][warp] = p.weights;
    }
    __syncthreads();
    p = RowPass<A>();
    for (int i = 0; i < blockDim.x / 32; ++i) {
      RowPass<A> o;
      o.z.m = parts[0][i];
      o.z.s = parts[1][i];
      o.weighted = parts[2][i];
      o.weights = parts[3][i];
      p.merge(o);
    }
  }
  return p;
}

template <class A> struct LossTargets {
  A *lse, *loss, *total;
  double* partial;  ///< two sums per block, where there is more than one block
  Reduction reduction;
  bool only_lse;
};

template <class A> __device__ void write_sums(const LossTargets<A>& out, double sum, double total) {
  *out.loss = static_cast<A>(out.reduction == Reduction::mean ? sum / total : sum);
  if (out.total) *out.total = static_cast<A>(total);
}

// The loss of `row` from what a pass found; counts the row's weight.
template <class T>
__device__ Acc<T> row_loss(const Classes<T>& in, int64_t row, const RowPass<Acc<T>>& p, Acc<T> z,
                           double* total) {
  using A = Acc<T>;
  const int64_t t = in.class_of(row);
  if (t < 0) return 0;
  *total += static_cast<double>(in.weight(t));
  A loss = in.keep * in.weight(t) * (z - widen(in.x[in.first(row) + t * in.inner]));
  if (in.share != A(0)) loss += in.share * (z * p.weights - p.weighted);
  return loss;
}

constexpr int most_loss_threads = 512;

template <Team team, class T, class Out>
__global__ void __launch_bounds__(most_loss_threads)
    class_loss_kernel(Classes<T> in, bool logits, LossTargets<Acc<T>> out, Out* each) {
  using A = Acc<T>;
  const int64_t per_block = team == Team::Thread ? blockDim.x
                            : team == Team::Warp ? blockDim.x / 32
                                                 : 1;
  const int64_t own = team == Team::Thread ? threadIdx.x
                      : team == Team::Warp ? threadIdx.x / 32
                                           : 0;
  const bool leader = team == Team::Thread || (team == Team::Warp && threadIdx.x % 32 == 0) ||
                      (team == Team::Block && threadIdx.x == 0);
  double sum = 0, total = 0;
  for (int64_t row = blockIdx.x * per_block + own; row < in.rows; row += gridDim.x * per_block) {
    const RowPass<A> p = pass_over<team>(in, row, logits);
    const A z = logits ? p.z.value() : A(0);
    if (!leader) continue;
    if (out.lse) out.lse[row] = z;
    if (out.only_lse) continue;
    const A loss = row_loss(in, row, p, z, &total);
    if (each) each[row] = narrow<Out>(loss);
    sum += static_cast<double>(loss);
  }
  if (out.reduction == Reduction::none || out.only_lse) return;
  sum = block_fold(sum, 0.0, Plus());
  total = block_fold(total, 0.0, Plus());
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1) {
    write_sums(out, sum, total);
  } else {
    out.partial[2 * blockIdx.x] = sum;
    out.partial[2 * blockIdx.x + 1] = total;
  }
}

template <class A> __global__ void finish_sums(LossTargets<A> out, int64_t blocks) {
  double sum = 0, total = 0;
  for (int64_t i = threadIdx.x; i < blocks; i += blockDim.x) {
    sum += out.partial[2 * i];
    total += out.partial[2 * i + 1];
  }
  sum = block_fold(sum, 0.0, Plus());
  total = block_fold(total, 0.0, Plus());
  if (threadIdx.x == 0) write_sums(out, sum, total);
}

template <class T> void run_class_loss(const ClassLoss& in, LossTargets<Acc<T>> out, T* each) {
  const Classes<T> classes(in);
  // Few rows are one block, whose sums need no second launch.
  const Team team = in.inner > 1 ? Team::Thread : in.classes > 4096 ? Team::Block : Team::Warp;
  const int64_t threads = team == Team::Block ? 512 : 256;
  const int64_t per_block = team == Team::Thread ? threads : team == Team::Warp ? threads / 32 : 1;
  const bool single = classes.rows <= 256 && team == Team::Warp;
  const int64_t most = static_cast<int64_t>(multiprocessors()) * 8;
  const int64_t blocks =
      single
          ? 1
          : std::clamp<int64_t>((classes.rows + per_block - 1) / per_block, 1,
                                out.only_lse || out.reduction == Reduction::none ? 1 << 30 : most);
  const unsigned width = single ? most_loss_threads : static_cast<unsigned>(threads);
  Tensor partial;
  if (blocks > 1 && out.reduction != Reduction::none && !out.only_lse) {
    partial = scratch(static_cast<size_t>(blocks) * 16, in.scores.device());
    out.partial = data_of<double>(partial);
  }
  auto run = [&](auto* kernel) {
    kernel<<<static_cast<unsigned>(blocks), width, 0, current_stream()>>>(classes, in.logits, out,
                                                                          each);
    check_launch();
  };
  if (team == Team::Thread)
    run(class_loss_kernel<Team::Thread, T, T>);
  else if (team == Team::Warp)
    run(class_loss_kernel<Team::Warp, T, T>);
  else
    run(class_loss_kernel<Team::Block, T, T>);
  if (out.partial) {
    finish_sums<Acc<T>><<<1, 256, 0, current_stream()>>>(out, blocks);
    check_launch();
  }
}

void log_sum_exp(const ClassLoss& in, const Tensor& lse) {
  if (in.n * in.inner == 0) return;
  visit_floating(in.scores.dtype(), [&]<class T>() {
    if constexpr (is_half_type<T>) {
      fail(ErrorKind::NotImplemented, "logsumexp: no kernel on cuda for 16-bit floats");
    } else {
      ClassLoss rows = in;
      rows.logits = true;
      LossTargets<T> out{pointer<T>(lse), nullptr, nullptr, nullptr, Reduction::none, true};
      run_class_loss<T>(rows, out, nullptr);
    }
  });
}

// Losses of 16-bit scores are float32 until they are stored; lse and total are float32.
void class_loss(const ClassLoss& in, const ClassLossOut& to) {
  visit_floating(in.scores.dtype(), [&]<class T>() {
    if constexpr (is_half_type<T>) {
      fail(ErrorKind::NotImplemented, "class_loss: no kernel on cuda for 16-bit floats");
    } else {
      LossTargets<T> out{pointer<T>(to.lse),   pointer<T>(to.loss),
                         pointer<T>(to.total), nullptr,
                         to.reduction,         false};
      run_class_loss<T>(in, out, to.reduction == Reduction::none ? out.loss : nullptr);
    }
  });
}

template <class T> __global__ void sum_weights(const T* w, int64_t n, T* out) {
  double s = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) s += static_cast<double>(w[i]);
  s = block_fold(s, 0.0, Plus());
  if (threadIdx.x == 0) *out = static_cast<T>(s);
}

/// Gradient of one score: scale (keep w[t] (softmax - [c = t]) + share (sum w softmax - w[c])).
template <class T, class I> struct ClassGradient {
  Classes<T> in;
  const T *lse, *g, *total, *weight_sum;
  bool each;
  T* dx;
  __device__ void operator()(int64_t at) const {
    const I i = static_cast<I>(at), inner = static_cast<I>(in.inner),
            classes = static_cast<I>(in.classes);
    const I plane = i / inner, n = plane / classes, c = plane - n * classes;
    const int64_t row = static_cast<int64_t>(n) * in.inner + (i - plane * inner);
    const int64_t t = in.class_of(row);
    if (t < 0) {
      dx[at] = T(0);
      return;
    }
    const T scale = (each ? g[row] : *g) / (total ? *total : T(1));
    const T of_target = scale * in.keep * in.weight(t), of_weights = scale * in.share;
    const T sum = weight_sum ? *weight_sum : static_cast<T>(in.classes);
    const T of_softmax = of_target + of_weights * sum;
    T d = lse && of_softmax != T(0) ? of_softmax * exponential(in.x[at] - lse[row]) : T(0);
    d -= of_weights * in.weight(c);
    dx[at] = static_cast<int64_t>(c) == t ? d - of_target : d;
  }
};

template <class T>
void class_gradient_as(const ClassLoss& in, const ClassLossOut& saved, const Tensor& g,
                       const Tensor& dx) {
  Tensor memory;
  const T* weight_sum = nullptr;
  const Classes<T> classes(in);
  if (classes.w && in.smoothing != 0) {
    memory = scratch(sizeof(T), dx.device());
    sum_weights<T><<<1, 256, 0, current_stream()>>>(classes.w, in.classes, data_of<T>(memory));
    check_launch();
    weight_sum = data_of<T>(memory);
  }
  const T* lse = in.logits ? pointer<T>(saved.lse) : nullptr;
  const T* total = saved.reduction == Reduction::mean ? pointer<T>(saved.total) : nullptr;
  const bool each = saved.reduction == Reduction::none;
  const T* pg = pointer<T>(g);
  T* out = pointer<T>(dx);
  if (dx.numel() < int64_t{1} << 31)
    for_each(dx.numel(),
             ClassGradient<T, uint32_t>{classes, lse, pg, total, weight_sum, each, out});
  else
    for_each(dx.numel(),
             ClassGradient<T, uint64_t>{classes, lse, pg, total, weight_sum, each, out});
}

void class_loss_backward(const ClassLoss& in, const ClassLossOut& saved, const Tensor& g,
                         const Tensor& dx) {
  if (in.scores.dtype() == DType::Float32)
    class_gradient_as<float>(in, saved, g, dx);
  else
    class_gradient_as<double>(in, saved, g, dx);
}

// ---- losses of a difference

template <class A> __device__ A difference_loss(Difference kind, A d, A p) {
  const A size = d < 0 ? -d : d;
  switch (kind) {
    case Difference::squared: return d * d;
    case Difference::absolute: return size;
    case Difference::smooth_l1: return size < p ? d * d * (A(0.5) / p) : size - A(0.5) * p;
    default: return size <= p ? A(0.5) * d * d : p * (size - A(0.5) * p);
  }
}
template <class A> __device__ A difference_slope(Difference kind, A d, A p) {
  const A size = d < 0 ? -d : d, sign = d > 0 ? A(1) : d < 0 ? A(-1) : d == 0 ? A(0) : d;
  switch (kind) {
    case Difference::squared: return d + d;
    case Difference::absolute: return sign;
    case Difference::smooth_l1: return size < p ? d / p : sign;
    default: return size <= p ? d : p * sign;
  }
}

template <class T>
__global__ void difference_sums(Difference kind, Acc<T> p, const T* __restrict__ x,
                                const T* __restrict__ t, int64_t n, double scale, double* partial,
                                T* out) {
  using A = Acc<T>;
  double sum = 0;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
#pragma unroll 4
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
    sum += static_cast<double>(difference_loss<A>(kind, widen(x[i]) - widen(t[i]), p));
  sum = block_fold(sum, 0.0, Plus());
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1)
    *out = narrow<T>(static_cast<A>(sum * scale));
  else
    partial[blockIdx.x] = sum;
}
template <class T>
__global__ void finish_difference(const double* partial, int64_t blocks, double scale, T* out) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < blocks; i += blockDim.x) sum += partial[i];
  sum = block_fold(sum, 0.0, Plus());
  if (threadIdx.x == 0) *out = narrow<T>(static_cast<Acc<T>>(sum * scale));
}

template <class T>
void difference_as(Difference kind, double param, Reduction reduction, const Tensor& x,
                   const Tensor& t, const Tensor& out) {
  using A = Acc<T>;
  const T *px = pointer<T>(x), *pt = pointer<T>(t);
  T* to = pointer<T>(out);
  const int64_t n = x.numel();
  const A p = static_cast<A>(param);
  if (reduction == Reduction::none) {
    for_each(n, [=] __device__(int64_t i) {
      to[i] = narrow<T>(difference_loss<A>(kind, widen(px[i]) - widen(pt[i]), p));
    });
    return;
  }
  // A mean of nothing is 0 / 0.
  const double scale = reduction == Reduction::mean ? 1 / static_cast<double>(n) : 1;
  const int64_t blocks =
      n <= 16384 ? 1 : std::min<int64_t>((n + 4095) / 4096, 8 * multiprocessors());
  Tensor memory = scratch(static_cast<size_t>(blocks) * 8, x.device());
  difference_sums<T>
      <<<static_cast<unsigned>(blocks), blocks == 1 ? 1024 : 256, 0, current_stream()>>>(
          kind, p, px, pt, n, scale, data_of<double>(memory), to);
  check_launch();
  if (blocks == 1) return;
  finish_difference<T><<<1, 256, 0, current_stream()>>>(data_of<double>(memory), blocks, scale, to);
  check_launch();
}

template <class T>
void difference_gradient_as(Difference kind, double param, Reduction reduction, const Tensor& x,
                            const Tensor& t, const Tensor& g, const Tensor& dx) {
  using A = Acc<T>;
  const T *px = pointer<T>(x), *pt = pointer<T>(t), *pg = pointer<T>(g);
  T* to = pointer<T>(dx);
  const A p = static_cast<A>(param);
  const bool each = reduction == Reduction::none;
  const A count = reduction == Reduction::mean ? static_cast<A>(x.numel()) : A(1);
  for_each(x.numel(), [=] __device__(int64_t i) {
    const A slope = difference_slope<A>(kind, widen(px[i]) - widen(pt[i]), p);
    to[i] = narrow<T>(widen(pg[each ? i : 0]) / count * slope);
  });
}

void difference(Difference kind, double param, Reduction reduction, const Tensor& x,
                const Tensor& t, const Tensor& out) {
  visit_floating(x.dtype(),
                 [&]<class T>() { difference_as<T>(kind, param, reduction, x, t, out); });
}
void difference_backward(Difference kind, double param, Reduction reduction, const Tensor& x,
                         const Tensor& t, const Tensor& g, const Tensor& dx) {
  visit_floating(x.dtype(), [&]<class T>() {
    difference_gradient_as<T>(kind, param, reduction, x, t, g, dx);
  });
}

}  // namespace

template <> const LossKernels& cuda_table<LossKernels>() {
  static constexpr LossKernels table = {.log_sum_exp = log_sum_exp,
                                        .class_loss = class_loss,
                                        .class_loss_backward = class_loss_backward,
                                        .difference = difference,
                                        .difference_backward = difference_backward};
  return table;
}

}  // namespace cresset::cuda
