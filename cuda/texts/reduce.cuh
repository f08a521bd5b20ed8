// The loops of reductions. Before this text stand: T and TOut, the memory types; V, the compute
// type; Index; PACK; FOLD, one of the folds below; what is compiled: COMBINE, ROWS (with RUN where
// the reduced elements are one contiguous run) or columns; LINE; P_KIND; LARGEST.
namespace cresset::cuda {

template <class X> __device__ inline X shuffle_down(X x, int by, int width) {
  static_assert(sizeof(X) % 4 == 0);
  union {
    X value;
    int words[sizeof(X) / 4];
  } u = {x};
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(X) / 4); ++i)
    u.words[i] = __shfl_down_sync(0xffffffffu, u.words[i], by, width);
  return u.value;
}

using Element = typename Cell<V>::type;
template <class X> struct RealOf { using type = X; };
template <class R> struct RealOf<Cplx<R>> { using type = R; };
using Real = typename RealOf<Element>::type;
template <class X> inline constexpr bool is_exact = std::is_integral_v<X>;

template <class X> __device__ inline X squared(X x) { return x * x; }
template <class R> __device__ inline R squared(Cplx<R> x) { return x.re * x.re + x.im * x.im; }
template <std::floating_point X> __device__ inline X magnitude(X x) { return std::abs(x); }
__device__ inline int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }
template <class R> __device__ inline R magnitude(Cplx<R> x) { return std::hypot(x.re, x.im); }

// ---- folds: Acc, identity(), add(acc, value, position, output), merge(acc, other), finish()

struct SumFold {
  using Acc = V;
  static __device__ Acc identity() { return V(0); }
  template <class A> static __device__ void add(Acc& acc, Element x, Index, const A&, Index) {
    acc = acc + Cell<V>::wrap(x);
  }
  template <class A> static __device__ void merge(Acc& acc, Acc o, const A&) { acc = acc + o; }
  template <class A> static __device__ void finish(Acc acc, const A& args, Index at) {
    if constexpr (!is_exact<Element>) acc = acc / V(args.divisor);
    static_cast<TOut*>(args.y)[at] = to_memory<TOut>(acc);
  }
};
struct NanSumFold : SumFold {
  template <class A> static __device__ void add(Acc& acc, Element x, Index, const A&, Index) {
    if (x == x) acc = acc + Cell<V>::wrap(x);
  }
};
struct ProdFold {
  using Acc = V;
  static __device__ Acc identity() { return V(1); }
  template <class A> static __device__ void add(Acc& acc, Element x, Index, const A&, Index) {
    acc = acc * Cell<V>::wrap(x);
  }
  template <class A> static __device__ void merge(Acc& acc, Acc o, const A&) { acc = acc * o; }
  template <class A> static __device__ void finish(Acc acc, const A& args, Index at) {
    static_cast<TOut*>(args.y)[at] = to_memory<TOut>(acc);
  }
};

#ifdef LARGEST
constexpr bool largest = LARGEST;
template <class X> __device__ inline bool goes_before(X a, X b) { return largest ? a > b : a < b; }
struct ExtremeFold {
  using Acc = V;
  static __device__ Acc identity() {
    if constexpr (is_exact<Element>)
      return largest ? V::of(std::numeric_limits<int64_t>::min())
                     : V::of(std::numeric_limits<int64_t>::max());
    else
      return V(largest ? -INFINITY : INFINITY);
  }
  template <class A> static __device__ void merge(Acc& acc, Acc o, const A&) {
    if (o.v != o.v || goes_before(o.v, acc.v)) acc = o;
  }
  template <class A> static __device__ void add(Acc& acc, Element x, Index, const A& args, Index) {
    merge(acc, Cell<V>::wrap(x), args);
  }
  template <class A> static __device__ void finish(Acc acc, const A& args, Index at) {
    static_cast<TOut*>(args.y)[at] = to_memory<TOut>(acc);
  }
};
struct Placed {
  Element value;
  int64_t at;  // -1: nothing yet
};
struct ArgFold {
  using Acc = Placed;
  static __device__ Acc identity() { return {Element(0), -1}; }
  template <class A> static __device__ void merge(Acc& acc, Acc o, const A&) {
    if (o.at < 0) return;
    const bool nan = o.value != o.value, had_nan = acc.value != acc.value;
    const bool wins = acc.at < 0             ? true
                      : nan || had_nan       ? nan && (!had_nan || o.at < acc.at)
                      : o.value == acc.value ? o.at < acc.at
                                             : goes_before(o.value, acc.value);
    if (wins) acc = o;
  }
  template <class A>
  static __device__ void add(Acc& acc, Element x, Index position, const A& args, Index) {
    merge(acc, Placed{x, position}, args);
  }
  template <class A> static __device__ void finish(Acc acc, const A& args, Index at) {
    static_cast<int64_t*>(args.indices)[at] = acc.at;
    if (args.y) static_cast<TOut*>(args.y)[at] = convert<TOut>(acc.value);
  }
};
#endif

