// Padding on the CPU: rows of the output with a copied middle and looked-up ends.
#include "core/ops/pad.h"

#include <cstring>

#include "core/cpu/parallel.h"

namespace cresset {
namespace {

/// The longest run of neighbouring sources of the innermost dim.
struct Middle {
  int64_t begin = 0, end = 0, source = 0;
};

Middle find_middle(const std::vector<int64_t>& source) {
  Middle best;
  int64_t n = static_cast<int64_t>(source.size());
  for (int64_t i = 0; i < n;) {
    int64_t j = i + 1;
    if (source[i] >= 0)
      while (j < n && source[j] == source[j - 1] + 1) ++j;
    if (source[i] >= 0 && j - i > best.end - best.begin) best = {i, j, source[i]};
    i = j;
  }
  return best;
}

// Calls f(row, offset) for the rows [lo, hi) of the output; offset is where the row comes from in
// the input, or -1 where an outer dim is outside of it.
template <class F>
void for_rows(const PadPlan& plan, const Dims& sizes, const Dims& strides, int64_t lo, int64_t hi,
              F&& f) {
  size_t outer = sizes.size() - 1;
  Dims at(outer);
  int64_t rest = lo;
  for (size_t d = outer; d-- > 0;) {
    at[d] = rest % sizes[d];
    rest /= sizes[d];
  }
  for (int64_t row = lo; row < hi; ++row) {
    int64_t offset = 0;
    for (size_t d = 0; d < outer; ++d) {
      int64_t s = plan.source[d][at[d]];
      if (s < 0) {
        offset = -1;
        break;
      }
      offset += s * strides[d];
    }
    f(row, offset);
    for (size_t d = outer; d-- > 0;) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
    }
  }
}

struct Pair16 {
  uint64_t a, b;
};

template <class T>
void pad_typed(const Tensor& x, const Tensor& y, const PadPlan& plan, const void* value_bytes) {
  T value;
  std::memcpy(&value, value_bytes, sizeof(T));
  const std::vector<int64_t>& inner = plan.source.back();
  int64_t n = y.size(-1), step = x.stride(-1);
  Middle mid = find_middle(inner);
  const T* from = static_cast<const T*>(x.data<void>());
  T* to = static_cast<T*>(y.data<void>());
  auto ends = [&](T* d, const T* s, int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i) d[i] = inner[i] < 0 ? value : s[inner[i] * step];
  };
  int64_t grain = std::max<int64_t>(1, 65536 / n);
  parallel_for(0, y.numel() / n, grain, [&](int64_t lo, int64_t hi) {
    for_rows(plan, y.sizes(), x.strides(), lo, hi, [&](int64_t row, int64_t offset) {
      T* d = to + row * n;
      if (offset < 0) {
        std::fill_n(d, n, value);
        return;
      }
      const T* s = from + offset;
      ends(d, s, 0, mid.begin);
      if (step == 1)
        std::memcpy(d + mid.begin, s + mid.source,
                    static_cast<size_t>(mid.end - mid.begin) * sizeof(T));
      else
        ends(d, s, mid.begin, mid.end);
      ends(d, s, mid.end, n);
    });
  });
}

void pad(const Tensor& x, const Tensor& y, const PadPlan& plan, const void* value) {
  if (y.numel() == 0) return;
  switch (itemsize(y.dtype())) {
    case 1: return pad_typed<uint8_t>(x, y, plan, value);
    case 2: return pad_typed<uint16_t>(x, y, plan, value);
    case 4: return pad_typed<uint32_t>(x, y, plan, value);
    case 8: return pad_typed<uint64_t>(x, y, plan, value);
    default: return pad_typed<Pair16>(x, y, plan, value);
  }
}

// Several places of g may come from one of gx, so threads share the dims that are not padded.
template <class T> void pad_backward_typed(const Tensor& g, const Tensor& gx, const PadPlan& plan) {
  const std::vector<int64_t>& inner = plan.source.back();
  int64_t n = g.size(-1), batch = 1;
  for (int64_t d = 0; d < std::min(plan.first, g.dim() - 1); ++d) batch *= g.size(d);
  int64_t rows = g.numel() / n / batch;
  const T* from = g.data<T>();
  T* to = gx.data<T>();
  parallel_for(0, batch, std::max<int64_t>(1, 32768 / (rows * n)), [&](int64_t lo, int64_t hi) {
    for_rows(plan, g.sizes(), gx.strides(), lo * rows, hi * rows, [&](int64_t row, int64_t at) {
      if (at < 0) return;
      const T* s = from + row * n;
      T* d = to + at;
      for (int64_t i = 0; i < n; ++i)
        if (inner[i] >= 0) d[inner[i]] += s[i];
    });
  });
}

void pad_backward(const Tensor& g, const Tensor& gx, const PadPlan& plan) {
  if (g.numel() == 0) return;
  visit_dtype(g.dtype(), [&]<class T>() {
    if constexpr (!std::is_integral_v<T>) pad_backward_typed<T>(g, gx, plan);
  });
}

}  // namespace

template <> const PadKernels& cpu_kernels<PadKernels>() {
  static constexpr PadKernels table = {.pad = pad, .pad_backward = pad_backward};
  return table;
}

}  // namespace cresset
