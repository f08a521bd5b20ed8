// CUDA kernels of the operators that choose elements or rows.
#include "core/ops/indexing.h"

#include <cstring>
#include <vector>

#include "cuda/device_error.h"
#include "cuda/ordered.cuh"

namespace cresset::cuda {
namespace {

// ---- indices

// Contract of the CPU: the host learns the bounds, so this waits for the device.
void range(const Tensor& index, int64_t* lo, int64_t* hi) {
  Tensor memory = scratch(16, index.device());
  long long* bounds = data_of<long long>(memory);
  const int64_t* at = pointer<int64_t>(index);
  for_each(1, [=] __device__(int64_t) { bounds[0] = bounds[1] = at[0]; });
  for_each(index.numel(), [=] __device__(int64_t i) {
    const long long v = at[i];
    if (v < bounds[0]) atomicMin(&bounds[0], v);
    if (v > bounds[1]) atomicMax(&bounds[1], v);
  });
  int64_t found[2];
  download(found, bounds, sizeof(found));
  *lo = found[0];
  *hi = found[1];
}

void wrap(const Tensor& index, int64_t n) {
  int64_t* at = pointer<int64_t>(index);
  for_each(index.numel(), [=] __device__(int64_t i) {
    if (at[i] < 0) at[i] += n;
  });
}

void check(const Tensor& index, int64_t n, bool negative, const Tensor& out) {
  const void* from = data_of(index);
  const DType dtype = index.dtype();
  int64_t* to = pointer<int64_t>(out);
  const IndexReport report = index_report();
  for_each(index.numel(), [=] __device__(int64_t i) {
    const int64_t v = load_as<int64_t>(from, dtype, i);
    const bool inside = v < n && v >= (negative ? -n : 0);
    if (!inside) report(v, negative ? -n : 0, n);
    to[i] = !inside ? -1 : v < 0 ? v + n : v;
  });
}

/// The index tensors of a block, small enough for a kernel's argument.
struct IndexList {
  static constexpr size_t most = 24;
  int count = 0;
  const int64_t* at[most];
  int64_t size[most];
};

void linear(const TensorList& index, const Dims& sizes, const Tensor& out) {
  CHECK(index.size() <= IndexList::most, NotImplemented, launching_op(), ": expected at most ",
        IndexList::most, " index tensors, got ", index.size());
  IndexList list;
  for (size_t d = 0; d < index.size(); ++d) {
    list.at[list.count] = pointer<int64_t>(index[d]);
    list.size[list.count++] = sizes[d];
  }
  int64_t* to = pointer<int64_t>(out);
  for_each(out.numel(), [=] __device__(int64_t i) {
    int64_t at = 0;
    bool inside = true;
    for (int d = 0; d < list.count; ++d) {
      const int64_t v = list.at[d][i];
      inside = inside && v >= 0;
      at = at * list.size[d] + v;
    }
    to[i] = inside ? at : -1;
  });
}

// ---- rows, moved in the widest words that fit them

size_t word_size(int64_t inner, size_t item, std::initializer_list<const void*> pointers) {
  size_t bits = static_cast<size_t>(inner) * item | 16;
  for (const void* p : pointers) bits |= reinterpret_cast<size_t>(p);
  return bits & (~bits + 1);
}

template <class W>
void select_words(const void* self, const int64_t* at, int64_t count, void* out, RowShape s,
                  int64_t words) {
  const W* from = static_cast<const W*>(self);
  W* to = static_cast<W*>(out);
  for_each(s.outer * count * words, [=] __device__(int64_t i) {
    const int64_t row = i / words, e = i - row * words, o = row / count;
    const int64_t j = at[row - o * count];
    to[i] = j < 0 || j >= s.n ? W{} : from[(o * s.n + j) * words + e];
  });
}

void select_rows(const Tensor& self, const Tensor& index, const Tensor& out, RowShape s) {
  const int64_t count = index.numel();
  if (count == 0 || s.inner == 0 || s.outer == 0) return;
  const void* from = data_of(self);
  void* to = data_of(out);
  const size_t item = itemsize(self.dtype()), word = word_size(s.inner, item, {from, to});
  const int64_t words = s.inner * static_cast<int64_t>(item) / static_cast<int64_t>(word);
  visit_size(word, [&]<class W>() {
    select_words<W>(from, pointer<int64_t>(index), count, to, s, words);
  });
}

/// The rows in the order of their indices.
SortedKeys sort_rows(const Tensor& index, int64_t rows) {
  const int64_t* at = pointer<int64_t>(index);
  return sort_targets(index.numel(), rows, index.device(), [=] __device__(int64_t i) {
    return at[i] >= 0 && at[i] < rows ? at[i] : int64_t{-1};
  });
}

template <class W>
void write_words(void* self, const Tensor& index, const void* src, RowShape s, int64_t words) {
  const W* from = static_cast<const W*>(src);
  W* to = static_cast<W*>(self);
  const int64_t* at = pointer<int64_t>(index);
  const int64_t count = index.numel();
  if (orders_writes(count)) {
    const SortedKeys sorted = sort_rows(index, s.n);
    const uint64_t* keys = sorted.keys;
    const uint32_t* order = sorted.places;
    // The last of a run of equal indices writes.
    for_each(s.outer * count * words, [=] __device__(int64_t i) {
      const int64_t row = i / words, e = i - row * words, o = row / count, p = row - o * count;
      const uint64_t key = keys[p];
      if (key == 0 || (p + 1 < count && keys[p + 1] == key)) return;
      to[(o * s.n + static_cast<int64_t>(key) - 1) * words + e] =
          from[(o * count + order[p]) * words + e];
    });
    return;
  }
  for_each(s.outer * count * words, [=] __device__(int64_t i) {
    const int64_t row = i / words, e = i - row * words, o = row / count;
    const int64_t j = at[row - o * count];
    if (j >= 0 && j < s.n) to[(o * s.n + j) * words + e] = from[i];
  });
}

void write_rows(const Tensor& self, const Tensor& index, const Tensor& src, RowShape s) {
  const int64_t count = index.numel();
  if (count == 0 || s.inner == 0 || s.outer == 0) return;
  void* to = data_of(self);
  const void* from = data_of(src);
  const size_t item = itemsize(self.dtype()), word = word_size(s.inner, item, {from, to});
  const int64_t words = s.inner * static_cast<int64_t>(item) / static_cast<int64_t>(word);
  visit_size(word, [&]<class W>() { write_words<W>(to, index, from, s, words); });
}

// Note [Sums in order]
// Indices are sorted with their places, stably; the first of a run of equal ones adds up the rows
// of the whole run, in order. So sums of floats have equal bits in every run, at the cost of a
// sort.
template <class T>
void add_rows_as(const Tensor& self, const Tensor& index, const Tensor& src, Acc<T> alpha,
                 RowShape s) {
  const int64_t count = index.numel();
  const SortedKeys sorted = sort_rows(index, s.n);
  const uint64_t* keys = sorted.keys;
  const uint32_t* places = sorted.places;
  const T* from = pointer<T>(src);
  T* to = pointer<T>(self);
  for_each(s.outer * count * s.inner, [=] __device__(int64_t i) {
    const int64_t row = i / s.inner, e = i - row * s.inner, o = row / count, p = row - o * count;
    const uint64_t key = keys[p];
    if (key == 0 || (p > 0 && keys[p - 1] == key)) return;
    Acc<T> sum = Acc<T>(0);
    for (int64_t q = p; q < count && keys[q] == key; ++q)
      sum = sum + widen(from[(o * count + places[q]) * s.inner + e]);
    T& target = to[(o * s.n + static_cast<int64_t>(key) - 1) * s.inner + e];
    target = narrow<T>(widen(target) + alpha * sum);
  });
}

// Integers may come in any order.
template <class T>
void add_integer_rows(const Tensor& self, const Tensor& index, const Tensor& src, T alpha,
                      RowShape s) {
  const int64_t count = index.numel();
  const int64_t* at = pointer<int64_t>(index);
  const T* from = pointer<T>(src);
  T* to = pointer<T>(self);
  for_each(s.outer * count * s.inner, [=] __device__(int64_t i) {
    const int64_t row = i / s.inner, e = i - row * s.inner, o = row / count;
    const int64_t j = at[row - o * count];
    if (j < 0 || j >= s.n) return;
    atomic_plus(to + (o * s.n + j) * s.inner + e, static_cast<T>(alpha * from[i]));
  });
}

void add_rows(const Tensor& self, const Tensor& index, const Tensor& src, const Scalar& alpha,
              RowShape s) {
  if (index.numel() == 0 || s.inner == 0 || s.outer == 0 || s.n == 0) return;
  visit_device(self.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, bool>)
      add_integer_rows<T>(self, index, src, alpha.to_bool(), s);
    else if constexpr (std::is_integral_v<T>)
      add_integer_rows<T>(self, index, src, static_cast<T>(alpha.to_int()), s);
    else if constexpr (is_complex_type<T>)
      add_rows_as<T>(self, index, src,
                     T(static_cast<typename T::value_type>(alpha.to_complex().real()),
                       static_cast<typename T::value_type>(alpha.to_complex().imag())),
                     s);
    else
      add_rows_as<T>(self, index, src, static_cast<Acc<T>>(alpha.to_double()), s);
  });
}