struct CountFold {
  using Acc = int64_t;
  static __device__ Acc identity() { return 0; }
  template <class A> static __device__ void add(Acc& acc, Element x, Index, const A&, Index) {
    acc += !(x == Element(0));
  }
  template <class A> static __device__ void merge(Acc& acc, Acc o, const A&) { acc += o; }
  template <class A> static __device__ void finish(Acc acc, const A& args, Index at) {
    static_cast<TOut*>(args.y)[at] = static_cast<TOut>(acc);
  }
};
struct AnyFold : CountFold {
  template <class A> static __device__ void finish(Acc acc, const A& args, Index at) {
    static_cast<TOut*>(args.y)[at] = static_cast<TOut>(acc > 0);
  }
};
struct AllFold : CountFold {
  template <class A> static __device__ void finish(Acc acc, const A& args, Index at) {
    static_cast<TOut*>(args.y)[at] = static_cast<TOut>(acc == args.length);
  }
};

#ifdef P_KIND
// P_KIND: 0, 1, 2 are p itself, 3 infinity, 4 minus infinity, 5 any other.
struct NormFold {
  using Acc = Real;
  static __device__ Acc identity() { return P_KIND == 4 ? Real(INFINITY) : Real(0); }
  template <class A> static __device__ void merge(Acc& acc, Acc o, const A&) {
    if constexpr (P_KIND == 3 || P_KIND == 4) {
      if (o != o || (P_KIND == 3 ? o > acc : o < acc)) acc = o;
    } else {
      acc += o;
    }
  }
  template <class A> static __device__ void add(Acc& acc, Element x, Index, const A& args, Index) {
    if constexpr (P_KIND == 2)
      acc += squared(x);
    else if constexpr (P_KIND == 0)
      acc += !(x == Element(0));
    else if constexpr (P_KIND == 5)
      acc += std::pow(magnitude(x), static_cast<Real>(args.p));
    else
      merge(acc, magnitude(x), args);
  }
  template <class A> static __device__ void finish(Acc acc, const A& args, Index at) {
    if constexpr (P_KIND == 2) acc = std::sqrt(acc);
    if constexpr (P_KIND == 5) acc = std::pow(acc, static_cast<Real>(1 / args.p));
    static_cast<TOut*>(args.y)[at] = convert<TOut>(acc);
  }
};
struct DeviationFold {
  using Acc = Real;
  static __device__ Acc identity() { return 0; }
  template <class A>
  static __device__ void add(Acc& acc, Element x, Index, const A& args, Index output) {
    const Element c = convert<Element>(static_cast<const T*>(args.center)[output]);
    acc += squared(x - c);
  }
  template <class A> static __device__ void merge(Acc& acc, Acc o, const A&) { acc += o; }
  template <class A> static __device__ void finish(Acc acc, const A& args, Index at) {
    static_cast<TOut*>(args.y)[at] = convert<TOut>(acc / static_cast<Real>(args.divisor));
  }
};
#endif

using Fold = FOLD;
using Acc = typename Fold::Acc;

// ---- walking

struct Offsets {
  Index in, out;
};
__device__ inline Offsets locate(const Walk<Index>& walk, Index item) {
  Offsets o = {0, 0};
#pragma unroll 1
  for (int d = 0; d < walk.rank; ++d) {
    Index quotient = 0;
    if (d + 1 < walk.rank) {
      if constexpr (sizeof(Index) == 4)
        quotient =
            (__umulhi(static_cast<uint32_t>(item), walk.magic[d]) + static_cast<uint32_t>(item)) >>
            walk.shift[d];
      else
        quotient = item / walk.sizes[d];
    }
    const Index at = item - quotient * walk.sizes[d];
    item = quotient;
    o.in += at * walk.in[d];
    o.out += at * walk.out[d];
  }
  return o;
}

