// CPU kernels of the operators that choose elements or rows.
#include "core/ops/indexing.h"

#include <cstring>

#include "core/cpu/parallel.h"
#include "core/cpu/strided.h"

namespace cresset {
namespace {

constexpr int64_t grain = 32768;  // elements of work that are worth a thread
constexpr int64_t lanes = 16;     // loops of a fixed length are what the compiler vectorises

void range(const Tensor& index, int64_t* lo, int64_t* hi) {
  const int64_t* at = index.data<int64_t>();
  int64_t low = at[0], high = at[0];
  for (int64_t i = 0, n = index.numel(); i < n; ++i) {
    low = at[i] < low ? at[i] : low;
    high = at[i] > high ? at[i] : high;
  }
  *lo = low;
  *hi = high;
}

void wrap(const Tensor& index, int64_t n) {
  int64_t* at = index.data<int64_t>();
  for (int64_t i = 0, count = index.numel(); i < count; ++i) at[i] += at[i] < 0 ? n : 0;
}

void linear(const TensorList& index, const Dims& sizes, const Tensor& out) {
  int64_t* to = out.data<int64_t>();
  for (int64_t i = 0, n = out.numel(); i < n; ++i) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at = at * sizes[d] + index[d].data<int64_t>()[i];
    to[i] = at;
  }
}

void select_elements(const Tensor& self, const Tensor& index, const Tensor& out, RowShape s) {
  const int64_t *at = index.data<int64_t>(), count = index.numel();
  visit_bytes(itemsize(self.dtype()), [&]<class T>() {
    const T* from = self.data<T>();
    T* to = out.data<T>();
    parallel_for(0, s.outer * count, grain, [&](int64_t lo, int64_t hi) {
      int64_t o = lo / count, j = lo % count;
      for (int64_t i = lo; i < hi; ++o, j = 0)
        for (const T* row = from + o * s.n; j < count && i < hi; ++j, ++i)
          to[i] = at[j] < 0 ? T{} : row[at[j]];
    });
  });
}

void select_rows(const Tensor& self, const Tensor& index, const Tensor& out, RowShape s) {
  const int64_t *at = index.data<int64_t>(), count = index.numel();
  if (count == 0 || s.inner == 0) return;
  if (s.inner == 1) return select_elements(self, index, out, s);
  const size_t bytes = static_cast<size_t>(s.inner) * itemsize(self.dtype());
  const char* from = static_cast<const char*>(self.data());
  char* to = static_cast<char*>(out.data());
  parallel_for(0, s.outer * count, std::max<int64_t>(1, grain / s.inner),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t i = lo; i < hi; ++i) {
                   int64_t o = i / count, j = at[i % count];
                   char* row = to + static_cast<size_t>(i) * bytes;
                   if (j < 0)
                     std::memset(row, 0, bytes);
                   else
                     std::memcpy(row, from + static_cast<size_t>(o * s.n + j) * bytes, bytes);
                 }
               });
}

void write_rows(const Tensor& self, const Tensor& index, const Tensor& src, RowShape s) {
  const int64_t *at = index.data<int64_t>(), count = index.numel();
  const size_t bytes = static_cast<size_t>(s.inner) * itemsize(self.dtype());
  const char* from = static_cast<const char*>(src.data());
  char* to = static_cast<char*>(self.data());
  auto write = [&]<class Copy>(Copy copy) {
    for (int64_t o = 0; o < s.outer; ++o)
      for (int64_t j = 0; j < count; ++j)
        if (at[j] >= 0)
          copy(to + static_cast<size_t>(o * s.n + at[j]) * bytes,
               from + static_cast<size_t>(o * count + j) * bytes);
  };
  if (s.inner == 1)
    visit_bytes(bytes, [&]<class T>() {
      write([](char* a, const char* b) { std::memcpy(a, b, sizeof(T)); });
    });
  else if (bytes)
    write([bytes](char* a, const char* b) { std::memcpy(a, b, bytes); });
}

