// Own convolutions for every element type: blocks of the unrolled input times the weight matrix.
#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "core/cpu/conv_direct.h"
#include "core/cpu/conv_raw.h"
#include "core/cpu/gemm.h"
#include "core/cpu/parallel.h"
#include "core/cpu/workspace.h"

namespace cresset {
namespace {

/// Bytes of unrolled input that one thread holds at a time.
constexpr int64_t kBlockBytes = 512 * 1024;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
void gemm(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, T beta) {
  if constexpr (std::is_same_v<T, float>) {
    gemm_f32(a, b, c, 1.0f, beta);
  } else if constexpr (std::is_same_v<T, double>) {
    gemm_f64(a, b, c, 1.0, beta);
  } else {
    gemm_any<T>(a, b, c, T(1), beta);
  }
}

template <class T> T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

/// C = A @ B plus one number per row, unless `row_bias` is null.
template <class T>
void gemm_bias(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> c, const T* row_bias) {
  if constexpr (std::is_floating_point_v<T>) {
    if (row_bias != nullptr && a.cols != 0) return gemm_own_bias<T>(a, b, c, row_bias);
  }
  gemm<T>(a, b, c, T(0));
  if (row_bias == nullptr) return;
  for (int64_t i = 0; i < c.rows; ++i) {
    T* row = c.data + i * c.row_stride;
    for (int64_t j = 0; j < c.cols; ++j) row[j] = add(row[j], row_bias[i]);
  }
}

/// Counts of one group that the loops share.
struct Sizes {
  int64_t ci, co;   // channels per group
  int64_t taps;     // kernel elements per channel
  int64_t in, out;  // positions of one channel