// The offset of a reduced item; LINE: the reduced dims are one.
template <class A> __device__ inline Index reduced_offset(const A& args, Index item) {
#ifdef LINE
  return item * args.red.in[0];
#else
  return locate(args.red, item).in;
#endif
}

__device__ inline Element element(T x) { return convert<Element>(x); }

// Folds over threadIdx.x of up to 256 threads; the result is right in thread 0 of each row.
template <class A> __device__ inline Acc fold_threads(Acc acc, const A& args) {
  __shared__ alignas(16) char memory[8 * sizeof(Acc)];
  const int width = blockDim.x < 32 ? blockDim.x : 32;
#pragma unroll 1
  for (int by = width / 2; by > 0; by /= 2) {
    const Acc other = shuffle_down(acc, by, width);
    Fold::merge(acc, other, args);
  }
  if (blockDim.x <= 32) return acc;
  Acc* warps = reinterpret_cast<Acc*>(memory) + threadIdx.y * (blockDim.x / 32);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = acc;
  __syncthreads();
  if (threadIdx.x == 0)
#pragma unroll 1
    for (int w = 1; w < static_cast<int>(blockDim.x / 32); ++w) Fold::merge(acc, warps[w], args);
  return acc;
}

template <class A> __device__ inline void put(const Acc& acc, const A& args, Index output) {
  if (args.partial)
    static_cast<Acc*>(args.partial)[blockIdx.y * args.outputs + output] = acc;
  else
    Fold::finish(acc, args, output);
}

#if defined(COMBINE)
// Folds the splits of each output, in their order: [threadIdx.y: an output].
extern "C" __global__ void __launch_bounds__(256)
    combine_kernel(const __grid_constant__ ReduceArgs<Index> args, int splits) {
  wait_for_stream();
  const int64_t output = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const bool valid = output < args.outputs;
  Acc acc = Fold::identity();
  const Acc* from = static_cast<const Acc*>(args.partial);
  for (int s = threadIdx.x; valid && s < splits; s += blockDim.x)
    Fold::merge(acc, from[s * args.outputs + output], args);
  const Acc total = fold_threads(acc, args);
  if (valid && threadIdx.x == 0) Fold::finish(total, args, static_cast<Index>(output));
}
#elif defined(ROWS)
// Packs that a thread has in flight.
constexpr int times = sizeof(Acc) > 8 ? 2 : sizeof(Acc) > 4 ? 4 : 8;

template <class A>
__device__ inline void fold_pack(Acc& acc, const Pack<T, PACK>& q, Index at, const A& args,
                                 Index output) {
#pragma unroll
  for (int j = 0; j < PACK; ++j) Fold::add(acc, element(q.v[j]), at + j, args, output);
}

// Folds packs [0, packs) that `at(i)` finds in memory; the first one is at position `first`. The
// splits take turns, so that blocks that run together read neighbouring memory.
template <class At, class A>
__device__ inline Acc fold_packs(Index packs, Index first, At at, const A& args, Index output) {
  Acc acc[times];
#pragma unroll
  for (int u = 0; u < times; ++u) acc[u] = Fold::identity();
  const Index step = blockDim.x, turn = step * times;
  for (Index i = blockIdx.y * turn + threadIdx.x; i < packs; i += gridDim.y * turn) {
    Pack<T, PACK> q[times];
#pragma unroll
    for (int u = 0; u < times; ++u)
      if (i + u * step < packs) q[u] = load_pack<PACK>(at(i + u * step));
#pragma unroll
    for (int u = 0; u < times; ++u)
      if (i + u * step < packs)
        fold_pack(acc[u], q[u], first + (i + u * step) * PACK, args, output);
  }
#pragma unroll
  for (int u = 1; u < times; ++u) Fold::merge(acc[0], acc[u], args);
  return acc[0];
}