template <class T> void add_to(T* to, const T* from, T alpha, bool scale, int64_t n) {
  if constexpr (std::is_same_v<T, bool>) {
    for (int64_t i = 0; i < n; ++i) to[i] = to[i] || (from[i] && alpha);
  } else {
    int64_t i = 0;
    if (scale) {
      for (; i < n; ++i) to[i] = static_cast<T>(to[i] + alpha * from[i]);
      return;
    }
    for (; i + lanes <= n; i += lanes) {
      T block[lanes];
      for (int64_t k = 0; k < lanes; ++k) block[k] = static_cast<T>(to[i + k] + from[i + k]);
      std::copy(block, block + lanes, to + i);
    }
    for (; i < n; ++i) to[i] = static_cast<T>(to[i] + from[i]);
  }
}

template <class T> T number(const Scalar& s) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(s.to_int());
  else if constexpr (requires { typename T::value_type; })
    return T(s.to_complex());
  else
    return static_cast<T>(static_cast<float>(s.to_double()));
}
template <> double number<double>(const Scalar& s) { return s.to_double(); }

// Rows come in random order: the memory of a later one is asked for while this one is added.
constexpr int64_t ahead = 4;
template <class T> void fetch(const T* row, int64_t n) {
  const char* p = reinterpret_cast<const char*>(row);
  for (int64_t i = 0; i < n * static_cast<int64_t>(sizeof(T)); i += 64)
    __builtin_prefetch(p + i, 1);
}

// Each element of self is written by one thread, in the order of j: the sum is deterministic.
void add_rows(const Tensor& self, const Tensor& index, const Tensor& src, const Scalar& alpha,
              RowShape s) {
  const int64_t *at = index.data<int64_t>(), count = index.numel();
  if (count == 0 || s.inner == 0 || s.outer == 0) return;
  visit_dtype(self.dtype(), [&]<class T>() {
    const T* from = src.data<T>();
    T* to = self.data<T>();
    const T a = number<T>(alpha);
    const bool scale = !alpha.equals(1);
    auto add = [&](int64_t o, int64_t j, int64_t column, int64_t width) {
      add_to(to + (o * s.n + at[j]) * s.inner + column, from + (o * count + j) * s.inner + column,
             a, scale, width);
    };
    if (s.outer > 1) {
      parallel_for(0, s.outer, std::max<int64_t>(1, grain / (count * s.inner)),
                   [&](int64_t lo, int64_t hi) {
                     for (int64_t o = lo; o < hi; ++o)
                       for (int64_t j = 0; j < count; ++j)
                         if (at[j] >= 0) add(o, j, 0, s.inner);
                   });
    } else if (s.inner >= 32) {
      parallel_for(0, s.inner, std::max<int64_t>(16, grain / count), [&](int64_t lo, int64_t hi) {
        for (int64_t j = 0; j < count; ++j) {
          if (j + ahead < count && at[j + ahead] >= 0)
            fetch(to + at[j + ahead] * s.inner + lo, hi - lo);
          if (at[j] >= 0) add(0, j, lo, hi - lo);
        }
      });
    } else {
      const int64_t rows = std::max<int64_t>(1, s.n * grain / (count * s.inner));
      parallel_for(0, s.n, rows, [&](int64_t lo, int64_t hi) {
        for (int64_t j = 0; j < count; ++j)
          if (at[j] >= lo && at[j] < hi) add(0, j, 0, s.inner);
      });
    }
  });
}

// a where c is not 0, else b, without a branch: masks are seldom predictable.
template <class T> T chosen(uint8_t c, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const T keep = static_cast<T>(-static_cast<T>(c != 0));
    return static_cast<T>(b ^ ((a ^ b) & keep));
  } else {
    return {chosen(c, a.half[0], b.half[0]), chosen(c, a.half[1], b.half[1])};
  }
}

// Strides of 0 or 1 for a and b are compile-time constants; the condition's is 1.
template <int64_t sa, int64_t sb, class T>
void where_run(const uint8_t* c, const T* a, const T* b, T* out, int64_t n) {
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    T block[lanes];
    for (int64_t k = 0; k < lanes; ++k)
      block[k] = chosen(c[i + k], a[(i + k) * sa], b[(i + k) * sb]);
    std::copy(block, block + lanes, out + i);
  }
  for (; i < n; ++i) out[i] = chosen(c[i], a[i * sa], b[i * sb]);
}