  explicit Sizes(const ConvNdShape& s)
      : ci(s.c_in / s.groups),
        co(s.c_out / s.groups),
        taps(s.kernel[0] * s.kernel[1] * s.kernel[2]),
        in(s.in[0] * s.in[1] * s.in[2]),
        out(s.out[0] * s.out[1] * s.out[2]) {}
};

/// A run of neighbouring outputs and the inputs that one kernel tap gives them: outputs
/// [lo, hi) of the run read `source + i * step`, the others lie in the padding.
struct Run {
  int64_t length, lo, hi;
  int64_t source, step;
};

/// Calls visit(run, offset) for the outputs [begin, end) cut at row ends, for kernel tap (z, y, x).
template <class Visit>
void for_each_run(const ConvNdShape& s, const ConvNdShape::Extent& tap, int64_t begin, int64_t end,
                  Visit&& visit) {
  const int64_t width = s.out[2];
  for (int64_t p = begin; p < end;) {
    const int64_t row = p / width, x0 = p % width;
    const int64_t length = std::min(width - x0, end - p);
    const int64_t z = row / s.out[1] * s.stride[0] - s.pad_before[0] + tap[0] * s.dilation[0];
    const int64_t y = row % s.out[1] * s.stride[1] - s.pad_before[1] + tap[1] * s.dilation[1];
    const int64_t first = x0 * s.stride[2] - s.pad_before[2] + tap[2] * s.dilation[2];
    Run run{length, 0, 0, 0, s.stride[2]};
    if (z >= 0 && z < s.in[0] && y >= 0 && y < s.in[1]) {
      run.lo = first >= 0 ? 0 : std::min(length, ceil_div(-first, run.step));
      run.hi = first >= s.in[2] ? 0 : std::min(length, (s.in[2] - 1 - first) / run.step + 1);
      run.hi = std::max(run.hi, run.lo);
      run.source = (z * s.in[1] + y) * s.in[2] + first;
    }
    visit(run, p - begin);
    p += length;
  }
}

/// Calls visit(tap, index) for every kernel tap in memory order.
template <class Visit> void for_each_tap(const ConvNdShape& s, Visit&& visit) {
  int64_t index = 0;
  for (int64_t z = 0; z < s.kernel[0]; ++z) {
    for (int64_t y = 0; y < s.kernel[1]; ++y) {
      for (int64_t x = 0; x < s.kernel[2]; ++x) visit(ConvNdShape::Extent{z, y, x}, index++);
    }
  }
}

/// columns [channels * taps, end - begin]: what each kernel tap sees of `x` [channels, ...in].
template <class T>
void unroll(const ConvNdShape& s, const T* x, int64_t channels, int64_t begin, int64_t end,
            T* columns) {
  const Sizes size(s);
  const int64_t width = end - begin;
  for (int64_t c = 0; c < channels; ++c) {
    const T* plane = x + c * size.in;
    for_each_tap(s, [&](const ConvNdShape::Extent& tap, int64_t index) {
      T* row = columns + (c * size.taps + index) * width;
      for_each_run(s, tap, begin, end, [&](const Run& run, int64_t offset) {
        T* to = row + offset;
        const T* from = plane + run.source;
        std::fill_n(to, run.lo, T(0));
        if (run.step == 1) {
          std::copy(from + run.lo, from + run.hi, to + run.lo);
        } else {
          for (int64_t i = run.lo; i < run.hi; ++i) to[i] = from[i * run.step];
        }
        std::fill_n(to + run.hi, run.length - run.hi, T(0));
      });
    });
  }
}

/// The adjoint of `unroll`: adds the columns to the elements of `x` that they came from.
template <class T>
void roll_add(const ConvNdShape& s, const T* columns, int64_t channels, int64_t begin, int64_t end,
              T* x) {
  const Sizes size(s);
  const int64_t width = end - begin;
  for (int64_t c = 0; c < channels; ++c) {
    T* plane = x + c * size.in;
    for_each_tap(s, [&](const ConvNdShape::Extent& tap, int64_t index) {
      const T* row = columns + (c * size.taps + index) * width;
      for_each_run(s, tap, begin, end, [&](const Run& run, int64_t offset) {
        const T* from = row + offset;
        T* to = plane + run.source;
        if (run.step == 1) {
          for (int64_t i = run.lo; i < run.hi; ++i) to[i] = add(to[i], from[i]);
        } else {
          for (int64_t i = run.lo; i < run.hi; ++i) {
            to[i * run.step] = add(to[i * run.step], from[i]);
          }
        }
      });
    });
  }
}

/// True when every output position reads exactly the input position of the same index.
bool is_pointwise(const ConvNdShape& s) {
  const ConvNdShape::Extent ones{1, 1, 1}, zeros{0, 0, 0};
  return s.kernel == ones && s.stride == ones && s.pad_before == zeros && s.in == s.out;
}

/// Output positions per block so that `rows` unrolled rows stay within kBlockBytes.
template <class T> int64_t block_width(int64_t rows, int64_t out) {
  const int64_t bytes = std::max<int64_t>(1, rows) * static_cast<int64_t>(sizeof(T));
  return std::clamp<int64_t>(kBlockBytes / bytes, std::min<int64_t>(out, 64), out);
}

/// Scratch for as many pieces of `elements` as run at the same time; piece i uses part(i).
template <class T> class Parts {
 public:
  Parts(int64_t pieces, int64_t elements)
      : stride_(ceil_div(elements, 64) * 64),
        scratch_(static_cast<size_t>(pieces * stride_) * sizeof(T)) {}
  T* part(int64_t i) const { return scratch_.template as<T>() + i * stride_; }

 private:
  int64_t stride_;
  Scratch scratch_;
};

/// Runs task(i, piece) for i in [0, count) in `pieces` pieces.
template <class Task> void run_tasks(int64_t count, int64_t pieces, Task&& task) {
  parallel_for(0, pieces, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t piece = lo; piece < hi; ++piece) {
      const int64_t first = piece * count / pieces, last = (piece + 1) * count / pieces;
      for (int64_t i = first; i < last; ++i) task(i, piece);
    }
  });
}

/// How many pieces to run at once: one when the whole work is small or nested.
int64_t piece_limit(int64_t tasks, int64_t multiplications) {
  return std::min(tasks, multiplications < 32768 ? 1 : balanced_pieces());
}

int64_t multiplications(const ConvNdShape& s, const Sizes& size) {
  return s.n * s.c_out * size.out * size.ci * size.taps;
}