// ---- where

/// An operand of where(): elements on the device, or one number that came from the host.
template <class W> struct Choice {
  const W* elements = nullptr;
  W number{};

  explicit Choice(const Tensor& t) {
    if (t.device().is_cpu() && t.numel() == 1)
      std::memcpy(&number, t.data<void>(), sizeof(W));
    else
      elements = static_cast<const W*>(data_of(t));
  }
  __device__ W operator[](int64_t i) const { return elements ? elements[i] : number; }
};

template <class W>
void where_words(const Tensor& condition, const Tensor& a, const Tensor& b, const Tensor& out) {
  const Dims& sizes = out.sizes();
  auto strides = [&](const Tensor& t) { return broadcast_strides(t.sizes(), t.strides(), sizes); };
  const Walks<3> walk = make_walks<3>({sizes, {strides(condition), strides(a), strides(b)}});
  const Choice<uint8_t> c(condition);
  const Choice<W> x(a), y(b);
  W* to = static_cast<W*>(data_of(out));
  if (walk.dims == 1) {
    const int64_t sc = walk.strides[0][0], sa = walk.strides[1][0], sb = walk.strides[2][0];
    for_each(out.numel(), [=] __device__(int64_t i) { to[i] = c[i * sc] ? x[i * sa] : y[i * sb]; });
    return;
  }
  for_each(out.numel(), [=] __device__(int64_t i) {
    int64_t at[3];
    walk.offsets(i, at);
    to[i] = c[at[0]] ? x[at[1]] : y[at[2]];
  });
}