void where(const Tensor& condition, const Tensor& a, const Tensor& b, const Tensor& out) {
  const Dims& sizes = out.sizes();
  auto strides = [&](const Tensor& t) { return broadcast_strides(t.sizes(), t.strides(), sizes); };
  const Strided<3> walk = coalesced<3>({sizes, {strides(condition), strides(a), strides(b)}});
  const int64_t sc = walk.strides[0].back(), sa = walk.strides[1].back(),
                sb = walk.strides[2].back();
  const uint8_t* c = static_cast<const uint8_t*>(condition.data());
  visit_bytes(itemsize(out.dtype()), [&]<class T>() {
    const T *x = a.data<T>(), *y = b.data<T>();
    T* to = out.data<T>();
    auto run = [&](const std::array<int64_t, 3>& at, int64_t first, int64_t n) {
      const uint8_t* cc = c + at[0];
      const T *xx = x + at[1], *yy = y + at[2];
      T* o = to + first;
      if (sc == 1 && sa == 1 && sb == 1) return where_run<1, 1>(cc, xx, yy, o, n);
      if (sc == 1 && sa == 1 && sb == 0) return where_run<1, 0>(cc, xx, yy, o, n);
      if (sc == 1 && sa == 0 && sb == 1) return where_run<0, 1>(cc, xx, yy, o, n);
      for (int64_t i = 0; i < n; ++i) o[i] = chosen(cc[i * sc], xx[i * sa], yy[i * sb]);
    };
    parallel_for(0, out.numel(), grain,
                 [&](int64_t lo, int64_t hi) { for_each_run(walk, lo, hi, run); });
  });
}

template <class T> bool is_nonzero(const T& x) { return x != T(0); }

void count_nonzero(const Tensor& x, std::vector<int64_t>* counts) {
  const int64_t n = x.numel(), blocks = (n + nonzero_block - 1) / nonzero_block;
  counts->assign(static_cast<size_t>(blocks), 0);
  visit_dtype(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    parallel_for(0, blocks, 4, [&](int64_t lo, int64_t hi) {
      for (int64_t block = lo; block < hi; ++block) {
        int64_t count = 0, end = std::min(n, (block + 1) * nonzero_block);
        for (int64_t i = block * nonzero_block; i < end; ++i) count += is_nonzero(from[i]);
        (*counts)[static_cast<size_t>(block)] = count;
      }
    });
  });
}

// Turns the element numbers in the last row of `to` into coordinates.
void unravel(const Dims& sizes, int64_t* to, int64_t total, int64_t start, int64_t stop) {
  const int64_t dims = static_cast<int64_t>(sizes.size());
  for (int64_t k = start; k < stop; ++k) {
    int64_t rest = to[(dims - 1) * total + k];
    for (int64_t d = dims; d-- > 0;) {
      to[d * total + k] = rest % sizes[d];
      rest /= sizes[d];
    }
  }
}

void nonzero(const Tensor& x, const std::vector<int64_t>& counts, const Tensor& out) {
  const int64_t total = out.size(1), dims = x.dim();
  if (dims == 0) return;
  std::vector<int64_t> first(counts.size());
  for (size_t i = 1; i < counts.size(); ++i) first[i] = first[i - 1] + counts[i - 1];
  int64_t* to = out.data<int64_t>();
  int64_t* last = to + (dims - 1) * total;
  visit_dtype(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    parallel_for(0, static_cast<int64_t>(counts.size()), 4, [&](int64_t lo, int64_t hi) {
      for (int64_t block = lo; block < hi; ++block) {
        const int64_t start = first[static_cast<size_t>(block)];
        const int64_t stop = start + counts[static_cast<size_t>(block)];
        // Numbers first, each written over by the next until its element is not 0.
        int64_t k = start;
        for (int64_t i = block * nonzero_block; k < stop; ++i) {
          last[k] = i;
          k += is_nonzero(from[i]);
        }
        if (dims > 1) unravel(x.sizes(), to, total, start, stop);
      }
    });
  });
}

}  // namespace

template <> const IndexingKernels& cpu_kernels<IndexingKernels>() {
  static constexpr IndexingKernels table = {.range = range,
                                            .wrap = wrap,
                                            .linear = linear,
                                            .select_rows = select_rows,
                                            .write_rows = write_rows,
                                            .add_rows = add_rows,
                                            .where = where,
                                            .count_nonzero = count_nonzero,
                                            .nonzero = nonzero};
  return table;
}

}  // namespace cresset