// A contiguous run: single elements up to the first aligned pack, packs, single elements.
template <class A>
__device__ inline Acc fold_run(const T* p, Index n, const A& args, Index output) {
  Index head = static_cast<Index>((PACK - reinterpret_cast<uint64_t>(p) / sizeof(T) % PACK) % PACK);
  if (head > n) head = n;
  const Index packs = (n - head) / PACK, tail = head + packs * PACK;
  const T* body = p + head;
  Acc acc = fold_packs(
      packs, head, [=](Index i) { return body + i * PACK; }, args, output);
  if (blockIdx.y != 0) return acc;
  for (Index i = threadIdx.x; i < head; i += blockDim.x)
    Fold::add(acc, element(p[i]), i, args, output);
  for (Index i = tail + threadIdx.x; i < n; i += blockDim.x)
    Fold::add(acc, element(p[i]), i, args, output);
  return acc;
}

// [threadIdx.y: an output][threadIdx.x: along its elements]; blockIdx.y: a split of them.
extern "C" __global__ void __launch_bounds__(256, times == 8 ? 4 : 1)
    reduce_kernel(const __grid_constant__ ReduceArgs<Index> args) {
  wait_for_stream();
  const int64_t item = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const bool valid = item < args.outputs;
  const Offsets start = locate(args.kept, valid ? static_cast<Index>(item) : Index(0));
  const T* x = static_cast<const T*>(args.x) + start.in;
  const Index n = valid ? static_cast<Index>(args.length) : Index(0);
#ifdef RUN
  const Acc acc = fold_run(x, n, args, start.out);
#else
  const Acc acc = fold_packs(
      n / PACK, Index(0), [&](Index i) { return x + reduced_offset(args, i); }, args, start.out);
#endif
  const Acc total = fold_threads(acc, args);
  if (valid && threadIdx.x == 0) put(total, args, start.out);
}
#else
// [threadIdx.x: a pack of neighbouring outputs][threadIdx.y: along the rows]; blockIdx.y: a split.
extern "C" __global__ void __launch_bounds__(256)
    reduce_kernel(const __grid_constant__ ReduceArgs<Index> args) {
  wait_for_stream();
  constexpr int times = 2;
  __shared__ alignas(16) char memory[256 * PACK * sizeof(Acc)];
  const int64_t item = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const bool valid = item < args.items;
  const Offsets start = locate(args.kept, valid ? static_cast<Index>(item) : Index(0));
  const Index beside = args.kept.rank ? args.kept.out[0] / PACK : 0;
  const T* x = static_cast<const T*>(args.x) + start.in;
  Acc acc[PACK];
#pragma unroll
  for (int j = 0; j < PACK; ++j) acc[j] = Fold::identity();
  const int64_t from = blockIdx.y * args.per_split;
  const int64_t until = from + args.per_split < args.length ? from + args.per_split : args.length;
  const Index end = valid && until > from ? static_cast<Index>(until) : Index(0);
  const Index step = blockDim.y;
  Index r = static_cast<Index>(from) + threadIdx.y;
  for (; r + (times - 1) * step < end; r += times * step) {
    Pack<T, PACK> q[times];
#pragma unroll
    for (int u = 0; u < times; ++u) q[u] = load_pack<PACK>(x + reduced_offset(args, r + u * step));
#pragma unroll
    for (int u = 0; u < times; ++u)
#pragma unroll
      for (int j = 0; j < PACK; ++j)
        Fold::add(acc[j], element(q[u].v[j]), r + u * step, args, start.out + j * beside);
  }
  for (; r < end; r += step) {
    const Pack<T, PACK> q = load_pack<PACK>(x + reduced_offset(args, r));
#pragma unroll
    for (int j = 0; j < PACK; ++j)
      Fold::add(acc[j], element(q.v[j]), r, args, start.out + j * beside);
  }
  Acc* rows = reinterpret_cast<Acc*>(memory);
#pragma unroll
  for (int j = 0; j < PACK; ++j) rows[(threadIdx.y * PACK + j) * blockDim.x + threadIdx.x] = acc[j];
  __syncthreads();
  if (!valid) return;
#pragma unroll 1
  for (int j = threadIdx.y; j < PACK; j += blockDim.y) {
    Acc total = rows[j * blockDim.x + threadIdx.x];
#pragma unroll 1
    for (int y = 1; y < static_cast<int>(blockDim.y); ++y)
      Fold::merge(total, rows[(y * PACK + j) * blockDim.x + threadIdx.x], args);
    put(total, args, start.out + j * beside);
  }
}
#endif

}  // namespace cresset::cuda