/// Sum of gy over batch and positions for every output channel: its rows times ones.
template <class T> void bias_gradient(const ConvNdShape& s, const T* gy, T* gb) {
  const int64_t out = Sizes(s).out;
  if (s.n * out == 0) {
    std::fill_n(gb, s.c_out, T(0));
    return;
  }
  const Scratch scratch(static_cast<size_t>(out) * sizeof(T));
  T* ones = scratch.template as<T>();
  std::fill_n(ones, out, T(1));
  const int64_t grain = std::max<int64_t>(1, 32768 / (s.n * out));
  parallel_for(0, s.c_out, grain, [&](int64_t lo, int64_t hi) {
    for (int64_t n = 0; n < s.n; ++n) {
      gemm<T>({gy + (n * s.c_out + lo) * out, hi - lo, out, out, 1}, {ones, out, 1, 1, 1},
              {gb + lo, hi - lo, 1, 1, 1}, n == 0 ? T(0) : T(1));
    }
  });
}

}  // namespace

template <class T>
void conv_own_forward(const ConvNdShape& s, const T* x, const T* w, const T* bias, T* y) {
  const Sizes size(s);
  if (s.n * s.c_out * size.out == 0) return;
  if constexpr (std::is_floating_point_v<T>) {
    if (!is_pointwise(s) && conv_direct_fits<T>(s)) return conv_direct_forward(s, x, w, bias, y);
  }
  const int64_t depth = size.ci * size.taps;
  const bool pointwise = is_pointwise(s);
  int64_t width = pointwise ? size.out : block_width<T>(depth, size.out);
  int64_t blocks = ceil_div(size.out, width);
  const int64_t images = s.n * s.groups;
  const int64_t pieces =
      piece_limit(std::max(images * blocks, int64_t{num_threads()}), multiplications(s, size));
  if (images * blocks < pieces) {
    blocks = std::min(size.out, ceil_div(pieces, images));
    width = ceil_div(size.out, blocks);
    blocks = ceil_div(size.out, width);
  }
  const Parts<T> parts(pieces, pointwise ? 0 : depth * width);
  run_tasks(images * blocks, pieces, [&](int64_t task, int64_t piece) {
    const int64_t image = task / blocks, group = image % s.groups;
    const int64_t begin = task % blocks * width, end = std::min(size.out, begin + width);
    const T* from = x + image * size.ci * size.in;
    T* to = y + image * size.co * size.out + begin;
    MatrixView<const T> columns{from + begin, depth, end - begin, size.in, 1};
    if (!pointwise) {
      T* part = parts.part(piece);
      unroll(s, from, size.ci, begin, end, part);
      columns = {part, depth, end - begin, end - begin, 1};
    }
    gemm_bias<T>({w + group * size.co * depth, size.co, depth, depth, 1}, columns,
                 {to, size.co, end - begin, size.out, 1},
                 bias != nullptr ? bias + group * size.co : nullptr);
  });
}

template <class T>
void conv_own_backward_input(const ConvNdShape& s, const T* gy, const T* w, T* gx) {
  const Sizes size(s);
  if (s.n * s.c_in * size.in == 0) return;
  if constexpr (std::is_floating_point_v<T>) {
    if (!is_pointwise(s) && conv_direct_backward_fits<T>(s)) {
      return conv_direct_backward_input(s, gy, w, gx);
    }
  }
  const bool pointwise = is_pointwise(s);
  const int64_t images = s.n * s.groups;
  // Channels of an image are independent: they are cut when the images do not fill the threads.
  const int64_t cuts = std::clamp<int64_t>(ceil_div(num_threads(), images), 1, size.ci);
  const int64_t channels = ceil_div(size.ci, cuts);
  const int64_t width = block_width<T>(channels * size.taps, size.out);
  const int64_t pieces = piece_limit(images * cuts, multiplications(s, size));
  const Parts<T> parts(pieces, pointwise ? 0 : channels * size.taps * width);
  run_tasks(images * cuts, pieces, [&](int64_t task, int64_t piece) {
    const int64_t image = task / cuts, group = image % s.groups;
    const int64_t c0 = task % cuts * channels, count = std::min(channels, size.ci - c0);
    if (count <= 0) return;
    const int64_t depth = size.ci * size.taps, rows = count * size.taps;
    const T* from = gy + image * size.co * size.out;
    T* to = gx + (image * size.ci + c0) * size.in;
    const MatrixView<const T> weight{w + group * size.co * depth + c0 * size.taps, rows, size.co, 1,
                                     depth};
    if (pointwise) {
      gemm<T>(weight, {from, size.co, size.out, size.out, 1}, {to, rows, size.out, size.in, 1},
              T(0));
      return;
    }
    std::fill_n(to, count * size.in, T(0));
    T* part = parts.part(piece);
    for (int64_t begin = 0; begin < size.out; begin += width) {
      const int64_t cols = std::min(width, size.out - begin);
      gemm<T>(weight, {from + begin, size.co, cols, size.out, 1}, {part, rows, cols, cols, 1},
              T(0));
      roll_add(s, part, count, begin, begin + cols, to);
    }
  });
}