void where(const Tensor& condition, const Tensor& a, const Tensor& b, const Tensor& out) {
  visit_size(itemsize(out.dtype()), [&]<class W>() { where_words<W>(condition, a, b, out); });
}

// ---- nonzero: one block for each `nonzero_block` elements

constexpr int count_threads = 256, per_thread = nonzero_block / count_threads;

__device__ bool is_nonzero(const void* x, DType dtype, int64_t i) {
  if (is_complex(dtype)) return load_as<Complex<double>>(x, dtype, i) != Complex<double>(0);
  if (is_floating(dtype)) return load_as<double>(x, dtype, i) != 0;
  return load_as<int64_t>(x, dtype, i) != 0;
}

__global__ void count_kernel(const void* x, DType dtype, int64_t n, int64_t* counts) {
  const int64_t first = blockIdx.x * nonzero_block;
  int count = 0;
  for (int k = 0; k < per_thread; ++k) {
    const int64_t i = first + k * count_threads + threadIdx.x;
    if (i < n) count += is_nonzero(x, dtype, i);
  }
  count = block_fold(count, 0, Plus());
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

// The host needs the counts to size the result: this waits for the device.
void count_nonzero(const Tensor& x, std::vector<int64_t>* counts) {
  const int64_t n = x.numel(), blocks = (n + nonzero_block - 1) / nonzero_block;
  counts->assign(static_cast<size_t>(blocks), 0);
  if (n == 0) return;
  Tensor memory = scratch(8 * static_cast<size_t>(blocks), x.device());
  count_kernel<<<static_cast<unsigned>(blocks), count_threads, 0, current_stream()>>>(
      data_of(x), x.dtype(), n, data_of<int64_t>(memory));
  check_launch();
  download(counts->data(), data_of(memory), 8 * static_cast<size_t>(blocks));
}

struct Shape {
  int dims = 0;
  int64_t sizes[32];
};

__global__ void nonzero_kernel(const void* x, DType dtype, int64_t n, const int64_t* first,
                               Shape shape, int64_t total, int64_t* out) {
  __shared__ int starts[count_threads / 32];
  int64_t at = first[blockIdx.x];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int k = 0; k < per_thread; ++k) {
    const int64_t i = blockIdx.x * nonzero_block + k * count_threads + threadIdx.x;
    const bool found = i < n && is_nonzero(x, dtype, i);
    const unsigned votes = __ballot_sync(0xffffffffu, found);
    __syncthreads();
    if (lane == 0) starts[warp] = __popc(votes);
    __syncthreads();
    int before = __popc(votes & ((1u << lane) - 1)), all = 0;
    for (int w = 0; w < count_threads / 32; ++w) {
      before += w < warp ? starts[w] : 0;
      all += starts[w];
    }
    const int64_t place = at + before;
    at += all;
    if (!found || place >= total) continue;
    int64_t rest = i;
    for (int d = shape.dims - 1; d >= 0; --d) {
      out[d * total + place] = rest % shape.sizes[d];
      rest /= shape.sizes[d];
    }
  }
}

void nonzero(const Tensor& x, const std::vector<int64_t>& counts, const Tensor& out) {
  if (x.dim() == 0 || counts.empty()) return;
  Shape shape;
  CHECK(x.dim() <= 32, NotImplemented, launching_op(), ": expected at most 32 dims, got ", x.dim());
  for (int64_t size : x.sizes()) shape.sizes[shape.dims++] = size;
  std::vector<int64_t> first(counts.size());
  for (size_t i = 1; i < counts.size(); ++i) first[i] = first[i - 1] + counts[i - 1];
  const Tensor memory = upload<int64_t>(first, x.device());
  nonzero_kernel<<<static_cast<unsigned>(counts.size()), count_threads, 0, current_stream()>>>(
      data_of(x), x.dtype(), x.numel(), data_of<int64_t>(memory), shape, out.size(1),
      pointer<int64_t>(out));
  check_launch();
}

}  // namespace

template <> const IndexingKernels& cuda_table<IndexingKernels>() {
  static constexpr IndexingKernels table = {.range = range,
                                            .wrap = wrap,
                                            .linear = linear,
                                            .select_rows = select_rows,
                                            .write_rows = write_rows,
                                            .add_rows = add_rows,
                                            .where = where,
                                            .count_nonzero = count_nonzero,
                                            .nonzero = nonzero,
                                            .check = check};
  return table;
}

}  // namespace cresset::cuda