template <class T>
void conv_own_backward_weight(const ConvNdShape& s, const T* x, const T* gy, T* gw, T* gb) {
  const Sizes size(s);
  if (gb != nullptr) bias_gradient(s, gy, gb);
  const int64_t depth = size.ci * size.taps, weights = s.c_out * depth;
  if (weights == 0) return;
  if (s.n * size.out == 0) {
    std::fill_n(gw, weights, T(0));
    return;
  }
  const bool pointwise = is_pointwise(s);
  const int64_t limit = piece_limit(num_threads(), multiplications(s, size));
  // Channels first; then the batch, each cut of it with a sum of its own that is added up below.
  const int64_t cuts = std::clamp<int64_t>(ceil_div(limit, s.groups), 1, size.ci);
  const int64_t shares = std::clamp<int64_t>(ceil_div(limit, s.groups * cuts), 1, s.n);
  const int64_t channels = ceil_div(size.ci, cuts);
  const int64_t width = block_width<T>(channels * size.taps, size.out);
  const int64_t tasks = s.groups * cuts * shares;
  const int64_t pieces = piece_limit(tasks, multiplications(s, size));
  const Parts<T> parts(pieces, pointwise ? 0 : channels * size.taps * width);
  const Parts<T> sums(shares - 1, weights);
  run_tasks(tasks, pieces, [&](int64_t task, int64_t piece) {
    const int64_t share = task / (s.groups * cuts), group = task / cuts % s.groups;
    const int64_t c0 = task % cuts * channels, count = std::min(channels, size.ci - c0);
    if (count <= 0) return;
    T* sum = share == 0 ? gw : sums.part(share - 1);
    const int64_t rows = count * size.taps;
    const MatrixView<T> result{sum + group * size.co * depth + c0 * size.taps, size.co, rows, depth,
                               1};
    const int64_t n0 = share * s.n / shares, n1 = (share + 1) * s.n / shares;
    for (int64_t n = n0; n < n1; ++n) {
      const T* from = x + ((n * s.groups + group) * size.ci + c0) * size.in;
      const T* grad = gy + (n * s.groups + group) * size.co * size.out;
      for (int64_t begin = 0; begin < size.out; begin += width) {
        const int64_t cols = std::min(width, size.out - begin);
        MatrixView<const T> columns{from + begin, cols, rows, 1, size.in};
        if (!pointwise) {
          T* part = parts.part(piece);
          unroll(s, from, count, begin, begin + cols, part);
          columns = {part, cols, rows, 1, cols};
        }
        gemm<T>({grad + begin, size.co, cols, size.out, 1}, columns, result,
                n == n0 && begin == 0 ? T(0) : T(1));
      }
    }
  });
  for (int64_t share = 1; share < shares; ++share) {
    const T* from = sums.part(share - 1);
    for (int64_t i = 0; i < weights; ++i) gw[i] = add(gw[i], from[i]);
  }
}

#define CRESSET_CONV_OWN(T)                                                             \
  template void conv_own_forward(const ConvNdShape&, const T*, const T*, const T*, T*); \
  template void conv_own_backward_input(const ConvNdShape&, const T*, const T*, T*);    \
  template void conv_own_backward_weight(const ConvNdShape&, const T*, const T*, T*, T*);
CRESSET_CONV_OWN(float)
CRESSET_CONV_OWN(double)
CRESSET_CONV_OWN(int64_t)
CRESSET_CONV_OWN(std::complex<float>)
CRESSET_CONV_OWN(std::complex<double>)
#undef CRESSET_CONV_OWN

}  // namespace cresset
